// Standard library use of a program and an archive next to libarenite.a. In a header, so that each
// has copies of the same inline functions and templates as Arenite.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iomanip>
#include <locale>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>

inline std::string Numbers(uint64_t seed) {
  char buffer[64];
  const auto integer = std::to_chars(buffer, buffer + sizeof buffer, seed, 16);
  const auto number = std::to_chars(integer.ptr, buffer + sizeof buffer, 0.1 * double(seed));
  std::string out(buffer, number.ptr);
  uint64_t back = 0;
  std::from_chars(buffer, integer.ptr, back, 16);
  if (back != seed) return "from_chars";
  return out + std::to_string(seed) + std::to_string(-static_cast<int>(seed)) +
         std::to_string(0.5f) + std::to_string(std::stoul("17") + std::stod("0.25"));
}

inline std::string Containers(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::unordered_map<std::string, std::vector<int>> table;
  std::map<int, std::string> ordered;
  std::set<std::string_view> words = {"sand", "stone", "grain"};
  for (int i = 0; i < 100; ++i) {
    const int n = std::uniform_int_distribution<int>(0, 9)(random);
    table[std::to_string(n)].push_back(i);
    ordered.emplace(n, std::string(static_cast<size_t>(n) + 1, 'x'));
  }
  std::vector<std::pair<size_t, std::string>> sizes;
  for (const auto& [key, values] : table) sizes.emplace_back(values.size(), key);
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  std::variant<int, std::string> either = sizes.front().second;
  const std::optional<std::string> word(*words.begin());
  const std::function<std::string()> last = [&] { return ordered.rbegin()->second; };
  return std::get<std::string>(either) + *word + last();
}

inline std::string Text(const std::string& text) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  const std::regex word(R"((\w+)\s*=\s*([0-9.]+))", std::regex::ECMAScript);
  for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) {
    double value = 0;
    std::istringstream(it->str(2)) >> value;
    out << std::setw(8) << it->str(1) << ':' << std::fixed << std::setprecision(3) << value;
  }
  return out.str() + std::regex_replace(text, std::regex("[aeiou]"), "_");
}

inline int Threads() {
  std::atomic<int> sum{0};
  std::mutex mutex;
  std::condition_variable changed;
  int ready = 0;
  std::vector<std::thread> threads;
  for (int i = 1; i <= 4; ++i) {
    threads.emplace_back([&, i] {
      sum += i;
      const std::lock_guard<std::mutex> lock(mutex);
      ++ready;
      changed.notify_one();
    });
  }
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(60), [&] { return ready == 4; });
  }
  for (std::thread& thread : threads) thread.join();
  return sum + std::async(std::launch::async, [] { return 1; }).get();
}

inline std::string Exceptions() {
  try {
    throw std::system_error(std::make_error_code(std::errc::invalid_argument), "sand");
  } catch (const std::exception& e) {
    const auto kept = std::make_shared<std::string>(e.what());
    return *kept;
  }
}

inline std::string UseStandardLibrary(uint64_t seed) {
  return Numbers(seed) + Containers(seed) + Text("depth = 1.25, width=3") +
         std::to_string(Threads()) + Exceptions();
}

#include "tools/serve/kept_states.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tools/arenite/error.h"
#include "tools/cli/format.h"
#include "tools/serve/state_file.h"

namespace arn::serve {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".state";

size_t CountCommon(const int32_t* a, size_t n_a, const int32_t* b, size_t n_b) {
  const size_t n = std::min(n_a, n_b);
  return static_cast<size_t>(std::mismatch(a, a + n, b).first - a);
}

// Returns the number in a file's name; 0: it has none.
uint64_t NumberOf(const fs::path& path) {
  const std::string name = path.filename().string();
  uint64_t number = 0;
  int end = 0;
  if (std::sscanf(name.c_str(), "%" SCNu64 ".state%n", &number, &end) != 1) return 0;
  return static_cast<size_t>(end) == name.size() ? number : 0;
}

}  // namespace

KeptStates::KeptStates(fs::path folder, const KeptLimits& limits, Metrics* metrics)
    : folder_(std::move(folder)), limits_(limits), metrics_(*metrics) {
  MakeStateFolder(folder_);
  Scan();
  thread_ = std::thread([this] { Run(); });
}

uint64_t KeptStates::bytes() const {
  const uint64_t one_read = limits_.waiting_bytes;
  return uint64_t{kMaxFiles} * limits_.context_tokens * sizeof(int32_t) + limits_.waiting_bytes +
         one_read;
}

fs::path KeptStates::PathOf(uint64_t number) const {
  return folder_ / (std::to_string(number) + kEnding);
}

void KeptStates::Scan() {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const uint64_t number = NumberOf(entry.path());
    if (number == 0) {
      // Removes what a process that was killed had not finished.
      if (entry.path().extension() == ".tmp") fs::remove(entry.path(), error);
      continue;
    }
    Kept kept;
    kept.number = number;
    kept.bytes = entry.file_size(error);
    kept.ids = ReadStateIds(entry.path(), limits_.context_tokens);
    if (kept.ids.empty()) {
      fs::remove(entry.path(), error);
      continue;
    }
    next_number_ = std::max(next_number_, number + 1);
    total_bytes_ += kept.bytes;
    kept_.push_back(std::move(kept));
  }
  kept_.sort([](const Kept& a, const Kept& b) { return a.number > b.number; });
  Trim();
}

KeptStates::Iterator KeptStates::At(uint64_t number) {
  return std::find_if(kept_.begin(), kept_.end(),
                      [&](const Kept& kept) { return kept.number == number; });
}

bool KeptStates::Wants(const int32_t* ids, size_t n) {
  if (n < kFewTokens) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (CountCommon(ids, n, kept->ids.data(), kept->ids.size()) < n) continue;
    kept_.splice(kept_.begin(), kept_, kept);
    return false;
  }
  return true;
}

bool KeptStates::HasRoomFor(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !is_stopping_ && bytes <= limits_.folder_bytes &&
         waiting_bytes_ + bytes <= limits_.waiting_bytes;
}

void KeptStates::Put(std::vector<int32_t> ids, std::vector<char> state) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Kept kept;
  for (const Kept& old : kept_) {
    const size_t n = old.ids.size();
    if (CountCommon(old.ids.data(), n, ids.data(), ids.size()) == n) {
      kept.replaces.push_back(old.number);
    }
  }
  kept.number = next_number_++;
  kept.ids = std::move(ids);
  kept.bytes = state.size();
  kept.waiting = std::make_shared<const std::vector<char>>(std::move(state));
  total_bytes_ += kept.bytes;
  waiting_bytes_ += kept.bytes;
  to_write_.push_back(kept.number);
  kept_.push_front(std::move(kept));
  ++metrics_.states_saved;
  Trim();
  came_.notify_one();
}

std::optional<KeptStates::Found> KeptStates::Find(const std::vector<int32_t>& prompt) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::optional<Found> best;
  for (const Kept& kept : kept_) {
    const size_t n = CountCommon(prompt.data(), prompt.size(), kept.ids.data(), kept.ids.size());
    if (n >= kFewTokens && (!best || n > best->n_common)) best = Found{kept.number, n};
  }
  return best;
}

KeptStates::Bytes KeptStates::Read(uint64_t number) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto kept = At(number);
    if (kept == kept_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, kept);
    if (kept->waiting) return kept->waiting;
  }
  return ReadStateFile(PathOf(number));
}

void KeptStates::Warm(const std::vector<int32_t>& prompt) {
  const std::optional<Found> found = Find(prompt);
  if (found) ReadStateThrough(PathOf(found->number));
}

void KeptStates::Remove(uint64_t number, const std::string& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto kept = At(number);
  if (kept == kept_.end()) return;
  Erase(kept);
  Trim();
  Warn(PathOf(number).string() + ": the conversation is computed again: " + why);
}

void KeptStates::Warn(const std::string& problem) {
  if (!std::exchange(has_warned_, true)) {
    std::fprintf(stderr, "arenite: warning: %s\n", problem.c_str());
  }
}

void KeptStates::Erase(Iterator kept) {
  std::error_code error;
  total_bytes_ -= kept->bytes;
  if (kept->waiting) {
    waiting_bytes_ -= kept->bytes;
  } else {
    fs::remove(PathOf(kept->number), error);
  }
  kept_.erase(kept);
}

void KeptStates::Trim() {
  while (kept_.size() > kMaxFiles || (total_bytes_ > limits_.folder_bytes && !kept_.empty())) {
    Erase(std::prev(kept_.end()));
  }
  metrics_.states_kept = kept_.size();
  metrics_.states_bytes = total_bytes_;
}

void KeptStates::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_stopping_ = true;
    came_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void KeptStates::Run() {
  for (;;) {
    uint64_t number = 0;
    Bytes state;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      came_.wait(lock, [this] { return is_stopping_ || !to_write_.empty(); });
      if (to_write_.empty()) return;
      number = to_write_.front();
      to_write_.pop_front();
      const auto kept = At(number);
      if (kept == kept_.end()) continue;  // it has gone meanwhile
      state = kept->waiting;
    }
    const std::string problem = WriteStateFile(PathOf(number), *state);
    state = nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto kept = At(number);
    std::error_code error;
    if (kept == kept_.end()) {
      fs::remove(PathOf(number), error);
      continue;
    }
    waiting_bytes_ -= kept->bytes;
    kept->waiting = nullptr;
    if (problem.empty()) {
      for (const uint64_t old : std::exchange(kept->replaces, {})) {
        if (const auto at = At(old); at != kept_.end()) Erase(at);
      }
    } else {
      Erase(kept);
      Warn(problem);
    }
    Trim();
  }
}

}  // namespace arn::serve

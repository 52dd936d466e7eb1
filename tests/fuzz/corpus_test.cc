// Replays the kept inputs of each fuzz target, its seeds, and mutations of both, the same in every
// run. A crash or a broken promise ends the program; the input is then in fuzz_corpus_NAME.bin of
// the current folder. ARN_FUZZ_TIMES makes so many times as many mutations, and ARN_FUZZ_FIRST
// leaves so many times as many out before them, which an earlier run made. With --seeds FOLDER:
// writes the seeds to FOLDER/NAME instead, as the beginning of a corpus. With
// --use-uninitialised: branches on an uninitialised byte instead, which memcheck.sh must find.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/seed_files.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;

// Of inputs that are derived of a target's kept ones.
constexpr size_t kMutations = 600;

size_t NumberOf(const char* variable, size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Below(uint64_t n) {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return n == 0 ? 0 : (z ^ (z >> 31)) % n;
  }

 private:
  uint64_t state_;
};

// What libFuzzer does, the most common of it. Leaves the first byte of every second input, which
// selects the kind of many.
std::string Mutated(std::string input, const std::string& other, Random* random) {
  constexpr uint8_t kTelling[] = {0, 1, 0x7F, 0x80, 0xFF, ' ', '"', '{', '[', '\\', '\n'};
  const size_t first = random->Below(2);
  for (uint64_t n = 1 + random->Below(4); n > 0; --n) {
    const size_t at = std::min<size_t>(first + random->Below(input.size() + 1), input.size());
    switch (random->Below(6)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(random->Below(256));
        break;
      case 1:
        if (at < input.size()) input[at] = static_cast<char>(kTelling[random->Below(11)]);
        break;
      case 2: input.insert(at, 1 + random->Below(4), static_cast<char>(random->Below(256))); break;
      case 3: input.erase(at, 1 + random->Below(8)); break;
      case 4: {
        const size_t from = random->Below(other.size() + 1);
        input.insert(at, other.substr(from, random->Below(64)));
        break;
      }
      default:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ 1 << random->Below(8));
        break;
    }
  }
  return input;
}

// The input that runs, for the handler of a signal.
const FuzzTarget* running = nullptr;
const std::string* running_input = nullptr;

extern "C" void OnCrash(int number) {
  std::signal(number, SIG_DFL);
  if (running != nullptr && running_input != nullptr) {
    const std::string path = std::string("fuzz_corpus_") + running->name + ".bin";
    if (std::FILE* file = std::fopen(path.c_str(), "wb")) {
      std::fwrite(running_input->data(), 1, running_input->size(), file);
      std::fclose(file);
    }
    std::fprintf(stderr, "%s: its input is in %s\n", running->name, path.c_str());
  }
  std::raise(number);
}

void RunOne(const FuzzTarget& target, const std::string& input) {
  running = &target;
  running_input = &input;
  // Memory of exactly this size, so that a sanitizer sees reads past its end.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  target.run(bytes.data(), bytes.size());
  running_input = nullptr;
}

std::string ReadInput(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The kept inputs, sorted by name, then the seeds.
std::vector<std::string> InputsOf(const FuzzTarget& target) {
  std::vector<fs::path> paths;
  const fs::path folder = fs::path(ARN_FUZZ_CORPUS) / target.name;
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const fs::path& path : paths) inputs.push_back(ReadInput(path));
  if (target.seeds != nullptr) {
    for (std::string& seed : target.seeds()) inputs.push_back(std::move(seed));
  }
  return inputs;
}

std::vector<FuzzTarget> SortedTargets() {
  std::vector<FuzzTarget> targets = FuzzTargets();
  std::sort(targets.begin(), targets.end(), [](const FuzzTarget& a, const FuzzTarget& b) {
    return std::strcmp(a.name, b.name) < 0;
  });
  return targets;
}

class FuzzCorpusTest : public testing::TestWithParam<FuzzTarget> {
 protected:
  void SetUp() override {
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) std::signal(number, OnCrash);
  }
  void TearDown() override {
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) std::signal(number, SIG_DFL);
  }
};

TEST_P(FuzzCorpusTest, KeptInputsAndMutations) {
  const FuzzTarget& target = GetParam();
  const std::vector<std::string> inputs = InputsOf(target);
  ASSERT_FALSE(inputs.empty()) << "neither seeds nor corpus/" << target.name;
  RunOne(target, "");
  for (const std::string& input : inputs) RunOne(target, input);
  const size_t n_mutations = kMutations * NumberOf("ARN_FUZZ_TIMES", 1);
  const size_t first = kMutations * NumberOf("ARN_FUZZ_FIRST", 0);
  const std::clock_t begin = std::clock();
  for (size_t i = 0; i < n_mutations; ++i) {
    Random random((first + i) * 1000003 + 17);
    const std::string& input = inputs[random.Below(inputs.size())];
    RunOne(target, Mutated(input, inputs[random.Below(inputs.size())], &random));
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::printf("%zu kept, %zu mutations, %.0f/s of CPU time\n", inputs.size(), n_mutations,
              static_cast<double>(n_mutations) / std::max(seconds, 1e-6));
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpusTest, testing::ValuesIn(SortedTargets()),
                         [](const auto& target) { return std::string(target.param.name); });

// Returns 0; the folders are FOLDER/NAME.
int WriteAllSeeds(const fs::path& folder) {
  for (const FuzzTarget& target : SortedTargets()) {
    fs::create_directories(folder / target.name);
    WriteSeeds(target, folder / target.name);
  }
  return 0;
}

// Returns 0 or 1.
int UseUninitialised() {
  const std::unique_ptr<volatile char[]> byte(new volatile char[1]);
  return byte[0] == 'x' ? 1 : 0;
}

}  // namespace

void PrintTo(const FuzzTarget& target, std::ostream* out) { *out << target.name; }

}  // namespace arn::test

int main(int argc, char** argv) {
  arn::test::KeepFilesInMemory();
  if (argc == 3 && std::strcmp(argv[1], "--seeds") == 0) return arn::test::WriteAllSeeds(argv[2]);
  if (argc == 2 && std::strcmp(argv[1], "--use-uninitialised") == 0) {
    return arn::test::UseUninitialised();
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

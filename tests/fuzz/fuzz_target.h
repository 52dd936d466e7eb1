// FuzzTarget: a reader of foreign bytes. Each fuzz_NAME.cc registers one. libfuzzer_main.cc makes a
// libFuzzer program of it; corpus_test.cc replays the kept inputs of all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace arn::test {

struct FuzzTarget {
  const char* name;
  // Reads the bytes. Aborts with a sentence, or crashes, where the reader does what it must not.
  void (*run)(const uint8_t* data, size_t size);
  // Makes inputs that mutation does not find from nothing; null: the empty one is enough.
  std::vector<std::string> (*seeds)();
};

// All that are linked into the program.
std::vector<FuzzTarget>& FuzzTargets();

struct FuzzRegistration {
  explicit FuzzRegistration(const FuzzTarget& target);
};

// Places temporary files in memory where the system has a folder for it: a disk is slow to sync.
// Call before the first target runs. Does nothing if TMPDIR is set.
void KeepFilesInMemory();

// Prints the sentence and aborts.
[[noreturn]] void EndFuzzing(const std::string& problem);
// Does so unless `problem` is empty.
inline void ExpectNoProblem(const std::string& problem) {
  if (!problem.empty()) EndFuzzing(problem);
}

}  // namespace arn::test

// ARN_FUZZ_TARGET(name, seeds) { ... uses data and size ... }
#define ARN_FUZZ_TARGET(name, seeds)                                   \
  static void FuzzOne_##name(const uint8_t* data, size_t size);        \
  static const ::arn::test::FuzzRegistration fuzz_registration_##name( \
      {#name, FuzzOne_##name, seeds});                                 \
  static void FuzzOne_##name([[maybe_unused]] const uint8_t* data, [[maybe_unused]] size_t size)

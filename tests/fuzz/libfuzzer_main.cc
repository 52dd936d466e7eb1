// Runs the program's only target under libFuzzer. Fills an empty corpus folder with its seeds.
#include <filesystem>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/seed_files.h"

namespace {

const arn::test::FuzzTarget& Target() { return arn::test::FuzzTargets().at(0); }

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  arn::test::KeepFilesInMemory();
  for (int i = 1; i < *argc; ++i) {
    const std::filesystem::path path((*argv)[i]);
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored) && std::filesystem::is_empty(path, ignored)) {
      arn::test::WriteSeeds(Target(), path);
    }
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Target().run(data, size);
  return 0;
}

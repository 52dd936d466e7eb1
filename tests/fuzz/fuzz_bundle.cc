// libFuzzer: any bytes as a bundle. Repairs the hashes, since otherwise the checks after them are
// never reached. Fills an empty corpus folder with small bundles first, since mutation does not
// find a valid index from nothing.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/fuzz/exercise.h"
#include "tests/support/tiny_bundle.h"

namespace {

void WriteSeeds(const std::filesystem::path& folder) {
  using arn::DType;
  for (DType weights : {DType::kF32, DType::kF16, DType::kBf16, DType::kInt8, DType::kInt4}) {
    arn::test::TinyBundle options;
    options.layers = 1;
    options.vocab = 17;
    options.weights = weights;
    options.window = weights == DType::kInt8 ? 5 : 0;
    options.qk_norm = weights == DType::kF16;
    const arn::test::BundleBytes bytes = arn::test::MakeTinyBundle(options);
    std::FILE* file = std::fopen((folder / arn::DTypeName(weights)).c_str(), "wb");
    if (file == nullptr) continue;
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    const std::filesystem::path path((*argv)[i]);
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored) && std::filesystem::is_empty(path, ignored)) {
      WriteSeeds(path);
    }
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  arn::test::BundleBytes bytes(std::vector<uint8_t>(data, data + size));
  arn::test::RepairHashes(bytes.data(), bytes.size());
  std::string problem;
  arn::test::ExerciseBundle(bytes.data(), bytes.size(), &problem);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  return 0;
}

// libFuzzer: any bytes as a bundle. Repairs the hashes, since otherwise the checks after them are
// never reached. The seeds are small bundles, since mutation does not find a valid index from
// nothing.
#include <string>
#include <vector>

#include "kernels/contract/code_type.h"
#include "tests/fuzz/exercise.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/tiny_bundle.h"

namespace {

std::vector<std::string> BundleSeeds() {
  using arn::DType;
  std::vector<std::string> seeds;
  for (DType weights :
       {DType::kF32, DType::kF16, DType::kBf16, DType::kInt8, DType::kInt4, DType::kTernary,
        DType::kTernaryRows, DType::kInt2, DType::kInt3, DType::kInt4K, DType::kInt4K128,
        DType::kInt6K, DType::kInt8K, DType::kFp4}) {
    if (!arn::kHasLowBits && arn::FindCodeType(weights) != nullptr) continue;
    arn::test::TinyBundle options;
    options.layers = 1;
    options.vocab = 17;
    options.weights = weights;
    options.window = weights == DType::kInt8 ? 5 : 0;
    options.qk_norm = weights == DType::kF16;
    for (const char* target : {"portable", "vulkan"}) {
      options.target = target;
      const arn::test::BundleBytes bytes = arn::test::MakeTinyBundle(options);
      seeds.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  return seeds;
}

}  // namespace

ARN_FUZZ_TARGET(bundle, BundleSeeds) {
  arn::test::BundleBytes bytes(std::vector<uint8_t>(data, data + size));
  arn::test::RepairHashes(bytes.data(), bytes.size());
  std::string problem;
  arn::test::ExerciseBundle(bytes.data(), bytes.size(), &problem);
  arn::test::ExpectNoProblem(problem);
}

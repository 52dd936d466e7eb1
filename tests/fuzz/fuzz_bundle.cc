// libFuzzer: bundles. Repairs the hashes, since otherwise the checks after them are never reached.
//
// Input: any bytes as a bundle, if they begin as one; else a byte that selects a small bundle, and
// edits (byte_edits.h), whose second beginning is the index.
#include <cstring>
#include <string>
#include <vector>

#include "kernels/contract/code_type.h"
#include "runtime/bundle/bundle.h"
#include "tests/fuzz/byte_edits.h"
#include "tests/fuzz/exercise.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/tiny_bundle.h"

namespace arn::test {
namespace {

const std::vector<std::vector<uint8_t>>& SmallBundles() {
  static const std::vector<std::vector<uint8_t>> kBundles = [] {
    std::vector<std::vector<uint8_t>> bundles;
    for (DType weights :
         {DType::kF32, DType::kF16, DType::kBf16, DType::kInt8, DType::kInt4, DType::kTernary,
          DType::kTernaryRows, DType::kInt2, DType::kInt3, DType::kInt4K, DType::kInt4K128,
          DType::kInt6K, DType::kInt8K, DType::kFp4, DType::kIq4K, DType::kIq4, DType::kInt8K256}) {
      if (!kHasLowBits && FindCodeType(weights) != nullptr) continue;
      TinyBundle options;
      options.layers = 1;
      options.vocab = 17;
      options.weights = weights;
      options.window = weights == DType::kInt8 ? 5 : 0;
      options.qk_norm = weights == DType::kF16;
      for (const char* target : {"portable", "vulkan"}) {
        options.target = target;
        const BundleBytes bytes = MakeTinyBundle(options);
        bundles.emplace_back(bytes.data(), bytes.data() + bytes.size());
      }
    }
    return bundles;
  }();
  return kBundles;
}

std::vector<uint8_t> Edited(const std::vector<uint8_t>& good, const uint8_t* data, size_t size) {
  BundleHeader header;
  std::memcpy(&header, good.data(), sizeof header);
  return EditedBytes(good, data, size, [&](uint8_t flags, uint64_t offset) -> uint64_t {
    return (flags & kEditAtSecond) != 0 ? header.index_offset + offset : offset;
  });
}

// Returns the bundle that the input means.
std::vector<uint8_t> BundleOf(const uint8_t* data, size_t size) {
  const std::vector<std::vector<uint8_t>>& bundles = SmallBundles();
  if (size == 0 || data[0] == bundles[0][0]) return std::vector<uint8_t>(data, data + size);
  return Edited(bundles[data[0] % bundles.size()], data + 1, size - 1);
}

std::vector<std::string> BundleSeeds() {
  const std::vector<std::vector<uint8_t>>& bundles = SmallBundles();
  std::vector<std::string> seeds = {std::string(bundles[0].begin(), bundles[0].end())};
  for (size_t i = 0; i < bundles.size(); ++i) seeds.emplace_back(1, static_cast<char>(i));
  return seeds;
}

}  // namespace
}  // namespace arn::test

ARN_FUZZ_TARGET(bundle, arn::test::BundleSeeds) {
  arn::test::BundleBytes bytes(arn::test::BundleOf(data, size));
  arn::test::RepairHashes(bytes.data(), bytes.size());
  std::string problem;
  arn::test::ExerciseBundle(bytes.data(), bytes.size(), &problem);
  arn::test::ExpectNoProblem(problem);
}

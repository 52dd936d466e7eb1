// libFuzzer: any bytes as a bundle. The hashes are made to match, or nothing behind them would be
// reached. A corpus to start from: any small bundles.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/fuzz/exercise.h"
#include "tests/support/tiny_bundle.h"

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

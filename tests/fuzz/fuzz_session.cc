// libFuzzer: calls of the C API on a session, valid ones and others, whatever order the bytes give
// them. The first byte selects the kind of the cache. Checked as the soak is (tests/trust/soak.h):
// by lists of tokens and a session without a cache.
#include <memory>
#include <vector>

#include "tests/fuzz/choices.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/tiny_checkpoint.h"
#include "tests/trust/soak.h"

namespace arn::test {
namespace {

constexpr uint64_t kMaxSteps = 20;

using SoakModels = std::vector<std::shared_ptr<const SoakModel>>;

SoakModels* NewModels() {
  auto* models = new SoakModels;
  for (const SoakKind& kind : SoakKinds()) models->push_back(std::make_shared<SoakModel>(kind));
  return models;
}

std::vector<std::string> SessionSeeds() {
  std::vector<std::string> seeds;
  const size_t n_kinds = SoakKinds().size();
  for (size_t kind = 0; kind < n_kinds; ++kind) {
    // Two bytes make a number, and most calls take a few.
    std::string seed(1, static_cast<char>(kind));
    const Soak::Numbers numbers = Soak::RandomNumbers(static_cast<uint32_t>(kind) + 1);
    for (int i = 0; i < 100; ++i) seed += static_cast<char>(numbers() >> 8 & 0xFF);
    seeds.push_back(seed);
  }
  return seeds;
}

}  // namespace
}  // namespace arn::test

ARN_FUZZ_TARGET(session, arn::test::SessionSeeds) {
  static arn::test::SoakModels* const models = arn::test::NewModels();
  static const arn::test::TempFolder* const folder = new arn::test::TempFolder;
  if (size == 0) return;
  arn::test::Choices choices(data + 1, size - 1);
  arn::test::Soak soak(
      models->at(data[0] % models->size()),
      [&choices] { return static_cast<uint32_t>(choices.Below(1 << 16)); },
      folder->path().string());
  while (choices.left() > 0 && soak.n_steps() < arn::test::kMaxSteps) {
    soak.Step();
    if (testing::Test::HasFailure()) arn::test::EndFuzzing("the session is not what it must be");
  }
}

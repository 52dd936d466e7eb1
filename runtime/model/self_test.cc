#include "runtime/model/self_test.h"

#include <cmath>

#include "platform/base/arith.h"
#include "platform/base/result.h"
#include "runtime/bundle/optional_fields.h"

namespace arn {
namespace {

Status CheckRuns(const fbs::SelfTest& test, uint32_t max_context, Diag* diag) {
  const uint32_t n_ids = CountOf(test.ids()), n_runs = CountOf(test.run_tokens());
  const uint32_t n_scales = CountOf(test.scales());
  if (n_runs == 0 || n_runs > kMaxTestRuns || n_scales != n_runs) {
    return diag->Fail(Status::kBadBundle, "self-test: %u runs with %u scales, expected 1..%u",
                      n_runs, n_scales, kMaxTestRuns);
  }
  if (n_ids > Min(kMaxTestTokens, max_context)) {
    return diag->Fail(Status::kBadBundle, "self-test: %u tokens, expected at most %u", n_ids,
                      Min(kMaxTestTokens, max_context));
  }
  uint64_t n_tokens = 0;
  for (uint32_t r = 0; r < n_runs; ++r) {
    n_tokens += test.run_tokens()->Get(r);
    const float scale = test.scales()->Get(r);
    if (test.run_tokens()->Get(r) != 0 && std::isfinite(scale) && scale >= 0.0f) continue;
    return diag->Fail(Status::kBadBundle, "self-test: run %u has %u tokens and the scale %g", r,
                      test.run_tokens()->Get(r), static_cast<double>(scale));
  }
  if (n_tokens == n_ids) return Status::kOk;
  return diag->Fail(Status::kBadBundle, "self-test: %u tokens, its runs have %llu", n_ids,
                    static_cast<unsigned long long>(n_tokens));
}

}  // namespace

void StoredTest::Logits(uint32_t run, uint32_t vocab, float* out) const {
  const auto* values = reinterpret_cast<const int16_t*>(logits.data()) + size_t{run} * vocab;
  for (uint32_t i = 0; i < vocab; ++i) out[i] = scales[run] * static_cast<float>(values[i]);
}

Status ReadSelfTest(const Bundle& bundle, uint32_t vocab, uint32_t max_context, StoredTest* out,
                    Diag* diag) {
  *out = StoredTest();
  const fbs::SelfTest* test = bundle.index->self_test();
  if (test == nullptr) return Status::kOk;
  ARN_TRY(CheckRuns(*test, max_context, diag));
  const uint32_t n_ids = test->ids()->size(), n_runs = test->run_tokens()->size();
  for (uint32_t i = 0; i < n_ids; ++i) {
    const int32_t id = test->ids()->Get(i);
    if (id >= 0 && static_cast<uint32_t>(id) < vocab) continue;
    return diag->Fail(Status::kBadBundle, "self-test: token %u is %d, the vocabulary has %u", i, id,
                      vocab);
  }
  const fbs::Segment* logits = test->logits();
  const uint64_t bytes = uint64_t{n_runs} * vocab * sizeof(int16_t);
  if (logits == nullptr || logits->bytes() != bytes) {
    return diag->Fail(Status::kBadBundle, "self-test: %llu bytes of logits, expected %llu",
                      static_cast<unsigned long long>(logits == nullptr ? 0 : logits->bytes()),
                      static_cast<unsigned long long>(bytes));
  }
  ARN_TRY(CheckSegment(bundle, *logits, "self-test logits", diag));
  out->ids = {test->ids()->data(), n_ids};
  out->run_tokens = {test->run_tokens()->data(), n_runs};
  out->scales = {test->scales()->data(), n_runs};
  out->logits = bundle.segments.subspan(static_cast<size_t>(logits->offset()),
                                        static_cast<size_t>(logits->bytes()));
  out->model_hash = test->model_hash();
  return Status::kOk;
}

namespace {

// Tolerances: each value relative to the largest, and the mean difference relative to the mean
// magnitude. One int8 value that rounds differently changes others in later layers: 30 layers of
// random weights differ by 0.08 and 0.07 between any two backends (docs/vulkan.md). A wrong matmul,
// a missing barrier or a stale page changes the results far more.
constexpr float kTolerance = 0.3f;
constexpr double kMeanTolerance = 0.2;

}  // namespace

Status CompareResults(const DeviceResults& what, const float* expected, const float* found,
                      uint32_t n, Diag* diag) {
  float largest = 0.0f;
  double sum = 0.0, differences = 0.0;
  for (uint32_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(expected[i]), d = x - static_cast<double>(found[i]);
    largest = Max(largest, std::fabs(expected[i]));
    sum += x * x;
    differences += d * d;
  }
  for (uint32_t i = 0; i < n; ++i) {
    if (std::fabs(found[i] - expected[i]) <= kTolerance * largest) continue;
    return diag->Fail(Status::kDevice, "%s failed the self-test: the %s %u is %g, the %s is %g",
                      what.device, what.one, i, static_cast<double>(found[i]), what.expected,
                      static_cast<double>(expected[i]));
  }
  if (differences <= kMeanTolerance * kMeanTolerance * sum) return Status::kOk;
  return diag->Fail(Status::kDevice,
                    "%s failed the self-test: %s are off by %.0f %% of the %s on average",
                    what.device, what.all, 100.0 * std::sqrt(differences / sum), what.expected);
}

}  // namespace arn

// Self-test of a device against the CPU, run before a session is returned because some phone
// drivers miscompute. Runs a few tokens of the model several times, in every run size that has its
// own shaders. The expected logits come from the bundle, or from the CPU if the bundle has none.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "platform/os/pages.h"
#include "runtime/backends.h"
#include "runtime/session/session.h"

namespace arn {
namespace {

constexpr uint32_t kRepeats = 3;

// For bundles without a test: many rows, one row, few rows. Must match the converter
// (converter/run/self_test.cc).
constexpr uint32_t kRunTokens[] = {12, 1, 4};
constexpr uint32_t kTokens = 17;

// Tolerances: each logit relative to the largest, and the mean difference relative to the mean
// magnitude. One int8 value that rounds differently changes others in later layers: 30 layers of
// random weights differ by 0.08 and 0.07 between any two backends (docs/vulkan.md). A wrong matmul,
// a missing barrier or a stale page changes the logits far more.
constexpr float kTolerance = 0.3f;
constexpr double kMeanTolerance = 0.2;

// `whose` names the expected logits in the message.
Status Compare(const float* expected, const char* whose, const float* found, uint32_t n,
               const char* device, Diag* diag) {
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
    return diag->Fail(Status::kDevice,
                      "%s computes wrongly: the logit of token %u is %g, the %s is %g", device, i,
                      static_cast<double>(found[i]), whose, static_cast<double>(expected[i]));
  }
  if (differences <= kMeanTolerance * kMeanTolerance * sum) return Status::kOk;
  return diag->Fail(Status::kDevice,
                    "%s computes wrongly: logits are off by %.0f %% of the %s in the mean", device,
                    100.0 * std::sqrt(differences / sum), whose);
}

// True if the bundle's test applies to this session.
bool Holds(const StoredTest& test, const SessionPlan& plan) {
  return !test.ids.empty() && test.ids.size() <= plan.options.context_tokens &&
         plan.long_ropes == 0 && plan.program.n_encoder_steps == 0;
}

}  // namespace

// Encodes a test input, with more rows than the small-row kernels take.
Status Session::EncodeTestInput() {
  const EncoderSpec& encoder = model_.spec.encoder;
  if (!encoder.exists()) return Status::kOk;
  const uint32_t rows = Min(kRunTokens[0], plan_.options.encoder_rows);
  const auto pattern = [](uint32_t i) { return i * 2654435761u; };
  if (encoder.feature_width == 0) {
    int32_t ids[kRunTokens[0]];
    for (uint32_t i = 0; i < rows; ++i) {
      ids[i] = static_cast<int32_t>(pattern(i) % plan_.program.vocab);
    }
    return EncodeIds({ids, rows});
  }
  const uint32_t n = 2 * rows * encoder.feature_width;
  const Result<Span<std::byte>> pages = ReservePages(n * sizeof(float));
  if (!pages.ok()) return diag_.Fail(pages.status(), "no memory to test the device");
  auto* features = reinterpret_cast<float*>(pages.value().data());
  for (uint32_t i = 0; i < n; ++i) features[i] = static_cast<float>(pattern(i) >> 16) / 65536.0f;
  const Status status = EncodeFeatures({features, n}, 2 * rows, encoder.feature_width);
  ReleasePages(pages.value());
  return status;
}

// Tokens of the self-test, split into runs.
struct Session::TestTokens {
  Span<const int32_t> ids;
  Span<const uint32_t> runs;  // tokens per run
};

// Calls on_run(run, logits) after each run, until the context is full.
template <typename OnRun>
Status Session::RunTestTokens(const TestTokens& test, const OnRun& on_run) {
  Reset();
  ARN_TRY(EncodeTestInput());
  uint32_t at = 0;
  for (uint32_t r = 0; r < test.runs.size(); ++r) {
    const uint32_t n = Min(test.runs[r], cache_.capacity() - length());
    if (n > 0) ARN_TRY(Prefill(test.ids.subspan(at, n)));
    at += test.runs[r];
    ARN_TRY(FetchLogits());
    ARN_TRY(on_run(r, LogitsOf(selected_)));
  }
  return Status::kOk;
}

// expected: f32 [runs, vocab].
Status Session::ComputeExpected(const TestTokens& test, float* expected, Diag* diag) {
  const auto keep = [&](uint32_t r, const float* logits) {
    const uint64_t vocab = plan_.program.vocab;
    std::memcpy(expected + r * vocab, logits, vocab * sizeof(float));
    return Status::kOk;
  };
  if (fallback_.backend != nullptr) {
    in_use_ = &fallback_;
    const Status status = RunTestTokens(test, keep);
    in_use_ = &planned_;
    return status;
  }
  // A temporary CPU session of the same sizes, with one sequence.
  SessionOptions options = plan_.options;
  options.max_sequences = 1;
  options.kv_tokens = 0;
  options.overflow = Overflow::kStop;
  options.pinned_tokens = 0;
  options.all_logits = false;
  options.pace = PaceOptions();
  options.sensors = false;
  if (options.k_type < KvType::kInt4 && options.v_type < KvType::kInt4) {
    options.kv_residual = options.kv_group_size = 0;
  }
  SessionPlan plan;
  ARN_TRY(PlanSession(model_, FindBackend(BackendId::kCpu), options, Objects(), &plan, diag));
  const Result<Span<std::byte>> pages = ReservePages(plan.TotalBytes() + kRegionAlign);
  if (!pages.ok()) return diag->Fail(pages.status(), "no memory to test the device");
  const uint64_t skip =
      AlignUp(reinterpret_cast<uintptr_t>(pages.value().data()), uint64_t{kRegionAlign}) -
      reinterpret_cast<uintptr_t>(pages.value().data());
  Session* cpu = nullptr;
  Status status = Create(model_, plan, pages.value().subspan(skip, plan.TotalBytes()),
                         {pages.value(), -1}, &cpu, diag);
  if (status != Status::kOk) {
    ReleasePages(pages.value());
    return status;
  }
  status = cpu->RunTestTokens(test, keep);
  *diag = cpu->diag_;
  Destroy(cpu);
  return status;
}

// Checks that a token chosen on the device has the largest of the logits left by the last run.
Status Session::CompareChoice(Diag* diag) {
  if (in_use_ != &planned_ || !CanChooseOnDevice() || IsFull(selected_)) return Status::kOk;
  const float* logits = LogitsOf(selected_);
  const auto best =
      static_cast<int32_t>(std::max_element(logits, logits + plan_.program.vocab) - logits);
  const auto logit = static_cast<double>(logits[best]);
  int32_t chosen = 0;
  ARN_TRY(Decode(&chosen));
  if (chosen == best || in_use_ != &planned_) return Status::kOk;
  return diag->Fail(Status::kDevice,
                    "%s computes wrongly: it chooses token %d, the best is %d, whose logit is %g",
                    device_name(), chosen, best, logit);
}

Status Session::CompareWithExpected(Diag* diag) {
  const uint32_t vocab = plan_.program.vocab;
  const StoredTest& stored = model_.self_test;
  const bool is_stored = Holds(stored, plan_);
  int32_t ids[kTokens];
  for (uint32_t i = 0; i < kTokens; ++i) ids[i] = static_cast<int32_t>(i * 2654435761u % vocab);
  TestTokens test = {{ids, kTokens}, kRunTokens};
  if (is_stored) test = {stored.ids, stored.run_tokens};
  const Result<Span<std::byte>> pages =
      ReservePages(uint64_t{test.runs.size()} * vocab * sizeof(float));
  if (!pages.ok()) return diag->Fail(pages.status(), "no memory to test the device");
  auto* expected = reinterpret_cast<float*>(pages.value().data());
  Status status = Status::kOk;
  if (!is_stored) status = ComputeExpected(test, expected, diag);
  for (uint32_t r = 0; is_stored && r < test.runs.size(); ++r) {
    stored.Logits(r, vocab, expected + size_t{r} * vocab);
  }
  const char* whose = is_stored ? "bundle's" : "CPU's";
  uint64_t first[kMaxTestRuns] = {};
  for (uint32_t repeat = 0; repeat < kRepeats && status == Status::kOk; ++repeat) {
    status = RunTestTokens(test, [&](uint32_t r, const float* logits) {
      const uint64_t hash = Xxh64(logits, vocab * sizeof(float));
      if (repeat == 0) first[r] = hash;
      if (in_use_ == &planned_ && first[r] != hash) {
        return diag->Fail(Status::kDevice, "%s computes differently each time", device_name());
      }
      return Compare(expected + size_t{r} * vocab, whose, logits, vocab, device_name(), diag);
    });
    if (status == Status::kOk && repeat + 1 == kRepeats) status = CompareChoice(diag);
    if (status != Status::kOk && diag->text()[0] == '\0') *diag = diag_;
  }
  ReleasePages(pages.value());
  return status;
}

Status Session::TestDevice(Diag* diag) {
  if (in_use_ != &planned_ || planned_.backend->kv_in_memory) return Status::kOk;
  Status status = Status::kOk;
  if (!plan_.options.trusts_device) {
    status = CompareWithExpected(diag);
    ClearSequences(0, static_cast<uint32_t>(sequences_.size()));
    cache_.ClearEdits();
    diag_.Clear();
    stats_ = SessionStats();
  }
  if (status == Status::kOk && in_use_ == &planned_ && planned_.backend->trust != nullptr) {
    planned_.backend->trust(planned_.state);
  }
  if (status == Status::kOk || fallback_.backend == nullptr) return status;
  if (in_use_ == &planned_) {
    fallback_reason_ = *diag;
    ActivateFallback();
  }
  diag->Clear();
  return Status::kOk;
}

}  // namespace arn

// Runs a few tokens of the model several times, in every run size that has its own shaders. The
// expected logits come from the bundle, or from the CPU if the bundle has none.
#include "runtime/session/self_test.h"

#include <algorithm>
#include <cstring>

#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "platform/os/pages.h"

namespace arn {
namespace {

constexpr uint32_t kRepeats = 3;

// For bundles without a test: many rows, one row, few rows. Must match the converter
// (converter/run/self_test.cc).
constexpr uint32_t kRunTokens[] = {12, 1, 4};
constexpr uint32_t kTokens = 17;

// True if the bundle's test applies to this session.
bool Holds(const StoredTest& test, const SessionPlan& plan) {
  return !test.ids.empty() && test.ids.size() <= plan.options.context_tokens &&
         plan.long_ropes == 0 && !plan.options.rope_scaling.exists() &&
         plan.program.n_encoder_steps == 0;
}

// Encodes a test input, with more rows than the small-row kernels take.
Status EncodeTestInput(const SelfTestView& view) {
  const EncoderSpec& encoder = view.core.model.spec.encoder;
  if (!encoder.exists()) return Status::kOk;
  const uint32_t rows = Min(kRunTokens[0], view.core.plan.options.encoder_rows);
  const auto pattern = [](uint32_t i) { return i * 2654435761u; };
  if (encoder.feature_width == 0) {
    int32_t ids[kRunTokens[0]];
    for (uint32_t i = 0; i < rows; ++i) {
      ids[i] = static_cast<int32_t>(pattern(i) % view.core.plan.program.vocab);
    }
    return view.encoder.EncodeIds({ids, rows});
  }
  const auto n_frames = static_cast<uint32_t>(encoder.frames.most(rows));
  const uint32_t n = n_frames * encoder.feature_width;
  const Result<Span<std::byte>> pages = ReservePages(n * sizeof(float));
  if (!pages.ok())
    return view.core.diag.Fail(pages.status(), "not enough memory for the device self-test");
  auto* features = reinterpret_cast<float*>(pages.value().data());
  for (uint32_t i = 0; i < n; ++i) features[i] = static_cast<float>(pattern(i) >> 16) / 65536.0f;
  const Status status = view.encoder.EncodeFeatures({features, n}, n_frames, encoder.feature_width);
  ReleasePages(pages.value());
  return status;
}

// Tokens of the self-test, split into runs.
struct TestTokens {
  Span<const int32_t> ids;
  Span<const uint32_t> runs;  // tokens per run
};

// Calls on_run(run, logits) after each run, until the context is full.
template <typename OnRun>
Status RunTestTokens(const SelfTestView& view, const TestTokens& test, const OnRun& on_run) {
  view.sequences.ClearSelected();
  ARN_TRY(EncodeTestInput(view));
  uint32_t at = 0;
  for (uint32_t r = 0; r < test.runs.size(); ++r) {
    const uint32_t n =
        Min(test.runs[r], view.sequences.cache().capacity() - view.sequences.length());
    if (n > 0) ARN_TRY(view.prefiller.Prefill(test.ids.subspan(at, n)));
    at += test.runs[r];
    ARN_TRY(view.chooser.Fetch());
    ARN_TRY(on_run(r, view.sequences.LogitsOf(view.sequences.selected())));
  }
  return Status::kOk;
}

// expected: f32 [runs, vocab].
Status ComputeExpected(const SelfTestView& view, const TestTokens& test, float* expected,
                       Diag* diag) {
  const auto keep = [&](uint32_t r, const float* logits) {
    const uint64_t vocab = view.core.plan.program.vocab;
    std::memcpy(expected + r * vocab, logits, vocab * sizeof(float));
    return Status::kOk;
  };
  if (view.executor.has_fallback()) {
    const Executor::OnFallback on_fallback(&view.executor);
    return RunTestTokens(view, test, keep);
  }
  struct Use {
    const TestTokens& test;
    decltype(keep)& on_run;
  } use = {test, keep};
  return view.with_cpu_session(
      view.core, &use,
      [](void* user, const SelfTestView& cpu) {
        const Use& u = *static_cast<Use*>(user);
        return RunTestTokens(cpu, u.test, u.on_run);
      },
      diag);
}

// Checks that a token chosen on the device has the largest of the logits left by the last run.
Status CompareChoice(const SelfTestView& view, Diag* diag) {
  const uint32_t selected = view.sequences.selected();
  if (!view.executor.is_planned_in_use() || !view.decoder.CanChooseOnDevice() ||
      view.sequences.IsFull(selected)) {
    return Status::kOk;
  }
  const float* logits = view.sequences.LogitsOf(selected);
  const auto best = static_cast<int32_t>(
      std::max_element(logits, logits + view.core.plan.program.vocab) - logits);
  const auto logit = static_cast<double>(logits[best]);
  int32_t chosen = 0;
  ARN_TRY(view.decoder.Decode(&chosen));
  if (chosen == best || !view.executor.is_planned_in_use()) return Status::kOk;
  return diag->Fail(
      Status::kDevice,
      "%s failed the self-test: it chooses token %d, the best is %d, whose logit is %g",
      view.executor.device_name(), chosen, best, logit);
}

Status CompareWithExpected(const SelfTestView& view, Diag* diag) {
  const uint32_t vocab = view.core.plan.program.vocab;
  const StoredTest& stored = view.core.model.self_test;
  const bool is_stored = Holds(stored, view.core.plan);
  int32_t ids[kTokens];
  for (uint32_t i = 0; i < kTokens; ++i) ids[i] = static_cast<int32_t>(i * 2654435761u % vocab);
  TestTokens test = {{ids, kTokens}, kRunTokens};
  if (is_stored) test = {stored.ids, stored.run_tokens};
  const Result<Span<std::byte>> pages =
      ReservePages(uint64_t{test.runs.size()} * vocab * sizeof(float));
  if (!pages.ok()) return diag->Fail(pages.status(), "not enough memory for the device self-test");
  auto* expected = reinterpret_cast<float*>(pages.value().data());
  Status status = Status::kOk;
  if (!is_stored) status = ComputeExpected(view, test, expected, diag);
  for (uint32_t r = 0; is_stored && r < test.runs.size(); ++r) {
    stored.Logits(r, vocab, expected + size_t{r} * vocab);
  }
  const char* whose = is_stored ? "bundle's" : "CPU's";
  uint64_t first[kMaxTestRuns] = {};
  for (uint32_t repeat = 0; repeat < kRepeats && status == Status::kOk; ++repeat) {
    status = RunTestTokens(view, test, [&](uint32_t r, const float* logits) {
      const uint64_t hash = Xxh64(logits, vocab * sizeof(float));
      if (repeat == 0) first[r] = hash;
      if (view.executor.is_planned_in_use() && first[r] != hash) {
        return diag->Fail(Status::kDevice, "%s gives different results for the same input",
                          view.executor.device_name());
      }
      return CompareResults({view.executor.device_name(), "logit of token", "logits", whose},
                            expected + size_t{r} * vocab, logits, vocab, diag);
    });
    if (status == Status::kOk && repeat + 1 == kRepeats) status = CompareChoice(view, diag);
    if (status != Status::kOk && diag->text()[0] == '\0') *diag = view.core.diag;
  }
  ReleasePages(pages.value());
  return status;
}

}  // namespace

Status TestDevice(const SelfTestView& view, Diag* diag) {
  if (!view.executor.is_planned_in_use() || view.executor.backend().host_kv != nullptr) {
    return Status::kOk;
  }
  Status status = Status::kOk;
  if (!view.core.plan.options.trusts_device) {
    status = CompareWithExpected(view, diag);
    view.sequences.ClearAll();
    view.sequences.cache().ClearEdits();
    view.core.diag.Clear();
    view.core.stats = SessionStats();
  }
  if (status == Status::kOk && view.executor.is_planned_in_use()) {
    view.executor.TrustDevice();
  }
  if (status == Status::kOk || !view.executor.has_fallback()) return status;
  if (view.executor.is_planned_in_use()) {
    view.executor.SwitchToFallback(*diag);
  }
  diag->Clear();
  return Status::kOk;
}

}  // namespace arn

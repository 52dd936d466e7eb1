#include "converter/run/self_test.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "converter/run/written_bundle.h"

namespace arn::convert {
namespace {

// Many rows, one, few: run sizes with different GPU kernels. Same tokens and runs as the library
// uses for bundles without a test (runtime/session/self_test.cc).
constexpr uint32_t kRunTokens[] = {12, 1, 4};
constexpr uint32_t kTokens = 17;

// Appends a row as 16-bit integers; returns false if a logit is not finite.
bool AddLogits(const float* logits, uint32_t vocab, SelfTestData* out) {
  float largest = 0.0f;
  for (uint32_t i = 0; i < vocab; ++i) {
    if (!std::isfinite(logits[i])) return false;
    largest = std::max(largest, std::fabs(logits[i]));
  }
  const float scale = largest / 32767.0f;
  out->scales.push_back(scale);
  for (uint32_t i = 0; i < vocab; ++i) {
    const float steps = scale == 0.0f ? 0.0f : std::nearbyint(logits[i] / scale);
    out->logits.push_back(static_cast<int16_t>(std::clamp(steps, -32767.0f, 32767.0f)));
  }
  return true;
}

}  // namespace

SelfTestData MakeSelfTest(const std::filesystem::path& bundle, uint32_t n_threads) {
  WrittenBundle written(bundle, "compute the self-test");
  Runner& runner = written.runner();
  const arn_model_info& info = runner.info();
  if (info.encoder_rows != 0 || info.max_context < kTokens) return {};
  SelfTestData test;
  for (uint32_t i = 0; i < kTokens; ++i) {
    test.ids.push_back(static_cast<int32_t>(i * 2654435761u % info.vocab));
  }
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.context_tokens = kTokens;
  options.n_threads = n_threads;
  written.Start(options);
  const int32_t* next = test.ids.data();
  for (const uint32_t n : kRunTokens) {
    runner.Check(arn_session_prefill(runner.session(), next, n));
    const float* logits = nullptr;
    runner.Check(arn_session_logits(runner.session(), &logits));
    if (!AddLogits(logits, info.vocab, &test)) return {};
    test.run_tokens.push_back(n);
    next += n;
  }
  return test;
}

}  // namespace arn::convert

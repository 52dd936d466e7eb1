// The cost of quantised weights and KV cache: mean KL divergence (nats per token) from the f32
// reference. The bounds are about twice the measured values on these decoders (int4: 1.5 times
// 0.115, odd_sizes). Their weights are uniform random; int4 costs far less on trained weights
// (golden_fable_test).
#include <algorithm>
#include <cmath>

#include "tests/golden/golden_case.h"

namespace arn::test {
namespace {

struct Param {
  std::string name;
  std::string weights;
  uint32_t kv;
  double max_mean_kl;  // from the f32 reference
  double max_between;  // between the backends
};

std::string NameOf(const Param& param) {
  const char* kv = param.kv == ARN_KV_F32   ? "_kv_f32"
                   : param.kv == ARN_KV_F16 ? "_kv_f16"
                                            : "_kv_int8";
  return param.name + "_" + param.weights + kv;
}
void PrintTo(const Param& param, std::ostream* out) { *out << NameOf(param); }

constexpr uint32_t kChunk = 16;

std::vector<float> Logits(const GoldenCase& golden, const std::filesystem::path& bundle,
                          uint32_t backend, uint32_t kv) {
  const ModelPtr model = OpenModel(bundle);
  if (model == nullptr) return {};
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = kv;
  options.prefill_chunk = kChunk;
  options.all_logits = 1;
  const SessionPtr session = NewSession(model.get(), options);
  if (session == nullptr) return {};
  return AllLogits(session.get(), golden.vocab(), kChunk, golden.all_ids());
}

std::vector<double> LogSoftmax(const float* logits, size_t n) {
  const double highest = static_cast<double>(*std::max_element(logits, logits + n));
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(logits[i]) - highest);
  std::vector<double> out;
  for (size_t i = 0; i < n; ++i) {
    out.push_back(static_cast<double>(logits[i]) - highest - std::log(sum));
  }
  return out;
}

// Returns the mean over the tokens of sum p (ln p - ln q).
double MeanKl(const std::vector<float>& exact, const std::vector<float>& other, size_t vocab) {
  double sum = 0;
  const size_t tokens = exact.size() / vocab;
  for (size_t t = 0; t < tokens; ++t) {
    const std::vector<double> p = LogSoftmax(exact.data() + t * vocab, vocab);
    const std::vector<double> q = LogSoftmax(other.data() + t * vocab, vocab);
    for (size_t i = 0; i < vocab; ++i) sum += std::exp(p[i]) * (p[i] - q[i]);
  }
  return sum / static_cast<double>(tokens);
}

class FormatsTest : public testing::TestWithParam<Param> {};

TEST_P(FormatsTest, PredictionsStayClose_OnBothBackends) {
  ARN_NEEDS_CONVERTER();
  const Param& param = GetParam();
  const GoldenCase golden = LoadGolden(param.name);
  const TempFolder folder;
  const auto exact_bundle = folder / "f32.arn", bundle = folder / "small.arn";
  constexpr ConfigStyle kStyle = ConfigStyle::kTransformers5;
  ASSERT_TRUE(
      ConvertGolden(golden, kStyle, folder / "checkpoint", exact_bundle, {"--weights", "f32"}));
  ASSERT_TRUE(
      ConvertGolden(golden, kStyle, folder / "checkpoint", bundle, {"--weights", param.weights}));
  const std::vector<float> exact = Logits(golden, exact_bundle, ARN_BACKEND_REFERENCE, ARN_KV_F32);
  ASSERT_FALSE(exact.empty());
  std::vector<float> of_cpu;
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    const std::vector<float> other = Logits(golden, bundle, backend, param.kv);
    ASSERT_EQ(exact.size(), other.size());
    if (backend == ARN_BACKEND_CPU) of_cpu = other;
    const double kl = MeanKl(exact, other, golden.vocab());
    RecordProperty(backend == ARN_BACKEND_CPU ? "mean_kl_cpu" : "mean_kl_reference",
                   std::to_string(kl));
    EXPECT_LT(kl, param.max_mean_kl) << "backend " << backend;
    // Different bits prove that the smaller format was in use.
    EXPECT_NE(exact, other) << "backend " << backend;
    const double between = MeanKl(other, of_cpu, golden.vocab());
    RecordProperty("kl_between_backends", testing::PrintToString(between));
    EXPECT_LT(between, param.max_between);
  }
}

// The backends differ only by rounding. A value on the border of two quantisation steps may fall to
// either step (docs/architecture.md, "The same result"). Each bound is 1.5 to 2.5 times the largest
// value measured on x86, cortex-a53, cortex-a76 and qemu's max.
constexpr double kFloats = 2e-12;     // 7.8e-13; float weights and cache
constexpr double kF16Cache = 1.3e-8;  // 8.3e-9
// The CPU backend quantises queries and weights to 15 or 16 bits for int8 K and V.
constexpr double kInt8Cache = 2.5e-6;      // 1.2e-6; the cache itself costs up to 7e-4
constexpr double kInt8Activations = 4e-5;  // 2.7e-5; 2e-14 if no value changes its step
constexpr double kInt8Both = 8e-4;  // 3.7e-4: rounding in the cache moves values to another step

std::vector<Param> Params() {
  std::vector<Param> params;
  for (const char* name : {"untied", "odd_sizes", "qk_norm", "biases"}) {
    params.push_back({name, "f16", ARN_KV_F32, 1e-5, kFloats});
    params.push_back({name, "bf16", ARN_KV_F32, 5e-4, kFloats});
    params.push_back({name, "int8", ARN_KV_F32, 5e-3, kInt8Activations});
    params.push_back({name, "int4", ARN_KV_F32, 0.17, kInt8Activations});
    params.push_back({name, "f32", ARN_KV_F16, 5e-6, kF16Cache});
    params.push_back({name, "f32", ARN_KV_INT8, 7e-4, kInt8Cache});
    params.push_back({name, "int8", ARN_KV_INT8, 6e-3, kInt8Both});
  }
  // The state of convolutions, scans and linear attention is f32 for any cache type.
  for (const char* name :
       {"scan", "scan_biases", "short_convolutions", "linear_attention", "parallel_heads"}) {
    params.push_back({name, "f16", ARN_KV_F32, 1e-5, kFloats});
    params.push_back({name, "int8", ARN_KV_INT8, 5e-3, kInt8Both});
    params.push_back({name, "int4", ARN_KV_F32, 0.17, kInt8Activations});
  }
  for (const char* name : {"residual_streams", "residual_streams_odd"}) {
    params.push_back({name, "f16", ARN_KV_F32, 1e-5, kFloats});
    params.push_back({name, "int8", ARN_KV_INT8, 6e-3, kInt8Both});
  }
  // Its norms are about 2: each doubles what it is given, and its rounding.
  params.push_back({"delta_rule", "f16", ARN_KV_F32, 2.5e-4, 5e-11});
  params.push_back({"delta_rule", "int8", ARN_KV_INT8, 5e-2, 5e-3});
  return params;
}

INSTANTIATE_TEST_SUITE_P(Cases, FormatsTest, testing::ValuesIn(Params()),
                         [](const auto& p) { return NameOf(p.param); });

}  // namespace
}  // namespace arn::test

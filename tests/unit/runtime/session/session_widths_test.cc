// Models whose layers differ in head count, kv heads, head size and feed-forward width.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;

TinyBundle Bundle(const std::vector<TinyLayer>& layers) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.layer_kinds = layers;
  bundle.qk_norm = true;
  return bundle;
}

arn_session_options Options(uint32_t backend, uint32_t keys, uint32_t values) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = keys;
  options.kv_value_type = values;
  options.n_threads = backend == ARN_BACKEND_CPU ? 2 : 1;
  options.context_tokens = 128;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 16;
  options.all_logits = 1;
  if (keys >= ARN_KV_INT4 || values >= ARN_KV_INT4) options.kv_residual = 16;
  return options;
}

// Returns the logits of every position of 90 tokens.
std::vector<float> AllLogits(const arn_model* model, const arn_session_options& options) {
  const SessionPtr session = NewSession(model, options);
  const std::vector<int32_t> ids = SomeIds(90, kVocab);
  std::vector<float> all;
  for (size_t done = 0; done < ids.size(); done += options.prefill_chunk) {
    const size_t n = std::min<size_t>(options.prefill_chunk, ids.size() - done);
    const float* logits = nullptr;
    EXPECT_EQ(ARN_OK, arn_session_prefill_logits(session.get(), ids.data() + done, n, &logits))
        << arn_session_last_error(session.get());
    if (logits == nullptr) return {};
    all.insert(all.end(), logits, logits + n * kVocab);
  }
  return all;
}

double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(d <= largest)) largest = d;  // keeps NaN
  }
  return largest;
}

class SessionWidthsTest : public testing::TestWithParam<Shape> {};

TEST_P(SessionWidthsTest, EveryKvType_TheCpuAgreesWithTheReference) {
  const BundleBytes bytes = MakeTinyBundle(Bundle(GetParam().layers));
  const ModelPtr model = OpenBytes(bytes);
  struct Case {
    uint32_t keys, values;
    double bound;
  };
  // A key on the border of two steps may round either way, in either backend.
  const Case cases[] = {{ARN_KV_F32, ARN_KV_F32, 3e-6},   {ARN_KV_F16, ARN_KV_F16, 1e-3},
                        {ARN_KV_INT8, ARN_KV_INT8, 0.02}, {ARN_KV_INT4, ARN_KV_INT4, 0.1},
                        {ARN_KV_INT2, ARN_KV_INT2, 0.2},  {ARN_KV_F16, ARN_KV_INT4, 0.1}};
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message() << "keys " << c.keys << " values " << c.values);
    const auto expected = AllLogits(model.get(), Options(ARN_BACKEND_REFERENCE, c.keys, c.values));
    const auto found = AllLogits(model.get(), Options(ARN_BACKEND_CPU, c.keys, c.values));
    EXPECT_LT(Difference(expected, found), c.bound);
  }
}

// A model of the same weights with every layer as wide as the widest needs as many bytes for its
// activations: narrow layers use a part of them.
TEST(SessionWidths_Memory, NarrowLayers_AddNoActivations) {
  const TinyLayer wide = {.heads = 6, .kv_heads = 3, .head_dim = 16, .ffn = 80};
  const TinyLayer narrow = {.heads = 2, .kv_heads = 1, .head_dim = 12, .ffn = 20};
  uint64_t activations[2] = {};
  for (const bool is_mixed : {false, true}) {
    const BundleBytes bytes = MakeTinyBundle(Bundle({wide, is_mixed ? narrow : wide, wide}));
    const ModelPtr model = OpenBytes(bytes);
    const arn_session_options options = Options(ARN_BACKEND_REFERENCE, ARN_KV_F32, ARN_KV_F32);
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    char error[512];
    ASSERT_EQ(ARN_OK, arn_session_plan(model.get(), &options, error, sizeof error, &plan)) << error;
    activations[is_mixed ? 1 : 0] = plan.activations_bytes;
  }
  EXPECT_EQ(activations[0], activations[1]);
}

// The plan names each group's own shape.
TEST(SessionWidths_Memory, Groups_HaveTheirOwnShapes) {
  const BundleBytes bytes = MakeTinyBundle(Bundle(WidthShapes()[0].layers));
  const ModelPtr model = OpenBytes(bytes);
  const arn_session_options options = Options(ARN_BACKEND_REFERENCE, ARN_KV_F32, ARN_KV_F32);
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  char error[512];
  ASSERT_EQ(ARN_OK, arn_session_plan(model.get(), &options, error, sizeof error, &plan)) << error;
  ASSERT_EQ(3u, plan.n_kv_groups);
  const uint32_t page = 2 * 8 * sizeof(float);  // keys and values of 8 tokens, per element
  const uint64_t expected[] = {2 * page * 1 * 12, page * 3 * 16, page * 2 * 8};
  for (uint32_t g = 0; g < plan.n_kv_groups; ++g) {
    arn_kv_group_info info = ARN_KV_GROUP_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_session_plan_group(model.get(), &options, g, error, sizeof error, &info))
        << error;
    EXPECT_EQ(expected[g], info.page_bytes) << g;
  }
}

TEST(SessionWidths_Program, Dump_NamesTheViews) {
  const BundleBytes bytes = MakeTinyBundle(Bundle(WidthShapes()[2].layers));
  const ModelPtr model = OpenBytes(bytes);
  std::string text(1 << 16, '\0');
  size_t n = 0;
  ASSERT_EQ(ARN_OK, arn_program_dump(model.get(), nullptr, text.data(), text.size(), &n));
  text.resize(n);
  // Queries of the widest layer [6, 16]; those of a layer without its own keys and values [8, 8].
  EXPECT_NE(std::string::npos, text.find("qkv f32[128, 192] steps")) << text;
  EXPECT_NE(std::string::npos, text.find("qkv f32[128, 64] steps 5..7 view of %2\n")) << text;
  EXPECT_NE(std::string::npos, text.find("activated f32[128, 20] steps")) << text;
}

// There is a bound on the widths, and a model beyond it is refused, not broken.
TEST(SessionWidths_Limit, TooManyWidths_AreRefused) {
  std::vector<TinyLayer> layers;
  for (uint32_t i = 1; i <= 70; ++i) layers.push_back({.ffn = i});
  const BundleBytes bytes = MakeTinyBundle(Bundle(layers));
  arn_model* model = nullptr;
  char error[512];
  EXPECT_EQ(ARN_UNSUPPORTED, arn_model_open_memory(bytes.data(), bytes.size(), nullptr, error,
                                                   sizeof error, &model));
  EXPECT_NE(std::string::npos, std::string(error).find("intermediate values")) << error;
  layers.resize(36);
  const BundleBytes fewer = MakeTinyBundle(Bundle(layers));
  EXPECT_NE(nullptr, OpenBytes(fewer).get());
}

INSTANTIATE_TEST_SUITE_P(Widths, SessionWidthsTest,
                         testing::ValuesIn(Join({WidthShapes(), StateWidthShapes()})), ShapeName);

}  // namespace
}  // namespace arn::test

// arn_session_write_kv: appends tokens with keys and values that another session computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/print_params.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;

arn_session_options Options(uint32_t kv = ARN_KV_F32) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = kv;
  options.n_threads = 1;
  options.context_tokens = 128;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 16;
  return options;
}

// Keys and values of all layers, [n_layers][n_kv_heads, n, head_dim].
struct KvData {
  std::vector<std::vector<float>> keys, values;

  std::vector<const float*> Keys() const { return Pointers(keys); }
  std::vector<const float*> Values() const { return Pointers(values); }

 private:
  static std::vector<const float*> Pointers(const std::vector<std::vector<float>>& layers) {
    std::vector<const float*> list;
    for (const std::vector<float>& layer : layers) {
      list.push_back(layer.empty() ? nullptr : layer.data());
    }
    return list;
  }
};

// Leaves out layers that use those of another one.
KvData ReadAll(arn_session* session, uint32_t n_layers, uint32_t first, uint32_t n) {
  KvData data;
  data.keys.resize(n_layers);
  data.values.resize(n_layers);
  for (uint32_t i = 0; i < n_layers; ++i) {
    arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
    EXPECT_EQ(ARN_OK, arn_session_kv_layer(session, i, &info));
    if (info.kv_layer != i) continue;
    data.keys[i].resize(size_t{info.n_kv_heads} * n * info.head_dim);
    data.values[i].resize(data.keys[i].size());
    EXPECT_EQ(ARN_OK,
              arn_session_read_kv(session, i, first, n, data.keys[i].data(), data.values[i].data()))
        << arn_session_last_error(session);
  }
  return data;
}

arn_status Write(arn_session* session, const std::vector<int32_t>& ids, const KvData& data) {
  return arn_session_write_kv(session, ids.data(), ids.size(), data.Keys().data(),
                              data.Values().data());
}

std::vector<float> Logits(arn_session* session) {
  const float* logits = nullptr;
  EXPECT_EQ(ARN_OK, arn_session_logits(session, &logits)) << arn_session_last_error(session);
  return {logits, logits + kVocab};
}

// Returns the logits after one more token.
std::vector<float> LogitsAfter(arn_session* session, int32_t id) {
  EXPECT_EQ(ARN_OK, arn_session_prefill(session, &id, 1)) << arn_session_last_error(session);
  return Logits(session);
}

double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(d <= worst)) worst = d;
  }
  return worst;
}

class WriteKvTest : public testing::TestWithParam<Shape> {};

// Whatever the windows, chunks and shared layers: the next token's logits are those of a session
// that ran all tokens.
TEST_P(WriteKvTest, NextTokenGoesOn_AsIfTheTokensHadRun) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.layer_kinds = GetParam().layers;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  const auto n_layers = static_cast<uint32_t>(GetParam().layers.size());
  arn_session_options whole = Options();
  whole.kv_page_tokens = 128;  // keeps the tokens that left a window
  const SessionPtr source = NewSession(model.get(), whole);
  const std::vector<int32_t> ids = SomeIds(59, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_prefill(source.get(), ids.data(), ids.size()));
  const KvData data = ReadAll(source.get(), n_layers, 0, 59);
  const std::vector<float> last = Logits(source.get()), expected = LogitsAfter(source.get(), 7);
  for (const uint32_t kv : {ARN_KV_F32, ARN_KV_F16, ARN_KV_INT8}) {
    SCOPED_TRACE(KvTypeName(kv));
    const SessionPtr session = NewSession(model.get(), Options(kv));
    ASSERT_EQ(ARN_OK, Write(session.get(), ids, data)) << arn_session_last_error(session.get());
    EXPECT_EQ(59u, arn_session_length(session.get()));
    const int32_t* tokens = nullptr;
    uint32_t n_tokens = 0;
    ASSERT_EQ(ARN_OK, arn_session_tokens(session.get(), &tokens, &n_tokens));
    EXPECT_EQ(ids, std::vector<int32_t>(tokens, tokens + n_tokens));
    const double bound = kv == ARN_KV_F32 ? 1e-4 : kv == ARN_KV_F16 ? 0.02 : 0.3;
    EXPECT_LT(Difference(last, Logits(session.get())), bound);  // runs the last token
    EXPECT_LT(Difference(expected, LogitsAfter(session.get(), 7)), bound);
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, WriteKvTest, testing::ValuesIn(WidthShapes()), ShapeName);
INSTANTIATE_TEST_SUITE_P(Layers, WriteKvTest, testing::ValuesIn(Shapes()), ShapeName);

class WriteKvBesideTest : public testing::Test {
 protected:
  WriteKvBesideTest() {
    arn_model_info info = ARN_MODEL_INFO_INIT;
    EXPECT_EQ(ARN_OK, arn_model_get_info(model_.get(), &info));
    n_layers_ = info.n_layers;
  }

  static BundleBytes Bytes() {
    TinyBundle bundle;
    bundle.vocab = kVocab;
    return MakeTinyBundle(bundle);
  }

  const BundleBytes bytes_ = Bytes();
  const ModelPtr model_ = OpenBytes(bytes_);
  uint32_t n_layers_ = 0;
};

// int4 pages are quantised from the active ones on the way, as in a run.
TEST_F(WriteKvBesideTest, BehindOtherTokens_InAFork_LeavesTheOtherAlone) {
  for (const uint32_t kv : {ARN_KV_F32, ARN_KV_INT4}) {
    SCOPED_TRACE(KvTypeName(kv));
    arn_session_options options = Options(kv);
    if (kv == ARN_KV_INT4) {
      options.kv_page_tokens = options.kv_group_size = options.kv_residual = 16;
    }
    const std::vector<int32_t> ids = SomeIds(70, kVocab);
    const SessionPtr run = NewSession(model_.get(), options);
    ASSERT_EQ(ARN_OK, arn_session_prefill(run.get(), ids.data(), ids.size()));
    options.max_sequences = 2;
    const SessionPtr source = NewSession(model_.get(), Options());
    ASSERT_EQ(ARN_OK, arn_session_prefill(source.get(), ids.data(), ids.size()));
    const std::vector<int32_t> tail(ids.begin() + 21, ids.end());
    const KvData data = ReadAll(source.get(), n_layers_, 21, 49);

    const SessionPtr session = NewSession(model_.get(), options);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), 21));
    ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
    const KvData before = ReadAll(session.get(), n_layers_, 0, 21);
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
    ASSERT_EQ(ARN_OK, Write(session.get(), tail, data)) << arn_session_last_error(session.get());
    // The error of the KV type is about that of a run.
    const std::vector<float> expected = LogitsAfter(source.get(), 9);
    EXPECT_LT(Difference(expected, LogitsAfter(session.get(), 9)),
              2 * Difference(expected, LogitsAfter(run.get(), 9)) + 1e-4);
    if (kv == ARN_KV_F32) {
      EXPECT_EQ(data.keys, ReadAll(session.get(), n_layers_, 21, 49).keys);
      EXPECT_EQ(data.values, ReadAll(session.get(), n_layers_, 21, 49).values);
    }
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
    EXPECT_EQ(21u, arn_session_length(session.get()));
    EXPECT_EQ(before.keys, ReadAll(session.get(), n_layers_, 0, 21).keys);
  }
}

TEST_F(WriteKvBesideTest, Misuse_IsRefusedAndChangesNothing) {
  const std::vector<int32_t> ids = SomeIds(12, kVocab);
  const SessionPtr session = NewSession(model_.get(), Options());
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
  const KvData data = ReadAll(session.get(), n_layers_, 0, 12);
  const auto refused = [&](arn_status expected, const char* reason,
                           const std::vector<int32_t>& wanted, const KvData& kv) {
    EXPECT_EQ(expected, Write(session.get(), wanted, kv));
    EXPECT_NE(nullptr, std::strstr(arn_session_last_error(session.get()), reason))
        << arn_session_last_error(session.get());
    EXPECT_EQ(12u, arn_session_length(session.get()));
    const float* logits = nullptr;
    EXPECT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
  };
  refused(ARN_BAD_ARGUMENT, "no tokens", {}, data);
  refused(ARN_BAD_TOKEN, "61", {3, 61}, data);
  refused(ARN_CONTEXT_FULL, "do not fit", SomeIds(117, kVocab), data);
  KvData without = data;
  without.values[1].clear();
  refused(ARN_BAD_ARGUMENT, "values of layer 1", ids, without);
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_session_write_kv(session.get(), ids.data(), 12, nullptr, data.Values().data()));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_write_kv(nullptr, ids.data(), 12, data.Keys().data(),
                                                   data.Values().data()));

  arn_session_options options = Options();
  options.no_cache = 1;
  const SessionPtr uncached = NewSession(model_.get(), options);
  EXPECT_EQ(ARN_UNSUPPORTED, Write(uncached.get(), ids, data));
}

}  // namespace
}  // namespace arn::test

// arn_session_read_kv: the keys and values of a layer, for any page layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/print_params.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;

arn_session_options Options(uint32_t backend = ARN_BACKEND_CPU, uint32_t kv = ARN_KV_F32) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = kv;
  options.n_threads = 1;
  options.context_tokens = 128;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 16;
  return options;
}

arn_kv_layer_info Info(const arn_session* session, uint32_t layer) {
  arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
  EXPECT_EQ(ARN_OK, arn_session_kv_layer(session, layer, &info));
  return info;
}

// Returns keys, then values: [2, n_kv_heads, n, head_dim].
std::vector<float> Read(arn_session* session, uint32_t layer, uint32_t first, uint32_t n) {
  const arn_kv_layer_info info = Info(session, layer);
  std::vector<float> out(size_t{2} * info.n_kv_heads * n * info.head_dim, NAN);
  EXPECT_EQ(ARN_OK,
            arn_session_read_kv(session, layer, first, n, out.data(), out.data() + out.size() / 2))
      << arn_session_last_error(session);
  return out;
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

void Prefill(arn_session* session, const std::vector<int32_t>& ids) {
  ASSERT_EQ(ARN_OK, arn_session_prefill(session, ids.data(), ids.size()))
      << arn_session_last_error(session);
}

class ReadKvTest : public testing::TestWithParam<Shape> {};

// Pages, chunks and backends change the layout, not the values. A layer with shared KV returns
// those of its source layer.
TEST_P(ReadKvTest, EveryLayer_IsTheSameInOtherPagesAndChunks) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.layer_kinds = GetParam().layers;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options(ARN_BACKEND_REFERENCE);
  options.kv_page_tokens = 128;  // holds all tokens
  options.prefill_chunk = 64;
  const SessionPtr whole = NewSession(model.get(), options);
  const SessionPtr paged = NewSession(model.get(), Options());
  const std::vector<int32_t> ids = SomeIds(59, kVocab);
  Prefill(whole.get(), ids);
  Prefill(paged.get(), ids);
  for (uint32_t layer = 0; layer < GetParam().layers.size(); ++layer) {
    SCOPED_TRACE("layer " + std::to_string(layer));
    const TinyLayer& kind = GetParam().layers[layer];
    const uint32_t owner = kind.kv_layer < 0 ? layer : static_cast<uint32_t>(kind.kv_layer);
    const arn_kv_layer_info info = Info(paged.get(), layer);
    EXPECT_EQ(kind.kv_heads == 0 ? 2u : kind.kv_heads, info.n_kv_heads);
    EXPECT_EQ(kind.head_dim == 0 ? 8u : kind.head_dim, info.head_dim);
    EXPECT_EQ(owner, info.kv_layer);
    EXPECT_EQ(0u, Info(whole.get(), layer).first_position);
    // All positions visible to the next token are present.
    EXPECT_LE(info.first_position, kind.window == 0 ? 59u : 59 - (kind.window - 1));
    const uint32_t first = info.first_position, n = 59 - first;
    const std::vector<float> found = Read(paged.get(), layer, first, n);
    EXPECT_LT(Difference(found, Read(whole.get(), layer, first, n)), 2e-5);
    EXPECT_EQ(found, Read(paged.get(), owner, first, n));
    EXPECT_GT(*std::max_element(found.begin(), found.end()), 0.01f);
    if (first == 0) continue;
    float untouched = 7.0f;
    EXPECT_EQ(ARN_BAD_STATE,
              arn_session_read_kv(paged.get(), layer, first - 1, 2, &untouched, &untouched));
    EXPECT_EQ(7.0f, untouched);
    EXPECT_NE(std::string::npos,
              std::string(arn_session_last_error(paged.get())).find(std::to_string(first)));
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, ReadKvTest, testing::ValuesIn(WidthShapes()), ShapeName);
INSTANTIATE_TEST_SUITE_P(Layers, ReadKvTest, testing::ValuesIn(Shapes()), ShapeName);

struct Type {
  uint32_t keys, values;
  double bound;  // of the error, relative to the largest value
  uint32_t key_axis = ARN_KV_AXIS_DEFAULT, value_axis = ARN_KV_AXIS_DEFAULT;
};
void PrintTo(const Type& type, std::ostream* out) {
  *out << KvTypeName(type.keys) << "_keys_" << KvTypeName(type.values) << "_values_axes_"
       << type.key_axis << type.value_axis;
}

class ReadKvTypeTest : public testing::TestWithParam<Type> {};

// K and V of the first layer depend only on token and position, so the error is that of the type.
// Covers rows wider than a page is long, and widths that do not fill bytes evenly.
TEST_P(ReadKvTypeTest, IsWidened_AndAnyPartIsThatOfTheWhole) {
  for (const uint32_t head_dim : {8u, 42u, 512u}) {
    SCOPED_TRACE("head_dim " + std::to_string(head_dim));
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bundle.head_dim = head_dim;
    const BundleBytes bytes = MakeTinyBundle(bundle);
    const ModelPtr model = OpenBytes(bytes);
    arn_session_options options = Options();
    options.kv_page_tokens = 16;
    const SessionPtr exact = NewSession(model.get(), options);
    options.kv_type = GetParam().keys;
    options.kv_value_type = GetParam().values;
    if (GetParam().keys >= ARN_KV_INT4 || GetParam().values >= ARN_KV_INT4) {
      options.kv_residual = 16;
      options.kv_group_size = 8;
    }
    options.kv_key_axis = GetParam().key_axis;
    options.kv_value_axis = GetParam().value_axis;
    const SessionPtr session = NewSession(model.get(), options);
    const std::vector<int32_t> ids = SomeIds(75, kVocab);
    Prefill(exact.get(), ids);
    Prefill(session.get(), ids);
    const std::vector<float> wanted = Read(exact.get(), 0, 0, 75);
    const std::vector<float> found = Read(session.get(), 0, 0, 75);
    float largest = 0;
    for (const float x : wanted) largest = std::max(largest, std::abs(x));
    EXPECT_LE(Difference(wanted, found), GetParam().bound * static_cast<double>(largest));
    EXPECT_GE(Difference(wanted, found), GetParam().bound / 20 * static_cast<double>(largest));

    for (const auto& [first, n] : {std::pair(0u, 1u), {5u, 3u}, {7u, 2u}, {15u, 18u}, {74u, 1u}}) {
      const std::vector<float> part = Read(session.get(), 0, first, n);
      for (uint32_t block = 0; block < 4; ++block) {  // K and V of two heads
        const auto from = found.begin() + (block * 75 + first) * head_dim;
        EXPECT_TRUE(std::equal(from, from + n * head_dim, part.begin() + block * n * head_dim))
            << first << " " << n << " block " << block;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ReadKvTypeTest,
                         testing::Values(Type{ARN_KV_F16, ARN_KV_F16, 1.0 / 2048},
                                         Type{ARN_KV_INT8, ARN_KV_INT8, 0.501 / 127},
                                         Type{ARN_KV_INT8, ARN_KV_F16, 0.501 / 127},
                                         // A range is at most twice the largest value, and
                                         // quantised pages were int8 before.
                                         Type{ARN_KV_INT4, ARN_KV_INT8, 1.01 / 15 + 0.501 / 127},
                                         Type{ARN_KV_INT8, ARN_KV_INT4, 1.01 / 15 + 0.501 / 127},
                                         Type{ARN_KV_INT2, ARN_KV_INT2, 1.01 / 3 + 0.501 / 127},
                                         Type{ARN_KV_INT4, ARN_KV_INT4, 1.01 / 15 + 0.501 / 127,
                                              ARN_KV_AXIS_TOKEN, ARN_KV_AXIS_CHANNEL},
                                         Type{ARN_KV_INT2, ARN_KV_INT4, 1.01 / 3 + 0.501 / 127,
                                              ARN_KV_AXIS_TOKEN, ARN_KV_AXIS_TOKEN}));

TEST(ReadKv_Sequences, Forks_ShareWhatTheyHaveInCommon) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options();
  options.max_sequences = 2;
  const SessionPtr session = NewSession(model.get(), options);
  const std::vector<int32_t> ids = SomeIds(21, kVocab);
  Prefill(session.get(), ids);
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
  const uint32_t both[] = {0, 1};
  const int32_t next[] = {7, 50};
  ASSERT_EQ(ARN_OK, arn_session_step(session.get(), both, next, 2));
  const SessionPtr alone = NewSession(model.get(), Options());
  for (uint32_t s : both) {
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
    ASSERT_EQ(ARN_OK, arn_session_reset(alone.get()));
    Prefill(alone.get(), ids);
    Prefill(alone.get(), {next[s]});
    for (uint32_t layer : {0u, 1u}) {
      EXPECT_LT(Difference(Read(session.get(), layer, 0, 22), Read(alone.get(), layer, 0, 22)),
                2e-5);
    }
  }
}

// A shift renumbers positions and rotates the keys: with one layer the cache equals that of a
// prefill of the remaining tokens.
TEST(ReadKv_Shift, OneLayer_HasTheKeysOfTheNewPositions) {
  TinyBundle bundle;
  bundle.layers = 1;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = Options();
  options.context_tokens = 64;
  options.overflow = ARN_OVERFLOW_SHIFT;
  options.pinned_tokens = 8;
  const SessionPtr session = NewSession(model.get(), options);
  Prefill(session.get(), SomeIds(100, kVocab));
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  ASSERT_EQ(ARN_OK, arn_session_tokens(session.get(), &ids, &n));
  ASSERT_LE(n, 64u);
  const SessionPtr fresh = NewSession(model.get(), Options());
  Prefill(fresh.get(), std::vector<int32_t>(ids, ids + n));
  EXPECT_LT(Difference(Read(session.get(), 0, 0, n), Read(fresh.get(), 0, 0, n)), 2e-5);
}

TEST(ReadKv_Arguments, WhatIsNotThere_IsRefused) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr session = NewSession(model.get(), Options());
  std::vector<float> keys(2 * 8 * 8), values(keys.size());
  const auto read = [&](uint32_t layer, uint32_t first, uint32_t n) {
    return arn_session_read_kv(session.get(), layer, first, n, keys.data(), values.data());
  };
  EXPECT_EQ(ARN_BAD_ARGUMENT, read(0, 0, 1)) << "nothing is there yet";
  EXPECT_EQ(0u, Info(session.get(), 0).first_position);
  Prefill(session.get(), SomeIds(5, kVocab));
  EXPECT_EQ(ARN_OK, read(1, 0, 5));
  EXPECT_EQ(ARN_BAD_ARGUMENT, read(2, 0, 5));
  EXPECT_NE(std::string::npos, std::string(arn_session_last_error(session.get())).find("2"));
  EXPECT_EQ(ARN_BAD_ARGUMENT, read(UINT32_MAX, 0, 1));
  EXPECT_EQ(ARN_BAD_ARGUMENT, read(0, 0, 0));
  EXPECT_EQ(ARN_BAD_ARGUMENT, read(0, 0, 6));
  EXPECT_EQ(ARN_BAD_ARGUMENT, read(0, 5, 1));
  EXPECT_EQ(ARN_BAD_ARGUMENT, read(0, 1, UINT32_MAX));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_read_kv(session.get(), 0, 0, 1, nullptr, nullptr));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_read_kv(nullptr, 0, 0, 1, keys.data(), nullptr));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_kv_layer(session.get(), 0, nullptr));

  // Either output may be null.
  std::vector<float> again(keys.size());
  ASSERT_EQ(ARN_OK, read(0, 0, 5));
  ASSERT_EQ(ARN_OK, arn_session_read_kv(session.get(), 0, 0, 5, nullptr, again.data()));
  EXPECT_EQ(values, again);
  ASSERT_EQ(ARN_OK, arn_session_read_kv(session.get(), 0, 0, 5, again.data(), nullptr));
  EXPECT_EQ(keys, again);

  arn_session_options options = Options();
  options.no_cache = 1;
  const SessionPtr uncached = NewSession(model.get(), options);
  Prefill(uncached.get(), SomeIds(5, kVocab));
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_read_kv(uncached.get(), 0, 0, 5, keys.data(), nullptr));
  arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_kv_layer(uncached.get(), 0, &info));
}

}  // namespace
}  // namespace arn::test

// KV quantised to 4 or 2 bits: memory and accuracy.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/logits_support.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;

arn_session_options Options(uint32_t keys, uint32_t values) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = keys;
  options.kv_value_type = values;
  options.n_threads = 1;
  options.context_tokens = 256;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 16;
  if (keys >= ARN_KV_INT4 || values >= ARN_KV_INT4) options.kv_residual = 32;
  return options;
}

BundleBytes Bundle() {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.head_dim = 32;
  return MakeTinyBundle(bundle);
}

SessionPtr Prefilled(const arn_model* model, const arn_session_options& options, size_t n) {
  SessionPtr session = NewSession(model, options);
  const std::vector<int32_t> ids = SomeIds(n, kVocab);
  EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()))
      << arn_session_last_error(session.get());
  return session;
}

uint64_t UsedBytes(const arn_session* session) {
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  EXPECT_EQ(ARN_OK, arn_session_stats(session, &stats));
  return stats.kv_used_bytes;
}

// Within the residual nothing is quantised further, so the bits equal int8's.
TEST(QuantisedPages_Residual, BeforeItIsFull_TheBitsOfInt8) {
  const BundleBytes bytes = Bundle();
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr int8 = Prefilled(model.get(), Options(ARN_KV_INT8, ARN_KV_INT8), 40);
  const SessionPtr int2 = Prefilled(model.get(), Options(ARN_KV_INT2, ARN_KV_INT2), 40);
  EXPECT_EQ(0.0, LogitDifference(int8.get(), int2.get(), kVocab));
  EXPECT_EQ(UsedBytes(int8.get()), UsedBytes(int2.get()));
}

// Fewer bits need fewer bytes and lose accuracy, for keys and values separately.
TEST(QuantisedPages_Types, EachKind_IsSmallerAndFurtherOff) {
  const BundleBytes bytes = Bundle();
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr f32 = Prefilled(model.get(), Options(ARN_KV_F32, ARN_KV_F32), 240);
  struct Kind {
    uint32_t keys, values;
    double most;
  };
  const Kind kinds[] = {{ARN_KV_INT8, ARN_KV_INT8, 0.02},
                        {ARN_KV_INT8, ARN_KV_INT4, 0.1},
                        {ARN_KV_INT4, ARN_KV_INT4, 0.2},
                        {ARN_KV_INT4, ARN_KV_INT2, 0.6},
                        {ARN_KV_INT2, ARN_KV_INT2, 0.8}};
  uint64_t bytes_before = UsedBytes(f32.get());
  for (const Kind& kind : kinds) {
    SCOPED_TRACE(std::to_string(kind.keys) + " " + std::to_string(kind.values));
    const SessionPtr session = Prefilled(model.get(), Options(kind.keys, kind.values), 240);
    const double difference = LogitDifference(f32.get(), session.get(), kVocab);
    EXPECT_GT(difference, 0.0);
    EXPECT_LT(difference, kind.most);
    EXPECT_LT(UsedBytes(session.get()), bytes_before);
    bytes_before = UsedBytes(session.get());
  }
}

// f16 keys with quantised values: active pages hold both types.
TEST(QuantisedPages_Types, FloatKeysAndQuantisedValues_GoTogether) {
  const BundleBytes bytes = Bundle();
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr f32 = Prefilled(model.get(), Options(ARN_KV_F32, ARN_KV_F32), 240);
  for (uint32_t keys : {ARN_KV_F32, ARN_KV_F16}) {
    const SessionPtr mixed = Prefilled(model.get(), Options(keys, ARN_KV_INT4), 240);
    EXPECT_LT(LogitDifference(f32.get(), mixed.get(), kVocab), 0.1);
    const SessionPtr other = Prefilled(model.get(), Options(keys, ARN_KV_INT8), 240);
    EXPECT_LT(LogitDifference(f32.get(), other.get(), kVocab), 0.02);
  }
}

struct Axes {
  uint32_t keys, values;
};
void PrintTo(const Axes& axes, std::ostream* out) { *out << axes.keys << axes.values; }

class QuantisedAxesTest : public testing::TestWithParam<Axes> {
 protected:
  static arn_session_options WithAxes(uint32_t keys, uint32_t values) {
    arn_session_options options = Options(keys, values);
    options.kv_key_axis = GetParam().keys;
    options.kv_value_axis = GetParam().values;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Axes, QuantisedAxesTest,
                         testing::Values(Axes{ARN_KV_AXIS_DEFAULT, ARN_KV_AXIS_DEFAULT},
                                         Axes{ARN_KV_AXIS_TOKEN, ARN_KV_AXIS_CHANNEL},
                                         Axes{ARN_KV_AXIS_TOKEN, ARN_KV_AXIS_TOKEN},
                                         Axes{ARN_KV_AXIS_CHANNEL, ARN_KV_AXIS_CHANNEL}));

TEST_P(QuantisedAxesTest, BothBackends_Agree) {
  const BundleBytes bytes = Bundle();
  const ModelPtr model = OpenBytes(bytes);
  for (const uint32_t active : {ARN_KV_INT4, ARN_KV_INT2}) {
    arn_session_options options = WithAxes(active, ARN_KV_INT4);
    const SessionPtr cpu = Prefilled(model.get(), options, 240);
    options.backend = ARN_BACKEND_REFERENCE;
    const SessionPtr reference = Prefilled(model.get(), options, 240);
    EXPECT_LT(LogitDifference(cpu.get(), reference.get(), kVocab), 0.02);
  }
}

TEST_P(QuantisedAxesTest, SavedSession_IsOfTheSameAxesOnly) {
  const BundleBytes bytes = Bundle();
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr saved = Prefilled(model.get(), WithAxes(ARN_KV_INT4, ARN_KV_INT4), 100);
  uint64_t size = 0;
  ASSERT_EQ(ARN_OK, arn_session_save_bytes(saved.get(), &size));
  std::vector<uint8_t> state(size);
  ASSERT_EQ(ARN_OK, arn_session_save_memory(saved.get(), state.data(), size, &size));
  for (const Axes& axes : {GetParam(), Axes{ARN_KV_AXIS_CHANNEL, ARN_KV_AXIS_TOKEN},
                           Axes{ARN_KV_AXIS_TOKEN, ARN_KV_AXIS_CHANNEL}}) {
    arn_session_options options = Options(ARN_KV_INT4, ARN_KV_INT4);
    options.kv_key_axis = axes.keys;
    options.kv_value_axis = axes.values;
    const SessionPtr other = NewSession(model.get(), options);
    const auto is_default = [](uint32_t axis, uint32_t same) {
      return axis == ARN_KV_AXIS_DEFAULT || axis == same;
    };
    const Axes mine = GetParam();
    const bool same =
        is_default(axes.keys, ARN_KV_AXIS_CHANNEL) == is_default(mine.keys, ARN_KV_AXIS_CHANNEL) &&
        is_default(axes.values, ARN_KV_AXIS_TOKEN) == is_default(mine.values, ARN_KV_AXIS_TOKEN);
    EXPECT_EQ(same ? ARN_OK : ARN_SAVE_MISMATCH,
              arn_session_restore_memory(other.get(), state.data(), size, nullptr));
  }
}

// A rewind into quantised pages dequantises the one that is written; a fork shares them.
TEST_P(QuantisedAxesTest, RewindForkAndShift_Work) {
  const BundleBytes bytes = Bundle();
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = WithAxes(ARN_KV_INT4, ARN_KV_INT4);
  options.max_sequences = 2;
  options.overflow = ARN_OVERFLOW_SHIFT;
  const SessionPtr f32 = Prefilled(model.get(), Options(ARN_KV_F32, ARN_KV_F32), 240);
  const SessionPtr session = Prefilled(model.get(), options, 240);
  const uint64_t used = UsedBytes(session.get());
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
  EXPECT_EQ(used, UsedBytes(session.get()));
  const std::vector<int32_t> more = SomeIds(60, 13);
  for (arn_session* s : {f32.get(), session.get()}) {
    ASSERT_EQ(ARN_OK, arn_session_rewind(s, 101));
    ASSERT_EQ(ARN_OK, arn_session_prefill(s, more.data(), more.size()));
  }
  EXPECT_LT(LogitDifference(f32.get(), session.get(), kVocab), 0.2);
  // The other sequence exceeds the context: quantised keys are rotated, shared ones in copies.
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  for (int i = 0; i < 200; ++i) {
    int32_t id = 0;
    ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id))
        << arn_session_last_error(session.get());
  }
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), more.data(), 1));
  ASSERT_EQ(ARN_OK, arn_session_prefill(f32.get(), more.data(), 1));
  EXPECT_LT(LogitDifference(f32.get(), session.get(), kVocab), 0.2);
}

TEST(QuantisedPages_Options, WhatCannotWork_IsRefusedByName) {
  const BundleBytes bytes = Bundle();
  const ModelPtr model = OpenBytes(bytes);
  auto refused = [&](const arn_session_options& options, arn_status status, const char* word) {
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    char error[256];
    EXPECT_EQ(status, arn_session_plan(model.get(), &options, error, sizeof error, &plan));
    EXPECT_NE(std::string::npos, std::string(error).find(word)) << error;
  };
  arn_session_options options = Options(ARN_KV_INT4, ARN_KV_INT4);
  options.kv_group_size = 3;
  refused(options, ARN_BAD_ARGUMENT, "kv_group_size is 3");
  options = Options(ARN_KV_INT8, ARN_KV_AS_KEYS);
  options.kv_residual = 64;
  refused(options, ARN_BAD_ARGUMENT, "kv_residual 64");
  refused(Options(5, ARN_KV_AS_KEYS), ARN_UNSUPPORTED, "kv_type 5");
  refused(Options(ARN_KV_F32, 9), ARN_UNSUPPORTED, "kv_value_type 9");
  options = Options(ARN_KV_INT4, ARN_KV_INT4);
  options.kv_key_axis = 3;
  refused(options, ARN_UNSUPPORTED, "kv_key_axis 3");
}

}  // namespace
}  // namespace arn::test

// Sessions of models with recurrent layers, as far as they differ from KV.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/logits_support.h"
#include "tests/support/session_support.h"
#include "tests/support/state_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;

arn_session_options Options(uint32_t sequences = 1) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.n_threads = 2;
  options.context_tokens = 96;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 16;
  options.max_sequences = sequences;
  return options;
}

uint64_t UsedBytes(const arn_session* session) {
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  EXPECT_EQ(ARN_OK, arn_session_stats(session, &stats));
  return stats.kv_used_bytes;
}

arn_kv_group_info StateGroup(const arn_model* model, const arn_session_options& options) {
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  EXPECT_EQ(ARN_OK, arn_session_plan(model, &options, nullptr, 0, &plan));
  for (uint32_t g = 0; g < plan.n_kv_groups; ++g) {
    arn_kv_group_info group = ARN_KV_GROUP_INFO_INIT;
    EXPECT_EQ(ARN_OK, arn_session_plan_group(model, &options, g, nullptr, 0, &group));
    if (group.state_bytes != 0) return group;
  }
  ADD_FAILURE() << "no group of states";
  return {};
}

class SlotsTest : public testing::TestWithParam<Shape> {
 protected:
  SlotsTest() {
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bundle.layer_kinds = GetParam().layers;
    bytes_ = std::make_unique<BundleBytes>(MakeTinyBundle(bundle));
    model_ = OpenBytes(*bytes_);
  }
  uint32_t n_states() const {
    uint32_t n = 0;
    for (const TinyLayer& layer : GetParam().layers) {
      n += layer.mixer != TinyMixer::kAttention ? 1 : 0;
    }
    return n;
  }

  std::unique_ptr<BundleBytes> bytes_;
  ModelPtr model_;
};

// Two slots per sequence, of the same size for any context and element type.
TEST_P(SlotsTest, Plan_SaysSlots) {
  // 20 channels: two inputs of a convolution, plus 5 states in a scan. Linear attention has 4 heads
  // with keys of 6 and values of 5, and a convolution over 4 * 5 + 2 * 2 * 6 channels.
  const bool is_scan = GetParam().layers[0].mixer == TinyMixer::kScan;
  const bool is_linear = GetParam().layers[0].mixer == TinyMixer::kDelta;
  const uint64_t floats = is_linear ? 2 * 44 + 4 * 6 * 5 : 20 * (2 + (is_scan ? 5 : 0));
  const uint64_t state_bytes = (floats * sizeof(float) + 63) / 64 * 64;
  for (const uint32_t kv : {ARN_KV_F32, ARN_KV_INT8, ARN_KV_INT4}) {
    for (const uint32_t context : {8u, 96u}) {
      arn_session_options options = Options(3);
      options.kv_type = kv;
      options.context_tokens = context;
      const arn_kv_group_info group = StateGroup(model_.get(), options);
      EXPECT_EQ(n_states(), group.n_layers);
      EXPECT_EQ(state_bytes, group.state_bytes);
      EXPECT_EQ(state_bytes * n_states(), group.page_bytes);
      EXPECT_EQ(6u, group.n_pages);
      EXPECT_EQ(2u, group.sequence_pages);
      EXPECT_EQ(0u, group.page_tokens + group.n_kv_heads + group.head_dim + group.window +
                        group.chunk + group.n_quantised_pages);
    }
  }
}

TEST_P(SlotsTest, Shift_IsRefusedWithTheReason) {
  arn_session_options options = Options();
  options.overflow = ARN_OVERFLOW_SHIFT;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  char error[256];
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_plan(model_.get(), &options, error, sizeof error, &plan));
  EXPECT_NE(nullptr, std::strstr(error, "layers with a recurrent state"));
}

// A cancelled run has written some layers' states. The sequence continues from the states before
// it.
TEST_P(SlotsTest, CancelledRun_LeavesTheState) {
  const SessionPtr session = NewSession(model_.get(), Options(2));
  const SessionPtr truth = NewSession(model_.get(), Options(2));
  const std::vector<int32_t> ids = SomeIds(21, kVocab);
  for (arn_session* s : {session.get(), truth.get()}) {
    ASSERT_EQ(ARN_OK, arn_session_prefill(s, ids.data(), ids.size()));
    ASSERT_EQ(ARN_OK, arn_session_fork(s, 0, 1));
  }
  for (int round = 0; round < 5; ++round) {
    const std::vector<int32_t> others = SomeIds(3 + static_cast<size_t>(round), 17);
    arn_session_cancel(session.get());
    ASSERT_EQ(ARN_CANCELLED, arn_session_prefill(session.get(), others.data(), others.size()));
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), 2));
    ASSERT_EQ(ARN_OK, arn_session_prefill(truth.get(), ids.data(), 2));
    EXPECT_EQ(0.0, LogitDifference(session.get(), truth.get(), kVocab));
  }
  // The other sequence still uses the original slot.
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  ASSERT_EQ(ARN_OK, arn_session_select(truth.get(), 1));
  EXPECT_EQ(Decode(truth.get(), 20), Decode(session.get(), 20));
}

// One slot per sequence with its own tokens, one shared by untouched forks, none after all are
// reset.
TEST_P(SlotsTest, Slots_AreSharedAndGivenBack) {
  const SessionPtr session = NewSession(model_.get(), Options(4));
  const uint64_t slot = StateGroup(model_.get(), Options(4)).page_bytes;
  const std::vector<int32_t> ids = SomeIds(16, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
  const uint64_t one = UsedBytes(session.get());
  for (uint32_t s : {1u, 2u, 3u}) ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, s));
  EXPECT_EQ(one, UsedBytes(session.get()));
  const uint32_t all[] = {0, 1, 2, 3};
  const int32_t next[] = {5, 6, 7, 8};
  ASSERT_EQ(ARN_OK, arn_session_step(session.get(), all, next, 4));
  EXPECT_GE(UsedBytes(session.get()), one + 3 * slot);
  if (n_states() == GetParam().layers.size()) {
    EXPECT_EQ(4 * slot, UsedBytes(session.get()));
  }
  for (uint32_t s : all) {
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
    ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  }
  EXPECT_EQ(0u, UsedBytes(session.get()));
}

// Without a cache all tokens run again, so any position can be rewound to.
TEST_P(SlotsTest, NoCache_IsRewound) {
  arn_session_options options = Options();
  options.no_cache = 1;
  const SessionPtr session = NewSession(model_.get(), options);
  const SessionPtr truth = NewSession(model_.get(), options);
  const std::vector<int32_t> ids = SomeIds(30, kVocab), others = SomeIds(9, 17);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
  EXPECT_EQ(0u, arn_session_first_rewind_position(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 12));
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), others.data(), others.size()));
  ASSERT_EQ(ARN_OK, arn_session_prefill(truth.get(), ids.data(), 12));
  ASSERT_EQ(ARN_OK, arn_session_prefill(truth.get(), others.data(), others.size()));
  EXPECT_EQ(0.0, LogitDifference(session.get(), truth.get(), kVocab));
}

// A state of another size, from another model, is refused.
TEST_P(SlotsTest, SavedSizes_AreCompared) {
  const SessionPtr session = NewSession(model_.get(), Options());
  const std::vector<int32_t> ids = SomeIds(9, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
  std::vector<uint8_t> state = Save(session.get());
  TinyBundle other;
  other.vocab = kVocab;
  other.layer_kinds = {{}, {}};
  const BundleBytes bytes = MakeTinyBundle(other);
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr elsewhere = NewSession(model.get(), Options());
  EXPECT_EQ(ARN_SAVE_MISMATCH, Restore(elsewhere.get(), state));
}

INSTANTIATE_TEST_SUITE_P(LinearAttention, SlotsTest,
                         testing::Values(LinearShapes()[0], LinearShapes()[1]), ShapeName);
INSTANTIATE_TEST_SUITE_P(States, SlotsTest, testing::ValuesIn(StateShapes()), ShapeName);

}  // namespace
}  // namespace arn::test

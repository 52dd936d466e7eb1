// What a session with snapshots of recurrent states does, call by call.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/prefix_support.h"
#include "tests/support/snapshot_support.h"

namespace arn::test::snapshots {
namespace {

// Where the chunks are the same, so are the bits.
TEST_P(SnapshotsTest, RewindToASnapshot_SameBitsOnTheCpu) {
  if (has_window()) return;  // a window cannot be rewound this far, with or without states
  const SessionPtr session = NewSession(model_.get(), Options(8, 1, ARN_BACKEND_CPU));
  const SessionPtr truth = NewSession(model_.get(), Options(8, 1, ARN_BACKEND_CPU));
  const std::vector<int32_t> ids = SomeIds(60, kVocab), others = SomeIds(30, 17);
  ASSERT_EQ(ARN_OK, Prefill(session.get(), ids));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 4 * kEvery + 3));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), others));
  std::vector<int32_t> all(ids.begin(), ids.begin() + 4 * kEvery + 3);
  all.insert(all.end(), others.begin(), others.end());
  ASSERT_EQ(ARN_OK, Prefill(truth.get(), all));
  EXPECT_EQ(0.0, LogitDifference(session.get(), truth.get(), kVocab));
}

// The plan counts the slots to the byte, and they suffice.
TEST_P(SnapshotsTest, Plan_CountsTheSlots) {
  for (const uint32_t sequences : {1u, 3u}) {
    const arn_memory_plan without = PlanOf(model_.get(), Options(0, sequences));
    const arn_memory_plan with = PlanOf(model_.get(), Options(5, sequences));
    EXPECT_EQ(0u, without.snapshots_bytes);
    EXPECT_EQ(0u, without.state_snapshots);
    EXPECT_EQ(5u, with.state_snapshots);
    EXPECT_EQ(kEvery, with.snapshot_every);
    uint64_t slots = 0;
    const arn_session_options options = Options(5, sequences);
    for (uint32_t g = 0; g < with.n_kv_groups; ++g) {
      arn_kv_group_info group = ARN_KV_GROUP_INFO_INIT;
      ASSERT_EQ(ARN_OK, arn_session_plan_group(model_.get(), &options, g, nullptr, 0, &group));
      if (group.state_bytes == 0) continue;
      EXPECT_EQ(7 * sequences, group.n_pages);
      slots += 5 * sequences * group.page_bytes;
    }
    EXPECT_EQ(slots, with.snapshots_bytes);
    // Each pool begins at a multiple of 16384.
    EXPECT_GE(with.kv_bytes + uint64_t{16384} * with.n_kv_groups, without.kv_bytes + slots);
    const SessionPtr session = NewSession(model_.get(), options);
    for (uint32_t s = 0; s < sequences; ++s) {
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
      for (int turn = 0; turn < 10; ++turn) {
        ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(9, kVocab)));
        ASSERT_EQ(ARN_OK, arn_session_mark(session.get()));
      }
      EXPECT_EQ(5u, Stats(session.get()).n_state_snapshots);
    }
    EXPECT_EQ(with.kv_bytes, Stats(session.get()).kv_capacity_bytes);
    EXPECT_LE(Stats(session.get()).kv_used_bytes, with.kv_bytes);
  }
}

TEST_P(SnapshotsTest, Plan_DefaultDistanceIsAChunk) {
  arn_session_options options = Options(2);
  options.snapshot_every = 0;
  EXPECT_EQ(16u, PlanOf(model_.get(), options).snapshot_every);
}

// A rewind by a few tokens runs no more than those since the last snapshot, with the next token.
TEST_P(SnapshotsTest, Rewind_RecomputesWhatItSays) {
  if (has_window()) return;
  const SessionPtr session = NewSession(model_.get(), Options(8));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(40, kVocab)));
  for (uint32_t position = 40; position > 30; --position) {
    const uint32_t resume = arn_session_resume_position(session.get(), position);
    EXPECT_LE(position - resume, kEvery);
    const uint64_t before = Stats(session.get()).recomputed_tokens;
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), position));
    EXPECT_EQ(position, arn_session_length(session.get()));
    EXPECT_EQ(before, Stats(session.get()).recomputed_tokens) << "a rewind itself runs nothing";
    ASSERT_EQ(ARN_OK, Prefill(session.get(), {5}));
    EXPECT_EQ(before + position - resume, Stats(session.get()).recomputed_tokens);
    EXPECT_EQ(0.0, ErrorOf(session.get()));
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), position));
  }
}

// Rewinding to a mark runs nothing again, as far from the regular snapshots as it may lie.
TEST_P(SnapshotsTest, Rewind_ToAMarkRunsNothing) {
  if (has_window()) return;
  const SessionPtr session = NewSession(model_.get(), Options(4));
  std::vector<int32_t> ids = SomeIds(17, kVocab);
  ASSERT_EQ(ARN_OK, Prefill(session.get(), ids));
  ASSERT_EQ(ARN_OK, arn_session_mark(session.get()));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(60, kVocab)));
  EXPECT_EQ(17u, arn_session_resume_position(session.get(), 17));
  EXPECT_EQ(17u, arn_session_resume_position(session.get(), 18));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 17));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(5, 13)));
  EXPECT_EQ(0u, Stats(session.get()).recomputed_tokens);
  EXPECT_EQ(0.0, ErrorOf(session.get()));
}

// Generating from a mark needs its logits: the first time the tokens since the snapshot before it
// run, later the last one alone.
TEST_P(SnapshotsTest, Generate_FromAMarkAgainAndAgain) {
  if (has_window()) return;
  const SessionPtr session = NewSession(model_.get(), Options(6));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(19, kVocab)));
  ASSERT_EQ(ARN_OK, arn_session_mark(session.get()));
  const std::vector<int32_t> expected = Decode(session.get(), 11);
  uint64_t before = 0;
  for (const uint64_t run_again : {5u, 1u, 1u}) {
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 19));
    EXPECT_EQ(expected, Decode(session.get(), 11));
    EXPECT_EQ(before + run_again, Stats(session.get()).recomputed_tokens);
    before += run_again;
  }
}

// Changing the last turn runs the change, no matter how long turn and answer were.
TEST_P(SnapshotsTest, Follow_ChangedLastTurnRunsTheChange) {
  if (has_window()) return;
  arn_session_options options = Options(4);
  options.snapshot_every = 1000;  // only marks
  const SessionPtr session = NewSession(model_.get(), options);
  std::vector<int32_t> ids = SomeIds(20, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), ids.data(), ids.size(), nullptr));
  for (int turn = 0; turn < 3; ++turn) {
    const std::vector<int32_t> answer = Decode(session.get(), 9);
    ids.insert(ids.end(), answer.begin(), answer.end());
    for (int32_t version = 0; version < 3; ++version) {
      std::vector<int32_t> all = ids;
      for (int32_t i = 0; i < 8; ++i) all.push_back((version + i * 5) % 61);
      uint32_t kept = 0;
      ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), all.data(), all.size(), &kept));
      EXPECT_EQ(ids.size(), kept) << "turn " << turn << ", version " << version;
      EXPECT_EQ(0.0, ErrorOf(session.get()));
      Decode(session.get(), 4);
      if (version == 2) ids = all;
    }
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), static_cast<uint32_t>(ids.size())));
  }
}

// The same prompt again, as for another answer: the second time one token runs.
TEST_P(SnapshotsTest, Follow_SamePromptAgain) {
  if (has_window()) return;
  const SessionPtr session = NewSession(model_.get(), Options(6));
  const std::vector<int32_t> ids = SomeIds(33, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), ids.data(), ids.size(), nullptr));
  uint32_t kept = 0;
  for (const uint32_t expected : {28u, 32u, 32u}) {
    Decode(session.get(), 6);
    ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), ids.data(), ids.size(), &kept));
    EXPECT_EQ(expected, kept);
    EXPECT_EQ(0.0, ErrorOf(session.get()));
  }
}

// Without snapshots: the message of before, and what to do.
TEST_P(SnapshotsTest, None_RewindIsRefusedWithWhatToDo) {
  const SessionPtr session = NewSession(model_.get(), Options(0));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(30, kVocab)));
  EXPECT_EQ(30u, arn_session_first_rewind_position(session.get()));
  EXPECT_EQ(ARN_BAD_STATE, arn_session_rewind(session.get(), 29));
  const std::string message = arn_session_last_error(session.get());
  EXPECT_NE(std::string::npos, message.find("recurrent state")) << message;
  EXPECT_NE(std::string::npos, message.find("state_snapshots")) << message;
  EXPECT_EQ(ARN_BAD_STATE, arn_session_mark(session.get()));
  EXPECT_NE(nullptr, std::strstr(arn_session_last_error(session.get()), "state_snapshots = 0"));
}

TEST_P(SnapshotsTest, Options_AreChecked) {
  char error[256];
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  arn_session_options options = Options(0);
  options.snapshot_every = 8;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_plan(model_.get(), &options, error, sizeof error, &plan));
  EXPECT_NE(nullptr, std::strstr(error, "state_snapshots is 0"));
  options.state_snapshots = 1025;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_plan(model_.get(), &options, error, sizeof error, &plan));
  EXPECT_NE(nullptr, std::strstr(error, "state_snapshots is 1025"));
}

// A cancel while tokens run again loses none of them: each call goes on where the last one ended.
TEST_P(SnapshotsTest, CancelledRecomputation_LosesNothing) {
  if (has_window()) return;
  arn_session_options options = Options(1);
  options.snapshot_every = 1000;
  const SessionPtr session = NewSession(model_.get(), options);
  const std::vector<int32_t> ids = SomeIds(70, kVocab);
  ASSERT_EQ(ARN_OK, Prefill(session.get(), ids));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 50));
  const std::vector<int32_t> left(ids.begin(), ids.begin() + 50);
  const std::vector<int32_t> more = {1, 2, 3};
  const float* logits = nullptr;
  const auto cancelled = [&](const auto& call) {
    arn_session_cancel(session.get());
    EXPECT_EQ(ARN_CANCELLED, call());
    EXPECT_EQ(left, TokensOf(session.get()));
    EXPECT_EQ(0u, arn_session_resume_position(session.get(), 50));
  };
  cancelled([&] { return Prefill(session.get(), more); });
  cancelled([&] { return arn_session_logits(session.get(), &logits); });
  cancelled([&] { return arn_session_mark(session.get()); });
  cancelled([&] {
    uint64_t bytes = 0;
    return arn_session_save_bytes(session.get(), &bytes);
  });
  EXPECT_EQ(0.0, ErrorOf(session.get()));
  EXPECT_EQ(50u, Stats(session.get()).recomputed_tokens);
}

// A run of several sequences, some of which were rewound.
TEST_P(SnapshotsTest, Batch_RunsPendingTokensFirst) {
  if (has_window()) return;
  const SessionPtr session = NewSession(model_.get(), Options(4, 2));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(40, kVocab)));
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 33));
  const uint32_t sequences[] = {0, 1};
  const int32_t ids[] = {7, 8};
  ASSERT_EQ(ARN_OK, arn_session_step(session.get(), sequences, ids, 2));
  for (uint32_t s : sequences) {
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
    EXPECT_EQ(s == 0 ? 34u : 41u, arn_session_length(session.get()));
    EXPECT_EQ(0.0, ErrorOf(session.get()));
  }
}

// A fork shares the snapshots: it can be rewound as its parent, and takes no memory.
TEST_P(SnapshotsTest, Fork_SharesTheSnapshots) {
  if (has_window()) return;
  const SessionPtr session = NewSession(model_.get(), Options(4, 2));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(40, kVocab)));
  const uint64_t used = Stats(session.get()).kv_used_bytes;
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 38));
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
  EXPECT_LE(Stats(session.get()).kv_used_bytes, used);
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  EXPECT_EQ(38u, arn_session_length(session.get()));
  EXPECT_EQ(28u, arn_session_resume_position(session.get(), 30));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 30));
  EXPECT_EQ(0.0, ErrorOf(session.get()));
}

// A fork needs an empty sequence: tokens that have to run again count.
TEST_P(SnapshotsTest, Fork_NotOverPendingTokens) {
  if (has_window()) return;
  const SessionPtr session = NewSession(model_.get(), Options(1, 2));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(9, kVocab)));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 5));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(3, kVocab)));
  EXPECT_EQ(ARN_BAD_STATE, arn_session_fork(session.get(), 1, 0));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
  EXPECT_EQ(5u, arn_session_length(session.get()));
  EXPECT_EQ(0.0, ErrorOf(session.get()));
}

// A restored sequence has a snapshot at its end, and before it only its start.
TEST_P(SnapshotsTest, SavedSession_HasOneAtItsEnd) {
  if (has_window()) return;
  const SessionPtr session = NewSession(model_.get(), Options(4));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(40, kVocab)));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 37));  // saving runs what is pending
  const std::vector<uint8_t> state = Save(session.get());
  const SessionPtr other = NewSession(model_.get(), Options(4));
  ASSERT_EQ(ARN_OK, Restore(other.get(), state));
  EXPECT_EQ(1u, Stats(other.get()).n_state_snapshots);
  Decode(other.get(), 5);
  EXPECT_EQ(37u, arn_session_resume_position(other.get(), 40));
  EXPECT_EQ(0u, arn_session_resume_position(other.get(), 36));
  for (const uint32_t position : {40u, 30u}) {
    ASSERT_EQ(ARN_OK, arn_session_rewind(other.get(), position));
    EXPECT_EQ(0.0, ErrorOf(other.get()));
  }
}

// The bundle's prefix is followed by a mark: another conversation begins there.
TEST_P(SnapshotsTest, Prefix_IsAMark) {
  if (has_window()) return;
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.layer_kinds = GetParam().layers;
  const std::vector<int32_t> prefix = SomeIds(24, kVocab);
  const BundleBytes bytes = MakeTinyBundle(WithPrefix(bundle, Options(0), prefix));
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr session = NewSession(model.get(), Options(4));
  ASSERT_EQ(ARN_OK, arn_session_use_prefix(session.get()));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(30, 13)));
  EXPECT_EQ(24u, arn_session_resume_position(session.get(), 25));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 26));
  EXPECT_EQ(0.0, ErrorOf(session.get()));
}

// Keys and values are read of all tokens, so those that are missing run first.
TEST_P(SnapshotsTest, ReadKv_RunsPendingTokens) {
  if (has_window()) return;
  for (uint32_t layer = 0; layer < GetParam().layers.size(); ++layer) {
    if (GetParam().layers[layer].mixer != TinyMixer::kAttention) continue;
    const SessionPtr session = NewSession(model_.get(), Options(4));
    ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(40, kVocab)));
    arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_session_kv_layer(session.get(), layer, &info));
    std::vector<float> before(info.n_kv_heads * 33 * info.head_dim), after = before;
    ASSERT_EQ(ARN_OK, arn_session_read_kv(session.get(), layer, 0, 33, before.data(), nullptr));
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 33));
    ASSERT_EQ(ARN_OK, arn_session_read_kv(session.get(), layer, 0, 33, after.data(), nullptr));
    EXPECT_EQ(before, after);
  }
}

// Without a cache all tokens run each time: snapshots are not needed and take nothing.
TEST_P(SnapshotsTest, NoCache_TakesNone) {
  arn_session_options options = Options(4);
  options.no_cache = 1;
  EXPECT_EQ(0u, PlanOf(model_.get(), options).snapshots_bytes);
  const SessionPtr session = NewSession(model_.get(), options);
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(30, kVocab)));
  ASSERT_EQ(ARN_OK, arn_session_mark(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 11));
  EXPECT_EQ(0.0, ErrorOf(session.get()));
}

// Beams go through the snapshots of the sequences; those are empty afterwards, like the sequences.
TEST_P(SnapshotsTest, Beams_LeaveNoSlotBehind) {
  const SessionPtr session = NewSession(model_.get(), Options(3, 4));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(20, kVocab)));
  arn_beam_options beams = ARN_BEAM_OPTIONS_INIT;
  beams.num_beams = 3;
  beams.max_tokens = 25;
  ASSERT_EQ(ARN_OK, arn_session_beam_search(session.get(), &beams, nullptr))
      << arn_session_last_error(session.get());
  EXPECT_EQ(0u, Stats(session.get()).kv_used_bytes);
}

INSTANTIATE_TEST_SUITE_P(States, SnapshotsTest, testing::ValuesIn(AllStateShapes()), ShapeName);

// Models of attention alone are rewound anyway: the options cost nothing there.
TEST(SnapshotsOfAttention, TakeNothing) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  const arn_memory_plan with = PlanOf(model.get(), Options(8)),
                        without = PlanOf(model.get(), Options(0));
  EXPECT_EQ(without.total_bytes, with.total_bytes);
  EXPECT_EQ(0u, with.state_snapshots);
  const SessionPtr session = NewSession(model.get(), Options(8));
  ASSERT_EQ(ARN_OK, Prefill(session.get(), SomeIds(30, kVocab)));
  ASSERT_EQ(ARN_OK, arn_session_mark(session.get()));
  EXPECT_EQ(13u, arn_session_resume_position(session.get(), 13));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 13));
  EXPECT_EQ(0u, Stats(session.get()).recomputed_tokens);
}

}  // namespace
}  // namespace arn::test::snapshots

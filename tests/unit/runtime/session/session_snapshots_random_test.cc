// Snapshots of recurrent states: whatever is rewound, forked, followed or cancelled, a sequence
// goes on as if its tokens had been computed from the start.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "tests/support/snapshot_support.h"

namespace arn::test::snapshots {
namespace {

// The sequences of a session beside plain lists of ids.
class Script {
 public:
  Script(arn_session* session, uint32_t n_sequences, uint32_t seed)
      : lists(n_sequences), session_(session), rng_(seed) {}

  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(rng_() % n); }
  std::vector<int32_t> NewIds(uint32_t n) {
    std::vector<int32_t> ids(n);
    for (int32_t& id : ids) id = static_cast<int32_t>(Below(kVocab));
    return ids;
  }
  void Select(uint32_t s) {
    selected = s;
    ASSERT_EQ(ARN_OK, arn_session_select(session_, s));
  }

  void Prefill(bool is_cancelled) {
    std::vector<int32_t>& list = lists[selected];
    const std::vector<int32_t> ids = NewIds(1 + Below(30));
    if (list.size() + ids.size() > 90) return;
    if (is_cancelled) arn_session_cancel(session_);
    ASSERT_EQ(is_cancelled ? ARN_CANCELLED : ARN_OK, snapshots::Prefill(session_, ids))
        << arn_session_last_error(session_);
    if (!is_cancelled) list.insert(list.end(), ids.begin(), ids.end());
  }
  void Decode() {
    if (lists[selected].empty()) return;
    for (uint32_t i = Below(6); i > 0 && lists[selected].size() < 90; --i) {
      int32_t id = 0;
      ASSERT_EQ(ARN_OK, arn_session_decode(session_, &id)) << arn_session_last_error(session_);
      lists[selected].push_back(id);
    }
  }
  void Rewind() {
    const uint32_t position = Below(static_cast<uint32_t>(lists[selected].size()) + 1);
    const bool fits = position >= arn_session_first_rewind_position(session_);
    ASSERT_EQ(fits ? ARN_OK : ARN_BAD_STATE, arn_session_rewind(session_, position));
    if (fits) lists[selected].resize(position);
  }
  void Fork() {
    const uint32_t to = Below(static_cast<uint32_t>(lists.size()));
    if (to == selected || !lists[to].empty()) return;
    ASSERT_EQ(ARN_OK, arn_session_fork(session_, selected, to));
    lists[to] = lists[selected];
  }
  void Follow() {
    std::vector<int32_t> ids = lists[selected];
    ids.resize(Below(static_cast<uint32_t>(ids.size()) + 1));
    const std::vector<int32_t> more = NewIds(1 + Below(20));
    ids.insert(ids.end(), more.begin(), more.end());
    if (ids.size() > 90) return;
    uint32_t kept = 0;
    ASSERT_EQ(ARN_OK, arn_session_follow(session_, ids.data(), ids.size(), &kept));
    ASSERT_LE(kept, ids.size());
    lists[selected] = ids;
  }
  // Decodes all sequences that have tokens, together.
  void Batch() {
    std::vector<uint32_t> sequences;
    for (uint32_t s = 0; s < lists.size(); ++s) {
      if (!lists[s].empty() && lists[s].size() < 90) sequences.push_back(s);
    }
    if (sequences.empty()) return;
    std::vector<int32_t> ids = NewIds(static_cast<uint32_t>(sequences.size()));
    if (Below(2) == 0) {
      ASSERT_EQ(ARN_OK, arn_session_step(session_, sequences.data(), ids.data(), ids.size()));
    } else {
      ASSERT_EQ(ARN_OK,
                arn_session_decode_batch(session_, sequences.data(), sequences.size(), ids.data()));
    }
    for (size_t i = 0; i < sequences.size(); ++i) lists[sequences[i]].push_back(ids[i]);
  }
  void SaveAndRestore() {
    const std::vector<uint8_t> state = Save(session_);
    ASSERT_EQ(ARN_OK, arn_session_rewind(session_, arn_session_length(session_)));
    ASSERT_EQ(ARN_OK, arn_session_reset(session_));
    ASSERT_EQ(ARN_OK, Restore(session_, state));
  }

  void Step() {
    switch (Below(12)) {
      case 0: return Prefill(true);
      case 1:
      case 2: return Prefill(false);
      case 3: return Decode();
      case 4:
      case 5:
      case 6: return Rewind();
      case 7: return Fork();
      case 8: return Follow();
      case 9: return Batch();
      case 10: ASSERT_EQ(ARN_OK, arn_session_mark(session_)); return;
      default:
        if (Below(3) == 0) return SaveAndRestore();
        if (Below(2) == 0) {
          ASSERT_EQ(ARN_OK, arn_session_reset(session_));
          lists[selected].clear();
        }
    }
  }

  std::vector<std::vector<int32_t>> lists;
  uint32_t selected = 0;

 private:
  arn_session* session_;
  std::mt19937 rng_;
};

void RunScripts(const arn_model* model, uint32_t backend, double bound, int n_rounds,
                const std::function<SessionPtr(const std::vector<int32_t>&)>& computed) {
  for (int round = 0; round < n_rounds; ++round) {
    const uint32_t snapshots = std::vector<uint32_t>{1, 2, 3, 8}[static_cast<size_t>(round % 4)];
    const SessionPtr session = NewSession(model, Options(snapshots, 3, backend));
    Script script(session.get(), 3, static_cast<uint32_t>(round));
    for (int step = 0; step < 60; ++step) {
      SCOPED_TRACE(testing::Message() << "round " << round << ", step " << step);
      ASSERT_NO_FATAL_FAILURE(script.Select(script.Below(3)));
      ASSERT_NO_FATAL_FAILURE(script.Step());
      ASSERT_EQ(script.lists[script.selected], TokensOf(session.get()));
      ASSERT_LE(Stats(session.get()).n_state_snapshots, snapshots);
      if (script.Below(3) != 0 || script.lists[script.selected].empty()) continue;
      const float* logits = nullptr;
      if (arn_session_logits(session.get(), &logits) == ARN_BAD_STATE) continue;  // of a window
      const SessionPtr truth = computed(script.lists[script.selected]);
      ASSERT_LE(LogitDifference(session.get(), truth.get(), kVocab), bound);
    }
  }
}

using RandomSnapshotsTest = SnapshotsTest;

// The reference backend computes each row on its own, so the result has the same bits.
TEST_P(RandomSnapshotsTest, RandomRewindsForksAndFollows_SameBitsAsFromTheStart) {
  RunScripts(model_.get(), ARN_BACKEND_REFERENCE, 0, 12,
             [&](const std::vector<int32_t>& ids) { return Computed(ids); });
}

TEST_P(RandomSnapshotsTest, OnTheCpu_EqualUpToRounding) {
  RunScripts(model_.get(), ARN_BACKEND_CPU, 2e-5, 4,
             [&](const std::vector<int32_t>& ids) { return Computed(ids, ARN_BACKEND_CPU); });
}

INSTANTIATE_TEST_SUITE_P(States, RandomSnapshotsTest, testing::ValuesIn(AllStateShapes()),
                         ShapeName);

}  // namespace
}  // namespace arn::test::snapshots

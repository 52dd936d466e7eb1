// Conversations that leave a scheduler's session and come back: what a sequence held is told before
// it goes, saved alone, restored beside others, and gone on from as if it had stayed.
#include <algorithm>
#include <cstring>
#include <map>

#include "tests/support/layer_shapes.h"
#include "tests/support/scheduler_support.h"

namespace arn::test {
namespace {

using State = std::vector<char>;

std::vector<int32_t> IdsOf(uint32_t seed, size_t n) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < n; ++i) {
    ids.push_back(static_cast<int32_t>((seed * 17 + i * (seed + 3)) % kVocab));
  }
  return ids;
}

arn_status Save(arn_scheduler* scheduler, uint32_t sequence, State* out) {
  uint64_t bytes = 0;
  const arn_status needed = arn_scheduler_save_sequence(scheduler, sequence, nullptr, 0, &bytes);
  if (needed != ARN_BUFFER_TOO_SMALL) return needed;
  out->resize(bytes);
  return arn_scheduler_save_sequence(scheduler, sequence, out->data(), bytes, &bytes);
}

arn_status Restore(arn_scheduler* scheduler, const State& state, uint32_t* sequence = nullptr) {
  return arn_scheduler_restore_sequence(scheduler, state.data(), state.size(), nullptr, sequence);
}

// A scheduler that saves what it drops, by the first id.
struct Keeping {
  SessionPtr session;
  SchedulerPtr scheduler;
  std::map<int32_t, State> states;

  Keeping(const arn_model* model, const arn_session_options& options)
      : session(NewSession(model, options)) {
    arn_scheduler_options made = ARN_SCHEDULER_OPTIONS_INIT;
    made.on_drop = OnDrop;
    made.user = this;
    arn_scheduler* raw = nullptr;
    EXPECT_EQ(ARN_OK, arn_scheduler_create(session.get(), &made, nullptr, 0, &raw));
    scheduler.reset(raw);
  }

  static void OnDrop(void* user, uint32_t sequence) {
    auto& self = *static_cast<Keeping*>(user);
    const int32_t* ids = nullptr;
    uint32_t n = 0;
    EXPECT_EQ(ARN_OK, arn_session_select(self.session.get(), sequence));
    EXPECT_EQ(ARN_OK, arn_session_tokens(self.session.get(), &ids, &n));
    ASSERT_NE(0u, n);
    EXPECT_EQ(ARN_OK, Save(self.scheduler.get(), sequence, &self.states[ids[0]]))
        << arn_scheduler_last_error(self.scheduler.get());
  }

  // Runs one request to its end.
  Asked Run(std::vector<int32_t> prompt, uint32_t max_tokens = 10) {
    Asked asked;
    asked.prompt = std::move(prompt);
    asked.max_tokens = max_tokens;
    EXPECT_EQ(ARN_OK, Submit(scheduler.get(), &asked));
    RunToEnd(scheduler.get());
    return asked;
  }
};

std::vector<int32_t> NextTurn(const Asked& before) {
  std::vector<int32_t> ids = before.prompt;
  ids.insert(ids.end(), before.tokens.begin(), before.tokens.end());
  for (const int32_t id : IdsOf(2, 6)) ids.push_back(id);
  return ids;
}

struct KeepCase {
  Shape shape;
  uint32_t kv;
};
void PrintTo(const KeepCase& c, std::ostream* out) { *out << c.shape.name << " " << c.kv; }

class SchedulerKeepTest : public testing::TestWithParam<KeepCase> {};

TEST_P(SchedulerKeepTest, Conversations_GoOnAsIfTheyHadStayed) {
  const BundleBytes bytes = Bundle(DType::kF16, GetParam().shape.layers);
  const ModelPtr model = OpenBytes(bytes);
  const arn_session_options options = Options(2, GetParam().kv);
  Keeping keeping(model.get(), options);
  std::vector<Asked> first;
  for (uint32_t i = 0; i < 5; ++i) first.push_back(keeping.Run(IdsOf(3 + i, 20 + 3 * i)));
  EXPECT_EQ(3u, keeping.states.size());
  // Each comes back, and another one goes for it.
  for (const Asked& asked : first) {
    const State& state = keeping.states[asked.prompt[0]];
    if (!state.empty()) {
      ASSERT_EQ(ARN_OK, Restore(keeping.scheduler.get(), state))
          << arn_scheduler_last_error(keeping.scheduler.get());
    }
    const Asked next = keeping.Run(NextTurn(asked));
    EXPECT_EQ(asked.prompt.size() + asked.tokens.size() - 1, next.n_kept);
    CheckAsAlone(model.get(), options, next);
  }
}

std::vector<KeepCase> KeepCases() {
  std::vector<KeepCase> cases;
  for (const Shape& shape : Shapes()) {
    const std::string name = shape.name;
    for (const char* wanted : {"full", "window_and_full", "odd_chunks_and_full", "shared_window"}) {
      if (name == wanted) cases.push_back({shape, ARN_KV_F16});
    }
    if (name == "full") cases.push_back({shape, ARN_KV_INT8});
  }
  for (const std::vector<Shape>& more : {StateShapes(), LinearShapes()}) {
    for (const Shape& shape : more) {
      const std::string name = shape.name;
      if (name == "scans_and_full" || name == "delta_rules_and_full") {
        cases.push_back({shape, ARN_KV_F16});
      }
    }
  }
  return cases;
}
std::string KeepName(const testing::TestParamInfo<KeepCase>& info) {
  return std::string(info.param.shape.name) + "_" + std::to_string(info.param.kv);
}
INSTANTIATE_TEST_SUITE_P(Layers, SchedulerKeepTest, testing::ValuesIn(KeepCases()), KeepName);

class SchedulerKeepOneTest : public testing::Test {
 protected:
  SchedulerKeepOneTest() : bytes_(Bundle(DType::kF16, {{}, {}})), model_(OpenBytes(bytes_)) {}

  BundleBytes bytes_;
  ModelPtr model_;
};

// Beside running requests, whose pages are theirs.
TEST_F(SchedulerKeepOneTest, RunningRequests_AreNotDisturbed) {
  arn_session_options options = Options(3);
  options.kv_tokens = 2 * kContext;
  Keeping keeping(model_.get(), options);
  const Asked kept = keeping.Run(IdsOf(3, 40));
  State state;
  ASSERT_EQ(ARN_OK, Save(keeping.scheduler.get(), 0, &state));
  Asked running;
  running.prompt = IdsOf(5, 30);
  running.max_tokens = 60;
  ASSERT_EQ(ARN_OK, Submit(keeping.scheduler.get(), &running));
  Step(keeping.scheduler.get());
  TakeEvents(keeping.scheduler.get());
  uint64_t bytes = 0;
  const uint32_t busy =
      arn_scheduler_request_of(keeping.scheduler.get(), 0) == running.number ? 0 : 1;
  EXPECT_EQ(ARN_BAD_STATE,
            arn_scheduler_save_sequence(keeping.scheduler.get(), busy, nullptr, 0, &bytes));
  uint32_t sequence = busy;
  EXPECT_EQ(ARN_OK, Restore(keeping.scheduler.get(), state, &sequence))
      << arn_scheduler_last_error(keeping.scheduler.get());
  EXPECT_NE(busy, sequence);
  RunToEnd(keeping.scheduler.get());
  CheckAsAlone(model_.get(), options, running);
  // Requests that have all pages leave none to restore to.
  Asked first, second;
  first.prompt = IdsOf(6, 50);
  second.prompt = IdsOf(7, 50);
  ASSERT_EQ(ARN_OK, Submit(keeping.scheduler.get(), &first));
  ASSERT_EQ(ARN_OK, Submit(keeping.scheduler.get(), &second));
  Step(keeping.scheduler.get());
  TakeEvents(keeping.scheduler.get());
  EXPECT_EQ(ARN_CONTEXT_FULL, Restore(keeping.scheduler.get(), state));
  RunToEnd(keeping.scheduler.get());
  CheckAsAlone(model_.get(), options, first);
  CheckAsAlone(model_.get(), options, second);
}

TEST_F(SchedulerKeepOneTest, Damage_ChangesNothing) {
  const arn_session_options options = Options(2);
  Keeping keeping(model_.get(), options);
  const Asked kept = keeping.Run(IdsOf(3, 40));
  State state;
  ASSERT_EQ(ARN_OK, Save(keeping.scheduler.get(), 0, &state));
  EXPECT_EQ(ARN_NOT_FOUND, Save(keeping.scheduler.get(), 1, &state));
  EXPECT_EQ(ARN_BAD_ARGUMENT, Save(keeping.scheduler.get(), 2, &state));
  EXPECT_EQ(ARN_BAD_SAVE, Restore(keeping.scheduler.get(), State(state.begin(), state.end() - 64)));
  State damaged = state;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  EXPECT_EQ(ARN_HASH_MISMATCH, Restore(keeping.scheduler.get(), damaged));
  // A state of two sequences.
  uint64_t bytes = 0;
  keeping.Run(IdsOf(5, 20));
  ASSERT_EQ(ARN_BUFFER_TOO_SMALL,
            arn_session_save_memory(keeping.session.get(), nullptr, 0, &bytes));
  State both(bytes);
  ASSERT_EQ(ARN_OK,
            arn_session_save_memory(keeping.session.get(), both.data(), both.size(), &bytes));
  EXPECT_EQ(ARN_UNSUPPORTED, Restore(keeping.scheduler.get(), both));
  EXPECT_TRUE(keeping.states.empty());
  const Asked next = keeping.Run(NextTurn(kept));
  EXPECT_EQ(kept.prompt.size() + kept.tokens.size() - 1, next.n_kept);
  CheckAsAlone(model_.get(), options, next);
}

// Into a session that holds nothing.
TEST_F(SchedulerKeepOneTest, NewSession_GoesOn) {
  const arn_session_options options = Options(2);
  State state;
  Asked kept;
  {
    Keeping keeping(model_.get(), options);
    kept = keeping.Run(IdsOf(3, 40));
    ASSERT_EQ(ARN_OK, Save(keeping.scheduler.get(), 0, &state));
  }
  Keeping later(model_.get(), options);
  ASSERT_EQ(ARN_OK, Restore(later.scheduler.get(), state))
      << arn_scheduler_last_error(later.scheduler.get());
  const Asked next = later.Run(NextTurn(kept));
  EXPECT_EQ(kept.prompt.size() + kept.tokens.size() - 1, next.n_kept);
  CheckAsAlone(model_.get(), options, next);
}

// The state of one sequence is one that sessions restore, too.
TEST_F(SchedulerKeepOneTest, State_IsOneOfASession) {
  Keeping keeping(model_.get(), Options(2));
  keeping.Run(IdsOf(4, 10));
  const Asked kept = keeping.Run(IdsOf(3, 40));
  State state;
  ASSERT_EQ(ARN_OK, Save(keeping.scheduler.get(), 1, &state));
  arn_session_options options = Options(1);
  options.max_requests = 0;
  const SessionPtr alone = NewSession(model_.get(), options);
  ASSERT_EQ(ARN_OK, arn_session_restore_memory(alone.get(), state.data(), state.size(), nullptr));
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  ASSERT_EQ(ARN_OK, arn_session_tokens(alone.get(), &ids, &n));
  std::vector<int32_t> expected = kept.prompt;
  expected.insert(expected.end(), kept.tokens.begin(), kept.tokens.end() - 1);
  EXPECT_EQ(expected, std::vector<int32_t>(ids, ids + n));
}

}  // namespace
}  // namespace arn::test

// Constraints that are compiled beside a scheduler's steps: requests under them get the tokens that
// they get with constraints of their own, and no step waits for a compilation.
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

constexpr uint64_t kBytes = 1 << 20;
constexpr const char* kSchema = R"({"type": "object", "properties": {
  "name": {"type": "string", "maxLength": 12}, "legs": {"enum": [2, 4, 6]}},
  "required": ["name", "legs"], "additionalProperties": false})";

arn_constraint_options SchemaOptions(const char* text) {
  arn_constraint_options options = ARN_CONSTRAINT_OPTIONS_INIT;
  options.kind = ARN_CONSTRAINT_JSON_SCHEMA;
  options.text = text;
  options.text_bytes = std::strlen(text);
  return options;
}

struct Compiled {
  arn_constraint* constraint = nullptr;
  arn_status status = ARN_OK;
  char error[512] = "";

  Compiled(const arn_scheduler* scheduler, const char* schema) {
    const arn_constraint_options options = SchemaOptions(schema);
    status = arn_scheduler_compile_constraint(scheduler, &options, nullptr, kBytes, error,
                                              sizeof error, &constraint);
  }
  ~Compiled() { arn_constraint_destroy(constraint); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
};

struct Reply {
  std::vector<int32_t> ids;
  bool has_ended = false;
};

class SchedulerCompileTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!HasConverter()) return;
    folder_ = new TempFolder();
    const std::string bundle = (*folder_ / "fable.arn").string();
    ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle, {"--weights", "f16"}));
    model_ = OpenModel(bundle).release();
  }
  static void TearDownTestSuite() {
    arn_model_close(model_);
    delete folder_;
  }
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    ASSERT_NE(nullptr, model_);
    ids_ = Tokenize(model_, "Once upon a time, a fox", ARN_TOKENIZE_DEFAULT);
    Open(kBytes);
  }
  void TearDown() override { arn_scheduler_destroy(scheduler_); }

  void Open(uint64_t constraint_bytes) {
    arn_scheduler_destroy(scheduler_);
    scheduler_ = nullptr;
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.context_tokens = 192;
    options.max_sequences = 3;
    options.max_requests = 3;
    options.constraint_bytes = constraint_bytes;
    session_ = NewSession(model_, options);
    ASSERT_EQ(ARN_OK, arn_scheduler_create(session_.get(), nullptr, nullptr, 0, &scheduler_));
  }

  uint64_t Submit(uint64_t seed, Reply* reply, const char* schema = nullptr) {
    sampling_ = ARN_SAMPLING_INIT;
    sampling_.temperature = 1;
    sampling_.seed = seed;
    const arn_constraint_options constraint = SchemaOptions(schema == nullptr ? "" : schema);
    arn_request request = ARN_REQUEST_INIT;
    request.ids = ids_.data();
    request.n_ids = ids_.size();
    request.sampling = &sampling_;
    request.constraint = schema == nullptr ? nullptr : &constraint;
    request.max_tokens = 60;
    request.user = reply;
    uint64_t number = 0;
    EXPECT_EQ(ARN_OK, arn_scheduler_submit(scheduler_, &request, &number))
        << arn_scheduler_last_error(scheduler_);
    return number;
  }

  bool Step() {
    arn_step_result result = ARN_STEP_RESULT_INIT;
    EXPECT_EQ(ARN_OK, arn_scheduler_step(scheduler_, &result));
    n_put_off_ += result.n_put_off;
    arn_scheduler_event event = ARN_SCHEDULER_EVENT_INIT;
    while (arn_scheduler_next_event(scheduler_, &event) == ARN_OK) {
      auto& reply = *static_cast<Reply*>(event.user);
      if (event.kind == ARN_REQUEST_EVENT_TOKEN) reply.ids.push_back(event.id);
      if (event.kind == ARN_REQUEST_EVENT_ENDED) reply.has_ended = true;
      EXPECT_EQ(ARN_OK, event.status) << std::string(event.text, event.text_bytes);
    }
    return result.n_running + result.n_waiting != 0;
  }

  inline static TempFolder* folder_ = nullptr;
  inline static arn_model* model_ = nullptr;
  std::vector<int32_t> ids_;
  arn_sampling sampling_ = ARN_SAMPLING_INIT;
  SessionPtr session_;
  arn_scheduler* scheduler_ = nullptr;
  uint32_t n_put_off_ = 0;
};

// Two requests share the constraint, one of which has run some tokens without it.
TEST_F(SchedulerCompileTest, Replies_AreThoseUnderConstraintsOfTheirOwn) {
  Reply own;
  Submit(5, &own, kSchema);
  while (Step()) {
  }
  ASSERT_GT(own.ids.size(), 8u);
  const Compiled compiled(scheduler_, kSchema);
  ASSERT_EQ(ARN_OK, compiled.status) << compiled.error;
  Reply shared, later;
  const uint64_t first = Submit(5, &shared), second = Submit(6, &later);
  EXPECT_EQ(ARN_OK, arn_scheduler_set_constraint(scheduler_, first, compiled.constraint));
  EXPECT_EQ(ARN_BAD_STATE, arn_scheduler_set_constraint(scheduler_, first, compiled.constraint));
  while (later.ids.size() < 4) Step();
  EXPECT_EQ(ARN_OK, arn_scheduler_set_constraint(scheduler_, second, compiled.constraint));
  while (Step()) {
  }
  EXPECT_EQ(own.ids, shared.ids);
  char text[1024];
  size_t bytes = 0;
  const std::vector<int32_t> constrained(later.ids.begin() + 4, later.ids.end());
  ASSERT_EQ(ARN_OK, arn_detokenize(model_, constrained.data(), constrained.size(),
                                   ARN_DETOKENIZE_DEFAULT, text, sizeof text, &bytes));
  EXPECT_EQ(R"({"name":)", std::string(text, bytes).substr(0, 8));
  EXPECT_EQ(ARN_NOT_FOUND, arn_scheduler_set_constraint(scheduler_, first, compiled.constraint));
}

TEST_F(SchedulerCompileTest, OtherThreads_CompileBesideSteps) {
  Reply alone;
  Submit(5, &alone, kSchema);
  while (Step()) {
  }
  Reply free, constrained;
  Submit(9, &free);
  const uint64_t number = Submit(5, &constrained);
  EXPECT_EQ(ARN_OK, arn_scheduler_pause(scheduler_, number, 1));
  std::atomic<bool> is_done{false};
  std::unique_ptr<Compiled> compiled;
  std::thread other([&] {
    for (int i = 0; i < 3; ++i) compiled = std::make_unique<Compiled>(scheduler_, kSchema);
    is_done = true;
  });
  while (!is_done || !free.has_ended) Step();
  other.join();
  ASSERT_EQ(ARN_OK, compiled->status) << compiled->error;
  ASSERT_EQ(ARN_OK, arn_scheduler_set_constraint(scheduler_, number, compiled->constraint));
  ASSERT_EQ(ARN_OK, arn_scheduler_pause(scheduler_, number, 0));
  while (Step()) {
  }
  EXPECT_EQ(alone.ids, constrained.ids);
}

// Near its end a text has to be searched for one that has all that is sought: more work than a step
// may do for a constraint. The request sits steps out, and the other has a token in each.
TEST_F(SchedulerCompileTest, CostlyTokens_TakeSeveralSteps) {
  constexpr uint64_t kLarge = uint64_t{16} << 20;
  constexpr const char* kCostly = R"({"type": "string", "maxLength": 24, "allOf": [
    {"pattern": "ab"}, {"pattern": "cd"}, {"pattern": "ef"}, {"pattern": "gh"}, {"pattern": "ij"},
    {"pattern": "[0-9]"}, {"pattern": "[A-Z]"}]})";
  Open(kLarge);
  Reply costly, plain;
  Submit(5, &costly, kCostly);
  Submit(6, &plain);
  int n_waits = 0;
  while (!costly.has_ended) {
    const size_t n_costly = costly.ids.size(), n_plain = plain.ids.size();
    const bool was_running = n_plain != 0 && !plain.has_ended;
    n_put_off_ = 0;
    Step();
    EXPECT_TRUE(!was_running || plain.has_ended || plain.ids.size() > n_plain);
    if (n_costly == 0) continue;
    const bool waits = costly.ids.size() == n_costly && !costly.has_ended;
    EXPECT_EQ(waits ? 1u : 0u, n_put_off_);
    n_waits += waits ? 1 : 0;
  }
  EXPECT_GT(n_waits, 0);

  // A session works everything out at once.
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = 192;
  options.constraint_bytes = kLarge;
  const SessionPtr alone = NewSession(model_, options);
  const arn_constraint_options constraint = SchemaOptions(kCostly);
  ASSERT_EQ(ARN_OK, arn_session_prefill(alone.get(), ids_.data(), ids_.size()));
  ASSERT_EQ(ARN_OK, arn_session_set_constraint(alone.get(), &constraint))
      << arn_session_last_error(alone.get());
  sampling_.seed = 5;
  ASSERT_EQ(ARN_OK, arn_session_set_sampling(alone.get(), &sampling_));
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.max_tokens = 60;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  ASSERT_EQ(ARN_OK, arn_session_generate(alone.get(), &generate, &result))
      << arn_session_last_error(alone.get());
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  ASSERT_EQ(ARN_OK, arn_session_tokens(alone.get(), &ids, &n));
  ASSERT_GE(n, ids_.size() + costly.ids.size());
  EXPECT_EQ(costly.ids,
            std::vector<int32_t>(ids + ids_.size(), ids + ids_.size() + costly.ids.size()));
}

TEST_F(SchedulerCompileTest, Mistakes_AreNamed) {
  const Compiled bad(scheduler_, R"({"type": "nonsense"})");
  EXPECT_EQ(ARN_BAD_ARGUMENT, bad.status);
  EXPECT_NE(nullptr, std::strstr(bad.error, "#/type: unknown type")) << bad.error;
  arn_constraint_options options = SchemaOptions(kSchema);
  arn_constraint* alone = nullptr;
  ASSERT_EQ(ARN_OK, arn_constraint_create(model_, &options, nullptr, kBytes, nullptr, 0, &alone));
  Reply reply;
  const uint64_t number = Submit(5, &reply);
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_scheduler_set_constraint(scheduler_, number, alone));
  arn_constraint_destroy(alone);
  options.first = 3;
  char error[512] = "";
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_scheduler_compile_constraint(scheduler_, &options, nullptr, kBytes, error,
                                             sizeof error, &alone));
  EXPECT_NE(nullptr, std::strstr(error, "first is 3")) << error;
  EXPECT_EQ(nullptr, alone);
  Open(0);
  EXPECT_EQ(ARN_BAD_STATE, Compiled(scheduler_, kSchema).status);
}

}  // namespace
}  // namespace arn::test

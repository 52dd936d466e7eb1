// The scheduler on the trained model: each request's tokens, text and end are those of a session of
// its own, with constraints, stop strings and penalties, whatever else runs beside it.
#include <algorithm>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <utility>

#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

constexpr const char* kPersonSchema = R"({
  "type": "object",
  "properties": {"name": {"type": "string", "maxLength": 12}, "legs": {"enum": [2, 4, 6]},
                 "friends": {"type": "array", "maxItems": 3, "items": {"type": "string"}}},
  "required": ["name", "legs", "friends"], "additionalProperties": false
})";

struct TextRequest {
  std::string prompt;
  arn_sampling sampling = ARN_SAMPLING_INIT;
  uint32_t constraint_kind = ARN_CONSTRAINT_JSON_SCHEMA;
  std::string constraint;
  std::vector<std::string> stops;
  uint32_t max_tokens = 60;
  bool one_by_one = false;

  std::vector<int32_t> prompt_ids;  // filled in below
  std::vector<arn_stop_string> stop_list;

  void Fill(const arn_model* model) {
    stop_list.clear();
    prompt_ids = Tokenize(model, prompt, ARN_TOKENIZE_DEFAULT);
    for (const std::string& stop : stops) stop_list.push_back({stop.data(), stop.size()});
  }
  arn_constraint_options Constraint() const {
    arn_constraint_options options = ARN_CONSTRAINT_OPTIONS_INIT;
    options.kind = constraint_kind;
    options.text = constraint.data();
    options.text_bytes = constraint.size();
    return options;
  }
};

struct TextReply {
  std::vector<int32_t> ids;
  std::string text;
  uint32_t finish = ARN_FINISH_NONE;
  arn_status status = ARN_OK;
  std::string error;
};

arn_session_options FableOptions(uint32_t sequences) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.context_tokens = 192;
  options.max_sequences = sequences;
  options.constraint_bytes = 1 << 20;
  options.logits_processors = 1;
  options.prefill_chunk = 32;
  options.max_requests = sequences == 1 ? 0 : 32;
  return options;
}

TextReply GenerateAlone(const arn_model* model, const TextRequest& request) {
  const SessionPtr session = NewSession(model, FableOptions(1));
  TextReply reply;
  EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), request.prompt_ids.data(),
                                        request.prompt_ids.size()));
  EXPECT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &request.sampling));
  if (!request.constraint.empty()) {
    const arn_constraint_options options = request.Constraint();
    EXPECT_EQ(ARN_OK, arn_session_set_constraint(session.get(), &options))
        << arn_session_last_error(session.get());
  }
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = request.max_tokens;
  options.stops = request.stop_list.data();
  options.n_stops = request.stop_list.size();
  options.user = &reply;
  options.callback = [](void* user, int32_t id, const char* text, size_t bytes) {
    auto& to = *static_cast<TextReply*>(user);
    if (id >= 0) to.ids.push_back(id);
    to.text.append(text, bytes);
    return int32_t{0};
  };
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  EXPECT_EQ(ARN_OK, arn_session_generate(session.get(), &options, &result))
      << arn_session_last_error(session.get());
  reply.finish = result.finish;
  return reply;
}

class FableSchedulerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!HasConverter()) return;
    folder_ = new TempFolder();
    const std::string bundle = (*folder_ / "fable.arn").string();
    // A row of f16 weights has the same bits alone and among others on every CPU.
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
  }

  static uint64_t Submit(arn_scheduler* scheduler, const TextRequest& from, TextReply* reply,
                         bool waits = false) {
    const arn_constraint_options constraint = from.Constraint();
    arn_request request = ARN_REQUEST_INIT;
    request.ids = from.prompt_ids.data();
    request.n_ids = from.prompt_ids.size();
    request.sampling = &from.sampling;
    if (!from.constraint.empty()) request.constraint = &constraint;
    request.constraint_waits = waits ? 1 : 0;
    request.max_tokens = from.max_tokens;
    request.stops = from.stop_list.data();
    request.n_stops = from.stop_list.size();
    request.user = reply;
    request.one_by_one = from.one_by_one ? 1 : 0;
    uint64_t number = 0;
    EXPECT_EQ(ARN_OK, arn_scheduler_submit(scheduler, &request, &number))
        << arn_scheduler_last_error(scheduler);
    return number;
  }

  // Runs one step. Returns false if nothing is left.
  static bool Step(arn_scheduler* scheduler) {
    arn_step_result result = ARN_STEP_RESULT_INIT;
    EXPECT_EQ(ARN_OK, arn_scheduler_step(scheduler, &result))
        << arn_scheduler_last_error(scheduler);
    arn_scheduler_event event = ARN_SCHEDULER_EVENT_INIT;
    while (arn_scheduler_next_event(scheduler, &event) == ARN_OK) {
      auto& reply = *static_cast<TextReply*>(event.user);
      if (event.status != ARN_OK) {
        reply.error.assign(event.text, event.text_bytes);
      } else {
        reply.text.append(event.text, event.text_bytes);
      }
      if (event.kind == ARN_REQUEST_EVENT_TOKEN) reply.ids.push_back(event.id);
      if (event.kind == ARN_REQUEST_EVENT_ENDED) {
        reply.finish = event.finish;
        reply.status = event.status;
      }
    }
    return result.n_running + result.n_waiting != 0;
  }

  static std::vector<TextRequest> Requests() {
    std::vector<TextRequest> all;
    const auto add = [&](const char* prompt) -> TextRequest& {
      all.emplace_back();
      all.back().prompt = prompt;
      return all.back();
    };
    add("Once upon a time");
    TextRequest& story = add("Once upon a time, a little girl");
    story.sampling.temperature = 0.8f;
    story.sampling.seed = 7;
    story.stops = {"house", ". The"};
    TextRequest& person = add("Once upon a time, a fox");
    person.constraint = kPersonSchema;
    TextRequest& other = add("A fox: ");
    other.constraint = kPersonSchema;
    other.sampling.temperature = 1.2f;
    other.sampling.seed = 5;
    TextRequest& digits = add("The number is ");
    digits.constraint_kind = ARN_CONSTRAINT_REGEX;
    digits.constraint = "[0-9]{3}-[0-9]{2,4}( or [a-z]+)?";
    digits.sampling.temperature = 1.0f;
    TextRequest& penalised = add("The wind was loud, and");
    penalised.sampling.repetition_penalty = 1.4f;
    penalised.sampling.temperature = 0.7f;
    penalised.max_tokens = 150;
    TextRequest& cut = add("Once upon a time, a fox");
    cut.constraint = kPersonSchema;
    cut.max_tokens = 6;
    add("The end of the story.").max_tokens = 300;  // the context is full before
    for (TextRequest& request : all) request.Fill(model_);
    return all;
  }

  inline static TempFolder* folder_ = nullptr;
  inline static arn_model* model_ = nullptr;
};

TEST_F(FableSchedulerTest, Replies_AreThoseOfSessionsOfTheirOwn) {
  const std::vector<TextRequest> requests = Requests();
  std::vector<TextReply> alone;
  for (const TextRequest& request : requests) alone.push_back(GenerateAlone(model_, request));
  EXPECT_EQ(static_cast<uint32_t>(ARN_FINISH_STOP), alone[1].finish);
  EXPECT_EQ(static_cast<uint32_t>(ARN_FINISH_EOS), alone[4].finish);
  EXPECT_EQ(static_cast<uint32_t>(ARN_FINISH_LENGTH), alone[6].finish);
  uint64_t n_accepted = 0, n_proposed = 0;
  for (const auto& [rows, guesses] : std::initializer_list<std::pair<uint32_t, bool>>{
           {1, false}, {5, false}, {32, false}, {7, true}, {32, true}}) {
    for (const uint32_t sequences : {2u, 5u}) {
      arn_session_options session_options = FableOptions(sequences);
      if (guesses) session_options.speculation = ARN_SPECULATE_NGRAM;
      session_options.guess_always = guesses ? 1 : 0;
      const SessionPtr session = NewSession(model_, session_options);
      arn_scheduler_options options = ARN_SCHEDULER_OPTIONS_INIT;
      options.step_rows = rows;
      arn_scheduler* scheduler = nullptr;
      ASSERT_EQ(ARN_OK, arn_scheduler_create(session.get(), &options, nullptr, 0, &scheduler));
      std::vector<TextReply> replies(requests.size());
      for (size_t i = 0; i < requests.size(); ++i) {
        Submit(scheduler, requests[i], &replies[i]);
        Step(scheduler);
      }
      while (Step(scheduler)) {
      }
      for (size_t i = 0; i < requests.size(); ++i) {
        SCOPED_TRACE(requests[i].prompt + ", " + std::to_string(rows) + " rows" +
                     (guesses ? ", with guesses" : ""));
        EXPECT_EQ(ARN_OK, replies[i].status) << replies[i].error;
        EXPECT_EQ(alone[i].ids, replies[i].ids);
        EXPECT_EQ(alone[i].text, replies[i].text);
        EXPECT_EQ(alone[i].finish, replies[i].finish);
      }
      arn_scheduler_info info = ARN_SCHEDULER_INFO_INIT;
      ASSERT_EQ(ARN_OK, arn_scheduler_get_info(scheduler, &info));
      n_accepted += info.guesses_accepted;
      n_proposed += info.guesses_proposed;
      arn_scheduler_destroy(scheduler);
    }
  }
  EXPECT_GT(n_accepted, 20u);
  EXPECT_GT(n_proposed - n_accepted, 20u);
}

// Text that follows from a constraint comes at once, and is cut where the reply ends.
TEST_F(FableSchedulerTest, CertainText_ComesInOneStep) {
  for (const uint32_t max_tokens : {60u, 5u, 3u}) {
    for (const bool has_stop : {false, true}) {
      TextRequest request = Requests()[2];
      request.max_tokens = max_tokens;
      if (has_stop) request.stops = {"me\":"};
      request.Fill(model_);
      const TextReply alone = GenerateAlone(model_, request);
      uint32_t n_steps[2] = {};
      for (const bool one_by_one : {false, true}) {
        SCOPED_TRACE(max_tokens);
        request.one_by_one = one_by_one;
        const SessionPtr session = NewSession(model_, FableOptions(2));
        arn_scheduler* scheduler = nullptr;
        ASSERT_EQ(ARN_OK, arn_scheduler_create(session.get(), nullptr, nullptr, 0, &scheduler));
        TextReply reply;
        Submit(scheduler, request, &reply);
        size_t most = 0;
        for (bool goes_on = true; goes_on; ++n_steps[one_by_one ? 1 : 0]) {
          const size_t before = reply.ids.size();
          goes_on = Step(scheduler);
          most = std::max(most, reply.ids.size() - before);
        }
        EXPECT_EQ(alone.ids, reply.ids);
        EXPECT_EQ(alone.text, reply.text);
        EXPECT_EQ(alone.finish, reply.finish);
        EXPECT_EQ(one_by_one, most == 1);
        arn_scheduler_destroy(scheduler);
      }
      EXPECT_LT(n_steps[0], n_steps[1]);
    }
  }
}

// A mistake in a constraint ends its own request, with the reason.
TEST_F(FableSchedulerTest, BadConstraint_EndsItsRequestOnly) {
  std::vector<TextRequest> requests = Requests();
  requests.resize(2);
  TextRequest bad = requests[0];
  bad.constraint = R"({"type": "nonsense"})";
  const SessionPtr session = NewSession(model_, FableOptions(3));
  arn_scheduler* scheduler = nullptr;
  ASSERT_EQ(ARN_OK, arn_scheduler_create(session.get(), nullptr, nullptr, 0, &scheduler));
  std::vector<TextReply> replies(3);
  Submit(scheduler, requests[0], &replies[0]);
  Submit(scheduler, bad, &replies[1]);
  Submit(scheduler, requests[1], &replies[2]);
  while (Step(scheduler)) {
  }
  EXPECT_EQ(ARN_BAD_ARGUMENT, replies[1].status);
  EXPECT_NE(std::string::npos, replies[1].error.find("#/type: unknown type")) << replies[1].error;
  EXPECT_TRUE(replies[1].ids.empty());
  EXPECT_EQ(GenerateAlone(model_, requests[0]).text, replies[0].text);
  EXPECT_EQ(GenerateAlone(model_, requests[1]).text, replies[2].text);
  arn_scheduler_destroy(scheduler);
}

// A constraint that waits leaves the reply free until it begins: from there on the text is that of
// a constraint set between the two tokens.
TEST_F(FableSchedulerTest, ConstraintThatWaits_BeginsWhereItIsTold) {
  constexpr uint32_t kFree = 9;
  TextRequest request = Requests()[2];
  const SessionPtr alone = NewSession(model_, FableOptions(1));
  TextReply expected;
  ASSERT_EQ(ARN_OK,
            arn_session_prefill(alone.get(), request.prompt_ids.data(), request.prompt_ids.size()));
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.user = &expected.ids;
  generate.callback = [](void* user, int32_t id, const char*, size_t) {
    if (id >= 0) static_cast<std::vector<int32_t>*>(user)->push_back(id);
    return int32_t{0};
  };
  generate.max_tokens = kFree;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  ASSERT_EQ(ARN_OK, arn_session_generate(alone.get(), &generate, &result));
  const arn_constraint_options constraint = request.Constraint();
  ASSERT_EQ(ARN_OK, arn_session_set_constraint(alone.get(), &constraint));
  generate.max_tokens = request.max_tokens - kFree;
  ASSERT_EQ(ARN_OK, arn_session_generate(alone.get(), &generate, &result));

  const SessionPtr session = NewSession(model_, FableOptions(2));
  arn_scheduler* scheduler = nullptr;
  ASSERT_EQ(ARN_OK, arn_scheduler_create(session.get(), nullptr, nullptr, 0, &scheduler));
  TextReply reply;
  const uint64_t number = Submit(scheduler, request, &reply, true);
  while (reply.ids.size() < kFree) Step(scheduler);
  EXPECT_EQ(ARN_OK, arn_scheduler_begin_constraint(scheduler, number));
  EXPECT_EQ(ARN_BAD_STATE, arn_scheduler_begin_constraint(scheduler, number));
  while (Step(scheduler)) {
  }
  EXPECT_EQ(expected.ids, reply.ids);
  EXPECT_EQ(result.finish, reply.finish);
  arn_scheduler_destroy(scheduler);
}

// Forced tokens come before the first token of a constraint that begins at the same time.
TEST_F(FableSchedulerTest, ForcedTokens_ComeBeforeTheConstraint) {
  TextRequest request = Requests()[4];  // digits
  const std::vector<int32_t> forced = Tokenize(model_, " a, b, c:", ARN_TOKENIZE_NO_SPECIAL);
  const SessionPtr session = NewSession(model_, FableOptions(2));
  arn_scheduler* scheduler = nullptr;
  ASSERT_EQ(ARN_OK, arn_scheduler_create(session.get(), nullptr, nullptr, 0, &scheduler));
  TextReply reply;
  const uint64_t number = Submit(scheduler, request, &reply, true);
  while (reply.ids.size() < 3) Step(scheduler);
  ASSERT_EQ(ARN_OK, arn_scheduler_force(scheduler, number, forced.data(), forced.size()));
  ASSERT_EQ(ARN_OK, arn_scheduler_begin_constraint(scheduler, number));
  while (Step(scheduler)) {
  }
  ASSERT_EQ(ARN_OK, reply.status) << reply.error;
  const size_t at = reply.text.find(" a, b, c:");
  ASSERT_NE(std::string::npos, at) << reply.text;
  EXPECT_EQ(at + 9, reply.text.find_first_of("0123456789", at)) << reply.text;
  EXPECT_EQ(static_cast<uint32_t>(ARN_FINISH_EOS), reply.finish);
  arn_scheduler_destroy(scheduler);
}

// More constrained requests than constraints: they wait for each other.
TEST_F(FableSchedulerTest, TooFewConstraints_AreWaitedFor) {
  arn_session_options options = FableOptions(4);
  options.max_constraints = 1;
  const SessionPtr session = NewSession(model_, options);
  // What the session had before does not take their place.
  const std::vector<TextRequest> requests = Requests();
  const arn_constraint_options own = requests[2].Constraint();
  ASSERT_EQ(ARN_OK, arn_session_set_constraint(session.get(), &own));
  arn_scheduler* scheduler = nullptr;
  ASSERT_EQ(ARN_OK, arn_scheduler_create(session.get(), nullptr, nullptr, 0, &scheduler));
  std::vector<TextReply> replies(3);
  for (size_t i = 0; i < 3; ++i) Submit(scheduler, requests[2 + i], &replies[i]);
  while (Step(scheduler)) {
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(GenerateAlone(model_, requests[2 + i]).text, replies[i].text) << replies[i].error;
  }
  arn_scheduler_destroy(scheduler);
}

}  // namespace
}  // namespace arn::test

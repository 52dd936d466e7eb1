// Speculation on the trained model: text, tokens and log-probabilities are those without it, with
// stop strings, constraints, penalties, windows of a shifted context and every type of KV; by
// n-grams, and by a draft model, which is the same checkpoint in other weights.
#include <cstring>
#include <fstream>
#include <optional>

#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

constexpr const char* kSchema = R"({
  "type": "object",
  "properties": {
    "animals": {"type": "array", "minItems": 3, "maxItems": 6, "items": {
      "type": "object",
      "properties": {"name": {"type": "string", "maxLength": 9}, "legs": {"enum": [2, 4, 6]}},
      "required": ["name", "legs"], "additionalProperties": false}}
  },
  "required": ["animals"], "additionalProperties": false
})";

struct Request {
  std::string name;
  arn_session_options session = ARN_SESSION_OPTIONS_INIT;
  std::optional<arn_sampling> sampling;
  const char* schema = nullptr;
  std::vector<std::string> stops;
  uint32_t max_tokens = 250;
  bool wants_logprobs = true;
};

// All that a program sees of a text.
struct Seen {
  const arn_session* session = nullptr;
  std::vector<int32_t> ids;
  std::vector<float> logprobs;
  bool wants_logprobs = true;
  std::vector<std::string> pieces;
  uint32_t finish = 0, n_tokens = 0;
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
};

int32_t OnToken(void* user, int32_t id, const char* text, size_t bytes) {
  Seen& seen = *static_cast<Seen*>(user);
  seen.ids.push_back(id);
  seen.pieces.emplace_back(text, bytes);
  if (id < 0 || !seen.wants_logprobs) return 0;
  float logprob = 0;
  arn_token_logprob top[2];
  EXPECT_EQ(ARN_OK, arn_session_logprobs(seen.session, id, 2, top, &logprob));
  seen.logprobs.push_back(logprob);
  seen.logprobs.push_back(top[1].logprob);
  return 0;
}

class SpeculationTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!HasConverter()) return;
    folder_ = new TempFolder();
    const std::string bundle = (*folder_ / "fable.arn").string();
    ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), bundle, {"--weights", "int4"}));
    model_ = OpenModel(bundle).release();
    const std::string draft = (*folder_ / "draft.arn").string();
    ASSERT_TRUE(Convert(SourcePath("models/fable/fable-2m"), draft, {"--weights", "int8"}));
    draft_ = OpenModel(draft).release();
  }
  static void TearDownTestSuite() {
    arn_model_close(model_);
    arn_model_close(draft_);
    delete folder_;
  }
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    ASSERT_NE(nullptr, model_);
  }

  // The beginning of the held-out text, repeated in part.
  static std::vector<int32_t> Prompt() {
    const std::string text = ReadText(SourcePath("models/fable/heldout.txt")).substr(0, 400);
    return Tokenize(model_, text + "\n" + text.substr(0, 120), 0);
  }

  static Seen Generate(const Request& request, uint32_t speculation) {
    Seen seen;
    arn_session_options options = request.session;
    options.speculation = speculation;
    if (speculation >= ARN_SPECULATE_DRAFT) options.draft = draft_;
    options.guess_always = speculation == ARN_SPECULATE_NONE ? 0 : 1;
    const SessionPtr session = NewSession(model_, options);
    if (session == nullptr) return seen;
    seen.session = session.get();
    seen.wants_logprobs = request.wants_logprobs;
    const std::vector<int32_t> prompt = Prompt();
    EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
    if (request.sampling) {
      EXPECT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &*request.sampling));
    }
    if (request.schema != nullptr) {
      arn_constraint_options constraint = ARN_CONSTRAINT_OPTIONS_INIT;
      constraint.kind = ARN_CONSTRAINT_JSON_SCHEMA;
      constraint.text = request.schema;
      constraint.text_bytes = std::strlen(request.schema);
      EXPECT_EQ(ARN_OK, arn_session_set_constraint(session.get(), &constraint))
          << arn_session_last_error(session.get());
    }
    std::vector<arn_stop_string> stops;
    for (const std::string& stop : request.stops) stops.push_back({stop.data(), stop.size()});
    arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
    generate.max_tokens = request.max_tokens;
    generate.ignore_eos = request.schema == nullptr && request.stops.empty() ? 1 : 0;
    generate.stops = stops.data();
    generate.n_stops = stops.size();
    generate.callback = OnToken;
    generate.with_logprobs = request.wants_logprobs ? 1 : 0;
    generate.user = &seen;
    arn_generate_result result = ARN_GENERATE_RESULT_INIT;
    EXPECT_EQ(ARN_OK, arn_session_generate(session.get(), &generate, &result))
        << arn_session_last_error(session.get());
    seen.finish = result.finish;
    seen.n_tokens = result.n_tokens;
    EXPECT_EQ(ARN_OK, arn_session_stats(session.get(), &seen.stats));
    // What comes next shows that random numbers and logits are where they would be.
    int32_t id = 0;
    for (int i = 0; i < 5 && request.schema == nullptr; ++i) {
      EXPECT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
      seen.ids.push_back(id);
    }
    return seen;
  }

  static void ExpectSame(const Request& request) {
    SCOPED_TRACE(request.name);
    const Seen plain = Generate(request, ARN_SPECULATE_NONE);
    for (const uint32_t speculation : {ARN_SPECULATE_NGRAM, ARN_SPECULATE_DRAFT}) {
      SCOPED_TRACE(speculation);
      const Seen guessing = Generate(request, speculation);
      EXPECT_EQ(plain.ids, guessing.ids);
      EXPECT_EQ(plain.pieces, guessing.pieces);
      EXPECT_EQ(plain.logprobs, guessing.logprobs);
      EXPECT_EQ(plain.finish, guessing.finish);
      EXPECT_EQ(plain.n_tokens, guessing.n_tokens);
      EXPECT_GT(guessing.stats.guess_runs, 0u);
      EXPECT_GT(guessing.stats.guesses_proposed, guessing.stats.guesses_accepted);
    }
  }

  static Request Named(const std::string& name) {
    Request request;
    request.name = name;
    request.session.context_tokens = 512;
    request.session.n_threads = 2;
    return request;
  }

  static TempFolder* folder_;
  static arn_model* model_;
  static arn_model* draft_;
};
TempFolder* SpeculationTest::folder_ = nullptr;
arn_model* SpeculationTest::model_ = nullptr;
arn_model* SpeculationTest::draft_ = nullptr;

TEST_F(SpeculationTest, Greedy_EveryKvType_TheSameText) {
  for (const uint32_t kv : {ARN_KV_F32, ARN_KV_F16, ARN_KV_INT8, ARN_KV_INT4, ARN_KV_INT2}) {
    Request request = Named(arn_kv_type_name(kv));
    request.session.kv_type = kv;
    ExpectSame(request);
  }
}

TEST_F(SpeculationTest, SampledWithPenalties_TheSameText) {
  for (const uint64_t seed : {1u, 2u, 3u, 4u}) {
    Request request = Named("seed " + std::to_string(seed));
    request.session.logits_processors = 1;
    request.sampling = ARN_SAMPLING_INIT;
    request.sampling->temperature = seed % 2 == 0 ? 0.8f : 0.3f;
    request.sampling->seed = seed;
    if (seed > 2) request.sampling->repetition_penalty = 1.2f;
    if (seed > 2) request.sampling->top_p = 0.9f;
    ExpectSame(request);
  }
}

TEST_F(SpeculationTest, StopString_TheSameTextAndEnd) {
  Request request = Named("stop");
  request.stops = {" lived", " together", "the end of", "\n\n"};
  ExpectSame(request);
}

TEST_F(SpeculationTest, ContextShift_TheSameText) {
  Request request = Named("shift");
  request.session.context_tokens = 256;
  request.session.overflow = ARN_OVERFLOW_SHIFT;
  request.session.pinned_tokens = 32;
  request.max_tokens = 400;
  ExpectSame(request);
}

// Rounding of the weights changes a token now and then.
TEST_F(SpeculationTest, Draft_IsRightAlmostAlways) {
  const Seen seen = Generate(Named("greedy"), ARN_SPECULATE_DRAFT);
  EXPECT_GT(seen.stats.guesses_accepted, 150u);
  EXPECT_GT(seen.stats.draft_ns, 0u);
}

TEST_F(SpeculationTest, DraftWithAnotherToken_IsRefusedByName) {
  TempFolder folder;
  for (const char* name : {"config.json", "model.safetensors", "tokenizer_config.json"}) {
    std::filesystem::copy_file(SourcePath("models/fable/fable-2m") / name, folder / name);
  }
  nlohmann::json tokenizer =
      nlohmann::json::parse(ReadText(SourcePath("models/fable/fable-2m/tokenizer.json")));
  nlohmann::json& vocab = tokenizer["model"]["vocab"];
  const int32_t a = vocab["a"], b = vocab["b"];
  ASSERT_LT(a, b);
  std::swap(vocab["a"], vocab["b"]);
  std::ofstream(folder / "tokenizer.json") << tokenizer.dump();
  const std::string bundle = (folder / "other.arn").string();
  ASSERT_TRUE(Convert(folder.path(), bundle, {}));
  const ModelPtr other = OpenModel(bundle);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.speculation = ARN_SPECULATE_DRAFT;
  options.draft = other.get();
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  char error[512];
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_plan(model_, &options, error, sizeof error, &plan));
  EXPECT_EQ("the draft model has another vocabulary: its token " + std::to_string(a) +
                " is 'b', that of the model 'a'",
            std::string(error));
}

// Guesses are cut where the constraint forbids them, and the text that must follow needs fewer
// runs.
TEST_F(SpeculationTest, Constraint_TheSameTextInFewerRuns) {
  for (const float temperature : {0.0f, 0.9f}) {
    Request request = Named("temperature " + std::to_string(temperature));
    request.session.constraint_bytes = 4 << 20;
    request.schema = kSchema;
    request.sampling = ARN_SAMPLING_INIT;
    request.sampling->temperature = temperature;
    request.sampling->seed = 5;
    SCOPED_TRACE(request.name);
    // Each forced token has its own log-probability.
    EXPECT_EQ(Generate(request, ARN_SPECULATE_NONE).logprobs,
              Generate(request, ARN_SPECULATE_NGRAM).logprobs);
    request.wants_logprobs = false;
    const Seen plain = Generate(request, ARN_SPECULATE_NONE);
    const Seen guessing = Generate(request, ARN_SPECULATE_NGRAM);
    EXPECT_EQ(plain.ids, guessing.ids);
    EXPECT_EQ(plain.pieces, guessing.pieces);
    EXPECT_EQ(plain.finish, guessing.finish);
    EXPECT_EQ(plain.n_tokens, guessing.n_tokens);
    EXPECT_GT(guessing.stats.guesses_accepted, 10u);
    // A run reads all weights once.
    EXPECT_LT(guessing.stats.weight_bytes_read, plain.stats.weight_bytes_read * 9 / 10);
  }
}

}  // namespace
}  // namespace arn::test

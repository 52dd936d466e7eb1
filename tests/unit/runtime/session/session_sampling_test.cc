// Sampling options in a session: what they need, whose history they see, and that it goes along
// with forks, rewinds and saved states. The formulas are tested in sampling/processors_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "tests/support/session_support.h"
#include "tests/support/state_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;
constexpr int32_t kEos = 2;

uint32_t Bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

class SessionSamplingTest : public testing::Test {
 protected:
  SessionSamplingTest() : bytes_(MakeTinyBundle(TinyBundle())), model_(OpenBytes(bytes_)) {}

  static arn_session_options Options(uint32_t sequences = 1) {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.n_threads = 1;
    options.context_tokens = 96;
    options.kv_page_tokens = 8;
    options.max_sequences = sequences;
    options.logits_processors = 1;
    options.sampling_words = 16;
    return options;
  }

  SessionPtr Make(const arn_sampling& sampling, uint32_t sequences = 1) {
    SessionPtr session = NewSession(model_.get(), Options(sequences));
    EXPECT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &sampling))
        << arn_session_last_error(session.get());
    Prefill(session.get(), SomeIds(12, kVocab));
    return session;
  }

  static void Prefill(arn_session* session, const std::vector<int32_t>& ids) {
    EXPECT_EQ(ARN_OK, arn_session_prefill(session, ids.data(), ids.size()));
  }

  static std::vector<int32_t> Generate(arn_session* session, uint32_t max_tokens,
                                       uint32_t* finish = nullptr) {
    std::vector<int32_t> ids;
    arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
    options.max_tokens = max_tokens;
    options.user = &ids;
    options.callback = [](void* user, int32_t id, const char*, size_t) {
      if (id >= 0) static_cast<std::vector<int32_t>*>(user)->push_back(id);
      return 0;
    };
    arn_generate_result result = ARN_GENERATE_RESULT_INIT;
    EXPECT_EQ(ARN_OK, arn_session_generate(session, &options, &result))
        << arn_session_last_error(session);
    if (finish != nullptr) *finish = result.finish;
    return ids;
  }

  BundleBytes bytes_;
  ModelPtr model_;
};

arn_sampling Penalties(float temperature = 0.0f) {
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = temperature;
  sampling.seed = 3;
  sampling.frequency_penalty = 0.5f;
  sampling.repetition_penalty = 1.3f;
  sampling.no_repeat_ngram_size = 3;
  return sampling;
}

TEST_F(SessionSamplingTest, WithoutMemoryForThem_ProcessorsAreRefused) {
  arn_session_options options = Options();
  options.logits_processors = 0;
  const SessionPtr session = NewSession(model_.get(), options);
  const arn_sampling sampling = Penalties();
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_set_sampling(session.get(), &sampling));
  EXPECT_STREQ("repetition_penalty changes logits: create the session with logits_processors = 1",
               arn_session_last_error(session.get()));
  options.logits_processors = 2;
  arn_session* none = nullptr;
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_session_create(model_.get(), &options, nullptr, 0, nullptr, 0, &none));
}

// The plan counts what the options reserve, and nothing more.
TEST_F(SessionSamplingTest, Plan_CountsWhatIsReserved) {
  TinyBundle tiny;
  tiny.vocab = 40000;
  const BundleBytes bytes = MakeTinyBundle(tiny);
  const ModelPtr model = OpenBytes(bytes);
  const auto io = [&](uint32_t processors, uint32_t words) {
    arn_session_options options = Options(3);
    options.logits_processors = processors;
    options.sampling_words = words;
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    EXPECT_EQ(ARN_OK, arn_session_plan(model.get(), &options, nullptr, 0, &plan));
    return static_cast<double>(plan.io_bytes);
  };
  constexpr double kRounding = 16384;  // of a region
  EXPECT_NEAR(io(0, 0) + 2 * 40000 * 4, io(1, 0), kRounding);
  EXPECT_NEAR(io(0, 0) + 4 * 100000 * 4, io(0, 100000), kRounding);
}

TEST_F(SessionSamplingTest, Penalties_SeeThePromptAndWhatWasGenerated) {
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.presence_penalty = 1000.0f;
  const SessionPtr session = Make(sampling);
  const std::vector<int32_t> prompt = SomeIds(12, kVocab);
  std::set<int32_t> seen(prompt.begin(), prompt.end());
  for (const int32_t id : Decode(session.get(), 40)) EXPECT_TRUE(seen.insert(id).second) << id;
}

// Logits that the caller reads are the model's.
TEST_F(SessionSamplingTest, Logits_AreNotChanged) {
  const SessionPtr session = Make(Penalties());
  arn_sampling off = ARN_SAMPLING_INIT;
  const SessionPtr other = Make(off);
  for (int i = 0; i < 10; ++i) {
    const float *a = nullptr, *b = nullptr;
    int32_t id = 0;
    ASSERT_EQ(ARN_OK, arn_session_sample(session.get(), &id));
    ASSERT_EQ(ARN_OK, arn_session_logits(session.get(), &a));
    ASSERT_EQ(ARN_OK, arn_session_logits(other.get(), &b));
    EXPECT_EQ(std::vector<float>(a, a + kVocab), std::vector<float>(b, b + kVocab));
    const uint32_t zero = 0;
    ASSERT_EQ(ARN_OK, arn_session_step(session.get(), &zero, &id, 1));
    ASSERT_EQ(ARN_OK, arn_session_step(other.get(), &zero, &id, 1));
  }
}

TEST_F(SessionSamplingTest, Fork_SeesItsOwnHistory) {
  for (const float temperature : {0.0f, 0.9f}) {
    const SessionPtr session = Make(Penalties(temperature), 3);
    Decode(session.get(), 10);
    ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 2));
    const std::vector<int32_t> history = TokensOf(session.get());
    const std::vector<int32_t> original = Decode(session.get(), 20);
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 2));
    EXPECT_EQ(history, TokensOf(session.get()));
    const std::vector<int32_t> fork = Decode(session.get(), 20);
    EXPECT_EQ(temperature == 0.0f, original == fork);
  }
}

TEST_F(SessionSamplingTest, Rewind_ForgetsWhatItDrops) {
  const SessionPtr session = Make(Penalties());
  const std::vector<int32_t> first = Decode(session.get(), 20);
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 12 + 5));
  const std::vector<int32_t> again = Decode(session.get(), 15);
  EXPECT_EQ(std::vector<int32_t>(first.begin() + 5, first.end()), again);
}

TEST_F(SessionSamplingTest, Batch_GivesWhatEachSequenceAloneGives) {
  const SessionPtr alone = Make(Penalties(0.8f));
  const std::vector<int32_t> expected = Decode(alone.get(), 20);
  const SessionPtr session = Make(Penalties(0.8f), 2);
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  Prefill(session.get(), SomeIds(5, kVocab));
  const std::vector<int32_t> greedy = [&] {
    const SessionPtr other = NewSession(model_.get(), Options());
    return Greedy(other.get(), SomeIds(5, kVocab), 20);
  }();
  for (int i = 0; i < 20; ++i) {
    const uint32_t both[] = {0, 1};
    int32_t ids[2];
    ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), both, 2, ids));
    EXPECT_EQ(expected[static_cast<size_t>(i)], ids[0]);
    EXPECT_EQ(greedy[static_cast<size_t>(i)], ids[1]);
  }
}

// Every option, with lists, is in the state; so are Mirostat's mu and the number of generated
// tokens.
TEST_F(SessionSamplingTest, State_KeepsEveryOption) {
  const int32_t bias[] = {4, 5, -1, 6}, bad[] = {7, 8}, suppressed[] = {9, 10}, breakers[] = {11};
  const float values[] = {2.0f, -1.0f};
  arn_sampling sampling = Penalties(0.9f);
  sampling.penalty_window = 9;
  sampling.presence_penalty = 0.1f;
  sampling.min_new_tokens = 30;
  sampling.typical_p = 0.95f;
  sampling.top_n_sigma = 3.0f;
  sampling.xtc_probability = 0.5f;
  sampling.dry_multiplier = 0.3f;
  sampling.mirostat_tau = 3.0f;
  sampling.bias_ids = bias;
  sampling.n_bias_ids = 4;
  sampling.bias_values = values;
  sampling.n_bias_values = 2;
  sampling.bad_words = bad;
  sampling.n_bad_words = 2;
  sampling.suppress_tokens = suppressed;
  sampling.n_suppress_tokens = 2;
  sampling.dry_breakers = breakers;
  sampling.n_dry_breakers = 1;
  sampling.dry_breaker_sequences = bias;
  sampling.n_dry_breaker_sequences = 4;
  const SessionPtr session = Make(sampling);
  Decode(session.get(), 15);
  const std::vector<uint8_t> state = Save(session.get());
  const SessionPtr other = NewSession(model_.get(), Options());
  ASSERT_EQ(ARN_OK, Restore(other.get(), state)) << arn_session_last_error(other.get());
  EXPECT_EQ(state, Save(other.get()));
  EXPECT_EQ(Decode(session.get(), 40), Decode(other.get(), 40));

  arn_session_options options = Options();
  options.sampling_words = 10;
  const SessionPtr small = NewSession(model_.get(), options);
  EXPECT_EQ(ARN_UNSUPPORTED, Restore(small.get(), state));
  EXPECT_NE(nullptr, std::strstr(arn_session_last_error(small.get()), "sampling_words = 10"));
  options = Options();
  options.logits_processors = 0;
  const SessionPtr plain = NewSession(model_.get(), options);
  EXPECT_EQ(ARN_UNSUPPORTED, Restore(plain.get(), state));
  EXPECT_NE(nullptr, std::strstr(arn_session_last_error(plain.get()), "logits_processors = 1"));
}

TEST_F(SessionSamplingTest, MinNewTokens_CountsFromThePrompt) {
  const int32_t ids[] = {kEos};
  const float values[] = {1000.0f};
  arn_sampling sampling = ARN_SAMPLING_INIT;  // wants to stop at once
  sampling.bias_ids = ids;
  sampling.n_bias_ids = 1;
  sampling.bias_values = values;
  sampling.n_bias_values = 1;
  sampling.min_new_tokens = 5;
  uint32_t finish = 0;
  const SessionPtr session = Make(sampling);
  EXPECT_EQ(5u, Generate(session.get(), 20, &finish).size());
  EXPECT_EQ(ARN_FINISH_EOS, finish);
  EXPECT_EQ(0u, Generate(session.get(), 20, &finish).size());  // goes on where it stopped
  Prefill(session.get(), {3, 4});
  EXPECT_EQ(5u, Generate(session.get(), 20, &finish).size());
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 12 + 5 + 2 + 3));
  EXPECT_EQ(2u, Generate(session.get(), 20, &finish).size());
}

TEST_F(SessionSamplingTest, ForcedTokens_ComeFirstAndLast) {
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.forced_first = 40;
  sampling.forced_last = 41;
  const SessionPtr session = Make(sampling);
  const std::vector<int32_t> ids = Generate(session.get(), 8);
  ASSERT_EQ(8u, ids.size());
  EXPECT_EQ(40, ids.front());
  EXPECT_EQ(41, ids.back());
  EXPECT_EQ(1, std::count(ids.begin(), ids.end(), 40));
}

TEST_F(SessionSamplingTest, EverythingForbidden_IsAnError) {
  std::vector<int32_t> all;
  for (int32_t id = 0; id < static_cast<int32_t>(kVocab); ++id) all.push_back(id);
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.suppress_tokens = all.data();
  sampling.n_suppress_tokens = kVocab;
  arn_session_options options = Options();
  options.sampling_words = kVocab;
  const SessionPtr session = NewSession(model_.get(), options);
  ASSERT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &sampling));
  Prefill(session.get(), SomeIds(12, kVocab));
  int32_t id = 0;
  EXPECT_EQ(ARN_BAD_STATE, arn_session_decode(session.get(), &id));
  EXPECT_STREQ("sequence 0: the sampling options forbid every token here",
               arn_session_last_error(session.get()));
  EXPECT_EQ(12u, arn_session_length(session.get()));
}

// transformers' _beam_search: the processors change log-probabilities, which are not normalised
// again. Compared with a search that prefills every continuation.
TEST_F(SessionSamplingTest, Beams_ApplyProcessorsByTheirOwnHistory) {
  constexpr size_t kBeams = 3, kTokens = 9;
  constexpr float kPenalty = 1.7f;
  struct Beam {
    std::vector<int32_t> ids;
    float score;
  };
  const std::vector<int32_t> prompt = SomeIds(12, kVocab);
  std::vector<Beam> beams = {{prompt, 0.0f}};
  for (size_t step = 0; step < kTokens; ++step) {
    std::vector<Beam> next;
    for (const Beam& beam : beams) {
      const SessionPtr session = NewSession(model_.get(), Options());
      Prefill(session.get(), beam.ids);
      const float* logits = nullptr;
      ASSERT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
      double sum = 0;
      for (uint32_t i = 0; i < kVocab; ++i) sum += std::exp(static_cast<double>(logits[i]));
      const std::set<int32_t> seen(beam.ids.begin(), beam.ids.end());
      for (int32_t id = 0; id < static_cast<int32_t>(kVocab); ++id) {
        float score = static_cast<float>(static_cast<double>(logits[id]) - std::log(sum));
        if (seen.count(id) > 0) score *= kPenalty;  // log-probabilities are negative
        Beam& grown = next.emplace_back(beam);
        grown.ids.push_back(id);
        grown.score += score;
      }
    }
    std::sort(next.begin(), next.end(),
              [](const Beam& a, const Beam& b) { return a.score > b.score; });
    next.resize(kBeams);
    beams = next;
  }
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.repetition_penalty = kPenalty;
  const SessionPtr session = Make(sampling, kBeams);
  arn_beam_options options = ARN_BEAM_OPTIONS_INIT;
  options.num_beams = options.num_return_sequences = kBeams;
  options.max_tokens = kTokens;
  options.ignore_eos = 1;
  options.length_penalty = 0.0f;
  arn_beam_result result = ARN_BEAM_RESULT_INIT;
  ASSERT_EQ(ARN_OK, arn_session_beam_search(session.get(), &options, &result))
      << arn_session_last_error(session.get());
  ASSERT_EQ(kBeams, result.n_sequences);
  for (uint32_t i = 0; i < kBeams; ++i) {
    int32_t ids[kTokens];
    size_t n = 0;
    float score = 0;
    ASSERT_EQ(ARN_OK, arn_session_beam(session.get(), i, ids, kTokens, &n, &score));
    EXPECT_EQ(std::vector<int32_t>(beams[i].ids.begin() + 12, beams[i].ids.end()),
              std::vector<int32_t>(ids, ids + n));
    EXPECT_NEAR(beams[i].score, score, 1e-3);
  }
}

// Log-probabilities are those of the distribution that the token was chosen from, unchanged by the
// options.
TEST_F(SessionSamplingTest, Logprobs_AreTheModels) {
  const SessionPtr session = Make(Penalties(1.0f));
  struct Seen {
    arn_session* session;
    uint32_t n;
  } seen = {session.get(), 0};
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = 10;
  options.ignore_eos = 1;
  options.user = &seen;
  options.callback = [](void* user, int32_t id, const char*, size_t) {
    auto& s = *static_cast<Seen*>(user);
    if (id < 0) return 0;
    ++s.n;
    const float* logits = nullptr;
    EXPECT_EQ(ARN_OK, arn_session_logits(s.session, &logits));
    double sum = 0;
    for (uint32_t i = 0; i < kVocab; ++i) sum += std::exp(static_cast<double>(logits[i]));
    arn_token_logprob top[4];
    float chosen = 0;
    EXPECT_EQ(ARN_OK, arn_session_logprobs(s.session, id, 4, top, &chosen));
    EXPECT_NEAR(static_cast<double>(logits[id]) - std::log(sum), static_cast<double>(chosen), 1e-5);
    std::vector<float> sorted(logits, logits + kVocab);
    std::sort(sorted.rbegin(), sorted.rend());
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(sorted[i], logits[top[i].id]);
      EXPECT_NEAR(static_cast<double>(sorted[i]) - std::log(sum),
                  static_cast<double>(top[i].logprob), 1e-5);
    }
    return 0;
  };
  ASSERT_EQ(ARN_OK, arn_session_generate(session.get(), &options, nullptr));
  EXPECT_EQ(10u, seen.n);
  arn_token_logprob top[1];
  float chosen = 0;
  EXPECT_EQ(ARN_BAD_TOKEN, arn_session_logprobs(session.get(), kVocab, 1, top, &chosen));
  EXPECT_EQ(ARN_BAD_TOKEN, arn_session_logprobs(session.get(), -1, 1, top, &chosen));
  EXPECT_EQ(ARN_OK, arn_session_logprobs(session.get(), -1, 1, top, nullptr));
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_logprobs(session.get(), 0, kVocab + 1, top, nullptr));
}

// The checkpoint's defaults: applied without do_sample too, and a session has room for them.
TEST_F(SessionSamplingTest, CheckpointsDefaults_AreOffered) {
  TinyBundle tiny;
  tiny.sampling = {{6, {Bits(1.05f)}}, {12, {Bits(0.9f)}}, {26, {5, 6}}};
  const BundleBytes bytes = MakeTinyBundle(tiny);
  const ModelPtr model = OpenBytes(bytes);
  arn_sampling sampling = ARN_SAMPLING_INIT;
  ASSERT_EQ(ARN_OK, arn_model_sampling(model.get(), &sampling));
  EXPECT_EQ(0.0f, sampling.temperature);
  EXPECT_EQ(1.05f, sampling.repetition_penalty);
  EXPECT_EQ(1.0f, sampling.typical_p);
  ASSERT_EQ(2u, sampling.n_suppress_tokens);
  EXPECT_EQ(6, sampling.suppress_tokens[1]);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.n_threads = 1;
  const SessionPtr session = NewSession(model.get(), options);
  EXPECT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &sampling))
      << arn_session_last_error(session.get());
  ASSERT_EQ(ARN_OK, arn_model_sampling_defaults(model.get(), &sampling));
  EXPECT_EQ(1.0f, sampling.temperature);
  EXPECT_EQ(0.9f, sampling.typical_p);
}

TEST_F(SessionSamplingTest, CheckpointsDefaultsThatCannotBe_AreRefused) {
  const auto refused = [](const TinyOption& option) {
    TinyBundle tiny;
    tiny.sampling = {option};
    const BundleBytes bytes = MakeTinyBundle(tiny);
    arn_model* model = nullptr;
    char error[512] = "";
    EXPECT_EQ(ARN_BAD_BUNDLE, arn_model_open_memory(bytes.data(), bytes.size(), nullptr, error,
                                                    sizeof error, &model));
    return std::string(error);
  };
  EXPECT_EQ("generation: sampling option 4242 is unknown to this version of the library",
            refused({4242, {1}}));
  EXPECT_EQ("generation.repetition_penalty has 2 words", refused({6, {1, 2}}));
  EXPECT_EQ("generation.suppress_tokens has 0 words", refused({26, {}}));
  EXPECT_EQ("generation.suppress_tokens[0] is token 61, the vocabulary has 61",
            refused({26, {61}}));
  EXPECT_EQ("generation.repetition_penalty is 0, expected above 0", refused({6, {0}}));
}

// The table describes arn_sampling: a value that is set by its place arrives.
TEST(SamplingTable, DescribesEachField) {
  ASSERT_LT(20u, arn_sampling_option_count());
  arn_sampling_option_info info = ARN_SAMPLING_OPTION_INFO_INIT;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_sampling_get_option(arn_sampling_option_count(), &info));
  std::set<std::string> names;
  for (uint32_t i = 0; i < arn_sampling_option_count(); ++i) {
    ASSERT_EQ(ARN_OK, arn_sampling_get_option(i, &info));
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_LT(10u, std::strlen(info.help)) << info.name;
    EXPECT_GT(sizeof(arn_sampling), info.offset);
    EXPECT_EQ(info.type >= ARN_OPTION_IDS, info.count_offset != 0) << info.name;
  }
  ASSERT_EQ(ARN_OK, arn_sampling_get_option(0, &info));
  EXPECT_STREQ("temperature", info.name);
  EXPECT_EQ(offsetof(arn_sampling, temperature), info.offset);
  EXPECT_EQ(1u, info.is_for_draws);
}

}  // namespace
}  // namespace arn::test

// Constraints in sessions of a real model, against brute force: masks of a stand-alone constraint
// applied to the logits.
#include <algorithm>
#include <cmath>
#include <map>

#include "tests/golden/constraint_fixture.h"

namespace arn::test {
namespace {

TEST_F(ConstraintTest, Greedy_IsTheMaskedArgmax) {
  const std::string regexes[] = {"[a-z]{3,9} (and|or) [0-9]+\\.", "(cat|dog|horse)( runs){2}!?",
                                 "\"[^\"\\\\]{0,20}\""};
  for (const std::string& regex : regexes) {
    SCOPED_TRACE(regex);
    arn_constraint_options options = Options(ARN_CONSTRAINT_REGEX, regex.c_str());
    options.choose_forced = 1;
    const SessionPtr session = NewConstrained();
    Start(session.get(), options);
    const ConstraintPtr brute = StandAlone(options);
    for (int step = 0; step < 40; ++step) {
      const float* logits = nullptr;
      ASSERT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
      const std::vector<bool> mask = MaskOf(brute.get());
      int32_t wanted = -1;
      for (uint32_t id = 0; id < Vocab(); ++id) {
        if (mask[id] && (wanted < 0 || logits[id] > logits[wanted])) {
          wanted = static_cast<int32_t>(id);
        }
      }
      int32_t id = 0;
      ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id))
          << arn_session_last_error(session.get());
      ASSERT_EQ(wanted, id) << step;
      size_t accepted = 0;
      ASSERT_EQ(ARN_OK, arn_constraint_accept(brute.get(), &id, 1, &accepted, nullptr));
      ASSERT_EQ(1u, accepted);
      if (IsEnd(id)) break;
    }
  }
}

class ConstraintMasks : public ConstraintTest {
 protected:
  static void Check(const ConstraintPtr& constraint) {
    uint32_t random = 1;
    for (int step = 0; step < 60; ++step) {
      const std::vector<bool> mask = MaskOf(constraint.get());
      std::vector<int32_t> allowed;
      for (uint32_t id = 0; id < Vocab(); ++id) {
        uint32_t is_allowed = 2;
        ASSERT_EQ(ARN_OK,
                  arn_constraint_test(constraint.get(), static_cast<int32_t>(id), &is_allowed));
        ASSERT_EQ(mask[id], is_allowed == 1) << id << " at step " << step;
        if (mask[id] && !IsEnd(static_cast<int32_t>(id))) {
          allowed.push_back(static_cast<int32_t>(id));
        }
      }
      if (allowed.empty()) break;
      random = random * 1664525u + 1013904223u;
      size_t accepted = 0;
      ASSERT_EQ(ARN_OK,
                arn_constraint_accept(constraint.get(), &allowed[(random >> 8) % allowed.size()], 1,
                                      &accepted, nullptr));
      ASSERT_EQ(1u, accepted);
    }
    uint32_t can_end = 0;
    ASSERT_EQ(ARN_OK, arn_constraint_can_end(constraint.get(), &can_end));
  }
};

// The mask, bit by bit, is what one test after the other says.
TEST_F(ConstraintMasks, AreTheTestsOfEveryToken) {
  const struct {
    uint32_t kind;
    const char* text;
  } cases[] = {{ARN_CONSTRAINT_JSON_SCHEMA, kSchema},
               // States to which most characters lead back.
               {ARN_CONSTRAINT_JSON_SCHEMA, R"({"type": "array", "items": {"type": "string"}})"},
               {ARN_CONSTRAINT_JSON_SCHEMA, R"({"type": "string", "maxLength": 90})"},
               {ARN_CONSTRAINT_REGEX, R"(([^<.]|<[^t]|<t[^o])*)"},
               {ARN_CONSTRAINT_REGEX, R"([^\u00e9]*)"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    Check(StandAlone(Options(c.kind, c.text)));
  }
}

// Probabilities of masked logits after temperature, top-k, top-p and min-p, in double.
std::map<int32_t, double> Masked(const float* logits, const std::vector<bool>& mask,
                                 const arn_sampling& sampling) {
  std::vector<int32_t> order;
  for (size_t id = 0; id < mask.size(); ++id) {
    if (mask[id]) order.push_back(static_cast<int32_t>(id));
  }
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  if (sampling.top_k != 0 && order.size() > sampling.top_k) order.resize(sampling.top_k);
  std::vector<double> weights;
  double sum = 0;
  for (const int32_t id : order) {
    weights.push_back(std::exp(static_cast<double>(logits[id] - logits[order[0]]) /
                               static_cast<double>(sampling.temperature)));
    sum += weights.back();
  }
  if (sampling.top_p < 1.0f) {
    double kept = 0;
    size_t n = 0;
    while (n < order.size() && kept < sum * static_cast<double>(sampling.top_p))
      kept += weights[n++];
    order.resize(n);
  }
  std::map<int32_t, double> probabilities;
  double total = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (weights[i] < static_cast<double>(sampling.min_p)) continue;
    probabilities[order[i]] = weights[i];
    total += weights[i];
  }
  for (auto& [id, p] : probabilities) p /= total;
  return probabilities;
}

// Chi-square over 10^6 draws: the statistic is below its mean by five standard deviations at most.
TEST_F(ConstraintTest, Sampling_IsMaskedSoftmax) {
  constexpr int kDraws = 1000000 / 4;  // of each of four settings
  const arn_constraint_options options = Options(ARN_CONSTRAINT_REGEX, "( [a-z]+){1,9}\\.");
  const SessionPtr session = NewConstrained();
  Start(session.get(), options);
  const ConstraintPtr brute = StandAlone(options);
  const std::vector<bool> mask = MaskOf(brute.get());
  struct {
    float temperature;
    uint32_t top_k;
    float top_p, min_p;
  } const settings[] = {{1.0f, 0, 1.0f, 0.0f},
                        {1.5f, 20, 1.0f, 0.0f},
                        {1.2f, 0, 0.8f, 0.0f},
                        {1.0f, 50, 0.9f, 0.02f}};
  uint64_t seed = 11;
  for (const auto& setting : settings) {
    SCOPED_TRACE(testing::Message() << setting.temperature << ' ' << setting.top_k << ' '
                                    << setting.top_p << ' ' << setting.min_p);
    arn_sampling sampling = ARN_SAMPLING_INIT;
    sampling.temperature = setting.temperature;
    sampling.top_k = setting.top_k;
    sampling.top_p = setting.top_p;
    sampling.min_p = setting.min_p;
    sampling.seed = seed++;
    ASSERT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &sampling));
    const float* logits = nullptr;
    ASSERT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
    const std::map<int32_t, double> wanted = Masked(logits, mask, sampling);
    std::map<int32_t, int> drawn;
    for (int i = 0; i < kDraws; ++i) {
      int32_t id = 0;
      ASSERT_EQ(ARN_OK, arn_session_sample(session.get(), &id));
      ++drawn[id];
    }
    for (const auto& [id, n] : drawn) EXPECT_TRUE(wanted.contains(id)) << id << " drawn " << n;
    double chi_square = 0, rest_wanted = 0, rest_drawn = 0;
    int degrees = -1;
    for (const auto& [id, p] : wanted) {
      const double expected = p * kDraws;
      const double n = drawn.contains(id) ? drawn[id] : 0;
      if (expected < 10) {
        rest_wanted += expected;
        rest_drawn += n;
        continue;
      }
      chi_square += (n - expected) * (n - expected) / expected;
      ++degrees;
    }
    if (rest_wanted > 0) {
      chi_square += (rest_drawn - rest_wanted) * (rest_drawn - rest_wanted) / rest_wanted;
      ++degrees;
    }
    EXPECT_GT(degrees, 3);
    EXPECT_LT(chi_square, degrees + 5 * std::sqrt(2.0 * degrees)) << degrees;
  }
}

// What generate shows is the constrained text, and the same as decode's tokens give.
TEST_F(ConstraintTest, Generate_EqualsDecode_AndEnds) {
  const std::string schema = kSchema;
  const arn_constraint_options options = Options(ARN_CONSTRAINT_JSON_SCHEMA, schema.c_str());
  for (const uint32_t threads : {1u, 2u}) {
    const SessionPtr one = NewConstrained(1, threads), other = NewConstrained(1, threads);
    Start(one.get(), options);
    Start(other.get(), options);
    const std::vector<int32_t> decoded = DecodeAll(one.get());
    std::string text;
    arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
    generate.user = &text;
    generate.callback = [](void* user, int32_t, const char* piece, size_t bytes) -> int32_t {
      static_cast<std::string*>(user)->append(piece, bytes);
      return 0;
    };
    arn_generate_result result = ARN_GENERATE_RESULT_INIT;
    ASSERT_EQ(ARN_OK, arn_session_generate(other.get(), &generate, &result))
        << arn_session_last_error(other.get());
    EXPECT_EQ(ARN_FINISH_EOS, result.finish);
    EXPECT_EQ(decoded.size(), result.n_tokens);
    const int32_t* ids = nullptr;
    uint32_t n = 0;
    ASSERT_EQ(ARN_OK, arn_session_tokens(other.get(), &ids, &n));
    EXPECT_EQ(decoded, std::vector<int32_t>(ids + n - result.n_tokens, ids + n));
    EXPECT_EQ(text, Text(decoded));
    EXPECT_EQ('{', text.front());
    EXPECT_EQ('}', text.back());
    arn_constraint_stats_data stats = ARN_CONSTRAINT_STATS_INIT;
    ASSERT_EQ(ARN_OK, arn_session_constraint_stats(other.get(), &stats));
    EXPECT_GT(stats.forced_tokens, 3u);
    EXPECT_GT(stats.compile_ns, 0u);
    EXPECT_LE(stats.p50_ns, stats.max_ns);
    EXPECT_GT(stats.bytes, 0u);
    EXPECT_LE(stats.bytes, 4u << 20);
  }
}

// The log-probabilities of forced tokens too are those of their places.
TEST_F(ConstraintTest, Logprobs_OfForcedTokens_AreTheirOwn) {
  struct Seen {
    arn_session* session;
    std::vector<int32_t> ids;
    std::vector<float> logprobs;
    size_t n_refused = 0;
  };
  const std::string schema = kSchema;
  const arn_constraint_options options = Options(ARN_CONSTRAINT_JSON_SCHEMA, schema.c_str());
  std::vector<int32_t> ids;
  for (const uint32_t with_logprobs : {0u, 1u}) {
    const SessionPtr session = NewConstrained();
    Start(session.get(), options);
    Seen seen{session.get(), {}, {}};
    arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
    generate.with_logprobs = with_logprobs;
    generate.user = &seen;
    generate.callback = [](void* user, int32_t id, const char*, size_t) -> int32_t {
      Seen& to = *static_cast<Seen*>(user);
      if (id < 0) return 0;
      float logprob = 1;
      const arn_status status = arn_session_logprobs(to.session, id, 0, nullptr, &logprob);
      EXPECT_TRUE(status == ARN_OK || status == ARN_BAD_STATE);
      to.n_refused += status == ARN_BAD_STATE ? 1 : 0;
      to.ids.push_back(id);
      to.logprobs.push_back(logprob);
      return 0;
    };
    arn_generate_result result = ARN_GENERATE_RESULT_INIT;
    ASSERT_EQ(ARN_OK, arn_session_generate(session.get(), &generate, &result))
        << arn_session_last_error(session.get());
    if (with_logprobs == 0) {
      EXPECT_GT(seen.n_refused, 3u);
      ids = seen.ids;
    }
    EXPECT_EQ(with_logprobs == 0, seen.n_refused > 0);
    EXPECT_EQ(ids, seen.ids);
    EXPECT_EQ(0u, result.n_logprobs);
    const SessionPtr plain = NewConstrained();
    const std::vector<int32_t> prompt = PromptIds();
    ASSERT_EQ(ARN_OK, arn_session_prefill(plain.get(), prompt.data(), prompt.size()));
    for (size_t i = 0; i < seen.ids.size(); ++i) {
      float logprob = 0;
      ASSERT_EQ(ARN_OK, arn_session_logprobs(plain.get(), seen.ids[i], 0, nullptr, &logprob));
      if (seen.logprobs[i] <= 0) {
        EXPECT_NEAR(logprob, seen.logprobs[i], 1e-3) << i;
      }
      ASSERT_EQ(ARN_OK, arn_session_prefill(plain.get(), &seen.ids[i], 1));
    }
  }
}

TEST_F(ConstraintTest, ARewind_GivesTheSameAgain) {
  const std::string schema = kSchema;
  const SessionPtr session = NewConstrained();
  Start(session.get(), Options(ARN_CONSTRAINT_JSON_SCHEMA, schema.c_str()));
  const uint32_t start = arn_session_length(session.get());
  const std::vector<int32_t> whole = DecodeAll(session.get());
  ASSERT_GT(whole.size(), 8u);
  for (const uint32_t kept : {8u, 3u, 0u}) {
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), start + kept));
    const std::vector<int32_t> again = DecodeAll(session.get());
    EXPECT_EQ(std::vector<int32_t>(whole.begin() + kept, whole.end()), again) << kept;
  }
  // Other tokens in the place of those dropped.
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), start + 8));
  arn_model_info info = ARN_MODEL_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_model_get_info(model_, &info));
  const auto wrong = static_cast<int32_t>(info.eos_ids[0]);  // the text cannot end here
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), &wrong, 1));
  int32_t id = 0;
  EXPECT_EQ(ARN_BAD_STATE, arn_session_decode(session.get(), &id));
  EXPECT_NE(std::string(arn_session_last_error(session.get())).find("breaks its constraint"),
            std::string::npos)
      << arn_session_last_error(session.get());
}

TEST_F(ConstraintTest, ForksAndBatches_GiveWhatOneSequenceGives) {
  const std::string schema = kSchema;
  const arn_constraint_options options = Options(ARN_CONSTRAINT_JSON_SCHEMA, schema.c_str());
  const SessionPtr alone = NewConstrained();
  Start(alone.get(), options);
  const std::vector<int32_t> whole = DecodeAll(alone.get());
  arn_constraint_options choices = Options(ARN_CONSTRAINT_CHOICES, "a cat");
  choices.text = "a cat\0a dog";
  choices.text_bytes = 11;
  const SessionPtr second = NewConstrained();
  Start(second.get(), choices);
  const std::vector<int32_t> chosen = DecodeAll(second.get());

  const SessionPtr session = NewConstrained(3);
  Start(session.get(), options);
  for (size_t i = 0; i < 5; ++i) {
    int32_t id = 0;
    ASSERT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
    EXPECT_EQ(whole[i], id);
  }
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 2));
  Start(session.get(), choices);
  std::vector<int32_t> got[3];
  const uint32_t sequences[] = {0, 1, 2};
  bool has_ended[3] = {};
  for (size_t step = 5; step <= whole.size(); ++step) {
    int32_t ids[3];
    ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), sequences, 3, ids))
        << arn_session_last_error(session.get());
    for (int s = 0; s < 3; ++s) {
      has_ended[s] = has_ended[s] || IsEnd(ids[s]);
      if (!has_ended[s]) got[s].push_back(ids[s]);
    }
  }
  EXPECT_EQ(std::vector<int32_t>(whole.begin() + 5, whole.end()), got[0]);
  EXPECT_EQ(got[0], got[1]);
  EXPECT_EQ(Text(chosen), Text(got[2]));
}

TEST_F(ConstraintTest, Beams_AreAllAllowed_AndOneIsGreedy) {
  arn_constraint_options options =
      Options(ARN_CONSTRAINT_REGEX, " (big|small|little) (cat|dog|bird) who (ran|sang)\\.");
  options.choose_forced = 1;
  const SessionPtr greedy = NewConstrained();
  Start(greedy.get(), options);
  const std::string greedy_text = Text(DecodeAll(greedy.get()));
  for (const uint32_t n_beams : {1u, 3u}) {
    const SessionPtr session = NewConstrained(n_beams);
    Start(session.get(), options);
    arn_beam_options beams = ARN_BEAM_OPTIONS_INIT;
    beams.num_beams = n_beams;
    beams.num_return_sequences = n_beams;
    beams.max_tokens = 40;
    arn_beam_result result = ARN_BEAM_RESULT_INIT;
    ASSERT_EQ(ARN_OK, arn_session_beam_search(session.get(), &beams, &result))
        << arn_session_last_error(session.get());
    EXPECT_EQ(n_beams, result.n_sequences);
    for (uint32_t i = 0; i < result.n_sequences; ++i) {
      std::vector<int32_t> ids(64);
      size_t n = 0;
      ASSERT_EQ(ARN_OK, arn_session_beam(session.get(), i, ids.data(), ids.size(), &n, nullptr));
      ids.resize(n);
      const ConstraintPtr judge = StandAlone(options);
      size_t accepted = 0;
      ASSERT_EQ(ARN_OK,
                arn_constraint_accept(judge.get(), ids.data(), ids.size(), &accepted, nullptr));
      EXPECT_EQ(ids.size(), accepted) << Text(ids);
      EXPECT_TRUE(IsEnd(ids.back())) << Text(ids);
      if (n_beams != 1) continue;
      EXPECT_EQ(greedy_text, Text(ids));
    }
  }
}

// A cancel before a costly constraint ends its compilation, once, and leaves no constraint.
TEST_F(ConstraintTest, Cancelled_CompilationEndsAndTheNextOneWorks) {
  // That no text fits is seen after 2^10 states.
  const char* const costly = R"({"anyOf":[{"allOf":[{"type":"string","pattern":"^[ab]*a[ab]{10}$"},
      {"type":"string","pattern":"^[ab]*b[ab]{10}$"}]},{"type":"integer"}]})";
  const arn_constraint_options options = Options(ARN_CONSTRAINT_JSON_SCHEMA, costly);
  const SessionPtr session = NewConstrained();
  arn_session_cancel(session.get());
  EXPECT_EQ(ARN_CANCELLED, arn_session_set_constraint(session.get(), &options));
  EXPECT_NE('\0', arn_session_last_error(session.get())[0]);
  arn_constraint_stats_data stats = ARN_CONSTRAINT_STATS_INIT;
  EXPECT_EQ(ARN_NOT_FOUND, arn_session_constraint_stats(session.get(), &stats));
  EXPECT_EQ(ARN_OK, arn_session_set_constraint(session.get(), &options))
      << arn_session_last_error(session.get());
}

TEST_F(ConstraintTest, WhatIsRefused_IsNamed) {
  const SessionPtr session = NewConstrained();
  const std::string schema = R"({"properties": {"a": {"type": "strin"}}})";
  arn_constraint_options options = Options(ARN_CONSTRAINT_JSON_SCHEMA, schema.c_str());
  EXPECT_NE(ARN_OK, arn_session_set_constraint(session.get(), &options));
  EXPECT_NE(std::string(arn_session_last_error(session.get())).find("/properties/a"),
            std::string::npos)
      << arn_session_last_error(session.get());
  options = Options(ARN_CONSTRAINT_REGEX, "a(b");
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_set_constraint(session.get(), &options));
  options.kind = 9;
  EXPECT_EQ(ARN_UNSUPPORTED, arn_session_set_constraint(session.get(), &options));
  // Without memory for constraints.
  arn_session_options without = ARN_SESSION_OPTIONS_INIT;
  const SessionPtr plain = NewSession(model_, without);
  options = Options(ARN_CONSTRAINT_REGEX, "a");
  EXPECT_EQ(ARN_BAD_STATE, arn_session_set_constraint(plain.get(), &options));
  arn_constraint_stats_data stats = ARN_CONSTRAINT_STATS_INIT;
  EXPECT_EQ(ARN_NOT_FOUND, arn_session_constraint_stats(session.get(), &stats));
}

TEST_F(ConstraintTest, MemoryPlan_HasALine) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  arn_memory_plan without = ARN_MEMORY_PLAN_INIT, with = ARN_MEMORY_PLAN_INIT;
  ASSERT_EQ(ARN_OK, arn_session_plan(model_, &options, nullptr, 0, &without));
  EXPECT_EQ(0u, without.constraints_bytes);
  options.constraint_bytes = 1 << 20;
  ASSERT_EQ(ARN_OK, arn_session_plan(model_, &options, nullptr, 0, &with));
  EXPECT_GE(with.constraints_bytes, 1u << 20);
  // But for the alignment of its parts.
  EXPECT_GE(with.io_bytes, without.io_bytes + with.constraints_bytes);
  EXPECT_LE(with.io_bytes, without.io_bytes + with.constraints_bytes + 8192);
}

}  // namespace
}  // namespace arn::test

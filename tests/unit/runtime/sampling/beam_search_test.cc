// Beam search over formulas instead of models, against the naive search of data/make_beams.py.
#include "runtime/sampling/beam_search.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/backends.h"

namespace arn {

void PrintTo(BackendId id, std::ostream* out) { *out << FindBackend(id)->name; }

namespace {

using Ids = std::vector<int32_t>;

struct Formula {
  uint32_t vocab = 0, seed = 0;
  Ids ends;
  float end_bias = 0.0f;

  // The same logits as in make_beams.py. last: -1 before the first token.
  std::vector<float> Logits(uint32_t step, int32_t last) const {
    std::vector<float> row(vocab);
    for (uint32_t token = 0; token < vocab; ++token) {
      uint32_t h =
          seed * 97 + step * 7919 + static_cast<uint32_t>(last + 1) * 104729 + token * 1299709;
      for (int i = 0; i < 2; ++i) h = (h ^ (h >> 16)) * 0x45D9F3B;
      row[token] = static_cast<float>((h ^ (h >> 16)) >> 8) / 1048576.0f * 0.5f;
    }
    for (int32_t end : ends) row[static_cast<size_t>(end)] += end_bias;
    return row;
  }
};

struct Result {
  uint32_t n_steps = 0;
  uint32_t most_running = 0;
  std::vector<Ids> sequences;
  std::vector<float> scores;
};

// A search in memory of exactly the planned size, filled with garbage.
class Searcher {
 public:
  Searcher(BackendId backend, uint32_t vocab, const BeamOptions& options) : options_(options) {
    Layout layout;
    BeamSearchPlan plan;
    EXPECT_EQ(Status::kOk,
              PlanBeamSearch(options.num_beams, options.max_tokens, vocab, &layout, &plan));
    Diag diag;
    EXPECT_EQ(Status::kOk, CheckBeams(options, plan, &diag)) << diag.text();
    bytes_.assign(layout.RegionBytes(Region::kIo) + 64, std::byte{0xA5});
    const auto base = reinterpret_cast<uintptr_t>(bytes_.data());
    Memory memory;
    memory.region[static_cast<uint32_t>(Region::kIo)] = {bytes_.data() + (64 - base % 64) % 64,
                                                         bytes_.size() - 64};
    search_.Init(FindLogitsOps(*FindBackend(backend)), plan, memory, vocab);
  }

  // logits(step, last token) returns a row of logits.
  template <typename Logits>
  Result Run(Logits logits) {
    Result result;
    search_.Start(options_);
    std::vector<Ids> beams(search_.n_running());
    while (search_.n_running() > 0) {
      EXPECT_EQ(beams.size(), search_.n_running());
      EXPECT_LE(beams.size(), options_.num_beams);
      EXPECT_EQ(0u, search_.n_results());
      std::vector<std::vector<float>> rows;
      std::vector<const float*> pointers;
      for (const Ids& ids : beams) {
        rows.push_back(logits(search_.n_steps(), ids.empty() ? -1 : ids.back()));
      }
      for (const std::vector<float>& row : rows) pointers.push_back(row.data());
      search_.Step({pointers.data(), pointers.size()});
      std::vector<Ids> next;
      for (uint32_t i = 0; i < search_.n_running(); ++i) {
        next.push_back(beams.at(search_.parents()[i]));
        next.back().push_back(search_.ids()[i]);
      }
      beams = next;
      result.most_running = std::max(result.most_running, search_.n_running());
    }
    result.n_steps = search_.n_steps();
    for (uint32_t i = 0; i < search_.n_results(); ++i) {
      Ids ids(search_.length(i));
      search_.CopyIds(i, ids.data());
      result.sequences.push_back(ids);
      result.scores.push_back(search_.score(i));
    }
    return result;
  }

 private:
  BeamOptions options_;
  std::vector<std::byte> bytes_;
  BeamSearch search_;
};

class BeamSearchTest : public testing::TestWithParam<BackendId> {};

TEST_P(BeamSearchTest, EveryCase_IsWhatThePlainWayGives) {
  std::ifstream file(ARN_BEAM_CASES);
  const auto cases = nlohmann::json::parse(file);
  size_t ended_early = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const nlohmann::json& o = cases[i]["options"];
    SCOPED_TRACE("case " + std::to_string(i) + " " + o.dump());
    Formula formula;
    formula.vocab = cases[i]["model"]["vocab"];
    formula.seed = cases[i]["model"]["seed"];
    formula.ends = cases[i]["model"]["ends"].get<Ids>();
    formula.end_bias = cases[i]["model"]["end_bias"];
    BeamOptions options;
    options.num_beams = o["beams"];
    options.num_beam_groups = o["groups"];
    options.diversity_penalty = o["diversity_penalty"];
    options.length_penalty = o["length_penalty"];
    const std::string stopping = o["early_stopping"];
    options.early_stopping = stopping == "true"    ? EarlyStopping::kTrue
                             : stopping == "never" ? EarlyStopping::kNever
                                                   : EarlyStopping::kFalse;
    options.num_return_sequences = o["returns"];
    options.max_tokens = o["max_tokens"];
    if (!o["ignore_eos"]) {
      for (int32_t end : formula.ends) options.stop_ids[options.n_stop_ids++] = end;
    }
    const Result result =
        Searcher(GetParam(), formula.vocab, options).Run([&](uint32_t step, int32_t last) {
          return formula.Logits(step, last);
        });
    EXPECT_EQ(cases[i]["n_steps"].get<uint32_t>(), result.n_steps);
    EXPECT_LE(result.most_running, options.num_beams);
    ended_early += result.n_steps < options.max_tokens;
    const nlohmann::json& wanted = cases[i]["sequences"];
    ASSERT_EQ(wanted.size(), result.sequences.size());
    for (size_t k = 0; k < wanted.size(); ++k) {
      EXPECT_EQ(wanted[k]["ids"].get<Ids>(), result.sequences[k]) << k;
      EXPECT_NEAR(wanted[k]["score"].get<double>(), static_cast<double>(result.scores[k]), 1e-4);
    }
  }
  EXPECT_GT(cases.size(), 300u);
  EXPECT_GT(ended_early, 50u);
}

// Ties go to the lower beam, then to the lower id, in every list.
TEST_P(BeamSearchTest, AllLogitsEqual_LowerNumbersFirst) {
  BeamOptions options;
  options.num_beams = options.num_return_sequences = 3;
  options.max_tokens = 2;
  const Result result = Searcher(GetParam(), 5, options).Run([](uint32_t, int32_t) {
    return std::vector<float>(5, 1.0f);
  });
  EXPECT_EQ((std::vector<Ids>{{0, 0}, {0, 1}, {0, 2}}), result.sequences);
}

// Fewer continuations than beams: nonexistent beams are neither run nor returned.
TEST_P(BeamSearchTest, FewerTokensThanBeams_NoMadeUpSequences) {
  BeamOptions options;
  options.num_beams = options.num_return_sequences = 6;
  options.max_tokens = 1;
  const auto two = [](uint32_t, int32_t) { return std::vector<float>{0.0f, 1.0f}; };
  EXPECT_EQ((std::vector<Ids>{{1}, {0}}), Searcher(GetParam(), 2, options).Run(two).sequences);
  options.max_tokens = 3;
  const Result all = Searcher(GetParam(), 2, options).Run(two);
  EXPECT_EQ(6u, all.sequences.size());
  EXPECT_EQ(4u, all.most_running);
}

// A search without valid candidates ends instead of looping.
TEST_P(BeamSearchTest, LogitsThatAreNoNumbers_EndWithoutResults) {
  BeamOptions options;
  options.num_beams = 2;
  options.max_tokens = 5;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const Result result = Searcher(GetParam(), 7, options).Run([bad](uint32_t step, int32_t) {
      return std::vector<float>(7, step == 2 ? bad : 1.0f);
    });
    EXPECT_EQ(3u, result.n_steps);
    EXPECT_TRUE(result.sequences.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, BeamSearchTest,
                         testing::Values(BackendId::kReference, BackendId::kCpu));

TEST(BeamSearch_Check, BadOptions_AreNamed) {
  BeamSearchPlan plan;
  plan.max_beams = 6;
  plan.max_tokens = 10;
  const auto words = [&](auto change) {
    BeamOptions options;
    options.num_beams = 4;
    options.num_beam_groups = 2;
    options.max_tokens = 10;
    change(&options);
    Diag diag;
    return CheckBeams(options, plan, &diag) == Status::kOk ? "" : std::string(diag.text());
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ("", words([](BeamOptions*) {}));
  EXPECT_TRUE(has(words([](BeamOptions* o) { o->num_beams = 0; }), "num_beams is 0"));
  EXPECT_TRUE(has(words([](BeamOptions* o) { o->num_beams = 8; }), "max_sequences 6"));
  EXPECT_TRUE(has(words([](BeamOptions* o) { o->num_beam_groups = 3; }), "divisor of 4"));
  EXPECT_TRUE(has(words([](BeamOptions* o) { o->num_beam_groups = 0; }), "num_beam_groups is 0"));
  EXPECT_TRUE(has(words([](BeamOptions* o) { o->diversity_penalty = -1.0f; }), "is -1"));
  EXPECT_TRUE(has(words([](BeamOptions* o) {
                    o->diversity_penalty = 1.0f;
                    o->num_beam_groups = 1;
                  }),
                  "one group"));
  EXPECT_TRUE(has(
      words([](BeamOptions* o) { o->length_penalty = std::numeric_limits<float>::quiet_NaN(); }),
      "length_penalty"));
  EXPECT_TRUE(has(words([](BeamOptions* o) { o->num_return_sequences = 5; }), "num_beams 4"));
  EXPECT_TRUE(has(words([](BeamOptions* o) { o->num_return_sequences = 0; }), "sequences is 0"));
  EXPECT_TRUE(has(words([](BeamOptions* o) { o->max_tokens = 11; }), "1 to 10"));
  EXPECT_TRUE(has(words([](BeamOptions* o) { o->max_tokens = 0; }), "max_tokens is 0"));
}

}  // namespace
}  // namespace arn

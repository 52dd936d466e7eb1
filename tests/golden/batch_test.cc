// Batched decoding of sequences with different lengths, and prompts and continuations far beyond a
// window, against transformers on the same checkpoints (data/cache/batch.json,
// data/cache/window.json).
#include <cmath>

#include "nlohmann/json.hpp"
#include "tests/golden/cache_goldens.h"
#include "tests/golden/golden_case.h"

namespace arn::test {
namespace {

using nlohmann::json;

constexpr double kTolerance = 2e-4;  // as in golden_test.cc

ModelPtr SeededModel(const std::string& name, const TempFolder& folder) {
  const auto bundle = folder / (name + ".arn");
  if (!ConvertGolden(LoadGolden(name), ConfigStyle::kTransformers5, folder / name, bundle,
                     {"--weights", "f32"})) {
    return {};
  }
  return OpenModel(bundle);
}

arn_session_options Options(uint32_t backend, uint32_t chunk) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = ARN_KV_F32;
  options.context_tokens = 128;
  options.prefill_chunk = chunk;
  options.kv_page_tokens = 8;
  options.n_threads = 2;
  return options;
}

// Returns the largest difference between the sequence's logits and the stored ones, which are every
// step-th logit.
double Difference(arn_session* session, uint32_t sequence, const float* wanted, uint32_t n,
                  uint32_t step) {
  const float* logits = nullptr;
  EXPECT_EQ(ARN_OK, arn_session_select(session, sequence));
  EXPECT_EQ(ARN_OK, arn_session_logits(session, &logits));
  if (logits == nullptr) return HUGE_VAL;
  double worst = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const double error = std::abs(static_cast<double>(logits[i * step] - wanted[i]));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

// `prompts` [3], `ids` [steps, 3], `logits` [steps, 3, columns].
void ExpectBatch(arn_session* session, uint32_t vocab, const json& golden) {
  const std::vector<std::vector<int32_t>> prompts = golden["prompts"];
  const std::vector<std::vector<int32_t>> ids = golden["ids"];
  const std::vector<float> logits = DecodeFloats(golden["logits"]);
  const uint32_t step = golden["step"], columns = (vocab + step - 1) / step;
  const auto n = static_cast<uint32_t>(prompts.size());
  ASSERT_EQ(ids.size() * n * columns, logits.size());
  std::vector<uint32_t> sequences;
  for (uint32_t s = 0; s < n; ++s) {
    sequences.push_back(s);
    ASSERT_EQ(ARN_OK, arn_session_select(session, s));
    ASSERT_EQ(ARN_OK, arn_session_prefill(session, prompts[s].data(), prompts[s].size()));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    for (uint32_t s = 0; s < n; ++s) {
      const float* wanted = logits.data() + (i * n + s) * columns;
      ASSERT_LT(Difference(session, s, wanted, columns, step), kTolerance)
          << "step " << i << ", sequence " << s;
    }
    std::vector<int32_t> found(n);
    ASSERT_EQ(ARN_OK, arn_session_decode_batch(session, sequences.data(), n, found.data()));
    ASSERT_EQ(ids[i], found) << "step " << i;
  }
}

TEST(Batch, SequencesOfThreeLengths_EqualTransformersWithLeftPadding) {
  ARN_NEEDS_CONVERTER();
  const TempFolder folder;
  const json cases = LoadCacheGoldens("batch");
  EXPECT_EQ(3u, cases.size());
  for (const json& golden : cases) {
    const ModelPtr model = SeededModel(golden["checkpoint"], folder);
    ASSERT_NE(nullptr, model);
    for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
      SCOPED_TRACE(testing::Message() << golden["checkpoint"] << ", backend " << backend);
      arn_session_options options = Options(backend, 16);
      options.max_sequences = 3;
      const SessionPtr session = NewSession(model.get(), options);
      ASSERT_NE(nullptr, session);
      ASSERT_NO_FATAL_FAILURE(ExpectBatch(session.get(), VocabSize(model.get()), golden));
    }
  }
}

TEST(Window, PromptAndContinuationFarBeyondIt_EqualTransformersAndNoCache) {
  ARN_NEEDS_CONVERTER();
  const TempFolder folder;
  const json cases = LoadCacheGoldens("window");
  EXPECT_EQ(2u, cases.size());
  for (const json& golden : cases) {
    const ModelPtr model = SeededModel(golden["checkpoint"], folder);
    ASSERT_NE(nullptr, model);
    const std::vector<int32_t> prompt = golden["prompt"], greedy = golden["greedy"];
    ASSERT_EQ(50u, prompt.size());
    ASSERT_EQ(60u, greedy.size());
    for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
      for (const uint32_t chunk : {3u, 16u, 64u}) {
        for (const uint32_t no_cache : {0u, 1u}) {
          SCOPED_TRACE(testing::Message() << golden["checkpoint"] << ", backend " << backend
                                          << ", chunks of " << chunk << ", no_cache " << no_cache);
          arn_session_options options = Options(backend, chunk);
          options.no_cache = no_cache;
          const SessionPtr session = NewSession(model.get(), options);
          ASSERT_NE(nullptr, session);
          EXPECT_EQ(greedy, GenerateGreedy(session.get(), prompt, 60, /*ignore_eos=*/true).ids);
        }
      }
    }
  }
}

TEST(Window, ReferenceCheckpoint_EqualsTransformersAndNoCache) {
  ARN_NEEDS_CONVERTER();
  ARN_NEEDS_SHARED_DIR();
  const TempFolder folder;
  const auto source = SharedDir() / "reference/tiny/mistral";
  ASSERT_TRUE(Convert(source, folder / "model.arn", {"--weights", "f32"}));
  const ModelPtr model = OpenModel(folder / "model.arn");
  ASSERT_NE(nullptr, model);
  const json config = json::parse(ReadText(source / "config.json"));
  const json golden = json::parse(ReadText(source / "golden.json"));
  for (const json& run : golden["runs"]) {
    const std::vector<int32_t> prompt = run["prompt"], ids = run["no_cache"];
    ASSERT_GE(ids.size(), 3 * config["sliding_window"].get<size_t>());
    const std::vector<int32_t> greedy(ids.begin() + static_cast<ptrdiff_t>(prompt.size()),
                                      ids.end());
    for (const uint32_t no_cache : {0u, 1u}) {
      arn_session_options options = Options(ARN_BACKEND_CPU, 16);
      options.no_cache = no_cache;
      const SessionPtr session = NewSession(model.get(), options);
      ASSERT_NE(nullptr, session);
      const auto n = static_cast<uint32_t>(greedy.size());
      EXPECT_EQ(greedy, GenerateGreedy(session.get(), prompt, n, /*ignore_eos=*/true).ids);
    }
  }
}

}  // namespace
}  // namespace arn::test

// Embedding models and rerankers: the vectors and scores that transformers' rows give, from
// checkpoint to C API.
#include <cmath>

#include "tests/golden/pooled_case.h"

namespace arn::test {
namespace {

constexpr double kTolerance = 3e-4;  // of the largest element

class PooledGoldenTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    case_ = LoadPooled(std::string("pooled/") + GetParam());
  }

  // Of int8 weights. With random weights, 24 elements in a head and 64 in a row, the scores of
  // attention are larger and rounding is coarser than in a trained model.
  double LeastCosine() const {
    const std::string name = GetParam();
    return name == "gemma_both_ways" || name == "qwen3_last" ? 0.995 : 0.999;
  }

  ModelPtr Open(const std::string& weights) {
    const std::filesystem::path bundle = folder_ / (weights + ".arn");
    return ConvertPooled(case_, folder_ / weights, bundle,
                         {"--weights", weights, "--embedding", weights})
               ? OpenModel(bundle)
               : nullptr;
  }

  TempFolder folder_;
  PooledCase case_;
};

TEST_P(PooledGoldenTest, F32_BothBackendsAndAnyBatch_GiveTheReferencesResults) {
  const ModelPtr model = Open("f32");
  ASSERT_NE(nullptr, model);
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    for (const uint32_t max_texts : {1u, 3u, 32u}) {
      SCOPED_TRACE(testing::Message() << "backend " << backend << ", texts " << max_texts);
      arn_embed_options options = ARN_EMBED_OPTIONS_INIT;
      options.backend = backend;
      options.n_threads = 2;
      options.max_texts = max_texts;
      const EmbedderPtr embedder = NewEmbedder(model.get(), options);
      ASSERT_NE(nullptr, embedder);
      ExpectResults(case_, EmbedCase(case_, embedder.get()), kTolerance);
    }
  }
}

// What a text gives does not depend on its neighbours in a run, nor on the threads.
TEST_P(PooledGoldenTest, BatchesAndThreads_ChangeNoBit) {
  const ModelPtr model = Open("f32");
  ASSERT_NE(nullptr, model);
  arn_embed_options options = ARN_EMBED_OPTIONS_INIT;
  options.n_threads = 1;
  const EmbedderPtr first = NewEmbedder(model.get(), options);
  options.n_threads = 3;
  const EmbedderPtr second = NewEmbedder(model.get(), options);
  const std::vector<float> expected = EmbedCase(case_, first.get());
  EXPECT_EQ(expected, EmbedCase(case_, second.get()));
  EXPECT_EQ(expected, EmbedCase(case_, first.get()));
}

TEST_P(PooledGoldenTest, Int8_IsCloseToTheReference) {
  const ModelPtr model = Open("int8");
  ASSERT_NE(nullptr, model);
  const uint32_t width = EmbedWidth(model.get());
  const EmbedderPtr embedder = NewEmbedder(model.get(), ARN_EMBED_OPTIONS_INIT);
  ASSERT_NE(nullptr, embedder);
  const std::vector<float> found = EmbedCase(case_, embedder.get());
  for (size_t i = 0; i < case_.results.size(); ++i) {
    double dot = 0, a = 0, b = 0;
    for (uint32_t w = 0; w < width; ++w) {
      const double x = case_.results[i][w], y = static_cast<double>(found[i * width + w]);
      dot += x * y;
      a += x * x;
      b += y * y;
    }
    EXPECT_GE(dot / std::sqrt(a * b), LeastCosine()) << "text " << i;
  }
}

const char* const kCases[] = {
    "bert_mean",         "bert_first_dense", "bert_score", "roberta_max",
    "xlm_roberta_score", "distilbert_sqrt",  "mpnet_mean", "modern_bert_windows",
    "modern_bert_score", "gemma_both_ways",  "qwen3_last", "qwen3_score",
};
INSTANTIATE_TEST_SUITE_P(Cases, PooledGoldenTest, testing::ValuesIn(kCases),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace arn::test

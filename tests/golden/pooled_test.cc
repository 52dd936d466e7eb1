// Embedding models and rerankers: the vectors and scores that transformers' rows give, from
// checkpoint to C API.
#include <arenite/arenite.h>

#include <cmath>
#include <cstring>

#include "nlohmann/json.hpp"
#include "tests/golden/golden_case.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 3e-4;  // of the largest element

struct PooledCase {
  GoldenCase golden;  // its config and tensors
  nlohmann::json files, dense_tensors;
  std::vector<std::vector<int32_t>> texts;
  std::vector<std::vector<double>> results;
  nlohmann::json n_first_type;
};

PooledCase LoadPooled(const std::string& name) {
  const nlohmann::json json =
      nlohmann::json::parse(ReadText(SourcePath("tests/golden/data/pooled/" + name + ".json")));
  PooledCase out;
  out.golden.name = name;
  out.golden.config = out.golden.old_config = json.at("config");
  json.at("tensors").get_to(out.golden.tensors);
  out.golden.checkpoint.base_seed = json.at("base_seed");
  out.golden.checkpoint.amplitude = json.at("amplitude");
  out.files = json.at("files");
  out.dense_tensors = json.at("dense_tensors");
  json.at("texts").get_to(out.texts);
  json.at("logits").get_to(out.results);
  out.n_first_type = json.at("n_first_type");
  return out;
}

// Writes the files beside the checkpoint, and the tensors of Dense modules.
void WriteModules(const PooledCase& c, const fs::path& folder) {
  for (const auto& [name, content] : c.files.items()) {
    fs::create_directories((folder / name).parent_path());
    WriteFile(folder / name, content.dump());
  }
  for (const auto& [module, shapes] : c.dense_tensors.items()) {
    TinyTensors tensors;
    for (const auto& [name, shape_json] : shapes.items()) {
      const auto shape = shape_json.get<std::vector<uint64_t>>();
      uint64_t count = 1;
      for (const uint64_t n : shape) count *= n;
      const std::string seeded = module + "." + name;
      const std::vector<float> values = TinyValues(seeded, count, c.golden.checkpoint.base_seed,
                                                   c.golden.checkpoint.amplitude);
      tensors[name] = {"F32", shape, EncodeFloats(values, "F32")};
    }
    const std::vector<uint8_t> bytes = EncodeSafetensors(tensors);
    WriteFile(folder / module / "model.safetensors",
              std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
}

struct DestroyEmbedder {
  void operator()(arn_embedder* embedder) const { arn_embedder_destroy(embedder); }
};
using EmbedderPtr = std::unique_ptr<arn_embedder, DestroyEmbedder>;

EmbedderPtr NewEmbedder(const arn_model* model, const arn_embed_options& options) {
  char error[512] = "";
  arn_embedder* embedder = nullptr;
  EXPECT_EQ(ARN_OK, arn_embedder_create(model, &options, nullptr, 0, error, sizeof error, &embedder))
      << error;
  return EmbedderPtr(embedder);
}

uint32_t WidthOf(const arn_model* model) {
  arn_embed_info info = ARN_EMBED_INFO_INIT;
  EXPECT_EQ(ARN_OK, arn_embed_get_info(model, &info));
  return info.width;
}

class PooledGoldenTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    case_ = LoadPooled(GetParam());
  }

  // Of int8 weights. With random weights, 24 elements in a head and 64 in a row, the scores of
  // attention are larger and rounding is coarser than in a trained model.
  double LeastCosine() const {
    const std::string name = GetParam();
    return name == "gemma_both_ways" || name == "qwen3_last" ? 0.995 : 0.999;
  }

  ModelPtr Open(const std::string& weights) {
    const fs::path folder = folder_ / weights, bundle = folder_ / (weights + ".arn");
    fs::create_directories(folder);
    WriteModules(case_, folder);
    if (!ConvertGolden(case_.golden, ConfigStyle::kTransformers5, folder, bundle,
                       {"--weights", weights, "--embedding", weights})) {
      return nullptr;
    }
    return OpenModel(bundle);
  }

  // Results of all texts in one call.
  std::vector<float> Embed(arn_embedder* embedder, uint32_t width) {
    std::vector<int32_t> ids;
    std::vector<uint32_t> lengths, first_lengths;
    for (const nlohmann::json& n : case_.n_first_type) {
      first_lengths.push_back(n.is_null() ? UINT32_MAX : n.get<uint32_t>());
    }
    for (const auto& text : case_.texts) {
      ids.insert(ids.end(), text.begin(), text.end());
      lengths.push_back(static_cast<uint32_t>(text.size()));
    }
    std::vector<float> out(case_.texts.size() * width);
    EXPECT_EQ(ARN_OK, arn_embed_ids(embedder, ids.data(), ids.size(), lengths.data(),
                                    first_lengths.data(), lengths.size(), out.data(), out.size()))
        << arn_embedder_last_error(embedder);
    return out;
  }

  void ExpectResults(const std::vector<float>& found, uint32_t width, double tolerance) {
    ASSERT_EQ(case_.results[0].size(), width);
    for (size_t i = 0; i < case_.results.size(); ++i) {
      double largest = 0, error = 0;
      for (uint32_t w = 0; w < width; ++w) {
        const double expected = case_.results[i][w];
        largest = std::max(largest, std::abs(expected));
        error = std::max(error, std::abs(expected - static_cast<double>(found[i * width + w])));
      }
      EXPECT_LE(error, tolerance * largest) << "text " << i;
    }
  }

  TempFolder folder_;
  PooledCase case_;
};

TEST_P(PooledGoldenTest, F32_BothBackendsAndAnyBatch_GiveTheReferencesResults) {
  const ModelPtr model = Open("f32");
  ASSERT_NE(nullptr, model);
  const uint32_t width = WidthOf(model.get());
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    for (const uint32_t max_texts : {1u, 3u, 32u}) {
      SCOPED_TRACE(testing::Message() << "backend " << backend << ", texts " << max_texts);
      arn_embed_options options = ARN_EMBED_OPTIONS_INIT;
      options.backend = backend;
      options.n_threads = 2;
      options.max_texts = max_texts;
      const EmbedderPtr embedder = NewEmbedder(model.get(), options);
      ASSERT_NE(nullptr, embedder);
      ExpectResults(Embed(embedder.get(), width), width, kTolerance);
    }
  }
}

// What a text gives does not depend on its neighbours in a run, nor on the threads.
TEST_P(PooledGoldenTest, BatchesAndThreads_ChangeNoBit) {
  const ModelPtr model = Open("f32");
  ASSERT_NE(nullptr, model);
  const uint32_t width = WidthOf(model.get());
  arn_embed_options options = ARN_EMBED_OPTIONS_INIT;
  options.n_threads = 1;
  const EmbedderPtr first = NewEmbedder(model.get(), options);
  options.n_threads = 3;
  const EmbedderPtr second = NewEmbedder(model.get(), options);
  const std::vector<float> expected = Embed(first.get(), width);
  EXPECT_EQ(expected, Embed(second.get(), width));
  EXPECT_EQ(expected, Embed(first.get(), width));
}

TEST_P(PooledGoldenTest, Int8_IsCloseToTheReference) {
  const ModelPtr model = Open("int8");
  ASSERT_NE(nullptr, model);
  const uint32_t width = WidthOf(model.get());
  const EmbedderPtr embedder = NewEmbedder(model.get(), ARN_EMBED_OPTIONS_INIT);
  ASSERT_NE(nullptr, embedder);
  const std::vector<float> found = Embed(embedder.get(), width);
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
    "bert_mean",         "bert_first_dense",  "bert_score",  "roberta_max",     "xlm_roberta_score",
    "distilbert_sqrt",   "mpnet_mean",          "modern_bert_windows",
    "modern_bert_score", "gemma_both_ways",     "qwen3_last",      "qwen3_score",
};
INSTANTIATE_TEST_SUITE_P(Cases, PooledGoldenTest, testing::ValuesIn(kCases),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace arn::test

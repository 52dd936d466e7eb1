// Texts, prompts and pairs of texts as transformers tokenizes them, by the C API and by the
// commands arenite embed and arenite rerank.
#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "tests/golden/pooled_case.h"
#include "tests/harness/process.h"

namespace arn::test {
namespace {

using testing::HasSubstr;

constexpr double kTolerance = 3e-4;  // of the largest element

class PooledTextTest : public testing::Test {
 protected:
  void SetUp() override { ARN_NEEDS_CONVERTER(); }

  void Load(const std::string& name, std::vector<std::string> options) {
    case_ = LoadPooled("pooled_text/" + name);
    bundle_ = folder_ / (name + ".arn");
    options.insert(options.end(), {"--weights", "f32"});
    ASSERT_TRUE(ConvertPooled(case_, folder_ / name, bundle_, options));
    model_ = OpenModel(bundle_);
    ASSERT_NE(nullptr, model_);
    for (const nlohmann::json& text : case_.json.at("texts")) {
      texts_.push_back(text.get<std::string>());
    }
    for (const std::string& text : texts_) views_.push_back({text.data(), text.size()});
    query_ = case_.json.at("query");
  }
  void LoadTwoTokens() {
    WriteFile(folder_ / "pair.txt", case_json("two_tokens").at("pair_template"));
    Load("two_tokens",
         {"--score-tokens", "yes,No", "--pair-template", (folder_ / "pair.txt").string(),
          "--instruction", case_json("two_tokens").at("instruction")});
  }
  static nlohmann::json case_json(const std::string& name) {
    return LoadPooled("pooled_text/" + name).json;
  }

  arn_status Embed(arn_embedder* embedder, const char* prompt, std::vector<float>* out) {
    return arn_embed(embedder, prompt, views_.data(), views_.size(), out->data(), out->size());
  }
  arn_status Rerank(arn_embedder* embedder, const char* instruction, std::vector<float>* out) {
    return arn_rerank(embedder, instruction, {query_.data(), query_.size()}, views_.data(),
                      views_.size(), out->data(), out->size());
  }
  std::string LinesFile() {
    std::string lines;
    for (const std::string& text : texts_) lines += text + "\n";
    WriteFile(folder_ / "lines.txt", lines);
    return folder_ / "lines.txt";
  }

  TempFolder folder_;
  PooledCase case_;
  std::filesystem::path bundle_;
  ModelPtr model_;
  std::vector<std::string> texts_;
  std::vector<arn_text> views_;
  std::string query_;
};

TEST_F(PooledTextTest, DefaultPrompt_CutTexts_GiveTheReferencesVectors) {
  Load("prompts", {});
  const EmbedderPtr embedder = NewEmbedder(model_.get(), ARN_EMBED_OPTIONS_INIT);
  ASSERT_NE(nullptr, embedder);
  std::vector<float> by_default(texts_.size() * 64), by_text = by_default, without = by_default;
  ASSERT_EQ(ARN_OK, Embed(embedder.get(), nullptr, &by_default))
      << arn_embedder_last_error(embedder.get());
  ExpectResults(case_, by_default, kTolerance);
  arn_embed_counts counts = ARN_EMBED_COUNTS_INIT;
  ASSERT_EQ(ARN_OK, arn_embedder_get_counts(embedder.get(), &counts));
  EXPECT_EQ(1u, counts.n_cut_texts);  // hen hen hen ...
  ASSERT_EQ(ARN_OK, Embed(embedder.get(), "passage: ", &by_text));
  EXPECT_EQ(by_default, by_text);
  ASSERT_EQ(ARN_OK, Embed(embedder.get(), "", &without));
  EXPECT_NE(by_default, without);

  arn_embed_info info = ARN_EMBED_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_embed_get_info(model_.get(), &info));
  EXPECT_EQ(2u, info.n_prompts);
  EXPECT_EQ(1u, info.is_normalized);
  const char *name = nullptr, *text = nullptr;
  ASSERT_EQ(ARN_OK, arn_embed_prompt(model_.get(), static_cast<uint32_t>(info.default_prompt),
                                     &name, &text));
  EXPECT_STREQ("passage", name);
  EXPECT_STREQ("passage: ", text);
  EXPECT_EQ(ARN_NOT_FOUND, arn_embed_prompt(model_.get(), 2, &name, &text));
}

TEST_F(PooledTextTest, Width_CutsVectorsAndNormalisesThem) {
  Load("prompts", {});
  arn_embed_options options = ARN_EMBED_OPTIONS_INIT;
  options.width = 17;
  const EmbedderPtr embedder = NewEmbedder(model_.get(), options);
  ASSERT_NE(nullptr, embedder);
  std::vector<float> found(texts_.size() * 17);
  ASSERT_EQ(ARN_OK, Embed(embedder.get(), nullptr, &found));
  for (std::vector<double>& result : case_.results) {
    result.resize(17);
    double sum = 0;
    for (const double x : result) sum += x * x;
    for (double& x : result) x /= std::sqrt(sum);
  }
  ExpectResults(case_, found, kTolerance);
}

TEST_F(PooledTextTest, Pairs_TokenTypesAndTruncation_GiveTheReferencesScores) {
  Load("pairs", {});
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    arn_embed_options options = ARN_EMBED_OPTIONS_INIT;
    options.backend = backend;
    const EmbedderPtr embedder = NewEmbedder(model_.get(), options);
    ASSERT_NE(nullptr, embedder);
    std::vector<float> found(texts_.size());
    ASSERT_EQ(ARN_OK, Rerank(embedder.get(), nullptr, &found))
        << arn_embedder_last_error(embedder.get());
    ExpectResults(case_, found, kTolerance);
    EXPECT_EQ(ARN_UNSUPPORTED, Rerank(embedder.get(), "judge", &found));
    EXPECT_THAT(arn_embedder_last_error(embedder.get()), HasSubstr("instruction"));
  }
}

TEST_F(PooledTextTest, TwoTokens_GiveTheProbabilityOfTheFirst) {
  LoadTwoTokens();
  const EmbedderPtr embedder = NewEmbedder(model_.get(), ARN_EMBED_OPTIONS_INIT);
  ASSERT_NE(nullptr, embedder);
  std::vector<float> found(texts_.size()), other = found;
  ASSERT_EQ(ARN_OK, Rerank(embedder.get(), nullptr, &found))
      << arn_embedder_last_error(embedder.get());
  ExpectResults(case_, found, kTolerance);
  ASSERT_EQ(ARN_OK, Rerank(embedder.get(), "another task", &other));
  EXPECT_NE(found, other);
  // The bundle still generates text.
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  EXPECT_NE(nullptr, NewSession(model_.get(), options));
}

TEST_F(PooledTextTest, Misuse_IsRefusedWithItsReason) {
  Load("prompts", {});
  arn_model_info info = ARN_MODEL_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_model_get_info(model_.get(), &info));
  EXPECT_EQ(0u, info.makes_text);
  EXPECT_EQ(1u, info.makes_vectors);
  EXPECT_EQ(0u, info.makes_scores);
  char error[512] = "";
  arn_session* session = nullptr;
  EXPECT_EQ(ARN_UNSUPPORTED,
            arn_session_create(model_.get(), nullptr, nullptr, 0, error, sizeof error, &session));
  EXPECT_THAT(error, HasSubstr("embedder"));

  const auto refused = [&](arn_status status, const char* part, auto change) {
    arn_embed_options options = ARN_EMBED_OPTIONS_INIT;
    change(&options);
    arn_embedder* none = nullptr;
    EXPECT_EQ(status,
              arn_embedder_create(model_.get(), &options, nullptr, 0, error, sizeof error, &none));
    EXPECT_THAT(error, HasSubstr(part));
  };
  refused(ARN_BAD_ARGUMENT, "max_tokens", [](auto* o) { o->max_tokens = 41; });
  refused(ARN_BAD_ARGUMENT, "batch_tokens", [](auto* o) { o->batch_tokens = 39; });
  refused(ARN_BAD_ARGUMENT, "width", [](auto* o) { o->width = 65; });
  refused(ARN_BAD_ARGUMENT, "n_threads", [](auto* o) { o->n_threads = 1000; });
  refused(ARN_UNSUPPORTED, "", [](auto* o) { o->backend = 99; });

  arn_embed_options options = ARN_EMBED_OPTIONS_INIT;
  options.text_bytes = 100;
  const EmbedderPtr embedder = NewEmbedder(model_.get(), options);
  ASSERT_NE(nullptr, embedder);
  std::vector<float> out(texts_.size() * 64);
  EXPECT_EQ(ARN_BAD_ARGUMENT, Embed(embedder.get(), nullptr, &out));
  EXPECT_THAT(arn_embedder_last_error(embedder.get()), HasSubstr("text_bytes is 100"));
  EXPECT_EQ(ARN_UNSUPPORTED, Rerank(embedder.get(), nullptr, &out));
  EXPECT_THAT(arn_embedder_last_error(embedder.get()), HasSubstr("vectors"));
  const int32_t ids[] = {1, 5000};
  const uint32_t lengths[] = {2};
  EXPECT_EQ(ARN_BAD_TOKEN,
            arn_embed_ids(embedder.get(), ids, 2, lengths, nullptr, 1, out.data(), out.size()));
  EXPECT_EQ(ARN_BUFFER_TOO_SMALL,
            arn_embed_ids(embedder.get(), ids, 1, lengths, nullptr, 1, out.data(), 63));
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_embed_ids(embedder.get(), ids, 1, lengths, nullptr, 1, out.data(), 64));
  arn_embedder_cancel(embedder.get());
  const int32_t good[] = {1, 5};
  EXPECT_EQ(ARN_CANCELLED,
            arn_embed_ids(embedder.get(), good, 2, lengths, nullptr, 1, out.data(), 64));
  EXPECT_EQ(ARN_OK, arn_embed_ids(embedder.get(), good, 2, lengths, nullptr, 1, out.data(), 64));
}

// The plan's bytes are enough, and a byte less is refused.
TEST_F(PooledTextTest, Memory_IsTheCallersAndThePlans) {
  Load("pairs", {});
  char error[512] = "";
  arn_embed_plan_data plan = ARN_EMBED_PLAN_DATA_INIT;
  ASSERT_EQ(ARN_OK, arn_embed_plan(model_.get(), nullptr, error, sizeof error, &plan));
  EXPECT_EQ(plan.total_bytes, plan.constants_bytes + plan.activations_bytes + plan.io_bytes);
  void* memory = std::aligned_alloc(plan.alignment, plan.total_bytes + plan.alignment);
  std::memset(memory, 0xa5, plan.total_bytes);
  arn_embedder* embedder = nullptr;
  EXPECT_EQ(ARN_OUT_OF_MEMORY,
            arn_embedder_create(model_.get(), nullptr, memory, plan.total_bytes - 1, error,
                                sizeof error, &embedder));
  ASSERT_EQ(ARN_OK, arn_embedder_create(model_.get(), nullptr, memory, plan.total_bytes, error,
                                        sizeof error, &embedder));
  std::vector<float> found(texts_.size());
  EXPECT_EQ(ARN_OK, Rerank(embedder, nullptr, &found));
  ExpectResults(case_, found, kTolerance);
  arn_embedder_destroy(embedder);
  std::free(memory);
}

TEST_F(PooledTextTest, Command_Embed_WritesTheVectors) {
  Load("prompts", {});
  const std::string out = folder_ / "vectors.npy";
  const ProcessResult made = RunArenite({"embed", bundle_, "--file", LinesFile(), "--out", out});
  ASSERT_EQ(0, made.exit_code) << made.err;
  EXPECT_THAT(made.out, HasSubstr("5 vectors of 64"));
  EXPECT_THAT(made.out, HasSubstr("1 texts cut to 40 tokens"));
  const std::string file = ReadText(out);
  ASSERT_GT(file.size(), 128u);
  EXPECT_EQ(0, std::memcmp(file.data(), "\x93NUMPY\x01\x00", 8));
  EXPECT_THAT(file.substr(10, 100), HasSubstr("'descr': '<f4'"));
  EXPECT_THAT(file.substr(10, 100), HasSubstr("(5, 64)"));
  std::vector<float> found(5 * 64);
  ASSERT_EQ(0u, (file.size() - found.size() * sizeof(float)) % 64);
  std::memcpy(found.data(), file.data() + file.size() - found.size() * sizeof(float),
              found.size() * sizeof(float));
  ExpectResults(case_, found, kTolerance);

  const ProcessResult one =
      RunArenite({"embed", bundle_, "--text", texts_[0], "--prompt-name", "passage"});
  ASSERT_EQ(0, one.exit_code) << one.err;
  const nlohmann::json json = nlohmann::json::parse(one.out);
  EXPECT_EQ(64u, json.at("width"));
  EXPECT_NEAR(case_.results[0][3], json.at("vectors")[0][3], 1e-4);
  const ProcessResult unknown =
      RunArenite({"embed", bundle_, "--text", "x", "--prompt-name", "answer"});
  EXPECT_NE(0, unknown.exit_code);
  EXPECT_THAT(unknown.err, HasSubstr("passage, query"));
  const ProcessResult run = RunArenite({"run", bundle_, "--prompt", "x"});
  EXPECT_NE(0, run.exit_code);
  EXPECT_THAT(run.err, HasSubstr("arenite embed"));
}

TEST_F(PooledTextTest, Command_Rerank_OrdersTheLines) {
  Load("pairs", {});
  const ProcessResult found = RunArenite(
      {"rerank", bundle_, "--query", query_, "--file", LinesFile(), "--top", "2", "--json"});
  ASSERT_EQ(0, found.exit_code) << found.err;
  const nlohmann::json results = nlohmann::json::parse(found.out).at("results");
  ASSERT_EQ(2u, results.size());
  EXPECT_EQ(4u, results[0].at("line"));  // the largest of the case
  EXPECT_NEAR(case_.results[3][0], results[0].at("score"), 1e-4);
  EXPECT_EQ(3u, results[1].at("line"));
  const ProcessResult text =
      RunArenite({"rerank", bundle_, "--query", query_, "--file", LinesFile()});
  ASSERT_EQ(0, text.exit_code) << text.err;
  EXPECT_EQ(0u, text.out.rfind("0.2226", 0)) << text.out;
}

TEST_F(PooledTextTest, Converter_RefusesPairsOfAnUnknownForm) {
  const PooledCase c = LoadPooled("pooled_text/pairs");
  nlohmann::json tokenizer =
      nlohmann::json::parse(ReadText(SourcePath(c.json.at("tokenizer").get<std::string>())));
  const auto part = [](const char* kind, const char* id) {
    return nlohmann::json{{kind, {{"id", id}, {"type_id", 0}}}};
  };
  const nlohmann::json cls = part("SpecialToken", "[CLS]"), sep = part("SpecialToken", "[SEP]");
  const nlohmann::json a = part("Sequence", "A"), b = part("Sequence", "B");
  const auto convert = [&](const nlohmann::json& pair) {
    tokenizer["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single", {cls, a, sep}},
        {"pair", pair},
        {"special_tokens",
         {{"[CLS]", {{"id", "[CLS]"}, {"ids", {2}}, {"tokens", {"[CLS]"}}}},
          {"[SEP]", {{"id", "[SEP]"}, {"ids", {3}}, {"tokens", {"[SEP]"}}}}}}};
    const std::filesystem::path folder = folder_ / "template";
    EXPECT_TRUE(ConvertPooled(c, folder, folder_ / "known.arn", {"--weights", "f32"}));
    WriteFile(folder / "tokenizer.json", tokenizer.dump());
    return RunProcess({ConverterPath(), folder.string(), "-o", (folder_ / "template.arn").string(),
                       "--weights", "f32"});
  };
  const ProcessResult known = convert({cls, a, sep, b, sep});
  EXPECT_EQ(0, known.exit_code) << known.err;
  EXPECT_EQ(ReadText(folder_ / "known.arn").size(), ReadText(folder_ / "template.arn").size());
  const ProcessResult swapped = convert({cls, b, sep, a, sep});
  EXPECT_NE(0, swapped.exit_code);
  EXPECT_THAT(swapped.err, HasSubstr("--pair-template"));
  const ProcessResult longer = convert({cls, a, sep, b, sep, sep});
  EXPECT_NE(0, longer.exit_code);
  EXPECT_THAT(longer.err, HasSubstr("--pair-template"));
}

TEST_F(PooledTextTest, Converter_RefusesWhatItDoesNotHonour) {
  case_ = LoadPooled("pooled_text/prompts");
  const auto refused = [&](const char* part, const std::vector<std::string>& options) {
    const std::filesystem::path folder = folder_ / "refused";
    std::filesystem::remove_all(folder);
    ASSERT_FALSE(::testing::Test::HasFailure());
    std::vector<std::string> command = {ConverterPath(), folder.string(), "-o",
                                        (folder_ / "refused.arn").string()};
    for (const auto& [name, content] : case_.json.at("files").items()) {
      std::filesystem::create_directories((folder / name).parent_path());
      WriteFile(folder / name, content.dump());
    }
    WriteFile(folder / "config.json", case_.golden.config.dump());
    WriteTinyCheckpoint(folder, case_.golden.checkpoint);
    WriteFile(folder / "config.json", case_.golden.config.dump());
    command.insert(command.end(), options.begin(), options.end());
    const ProcessResult result = RunProcess(command);
    EXPECT_NE(0, result.exit_code);
    EXPECT_THAT(result.err, HasSubstr(part));
  };
  nlohmann::json& files = case_.json.at("files");
  const nlohmann::json before = files;
  files["1_Pooling/config.json"]["pooling_mode_cls_token"] = true;
  refused("several poolings", {});
  files = before;
  files["modules.json"].push_back(
      {{"type", "sentence_transformers.models.LayerNorm"}, {"path", "3_LayerNorm"}});
  refused("LayerNorm", {});
  files = before;
  files["1_Pooling/config.json"]["include_prompt"] = false;
  refused("include_prompt", {});
  files = before;
  files["sentence_bert_config.json"] = {{"max_seq_length", 20}, {"do_lower_case", true}};
  refused("do_lower_case", {});
  files = before;
  refused("--pooling", {"--pooling", "median"});
  case_.golden.config["position_embedding_type"] = "relative_key";
  refused("position_embedding_type", {});
}

}  // namespace
}  // namespace arn::test

// The folder of reference checkpoints (ARENITE_SHARED_DIR, if set): the published text of a trained
// model, random decoders with the logits of every position, and real tokenizers.
#include <cmath>
#include <cstring>
#include <iterator>
#include <sstream>

#include "nlohmann/json.hpp"
#include "tests/harness/bundles.h"
#include "tests/support/tiny_checkpoint.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 2e-4;

std::string Stripped(const std::string& text) {
  const char* kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Returns the float32 tensors of a safetensors file.
std::map<std::string, std::vector<float>> ReadFloats(const fs::path& path) {
  const std::vector<uint8_t> file = ReadFile(path);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), 8);
  const auto header = nlohmann::json::parse(
      file.begin() + 8, file.begin() + 8 + static_cast<ptrdiff_t>(header_bytes));
  std::map<std::string, std::vector<float>> tensors;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__" || tensor["dtype"] != "F32") continue;
    const uint64_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
    std::vector<float>& values = tensors[name];
    values.resize((end - begin) / sizeof(float));
    std::memcpy(values.data(), file.data() + 8 + header_bytes + begin, end - begin);
  }
  return tensors;
}

class StoriesTest : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    ARN_NEEDS_SHARED_DIR();
    source_ = SharedDir() / "models/stories260K";
  }

  ModelPtr Model(const char* weights) {
    const auto bundle = folder_ / (std::string(weights) + ".arn");
    if (!Convert(source_, bundle, {"--weights", weights})) return {};
    return OpenModel(bundle);
  }

  double Nll(const char* weights, uint32_t kv) {
    const ModelPtr model = Model(weights);
    if (model == nullptr) return NAN;
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.kv_type = kv;
    options.prefill_chunk = 64;
    options.all_logits = 1;
    const SessionPtr session = NewSession(model.get(), options);
    const auto reference =
        nlohmann::json::parse(ReadText(source_ / "expected_greedy_transformers.json"));
    const std::vector<int32_t> ids = reference["published_text_ids"];
    return MeanNll(session.get(), VocabSize(model.get()), 64, ids, 512);
  }

  fs::path source_;
  TempFolder folder_;
};

TEST_F(StoriesTest, F32_FromNothing_IsThePublishedText) {
  const std::string published = Stripped(ReadText(source_ / "published_greedy.txt"));
  const ModelPtr model = Model("f32");
  ASSERT_NE(nullptr, model);
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.backend = backend;
    options.kv_type = ARN_KV_F32;
    const SessionPtr session = NewSession(model.get(), options);
    ASSERT_NE(nullptr, session);
    const std::vector<int32_t> prompt = Tokenize(model.get(), "", ARN_TOKENIZE_DEFAULT);
    ASSERT_EQ(std::vector<int32_t>{1}, prompt);
    const Generated generated = GenerateGreedy(session.get(), prompt, 256, false);
    EXPECT_EQ(published, Stripped(generated.text).substr(0, published.size()));
  }
}

TEST_F(StoriesTest, Prompts_GiveTheReferencesTokensAndText) {
  const auto reference =
      nlohmann::json::parse(ReadText(source_ / "expected_greedy_transformers.json"));
  const ModelPtr model = Model("f32");
  ASSERT_NE(nullptr, model);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  const SessionPtr session = NewSession(model.get(), options);
  ASSERT_NE(nullptr, session);
  for (const nlohmann::json& c : reference["cases"]) {
    const std::vector<int32_t> ids = c["input_ids"];
    EXPECT_EQ(ids, Tokenize(model.get(), c["prompt"], ARN_TOKENIZE_DEFAULT)) << c["prompt"];
    const std::vector<int32_t> greedy = c["greedy_64"];
    ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
    const auto n = static_cast<uint32_t>(greedy.size());
    EXPECT_EQ(greedy, GenerateGreedy(session.get(), ids, n, /*ignore_eos=*/true).ids)
        << c["prompt"];
  }
}

TEST_F(StoriesTest, Int8_CostsUnderTwoPercentOfPerplexity) {
  const auto reference =
      nlohmann::json::parse(ReadText(source_ / "expected_greedy_transformers.json"));
  const double exact = Nll("f32", ARN_KV_F32);
  EXPECT_NEAR(reference["nll_of_published_text"].get<double>(), exact, 1e-4);
  const double int8 = Nll("int8", ARN_KV_INT8);
  RecordProperty("perplexity_f32", std::to_string(std::exp(exact)));
  RecordProperty("perplexity_int8", std::to_string(std::exp(int8)));
  EXPECT_LT(std::exp(int8 - exact), 1.02);
}

// Runs the encoder if the checkpoint has one, on the features or on the prompt's tokens. Returns
// the number of prompt tokens in `ids`.
size_t EncodeInput(arn_session* session, const std::map<std::string, std::vector<float>>& tensors,
                   size_t run, const std::vector<int32_t>& prompt,
                   const std::vector<int32_t>& ids) {
  const std::string name = "p" + std::to_string(run);
  const auto features = tensors.find(name + ".input_features");
  if (features != tensors.end()) {
    constexpr uint32_t kWidth = 16;  // stored [width, frames]
    const size_t frames = features->second.size() / kWidth;
    std::vector<float> by_frame;
    for (size_t f = 0; f < frames; ++f) {
      for (size_t w = 0; w < kWidth; ++w) by_frame.push_back(features->second[w * frames + f]);
    }
    EXPECT_EQ(ARN_OK, arn_session_encode_features(session, by_frame.data(),
                                                  static_cast<uint32_t>(frames), kWidth));
    return prompt.size();
  }
  if (tensors.count(name + ".encoder_out") == 0) return prompt.size();
  EXPECT_EQ(ARN_OK, arn_session_encode_ids(session, prompt.data(), prompt.size()));
  EXPECT_FALSE(ids.empty());
  return 1;  // the decoder start token
}

class TinyReferenceTest : public testing::TestWithParam<const char*> {};

TEST_P(TinyReferenceTest, BothConfigs_GiveTheReferencesLogitsAndTokens) {
  ARN_NEEDS_CONVERTER();
  ARN_NEEDS_SHARED_DIR();
  const fs::path source = SharedDir() / "reference/tiny" / GetParam();
  const auto golden = nlohmann::json::parse(ReadText(source / "golden.json"));
  const auto tensors = ReadFloats(source / "golden.safetensors");
  const TempFolder folder;
  for (const char* config : {"config.json", "config.old.json"}) {
    const auto bundle = folder / (std::string(config) + ".arn");
    ASSERT_TRUE(
        Convert(source, bundle, {"--weights", "f32", "--config", (source / config).string()}));
    const ModelPtr model = OpenModel(bundle);
    ASSERT_NE(nullptr, model);
    const uint32_t vocab = VocabSize(model.get());
    for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
      SCOPED_TRACE(testing::Message() << config << ", backend " << backend);
      arn_session_options options = ARN_SESSION_OPTIONS_INIT;
      options.backend = backend;
      options.kv_type = ARN_KV_F32;
      options.prefill_chunk = 16;
      options.all_logits = 1;
      for (size_t i = 0; i < golden["runs"].size(); ++i) {
        const std::vector<int32_t> prompt = golden["runs"][i]["prompt"];
        const std::vector<int32_t> ids = golden["runs"][i]["no_cache"];
        // The context length selects between the RoPE frequencies.
        options.context_tokens = static_cast<uint32_t>(ids.size());
        const SessionPtr session = NewSession(model.get(), options);
        ASSERT_NE(nullptr, session);
        const std::vector<float>& wanted = tensors.at("p" + std::to_string(i) + ".logits");
        ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
        const size_t n_prompt = EncodeInput(session.get(), tensors, i, prompt, ids);
        const std::vector<float> logits = AllLogits(session.get(), vocab, 16, ids);
        ASSERT_EQ(wanted.size(), logits.size());
        double worst = 0, largest = 0;
        for (size_t k = 0; k < logits.size(); ++k) {
          largest = std::max(largest, std::abs(static_cast<double>(wanted[k])));
          const double error = std::abs(static_cast<double>(logits[k] - wanted[k]));
          if (!(error <= worst)) worst = error;
        }
        // Logits in the hundreds come from unscaled attention scores. The float32 reference then
        // differs from float64 by 2.5e-5 of the largest logit.
        EXPECT_LT(worst, largest > 100 ? 6e-5 * largest : kTolerance);
        // If false, the reference's own tokens depend on the evaluation order.
        if (!golden["runs"][i]["tf_greedy_agrees"]) continue;
        ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
        EncodeInput(session.get(), tensors, i, prompt, ids);
        const auto n = static_cast<uint32_t>(ids.size() - n_prompt);
        const auto begin = ids.begin() + static_cast<ptrdiff_t>(n_prompt);
        const std::vector<int32_t> own(ids.begin(), begin), greedy(begin, ids.end());
        EXPECT_EQ(greedy, GenerateGreedy(session.get(), own, n, /*ignore_eos=*/true).ids);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, TinyReferenceTest,
    testing::Values("llama_tied", "llama_untied", "llama_bias_hd", "llama3_rope", "llama_yarn",
                    "llama_linear", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "phi3",
                    "phi3_longrope", "phi4_partial", "gpt_neox", "gpt_neox_seq", "gpt2", "smollm3",
                    "granite", "olmo2", "starcoder2", "mixtral", "qwen3_moe", "gpt_oss", "mamba",
                    "llama4_text", "t5", "t5_gated", "whisper"),
    [](const testing::TestParamInfo<const char*>& p) { return std::string(p.param); });

class TokenizerReferenceTest : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerReferenceTest, EveryCase_GivesTheReferencesIds) {
  ARN_NEEDS_CONVERTER();
  ARN_NEEDS_SHARED_DIR();
  const fs::path root = SharedDir() / "tokenizers";
  const TempFolder folder;
  ASSERT_TRUE(Convert(root / GetParam(), folder / "t.arn", {"--tokenizer-only"}));
  const ModelPtr model = OpenModel(folder / "t.arn");
  ASSERT_NE(nullptr, model);

  const std::string texts = ReadText(root / "cases/texts.inp");
  std::istringstream lines(ReadText(root / "cases" / (std::string(GetParam()) + ".ids")));
  const std::string separator = "\n__ggml_vocab_test__\n";
  size_t begin = 0, n_cases = 0;
  for (std::string line; begin <= texts.size() && std::getline(lines, line); ++n_cases) {
    const size_t end = std::min(texts.find(separator, begin), texts.size());
    const std::string text = texts.substr(begin, end - begin);
    begin = end + separator.size();
    std::istringstream numbers(line);
    const std::vector<int32_t> wanted{std::istream_iterator<int32_t>(numbers), {}};
    EXPECT_EQ(wanted, Tokenize(model.get(), text, ARN_TOKENIZE_NO_SPECIAL))
        << "case " << n_cases << ": " << testing::PrintToString(text);
  }
  EXPECT_GE(n_cases, 40u);
}

INSTANTIATE_TEST_SUITE_P(Cases, TokenizerReferenceTest,
                         testing::Values("gpt2", "llama2", "llama3", "qwen2.5"),
                         [](const testing::TestParamInfo<const char*>& p) {
                           std::string name = p.param;
                           std::erase(name, '.');
                           return name;
                         });

}  // namespace
}  // namespace arn::test

// Text encoders in GGUF files, their pooling and their tokenizer. Folder and file of a golden case
// must give the same bundle.
#include "tests/unit/converter/gguf/gguf_decoder_fixture.h"

namespace arn::convert {
namespace {

class GgufEncoderTest : public GgufDecoderTest {
 protected:
  // Writes the folder with the modules of sentence-transformers: pooling by `mode`, dense layers of
  // `widths`, vectors of length 1.
  void WriteModules(const char* mode, const std::vector<uint32_t>& widths = {}) {
    WriteFolder();
    json modules =
        json::array({{{"type", "sentence_transformers.models.Transformer"}, {"path", ""}},
                     {{"type", "sentence_transformers.models.Pooling"}, {"path", "1_Pooling"}}});
    const auto write = [&](const std::string& name, const json& content) {
      const std::filesystem::path path = folder_ / "model" / name;
      std::filesystem::create_directories(path.parent_path());
      test::WriteFile(path, content.dump());
    };
    write("1_Pooling/config.json", {{"pooling_mode", mode}});
    uint32_t width = config_.value("hidden_size", 64u);
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string name = std::to_string(i + 2) + "_Dense";
      modules.push_back({{"type", "sentence_transformers.models.Dense"}, {"path", name}});
      write(name + "/config.json", {{"in_features", width},
                                    {"out_features", widths[i]},
                                    {"bias", false},
                                    {"activation_function", "torch.nn.modules.linear.Identity"}});
      const TinyTensor tensor = Dense(i, widths[i], width);
      const std::vector<uint8_t> bytes = test::EncodeSafetensors({{"linear.weight", tensor}});
      test::WriteFile(folder_ / "model" / name / "model.safetensors", bytes.data(), bytes.size());
      width = widths[i];
    }
    modules.push_back(
        {{"type", "sentence_transformers.models.Normalize"}, {"path", "9_Normalize"}});
    write("modules.json", modules);
  }
  static TinyTensor Dense(size_t i, uint64_t rows, uint64_t cols) {
    const std::string name = "dense_" + std::to_string(i + 2);
    return {"F32",
            {rows, cols},
            test::EncodeFloats(test::TinyValues(name, rows * cols, 1, 0.3f), "F32")};
  }
  // llama.cpp's converter leaves out what makes no vectors.
  void RemovePooler() {
    std::erase_if(tensors_, [](const auto& item) { return item.first.starts_with("pooler."); });
  }
};

TEST_F(GgufEncoderTest, Bert) {
  GgufWriter writer = LoadAs("pooled/bert_mean", "bert", {{"pooling_type", 1}});
  writer.Bool("bert.attention.causal", false);
  WriteModules("mean");
  RemovePooler();
  AddAll(kBert, &writer);
  ExpectSame(writer, "");
}

// The rows of positions that no token has are not in the file.
TEST_F(GgufEncoderTest, Roberta) {
  GgufWriter writer =
      LoadAs("pooled/roberta_max", "bert", {{"pooling_type", 2}, {"context_length", 46}});
  writer.Bool("bert.attention.causal", false);
  WriteModules("cls");
  RemovePooler();
  TinyTensor& positions = tensors_.at("embeddings.position_embeddings.weight");
  positions.shape[0] -= 2;
  positions.bytes.erase(positions.bytes.begin(), positions.bytes.begin() + 2 * 64 * 4);
  AddAll(kBert, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufEncoderTest, DistilBert) {
  GgufWriter writer = LoadAs("pooled/distilbert_sqrt", "bert",
                             {{"pooling_type", 1},
                              {"block_count", 3},
                              {"embedding_length", 64},
                              {"feed_forward_length", 100},
                              {"attention.head_count", 4}});
  writer.Bool("bert.attention.causal", false);
  writer.Float("bert.attention.layer_norm_epsilon", 1e-12f);
  WriteModules("mean");
  AddAll(Joined({{"transformer.layer.", "blk."},
                 {"attention.q_lin", "attn_q"},
                 {"attention.k_lin", "attn_k"},
                 {"attention.v_lin", "attn_v"},
                 {"attention.out_lin", "attn_output"},
                 {"sa_layer_norm", "attn_output_norm"},
                 {"output_layer_norm", "layer_output_norm"},
                 {"ffn.lin1", "ffn_up"},
                 {"ffn.lin2", "ffn_down"}},
                kBert),
         &writer);
  ExpectSame(writer, "");
}

// Layers 0, 3, ... see the whole text, with a base of their own.
TEST_F(GgufEncoderTest, ModernBert) {
  GgufWriter writer = LoadAs("pooled/modern_bert_windows", "modern-bert",
                             {{"pooling_type", 2},
                              {"attention.sliding_window", 20},
                              {"attention.sliding_window_pattern", 3}});
  writer.Bool("modern-bert.attention.causal", false);
  writer.Float("modern-bert.attention.layer_norm_epsilon", 1e-5f);
  writer.Float("modern-bert.rope.freq_base", 16000.0f);
  writer.Float("modern-bert.rope.freq_base_swa", 1000.0f);
  writer.String("modern-bert.rope.scaling.type", "none");
  writer.String("modern-bert.hidden_activation", "silu");
  // llama.cpp's converter always writes it.
  writer.String("modern-bert.classifier.activation", "gelu");
  config_["hidden_activation"] = "silu";
  WriteModules("cls");
  AddAll({{"embeddings.tok_embeddings", "token_embd"},
          {"embeddings.norm", "token_embd_norm"},
          {"final_norm", "output_norm"},
          {"layers.", "blk."},
          {"attn.Wqkv", "attn_qkv"},
          {"attn.Wo", "attn_output"},
          {"mlp.Wi", "ffn_up"},
          {"mlp.Wo", "ffn_down"},
          {"mlp_norm", "ffn_norm"}},
         &writer);
  ExpectSame(writer, "");
}

// Windows reach both ways, and dense layers follow the pooling.
TEST_F(GgufEncoderTest, EmbeddingGemma) {
  GgufWriter writer = LoadAs("pooled/gemma_both_ways", "gemma-embedding", {{"pooling_type", 1}});
  writer.Float("gemma-embedding.rope.freq_base", 1000000.0f);
  config_.erase("layer_types");
  WriteModules("mean", {96, 40});
  for (auto& [name, tensor] : tensors_) {
    if (name.find("norm.weight") == std::string::npos) continue;
    std::vector<float> values = Floats(tensor);
    for (float& v : values) v += 1.0f;
    tensor.bytes = test::EncodeFloats(values, "F32");
  }
  TinyTensor norm;
  Take("norm.weight", &norm);
  Put("output_norm.weight", norm, &writer);
  Put("dense_2.weight", Dense(0, 96, 64), &writer);
  Put("dense_3.weight", Dense(1, 40, 96), &writer);
  AddAll(Joined({{"embed_tokens", "token_embd"},
                 {"layers.", "blk."},
                 {"pre_feedforward_layernorm", "ffn_norm"}},
                kPostNorms),
         &writer);
  ExpectSame(writer, "with windows in all but every sixth layer");
}

// A reranker: scores of the first token's row.
TEST_F(GgufEncoderTest, RobertaScores) {
  GgufWriter writer =
      LoadAs("pooled/xlm_roberta_score", "bert", {{"pooling_type", 4}, {"context_length", 46}});
  writer.Bool("bert.attention.causal", false);
  writer.Strings("bert.classifier.output_labels", {"A", "B", "C"});
  // Only the tokenizer, which this file lacks, tells XLM-R from RoBERTa.
  config_["architectures"] = {"RobertaForSequenceClassification"};
  config_["model_type"] = "roberta";
  WriteFolder();
  std::string prefix;
  for (const auto& item : tensors_) {
    const size_t at = item.first.find("embeddings.position_embeddings.weight");
    if (at != std::string::npos) prefix = item.first.substr(0, at);
  }
  TinyTensor& positions = tensors_.at(prefix + "embeddings.position_embeddings.weight");
  positions.shape[0] -= 2;
  positions.bytes.erase(positions.bytes.begin(), positions.bytes.begin() + 2 * 64 * 4);
  AddAll(Joined({{prefix, ""}, {"classifier.dense", "cls"}, {"classifier.out_proj", "cls.output"}},
                kBert),
         &writer);
  ExpectSame(writer, "");
}

// A decoder whose last row is the vector.
TEST_F(GgufEncoderTest, Qwen3Embedding) {
  GgufWriter writer = LoadAs("pooled/qwen3_last", "qwen3", {{"pooling_type", 3}});
  WriteModules("lasttoken");
  AddAll({{"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"}}, &writer);
  ExpectSame(writer, "");
}

TEST_F(GgufEncoderTest, WithoutPooling_IsTheMean) {
  GgufWriter writer = LoadAs("pooled/bert_mean", "bert");
  writer.Bool("bert.attention.causal", false);
  RemovePooler();
  AddAll(kBert, &writer);
  WriteGguf(writer);
  Run(GgufOptions(DType::kF32));
  EXPECT_THAT(warnings_,
              ::testing::Contains(HasSubstr("no bert.pooling_type: vectors are the mean")));
}

TEST_F(GgufEncoderTest, WhatDoesNotFit_IsNamed) {
  const auto error_of = [&](uint32_t pooling, bool is_causal) {
    GgufWriter writer = LoadAs("pooled/bert_mean", "bert", {{"pooling_type", pooling}});
    writer.Bool("bert.attention.causal", is_causal);
    RemovePooler();
    AddAll(kBert, &writer);
    WriteGguf(writer);
    return GgufError();
  };
  EXPECT_THAT(error_of(4, false), HasSubstr("bert.pooling_type: expected 0 (none), 1 (mean)"));
  // The pooler of a plain BERT that scores texts is not in files.
  GgufWriter scorer = LoadAs("pooled/bert_mean", "bert");
  scorer.Bool("bert.attention.causal", false);
  RemovePooler();
  Put("cls.output.weight", Dense(0, 1, 64), &scorer);
  AddAll(kBert, &scorer);
  WriteGguf(scorer);
  EXPECT_THAT(GgufError(), HasSubstr("a head without its dense layer, cls.weight"));
  EXPECT_THAT(error_of(1, true), HasSubstr("bert.attention.causal: expected false, found true"));
}

json BertTokenizer(bool lowers) {
  const json vocab = {{"[PAD]", 0u},
                      {"[UNK]", 1u},
                      {"[CLS]", 2u},
                      {"[SEP]", 3u},
                      {"[MASK]", 4u},
                      {"a", 5u},
                      {lowers ? "b" : "B", 6u},
                      {"##b", 7u},
                      {"ab", 8u},
                      {",", 9u}};
  json added = json::array();
  for (const char* text : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    added.push_back({{"id", vocab[text]},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const auto special = [](const char* text, uint32_t type) {
    return json({{"SpecialToken", {{"id", text}, {"type_id", type}}}});
  };
  const auto sequence = [](const char* name, uint32_t type) {
    return json({{"Sequence", {{"id", name}, {"type_id", type}}}});
  };
  const json single = {special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0)};
  json pair = single;
  pair.push_back(sequence("B", 1));
  pair.push_back(special("[SEP]", 1));
  return {{"added_tokens", added},
          {"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", true},
            {"strip_accents", nullptr},
            {"lowercase", lowers}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", single},
            {"pair", pair},
            {"special_tokens",
             {{"[CLS]", {{"id", "[CLS]"}, {"ids", {2u}}}},
              {"[SEP]", {{"id", "[SEP]"}, {"ids", {3u}}}}}}}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100u},
            {"vocab", vocab}}}};
}

// Pieces that begin a word have a blank, the others no "##". A vocabulary with capital letters is
// that of a model that keeps them.
TEST_F(GgufEncoderTest, WordPieces) {
  for (const bool lowers : {true, false}) {
    GgufWriter writer = LoadAs("pooled/bert_mean", "bert", {{"pooling_type", 1}});
    writer.Bool("bert.attention.causal", false);
    WriteModules("mean");
    test::WriteFile(folder_ / "model/tokenizer.json", BertTokenizer(lowers).dump());
    writer.String("tokenizer.ggml.model", "bert");
    writer.String("tokenizer.ggml.pre", "default");
    writer.Strings("tokenizer.ggml.tokens",
                   {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2581a",
                    lowers ? "\u2581b" : "\u2581B", "b", "\u2581ab", "\u2581,"});
    writer.Ints("tokenizer.ggml.token_type", {3, 3, 3, 3, 3, 1, 1, 1, 1, 1});
    writer.Uint("tokenizer.ggml.cls_token_id", 2);
    writer.Uint("tokenizer.ggml.seperator_token_id", 3);
    writer.Uint("tokenizer.ggml.unknown_token_id", 1);
    RemovePooler();
    AddAll(kBert, &writer);
    ExpectSame(writer, "");
  }
}

}  // namespace
}  // namespace arn::convert

// Rows of text encoders, and of decoders that score texts, for family_table.cc. They make vectors
// or scores of texts, not text.
#pragma once

#include <cstddef>

#include "converter/family/family.h"
#include "converter/family/family_names.h"

namespace arn::convert {

inline constexpr TensorNames kBertNames = {
    .prefix = "bert.",
    .embedding = "bert.embeddings.word_embeddings",
    .positions = "bert.embeddings.position_embeddings",
    .embedding_norm = "bert.embeddings.LayerNorm",
    .token_types = "bert.embeddings.token_type_embeddings",
    .unused = {"bert.pooler.", "pooler.", "cls.", "bert.embeddings.position_ids",
               "embeddings.position_ids"},
    .attention_norm = "bert.encoder.layer.{}.attention.output.LayerNorm",
    .q = "bert.encoder.layer.{}.attention.self.query",
    .k = "bert.encoder.layer.{}.attention.self.key",
    .v = "bert.encoder.layer.{}.attention.self.value",
    .attention_out = "bert.encoder.layer.{}.attention.output.dense",
    .ffn_norm = "bert.encoder.layer.{}.output.LayerNorm",
    .up = "bert.encoder.layer.{}.intermediate.dense",
    .down = "bert.encoder.layer.{}.output.dense",
};

inline constexpr TensorNames kRobertaNames = {
    .prefix = "roberta.",
    .embedding = "roberta.embeddings.word_embeddings",
    .positions = "roberta.embeddings.position_embeddings",
    .embedding_norm = "roberta.embeddings.LayerNorm",
    .token_types = "roberta.embeddings.token_type_embeddings",
    .unused = {"roberta.pooler.", "pooler.", "lm_head.", "roberta.embeddings.position_ids",
               "embeddings.position_ids"},
    .attention_norm = "roberta.encoder.layer.{}.attention.output.LayerNorm",
    .q = "roberta.encoder.layer.{}.attention.self.query",
    .k = "roberta.encoder.layer.{}.attention.self.key",
    .v = "roberta.encoder.layer.{}.attention.self.value",
    .attention_out = "roberta.encoder.layer.{}.attention.output.dense",
    .ffn_norm = "roberta.encoder.layer.{}.output.LayerNorm",
    .up = "roberta.encoder.layer.{}.intermediate.dense",
    .down = "roberta.encoder.layer.{}.output.dense",
};

inline constexpr TensorNames kDistilBertNames = {
    .prefix = "distilbert.",
    .embedding = "distilbert.embeddings.word_embeddings",
    .positions = "distilbert.embeddings.position_embeddings",
    .embedding_norm = "distilbert.embeddings.LayerNorm",
    .unused = {"vocab_transform.", "vocab_layer_norm.", "vocab_projector.",
               "distilbert.embeddings.position_ids", "embeddings.position_ids"},
    .attention_norm = "distilbert.transformer.layer.{}.sa_layer_norm",
    .q = "distilbert.transformer.layer.{}.attention.q_lin",
    .k = "distilbert.transformer.layer.{}.attention.k_lin",
    .v = "distilbert.transformer.layer.{}.attention.v_lin",
    .attention_out = "distilbert.transformer.layer.{}.attention.out_lin",
    .ffn_norm = "distilbert.transformer.layer.{}.output_layer_norm",
    .up = "distilbert.transformer.layer.{}.ffn.lin1",
    .down = "distilbert.transformer.layer.{}.ffn.lin2",
};

inline constexpr TensorNames kMpnetNames = {
    .prefix = "mpnet.",
    .embedding = "mpnet.embeddings.word_embeddings",
    .positions = "mpnet.embeddings.position_embeddings",
    .embedding_norm = "mpnet.embeddings.LayerNorm",
    .unused = {"mpnet.pooler.", "pooler.", "lm_head.", "mpnet.embeddings.position_ids",
               "embeddings.position_ids"},
    .attention_norm = "mpnet.encoder.layer.{}.attention.LayerNorm",
    .q = "mpnet.encoder.layer.{}.attention.attn.q",
    .k = "mpnet.encoder.layer.{}.attention.attn.k",
    .v = "mpnet.encoder.layer.{}.attention.attn.v",
    .attention_out = "mpnet.encoder.layer.{}.attention.attn.o",
    .ffn_norm = "mpnet.encoder.layer.{}.output.LayerNorm",
    .up = "mpnet.encoder.layer.{}.intermediate.dense",
    .down = "mpnet.encoder.layer.{}.output.dense",
    .relative_position_bias = "mpnet.encoder.relative_attention_bias",
};

inline constexpr TensorNames kModernBertNames = {
    .prefix = "model.",
    .embedding = "model.embeddings.tok_embeddings",
    .embedding_norm = "model.embeddings.norm",
    .final_norm = "model.final_norm",
    .unused = {"head.", "decoder."},
    .attention_norm = "model.layers.{}.attn_norm",
    .qkv = "model.layers.{}.attn.Wqkv",
    .attention_out = "model.layers.{}.attn.Wo",
    .ffn_norm = "model.layers.{}.mlp_norm",
    .gate_up = "model.layers.{}.mlp.Wi",
    .down = "model.layers.{}.mlp.Wo",
};

inline constexpr ScoreHead kBertScore = {.out = "classifier", .dense = "bert.pooler.dense"};
inline constexpr ScoreHead kRobertaScore = {.out = "classifier.out_proj",
                                            .dense = "classifier.dense"};
inline constexpr ScoreHead kDistilBertScore = {
    .out = "classifier", .dense = "pre_classifier", .activation = Activation::kRelu};
inline constexpr ScoreHead kModernBertScore = {.out = "classifier",
                                               .dense = "head.dense",
                                               .dense_bias_key = "classifier_bias",
                                               .activation = Activation::kGelu,
                                               .activation_key = "classifier_activation",
                                               .norm = "head.norm",
                                               .mode_key = "classifier_pooling"};
inline constexpr ScoreHead kDecoderScore = {
    .out = "score", .has_out_bias = false, .mode = PoolKind::kLast};

// An encoder of BERT's shape: norms after the sums, learned positions, biases everywhere.
constexpr Family PostNormEncoder(const char* architecture, const char* model_type,
                                 const TensorNames* names, const ScoreHead* score) {
  Family family = {.architecture = architecture, .model_type = model_type, .names = names};
  family.keys = {.epsilon = "layer_norm_eps", .head_dim = nullptr};
  family.qkv_bias = family.attention_out_bias = family.mlp_bias = Bias::kAlways;
  family.layer = {.norm = NormKind::kLayer, .is_gated = false, .norms_follow_sum = true};
  family.default_epsilon = 1e-12;
  family.activation = "gelu";
  family.kv_heads = KvHeadRule::kAsHeads;
  family.is_bidirectional = true;
  family.score = score;
  family.rope = RopeRule::kNone;
  family.default_max_context = 512;
  family.default_tied = true;
  family.required[0] = {"is_decoder", "false"};
  family.required[1] = {"position_embedding_type", "\"absolute\""};
  return family;
}

constexpr Family Bert(const char* architecture, const ScoreHead* score = nullptr) {
  Family family = PostNormEncoder(architecture, "bert", &kBertNames, score);
  family.default_token_types = 2;
  family.ignored_keys[0] = "directionality";
  family.ignored_keys[1] = "pooler_fc_size";
  family.ignored_keys[2] = "pooler_num_attention_heads";
  family.ignored_keys[3] = "pooler_num_fc_layers";
  family.ignored_keys[4] = "pooler_size_per_head";
  family.ignored_keys[5] = "pooler_type";
  return family;
}

constexpr Family Roberta(const char* architecture, const char* model_type,
                         const ScoreHead* score = nullptr) {
  Family family = PostNormEncoder(architecture, model_type, &kRobertaNames, score);
  family.default_token_types = 2;
  family.position_offset = 2;
  family.context_has_offset = true;
  family.required[2] = {"type_vocab_size", "1"};
  family.required[3] = {"pad_token_id", "1"};
  family.ignored_keys[0] = "create_position_ids_from_inputs";
  return family;
}

constexpr Family DistilBert(const char* architecture, const ScoreHead* score = nullptr) {
  Family family = PostNormEncoder(architecture, "distilbert", &kDistilBertNames, score);
  family.keys = {.hidden = "dim",
                 .layers = "n_layers",
                 .heads = "n_heads",
                 .ffn = "hidden_dim",
                 .epsilon = nullptr,
                 .activation = "activation",
                 .head_dim = nullptr};
  family.ignored_keys[0] = "sinusoidal_pos_embds";
  family.ignored_keys[1] = "tie_weights_";
  family.ignored_keys[2] = "seq_classif_dropout";
  family.ignored_keys[3] = "qa_dropout";
  return family;
}

constexpr Family Mpnet(const char* architecture, const ScoreHead* score = nullptr) {
  Family family = PostNormEncoder(architecture, "mpnet", &kMpnetNames, score);
  family.default_max_context = 514;
  family.position_offset = 2;
  family.context_has_offset = true;
  family.has_relative_position_buckets = true;
  family.required[2] = {"pad_token_id", "1"};
  // MPNetEncoder.compute_position_bias reads neither key.
  family.required[3] = {"relative_attention_max_distance", "128"};
  family.required[4] = {"relative_attention_num_buckets", "32"};
  return family;
}

constexpr Family ModernBert(const char* architecture, const ScoreHead* score = nullptr) {
  Family family = {
      .architecture = architecture, .model_type = "modernbert", .names = &kModernBertNames};
  family.keys = {.epsilon = "norm_eps", .activation = "hidden_activation", .head_dim = nullptr};
  family.qkv_bias = family.attention_out_bias = family.mlp_bias = Bias::kByKey;
  family.layer = {.norm = NormKind::kLayer};
  family.default_epsilon = 1e-5;
  family.has_norm_biases = false;
  family.activation = "gelu";
  family.kv_heads = KvHeadRule::kAsHeads;
  family.is_bidirectional = true;
  family.score = score;
  family.has_first_norm = false;
  family.window = WindowRule::kPattern;
  family.default_window = 128;
  family.default_pattern = 3;
  family.pattern_phase = 0;
  family.has_pattern_key = true;
  family.rope = RopeRule::kByWindow;
  family.default_theta = 160000.0;
  family.default_local_theta = 10000.0;
  family.default_max_context = 8192;
  family.default_tied = true;
  family.aliases[0] = {"local_attention", "sliding_window"};
  family.aliases[1] = {"global_attn_every_n_layers", "sliding_window_pattern"};
  family.aliases[2] = {"global_rope_theta", "rope_theta"};
  family.aliases[3] = {"local_rope_theta", "rope_local_base_freq"};
  family.required[0] = {"norm_bias", "false"};
  constexpr const char* kIgnored[] = {"position_embedding_type",
                                      "decoder_bias",
                                      "deterministic_flash_attn",
                                      "sparse_prediction",
                                      "sparse_pred_ignore_index",
                                      "reference_compile",
                                      "repad_logits_with_grad",
                                      "initializer_cutoff_factor",
                                      "mlp_dropout",
                                      "cls_token_id",
                                      "classifier_bias",
                                      "classifier_activation",
                                      "classifier_pooling",
                                      "layer_norm_eps"};
  size_t n = 0;
  for (const char* key : kIgnored) family.ignored_keys[n++] = key;
  return family;
}

// EmbeddingGemma: Gemma 3 whose tokens may see those after them.
constexpr Family GemmaEncoder() {
  Family family = {
      .architecture = "Gemma3TextModel", .model_type = "gemma3_text", .names = &kSandwichNames};
  family.keys = {.activation = "hidden_activation"};
  family.qkv_bias = family.attention_out_bias = Bias::kByKey;
  family.norm_offset = 1.0f;
  family.qk_norm = QkNorm::kEachHead;
  family.activation = "gelu_pytorch_tanh";
  family.bidirectional_key = "use_bidirectional_attention";
  family.window = WindowRule::kPattern;
  family.default_window = 4096;
  family.default_pattern = 6;
  family.has_pattern_key = true;
  family.rope = RopeRule::kByWindow;
  family.default_theta = 1000000.0;
  family.scale = ScaleRule::kQueryPreScalar;
  family.scales_embedding = true;
  family.default_head_dim = 256;
  family.default_kv_heads = 4;
  family.default_max_context = 131072;
  family.default_tied = family.is_always_tied = true;
  family.caps_logits = true;
  family.ignored_keys[0] = "attn_logit_softcapping";
  return family;
}

// A decoder whose last token's row is scored.
constexpr Family QwenScorer(const char* architecture, const char* model_type) {
  Family family = {.architecture = architecture, .model_type = model_type, .names = &kDecoderNames};
  family.qkv_bias = family.attention_out_bias = Bias::kByKey;
  family.qk_norm = QkNorm::kEachHead;
  family.score = &kDecoderScore;
  family.window = WindowRule::kFromLayer;
  family.default_window = 4096;
  family.default_head_dim = 128;
  family.default_kv_heads = 32;
  family.default_max_context = 32768;
  return family;
}

constexpr Family LlamaScorer() {
  Family family = {.architecture = "LlamaForSequenceClassification",
                   .model_type = "llama",
                   .names = &kDecoderNames};
  family.qkv_bias = family.attention_out_bias = family.mlp_bias = Bias::kByKey;
  family.score = &kDecoderScore;
  return family;
}

inline constexpr Family kTextEncoderFamilies[] = {
    Bert("BertModel"),
    Bert("BertForMaskedLM"),
    Bert("BertForSequenceClassification", &kBertScore),
    Roberta("RobertaModel", "roberta"),
    Roberta("RobertaForMaskedLM", "roberta"),
    Roberta("RobertaForSequenceClassification", "roberta", &kRobertaScore),
    Roberta("XLMRobertaModel", "xlm-roberta"),
    Roberta("XLMRobertaForMaskedLM", "xlm-roberta"),
    Roberta("XLMRobertaForSequenceClassification", "xlm-roberta", &kRobertaScore),
    DistilBert("DistilBertModel"),
    DistilBert("DistilBertForMaskedLM"),
    DistilBert("DistilBertForSequenceClassification", &kDistilBertScore),
    Mpnet("MPNetModel"),
    Mpnet("MPNetForMaskedLM"),
    Mpnet("MPNetForSequenceClassification", &kRobertaScore),
    ModernBert("ModernBertModel"),
    ModernBert("ModernBertForMaskedLM"),
    ModernBert("ModernBertForSequenceClassification", &kModernBertScore),
    GemmaEncoder(),
    QwenScorer("Qwen3ForSequenceClassification", "qwen3"),
    LlamaScorer(),
};

}  // namespace arn::convert

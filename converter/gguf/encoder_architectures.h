// Rows of text encoders, for architectures.cc, and their tensor names.
#pragma once

#include "converter/gguf/architectures.h"
#include "converter/gguf/decoder_names.h"

namespace arn::convert {

namespace gguf {

inline constexpr TensorNames kPostNormEncoderNames = {
    .prefix = "",
    .embedding = "token_embd",
    .positions = "position_embd",
    .embedding_norm = "token_embd_norm",
    .attention_norm = "blk.{}.attn_output_norm",
    .q = "blk.{}.attn_q",
    .k = "blk.{}.attn_k",
    .v = "blk.{}.attn_v",
    .attention_out = "blk.{}.attn_output",
    .ffn_norm = "blk.{}.layer_output_norm",
    .up = "blk.{}.ffn_up",
    .down = "blk.{}.ffn_down",
};

constexpr TensorNames WithTokenTypes() {
  TensorNames names = kPostNormEncoderNames;
  names.token_types = "token_types";
  return names;
}
inline constexpr TensorNames kTokenTypeNames = WithTokenTypes();

constexpr TensorNames WithFusedGates() {
  TensorNames names = kFusedNames;
  names.head = nullptr;
  names.q_norm = names.k_norm = nullptr;
  names.embedding_norm = "token_embd_norm";
  return names;
}
inline constexpr TensorNames kFusedEncoderNames = WithFusedGates();

}  // namespace gguf

inline constexpr GgufSize kGgufEmbeddingGemmaSizes[] = {{24, 768}};

inline constexpr GgufArchitecture kEncoderArchitectures[] = {
    // BERT, RoBERTa and XLM-R, whose unused rows of positions are not in files.
    {.name = "bert",
     .architecture = "BertModel",
     .names = &gguf::kTokenTypeNames,
     .shown_with_one_type = "RobertaModel",
     .shown_with_pieces = "XLMRobertaModel"},
    {.name = "bert", .architecture = "DistilBertModel", .names = &gguf::kPostNormEncoderNames},
    {.name = "modern-bert", .architecture = "ModernBertModel", .names = &gguf::kFusedEncoderNames},
    {.name = "gemma-embedding",
     .architecture = "Gemma3TextModel",
     .names = &gguf::kSandwichNames,
     .unsaid = {"with windows in all but every sixth layer and scores scaled by the square root of "
                "head_dim, as in the published size",
                kGgufEmbeddingGemmaSizes},
     .has_dense_modules = true},
};

}  // namespace arn::convert

// Names of tensors that most architectures of GGUF files share.
#pragma once

#include "converter/family/decoder_spec.h"

namespace arn::convert {

inline constexpr TensorNames kGgufNames = {
    .prefix = "",
    .embedding = "token_embd",
    .final_norm = "output_norm",
    .head = "output",
    .attention_norm = "blk.{}.attn_norm",
    .q = "blk.{}.attn_q",
    .k = "blk.{}.attn_k",
    .v = "blk.{}.attn_v",
    .q_norm = "blk.{}.attn_q_norm",
    .k_norm = "blk.{}.attn_k_norm",
    .attention_out = "blk.{}.attn_output",
    .ffn_norm = "blk.{}.ffn_norm",
    .gate = "blk.{}.ffn_gate",
    .up = "blk.{}.ffn_up",
    .down = "blk.{}.ffn_down",
};

}  // namespace arn::convert

// Supported architectures of GGUF files: one row each, next to the row of the family table that it
// stands for. No other GGUF code depends on the model family.
#pragma once

#include <string>

#include "converter/family/decoder_spec.h"
#include "platform/base/span.h"

namespace arn::convert {

// Published size of an architecture.
struct GgufSize {
  uint32_t layers = 0;
  uint32_t hidden = 0;
  uint32_t vocab = 0;  // 0: any
};

// Facts that files of an architecture leave out because llama.cpp hard-codes them.
struct GgufUnsaid {
  const char* assumption = nullptr;  // what the conversion assumes for such files; null: files are
                                     // complete
  Span<const GgufSize> published;    // sizes for which the assumption is known to hold
};

struct GgufArchitecture {
  const char* name = nullptr;                  // general.architecture
  const char* architecture = nullptr;          // in the family table
  const TensorNames* names = nullptr;          // in GGUF's naming
  const TensorNames* encoder_names = nullptr;  // encoder
  bool has_window = false;                     // row to use if the user gives --window
  bool stores_window = false;                  // row to use if the file gives a window
  GgufUnsaid unsaid = {};
  bool has_temperature = false;     // row to use if the file scales queries by their position
  bool rotates_neighbours = false;  // RoPE pairs are neighbours: the family's, or llama.cpp's
                                    // converter has reordered q and k rows
  // The converter reorders q and k rows, but not their biases: files with such biases are wrong.
  bool refuses_qk_biases = false;
  // Models with this many layers scale scores by hidden / heads instead of head_dim (no key says
  // it; llama.cpp recognises the largest member of a family by its layer count). 0: none.
  uint32_t layers_of_largest = 0;
  // Weights of experts are normalised in files without expert_weights_norm.
  bool norms_topk = true;
  // The row is for files with this many layers: several families have files of one name, and
  // llama.cpp recognises one by its layer count. 0: any.
  uint32_t only_layers = 0;
  // Files without a pattern of windows: layers 0, n, 2n, ... have none. 0: the family's pattern.
  uint32_t full_every = 0;
  bool is_hybrid = false;            // gguf_hybrid_config.h makes its config
  bool value_heads_in_turn = false;  // DecoderSpec
  // Architecture that a bundle shows if there is one token type, and if the tokenizer is
  // SentencePiece's, too. Null: `architecture`.
  const char* shown_with_one_type = nullptr;
  const char* shown_with_pieces = nullptr;
  bool has_dense_modules = false;  // the published model has dense layers behind its pooling
  // rope_freqs tells which part of a head rotates in layers without a window.
  bool has_rotated_part = false;
};

// Distinguishes the rows of one name.
struct GgufTraits {
  bool has_experts = false;
  bool has_window = false;
  bool stores_window = false;
  bool corrects_router = false;
  bool has_shared_expert = false;
  bool fuses_qkv = false;
  bool has_temperature = false;
  bool has_token_types = false;
  int64_t layers = 0;  // without those of a multi-token prediction head
};

Span<const GgufArchitecture> GgufArchitectures();
// Returns null for an unknown name.
const GgufArchitecture* FindGgufArchitecture(const std::string& name, const GgufTraits& traits);

}  // namespace arn::convert

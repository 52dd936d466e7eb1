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
  GgufUnsaid unsaid = {};
  bool rotates_neighbours = false;  // llama.cpp's converter has reordered q and k rows to
                                    // neighbouring pairs
  // Models with this many layers scale scores by hidden / heads instead of head_dim (no key says
  // it; llama.cpp recognises the largest member of a family by its layer count). 0: none.
  uint32_t layers_of_largest = 0;
  bool is_hybrid = false;            // gguf_hybrid_config.h makes its config
  bool value_heads_in_turn = false;  // DecoderSpec
  // rope_freqs tells which part of a head rotates in layers without a window.
  bool has_rotated_part = false;
};

Span<const GgufArchitecture> GgufArchitectures();
// Returns null for an unknown name. `has_experts`, `has_window`: choose between rows of one name.
const GgufArchitecture* FindGgufArchitecture(const std::string& name, bool has_experts,
                                             bool has_window);

}  // namespace arn::convert

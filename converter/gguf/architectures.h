// The architectures of GGUF files that are read: one row each, beside the row of the family table
// that it stands for. With converter/family_table.cc the only place that knows families.
#pragma once

#include <string>

#include "converter/decoder_spec.h"
#include "platform/base/span.h"

namespace arn::convert {

struct GgufArchitecture {
  const char* name;                 // general.architecture
  const char* architecture;         // of the family table
  const TensorNames* names;         // in GGUF's naming
  bool rotates_neighbours = false;  // llama.cpp's converter has reordered the rows of q and k so
  // Models with this many layers scale scores by their heads' share of the width, not by head_dim
  // (llama.cpp knows the largest member of a family so; no key says it). 0: none do.
  uint32_t layers_of_largest = 0;
};

Span<const GgufArchitecture> GgufArchitectures();
// Null when there is none of that name. `has_experts`: some rows come with and without.
const GgufArchitecture* FindGgufArchitecture(const std::string& name, bool has_experts);

}  // namespace arn::convert

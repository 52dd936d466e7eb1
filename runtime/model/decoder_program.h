// Lowers a ModelSpec to the Program shared by all sessions of the model. Session-dependent fields
// (rows, slices, KV pages) stay zero until the memory plan sets them.
#pragma once

#include "kernels/contract/program.h"
#include "platform/base/arena.h"
#include "platform/base/result.h"
#include "runtime/model/model_spec.h"

namespace arn {

// Upper bound of a decoder's values with bytes of their own: residual stream, a layer's
// intermediates with and without attention and experts, the encoder's values, the residual streams,
// one angle table per RoPE type, rows and scores of an assistant.
inline constexpr uint32_t kMaxWholeValues = 62 + kMaxStreams + 2 * kMaxRopeKinds;
// The same with the views of layers that are narrower than the widest: 36 layers with a
// feed-forward width each have 70.
inline constexpr uint32_t kMaxValues = 128;

uint64_t DecoderProgramBytes(const fbs::Model& model);
// The same of a plain decoder with so many layers and layer types.
uint64_t DecoderProgramBytes(uint64_t n_layers, uint64_t n_kinds);

// Allocates steps, values and kinds from `arena`; weights and ropes belong to the spec. Value
// lifetimes are those of the first layer: each layer writes its intermediates before it reads them,
// so all layers repeat the pattern. with_rows: null, or receives the same program with a last step
// that leaves Program::final_rows.
Status BuildDecoderProgram(const ModelSpec& spec, Arena* arena, Program* out, Program* with_rows,
                           Diag* diag);

}  // namespace arn

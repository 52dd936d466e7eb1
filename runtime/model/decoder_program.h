// Lowers a ModelSpec to the Program that every session of the model runs. What depends on a
// session's options (rows, slices, KV pages) is left zero here and filled in by the memory plan.
#pragma once

#include "kernels/program.h"
#include "platform/base/arena.h"
#include "platform/base/result.h"
#include "runtime/model/model_spec.h"

namespace arn {

// Values of any decoder: the residual stream, a layer's intermediates with and without attention
// and experts, those of a source, one angle table a rope kind.
inline constexpr uint32_t kMaxValues = 35 + kMaxRopeKinds;

uint64_t DecoderProgramBytes(const fbs::Model& model);

// Steps, values and kinds are allocated from `arena`; weights, ropes are the spec's. Value
// lifetimes are those of the first layer: each layer writes its intermediates before it reads them,
// so all layers repeat the pattern.
Status BuildDecoderProgram(const ModelSpec& spec, Arena* arena, Program* out, Diag* diag);

}  // namespace arn

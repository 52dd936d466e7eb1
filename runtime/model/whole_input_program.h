// Parts of programs that see whole inputs and have no KV cache: poolings of a decoder, vision
// towers. All their steps are encoder steps.
#pragma once

#include "kernels/contract/program.h"
#include "platform/base/arena.h"
#include "platform/base/result.h"
#include "runtime/model/layer_values.h"
#include "runtime/model/model_spec.h"
#include "runtime/model/step_list.h"

namespace arn {

// Memory of a program that is built.
struct ProgramParts {
  Span<Step> steps;
  Span<Value> values;
  Span<AttentionKind> kinds;
};

// Returns an upper bound of the arena bytes of such a program.
uint64_t WholeInputProgramBytes(uint64_t n_steps, uint64_t n_kinds);
// Fills the kinds. kOutOfMemory: the arena is too small.
Status AllocateParts(Span<const LayerKindSpec> kinds, uint64_t n_steps, Arena* arena,
                     ProgramParts* out);
// Adds the steps of layers [begin, end) of `layers`; those before have been added. angles: of each
// RoPE; null if no layer has one.
void AddWholeInputLayers(Span<const LayerKindSpec> kinds, Span<const LayerSpec> layers,
                         uint32_t begin, uint32_t end, const LayerValues& values,
                         const ValueId* angles, StepList* steps);
// Makes a program of the steps. kUnsupported: too many values; `field` names the kinds.
Status FinishProgram(const ModelSpec& spec, const ProgramParts& parts, const char* field,
                     StepList* steps, Program* out, Diag* diag);

}  // namespace arn

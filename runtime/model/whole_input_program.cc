#include "runtime/model/whole_input_program.h"

#include "platform/base/arith.h"
#include "runtime/model/decoder_program.h"
#include "runtime/model/layer_program.h"

namespace arn {

uint64_t WholeInputProgramBytes(uint64_t n_steps, uint64_t n_kinds) {
  return n_steps * sizeof(Step) + kMaxValues * sizeof(Value) + n_kinds * sizeof(AttentionKind) +
         3 * kSliceAlign;
}

Status AllocateParts(Span<const LayerKindSpec> kinds, uint64_t n_steps, Arena* arena,
                     ProgramParts* out) {
  ARN_ASSIGN(out->steps, arena->AllocateArray<Step>(n_steps));
  ARN_ASSIGN(out->values, arena->AllocateArray<Value>(kMaxValues));
  ARN_ASSIGN(out->kinds, arena->AllocateArray<AttentionKind>(kinds.size()));
  for (uint32_t i = 0; i < kinds.size(); ++i) out->kinds[i] = AttentionOf(kinds[i]);
  return Status::kOk;
}

void AddWholeInputLayers(Span<const LayerKindSpec> kinds, Span<const LayerSpec> layers,
                         uint32_t begin, uint32_t end, const LayerValues& values,
                         const ValueId* angles, StepList* steps) {
  for (uint32_t i = begin; i < end; ++i) {
    const LayerKindSpec& kind = kinds[layers[i].kind];
    const LayerPlace place = {i, layers[i].kind, 0, true};
    AddLayer(layers[i], kind, place, ValuesOf(layers[i], kind, values, steps), angles, steps);
    if (i == 0 && HaveSameSteps(kinds, layers)) FreezeLayerValues(values, steps);
  }
}

Status FinishProgram(const ModelSpec& spec, const ProgramParts& parts, const char* field,
                     StepList* steps, Program* out, Diag* diag) {
  steps->FinishViews();
  if (steps->is_full()) {
    return diag->Fail(Status::kUnsupported,
                      "%s: more than %u intermediate values of different widths", field,
                      kMaxValues);
  }
  *out = Program();
  out->steps = parts.steps.subspan(0, steps->n_steps());
  out->values = parts.values.subspan(0, steps->n_values());
  for (Value& value : out->values) value.is_encoder = true;
  out->kinds = parts.kinds;
  out->weights = spec.weights;
  out->file = spec.file;
  out->ropes = spec.ropes;
  out->vocab = spec.vocab;
  out->n_encoder_steps = steps->n_steps();
  return Status::kOk;
}

}  // namespace arn

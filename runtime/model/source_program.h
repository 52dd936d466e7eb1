// The steps of what a sequence attends to beside its own tokens, and the kinds of attention of a
// model that has it.
#pragma once

#include "runtime/model/model_spec.h"
#include "runtime/model/step_list.h"

namespace arn {

// Program::kinds: those of the decoder's layers; with a source then those of their attention to it,
// in the same order, and those of its own layers.
uint64_t ProgramKinds(const ModelSpec& spec);
void FillKinds(const ModelSpec& spec, Span<AttentionKind> out);
uint64_t SourceKinds(const fbs::Source* source);

// Steps that AddSource adds at most.
uint64_t SourceSteps(const SourceSpec& source, uint64_t n_layers);
uint64_t SourceSteps(const fbs::Source* source);

// From tokens or features to the keys and values that each layer of the decoder has of the source.
void AddSource(const ModelSpec& spec, StepList* steps);

}  // namespace arn

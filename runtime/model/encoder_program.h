// Builds the encoder's steps and the attention types of models with an encoder.
#pragma once

#include "runtime/model/layer_values.h"
#include "runtime/model/model_spec.h"
#include "runtime/model/step_list.h"

namespace arn {

// Returns the size of Program::kinds: the decoder's layer types; with an encoder also their
// cross-attention, in the same order, and the encoder's own.
uint64_t ProgramKinds(const ModelSpec& spec);
void FillKinds(const ModelSpec& spec, Span<AttentionKind> out);
uint64_t EncoderKinds(const fbs::Encoder* encoder);

// Returns an upper bound of the steps that AddEncoder adds.
uint64_t EncoderSteps(const EncoderSpec& encoder, uint64_t n_layers);
uint64_t EncoderSteps(const fbs::Encoder* encoder);

// Most steps of a layer that sees a whole input at once.
inline constexpr uint64_t kStepsPerEncoderLayer = 11 + kClampPlaces;
// Adds the values of such layers, of `hidden` columns.
LayerValues NewEncoderValues(Span<const LayerKindSpec> kinds, Span<const LayerSpec> layers,
                             uint32_t hidden, StepList* steps);

// Adds the steps from tokens or features to the cross-attention keys and values of each decoder
// layer.
void AddEncoder(const ModelSpec& spec, StepList* steps);

}  // namespace arn

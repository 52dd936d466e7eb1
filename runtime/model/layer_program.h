// Builds the steps of one layer.
#pragma once

#include "runtime/model/layer_values.h"
#include "runtime/model/model_spec.h"
#include "runtime/model/step_list.h"

namespace arn {

// Identifies a layer in the program.
struct LayerPlace {
  uint32_t index = 0;       // for messages and dumps
  uint32_t kind = 0;        // index into Program::kinds
  uint32_t cross_kind = 0;  // the same for its cross-attention
  bool is_encoder = false;  // encoder layer
};

// Adds x += post(Wo attention(pre(x))); with cross-attention x += Wo' attention'(norm(x)); x +=
// post(Wdown act(Wup pre(x))). Each pre and post is a norm or the identity. In a parallel layer
// both blocks read x before either sum. With norms_follow_sum, x = norm(x + Wo attention(x)), and
// likewise the other block. With streams, x is the active one, predicted before and corrected
// after. angles: one value per RoPE type.
void AddLayer(const LayerSpec& layer, const LayerKindSpec& kind, const LayerPlace& place,
              const LayerValues& values, const ValueId* angles, StepList* steps);

// Adds the angles of the RoPEs that these kinds have: angles [number of ropes]; kNoValue for
// others.
void AddRopeAngles(Span<const LayerKindSpec> kinds, Span<const RopeKind> ropes, bool is_encoder,
                   ValueId* angles, StepList* steps);

// True if all layers have the same steps, so that the lifetimes of values in one fit the others.
bool HaveSameSteps(Span<const LayerKindSpec> kinds, Span<const LayerSpec> layers);
// Stops tracking values that no layer of an encoder leaves to the next, in the widths of the widest
// layer (StepList::FreezeLifetimes). REQUIRES: the steps of the first layer are there, and all
// layers have the same.
void FreezeLayerValues(const LayerValues& v, StepList* steps);

}  // namespace arn

// The steps of one layer.
#pragma once

#include "runtime/model/mixer_program.h"
#include "runtime/model/model_spec.h"
#include "runtime/model/step_list.h"

namespace arn {

// kNoValue: no layer needs it.
struct LayerValues {
  ValueId x = kNoValue, normed = kNoValue, qkv = kNoValue, attention = kNoValue;
  ValueId ffn_normed = kNoValue, gate_up = kNoValue, activated = kNoValue;
  ValueId route_logits = kNoValue, routes = kNoValue, expert_scratch = kNoValue;
  ValueId shared_gate_up = kNoValue, shared_activated = kNoValue;
  ValueId q = kNoValue;  // of layers that share another's KV
  MixerValues mixer;
  ValueId cross_q = kNoValue;  // of layers that attend to a source
};

// What the steps of a layer are made from.
struct LayerPlace {
  uint32_t index = 0;       // for messages and dumps
  uint32_t kind = 0;        // index into Program::kinds
  uint32_t cross_kind = 0;  // the same, of the attention to the source
  bool is_source = false;   // a layer of the source itself
};

// x += post(Wo attention(pre(x))); x += Wo' attention'(norm(x)) when the layer attends to a source;
// x += post(Wdown act(Wup pre(x))), where each pre and post is a norm or nothing. In a parallel
// layer both blocks read the x before either sum. angles: one value a rope kind.
void AddLayer(const LayerSpec& layer, const LayerKindSpec& kind, const LayerPlace& place,
              const LayerValues& values, const ValueId* angles, StepList* steps);

}  // namespace arn

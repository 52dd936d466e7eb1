// The steps of layers that keep a state (mixer_spec.h).
#pragma once

#include "runtime/model/mixer_spec.h"
#include "runtime/model/model_spec.h"
#include "runtime/model/step_list.h"

namespace arn {

struct MixerValues {
  ValueId mixed = kNoValue;  // [b | c | x] or [z | x]
  ValueId convolved = kNoValue;
  ValueId low = kNoValue;  // this and the following: of Mixer::kScan
  ValueId steps = kNoValue;
  ValueId mix = kNoValue;
};
MixerValues NewMixerValues(const MixerSpec& mixer, StepList* steps);

// A convolution of [b | c | x], or of [z | x] a scan of the convolved x, gated by z: from `in` to
// v.convolved, what the layer's last matrix takes. `base`: what all steps of the layer have.
void AddMixer(const LayerSpec& layer, const LayerKindSpec& kind, const Step& base, ValueId in,
              const MixerValues& v, StepList* steps);

}  // namespace arn

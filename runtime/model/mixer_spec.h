// Token mixers of layers without attention: a convolution, or a convolution and a selective scan.
// They keep a state of fixed size instead of keys and values.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"
#include "platform/base/diag.h"
#include "runtime/bundle/bundle.h"
#include "runtime/model/tensor_shapes.h"

namespace arn {

enum class Mixer : uint8_t { kAttention = 0, kConv = 1, kScan = 2 };

struct MixerSpec {
  Mixer mixer = Mixer::kAttention;
  uint32_t width = 0;  // channels; 0 for attention, as are the rest
  uint32_t taps = 0;   // kernel size of the convolution
  uint32_t states = 0;
  uint32_t rank = 0;

  bool has_state() const { return mixer != Mixer::kAttention; }
  // State layout: the last convolution inputs [taps - 1, width], then the scan states [states,
  // width].
  uint32_t conv_floats() const { return has_state() ? (taps - 1) * width : 0; }
  uint32_t state_floats() const { return conv_floats() + states * width; }
  // Output width of the first matrix: [b | c | x] or [z | x].
  uint32_t in_width() const { return (mixer == Mixer::kConv ? 3 : 2) * width; }

  bool operator==(const MixerSpec&) const = default;
};

struct MixerTensors {
  WeightId in = kNoWeight;
  WeightId conv = kNoWeight;
  WeightId conv_bias = kNoWeight;  // or none
  WeightId low = kNoWeight;        // this and the following: Mixer::kScan only
  WeightId time_steps = kNoWeight;
  WeightId mix = kNoWeight;
  WeightId rates = kNoWeight;
  WeightId skip = kNoWeight;
};

// Checks the ranges; refuses an unknown mixer.
Status ReadMixerKind(const fbs::LayerKind& kind, MixerSpec* out, Diag* diag);

// Checks the shapes of a layer's tensors. REQUIRES: `spec` has a state.
Status ReadMixer(const fbs::Layer& layer, uint32_t index, const MixerSpec& spec, uint64_t hidden,
                 Shapes* shapes, MixerTensors* out);

}  // namespace arn

// What mixes the tokens of a sequence in layers that have no attention: a convolution, or one and a
// scan. Such layers keep a state of a fixed size instead of keys and values.
#pragma once

#include <cstdint>

#include "kernels/program.h"
#include "platform/base/diag.h"
#include "runtime/bundle/bundle.h"
#include "runtime/model/tensor_shapes.h"

namespace arn {

enum class Mixer : uint8_t { kAttention = 0, kConv = 1, kScan = 2 };

struct MixerSpec {
  Mixer mixer = Mixer::kAttention;
  uint32_t width = 0;  // channels; 0 for attention, as the rest
  uint32_t taps = 0;   // inputs of the convolution
  uint32_t states = 0;
  uint32_t rank = 0;

  bool has_state() const { return mixer != Mixer::kAttention; }
  // The convolution's last inputs [taps - 1, width], then the scan's states [states, width].
  uint32_t conv_floats() const { return has_state() ? (taps - 1) * width : 0; }
  uint32_t state_floats() const { return conv_floats() + states * width; }
  // Of what the first matrix gives: [b | c | x] or [z | x].
  uint32_t in_width() const { return (mixer == Mixer::kConv ? 3 : 2) * width; }

  bool operator==(const MixerSpec&) const = default;
};

struct MixerTensors {
  WeightId in = kNoWeight;
  WeightId conv = kNoWeight;
  WeightId conv_bias = kNoWeight;  // or none
  WeightId low = kNoWeight;        // these and the following: of Mixer::kScan
  WeightId steps = kNoWeight;
  WeightId mix = kNoWeight;
  WeightId rates = kNoWeight;
  WeightId skip = kNoWeight;
};

// Checks the ranges; an unknown mixer is refused.
Status ReadMixerKind(const fbs::LayerKind& kind, MixerSpec* out, Diag* diag);

// Checks the shapes of a layer's tensors. `spec` has a state.
Status ReadMixer(const fbs::Layer& layer, uint32_t index, const MixerSpec& spec, uint64_t hidden,
                 Shapes* shapes, MixerTensors* out);

}  // namespace arn

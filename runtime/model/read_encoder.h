// Reads the encoder of a model, and layers that see a whole input at once.
#pragma once

#include "runtime/model/model_spec.h"

namespace arn {

// Returns an upper bound of the arena bytes that ReadEncoder uses. `encoder` may be null.
uint64_t EncoderSpecBytes(const fbs::Encoder* encoder);

// Layers of `hidden` columns without a cache, as an encoder or a vision tower has them.
struct BidirectionalLayers {
  const char* owner;  // for messages: "encoder"
  const flatbuffers::Vector<flatbuffers::Offset<fbs::LayerKind>>* kinds;
  const flatbuffers::Vector<flatbuffers::Offset<fbs::Layer>>* layers;
  uint32_t hidden;
};
// Returns an upper bound of the arena bytes that ReadBidirectionalLayers uses.
uint64_t BidirectionalLayersBytes(uint64_t n_kinds, uint64_t n_layers);
Status ReadBidirectionalLayers(const BidirectionalLayers& in, Arena* arena, const ModelSpec& spec,
                               Span<const LayerKindSpec>* out_kinds,
                               Span<const LayerSpec>* out_layers, Diag* diag);

// Reads spec->encoder and adds the KV group of its cross-attention. REQUIRES: the decoder's kinds
// are read, its layers are not.
Status ReadEncoder(const fbs::Encoder& encoder, Arena* arena, ModelSpec* spec, Diag* diag);

}  // namespace arn

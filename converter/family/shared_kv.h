// Layers that use the keys and values of others, layers with heads of their own, and per-layer
// embeddings.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/family/family.h"
#include "converter/hf/config_reader.h"

namespace arn::convert {

// Returns, for each layer, the one whose keys and values it uses, itself included. Empty: each
// layer uses its own.
std::vector<uint32_t> KvLayers(const Family& family, ConfigReader* config,
                               const std::vector<uint32_t>& windows);

// Heads of layers without a window.
struct GlobalHeads {
  uint32_t head_dim = 0;
  uint32_t n_kv_heads = 0;
  bool k_is_v = false;
};
// kind: the heads of the other layers.
GlobalHeads ReadGlobalHeads(const Family& family, ConfigReader* config, const LayerKindSpec& kind);

inline LayerKindSpec WithHeads(LayerKindSpec kind, const GlobalHeads& heads) {
  kind.head_dim = heads.head_dim;
  kind.n_kv_heads = heads.n_kv_heads;
  kind.k_is_v = heads.k_is_v;
  return kind;
}

// Returns the numbers of heads of the layers, which are those of `kind` if the config has no list.
std::vector<uint32_t> LayerHeads(const Family& family, ConfigReader* config,
                                 const LayerKindSpec& kind, uint32_t n_layers);

// Returns the factor of the feed-forward width of layers that use the keys and values of others.
uint32_t SharedFfnFactor(const Family& family, ConfigReader* config);

// Reads per_layer_width and per_layer_rows.
void ReadPerLayer(const Family& family, ConfigReader* config, DecoderSpec* spec);

}  // namespace arn::convert

// Tensors of latent attention. The checkpoint's rows of a head are [rest | rotated part], the
// bundle's [rotated part | rest], so that RoPE rotates the start of a head; the rotated part of the
// key is a matrix of its own for the same reason.
#include "converter/tensors/planner.h"

namespace arn::convert {
namespace {

// Appends the rotated rows from `first` on; pairs of neighbours become pairs half of them apart.
void AppendRotated(const SourcePart& whole, uint32_t first, uint32_t rotary_dim,
                   bool are_neighbours, std::vector<SourcePart>* parts) {
  SourcePart part = whole;
  const uint32_t sides = are_neighbours ? 2 : 1;
  for (uint32_t side = 0; side < sides; ++side) {
    part.rows = rotary_dim / sides;
    part.first_row = first + side;
    part.block_rows = are_neighbours ? 1 : 0;
    part.block_stride = are_neighbours ? 2 : 0;
    parts->push_back(part);
  }
}

}  // namespace

void Planner::AddLatent(const LayerScope& scope, const LayerKindSpec& kind, LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  const uint32_t hidden = spec_.hidden, latent = kind.latent_dim;
  const uint32_t rotated = kind.head_dim - latent, key = kind.latent_key_dim;
  const uint32_t rank = kind.latent_query_rank, query_cols = rank != 0 ? rank : hidden;
  const auto add = [&](const char* name, std::vector<SourcePart> parts, uint32_t cols) {
    return AddMatrix(scope.Own(name), formats_.weights, true, std::move(parts), cols);
  };
  if (rank != 0) {
    layer->query_low = add(
        "query_low", {Part(scope.Stored(names.q_low), rank, hidden, kind.has_qkv_bias)}, hidden);
    layer->query_low_norm = AddVector(scope.Own("query_low_norm"),
                                      WeightName(scope.Stored(names.q_low_norm)), rank, 0.0f);
  }
  const SourcePart query = Part(scope.Stored(rank != 0 ? names.q_up : names.q),
                                kind.n_heads * (key + rotated), query_cols, false);
  std::vector<SourcePart> query_parts;
  for (uint32_t h = 0; h < kind.n_heads; ++h) {
    const uint32_t first = h * (key + rotated);
    AppendRotated(query, first + key, rotated, spec_.rotates_neighbours, &query_parts);
    query_parts.push_back(query);
    query_parts.back().rows = key;
    query_parts.back().first_row = first;
  }
  layer->qkv = add("qkv", std::move(query_parts), query_cols);

  SourcePart low = Part(scope.Stored(names.latent), latent + rotated, hidden, kind.has_qkv_bias);
  std::vector<SourcePart> rotated_parts;
  AppendRotated(low, latent, rotated, spec_.rotates_neighbours, &rotated_parts);
  layer->latent_rotated = add("latent_rotated", std::move(rotated_parts), hidden);
  low.rows = latent;
  layer->latent = add("latent", {low}, hidden);
  layer->latent_norm = AddVector(scope.Own("latent_norm"),
                                 WeightName(scope.Stored(names.latent_norm)), latent, 0.0f);

  AddLatentHeads(scope, kind, layer);
}

// The transposed key matrix of a head makes a query meet the latent itself.
void Planner::AddLatentHeads(const LayerScope& scope, const LayerKindSpec& kind,
                             LayerTensors* layer) {
  const TensorNames& names = *scope.names;
  const uint32_t latent = kind.latent_dim, key = kind.latent_key_dim;
  const uint32_t value = kind.latent_value_dim, head_rows = key + value;
  const bool is_split = names.latent_keys != nullptr;
  // Else the rows of each head are [keys | values].
  SourcePart up;
  if (!is_split) up = Part(scope.Stored(names.latent_up), kind.n_heads * head_rows, latent, false);
  const auto add = [&](const char* name, uint32_t h, const SourcePart& part, uint32_t cols) {
    return AddMatrix(scope.Own(name) + "." + std::to_string(h), formats_.weights, true, {part},
                     cols);
  };
  for (uint32_t h = 0; h < kind.n_heads; ++h) {
    SourcePart part = up;
    if (is_split) {
      part = Part(LayerName(scope.Stored(names.latent_keys).c_str(), h), latent, key, false);
    } else {
      part.rows = part.transposed_rows = latent;
      part.first_element = uint64_t{h} * head_rows * latent;
    }
    const uint32_t index = add("latent_keys", h, part, key);
    if (h == 0) layer->latent_keys = index;
  }
  for (uint32_t h = 0; h < kind.n_heads; ++h) {
    SourcePart part = up;
    if (is_split) {
      part = Part(LayerName(scope.Stored(names.latent_values).c_str(), h), value, latent, false);
    } else {
      part.rows = value;
      part.first_row = h * head_rows + key;
    }
    const uint32_t index = add("latent_values", h, part, latent);
    if (h == 0) layer->latent_values = index;
  }
}

}  // namespace arn::convert

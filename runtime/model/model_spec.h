// ModelSpec: checked view of a bundle's model. After ReadModelSpec every index is in range, every
// tensor has the required shape and every number is finite, so later stages check nothing again.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"
#include "kernels/contract/weight.h"
#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/layer_fields.h"
#include "runtime/model/vision_spec.h"

namespace arn {

struct LayerKindSpec : LayerKind {
  uint32_t group = 0;        // of KV pages
  uint32_t state_group = 0;  // of states
};

// Returns the attention of a layer type; without any heads if it has another mixer.
AttentionKind AttentionOf(const LayerKindSpec& kind);

// The tensors of a layer: a block without a norm before it reads x directly; qkv has only the q
// heads if shares_kv; experts is the first of gate_up, down, gate_up, ...; cross_q is kNoWeight
// without cross-attention; layers with a state have mixer_in and its others in place of qkv.
struct LayerSpec : LayerTensors {
  uint32_t kind = 0;
  uint32_t group_layer = 0;  // index in its KV group
  uint32_t state_layer = 0;  // index in its group of states
  bool shares_kv = false;    // group_layer belongs to an earlier layer
  uint32_t cross_layer = 0;  // index in the encoder's KV group

  // Parallel blocks that read the same norm, which is computed once.
  bool shares_norm(const LayerKind& layer_kind) const {
    return layer_kind.is_parallel && ffn_norm == attention_norm &&
           ffn_norm_bias == attention_norm_bias;
  }
};

// Layers with the same KV shape and attention mask share a page pool; layers with the same state
// size share a pool of slots.
struct KvGroupSpec {
  uint32_t n_layers = 0;      // layers with their own keys and values, or state
  uint32_t state_floats = 0;  // per layer; 0: keys and values
  bool is_encoder = false;    // cross-attention keys and values
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t window = 0;
  uint32_t chunk = 0;
  bool keys_only = false;  // KvGroup::keys_only
};

inline constexpr uint32_t kMaxRopeKinds = 8;

// Frequencies of a RoPE in sessions of other contexts than its own table is for.
struct RopeVariants {
  uint32_t short_context = 0;  // sessions with more tokens use long_inv_freq; 0: none do
  Span<const float> long_inv_freq;
  float theta = 0.0f;  // base of the plain table, which a session may scale; 0: it may not
};

inline constexpr uint32_t kMaxEncoderRows = 1u << 20;
inline constexpr uint32_t kMaxConvolutions = 4;

// A convolution over features, its activation, and a norm of all rows and channels together.
struct ConvolutionSpec {
  WeightId weight = kNoWeight;  // [channels, taps * channels of its input], earliest row first
  uint32_t channels = 0;
  uint16_t taps = 0, stride = 1, padding = 0;
  Activation activation = Activation::kGelu;
  WeightId norm = kNoWeight;  // or none
  WeightId norm_bias = kNoWeight;
  float norm_epsilon = 0.0f;
};

// How many frames of features make n rows: per_row * n + more, or up to `optional` less.
struct FrameRule {
  uint16_t per_row = 1, more = 0, optional = 0;

  uint64_t most(uint32_t n_rows) const { return uint64_t{per_row} * n_rows + more; }
  // Returns the rows of n frames; 0: these frames make no rows.
  uint32_t RowsOf(uint32_t n_frames) const {
    if (uint64_t{n_frames} + optional < most(1)) return 0;
    const auto n = static_cast<uint32_t>((uint64_t{n_frames} + optional - more) / per_row);
    return n_frames <= most(n) ? n : 0;
  }
  // Returns the frames before a convolution of these, which are those behind it.
  FrameRule Before(const ConvolutionSpec& convolution) const;
};

// Encoder: token embeddings, or features through convolutions, then layers with bidirectional
// attention.
struct EncoderSpec {
  uint32_t max_rows = 0;  // 0: no encoder
  uint32_t hidden = 0;    // width of its rows
  WeightId embedding = kNoWeight;
  float embedding_factor = 1.0f;
  uint32_t feature_width = 0;  // of a frame; 0: token ids
  bool takes_samples = false;  // a frame is a sample of audio
  Span<const ConvolutionSpec> convolutions;
  FrameRule frames;  // that become rows
  WeightId positions = kNoWeight;
  Span<const LayerKindSpec> kinds;
  Span<const LayerSpec> layers;
  NormKind final_norm_kind = NormKind::kRms;
  WeightId final_norm = kNoWeight;
  WeightId final_norm_bias = kNoWeight;
  float final_norm_epsilon = 0.0f;
  uint32_t group = 0;  // index into ModelSpec::groups

  bool exists() const { return max_rows != 0; }
};

// Embeddings that each layer reads a part of: layers * width columns.
struct PerLayerSpec {
  uint32_t width = 0;  // 0: none
  WeightId embedding = kNoWeight;
  float factor = 1.0f;
  WeightId projection = kNoWeight;
  WeightId norm = kNoWeight;
  float norm_epsilon = 0.0f;
};

// Residual streams, of which each layer works on one (AltUp).
struct StreamsSpec {
  uint32_t n = 0;  // 0: there is one, x
  uint32_t active = 0;
  WeightId in = kNoWeight;   // of the second stream; the others' follow
  WeightId out = kNoWeight;  // likewise
  float epsilon = 0.0f;
};

// Input of a head that predicts one token more: embedding_norm makes it of the token, these of a
// row of the decoder behind its final norm.
struct HiddenInputSpec {
  uint32_t width = 0;         // of the decoder
  WeightId norm = kNoWeight;  // of an assistant: none
  float norm_epsilon = 0.0f;
  WeightId fc_embedding = kNoWeight;  // kNoWeight: the decoder reads tokens alone
  WeightId fc_hidden = kNoWeight;
  // Makes an assistant's own row (fbs::Mtp::out) as wide as the decoder's.
  WeightId out = kNoWeight;

  bool exists() const { return fc_embedding != kNoWeight; }
};

// Clusters of tokens, equal parts of the head's rows.
struct ClustersSpec {
  uint32_t n = 0;  // 0: none
  uint32_t n_used = 0;
  WeightId weight = kNoWeight;  // [n, hidden]
  WeightId ids = kNoWeight;     // [vocab]: tokens of the head's rows, as the bundle has them
};

// norm(activation(weight x)) over pooled rows.
struct DenseSpec {
  WeightId weight = kNoWeight;
  uint32_t width = 0;
  bool has_activation = false;
  Activation activation = Activation::kSilu;
  WeightId norm = kNoWeight;
  NormKind norm_kind = NormKind::kRms;
  WeightId norm_bias = kNoWeight;
  float norm_epsilon = 0.0f;
};

enum class ScoreRule : uint8_t { kLogits = 0, kSigmoid = 1, kLastOfSoftmax = 2 };

// Pooling of a model that makes vectors or scores of texts.
struct PoolingSpec {
  uint32_t max_tokens = 0;  // of a text; 0: there is no pooling
  PoolKind mode = PoolKind::kMean;
  Span<const DenseSpec> dense;
  bool is_score = false;
  ScoreRule score = ScoreRule::kLogits;
  bool normalizes = false;
  uint32_t width = 0;  // of the rows after `dense`

  bool exists() const { return max_tokens != 0; }
};

struct ModelSpec {
  uint32_t hidden = 0;
  uint32_t vocab = 0;
  uint32_t max_context = 0;
  Span<const LayerKindSpec> kinds;
  Span<const RopeKind> ropes;
  Span<const RopeVariants> rope_variants;  // parallel to ropes
  Span<const LayerSpec> layers;
  Span<const Weight> weights;  // by tensor index
  Span<const std::byte> file;  // the bundle
  KvGroupSpec groups[kMaxKvGroups];
  uint32_t n_groups = 0;
  EncoderSpec encoder;
  WeightId embedding = kNoWeight;
  float embedding_factor = 1.0f;
  PerLayerSpec per_layer;
  StreamsSpec streams;
  HiddenInputSpec hidden_input;
  ClustersSpec clusters;                // of hidden_input.out
  const ModelSpec* lender = nullptr;    // has the keys and values of the layers, and the groups
  WeightId embedding_norm = kNoWeight;  // of final_norm_kind
  WeightId embedding_norm_bias = kNoWeight;
  // Between the final norm and the head; or none.
  WeightId head_dense = kNoWeight, head_norm = kNoWeight, head_norm_bias = kNoWeight;
  Activation head_activation = Activation::kSilu;
  WeightId positions = kNoWeight;
  bool makes_text = true;            // has a head
  bool is_bidirectional = false;     // no groups, no head
  WeightId token_types = kNoWeight;  // bidirectional models
  PoolingSpec pooling;
  VisionSpec vision;
  NormKind final_norm_kind = NormKind::kRms;
  WeightId final_norm = kNoWeight;
  WeightId final_norm_bias = kNoWeight;
  float final_norm_epsilon = 0.0f;
  bool final_rows_before_norm = false;  // Program::final_rows, if it leaves them
  WeightId head = kNoWeight;
  float logits_factor = 1.0f;
  float logits_softcap = 0.0f;
  uint64_t weight_bytes = 0;  // each tensor once
  uint64_t n_parameters = 0;  // rows * cols of each tensor once
};

// Returns an upper bound of the arena bytes that ReadModelSpec uses.
uint64_t ModelSpecBytes(const fbs::Model& model);

// Fills the spec, which points into the bundle and the arena. Errors name the field and the value.
Status ReadModelSpec(const Bundle& bundle, Arena* arena, ModelSpec* out, Diag* diag);

}  // namespace arn

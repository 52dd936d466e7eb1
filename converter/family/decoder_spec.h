// Architecture of a model as the bundle stores it. After this no code branches on a family's name.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/contract/program.h"
#include "runtime/bundle/image_rules.h"
#include "runtime/bundle/layer_fields.h"

namespace arn::convert {

struct RopeSpec {
  uint32_t rotary_dim = 0;
  float amplitude = 1.0f;
  std::vector<float> inv_freq;       // [rotary_dim / 2], scaling applied
  std::vector<float> long_inv_freq;  // for sessions with more than short_context tokens; empty:
                                     // none
  uint32_t short_context = 0;
  std::vector<uint8_t> axes = {};  // [rotary_dim / 2], as RopeKind::axes; empty: none
  float theta = 0.0f;              // base of inv_freq, if sessions may scale it; 0: they may not
  float query_temperature = 0.0f;  // in the layers that use this RoPE, with shift 0; 0: none
  uint32_t query_temperature_step = 0;

  bool operator==(const RopeSpec&) const = default;
};

// A layer type, and which tensors have a bias.
struct LayerKindSpec : LayerKind {
  bool has_qkv_bias = false;
  bool has_k_bias = true;  // if q and v have one
  bool has_attention_out_bias = false;
  bool has_mlp_bias = false;
  bool has_expert_bias = true;  // if the other feed-forward blocks have one
  bool has_router_bias = false;
  bool has_router_correction = false;
  bool has_shared_gate = false;
  bool has_v_norm = false;
  bool k_is_v = false;         // the key projection makes the values too
  float routed_factor = 1.0f;  // of the routed experts' outputs; folded into their last matrices
  float shared_factor = 1.0f;  // of the shared expert's output; folded likewise
  bool shares_norm = false;    // parallel blocks: one norm before both
  bool has_cross_attention = false;
  bool has_relative_position_bias = false;
  bool has_mixer_in_bias = false;  // of the mixer's first matrix
  bool has_mixer_out_bias = false;
  bool has_conv_bias = false;

  bool operator==(const LayerKindSpec&) const = default;
};

// Tensor names of a family without ".weight" and ".bias"; {} stands for the layer number. Null: the
// family has no such tensor.
struct TensorNames {
  // Parts of names, and what checkpoints may have in their place.
  struct OtherPart {
    const char* part = nullptr;
    const char* other = nullptr;
  };
  OtherPart other_parts[2] = {};
  const char* prefix;  // of all but the head; absent in checkpoints of the bare decoder
  const char* older_prefix = nullptr;  // of published checkpoints, in its place
  // Prefix of a multi-token prediction head, and the names in it, of layers like the
  // decoder's with attention. Null: the head is left out.
  const char* extra_head = nullptr;
  const TensorNames* mtp = nullptr;
  const char* mtp_prefix = nullptr;  // of those names; with "{}": of the layer behind the last
  const char* mtp_embedding_norm = nullptr;
  const char* mtp_hidden_norm = nullptr;
  const char* mtp_fc = nullptr;     // [hidden, 2 hidden]: of the embedding, then of the row
  bool mtp_goes_on_normed = false;  // to a further guess, though it is a layer behind the last
  const char* mtp_embedding_copy = nullptr;  // the decoder's own, stored again
  const char* mtp_head_copy = nullptr;
  const char* embedding;
  const char* other_embedding = nullptr;  // another name that it may have
  const char* positions = nullptr;
  const char* embedding_norm = nullptr;
  const char* token_types = nullptr;
  const char* final_norm = nullptr;
  const char* head = nullptr;
  const char* head_dense = nullptr;  // between the final norm and the head, with a norm behind it
  const char* head_norm = nullptr;
  const char* unused[6] = {};              // prefixes of tensors that nothing here uses
  const char* unused_in_layers = nullptr;  // likewise, of each layer
  const char* attention_norm = nullptr;
  // Norms before the blocks of layers with a state, which then have none behind them.
  const char* state_attention_norm = nullptr;
  const char* state_ffn_norm = nullptr;
  // Names of the two norms before parallel blocks, if they differ from attention_norm and ffn_norm.
  const char* parallel_attention_norm = nullptr;
  const char* parallel_ffn_norm = nullptr;
  const char* qkv = nullptr;  // q, k and v fused in one tensor; else separate
  const char* q = nullptr;
  const char* k = nullptr;
  const char* v = nullptr;
  const char* attention_gate = nullptr;  // null: rows of q
  const char* q_norm = nullptr;
  const char* k_norm = nullptr;
  const char* attention_sub_norm = nullptr;
  const char* attention_out = nullptr;
  const char* attention_post_norm = nullptr;
  const char* ffn_norm = nullptr;
  const char* gate_up = nullptr;  // gate and up fused in one tensor; else separate
  const char* gate = nullptr;
  const char* up = nullptr;
  const char* act_parameters[4] = {};  // complete names; the first two [1], the others []
  const char* ffn_sub_norm = nullptr;
  const char* down = nullptr;
  const char* ffn_post_norm = nullptr;
  // Layers with experts; the second {} stands for the expert number.
  const char* router = nullptr;
  const char* expert_gate = nullptr;
  const char* expert_up = nullptr;
  const char* expert_down = nullptr;
  // Or all experts of a layer in one tensor [experts, inputs, outputs], named without ".weight".
  // With is_stacked_by_rows: [experts, outputs, inputs].
  const char* stacked_gate_up = nullptr;
  const char* stacked_down = nullptr;
  bool is_stacked_by_rows = false;
  const char* shared_gate = nullptr;  // shared expert, which every token passes through
  const char* shared_up = nullptr;
  const char* shared_down = nullptr;
  const char* shared_gate_up = nullptr;     // gate and up of the shared expert fused
  const char* shared_gate_score = nullptr;  // [1, hidden]: gate of its output
  const char* router_correction = nullptr;  // complete name
  // Norms around experts: of what the router reads (a complete name; times hidden^-0.5), of what
  // the experts read, of what they and the shared expert make; and the experts' factors [experts],
  // a complete name.
  const char* router_norm = nullptr;
  const char* experts_norm = nullptr;
  const char* experts_post_norm = nullptr;
  const char* shared_post_norm = nullptr;
  const char* expert_factors = nullptr;
  const char* per_layer_embedding = nullptr;
  const char* per_layer_projection = nullptr;
  const char* per_layer_projection_norm = nullptr;
  const char* per_layer_gate = nullptr;  // this and the following: of a layer
  const char* per_layer_out = nullptr;
  const char* per_layer_norm = nullptr;
  const char* output_scale = nullptr;  // complete name
  // Residual streams; {} stands for the stream, less 1, or for the layer.
  const char* stream_in = nullptr;
  const char* stream_out = nullptr;
  const char* stream_router_norm = nullptr;
  const char* stream_router = nullptr;
  const char* stream_predict = nullptr;
  const char* stream_correct = nullptr;
  const char* stream_scale = nullptr;  // complete name
  // Low-rank residual beside attention.
  const char* laurel_low = nullptr;
  const char* laurel_out = nullptr;
  const char* laurel_norm = nullptr;
  // Latent attention. Queries come from q_low, q_low_norm and q_up, or from q.
  const char* q_low = nullptr;
  const char* q_low_norm = nullptr;
  const char* q_up = nullptr;
  const char* latent = nullptr;  // rows: latent, then the rotated part of the key
  const char* latent_norm = nullptr;
  const char* latent_up = nullptr;  // rows: keys and values of each head
  // Or the keys, transposed, and the values of each head; the second {} stands for its number.
  const char* latent_keys = nullptr;
  const char* latent_values = nullptr;
  const char* sinks = nullptr;                   // without ".weight"
  const char* plain_up = nullptr;                // up of layers without a gate, if its name differs
  const char* relative_position_bias = nullptr;  // relative position bias [buckets, heads] of the
                                                 // first layer, shared by all
  // Layers with cross-attention.
  const char* cross_norm = nullptr;
  const char* cross_q = nullptr;
  const char* cross_k = nullptr;
  const char* cross_v = nullptr;
  const char* cross_out = nullptr;
  const char* cross_post_norm = nullptr;
  // Other names of the embedding in checkpoints.
  const char* embedding_copies[2] = {};
  // Layers with a mixer other than attention. scan_rates and scan_skip are complete names.
  const char* mixer_in = nullptr;
  const char* conv = nullptr;
  const char* scan_inputs = nullptr;  // projection to the time steps (dt), B and C
  const char* scan_steps = nullptr;   // of the time steps, from the first part of scan_inputs
  const char* scan_rates = nullptr;   // log(-A)
  const char* scan_skip = nullptr;
  const char* scan_low_norm = nullptr;  // of time steps, B and C, if scan_norm_epsilon is not 0;
  const char* scan_b_norm = nullptr;    // null: without weights
  const char* scan_c_norm = nullptr;
  const char* mixer_out = nullptr;
  // Linear attention. The first matrix is mixer_in, [z | x | B | C | time steps]; or mixer_qkv,
  // mixer_z, and mixer_b and mixer_a or mixer_ba; or mixer_qkvz and mixer_ba. mixer_qkvz and
  // mixer_ba are by key head. time_step_bias is a complete name.
  const char* mixer_qkv = nullptr;
  const char* mixer_q = nullptr;  // q, k and v, and their convolutions, each in a tensor
  const char* mixer_k = nullptr;
  const char* mixer_v = nullptr;
  const char* conv_q = nullptr;
  const char* conv_k = nullptr;
  const char* conv_v = nullptr;
  const char* mixer_z = nullptr;
  const char* mixer_b = nullptr;
  const char* mixer_a = nullptr;
  const char* mixer_qkvz = nullptr;
  const char* mixer_ba = nullptr;
  const char* time_step_bias = nullptr;
  const char* mixer_norm = nullptr;
};

// Row order of a fused q, k and v tensor.
enum class QkvOrder : uint8_t {
  kBlocks,   // all of q, then all of k, then all of v
  kByHead,   // for each kv head: its q heads, its k, its v
  kByShard,  // for each of four shards: q, v and k of its heads
};

// Relative position buckets (Raffel et al., 2020): the larger the distance, the wider the bucket.
struct RelativePositionBuckets {
  uint32_t n_buckets = 0;  // 0: no relative position bias
  uint32_t max_distance = 0;

  bool operator==(const RelativePositionBuckets&) const = default;
};

// A convolution over an encoder's features: [channels, inputs, taps] in the checkpoint.
struct ConvolutionSpec {
  const char* name = nullptr;
  uint32_t channels = 0;
  uint32_t taps = 0, stride = 1, padding = 0;
  bool has_bias = true;
  bool is_exact = false;  // f32 whatever the format of the others
  Activation activation = Activation::kGelu;
  const char* norm = nullptr;  // group normalisation with one group behind the activation
  float norm_epsilon = 0.0f;

  bool operator==(const ConvolutionSpec&) const = default;
};

// Fields of fbs::Encoder.
struct EncoderSpec {
  uint32_t max_rows = 0;  // 0: no encoder
  uint32_t feature_width = 0;
  bool takes_samples = false;
  std::vector<ConvolutionSpec> convolutions;
  uint32_t hidden = 0;
  float embedding_factor = 1.0f;
  float final_norm_epsilon = 0.0f;
  const TensorNames* names = nullptr;
  std::vector<LayerKindSpec> kinds;
  std::vector<uint32_t> layer_kinds;

  bool operator==(const EncoderSpec&) const = default;
};

// Factors of what a layer's matrices take or give, folded into them.
struct MatrixFactors {
  float attention_in = 1.0f, k = 1.0f, attention_out = 1.0f;
  float mixer_in = 1.0f;  // and of each part of its output:
  float z = 1.0f, x = 1.0f, b = 1.0f, c = 1.0f, time_steps = 1.0f;
  float mixer_out = 1.0f;
  float gate = 1.0f, down = 1.0f;

  bool operator==(const MatrixFactors&) const = default;
};

// Fields of fbs::Model.
struct StreamsSpec {
  uint32_t n = 0;  // 0: there is one
  uint32_t active = 0;
  float epsilon = 0.0f;
  bool has_scale = false;  // stream_scale

  bool operator==(const StreamsSpec&) const = default;
};

class Checkpoint;

// A layer over pooled rows: norm(activation(weight x + bias)).
struct DenseSpec {
  std::string weight;  // name in the checkpoint, without ".weight" unless is_whole_name
  // That it lies in; null: the model's.
  std::shared_ptr<const Checkpoint> checkpoint = nullptr;
  uint32_t width = 0;
  bool has_bias = false;
  std::optional<Activation> activation;
  std::string norm = "";  // empty: none
  bool has_norm_bias = false;
  std::vector<uint32_t> rows = {};  // of the tensor, which has vocab rows; empty: all
  bool is_exact = false;            // f32 whatever the format of the others
  bool is_whole_name = false;
  bool is_transposed = false;  // stored [inputs, outputs]

  bool operator==(const DenseSpec&) const = default;
};

enum class ScoreRule : uint8_t { kLogits = 0, kSigmoid = 1, kLastOfSoftmax = 2 };

struct PromptSpec {
  std::string name, text;

  bool operator==(const PromptSpec&) const = default;
};

// Fields of fbs::Pooling.
struct PoolingSpec {
  bool exists = false;
  PoolKind mode = PoolKind::kMean;
  std::vector<DenseSpec> dense;
  bool is_score = false;
  ScoreRule score = ScoreRule::kLogits;
  bool normalizes = false;
  uint32_t max_tokens = 0;  // 0: the longest context
  std::vector<PromptSpec> prompts;
  int32_t default_prompt = -1;
  std::string pair_template, instruction;

  bool operator==(const PoolingSpec&) const = default;
};

struct DecoderSpec;

// Fields of fbs::ImageText.
struct ImageTextSpec {
  std::string marker, token;
  std::string begin, tile_begin, row_end, tiles_end, whole_begin, alone_begin, end;

  bool operator==(const ImageTextSpec&) const = default;
};

// How merged patches become rows of the decoder's width.
struct ProjectorSpec {
  std::string norm = "";         // empty: none
  bool has_norm_weights = true;  // else 1
  NormKind norm_kind = NormKind::kLayer;
  float norm_offset = 0.0f;
  float norm_epsilon = 0.0f;
  std::vector<DenseSpec> stages;

  bool operator==(const ProjectorSpec&) const = default;
};

// Fields of fbs::Deepstack.
struct DeepstackSpec {
  uint32_t layer = 0;
  ProjectorSpec projector;

  bool operator==(const DeepstackSpec&) const = default;
};

// Fields of fbs::Vision.
struct VisionSpec {
  // Its layers: hidden, kinds, layer_kinds, final norm and names. Null: there is no tower.
  std::shared_ptr<const DecoderSpec> tower;
  uint32_t patch_size = 0;
  bool has_channels_last = false;  // stored columns of a patch: y, x, channel
  uint32_t frames = 1;             // of a patch; those of an image are equal
  // Names in the checkpoint, without ".weight". positions: empty: none.
  std::string patch_embedding, positions = "";
  bool has_patch_bias = true;
  uint32_t stored_positions = 0;  // GridPositions::kAxes: rows of either axis
  uint32_t position_side = 0;
  GridPositions grid_positions = GridPositions::kExact;
  uint32_t merge_side = 1;
  uint32_t window_side = 0;
  PoolKind merge = PoolKind::kConcat;
  float merge_factor = 1.0f;
  std::string merge_shift = "", merge_scale = "";  // whole names; empty: none
  ProjectorSpec projector;
  std::vector<DeepstackSpec> deepstack;
  uint32_t max_patches = 0;
  ImageRules image;
  uint32_t token_id = 0;
  ImageTextSpec text;
  bool sees_both_ways = false;
  bool has_mrope = false;
  bool has_clamps = false;  // of inputs and outputs of its layers' matrices

  bool exists() const { return tower != nullptr; }
  bool operator==(const VisionSpec&) const = default;
};

class Checkpoint;

// AssistantSpec: what an assistant has beside its layers (fbs::Mtp).
struct AssistantSpec {
  std::shared_ptr<const Checkpoint> checkpoint;  // of its own; null: it is none
  uint32_t decoder_hidden = 0;
  uint32_t n_clusters = 0;  // 0: none
  uint32_t n_clusters_used = 0;
  std::vector<uint32_t> token_order;  // tokens of the clusters, one cluster after the other

  bool exists() const { return checkpoint != nullptr; }
  bool operator==(const AssistantSpec&) const = default;
};

struct DecoderSpec {
  std::string architecture;
  const TensorNames* names = nullptr;
  QkvOrder qkv_order = QkvOrder::kBlocks;
  bool is_transposed = false;        // layer matrices are stored [inputs, outputs]
  bool rotates_neighbours = false;   // RoPE pairs of q and k are (0, 1), (2, 3), ...
  bool pairs_all_heads = false;      // stores heads without RoPE in the same order
  bool rotates_backwards = false;    // by the negative angles; whole heads
  bool rotates_halves = false;       // RoPE turns the pairs of either half of a head
  bool gate_up_alternate = false;    // stacked experts: gate and up rows interleaved
  bool up_is_first = false;          // in a tensor that holds gate and up
  bool value_heads_in_turn = false;  // of linear attention: the first of every key head, then the
                                     // second, ...
  bool rates_are_logs = true;        // scan_rates are stored as log(-A), else as A
  float norm_offset = 0.0f;          // added to stored norm weights
  bool has_norm_weights = true;      // else 1
  bool has_norm_biases = true;       // NormKind::kLayer; else 0
  bool has_head_bias = false;
  bool has_head_dense_bias = false;
  Activation head_activation = Activation::kSilu;
  bool makes_text = true;         // has a head
  bool is_bidirectional = false;  // tokens see those after them
  bool has_first_norm = true;     // attention_norm of the first layer
  uint32_t n_token_types = 0;     // 0: no token types; 1: both texts of a pair have type 0
  PoolingSpec pooling;
  uint32_t position_offset = 0;  // rows of the stored position table to leave out
  float residual_factor = 1.0f;  // scales what each block adds; folded into its last matrix
  MatrixFactors factors;
  uint32_t hidden = 0;
  uint32_t vocab = 0;
  uint32_t n_extra_layers = 0;  // behind the last, of a multi-token prediction head: left out
  uint32_t max_context = 0;
  float embedding_factor = 1.0f;
  NormKind final_norm_kind = NormKind::kRms;
  float final_norm_epsilon = 0.0f;
  float logits_factor = 1.0f;
  float logits_softcap = 0.0f;
  bool tied = false;
  std::optional<uint32_t> zero_row;  // of the embedding, whatever the checkpoint has
  std::vector<LayerKindSpec> kinds;
  std::vector<RopeSpec> ropes;
  std::vector<uint32_t> layer_kinds;  // per layer: index into kinds
  std::vector<uint32_t> kv_layers;    // per layer: whose keys and values it uses; empty: its own
  uint32_t per_layer_width = 0;       // of a layer's part of the per-layer embeddings; 0: none
  uint32_t per_layer_rows = 0;        // ids from here on use row 0
  StreamsSpec streams;
  RelativePositionBuckets relative_position_buckets;
  std::vector<float> alibi_slopes;  // of the heads; empty: no ALiBi
  EncoderSpec encoder;
  VisionSpec vision;
  // Multi-token prediction head: its layers, their kinds and names. Null: none.
  std::shared_ptr<const DecoderSpec> mtp;
  uint32_t first_layer = 0;           // of such a head, in the names of tensors
  bool own_rows_before_norm = false;  // fbs::Mtp
  AssistantSpec assistant;            // of such a head; kv_layers are the decoder's then

  // Returns the factor of a token's row: sqrt(per_layer_width), and 1 / sqrt(2) of the sum with the
  // projection.
  float per_layer_factor() const { return static_cast<float>(std::sqrt(per_layer_width / 2.0)); }

  bool operator==(const DecoderSpec&) const = default;
};

}  // namespace arn::convert

// Rows of vision_family.cc. Names are those of VisionTensorName, values those of transformers'
// configuration and image processor classes.
#pragma once

#include <cstdint>

#include "converter/family/decoder_spec.h"
#include "converter/family/vision_family.h"

namespace arn::convert {

struct MergedNorm {
  const char* name = nullptr;  // null: none
  const char* key = nullptr;   // of a flag that it is there
  NormKind kind = NormKind::kLayer;
  float offset = 0.0f;      // added to stored weights
  double epsilon = 0;       // 0: the tower's
  bool has_weights = true;  // else 1
};

struct ProjectorStage {
  const char* name = nullptr;       // null: there are no more
  const char* width_key = nullptr;  // null: the decoder's width
  uint32_t default_width = 0;
  bool keeps_width = false;  // that of its input
  bool has_bias = false;
  const char* bias_key = nullptr;  // of a flag that it has one
  const char* activation_key = nullptr;
  const char* default_activation = nullptr;
  bool is_whole_name = false;
  bool is_transposed = false;
};

// A layer of deepstack_visual_indexes has a projector in a list of them.
struct DeepstackNames {
  const char* list = nullptr;  // null: there are none
  const char* norm = nullptr;  // these within an entry
  const char* first = nullptr;
  const char* second = nullptr;
};

// Keys of a tower's config whose names differ.
struct TowerKeys {
  const char* hidden = "hidden_size";
  const char* ffn = "intermediate_size";
  const char* ffn_ratio = nullptr;  // in place of ffn: times hidden
  const char* out = nullptr;        // of the decoder's width
  const char* layers = "num_hidden_layers";
  const char* heads = "num_attention_heads";
  const char* kv_heads = nullptr;  // null: as many as heads; likewise head_dim: hidden / heads
  const char* head_dim = nullptr;
  const char* epsilon = "layer_norm_eps";
  const char* activation = "hidden_act";
  const char* channels = "num_channels";
  const char* positions = "num_patches";
};

// Which pairs of the decoder's RoPE turn by time, row and column: mrope_section says how many, in
// this order.
enum class MropeOrder : uint8_t { kNone, kInterleaved, kChunks };

struct VisionFamily {
  const char* architecture;
  const TensorNames* names;
  const char* patch_embedding;
  const char* positions;  // null: none. kAxes: a whole name
  bool has_patch_bias = true;
  bool has_channels_last = false;
  TowerKeys keys = {};
  // A patch has as many frames as temporal_patch_size says; 0: it is flat.
  uint32_t frames = 0;
  // Pairs of q and k turn by a patch's row, then by its column, with this base. 0: they do not.
  double rope_theta = 0;
  // The first half of a head turns by a patch's column, the second by its row, with the base that
  // rope_parameters says.
  bool rotates_halves = false;
  bool has_biases = true;
  bool has_qkv_norms = false;  // of each head; v's without weights
  bool has_unscaled_scores = false;
  const char* clamps_key = nullptr;  // of a flag that inputs and outputs of matrices are clamped
  bool scales_merged = false;        // by sqrt(hidden)
  const char* standardize_key = nullptr;  // of a flag that they are then shifted and scaled
  // Defaults of the tower's configuration class.
  uint32_t hidden, ffn, layers, heads, patch_size;
  const char* activation = "gelu_pytorch_tanh";
  NormKind norm = NormKind::kLayer;
  bool is_gated = false;
  // Layers attend within windows of window_size pixels, but for those of fullatt_block_indexes. 0:
  // all attend to the whole tile.
  uint32_t window_size = 0;
  uint32_t image_size = 0;   // 0: num_patches instead
  uint32_t n_positions = 0;  // default of num_patches
  GridPositions grid_positions = GridPositions::kExact;
  // Keys of how many patches become a row: a side of merge_key, or what leaves tokens_key tokens.
  const char* merge_key = nullptr;
  const char* tokens_key = nullptr;
  uint32_t default_merge = 0;       // of either key
  bool has_merge_in_tower = false;  // merge_key is one of vision_config
  PoolKind merge = PoolKind::kConcat;
  MergedNorm merged_norm = {};
  ProjectorStage projector[2] = {};
  DeepstackNames deepstack = {};
  int64_t deepstack_layers[3] = {};  // default of deepstack_visual_indexes
  const char* token_keys[2] = {"image_token_id", "image_token_index"};
  uint32_t default_token = 0;
  bool sees_both_ways = false;
  // Key of text_config: images see both ways if it is "vision". Null: as sees_both_ways says.
  const char* both_ways_key = nullptr;
  MropeOrder mrope = MropeOrder::kNone;
  int64_t mrope_section[kRopeAxes] = {11, 11, 10};  // its default
  // Defaults of the image processor's class, and of its texts.
  ImageRule rule = ImageRule::kSquare;
  Resample resample = Resample::kBilinear;
  uint32_t tile_size = 0, longest_edge = 0;
  uint32_t min_pixels = 0, max_pixels = 0;
  uint32_t max_tokens = 0;
  bool recentres_pixels = false;  // a pixel p becomes 2 p - 1 in the tower
  float mean[kPixelChannels] = {0.5f, 0.5f, 0.5f}, deviation[kPixelChannels] = {0.5f, 0.5f, 0.5f};
  const char* marker = "";
  const char* token = "";
  const char* begin = "";
  const char* tile_begin = "";
  const char* row_end = "";
  const char* tiles_end = "";
  const char* whole_begin = "";
  const char* alone_begin = "";
  const char* end = "";
};

#define ARN_SIGLIP_LAYER "vision.tower.encoder.layers.{}."
inline constexpr TensorNames kSiglipNames = {
    .prefix = kVisionPrefix,
    .embedding = nullptr,
    .final_norm = "vision.tower.post_layernorm",
    .unused = {"vision.tower.head.", "vision.tower.embeddings.position_ids"},
    .attention_norm = ARN_SIGLIP_LAYER "layer_norm1",
    .q = ARN_SIGLIP_LAYER "self_attn.q_proj",
    .k = ARN_SIGLIP_LAYER "self_attn.k_proj",
    .v = ARN_SIGLIP_LAYER "self_attn.v_proj",
    .attention_out = ARN_SIGLIP_LAYER "self_attn.out_proj",
    .ffn_norm = ARN_SIGLIP_LAYER "layer_norm2",
    .up = ARN_SIGLIP_LAYER "mlp.fc1",
    .down = ARN_SIGLIP_LAYER "mlp.fc2",
};
#undef ARN_SIGLIP_LAYER

// SigLIP's tower, with the defaults of its base size.
constexpr VisionFamily SiglipTower(const char* architecture) {
  return {.architecture = architecture,
          .names = &kSiglipNames,
          .patch_embedding = "vision.tower.embeddings.patch_embedding",
          .positions = "vision.tower.embeddings.position_embedding",
          .hidden = 768,
          .ffn = 3072,
          .layers = 12,
          .heads = 12,
          .patch_size = 16};
}

// Patches are concatenated; square tiles of an image, and the whole image.
constexpr VisionFamily Idefics3Like(const char* architecture) {
  VisionFamily family = SiglipTower(architecture);
  family.hidden = 1152;
  family.heads = 16;
  family.patch_size = 32;
  family.image_size = 224;
  family.merge_key = "scale_factor";
  family.default_merge = 2;
  family.projector[0] = {.name = "vision.connector.modality_projection.proj"};
  family.default_token = 128257;
  family.rule = ImageRule::kLongestEdge;
  family.resample = Resample::kLanczos;
  family.tile_size = 364;
  family.longest_edge = 4 * 364;
  family.marker = "<image>";
  family.token = "<image>";
  family.tile_begin = "<fake_token_around_image><row_{row}_col_{col}>";
  family.row_end = "\n";
  family.tiles_end = "\n";
  family.whole_begin = "<fake_token_around_image><global-img>";
  family.alone_begin = "<fake_token_around_image><global-img>";
  family.end = "<fake_token_around_image>";
  return family;
}

// Patches are averaged; one square.
constexpr VisionFamily Gemma3() {
  VisionFamily family = SiglipTower("Gemma3ForConditionalGeneration");
  family.image_size = 224;
  family.tokens_key = "mm_tokens_per_image";
  family.default_merge = 256;
  family.merge = PoolKind::kMean;
  family.merged_norm = {"vision.projector.mm_soft_emb_norm", nullptr, NormKind::kRms, 1.0f};
  family.projector[0] = {.name = "vision.projector.mm_input_projection_weight",
                         .is_whole_name = true,
                         .is_transposed = true};
  family.default_token = 262144;
  family.sees_both_ways = true;
  family.rule = ImageRule::kSquare;
  family.tile_size = 224;
  family.marker = "<start_of_image>";
  family.token = "<image_soft_token>";
  family.begin = "\n\n<start_of_image>";
  family.end = "<end_of_image>\n\n";
  return family;
}

// Patches are concatenated; a budget of tokens, beyond which a grid of tiles and a thumbnail.
constexpr VisionFamily Lfm2Vl() {
  VisionFamily family = SiglipTower("Lfm2VlForConditionalGeneration");
  family.has_channels_last = true;
  family.n_positions = 256;
  family.grid_positions = GridPositions::kBilinear;
  family.merge_key = "downsample_factor";
  family.default_merge = 2;
  family.merged_norm = {"vision.projector.layer_norm", "projector_use_layernorm", NormKind::kLayer,
                        0.0f, 1e-5};
  family.projector[0] = {.name = "vision.projector.linear_1",
                         .width_key = "projector_hidden_size",
                         .default_width = 2560,
                         .bias_key = "projector_bias",
                         .activation_key = "projector_hidden_act",
                         .default_activation = "gelu"};
  family.projector[1] = {.name = "vision.projector.linear_2", .bias_key = "projector_bias"};
  family.default_token = 396;
  family.rule = ImageRule::kTokenBudget;
  family.tile_size = 512;
  family.marker = "<image>";
  family.token = "<image>";
  family.begin = "<|image_start|>";
  family.tile_begin = "<|img_row_{row}_col_{col}|>";
  family.whole_begin = "<|img_thumbnail|>";
  family.end = "<|image_end|>";
  return family;
}

#define ARN_QWEN_LAYER "vision.tower.blocks.{}."
// gate: null: none.
constexpr TensorNames QwenTowerNames(const char* final_norm, const char* gate, const char* up,
                                     const char* down) {
  return {.prefix = kVisionPrefix,
          .embedding = nullptr,
          .final_norm = final_norm,
          .attention_norm = ARN_QWEN_LAYER "norm1",
          .qkv = ARN_QWEN_LAYER "attn.qkv",
          .attention_out = ARN_QWEN_LAYER "attn.proj",
          .ffn_norm = ARN_QWEN_LAYER "norm2",
          .gate = gate,
          .up = up,
          .down = down};
}
inline constexpr TensorNames kQwenNames =
    QwenTowerNames("vision.tower.merger.norm", nullptr, ARN_QWEN_LAYER "mlp.linear_fc1",
                   ARN_QWEN_LAYER "mlp.linear_fc2");
inline constexpr TensorNames kQwen2VlNames = QwenTowerNames(
    "vision.tower.merger.ln_q", nullptr, ARN_QWEN_LAYER "mlp.fc1", ARN_QWEN_LAYER "mlp.fc2");
inline constexpr TensorNames kQwen25VlNames =
    QwenTowerNames("vision.tower.merger.ln_q", ARN_QWEN_LAYER "mlp.gate_proj",
                   ARN_QWEN_LAYER "mlp.up_proj", ARN_QWEN_LAYER "mlp.down_proj");
#undef ARN_QWEN_LAYER

// Patches of equal frames, with positions between those of the trained grid and 2-D RoPE, are
// concatenated; a budget of pixels. The decoder turns by time, row and column.
constexpr VisionFamily Qwen35(const char* architecture) {
  return {.architecture = architecture,
          .names = &kQwenNames,
          .patch_embedding = "vision.tower.patch_embed.proj",
          .positions = "vision.tower.pos_embed",
          .keys = {.out = "out_hidden_size",
                   .layers = "depth",
                   .heads = "num_heads",
                   .channels = "in_channels",
                   .positions = "num_position_embeddings"},
          .frames = 2,
          .rope_theta = 10000.0,
          .hidden = 1152,
          .ffn = 4304,
          .layers = 27,
          .heads = 16,
          .patch_size = 16,
          .n_positions = 2304,
          .grid_positions = GridPositions::kCorners,
          .merge_key = "spatial_merge_size",
          .default_merge = 2,
          .has_merge_in_tower = true,
          .projector = {{.name = "vision.tower.merger.linear_fc1",
                         .keeps_width = true,
                         .has_bias = true,
                         .default_activation = "gelu"},
                        {.name = "vision.tower.merger.linear_fc2", .has_bias = true}},
          .default_token = 248056,
          .mrope = MropeOrder::kInterleaved,
          .rule = ImageRule::kPixelBudget,
          .resample = Resample::kBicubic,
          .min_pixels = 56 * 56,
          .max_pixels = 28 * 28 * 1280,
          .mean = {0.48145466f, 0.4578275f, 0.40821073f},
          .deviation = {0.26862954f, 0.26130258f, 0.27577711f},
          .marker = "<|image_pad|>",
          .token = "<|image_pad|>"};
}

// As Qwen35, without positions but RoPE.
constexpr VisionFamily Qwen2Vl() {
  VisionFamily family = Qwen35("Qwen2VLForConditionalGeneration");
  family.names = &kQwen2VlNames;
  family.positions = nullptr;
  family.has_patch_bias = false;
  family.keys = {.hidden = "embed_dim",
                 .ffn_ratio = "mlp_ratio",
                 .out = "hidden_size",
                 .layers = "depth",
                 .heads = "num_heads",
                 .channels = "in_channels"};
  family.hidden = 1280;
  family.ffn = 4;
  family.layers = 32;
  family.patch_size = 14;
  family.activation = "quick_gelu";
  family.grid_positions = GridPositions::kExact;
  family.projector[0].name = "vision.tower.merger.mlp.0";
  family.projector[1].name = "vision.tower.merger.mlp.2";
  family.default_token = 151655;
  family.mrope = MropeOrder::kChunks;
  return family;
}

// As Qwen2Vl, with RMSNorm, gated blocks and attention within windows.
constexpr VisionFamily Qwen25Vl() {
  VisionFamily family = Qwen2Vl();
  family.architecture = "Qwen2_5_VLForConditionalGeneration";
  family.names = &kQwen25VlNames;
  family.keys = {
      .out = "out_hidden_size", .layers = "depth", .heads = "num_heads", .channels = "in_channels"};
  family.hidden = 3584;
  family.ffn = 3420;
  family.activation = "silu";
  family.norm = NormKind::kRms;
  family.is_gated = true;
  family.window_size = 112;
  return family;
}

// As Qwen35, with deepstack.
constexpr VisionFamily Qwen3Vl(const char* architecture) {
  VisionFamily family = Qwen35(architecture);
  family.deepstack = {"vision.tower.deepstack_merger_list.", "norm", "linear_fc1", "linear_fc2"};
  family.deepstack_layers[0] = 8;
  family.deepstack_layers[1] = 16;
  family.deepstack_layers[2] = 24;
  family.default_token = 151655;
  family.mrope_section[0] = 24;
  family.mrope_section[1] = family.mrope_section[2] = 20;
  return family;
}

#define ARN_CLIPPED_LAYER "vision.tower.encoder.layers.{}."
inline constexpr TensorNames kClippedNames = {
    .prefix = kVisionPrefix,
    .embedding = nullptr,
    .attention_norm = ARN_CLIPPED_LAYER "input_layernorm",
    .q = ARN_CLIPPED_LAYER "self_attn.q_proj.linear",
    .k = ARN_CLIPPED_LAYER "self_attn.k_proj.linear",
    .v = ARN_CLIPPED_LAYER "self_attn.v_proj.linear",
    .q_norm = ARN_CLIPPED_LAYER "self_attn.q_norm",
    .k_norm = ARN_CLIPPED_LAYER "self_attn.k_norm",
    .attention_out = ARN_CLIPPED_LAYER "self_attn.o_proj.linear",
    .attention_post_norm = ARN_CLIPPED_LAYER "post_attention_layernorm",
    .ffn_norm = ARN_CLIPPED_LAYER "pre_feedforward_layernorm",
    .gate = ARN_CLIPPED_LAYER "mlp.gate_proj.linear",
    .up = ARN_CLIPPED_LAYER "mlp.up_proj.linear",
    .down = ARN_CLIPPED_LAYER "mlp.down_proj.linear",
    .ffn_post_norm = ARN_CLIPPED_LAYER "post_feedforward_layernorm",
};
#undef ARN_CLIPPED_LAYER

// A patch has the positions of its column and of its row; patches are averaged; a budget of tokens,
// which an image fills.
constexpr VisionFamily Gemma4() {
  return {.architecture = "Gemma4ForConditionalGeneration",
          .names = &kClippedNames,
          .patch_embedding = "vision.tower.patch_embedder.input_proj",
          .positions = "vision.tower.patch_embedder.position_embedding_table",
          .has_patch_bias = false,
          .has_channels_last = true,
          .keys = {.kv_heads = "num_key_value_heads",
                   .head_dim = "head_dim",
                   .epsilon = "rms_norm_eps",
                   .activation = "hidden_activation",
                   .channels = nullptr,
                   .positions = "position_embedding_size"},
          .rope_theta = 100.0,
          .rotates_halves = true,
          .has_biases = false,
          .has_qkv_norms = true,
          .has_unscaled_scores = true,
          .clamps_key = "use_clipped_linears",
          .scales_merged = true,
          .standardize_key = "standardize",
          .hidden = 768,
          .ffn = 3072,
          .layers = 16,
          .heads = 12,
          .patch_size = 16,
          .norm = NormKind::kRms,
          .is_gated = true,
          .n_positions = 10240,
          .grid_positions = GridPositions::kAxes,
          .merge_key = "pooling_kernel_size",
          .default_merge = 3,
          .has_merge_in_tower = true,
          .merge = PoolKind::kMean,
          .merged_norm = {.name = "vision.embedder.embedding_pre_projection_norm",
                          .kind = NormKind::kRms,
                          .has_weights = false},
          .projector = {{.name = "vision.embedder.embedding_projection"}},
          .default_token = 258880,
          .both_ways_key = "use_bidirectional_attention",
          .rule = ImageRule::kPatchBudget,
          .resample = Resample::kBicubic,
          .max_tokens = 280,
          .recentres_pixels = true,
          .mean = {0.0f, 0.0f, 0.0f},
          .deviation = {1.0f, 1.0f, 1.0f},
          .marker = "<|image|>",
          .token = "<|image|>",
          .begin = "<|image>",
          .end = "<image|>"};
}

inline constexpr VisionFamily kVisionFamilies[] = {
    Idefics3Like("Idefics3ForConditionalGeneration"),
    Idefics3Like("SmolVLMForConditionalGeneration"),
    Gemma3(),
    Gemma4(),
    Lfm2Vl(),
    Qwen2Vl(),
    Qwen25Vl(),
    Qwen3Vl("Qwen3VLForConditionalGeneration"),
    Qwen3Vl("Qwen3VLMoeForConditionalGeneration"),
    Qwen35("Qwen3_5ForConditionalGeneration"),
    Qwen35("Qwen3_5MoeForConditionalGeneration"),
};

// Where the tensors of a tower lie, and their names under kVisionPrefix. The first that fits
// counts.
struct VisionPlace {
  const char* stored;
  const char* name;
};
inline constexpr VisionPlace kVisionPlaces[] = {
    {"vision_tower.vision_model.", "tower."},
    {"vision_tower.", "tower."},
    {"vision_model.", "tower."},
    {"connector.", "connector."},
    {"multi_modal_projector.", "projector."},
    {"embed_vision.", "embedder."},
    {"visual.", "tower."},
};

// Keys of image processors and towers that say nothing of the pixels.
inline constexpr const char* kSilentProcessorKeys[] = {"image_processor_type",
                                                       "processor_class",
                                                       "_valid_processor_keys",
                                                       "auto_map",
                                                       "data_format",
                                                       "input_data_format",
                                                       "device",
                                                       "disable_grouping",
                                                       "return_tensors",
                                                       "do_convert_rgb",
                                                       "do_pad",
                                                       "pad_size",
                                                       "crop_size",
                                                       "default_to_square",
                                                       "image_seq_length",
                                                       "image_seq_len",
                                                       "return_row_col_info",
                                                       "video_sampling",
                                                       "max_num_patches",
                                                       "backend"};
inline constexpr const char* kSilentTowerKeys[] = {"model_type",
                                                   "attention_dropout",
                                                   "initializer_range",
                                                   "initializer_factor",
                                                   "dtype",
                                                   "torch_dtype",
                                                   "vision_use_head",
                                                   "use_base_siglip",
                                                   "size",
                                                   "max_image_size",
                                                   "architectures",
                                                   "transformers_version",
                                                   "_name_or_path",
                                                   "return_dict",
                                                   "output_attentions",
                                                   "output_hidden_states",
                                                   "_attn_implementation_autoset",
                                                   "tie_word_embeddings",
                                                   "projection_dim",
                                                   "use_cache",
                                                   "attention_bias",
                                                   "max_position_embeddings",
                                                   "in_chans",
                                                   "spatial_patch_size",
                                                   "tokens_per_second",
                                                   "_attn_implementation"};

}  // namespace arn::convert

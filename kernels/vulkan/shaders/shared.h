// Declared once for C++ and GLSL: ids of specialization constants, push constants, and the words of
// the buffers that both sides read. The shaders include this file through common.glsl, so it keeps
// to what both languages accept.
#ifdef __cplusplus
#pragma once

#include <cstdint>

namespace arn::vulkan {
using uint = uint32_t;
#endif

// ---- element types and pages -----------------------------------------------------------------
// DType (platform/base/dtype.h).
const uint kTypeF32 = 0, kTypeF16 = 1, kTypeBf16 = 2, kTypeInt8 = 3, kTypeInt4 = 4;
// Marks a page of the quantised pool (kernels/contract/kv_view.h).
const uint kQuantisedPageBit = 0x80000000u;
// Words of metadata per weight row: scale (int8), bias, sum of values (int8: integer; int4: times
// their scales), and an unused word. int4: the bf16 block scales follow all of them.
const uint kRowHeadWords = 4;

// ---- ids of specialization constants -----------------------------------------------------------
// Constant 0 is the workgroup width. 1: the workgroup is one subgroup, so that barriers between its
// subgroups are compiled out.
const uint kWidthId = 0, kOneSubgroupId = 31;
const uint kEmbedTypeId = 1, kEmbedHasPositionsId = 2;
// norm.comp. Gather: output row i reads row logit_row(i).
const uint kNormIsLayerId = 1, kNormAccumulateId = 2, kNormGatherId = 3, kNormIsLostId = 6;
const uint kActivationId = 1, kActIsGatedId = 2;
const uint kRopeHasAxesId = 1;
const uint kMultiplyHasValueId = 1, kMultiplyHasScaleId = 2;
const uint kAddHasPositionsId = 1, kAddHasTypesId = 2;
const uint kPoolKindId = 1, kPoolHasShiftId = 2, kPoolHasScaleId = 3;
// norm.comp, gated_act.comp, quantize.comp.
const uint kRowIsWholeId = 4, kRowQuantizesId = 5;
const uint kRouteIsSigmoidId = 1, kRouteNormTopkProbId = 2, kRouteHasCorrectionId = 3;
const uint kRouteHasGroupsId = 4;
const uint kExpertsPartId = 1, kExpertsIsWeighedId = 2, kExpertsAccumulateId = 3;
const uint kConvIsGatedId = 1, kConvHasBiasId = 2, kConvIsActivatedId = 3, kConvActivationId = 4;
const uint kScanPassesById = 1, kScanStatesId = 2;
const uint kLinearKeyDimId = 1, kLinearPartsId = 2, kLinearBlockId = 3, kLinearPanelId = 4;
const uint kLinearHasDeltaRuleId = 5, kLinearHasSkipId = 6;
const uint kGateNormId = 2, kGateIsOfHeadsId = 3;  // and kActivationId
const uint kAttentionHeadsId = 1, kAttentionKvHeadsId = 2, kAttentionIsCrossId = 3;
const uint kAttentionIsSelfId = 4, kAttentionHasSinksId = 5, kAttentionHasBiasId = 6;
const uint kAttentionSegmentId = 9, kAttentionIsMergeId = 10;
const uint kAttentionHasPartsId = 17, kAttentionIsCausalId = 18;
const uint kAttentionMergesId = 19, kAttentionQuantizesId = 20;
// attention_tile.comp, attention_coop.comp.
const uint kAttentionIsCopiedId = 22;
const uint kAttentionPairsId = 11, kAttentionKeysId = 12, kAttentionTileRowsId = 13;
const uint kAttentionTileHeadsId = 14, kAttentionInQuadsId = 15, kAttentionKeepsQueriesId = 16;
// attention_coop.comp.
const uint kAttentionCoopMId = 23, kAttentionCoopNId = 24, kAttentionCoopKId = 25;
// linear.glsl; rows and outputs per workgroup: gemv_*.comp; tiles: gemm_*.comp.
const uint kMatmulTypeId = 1, kMatmulAccumulateId = 2, kMatmulIsLogitsId = 3;
const uint kMatmulRowsId = 4, kMatmulOutsId = 5, kMatmulWholeId = 6;
const uint kMatmulChosenId = 7, kMatmulRowsAnInputId = 8;
const uint kMatmulTileMId = 9, kMatmulTileNId = 10, kMatmulLanesNId = 11, kMatmulDepthId = 12;
const uint kMatmulCoopMId = 13, kMatmulCoopNId = 14, kMatmulCoopKId = 15, kMatmulSubgroupsId = 16;
const uint kMatmulBlocksId = 17, kMatmulSubgroupsNId = 18, kMatmulStepsId = 19;
// Columns that gemm_half.comp adds up in f16.
const uint kHalfBlock = 32;
// gemv_rows.glsl.
const uint kMatmulTeamsId = 20, kMatmulActivatesId = 26, kMatmulActivationId = 27;
const uint kMatmulRotatesId = 28, kMatmulAttendsId = 29;
// norm_row.glsl, of embed.comp and gemv_rows.glsl.
const uint kNextNormsId = 21, kNextNormIsLayerId = 22, kNextNormAddsId = 23, kNextQuantizesId = 24;
// tile_rows.glsl.
const uint kMatmulRowsFirstId = 25;
// head_linear.comp.
const uint kHeadTypeId = 1, kHeadRowsId = 2, kHeadOutsId = 3, kHeadPartsId = 4, kHeadQuadsId = 5;
// kv_edit.comp.
const uint kEditHasValuesId = 1;
// kv.glsl: the format of one group's pages.
const uint kKvWindowsId = 32, kKvWindowShiftId = 33, kKvKTypeId = 34, kKvVTypeId = 35;
const uint kKvHeadDimId = 36, kKvPageTokensId = 37, kKvQuantisedKBitsId = 38;
const uint kKvQuantisedVBitsId = 39, kKvGroupSizeId = 40, kKvHasQuantisedId = 41;
// rope_head.glsl, of qkv_rope.comp and gemv_rows.glsl.
const uint kQkvHeadsId = 42, kQkvKvHeadsId = 43, kQkvRotaryDimId = 44, kQkvHasQNormId = 45;
const uint kQkvHasKNormId = 46, kQkvStoresId = 47, kQkvNormFollowsId = 48, kQkvHasVNormId = 49;
// attention_rows.glsl, of attention.comp and gemv_rows.glsl.
const uint kAttendPartsId = 50, kAttendPerLaneId = 51, kAttendHeadsId = 52;
const uint kConstantCount = 53;

// kMatmulActivatesId: activates each output, or gate/up pairs, where the first half of the outputs
// are gates.
const uint kActivatesOutputs = 1, kActivatesPairs = 2;

// Parts of experts.comp.
const uint kExpertsWeigh = 0;  // multiplies each pair's row by the expert's weight
const uint kExpertsSum = 1;    // sums the weighted outputs of a row's pairs
const uint kExpertsList = 2;   // lists the pairs of expert gl_WorkGroupID.x, in any order

// Norms of gate.comp, before or after the multiplication.
const uint kGateHasNoNorm = 0, kGateNormPrecedes = 1, kGateNormFollows = 2;
// Most groups of route.comp.
const uint kRouteMaxGroups = 64;

// ---- push constants ----------------------------------------------------------------------------
// Every block starts with these words: where the data of bindings 1 to 5 starts after the binding's
// offset; rows of the matrix per row of the run; which rows the grid has: kOfRun, kOfLogits or
// kOfPooled, plus the first of them.
#define ARN_PUSH_HEAD                                \
  uint in_at, out_at, weights_at, rows_at, extra_at; \
  uint row_factor, of_rows;

struct PushHead {
  ARN_PUSH_HEAD
};
const uint kOfRun = 0, kOfLogits = 0x40000000u, kOfPooled = 0x80000000u;
const uint kFirstOfRows = 0x3fffffffu;  // mask
// Where one group's pages of a pool are: offset of the pool in the KV region, strides of pages and
// layers, and offsets in a layer's part of a page, in words. Push constants because they change
// with the context length, for which no shader should be compiled again. v_at = 0: the values are
// the keys.
struct KvPool {
  uint at, page_stride, layer_stride, v_at, k_scales_at, v_scales_at;
};
#define ARN_PUSH_KV KvPool active_pool, quantised_pool;
// The norm that follows (norm_row.glsl): where bindings 6 to 9 start; and of its quantised rows, as
// in MatmulPush.
#define ARN_PUSH_NEXT                                                         \
  uint normed_at, norm_at, norm_bias_at, next_at, next_values_at, next_words; \
  float epsilon;
struct EmbedPush {
  ARN_PUSH_HEAD
  uint cols, row_words, blocks_at, block_words, position_words;
  float factor;
  uint first_token, n_tokens;  // of the bound slice
  uint embedding_words;        // of a row of `embeddings`; 0: places of them take token 0
  ARN_PUSH_NEXT
};
struct RopeAnglesPush {
  ARN_PUSH_HEAD
  uint pairs;
  float amplitude;
  uint axes;  // of the first pair, among those of all ropes
};
struct NormPush {
  ARN_PUSH_HEAD
  uint n, in_stride, out_stride;
  uint group_weights;  // from the weights of a group to those of the next
  float epsilon;
  uint values_at, row_words;  // as in MatmulPush, if the row is quantised
};
struct QuantizePush {
  ARN_PUSH_HEAD
  uint n, values_at, row_words;
};
struct MatmulPush {
  ARN_PUSH_HEAD
  uint cols;
  uint row_quads;           // per weight row, in units of 16 bytes
  uint first_out, n_outs;   // outputs whose weights are bound
  uint out_stride;          // total number of outputs
  uint values_at, x_words;  // quantised rows: offset after the heads, and words per row
  uint blocks_at, block_words;
  float factor, softcap;  // logits only
  // Experts: the bound range, the stride in words between experts, the start of the first list, and
  // the capacity per list.
  uint first_expert, n_experts, expert_words, lists_at, list_words;
  ARN_PUSH_NEXT
  float limit;  // of the activation that follows
};
// With the rotation that follows, words that no other ending has: where its norms start, and the
// pages of its layer, as in KvPool. With attention behind it `factor` multiplies scores, and there
// is no norm of values: next_at and the words after it are those of the quantised outputs.
#define ARN_ROPE_Q_NORM_AT norm_at
#define ARN_ROPE_K_NORM_AT norm_bias_at
#define ARN_ROPE_V_NORM_AT next_at
#define ARN_ROPE_GROUP normed_at
#define ARN_ROPE_POOL_AT first_expert
#define ARN_ROPE_PAGE_STRIDE n_experts
#define ARN_ROPE_V_AT lists_at
#define ARN_ROPE_K_SCALES_AT list_words
#define ARN_ROPE_V_SCALES_AT expert_words
struct HeadLinearPush {
  ARN_PUSH_HEAD
  uint in_stride, in_head, first;          // of a row, of a head in it, columns before the matrix's
  uint out_stride, out_head, n_copied;     // likewise; columns before the matrix's outputs
  uint cols, n_outs;                       // of a matrix
  uint row_quads, blocks_at, block_words;  // as in MatmulPush
  uint first_head, n_heads, matrix_words;  // the bound matrices, and the words between two of them
  // Where binding 6 starts, the widths of both tails, and their place in a row.
  uint next_tail_at, tail_width, next_tail_width, tails_at;
};
struct QkvRopePush {
  ARN_PUSH_HEAD
  ARN_PUSH_KV
  uint layer, group, stride;
  float epsilon, temperature;
  uint temperature_step, temperature_shift;
  float clip;  // 0: none
};
struct AttentionPush {
  ARN_PUSH_HEAD
  ARN_PUSH_KV
  uint layer, group, in_stride, window, chunk;
  float scale, softcap;
  uint n_distances, bias_stride;
  uint most_segments;         // per row: capacity of `partials`
  uint first_kv_head;         // of the grid
  uint values_at, row_words;  // as in NormPush
};
struct GatedActPush {
  ARN_PUSH_HEAD
  uint n;
  float limit;
  uint values_at, row_words;  // as in NormPush
};
struct RoutePush {
  ARN_PUSH_HEAD
  uint n_experts, n_chosen;
  float epsilon, least;  // RouteParams::topk_epsilon, topk_least
  uint n_groups, n_groups_chosen;
};
struct MultiplyPush {
  ARN_PUSH_HEAD
  uint width, stride, first;
  float factor;
};
struct ScaleRowPush {
  ARN_PUSH_HEAD
  uint n;
};
struct ExpertsPush {
  ARN_PUSH_HEAD
  uint n, n_chosen;
  uint lists_at, list_words;  // kExpertsList: offset after the lengths, and capacity per expert
};
struct ConvPush {
  ARN_PUSH_HEAD
  ARN_PUSH_KV
  uint layer, group, state_at;
  uint width, in_stride, taps, weight_stride;
};
struct ScanPush {
  ARN_PUSH_HEAD
  ARN_PUSH_KV
  uint layer, group, state_at;
  uint width, out_stride, weight_stride;
};
struct LinearAttentionPush {
  ARN_PUSH_HEAD
  ARN_PUSH_KV
  uint layer, group, state_at;
  uint n_heads, heads_per_key, value_dim;
  uint weight_stride, gates_stride;
  float beta_factor, time_step_low, time_step_high, length_epsilon;
};
struct GatePush {
  ARN_PUSH_HEAD
  uint width, stride;  // of a row, and of the gates' row
  uint n;              // elements of a group of the norm
  uint group_weights;  // from the weights of a group to those of the next
  uint head_dim;       // columns that share a gate, if kGateIsOfHeadsId
  float epsilon;
  uint values_at, row_words;  // as in NormPush
};
struct Im2colPush {
  ARN_PUSH_HEAD
  uint width, taps, stride;
};
struct AddPositionsPush {
  ARN_PUSH_HEAD
  uint width, position_words, type_words;
};
struct ColumnsPush {
  ARN_PUSH_HEAD
  uint width, stride, first;
};
struct AddEmbeddingsPush {
  ARN_PUSH_HEAD
  uint width, stride, first;
};
struct ClampPush {
  ARN_PUSH_HEAD
  uint width, first, n, range;
};
struct PoolPush {
  ARN_PUSH_HEAD
  uint width, out_width;
  uint n_rows;  // that become one; 0: all rows of a sequence
  float factor;
};
struct KvEditPush {
  ARN_PUSH_HEAD
  ARN_PUSH_KV
  uint layers;  // index of the group's first layer among the layers of all groups
};
struct ChoosePush {
  ARN_PUSH_HEAD
  uint vocab, n_kept, n_grid_words;
};

// ---- the run (binding 0) -----------------------------------------------------------------------
// Heading: counts, then the offset of each part.
const uint kRunRowCount = 0, kRunLogitRowCount = 1, kRunSequenceCount = 2, kRunPooledRowCount = 3;
const uint kRunLogitRows = 4, kRunSequences = 5, kRunSequenceWords = 6, kRunEdits = 7;
const uint kRunLayers = 8, kRunAngles = 9, kRunParts = 10;
// Positions on axes of the rows, or 0: pairs turn by the row's position. The axis of each pair.
const uint kRunAxisPositions = 11, kRunRopeAxes = 12;
const uint kRunRows = 16;  // the rows start here
const uint kRowToken = 0, kRowPosition = 1, kRowSequence = 2, kRowPart = 3, kRowWords = 4;
const uint kRowEnd = kRowPart;  // of a decoder's: positions before it are seen; 0: up to its own
// Set in the token of a row that takes an embedding, whose index follows.
const uint kIsEmbedding = 0x80000000u;
const uint kAxisWords = 3;  // of a row: its positions
// A sequence: its head, then kGroupWords per KV group. A group of pages has the offset of its table
// and the table's first page; a group of states has the slot before the rows and the slot after
// them.
const uint kSequenceEncoderRows = 0, kSequenceFirstRow = 1, kSequenceRows = 2;
const uint kSequenceFirstType = 3, kSequenceHead = 4;  // rows of token type 0
// Rows that see each other: the first, and how many. A sequence has the same words.
const uint kPartFirstRow = 0, kPartRows = 1, kPartWords = 2;
const uint kGroupTable = 0, kGroupFirstPage = 1, kGroupSlotBefore = 2, kGroupSlotAfter = 3;
const uint kGroupWords = 4;
const uint kNoSlot = 0xffffffffu;
// An edit: page from, page to, positions to un-rotate keys by, tokens.
const uint kEditFrom = 0, kEditTo = 1, kEditPositions = 2, kEditTokens = 3, kEditWords = 8;
// A layer: offset of the angles of its rope, and its number of pairs.
const uint kLayerAngles = 0, kLayerPairs = 1, kLayerWords = 2;

// ---- counters of workgroups that have ended (arrivals.glsl) -----------------------------------
// One for each of a run's few rows, then one for each of their heads.
const uint kArrivalRows = 8, kFirstHeadArrival = kArrivalRows;

// ---- sampling on the device (choose.comp; ChoiceWords in lower/choice_words.h) ----------------
const uint kChoiceMaxSteps = 64, kChoiceMaxStopIds = 16;
const uint kChoiceStep = 0, kChoiceFirstPosition = 1, kChoiceStopCount = 2, kChoiceTopK = 3;
const uint kChoiceInverseTemperature = 4, kChoiceTopP = 5, kChoiceMinP = 6;
const uint kChoiceRng = 8, kChoiceStopIds = kChoiceRng + kChoiceMaxSteps;
const uint kChoiceIds = kChoiceStopIds + kChoiceMaxStopIds;
// Set in the id of a stop token.
const uint kIsStopId = 0x80000000u;

#ifdef __cplusplus
}  // namespace arn::vulkan
#endif

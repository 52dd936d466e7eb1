// Lowers a program's steps to dispatches.
#pragma once

#include <cstdint>

#include "kernels/contract/program.h"
#include "kernels/vulkan/device/device_weight.h"
#include "kernels/vulkan/lower/attention_tiles.h"
#include "kernels/vulkan/lower/dispatch.h"
#include "kernels/vulkan/lower/fusion.h"
#include "kernels/vulkan/lower/matmul_variants.h"
#include "kernels/vulkan/lower/row_ranges.h"
#include "platform/base/arith.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn::vulkan {

// Workgroup size of shaders that compute one column in each invocation.
inline constexpr uint32_t kWidth = 64;

// Workspace of the lowered program besides its values.
struct Workspace {
  Slice quantized;   // kActivations: zero point and scale of each row, then its values
  Slice normed;      // kActivations: input of the head
  Slice experts;     // kActivations: intermediate values of kExperts (expert_space.h)
  Slice partials;    // kActivations: partial results of attention split into segments (segments.h);
                     // or keys and values of attention on ranges of rows (row_ranges.h)
  Slice embeddings;  // kActivations: those of a run's rows (EmbedParams::embedding_stride)
  Slice features;    // kActivations: rows that kFeatures steps copy parts of
  Slice few_quantized;  // kActivations: as quantized, of few rows. Dispatches that read quantised
                        // rows and write others take turns with the two.
};

// Inputs of the lowering besides the program: device properties, which do not affect the number of
// dispatches, and overrides for tests.
struct Traits {
  bool fuses = true;                 // steps share dispatches (fusion.h)
  uint32_t most_teams = 1;           // subgroups of a workgroup that ends with a norm
  uint32_t least_team_groups = 128;  // workgroups that are left if subgroups share one
  uint32_t n_windows = 1;            // onto the KV region
  uint32_t window_shift = 31;        // log2 of the words per window
  MatmulTraits matmuls;
  MatmulChoices choices;        // unusable choices fall back to the first variant
  uint32_t timed_rows = 128;    // of a run of many rows, while variants are measured
  uint32_t choice_width = 128;  // workgroup size of sampling
  uint32_t row_width = 64;  // largest workgroup of norms and quantisation, which have a row each
  uint32_t segment_positions = kAttentionSegment;
  // Index of an AttentionVariant, of many rows. Tiles are of matrices where those of matmuls were
  // measured to be faster.
  uint32_t attention = kAttentionOfTiles;
  MatrixTraits matrices;
  // Keys and values of a layer, in a full context, up to which many rows attend each by itself.
  uint64_t row_attention_bytes = 0;
  // Bytes that a tile of attention may take.
  uint32_t shared_memory = Device::kMinSharedMemory;
  uint64_t binding_bytes = Device::kMaxBindingBytes;  // of activations, in ranges of rows
  uint64_t buffer_bytes = uint64_t{1} << 30;  // of activations, unless a single one is larger
};

// True if the program has logits from which a token can be sampled.
bool HasChoice(const Program& program);

// Returns a pool's place in words. keys_only: of KvGroup.
KvPool PoolOf(const KvPages& pages, bool keys_only);

// Sets where a group's pages are.
template <typename Push>
void SetPools(const KvGroup& group, Push* push) {
  push->active_pool = PoolOf(group.active, group.keys_only);
  push->quantised_pool = PoolOf(group.quantised, group.keys_only);
}

class Lowering {
 public:
  // weights: those of the program, then those of its ropes; empty: addresses are not needed yet.
  Lowering(const Program& program, Span<const DeviceWeight> weights, const Workspace& workspace,
           const Traits& traits)
      : program_(program),
        used_(UsedWeightsOf(program)),
        weights_(weights),
        workspace_(workspace),
        traits_(traits),
        range_rows_(RangeRowsOf(program, traits.binding_bytes)),
        placer_(program) {}

  // Calls the sink for each dispatch, without other side effects. Returns kUnsupported, with a
  // description, if this backend has no shader for a step.
  Status Run(DispatchSink* sink, Diag* diag);

  // Weight rows that fit in one binding.
  static uint32_t SliceRows(uint32_t row_bytes);

 private:
  Status LowerStep(const Step& step);
  Status Lower(const Step& step, const EmbedParams& p);
  Status Lower(const Step& step, const AddEmbeddingsParams& p);
  Status Lower(const Step& step, const RopeAnglesParams& p);
  Status Lower(const Step& step, const NormParams& p);
  Status Lower(const Step& step, const LinearParams& p);
  Status Lower(const Step& step, const QkvRopeParams& p);
  Status Lower(const Step& step, const AttentionParams& p);
  Status Lower(const Step& step, const GatedActParams& p);
  Status Lower(const Step& step, const ActParams& p);
  Status Lower(const Step& step, const RouteParams& p);
  Status Lower(const Step& step, const ExpertsParams& p);
  Status Lower(const Step& step, const LogitsParams& p);
  Status Lower(const Step& step, const ConvParams& p);
  Status Lower(const Step& step, const ScanParams& p);
  Status Lower(const Step& step, const LinearAttentionParams& p);
  Status Lower(const Step& step, const GateParams& p);
  Status Lower(const Step& step, const FeaturesParams& p);
  Status Lower(const Step& step, const ClampParams& p);
  Status Lower(const Step& step, const PoolParams& p);
  Status Lower(const Step& step, const Im2colParams& p);
  Status Lower(const Step& step, const AddPositionsParams& p);
  Status Lower(const Step& step, const SelfAttentionParams& p);
  Status Lower(const Step& step, const StoreKvParams& p);
  Status Lower(const Step& step, const MultiplyParams& p);
  Status Lower(const Step& step, const ScaleRowParams& p);
  Status Lower(const Step& step, const HeadLinearParams& p);
  // Returns kUnsupported if the step's rows would have to be in ranges, and cannot.
  Status CheckRanges(const Step& step);
  // Hands the dispatch to the sink, once for each range of rows.
  Status Add(const Dispatch& dispatch);
  Status CheckEncoderPages(const Step& step, const KvGroup& group);
  Status LowerEdits(uint32_t group);
  // n_dispatches: number of dispatches of the steps.
  Status LowerChoice(uint32_t n_dispatches);

  // Common parameters of the matmuls of one step.
  struct Matmul;
  Status AddQuantize(const Matmul& matmul);
  // True if the kernel that writes the step's rows also quantises them for the next step.
  bool IsQuantizedNext(const Step& step) const;
  // True if only a matmul that takes quantised rows reads the norm: f32 rows are not written.
  bool IsLost(const Step& norm) const;
  // Lets a kernel quantise its rows of push->n elements. matmul_rows: of the matmul's input, in any
  // run.
  template <typename Push>
  void Quantize(Dispatch* d, Push* push, uint64_t matmul_rows);
  void SetQuantized(uint8_t modes, Slice slice, uint64_t rows);
  // The norm that ends a dispatch of few rows: kNorm, or that of kLogits.
  struct EndingNorm {
    NormKind kind = NormKind::kRms;
    bool accumulates = false, is_quantised = false;
    float epsilon = 0.0f;
    WeightId weight = kNoWeight, bias = kNoWeight;
    Slice out;
    uint32_t width = 0;
  };
  EndingNorm EndingNormOf(const Step& step) const;
  template <typename Push>
  void EndWithNorm(const EndingNorm& norm, Dispatch* d);
  // Ends a matmul with kAct, or with kGatedAct, whose gates are the first half of the outputs.
  void EndWithActivation(const Step& act, Mode mode, Dispatch* d);
  // Quantises the rows of an activation that ended a matmul of many rows, for the next one.
  Status AddQuantizeOfActivated(const Step& act);
  // Ends a matmul of few rows with kQkvRope, head by head.
  void EndWithRotation(const Step& step, Dispatch* d);
  // Lets the workgroup that ends the rows quantise them. n: elements of a row.
  template <typename Push>
  void EndWithQuantised(uint32_t n, Dispatch* d, Push* push);
  // True if attention ends the matmul's dispatch in short contexts.
  bool Attends(const Step& matmul) const;
  // Ends a matmul that ends with the rotation before it with kAttention too, in short contexts.
  void EndWithAttention(const Step& step, Dispatch* d);
  // Returns where dispatches quantise rows while those of the next integer matmul are read.
  Slice NextQuantized(uint8_t modes) const;
  // Sets the constants of rope_head.glsl.
  void SetRotation(const QkvRopeParams& p, Dispatch* d) const;
  Fusion FusionAt(uint32_t step) const;
  // Lets subgroups of one workgroup have outputs of their own, so that more invocations do what
  // ends the rows.
  void SetTeams(Dispatch* d) const;
  // Lets 2^n subgroups share a workgroup.
  static void ShareWorkgroup(uint32_t teams, Dispatch* d);
  // Returns the workgroup size of a kernel that has a row of n elements.
  uint32_t RowWidth(uint32_t n) const;
  // Sets it. stride: from one row to the next, and any offset of the first; if 4 divides it and n,
  // rows are read in vectors of four.
  void SetRow(Dispatch* d, uint32_t n, uint32_t stride = 0) const;
  Status AddMatmuls(const Matmul& matmul);
  Dispatch MatmulOf(const Matmul& matmul, Mode kernel, uint32_t first_out, uint32_t n_outs) const;
  uint32_t VariantFor(Mode kernel, DType dtype) const;
  // Set the constants and the grid of a matmul for its variant.
  void SetOutputs(Mode kernel, DType dtype, uint32_t n_outs, Dispatch* d) const;
  void SetTile(DType dtype, uint32_t n_outs, Dispatch* d) const;
  Status AddMatmul(const Matmul& matmul, Mode kernel, uint32_t first_out, uint32_t n_outs);
  // The norm over n elements of `in` from `first` on, in place.
  Status AddHeadNorm(const Step& step, WeightId weight, uint32_t first, uint32_t n, float epsilon);
  Status AddAttention(const Step& step, const AttentionParams& p, bool is_self);
  // Adds kSelfAttention of many rows, in ranges: `dispatch`, for some of the heads at a time.
  Status AddAttentionOfRanges(const Step& step, const AttentionKind& kind,
                              const Dispatch& dispatch);
  // Keys and values of a layer that a row sees at most, in bytes.
  uint64_t BytesSeen(const AttentionKind& kind) const;
  // True if the chosen matmuls of integer weights, of many rows, are by cooperative matrices.
  bool ChoosesMatrices() const;
  // Makes a dispatch that of shaders/attention_coop.comp, if it has the kind.
  bool SetAttentionMatrices(const AttentionKind& kind, Dispatch* d) const;
  // Turns attention of rows into attention of tiles, if the device has it.
  void SetAttentionTile(const AttentionKind& kind, Dispatch* d) const;
  static void SetTile(const AttentionKind& kind, const AttentionTile& tile, Dispatch* d);
  // [gate | up] -> n values activation(gate) * up. Without `in`, in place. row_factor: rows per row
  // of a run.
  Status AddActivation(const Step& step, const GatedActParams& p, Place in, Place out, uint32_t n,
                       uint32_t row_factor, WeightId parameters = kNoWeight);

  // Experts, or heads, in one binding, and the stride in bytes between their matrices.
  struct BoundMatrices {
    uint32_t first = 0, n = 0;
    uint64_t stride = 0;
  };
  // Returns those from the first-th of n on that are equally spaced in one binding. id_of(i): of
  // the i-th.
  template <typename IdOf>
  BoundMatrices MatricesFrom(uint32_t first, uint32_t n, IdOf id_of);
  Place ExpertPart(uint64_t offset, uint64_t bytes) const;
  Status AddExpertMatmul(const Matmul& matmul, const ExpertsParams& p, const BoundMatrices& bound,
                         Mode kernel, uint32_t first_out, uint32_t n_outs);
  Status AddExpertMatmuls(Matmul matmul, const ExpertsParams& p, bool is_down);
  Status AddHeadLinear(const Step& step, const HeadLinearParams& p, const BoundMatrices& bound,
                       Mode mode);
  Status AddExpertPart(const Step& step, const ExpertsParams& p, uint32_t part, Place in,
                       Place out);

  // Its grid has the rows that the step works on.
  Dispatch Begin(Shader shader, const Step& step) const;
  // Binds `place` and adds its start to the push constants. binding: 1 to 5.
  void Bind(Dispatch* dispatch, uint32_t binding, Place place) const;
  // Binds `place` and returns its start, in words.
  uint32_t BindAt(Dispatch* dispatch, uint32_t binding, Place place) const;
  void BindValue(Dispatch* dispatch, uint32_t binding, ValueId id) const;
  void BindVector(Dispatch* dispatch, uint32_t binding, WeightId id) const;
  Place PlaceOfVector(WeightId id) const;
  // Adds a dispatch with a workgroup for each kWidth of n columns.
  template <class Push>
  Status AddColumns(Dispatch* dispatch, const Push& push, uint64_t n) {
    dispatch->SetPush(push);
    dispatch->groups_x = static_cast<uint32_t>(CeilDiv(n, uint64_t{kWidth}));
    return Add(*dispatch);
  }
  // Sets the constants that describe a group's pages. Their place is in the push constants.
  void SetKvFormat(Dispatch* dispatch, const KvGroup& group) const;
  Place PlaceOf(Slice slice) const;
  // row_bytes: of each of its rows.
  Place PlaceOfRows(Slice slice, uint64_t row_bytes) const;
  Place PlaceOfValue(ValueId id) const;
  // Shape only, until weights have addresses.
  DeviceWeight WeightAt(WeightId id) const;
  // With the address. Slow unless ids are requested in order.
  DeviceWeight PlacedAt(WeightId id);
  Status UnsupportedError(const Step& step, const char* what);
  uint32_t Width(ValueId id) const { return program_.values[id].width; }

  const Program& program_;
  const UsedWeights used_;
  Span<const DeviceWeight> weights_;
  const Workspace& workspace_;
  const Traits traits_;
  const uint64_t range_rows_;
  DispatchSink* sink_ = nullptr;
  bool quantizes_ = false;        // the current step quantises what it writes (IsQuantizedNext)
  bool is_quantized_ = false;     // the previous step did, for this one
  bool follows_embed_ = false;    // the steps before this one are kEmbed and kRopeAngles
  Fusion fusion_;                 // of the current step
  ValueId activated_ = kNoValue;  // ActivatedRows() of the steps before this one
  uint8_t done_modes_ = 0;  // of runs in which the previous step's dispatch did this one's work
  // Where the rows of the next integer matmul are, and how many there is room for, by mode.
  struct QuantizedRows {
    Slice slice;
    uint64_t rows = 0;
  };
  QuantizedRows quantized_rows_[kModeCount];
  Diag* diag_ = nullptr;
  // State of PlacedAt(): weights before n_placed_ have addresses, and placed_ is the last of them.
  WeightPlacer placer_;
  uint32_t n_placed_ = 0;
  DeviceWeight placed_;
};

}  // namespace arn::vulkan

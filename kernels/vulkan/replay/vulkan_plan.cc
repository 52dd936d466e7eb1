#include "kernels/vulkan/replay/vulkan_plan.h"

#include "kernels/contract/check.h"
#include "kernels/contract/code_type.h"
#include "kernels/vulkan/lower/choice_words.h"
#include "kernels/vulkan/lower/expert_space.h"
#include "kernels/vulkan/lower/matmul.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

class Counter final : public DispatchSink {
 public:
  Counter(const Program& program, Counts* counts) : program_(program), counts_(*counts) {}

  Status BeginStep(uint32_t step) override {
    if (BeginsSegment(program_, step)) ++counts_.n_segments;
    return Status::kOk;
  }
  Status BeginEdits(uint32_t) override {
    ++counts_.n_segments;
    return Status::kOk;
  }
  Status BeginChoice(uint32_t* n_dispatches) override {
    ++counts_.n_segments;
    *n_dispatches = counts_.n_dispatches;
    return Status::kOk;
  }
  Status Add(const Dispatch& dispatch, Diag*) override {
    if (dispatch.begins_segment) ++counts_.n_segments;
    ++counts_.n_dispatches;
    ++counts_.n_sets;  // upper bound
    if (dispatch.context == Context::kShort) ++counts_.n_short;
    return Status::kOk;
  }

 private:
  const Program& program_;
  Counts& counts_;
};

// Returns the bytes of quantised input rows of a matmul; 0 for float weights.
uint64_t QuantizedInputBytes(const Weight& weight, uint64_t rows, uint64_t range_rows) {
  if (!IsInteger(weight)) return 0;
  if (rows <= range_rows) return QuantizedBytes(rows, weight.cols);
  return CeilDiv(rows, range_rows) * QuantizedRangeBytes(range_rows, weight.cols);
}

// Returns the maximum bytes of quantised rows over all matmuls; 0 if no weights are integer.
uint64_t QuantizedInputBytes(const Program& program, uint64_t range_rows) {
  uint64_t bytes = 0;
  for (const Step& step : program.steps) {
    const StepOperands operands = OperandsOf(step);
    if (operands.n_matrices == 0) continue;
    const auto* experts = step.If<ExpertsParams>();
    const uint64_t rows = experts == nullptr ? MaxRowsOf(program, program.values[step.in])
                                             : uint64_t{program.max_rows} * experts->n_chosen;
    for (uint32_t i = 0; i < operands.n_matrices; ++i) {
      const Weight& weight = program.weights[operands.first_matrix + i];
      bytes = Max(bytes, QuantizedInputBytes(weight, rows, range_rows));
    }
  }
  return bytes;
}

// Returns the bytes of few quantised rows, which are written while others are read.
uint64_t FewQuantizedBytes(const Program& program) {
  uint64_t bytes = 0;
  for (const Step& step : program.steps) {
    const auto* linear = step.If<LinearParams>();
    const auto* logits = step.If<LogitsParams>();
    if (linear == nullptr && logits == nullptr) continue;
    const WeightId weight = linear != nullptr ? linear->weight : logits->weight;
    bytes = Max(bytes, QuantizedInputBytes(program.weights[weight], kFewRows, kAllRows));
  }
  return bytes;
}

// Returns the bytes of the counters of rows, and of their heads.
uint64_t ArrivalBytes(const Program& program) {
  uint32_t heads = 0;
  for (const AttentionKind& kind : program.kinds) heads = Max(heads, kind.n_heads);
  return (kFirstHeadArrival + uint64_t{kArrivalRows} * heads) * sizeof(uint32_t);
}

uint64_t NormedBytes(const Program& program) {
  uint32_t width = 0;
  for (const Step& step : program.steps) {
    if (step.op() == Op::kLogits) width = Max(width, program.values[step.in].width);
  }
  return uint64_t{width} * program.max_logit_rows * sizeof(float);
}

// Returns the option that bounds the rows of a run.
const char* SizeOption(const Program& program) {
  return program.pool_rows != 0 ? "max_side of images" : "prefill_chunk";
}

// Bytes of the rows that kFeatures steps copy parts of.
uint64_t FeaturesBytes(const Program& program) {
  for (const Step& step : StepsOf(program, /*is_encoder=*/true)) {
    const auto* features = step.If<FeaturesParams>();
    if (features == nullptr || features->stride == 0) continue;
    return uint64_t{program.max_encoder_rows} * features->stride * sizeof(float);
  }
  return 0;
}

// Bytes of the keys and values that kSelfAttention of ranges of rows copies.
uint64_t CopiedBytes(const Program& program, const Traits& traits) {
  uint64_t bytes = 0;
  if (RangeRowsOf(program, traits.binding_bytes) == kAllRows) return bytes;
  for (const Step& step : program.steps) {
    const auto* p = step.If<SelfAttentionParams>();
    if (p == nullptr) continue;
    const AttentionKind& kind = program.kinds[p->kind];
    bytes = Max(bytes, CopiedHeadsOf(program, kind, traits.binding_bytes).bytes());
  }
  return bytes;
}

// Maximum over the steps.
uint64_t PartialsBytes(const Program& program, const Traits& traits) {
  uint64_t bytes = CopiedBytes(program, traits);
  for (const Step& step : program.steps) {
    bytes = Max(bytes, PartialBytes(program, step, traits.segment_positions));
  }
  return bytes;
}

// Rows are a dimension of grids.
Status CheckRows(const Program& program, Diag* diag) {
  for (const Value& value : program.values) {
    const uint64_t rows = MaxRowsOf(program, value);
    if (rows <= kMaxGridRows) continue;
    return diag->Fail(Status::kUnsupported,
                      "Vulkan: a run of %llu rows, a grid has at most 65535: use a smaller %s",
                      static_cast<unsigned long long>(rows), SizeOption(program));
  }
  return Status::kOk;
}

// Each value and each part of the workspace must fit in one binding.
Status CheckBindings(const Program& program, uint64_t workspace, Diag* diag) {
  uint64_t most = workspace;
  for (const Value& value : program.values) most = Max(most, value.slice.bytes);
  if (most + Device::kBindingAlign <= Device::kMaxBindingBytes) return Status::kOk;
  return diag->Fail(Status::kUnsupported,
                    "Vulkan: an activation of %llu bytes does not fit a binding of 128 MiB: use a "
                    "smaller %s",
                    static_cast<unsigned long long>(most), SizeOption(program));
}

}  // namespace

QuantizedParts QuantizedPartsOf(const Program& program, const Traits& traits) {
  const uint64_t range_rows = RangeRowsOf(program, traits.binding_bytes);
  return {QuantizedInputBytes(program, range_rows), FewQuantizedBytes(program)};
}

Status CountProgram(const Program& program, const Traits& traits, Counts* counts, Diag* diag) {
  *counts = Counts();
  Counter counter(program, counts);
  const Workspace nowhere = {};
  Lowering lowering(program, {}, nowhere, traits);
  ARN_TRY(lowering.Run(&counter, diag));
  WeightPlacer placer(program);
  PlaceAll(program, &placer, [](uint32_t, const DeviceWeight&) {});
  counts->n_blocks = placer.n_blocks();
  counts->weight_bytes = placer.total();
  counts->file_bytes = placer.in_file();
  return Status::kOk;
}

void FillBufferBytes(const Program& program, const Counts& counts, const RunWords& words,
                     BufferBytes* out) {
  const uint32_t n_kept = HasChoice(program) ? kKeptRows : 0;
  out->logits = uint64_t{program.max_logit_rows + n_kept} * program.vocab * sizeof(float);
  out->choice = sizeof(ChoiceWords);
  out->run = words.n_words * sizeof(uint32_t);
  out->grids = counts.n_dispatches * sizeof(VkDispatchIndirectCommand);
  out->weights = counts.weight_bytes;
  out->arrivals = ArrivalBytes(program);
}

uint64_t EndOfActivations(const Program& program, const BackendPlan& plan, uint64_t start,
                          uint64_t buffer_bytes) {
  const auto for_each = [&](auto visit) {
    for (const Value& value : program.values) visit(value.slice);
    for (const uint32_t i : {kQuantizedSlice, kNormedSlice, kExpertsSlice, kPartialsSlice,
                             kFeaturesSlice, kEmbeddingsSlice}) {
      visit(plan.slices[i]);
    }
  };
  const auto is_end = [&](uint64_t at) {
    bool is_crossed = at % Device::kBindingAlign != 0;
    for_each([&](const Slice& slice) {
      is_crossed = is_crossed || (slice.offset < at && at < slice.offset + slice.bytes);
    });
    return !is_crossed;
  };
  const uint64_t all = plan.slices[kActivationsSlice].bytes;
  uint64_t before = start, after = all;  // the best ends up to buffer_bytes, and behind them
  if (all - start <= buffer_bytes) return all;
  for_each([&](const Slice& slice) {
    if (slice.offset <= start || !is_end(slice.offset)) return;
    if (slice.offset - start <= buffer_bytes) {
      before = Max(before, slice.offset);
    } else {
      after = Min(after, slice.offset);
    }
  });
  return before != start ? before : after;
}

uint64_t BufferBytes::Total() const {
  uint64_t total = weights + Transfer::kStagingBytes;  // buffers are rounded up to the binding
                                                       // alignment
  for (const uint64_t bytes : {activations, kv, logits, run, grids, choice, arrivals}) {
    total += Max<uint64_t>(AlignUp(bytes, Device::kBindingAlign), Device::kBindingAlign);
  }
  return total;
}

Status Plan(const Program& program, const Traits& traits, Layout* layout, BackendPlan* plan,
            Diag* diag) {
  *plan = BackendPlan();
  ARN_TRY(CheckProgram(program, diag));
  for (const KvGroup& group : program.kv_groups) {
    if (group.HasDefaultRanges()) continue;
    return diag->Fail(Status::kUnsupported,
                      "Vulkan: kv_key_axis and kv_value_axis other than the default are not "
                      "supported");
  }
  for (uint32_t i = 0; i < program.weights.size(); ++i) {
    const Weight& weight = program.weights[i];
    if (FindCodeType(weight.dtype) == nullptr) continue;
    return diag->Fail(Status::kUnsupported, "Vulkan: weight %u is %s, which is not supported", i,
                      DTypeName(weight.dtype));
  }
  for (const Step& step : StepsOf(program, /*is_encoder=*/false)) {
    if (step.op() != Op::kFeatures) continue;
    return diag->Fail(Status::kUnsupported, "Vulkan: features of a decoder are not supported");
  }
  if (program.splits_rows) {
    return diag->Fail(Status::kUnsupported, "Vulkan: activations of 16 bits are not supported");
  }
  Counts counts;
  ARN_TRY(CountProgram(program, traits, &counts, diag));
  RunWords words;
  ARN_TRY(words.Plan(program, diag));
  const QuantizedParts quantized = QuantizedPartsOf(program, traits);
  const ExpertSpace experts = ExpertSpaceOf(program);
  const uint64_t features = FeaturesBytes(program);
  const uint64_t embeddings = uint64_t{program.max_rows} * EmbeddingStride(program) * sizeof(float);
  if (RangeRowsOf(program, traits.binding_bytes) == kAllRows) {
    ARN_TRY(CheckRows(program, diag));
    ARN_TRY(CheckBindings(
        program, Max(Max(quantized.bytes, experts.most_bytes()), Max(features, embeddings)), diag));
  }
  const auto add = [&](uint32_t slice, Region region, uint64_t count, uint64_t bytes) {
    ARN_ASSIGN(plan->slices[slice], layout->AddArray(region, count, bytes));
    return Status::kOk;
  };
  const uint64_t n_weights = program.weights.size() + program.ropes.size();
  ARN_TRY(add(kStateSlice, Region::kConstants, 1, sizeof(State)));
  ARN_TRY(add(kWeightsSlice, Region::kConstants, n_weights, sizeof(DeviceWeight)));
  ARN_TRY(add(kGridsSlice, Region::kConstants, counts.n_dispatches, sizeof(GridOf)));
  ARN_TRY(add(kSegmentsSlice, Region::kConstants, counts.n_segments, sizeof(Segment)));
  ARN_TRY(add(kBlocksSlice, Region::kConstants, counts.n_blocks, sizeof(Buffer)));
  ARN_TRY(add(kPipelinesSlice, Region::kConstants, counts.n_dispatches, sizeof(PipelineEntry)));
  ARN_TRY(add(kQuantizedSlice, Region::kActivations, quantized.few_at() + quantized.few_bytes, 1));
  ARN_TRY(add(kNormedSlice, Region::kActivations, NormedBytes(program), 1));
  ARN_TRY(add(kExpertsSlice, Region::kActivations, experts.bytes(), 1));
  ARN_TRY(add(kPartialsSlice, Region::kActivations, PartialsBytes(program, traits), 1));
  ARN_TRY(add(kFeaturesSlice, Region::kActivations, features, 1));
  ARN_TRY(add(kEmbeddingsSlice, Region::kActivations, embeddings, 1));
  plan->slices[kActivationsSlice] = {Region::kActivations, 0,
                                     layout->RegionBytes(Region::kActivations)};
  plan->slices[kKvSlice] = {Region::kKv, 0, layout->RegionBytes(Region::kKv)};
  BufferBytes bytes;
  bytes.activations = plan->slices[kActivationsSlice].bytes;
  bytes.kv = plan->slices[kKvSlice].bytes;
  FillBufferBytes(program, counts, words, &bytes);
  plan->device_bytes = bytes.Total();
  plan->importable_bytes = counts.file_bytes;
  return Status::kOk;
}

}  // namespace arn::vulkan

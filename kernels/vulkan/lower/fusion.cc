#include "kernels/vulkan/lower/fusion.h"

#include "kernels/contract/check.h"
#include "kernels/vulkan/device/device_weight.h"
#include "kernels/vulkan/lower/dispatch.h"
#include "kernels/vulkan/lower/lower.h"

namespace arn::vulkan {
namespace {

constexpr uint8_t kOneRow = BitOf(Mode::kOne);
constexpr uint8_t kFewModes = kOneRow | BitOf(Mode::kFew);
// Most outputs of a workgroup in any variant; of a matmul whose workgroups have at most these.
constexpr uint32_t kMostOuts = 8, kMostRotatedOuts = 65536;
// Most query heads that a workgroup attends for together, and elements of them: they take
// registers, and shared memory.
constexpr uint32_t kMostSharing = 8, kMostQueries = 512;

bool Overlap(const Slice& a, const Slice& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// True if the rows are those of the run, in vectors of four.
bool HasPlainRows(const Program& program, ValueId id) {
  const Value& value = program.values[id];
  return !value.is_pooled && value.row_factor == 1 && value.width % 4 == 0;
}

bool IsInOneDispatch(const Weight& weight) {
  WeightPlacer placer;
  return weight.rows <= Lowering::SliceRows(placer.Place(weight).row_bytes);
}

// Returns the value whose memory a matmul reads: its input, or where ActivatedRows() put that.
ValueId ReadBy(const Program& program, const Step& matmul) {
  const auto index = static_cast<uint32_t>(&matmul - program.steps.data());
  if (index < 2 || (&matmul)[-1].op() != Op::kGatedAct || (&matmul)[-1].out != matmul.in ||
      FusionOf(program, index - 2).ending != Ending::kActivation) {
    return matmul.in;
  }
  return ActivatedRows(program, (&matmul)[-2]);
}

uint8_t NormModes(const Program& program, const Step& step, const Step& next) {
  const Weight& weight = program.weights[step.Get<LinearParams>().weight];
  if (next.in != step.out || !IsWholeNorm(program, next) || !HasPlainRows(program, next.in) ||
      !HasPlainRows(program, next.out) || !IsInOneDispatch(weight)) {
    return 0;
  }
  // A few rows end one after the other: the first must not overwrite inputs of the last.
  // Integer weights have them quantised, elsewhere.
  const bool overwrites =
      !IsInteger(weight.dtype) &&
      Overlap(program.values[ReadBy(program, step)].slice, program.values[next.out].slice);
  return overwrites ? kOneRow : kFewModes;
}

// The norm of the rows with logits: in a run of one row that is the row.
uint8_t LogitsModes(const Program& program, const Step& step, const Step& next) {
  const Weight& weight = program.weights[step.Get<LinearParams>().weight];
  return program.max_logit_rows != 0 && next.in == step.out && HasPlainRows(program, next.in) &&
                 IsInOneDispatch(weight)
             ? kOneRow
             : 0;
}

uint8_t EmbedModes(const Program& program, const Step& step, const Step& next) {
  return next.in == step.out && IsWholeNorm(program, next) && HasPlainRows(program, next.in) &&
                 HasPlainRows(program, next.out)
             ? kFewModes
             : 0;
}

uint8_t QuantizeModes(const Program& program, const Step& step, const Step&) {
  // A bias takes the binding of the quantised rows.
  const bool is_bound = step.Get<AttentionParams>().relative_position_bias != kNoWeight;
  return !is_bound && FeedsIntegerMatmul(program, step) && HasPlainRows(program, step.out)
             ? kFewModes
             : 0;
}

uint8_t GateModes(const Program& program, const Step& step, const Step&) {
  return FeedsIntegerMatmul(program, step) && HasPlainRows(program, step.in) ? kFewModes : 0;
}

bool IsPlainActivation(const Step& step, const Step& next) {
  return next.in == step.out && next.Get<ActParams>().parameters == kNoWeight;
}

uint8_t ActivationModes(const Program&, const Step& step, const Step& next) {
  return IsPlainActivation(step, next) ? kAllModes : 0;
}

// True if an activation may take the place of the matmul's outputs.
bool MayActivate(const Program& program, const Step& step) {
  const auto& p = step.Get<LinearParams>();
  return !p.accumulate && IsInOneDispatch(program.weights[p.weight]);
}

uint8_t OutputActivationModes(const Program& program, const Step& step, const Step& next) {
  return IsPlainActivation(step, next) && MayActivate(program, step) &&
                 HasPlainRows(program, next.in)
             ? kAllModes
             : 0;
}

uint8_t PairActivationModes(const Program& program, const Step& step, const Step& next) {
  return next.in == step.out && ActivatedRows(program, step) != kNoValue &&
                 MayActivate(program, step) && HasPlainRows(program, next.in) &&
                 HasPlainRows(program, next.out) && !IsReadFrom(program, next.in, &next + 1)
             ? kAllModes
             : 0;
}

uint8_t RotationModes(const Program& program, const Step& step, const Step& next) {
  const auto& linear = step.Get<LinearParams>();
  const auto& p = next.Get<QkvRopeParams>();
  const Weight& weight = program.weights[linear.weight];
  const AttentionKind& kind = program.kinds[p.kind];
  const bool is_plain = kind.group != kNoGroup && !program.kv_groups[kind.group].keys_only &&
                        !program.kv_groups[kind.group].is_encoder && kind.n_kv_heads != 0 &&
                        kind.query_temperature == 0.0f && kind.qkv_clip == 0.0f;
  const uint64_t n_heads = kind.n_heads + (p.shares_kv ? 0 : 2 * uint64_t{kind.n_kv_heads});
  return next.in == step.out && is_plain && !NormsSpanHeads(program, p) &&
                 kind.head_dim % kMostOuts == 0 && weight.rows <= kMostRotatedOuts &&
                 n_heads * kind.head_dim <= weight.rows && MayActivate(program, step) &&
                 HasPlainRows(program, next.in)
             ? kFewModes
             : 0;
}

struct Rule {
  Op op, next;
  Ending ending;
  uint8_t (*modes)(const Program& program, const Step& step, const Step& next);
};
constexpr Rule kRules[] = {
    {Op::kEmbed, Op::kNorm, Ending::kNorm, EmbedModes},
    {Op::kLinear, Op::kNorm, Ending::kNorm, NormModes},
    {Op::kLinear, Op::kLogits, Ending::kNorm, LogitsModes},
    {Op::kLinear, Op::kGatedAct, Ending::kActivation, PairActivationModes},
    {Op::kLinear, Op::kAct, Ending::kActivation, OutputActivationModes},
    {Op::kLinear, Op::kQkvRope, Ending::kRotation, RotationModes},
    {Op::kAttention, Op::kLinear, Ending::kQuantize, QuantizeModes},
    {Op::kGate, Op::kLinear, Ending::kQuantize, GateModes},
    {Op::kConv, Op::kAct, Ending::kActivation, ActivationModes},
};

}  // namespace

Fusion FusionOf(const Program& program, uint32_t step) {
  if (step < program.n_encoder_steps) return {};
  const Step& first = program.steps[step];
  const Step* next = NextOf(program, first);
  if (next == nullptr) return {};
  for (const Rule& rule : kRules) {
    if (first.op() != rule.op || next->op() != rule.next) continue;
    const uint8_t modes = rule.modes(program, first, *next);
    if (modes != 0) return {rule.ending, modes};
  }
  return {};
}

const Step* NextOf(const Program& program, const Step& step) {
  const Step* const end = program.steps.data() + program.steps.size();
  const Step* next = &step + 1;
  if (step.op() == Op::kEmbed) {
    while (next != end && next->op() == Op::kRopeAngles) ++next;
  }
  return next != end ? next : nullptr;
}

bool IsReadFrom(const Program& program, ValueId id, const Step* first) {
  const auto owner = [&](ValueId v) {
    return v == kNoValue || program.values[v].view_of == kNoValue ? v : program.values[v].view_of;
  };
  const ValueId bytes = owner(id);
  for (const Step* step = first; step != program.steps.data() + program.steps.size(); ++step) {
    const StepOperands operands = OperandsOf(*step);
    if (owner(step->in) == bytes) return true;
    for (uint32_t i = 0; i < operands.n_values; ++i) {
      if (owner(operands.values[i]) == bytes) return true;
    }
    if (step->out == id) return operands.accumulates;
  }
  // True if the caller reads it.
  return owner(program.final_rows) == bytes || owner(ResultOf(program)) == bytes;
}

bool IsAttended(const Program& program, const Step& matmul, uint32_t positions) {
  const auto index = static_cast<uint32_t>(&matmul - program.steps.data());
  if (index + 3 >= program.steps.size() || FusionOf(program, index).ending != Ending::kRotation ||
      FusionOf(program, index + 2).ending != Ending::kQuantize) {
    return false;
  }
  const auto& rope = (&matmul)[1].Get<QkvRopeParams>();
  const Step& attention = (&matmul)[2];
  const auto& p = attention.Get<AttentionParams>();
  const AttentionKind& kind = program.kinds[p.kind];
  const KvGroup& group = program.kv_groups[kind.group];
  // The head's own keys and values, in active pages. Bindings of norms and sinks are taken.
  const bool has_pages = p.kind == rope.kind && p.group_layer == rope.group_layer &&
                         !rope.shares_kv && !kind.is_cross_attention &&
                         group.quantised.n_pages == 0;
  const bool is_bound = rope.v_norm != kNoWeight || p.sinks != kNoWeight;
  const uint32_t n_sharing = kind.n_heads / kind.n_kv_heads;
  const auto sees_all = [&](uint32_t window) { return window == 0 || window >= positions; };
  return IsInteger(program.weights[matmul.Get<LinearParams>().weight].dtype) && has_pages &&
         !is_bound && sees_all(kind.window) && sees_all(kind.chunk) && n_sharing <= kMostSharing &&
         n_sharing * kind.head_dim <= kMostQueries &&
         // Outputs take the place of queries, and nobody reads them but the next matmul.
         attention.in == matmul.out && !IsReadFrom(program, attention.in, &attention + 1) &&
         !IsReadFrom(program, attention.out, &attention + 2);
}

ValueId ActivatedRows(const Program& program, const Step& matmul) {
  const Step* act = &matmul + 1;
  // Workgroups write while others read the matmul's input: integer weights have it quantised,
  // elsewhere.
  if (IsInteger(program.weights[matmul.Get<LinearParams>().weight].dtype) ||
      !Overlap(program.values[matmul.in].slice, program.values[act->out].slice)) {
    return act->out;
  }
  const Step* reader = act + 1;
  const bool is_alone =
      reader != program.steps.data() + program.steps.size() && reader->op() == Op::kLinear &&
      reader->in == act->out && !IsReadFrom(program, act->out, reader + 1) &&
      !Overlap(program.values[matmul.out].slice, program.values[reader->out].slice);
  return is_alone ? matmul.out : kNoValue;
}

bool FeedsIntegerMatmul(const Program& program, const Step& step) {
  const Step* next = &step + 1;
  if (next == program.steps.data() + program.steps.size()) return false;
  const auto* linear = next->If<LinearParams>();
  const ValueId written = step.out != kNoValue ? step.out : step.in;
  return linear != nullptr && next->in == written &&
         IsInteger(program.weights[linear->weight].dtype) &&
         program.values[next->out].row_factor == program.values[written].row_factor &&
         RowFactorOf(program, step) == program.values[written].row_factor;
}

bool IsWholeNorm(const Program& program, const Step& norm) {
  const auto& p = norm.Get<NormParams>();
  return p.group == 0 && program.weights[p.weight].cols == program.values[norm.in].width;
}

}  // namespace arn::vulkan

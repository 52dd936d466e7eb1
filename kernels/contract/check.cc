#include "kernels/contract/check.h"

#include <cmath>

#include "kernels/contract/check_encoder.h"
#include "kernels/contract/check_state.h"
#include "kernels/contract/kv_page.h"
#include "kernels/contract/kv_type.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr uint32_t kMaxPageTokens = 4096;

class Checker {
 public:
  Checker(const Program& program, Diag* diag) : program_(program), diag_(diag) {}

  Status Run() {
    if (program_.max_rows == 0 || program_.max_logit_rows > program_.max_rows) {
      return diag_->Fail(Status::kBadArgument, "program: max_rows %u, max_logit_rows %u",
                         program_.max_rows, program_.max_logit_rows);
    }
    if (program_.n_encoder_steps > program_.steps.size()) {
      return diag_->Fail(Status::kBadArgument, "program: %u encoder steps of %zu",
                         program_.n_encoder_steps, program_.steps.size());
    }
    for (uint32_t i = 0; i < program_.kinds.size(); ++i) ARN_TRY(CheckKind(i));
    for (uint32_t i = 0; i < program_.steps.size(); ++i) {
      index_ = i;
      ARN_TRY(CheckStep(program_.steps[i]));
      ARN_TRY(CheckEncoderValues(program_, program_.steps[i], i, diag_));
    }
    return Status::kOk;
  }

 private:
  Status ValueError(const Step& step, const char* what, uint32_t found, uint32_t expected) {
    return diag_->Fail(Status::kBadArgument,
                       "program step %u (%s, layer %u): %s is %u, expected %u", index_,
                       OpName(step.op), step.layer, what, found, expected);
  }

  static bool HasValidQuantisedPages(const KvGroup& group) {
    if (group.quantised.n_pages == 0) return group.active.n_pages < kQuantisedPage;
    return IsQuantisedPageBits(group.quantised_k_bits) &&
           IsQuantisedPageBits(group.quantised_v_bits) && group.group_size != 0 &&
           group.page_tokens % group.group_size == 0 && group.active.n_pages < kQuantisedPage &&
           group.quantised.n_pages < kQuantisedPage;
  }

  // True if pages of this many tokens can hold the positions the kind attends to.
  static bool PagesFit(const AttentionKind& kind, const KvGroup& group) {
    if (kind.is_cross_attention != group.is_encoder) return false;
    if (group.is_encoder) return group.page_tokens != 0 && group.quantised.n_pages == 0;
    return IsPowerOfTwo(group.page_tokens) && group.page_tokens <= kMaxPageTokens;
  }

  Status CheckKind(uint32_t index) {
    const AttentionKind& kind = program_.kinds[index];
    if (kind.n_heads == 0) return Status::kOk;
    if ((kind.group >= program_.kv_groups.size() && kind.group != kNoGroup) ||
        kind.n_kv_heads == 0 || kind.n_heads % kind.n_kv_heads != 0 || kind.head_dim == 0 ||
        kind.head_dim > kMaxHeadDim) {
      return diag_->Fail(Status::kUnsupported,
                         "attention kind %u: %u heads, %u kv heads, head_dim %u, group %u of %zu",
                         index, kind.n_heads, kind.n_kv_heads, kind.head_dim, kind.group,
                         program_.kv_groups.size());
    }
    if (kind.query_temperature != 0.0f && kind.query_temperature_step == 0) {
      return diag_->Fail(Status::kBadArgument, "attention kind %u: query_temperature_step is 0",
                         index);
    }
    if (kind.group == kNoGroup) return Status::kOk;
    const KvGroup& group = program_.kv_groups[kind.group];
    if (!IsActivePageType(group.k_type) || !IsActivePageType(group.v_type) ||
        !HasValidQuantisedPages(group) || group.n_kv_heads != kind.n_kv_heads ||
        group.head_dim != kind.head_dim || !PagesFit(kind, group)) {
      return diag_->Fail(
          Status::kUnsupported,
          "KV group %u: types %s and %s, %u kv heads, head_dim %u, %u tokens a page do not fit "
          "attention kind %u",
          kind.group, DTypeName(group.k_type), DTypeName(group.v_type), group.n_kv_heads,
          group.head_dim, group.page_tokens, index);
    }
    return Status::kOk;
  }

  Status CheckValue(const Step& step, ValueId id, const char* role, uint32_t width) {
    if (id >= program_.values.size()) return ValueError(step, role, id, 0);
    const Value& value = program_.values[id];
    if (value.width != width) return ValueError(step, role, value.width, width);
    return Status::kOk;
  }

  Status CheckMatrix(const Step& step, WeightId id, uint32_t rows, uint32_t cols) {
    if (id >= program_.weights.size()) return ValueError(step, "weight", id, 0);
    const Weight& weight = program_.weights[id];
    if (weight.is_vector) return ValueError(step, "weight is a vector", 1, 0);
    if (weight.rows != rows) return ValueError(step, "weight rows", weight.rows, rows);
    if (weight.cols != cols) return ValueError(step, "weight columns", weight.cols, cols);
    return Status::kOk;
  }

  Status CheckVector(const Step& step, WeightId id, uint32_t size) {
    if (id >= program_.weights.size()) return ValueError(step, "norm weight", id, 0);
    const Weight& weight = program_.weights[id];
    if (weight.dtype != DType::kF32 || weight.layout.order != WeightOrder::kRows ||
        weight.rows != 1) {
      return diag_->Fail(Status::kUnsupported,
                         "program step %u (%s, layer %u): norm weight %u is not an f32 vector",
                         index_, OpName(step.op), step.layer, id);
    }
    if (weight.cols != size) return ValueError(step, "norm weight's size", weight.cols, size);
    return Status::kOk;
  }

  uint32_t Width(ValueId id) const {
    return id < program_.values.size() ? program_.values[id].width : 0;
  }

  Status CheckAttentionStep(const Step& step) {
    if (step.kind >= program_.kinds.size()) return ValueError(step, "kind", step.kind, 0);
    const AttentionKind& kind = program_.kinds[step.kind];
    if (kind.n_heads == 0) return ValueError(step, "heads", 0, 1);
    if (kind.group == kNoGroup) return ValueError(step, "group", kind.group, 0);
    if (kind.is_cross_attention && !step.shares_kv) return ValueError(step, "shared keys", 0, 1);
    const KvGroup& group = program_.kv_groups[kind.group];
    if (step.group_layer >= group.n_layers) {
      return ValueError(step, "group_layer", step.group_layer, group.n_layers);
    }
    const uint32_t kv_heads = step.shares_kv ? 0 : 2 * kind.n_kv_heads;
    const uint32_t qkv_width = (kind.n_heads + kv_heads) * kind.head_dim;
    ARN_TRY(CheckValue(step, step.in, "input width", qkv_width));
    if (step.op == Op::kAttention) {
      if (step.sinks != kNoWeight) ARN_TRY(CheckVector(step, step.sinks, kind.n_heads));
      ARN_TRY(CheckRelativePositionBias(step, kind));
      return CheckValue(step, step.out, "output width", kind.n_heads * kind.head_dim);
    }
    if (kind.rope != kNoRope) {
      if (kind.rope >= program_.ropes.size()) return ValueError(step, "rope", kind.rope, 0);
      const RopeKind& rope = program_.ropes[kind.rope];
      if (rope.rotary_dim > kind.head_dim) {
        return ValueError(step, "rotary_dim", rope.rotary_dim, kind.head_dim);
      }
      ARN_TRY(CheckValue(step, step.angles, "angles width", rope.rotary_dim));
    }
    for (WeightId id : {step.q_norm, step.k_norm}) {
      if (id != kNoWeight && id >= program_.weights.size()) {
        return ValueError(step, "norm weight", id, 0);
      }
    }
    const bool spans_heads = NormsSpanHeads(program_, step);
    const auto check = [&](WeightId id, uint32_t n_heads) {
      if (id == kNoWeight) return Status::kOk;
      return CheckVector(step, id, spans_heads ? n_heads * kind.head_dim : kind.head_dim);
    };
    ARN_TRY(check(step.q_norm, kind.n_heads));
    return check(step.k_norm, kind.n_kv_heads);
  }

  Status CheckRelativePositionBias(const Step& step, const AttentionKind& kind) {
    if (step.relative_position_bias == kNoWeight) return Status::kOk;
    if (step.relative_position_bias >= program_.weights.size()) {
      return ValueError(step, "relative_position_bias", step.relative_position_bias, 0);
    }
    const Weight& bias = program_.weights[step.relative_position_bias];
    if (bias.is_vector || bias.dtype != DType::kF32 || bias.layout.order != WeightOrder::kRows ||
        bias.rows == 0) {
      return ValueError(step, "relative_position_bias' rows", bias.rows, 1);
    }
    const bool both_ways = step.op == Op::kSelfAttention;
    if (both_ways && bias.rows % 2 == 0) {
      return ValueError(step, "distances", bias.rows, bias.rows + 1);
    }
    return bias.cols == kind.n_heads
               ? Status::kOk
               : ValueError(step, "relative_position_bias' heads", bias.cols, kind.n_heads);
  }

  Status CheckNorm(const Step& step, WeightId weight, uint32_t width) {
    ARN_TRY(CheckVector(step, weight, width));
    return step.norm_kind == NormKind::kLayer ? CheckVector(step, step.bias, width) : Status::kOk;
  }

  Status CheckActivation(const Step& step) {
    const auto activation = static_cast<uint32_t>(step.activation);
    const bool needs_gate = step.activation == Activation::kClampedSwiglu;
    const bool has_limit = std::isfinite(step.activation_limit) && step.activation_limit > 0.0f;
    if (activation >= kActivationCount || (needs_gate && (step.op == Op::kAct || !has_limit))) {
      return ValueError(step, "activation", activation, 0);
    }
    return Status::kOk;
  }

  Status CheckEmbed(const Step& step) {
    ARN_TRY(CheckMatrix(step, step.weight, program_.vocab, Width(step.out)));
    if (step.positions == kNoWeight) return Status::kOk;
    if (step.positions >= program_.weights.size()) {
      return ValueError(step, "positions", step.positions, 0);
    }
    const Weight& positions = program_.weights[step.positions];
    if (positions.rows < program_.max_context) {
      return ValueError(step, "positions", positions.rows, program_.max_context);
    }
    if (positions.dtype != DType::kF32 || positions.layout.order != WeightOrder::kRows) {
      return ValueError(step, "positions' dtype", static_cast<uint32_t>(positions.dtype),
                        static_cast<uint32_t>(DType::kF32));
    }
    return CheckMatrix(step, step.positions, positions.rows, Width(step.out));
  }

  Status CheckRoute(const Step& step) {
    if (step.n_chosen == 0 || step.n_chosen > step.n_experts) {
      return ValueError(step, "experts of a token", step.n_chosen, step.n_experts);
    }
    ARN_TRY(CheckValue(step, step.in, "input width", step.n_experts));
    return CheckValue(step, step.out, "output width", 2u * step.n_chosen);
  }

  Status CheckExperts(const Step& step) {
    ARN_TRY(CheckValue(step, step.topk, "top-k width", 2u * step.n_chosen));
    ARN_TRY(CheckActivation(step));
    if (!step.accumulate) return ValueError(step, "accumulate", 0, 1);
    const uint32_t width = Width(step.in), ffn = Width(static_cast<ValueId>(step.scratch + 2));
    ARN_TRY(CheckValue(step, step.scratch, "gathered width", width));
    ARN_TRY(CheckValue(step, static_cast<ValueId>(step.scratch + 1), "gate_up width", 2 * ffn));
    ARN_TRY(
        CheckValue(step, static_cast<ValueId>(step.scratch + 3), "result width", Width(step.out)));
    for (uint32_t e = 0; e < step.n_experts; ++e) {
      ARN_TRY(CheckMatrix(step, step.weight + 2 * e, 2 * ffn, width));
      ARN_TRY(CheckMatrix(step, step.weight + 2 * e + 1, Width(step.out), ffn));
    }
    return Status::kOk;
  }

  Status CheckStep(const Step& step) {
    switch (step.op) {
      case Op::kEmbed: return CheckEmbed(step);
      case Op::kRopeAngles: {
        if (step.rope >= program_.ropes.size()) return ValueError(step, "rope", step.rope, 0);
        const RopeKind& rope = program_.ropes[step.rope];
        if (rope.rotary_dim % 2 != 0 || rope.inv_freq.size() != rope.rotary_dim / 2) {
          return ValueError(step, "rope frequencies", static_cast<uint32_t>(rope.inv_freq.size()),
                            rope.rotary_dim / 2);
        }
        return CheckValue(step, step.out, "output width", rope.rotary_dim);
      }
      case Op::kNorm:
        ARN_TRY(CheckNorm(step, step.weight, Width(step.in)));
        return CheckValue(step, step.out, "output width", Width(step.in));
      case Op::kLinear:
        if (step.in == step.out) return ValueError(step, "output", step.out, kNoValue);
        return CheckMatrix(step, step.weight, Width(step.out), Width(step.in));
      case Op::kQkvRope:
      case Op::kAttention: return CheckAttentionStep(step);
      case Op::kGatedAct:
        ARN_TRY(CheckActivation(step));
        return CheckValue(step, step.in, "input width", 2 * Width(step.out));
      case Op::kAct:
        ARN_TRY(CheckActivation(step));
        return CheckValue(step, step.in, "input width", Width(step.in));
      case Op::kRoute: return CheckRoute(step);
      case Op::kExperts: return CheckExperts(step);
      case Op::kConv:
      case Op::kScan: return CheckStateStep(program_, step, index_, diag_);
      case Op::kSelfAttention:
        ARN_TRY(CheckEncoderStep(program_, step, index_, diag_));
        return CheckRelativePositionBias(step, program_.kinds[step.kind]);
      case Op::kFeatures:
      case Op::kIm2col:
      case Op::kAddPositions:
      case Op::kStoreKv: return CheckEncoderStep(program_, step, index_, diag_);
      case Op::kLogits: {
        const uint64_t need = uint64_t{program_.max_logit_rows} * program_.vocab * sizeof(float);
        if (program_.logits.bytes < need) {
          return diag_->Fail(Status::kBadArgument, "program: logits have %llu bytes, expected %llu",
                             static_cast<unsigned long long>(program_.logits.bytes),
                             static_cast<unsigned long long>(need));
        }
        ARN_TRY(CheckNorm(step, step.norm, Width(step.in)));
        return CheckMatrix(step, step.weight, program_.vocab, Width(step.in));
      }
    }
    return diag_->Fail(Status::kUnsupported, "program step %u: unknown op %u", index_,
                       static_cast<uint32_t>(step.op));
  }

  const Program& program_;
  Diag* diag_;
  uint32_t index_ = 0;
};

// Checks the pages of `group` that rows [first_position, end) of a sequence read or write.
Status CheckTable(const Program& program, uint32_t group_index, const PageTable& table,
                  uint32_t first_position, uint32_t end, Diag* diag) {
  const KvGroup& group = program.kv_groups[group_index];
  uint32_t first_read = first_position;
  for (const AttentionKind& kind : program.kinds) {
    if (kind.n_heads != 0 && kind.group == group_index) {
      first_read = Min(first_read, FirstSeen(first_position, kind, group, table));
    }
  }
  const uint32_t first_page = first_read / group.page_tokens;
  const uint32_t last_page = (end - 1) / group.page_tokens;
  const uint32_t first_written = first_position / group.page_tokens;
  if (table.pages == nullptr || table.first_page > first_page ||
      last_page - table.first_page >= table.n_pages) {
    return diag->Fail(Status::kInternal, "KV group %u: pages %u..%u are not all in the table",
                      group_index, first_page, last_page);
  }
  for (uint32_t p = first_page; p <= last_page; ++p) {
    const uint32_t page = table.pages[p - table.first_page];
    const bool quantised = (page & kQuantisedPage) != 0;
    const uint32_t n_pages = quantised ? group.quantised.n_pages : group.active.n_pages;
    if ((page & ~kQuantisedPage) >= n_pages || (quantised && p >= first_written)) {
      return diag->Fail(Status::kInternal, "KV group %u: page %#x of a pool of %u at %u",
                        group_index, page, n_pages, p);
    }
  }
  return Status::kOk;
}

Status CheckTokens(const Program& program, Span<const int32_t> tokens, Diag* diag) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || static_cast<uint32_t>(tokens[i]) >= program.vocab) {
      return diag->Fail(Status::kBadToken, "token %zu is %d; the vocabulary has %u", i, tokens[i],
                        program.vocab);
    }
  }
  return Status::kOk;
}

}  // namespace

Status CheckProgram(const Program& program, Diag* diag) { return Checker(program, diag).Run(); }

Status CheckRun(const Program& program, const RunArgs& args, uint32_t* n_logit_rows, Diag* diag) {
  *n_logit_rows = 0;
  ARN_TRY(CheckTokens(program, args.tokens, diag));
  if (args.is_encoder) return CheckEncoderRun(program, args, diag);
  const size_t n_rows = args.tokens.size();
  if ((n_rows == 0 && args.edits.empty()) || n_rows > program.max_rows) {
    return diag->Fail(Status::kBadArgument, "a run of %zu tokens, expected 1 to %u", n_rows,
                      program.max_rows);
  }
  size_t next_row = 0;
  for (const SequenceRows& s : args.sequences) {
    const uint64_t end = uint64_t{s.first_position} + s.n_rows;
    if (s.first_row != next_row || s.n_rows == 0 || s.n_rows > n_rows - next_row) {
      return diag->Fail(Status::kBadArgument, "sequences do not cover the %zu rows in order",
                        n_rows);
    }
    if (end > program.max_context) {
      return diag->Fail(Status::kContextFull, "position %llu; the context has %u",
                        static_cast<unsigned long long>(end - 1), program.max_context);
    }
    next_row += s.n_rows;
    for (uint32_t g = 0; g < program.kv_groups.size(); ++g) {
      if (program.kv_groups[g].is_encoder) {
        ARN_TRY(CheckEncoderTable(program, g, s, diag));
        continue;
      }
      if (program.kv_groups[g].state_floats != 0) {
        ARN_TRY(CheckStateTable(program, g, s, diag));
        continue;
      }
      ARN_TRY(
          CheckTable(program, g, s.tables[g], s.first_position, static_cast<uint32_t>(end), diag));
    }
  }
  if (next_row != n_rows) {
    return diag->Fail(Status::kBadArgument, "sequences cover %zu of %zu rows", next_row, n_rows);
  }
  uint32_t wanted = 0;
  ForEachLogitRow(args, [&](uint32_t) { ++wanted; });
  if (wanted > program.max_logit_rows) {
    return diag->Fail(Status::kBadArgument, "%u rows of logits; there is room for %u", wanted,
                      program.max_logit_rows);
  }
  if (args.best_id != nullptr && wanted != 1) {
    return diag->Fail(Status::kBadArgument, "best_id with %u rows of logits, expected 1", wanted);
  }
  *n_logit_rows = wanted;
  return Status::kOk;
}

}  // namespace arn

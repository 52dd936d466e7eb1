#include "kernels/contract/check.h"

#include "kernels/contract/check_encoder.h"
#include "kernels/contract/check_state.h"
#include "kernels/contract/kv_page.h"
#include "kernels/contract/kv_type.h"
#include "kernels/contract/ops/op_contract.h"
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
    for (uint32_t i = 0; i < program_.steps.size(); ++i) ARN_TRY(CheckStep(i));
    return Status::kOk;
  }

 private:
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

  Status CheckStep(uint32_t index) {
    const Step& step = program_.steps[index];
    if (static_cast<uint32_t>(step.op()) >= kOpCount) {
      return diag_->Fail(Status::kUnsupported, "program step %u: unknown op %u", index,
                         static_cast<uint32_t>(step.op()));
    }
    const StepCheck check(program_, step, index, diag_);
    const OpContract& op = ContractOf(step.op());
    ARN_TRY(CheckPlace(op, check, index));
    ARN_TRY(CheckValues(op, check));
    return op.check(check);
  }

  Status CheckPlace(const OpContract& op, const StepCheck& check, uint32_t index) {
    if (check.is_encoder() && (op.traits & kInEncoder) == 0) {
      return check.UnsupportedError("step", "is not possible in an encoder");
    }
    if (!check.is_encoder() && (op.traits & kInDecoder) == 0) {
      return check.ValueError("place in the program", index, program_.n_encoder_steps);
    }
    return Status::kOk;
  }

  // Checks that in and out are there if the op has them, that encoder steps and decoder steps share
  // no values, and that row counts match.
  Status CheckValues(const OpContract& op, const StepCheck& check) {
    const Step& step = check.step();
    const struct {
      const char* role;
      ValueId id;
      bool has;
    } ends[] = {{"input", step.in, (op.traits & kHasIn) != 0},
                {"output", step.out, (op.traits & kHasOut) != 0}};
    uint32_t factor = 0;
    for (const auto& end : ends) {
      if (end.has) ARN_TRY(check.Exists(end.role, end.id));
      if (!end.has && end.id != kNoValue) return check.ValueError(end.role, end.id, kNoValue);
      if (end.has) ARN_TRY(CheckRows(op, check, end.id, &factor));
    }
    const StepOperands operands = OperandsOf(step);
    for (uint32_t i = 0; i < operands.n_values; ++i) {
      ARN_TRY(check.Exists("value", operands.values[i]));
      ARN_TRY(CheckRows(op, check, operands.values[i], &factor));
    }
    return Status::kOk;
  }

  // factor: row_factor of the step's values so far, with more_rows above it; 0: none yet.
  Status CheckRows(const OpContract& op, const StepCheck& check, ValueId id, uint32_t* factor) {
    const Value& value = program_.values[id];
    if (value.is_encoder != check.is_encoder()) {
      return check.ValueError("value's part", id, check.is_encoder() ? 1 : 0);
    }
    const bool may_be_more = check.is_encoder() && (op.traits & kTakesFactors) != 0;
    const uint32_t rows = uint32_t{value.more_rows} << 16 | value.row_factor;
    if (value.row_factor == 0 || (!may_be_more && rows != 1)) {
      return check.ValueError("rows' factor", rows, 1);
    }
    if (*factor != 0 && rows != *factor && (op.traits & kChangesFactor) == 0) {
      return check.ValueError("rows' factor", rows, *factor);
    }
    if (value.is_pooled && (!value.is_encoder || (op.traits & kTakesPooled) == 0)) {
      return check.UnsupportedError("pooled rows", "are not possible here");
    }
    if (op.op != Op::kPool && value.is_pooled != IsPooled(program_, check.step())) {
      return check.ValueError("pooled rows", value.is_pooled ? 1 : 0, value.is_pooled ? 0 : 1);
    }
    *factor = rows;
    return Status::kOk;
  }

  const Program& program_;
  Diag* diag_;
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

// Returns how many rows RunArgs::embeddings has.
uint64_t EmbeddingRows(const Program& program, const RunArgs& args) {
  if (args.is_encoder || args.embeddings.empty()) return 0;
  for (const Step& step : StepsOf(program, false)) {
    const auto* embed = step.If<EmbedParams>();
    if (embed == nullptr || embed->embedding_stride == 0) continue;
    return args.embeddings.size() / embed->embedding_stride;
  }
  return 0;
}

Status CheckTokens(const Program& program, const RunArgs& args, Diag* diag) {
  const uint64_t n_embeddings = EmbeddingRows(program, args);
  for (size_t i = 0; i < args.tokens.size(); ++i) {
    const int64_t id = args.tokens[i];
    if (id >= 0 ? id < program.vocab : static_cast<uint64_t>(-1 - id) < n_embeddings) continue;
    return diag->Fail(Status::kBadToken,
                      "token %zu is %d; the vocabulary has %u, and the run has %llu embeddings", i,
                      args.tokens[i], program.vocab, static_cast<unsigned long long>(n_embeddings));
  }
  return Status::kOk;
}

}  // namespace

Status CheckProgram(const Program& program, Diag* diag) { return Checker(program, diag).Run(); }

namespace {

Status CheckAxisPositions(const RunArgs& args, Diag* diag) {
  if (args.axis_positions.empty()) return Status::kOk;
  uint64_t n_rows = 0;
  for (const SequenceRows& s : args.sequences) n_rows += s.n_rows;
  if (args.axis_positions.size() == n_rows * kRopeAxes) return Status::kOk;
  return diag->Fail(Status::kBadArgument, "%zu positions on axes of %llu rows, expected %u a row",
                    args.axis_positions.size(), static_cast<unsigned long long>(n_rows), kRopeAxes);
}

// Checks that a decoder that reads features has a row of them for each token.
Status CheckFeatures(const Program& program, const RunArgs& args, Diag* diag) {
  uint64_t width = 0;
  for (const Step& step : StepsOf(program, false)) {
    if (step.op() == Op::kFeatures) width = program.values[step.out].width;
  }
  if (args.features.size() == width * args.tokens.size()) return Status::kOk;
  return diag->Fail(Status::kBadArgument, "%zu features of %zu tokens, expected %llu a token",
                    args.features.size(), args.tokens.size(),
                    static_cast<unsigned long long>(width));
}

Status CheckMask(const Program& program, const RunArgs& args, Diag* diag) {
  if (args.mask == nullptr) return Status::kOk;
  if (args.sequences.size() != 1) {
    return diag->Fail(Status::kBadArgument, "a mask with %zu sequences, expected 1",
                      args.sequences.size());
  }
  const uint32_t end = args.sequences[0].first_position + args.sequences[0].n_rows;
  if (args.mask->first > end) {
    return diag->Fail(Status::kBadArgument, "a mask from position %u of %u", args.mask->first, end);
  }
  for (uint32_t row = 0; row < args.tokens.size(); ++row) {
    const uint32_t place = args.sequences[0].first_position + row;
    if (const uint32_t p = TextPosition(args, row, place); p >= program.max_context) {
      return diag->Fail(Status::kBadArgument,
                        "row %u of a mask has position %u; the context has %u", row, p,
                        program.max_context);
    }
    const VisibleCells visible = VisibleFrom(args, args.sequences[0], row);
    if (visible.cells != nullptr && !visible.Has(0, place)) {
      return diag->Fail(Status::kBadArgument, "row %u of a mask does not attend to itself", row);
    }
  }
  return Status::kOk;
}

}  // namespace

Status CheckRun(const Program& program, const RunArgs& args, uint32_t* n_logit_rows, Diag* diag) {
  *n_logit_rows = 0;
  ARN_TRY(CheckTokens(program, args, diag));
  ARN_TRY(CheckAxisPositions(args, diag));
  if (args.is_encoder) return CheckEncoderRun(program, args, diag);
  const size_t n_rows = args.tokens.size();
  if ((n_rows == 0 && args.edits.empty()) || n_rows > program.max_rows) {
    return diag->Fail(Status::kBadArgument, "a run of %zu tokens, expected 1 to %u", n_rows,
                      program.max_rows);
  }
  ARN_TRY(CheckFeatures(program, args, diag));
  size_t next_row = 0;
  for (const SequenceRows& s : args.sequences) {
    const uint64_t end = uint64_t{s.first_position} + s.n_rows;
    if (s.first_row != next_row || s.n_rows == 0 || s.n_rows > n_rows - next_row) {
      return diag->Fail(Status::kBadArgument, "sequences do not cover the %zu rows in order",
                        n_rows);
    }
    if (s.more_logit_rows >= s.n_rows) {
      return diag->Fail(Status::kBadArgument, "%u further rows of logits, a sequence has %u rows",
                        s.more_logit_rows, s.n_rows);
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
  ARN_TRY(CheckMask(program, args, diag));
  uint32_t wanted = 0;
  ForEachLogitRow(args, [&](uint32_t) { ++wanted; });
  if (wanted > program.max_logit_rows) {
    return diag->Fail(Status::kBadArgument, "%u rows of logits; there is room for %u", wanted,
                      program.max_logit_rows);
  }
  if (args.best_id != nullptr && wanted != 1) {
    return diag->Fail(Status::kBadArgument, "best_id with %u rows of logits, expected 1", wanted);
  }
  if (args.may_lose_logits && wanted != 1) {
    return diag->Fail(Status::kBadArgument, "may_lose_logits with %u rows of logits, expected 1",
                      wanted);
  }
  *n_logit_rows = wanted;
  return Status::kOk;
}

}  // namespace arn

#include "kernels/contract/step_work.h"

#include "kernels/contract/check.h"
#include "kernels/contract/kv_page.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

bool IsInteger(DType type) { return type == DType::kInt8 || type == DType::kInt4; }

void AddOps(uint64_t ops, DType type, StepWork* work) {
  (IsInteger(type) ? work->integer_ops : work->float_ops) += ops;
}

// Returns the rows of the step's output, or of the value it works on in place.
uint64_t RowsOf(const Program& program, const Step& step, const RunArgs& args) {
  const ValueId shape = step.out != kNoValue ? step.out : step.in;
  return uint64_t{RunRows(args)} * (shape == kNoValue ? 1 : program.values[shape].row_factor);
}

uint64_t BytesOf(const Program& program, WeightId id) {
  return id == kNoWeight ? 0 : program.weights[id].bytes;
}

void AddMatmul(const Weight& weight, uint64_t rows, StepWork* work) {
  AddOps(2 * rows * weight.rows * weight.cols, weight.dtype, work);
}

// Returns the number of sequences that continue from a state.
uint64_t SequencesUnderWay(const RunArgs& args) {
  uint64_t n = 0;
  for (const SequenceRows& s : args.sequences) n += s.first_position != 0 ? 1 : 0;
  return n;
}

uint64_t LogitRowsOf(const RunArgs& args) {
  uint64_t n = 0;
  ForEachLogitRow(args, [&](uint32_t) { ++n; });
  return n;
}

// Bytes of n tokens of one layer in a page.
uint64_t TokenBytes(const KvGroup& group, const KvPages& pages, uint64_t n) {
  return n * pages.layer_bytes / group.page_tokens;
}

// Bytes of positions [first, end), each page in its stored format.
uint64_t BytesOfPositions(const KvGroup& group, const PageTable& table, uint32_t first,
                          uint32_t end) {
  uint64_t bytes = 0;
  for (uint32_t p = first; p < end;) {
    const uint32_t n = Min(group.page_tokens - p % group.page_tokens, end - p);
    bytes += TokenBytes(group, group.pages(KindOfPage(KvPageOf(group, table, p))), n);
    p += n;
  }
  return bytes;
}

// `pairs`: (query, visible key) pairs, with one multiply-add per element for q.k and one for p.v.
void AddAttention(const AttentionKind& kind, DType type, uint64_t pairs, StepWork* work) {
  AddOps(4 * pairs * kind.n_heads * kind.head_dim, type, work);
}

void AddPagedAttention(const Program& program, const AttentionKind& kind, const RunArgs& args,
                       StepWork* work) {
  const KvGroup& group = program.kv_groups[kind.group];
  for (const SequenceRows& s : args.sequences) {
    if (s.n_rows == 0) continue;
    if (kind.is_cross_attention) {
      work->kv_bytes += TokenBytes(group, group.active, s.encoder_rows);
      AddAttention(kind, group.k_type, uint64_t{s.n_rows} * s.encoder_rows, work);
      continue;
    }
    const PageTable& table = s.tables[kind.group];
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < s.n_rows; ++i) {
      const uint32_t position = s.first_position + i;
      pairs += position + 1 - FirstSeen(position, kind, group, table);
    }
    AddAttention(kind, group.k_type, pairs, work);
    // The first row sees furthest back.
    work->kv_bytes += BytesOfPositions(
        group, table, FirstSeen(s.first_position, kind, group, table), s.first_position + s.n_rows);
  }
}

}  // namespace

StepWork& operator+=(StepWork& sum, const StepWork& work) {
  sum.weight_bytes += work.weight_bytes;
  sum.kv_bytes += work.kv_bytes;
  sum.integer_ops += work.integer_ops;
  sum.float_ops += work.float_ops;
  return sum;
}

StepWork WorkOf(const Program& program, const Step& step, const RunArgs& args) {
  StepWork work;
  const uint64_t rows = RowsOf(program, step, args);
  if (rows == 0) return work;
  for (WeightId id : {step.norm, step.bias, step.q_norm, step.k_norm, step.skip, step.sinks,
                      step.relative_position_bias}) {
    work.weight_bytes += BytesOf(program, id);
  }
  const Weight* weight = step.weight == kNoWeight ? nullptr : &program.weights[step.weight];
  switch (step.op) {
    case Op::kEmbed:
      work.weight_bytes += rows * weight->bytes / weight->rows;
      if (step.positions != kNoWeight) {
        work.weight_bytes += rows * program.values[step.out].width * sizeof(float);
      }
      break;
    case Op::kAddPositions:
      work.weight_bytes += rows * program.values[step.in].width * sizeof(float);
      break;
    case Op::kLinear:
      work.weight_bytes += weight->bytes;
      AddMatmul(*weight, rows, &work);
      break;
    case Op::kLogits: {
      const uint64_t n = LogitRowsOf(args);
      if (n == 0) return StepWork();
      work.weight_bytes += weight->bytes;
      AddMatmul(*weight, n, &work);
      break;
    }
    case Op::kExperts: {
      // The two matrices have the same shapes in all experts.
      const uint64_t chosen = rows * step.n_chosen;
      const uint64_t used = Min<uint64_t>(step.n_experts, chosen);
      for (const Weight* w : {weight, weight + 1}) {
        work.weight_bytes += used * w->bytes;
        AddMatmul(*w, chosen, &work);
      }
      break;
    }
    case Op::kAttention: AddPagedAttention(program, program.kinds[step.kind], args, &work); break;
    case Op::kSelfAttention:
      AddAttention(program.kinds[step.kind], DType::kF32, rows * rows, &work);
      break;
    case Op::kConv: {
      const uint64_t channels = weight->cols, taps = weight->rows;
      work.weight_bytes += weight->bytes;
      work.kv_bytes += SequencesUnderWay(args) * (taps - 1) * channels * sizeof(float);
      work.float_ops += 2 * rows * taps * channels;
      break;
    }
    case Op::kScan: {
      // h = decay * h + x * B; y += h * C.
      const uint64_t states = uint64_t{weight->rows} * weight->cols;
      work.weight_bytes += weight->bytes;
      work.kv_bytes += SequencesUnderWay(args) * states * sizeof(float);
      work.float_ops += 2 * 3 * rows * states;
      break;
    }
    case Op::kNorm:
    case Op::kRopeAngles:
    case Op::kQkvRope:
    case Op::kGatedAct:
    case Op::kAct:
    case Op::kRoute:
    case Op::kFeatures:
    case Op::kIm2col:
    case Op::kStoreKv:
      if (weight != nullptr) work.weight_bytes += weight->bytes;
      break;
  }
  return work;
}

}  // namespace arn

// kAdapt: what the adapters of each sequence change of a matmul.
#include "kernels/contract/check.h"
#include "kernels/contract/ops.h"
#include "kernels/cpu/cpu_state.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// Below this a task costs less than its dispatch to another thread.
constexpr uint64_t kMinTaskBytes = 24 * 1024;
// With at least this many rows per thread, threads share rows; else outputs.
constexpr uint32_t kRowsPerThread = 8;
// Rows of a task, whose inputs stay in a cache.
constexpr uint32_t kTaskRows = 24;

// Consecutive rows of sequences that use the same adapters.
struct AdaptedRows {
  uint32_t first_row, n_rows;
  Span<const ActiveAdapter> adapters;
};

// Calls visit(AdaptedRows) for all rows of a run that have adapters.
template <typename Visit>
void ForAdaptedRows(const RunArgs& args, const Visit& visit) {
  AdaptedRows rows = {0, 0, {}};
  for (const SequenceRows& s : args.sequences) {
    if (!SameAdapters(rows.adapters, s.adapters)) {
      if (!rows.adapters.empty()) visit(rows);
      rows = {s.first_row, 0, s.adapters};
    }
    rows.n_rows += s.n_rows;
  }
  if (!rows.adapters.empty()) visit(rows);
}

class AdaptStep {
 public:
  AdaptStep(const State& state, const Step& step)
      : state_(state),
        in_(state.program->values[step.in]),
        out_(state.program->values[step.out]),
        weight_(step.Get<AdaptParams>().weight) {}

  void Run(const AdaptedRows& rows) const {
    for (const ActiveAdapter& active : rows.adapters) {
      const LowRank* change = active.adapter->Of(weight_);
      if (change == nullptr) continue;
      MultiplyA(*change, active.scale, rows);
      for (const LowRankBlock& block : change->blocks) {
        const LowRankArgs b = BOf(*change, block, rows);
        if (SharesRows(rows)) {
          ByRows(b);
        } else {
          ByOutputs(b);
        }
      }
    }
  }

  // The one change of these rows; null: none, or several.
  const LowRank* OnlyChange(const AdaptedRows& rows, float* scale) const {
    const LowRank* only = nullptr;
    uint32_t n = 0;
    for (const ActiveAdapter& active : rows.adapters) {
      const LowRank* change = active.adapter->Of(weight_);
      if (change == nullptr) continue;
      only = change;
      *scale = active.scale;
      ++n;
    }
    return n == 1 ? only : nullptr;
  }

  void MultiplyA(const LowRank& change, float scale, const AdaptedRows& rows) const {
    const float* in = state_.memory.As<float>(in_.slice) + uint64_t{rows.first_row} * in_.width;
    const LowRankArgs a = LowRankA(change, scale, in, rows.n_rows, RanksOf(rows));
    if (SharesRows(rows)) {
      ByRows(a);
    } else {
      ByOutputs(a);
    }
  }

  LowRankArgs BOf(const LowRank& change, const LowRankBlock& block, const AdaptedRows& rows) const {
    float* out = state_.memory.As<float>(out_.slice) + uint64_t{rows.first_row} * out_.width;
    return LowRankB(change, block, RanksOf(rows), rows.n_rows, out, out_.width);
  }

  // The part of a product in panels [begin, end).
  static LowRankArgs Panels(const LowRankArgs& all, uint64_t begin, uint64_t end) {
    LowRankArgs part = all;
    part.panels += begin * LowRankBytes(all.dtype, kLowRankColumns, all.inputs);
    part.out += begin * kLowRankColumns;
    part.n = static_cast<uint32_t>(Min<uint64_t>(end * kLowRankColumns, all.n) -
                                   begin * kLowRankColumns);
    return part;
  }

 private:
  bool SharesRows(const AdaptedRows& rows) const {
    return rows.n_rows >= kRowsPerThread * state_.threads.count();
  }
  float* RanksOf(const AdaptedRows& rows) const {
    return state_.low_rank + uint64_t{rows.first_row} * RankStride(state_.program->max_rank);
  }

  void ByRows(const LowRankArgs& all) const {
    state_.threads.ForTiles(all.n_rows, kTaskRows, [&](size_t begin, size_t end) {
      LowRankArgs part = all;
      part.x += begin * all.x_stride;
      part.out += begin * all.out_stride;
      part.n_rows = static_cast<uint32_t>(end - begin);
      state_.simd.low_rank(part);
    });
  }

  void ByOutputs(const LowRankArgs& all) const {
    const uint64_t panel_bytes = LowRankBytes(all.dtype, kLowRankColumns, all.inputs);
    const uint64_t n_panels = CeilDiv(all.n, kLowRankColumns);
    const uint64_t tile =
        Max(CeilDiv(kMinTaskBytes, panel_bytes), CeilDiv(n_panels, 2 * state_.threads.count()));
    state_.threads.ForTiles(n_panels, tile, [&](size_t begin, size_t end) {
      state_.simd.low_rank(Panels(all, begin, Min<uint64_t>(end, n_panels)));
    });
  }

  const State& state_;
  const Value &in_, &out_;
  const WeightId weight_;
};

// ColumnChanges: what follows each part of a matmul's output.
struct ColumnChanges {
  const State& state;
  const AdaptStep& step;
  const RunArgs& args;

  static void Add(const void* context, uint32_t first, uint32_t n) {
    const auto& self = *static_cast<const ColumnChanges*>(context);
    ForAdaptedRows(self.args, [&](const AdaptedRows& rows) {
      float scale = 1.0f;  // A's product has it
      const LowRank* change = self.step.OnlyChange(rows, &scale);
      if (change == nullptr) return;
      for (const LowRankBlock& block : change->blocks) {
        const uint32_t begin = Max(first, block.first_row);
        const uint32_t end = Min(first + n, block.first_row + block.n_rows);
        if (begin >= end) continue;
        self.state.simd.low_rank(AdaptStep::Panels(
            self.step.BOf(*change, block, rows), (begin - block.first_row) / kLowRankColumns,
            CeilDiv(end - block.first_row, kLowRankColumns)));
      }
    });
  }
};

// True if parts of a matmul's output begin where panels of all blocks do.
bool PartsFit(const LowRank& change, uint32_t nr) {
  if (nr % kLowRankColumns != 0) return false;
  for (const LowRankBlock& block : change.blocks) {
    if (block.first_row % kLowRankColumns != 0) return false;
  }
  return true;
}

}  // namespace

void RunAdapt(const State& state, const Step& step, const RunArgs& args) {
  const AdaptStep adapt(state, step);
  ForAdaptedRows(args, [&](const AdaptedRows& rows) { adapt.Run(rows); });
}

bool BeginAdapted(const State& state, const Step& linear, const Step& adapt, const RunArgs& args) {
  const auto& p = linear.Get<LinearParams>();
  const AdaptStep step(state, adapt);
  const uint32_t nr = state.gemm.For(state.program->weights[p.weight].dtype)->layout.nr;
  bool fits = true, is_changed = false;
  ForAdaptedRows(args, [&](const AdaptedRows& rows) {
    uint32_t n = 0;
    for (const ActiveAdapter& active : rows.adapters) {
      const LowRank* change = active.adapter->Of(p.weight);
      if (change == nullptr) continue;
      is_changed = true;
      fits = fits && ++n == 1 && PartsFit(*change, nr);
    }
  });
  if (!fits || !is_changed) return false;
  ForAdaptedRows(args, [&](const AdaptedRows& rows) {
    float scale = 1.0f;
    const LowRank* change = step.OnlyChange(rows, &scale);
    if (change != nullptr) step.MultiplyA(*change, scale, rows);
  });
  return true;
}

void RunAdapted(const State& state, const Step& linear, const Step& adapt, const RunArgs& args) {
  const auto& p = linear.Get<LinearParams>();
  const AdaptStep step(state, adapt);
  const Program& program = *state.program;
  const float* in = state.memory.As<float>(program.values[linear.in].slice);
  float* out = state.memory.As<float>(program.values[linear.out].slice);
  Observe(args, p.weight, in, RunRows(args), p.accumulate ? out : nullptr);
  const ColumnChanges changes = {state, step, args};
  Matmul(state, p.weight, in, RunRows(args), p.accumulate, out, {ColumnChanges::Add, &changes});
}

}  // namespace arn::cpu

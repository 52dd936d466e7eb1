// kAdapt: what the adapters of each sequence change of a matmul.
#include "kernels/contract/ops.h"
#include "kernels/cpu/cpu_state.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// Below this a task costs less than its dispatch to another thread.
constexpr uint64_t kMinTaskBytes = 24 * 1024;
// With at least this many rows per thread, threads share rows; else outputs.
constexpr uint32_t kRowsPerThread = 8;
// Rows that go through both products one after the other, while their inputs are in a cache.
constexpr uint32_t kTaskRows = 32;

// Consecutive rows of sequences that use the same adapters.
struct AdaptedRows {
  uint32_t first_row, n_rows;
  Span<const ActiveAdapter> adapters;
};

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
      if (rows.n_rows >= kRowsPerThread * state_.threads.count()) {
        ByRows(*change, active.scale, rows);
      } else {
        ByOutputs(*change, active.scale, rows);
      }
    }
  }

 private:
  void ByRows(const LowRank& change, float scale, const AdaptedRows& rows) const {
    const auto each = static_cast<uint32_t>(CeilDiv(rows.n_rows, 2 * state_.threads.count()));
    state_.threads.ForTiles(rows.n_rows, Min(kTaskRows, each), [&](size_t begin, size_t end) {
      const auto first = static_cast<uint32_t>(rows.first_row + begin);
      const auto n = static_cast<uint32_t>(end - begin);
      float* y = state_.low_rank + uint64_t{first} * RankStride(change.rank);
      state_.simd.low_rank(LowRankA(change, scale, In(first), n, y));
      for (const LowRankBlock& block : change.blocks) {
        state_.simd.low_rank(LowRankB(change, block, y, n, Out(first), out_.width));
      }
    });
  }

  void ByOutputs(const LowRank& change, float scale, const AdaptedRows& rows) const {
    float* y = state_.low_rank;
    Split(LowRankA(change, scale, In(rows.first_row), rows.n_rows, y));
    for (const LowRankBlock& block : change.blocks) {
      Split(LowRankB(change, block, y, rows.n_rows, Out(rows.first_row), out_.width));
    }
  }

  // Runs a product in tasks of whole panels.
  void Split(const LowRankArgs& all) const {
    const uint64_t panel_bytes = LowRankBytes(all.dtype, kLowRankColumns, all.inputs);
    const uint64_t n_panels = CeilDiv(all.n, kLowRankColumns);
    const uint64_t tile = Max(CeilDiv(kMinTaskBytes, panel_bytes),
                              CeilDiv(n_panels, 2 * state_.threads.count()));
    state_.threads.ForTiles(n_panels, tile, [&](size_t begin, size_t end) {
      LowRankArgs part = all;
      part.panels += begin * panel_bytes;
      part.out += begin * kLowRankColumns;
      part.n = static_cast<uint32_t>(Min<uint64_t>(end * kLowRankColumns, all.n) -
                                     begin * kLowRankColumns);
      state_.simd.low_rank(part);
    });
  }

  const float* In(uint32_t row) const {
    return state_.memory.As<float>(in_.slice) + uint64_t{row} * in_.width;
  }
  float* Out(uint32_t row) const {
    return state_.memory.As<float>(out_.slice) + uint64_t{row} * out_.width;
  }

  const State& state_;
  const Value &in_, &out_;
  const WeightId weight_;
};

}  // namespace

void RunAdapt(const State& state, const Step& step, const RunArgs& args) {
  const AdaptStep adapt(state, step);
  AdaptedRows rows = {0, 0, {}};
  for (const SequenceRows& s : args.sequences) {
    if (!SameAdapters(rows.adapters, s.adapters)) {
      adapt.Run(rows);
      rows = {s.first_row, 0, s.adapters};
    }
    rows.n_rows += s.n_rows;
  }
  adapt.Run(rows);
}

}  // namespace arn::cpu

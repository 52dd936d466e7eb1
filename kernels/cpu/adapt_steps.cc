// kAdapt and kSteer: what the adapters of each sequence change.
#include "kernels/contract/adapter.h"
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

// At most this much is prefetched at a time: a part of an L2 cache.
constexpr uint64_t kPrefetchBytes = 32 * 1024;

void Prefetch(const std::byte* data, uint64_t bytes) {
  constexpr uint64_t kLineBytes = 64;
  for (uint64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(data + i);
  // Otherwise GCC takes this for a function without effects, and leaves the calls out.
  asm volatile("");
}

class AdaptStep {
 public:
  AdaptStep(const State& state, const Step& step)
      : state_(state),
        in_(state.program->values[step.in]),
        out_(state.program->values[step.out]),
        weight_(step.Get<AdaptParams>().weight) {}

  void Run(const AdaptedRows& rows, const QuantizedInput& input) const {
    for (const ActiveAdapter& active : rows.adapters) {
      const LowRank* change = active.adapter->Of(weight_);
      if (change == nullptr) continue;
      MultiplyA(*change, active.scale, rows, input);
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

  uint32_t n_outputs() const { return out_.width; }

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

  // True if these rows have a change in int8.
  bool UsesIntegers(const AdaptedRows& rows) const {
    for (const ActiveAdapter& active : rows.adapters) {
      const LowRank* change = active.adapter->Of(weight_);
      if (change != nullptr && change->dtype == DType::kInt8) return true;
    }
    return false;
  }

  // input: of all rows of the run; read by changes in int8.
  void MultiplyA(const LowRank& change, float scale, const AdaptedRows& rows,
                 const QuantizedInput& input) const {
    const float* in = state_.memory.As<float>(in_.slice) + uint64_t{rows.first_row} * in_.width;
    const LowRankArgs a = LowRankA(change, scale, in, rows.n_rows, RanksOf(rows));
    if (change.dtype == DType::kInt8) {
      IntegerA(a, rows, input);
    } else if (SharesRows(rows)) {
      ByRows(a);
    } else {
      ByOutputs(a);
    }
  }

  LowRankArgs BOf(const LowRank& change, const LowRankBlock& block, const AdaptedRows& rows) const {
    float* out = state_.memory.As<float>(out_.slice) + uint64_t{rows.first_row} * out_.width;
    return LowRankB(change, block, RanksOf(rows), rows.n_rows, out, out_.width);
  }

  // Computes a product of floats, or one with B, in panels [begin, end).
  void Multiply(const LowRankArgs& all, uint64_t begin, uint64_t end) const {
    LowRankArgs part = all;
    part.panels += begin * LowRankPanelBytes(all.dtype, all.inputs);
    part.scales += begin;
    part.out += begin * kLowRankColumns;
    part.n = static_cast<uint32_t>(Min<uint64_t>(end * kLowRankColumns, all.n) -
                                   begin * kLowRankColumns);
    Multiply(part);
  }

 private:
  bool SharesRows(const AdaptedRows& rows) const {
    return rows.n_rows >= kRowsPerThread * state_.threads.count();
  }
  float* RanksOf(const AdaptedRows& rows) const {
    return state_.low_rank + uint64_t{rows.first_row} * RankStride(state_.program->max_rank);
  }

  void Multiply(const LowRankArgs& args) const {
    (args.dtype == DType::kInt8 ? state_.simd.low_rank_int8.b : state_.simd.low_rank)(args);
  }

  void ByRows(const LowRankArgs& all) const {
    state_.threads.ForTiles(all.n_rows, kTaskRows, [&](size_t begin, size_t end) {
      LowRankArgs part = all;
      part.x += begin * all.x_stride;
      part.out += begin * all.out_stride;
      part.n_rows = static_cast<uint32_t>(end - begin);
      Multiply(part);
    });
  }

  template <typename Body>
  void ForPanels(const LowRankArgs& all, const Body& body) const {
    const uint64_t panel_bytes = LowRankPanelBytes(all.dtype, all.inputs);
    const uint64_t n_panels = LowRankPanels(all.n);
    const uint64_t tile =
        Max(CeilDiv(kMinTaskBytes, panel_bytes), CeilDiv(n_panels, 2 * state_.threads.count()));
    state_.threads.ForTiles(n_panels, tile, [&](size_t begin, size_t end) {
      body(static_cast<uint32_t>(begin), static_cast<uint32_t>(Min<uint64_t>(end, n_panels)));
    });
  }
  void ByOutputs(const LowRankArgs& all) const {
    ForPanels(all, [&](uint32_t begin, uint32_t end) { Multiply(all, begin, end); });
  }

  // Multiplies by an A in int8.
  void IntegerA(const LowRankArgs& a, const AdaptedRows& rows, const QuantizedInput& input) const {
    const auto n_panels = static_cast<uint32_t>(LowRankPanels(a.n));
    if (SharesRows(rows)) {
      state_.threads.ForTiles(input.n_tiles, 1, [&](size_t tile, size_t) {
        TileTimesA(a, rows, input, static_cast<uint32_t>(tile), 0, n_panels);
      });
      return;
    }
    ForPanels(a, [&](uint32_t begin, uint32_t end) {
      for (uint32_t i = 0; i < input.n_tiles; ++i) TileTimesA(a, rows, input, i, begin, end);
    });
  }
  // The rows that a tile of the input has of these, times panels [begin, end).
  void TileTimesA(const LowRankArgs& a, const AdaptedRows& rows, const QuantizedInput& input,
                  uint32_t i, uint32_t begin, uint32_t end) const {
    const QuantizedTile tile = input.Tile(i);
    const uint32_t first = Max(tile.first_row, rows.first_row);
    const uint32_t last = Min(tile.first_row + tile.n_rows, rows.first_row + rows.n_rows);
    if (first >= last) return;
    const uint32_t halves = input.is_split ? 2 : 1;
    const size_t at = size_t{first - tile.first_row} * halves;
    QuantizedLowRank part = {};
    part.panels = a.panels + begin * LowRankPanelBytes(a.dtype, a.inputs);
    part.scales = a.scales + size_t{begin} * kLowRankColumns;
    part.sums = a.sums + size_t{begin} * kLowRankColumns;
    part.inputs = a.inputs;
    part.n_panels = end - begin;
    part.row_stride = halves * tile.row_stride;
    part.second = tile.second;
    part.pair_stride = tile.pair_stride;
    part.is_offset = input.is_offset;
    part.row_step = halves;
    part.n_rows = last - first;
    part.out = a.out + (first - rows.first_row) * a.out_stride + size_t{begin} * kLowRankColumns;
    part.out_stride = a.out_stride;
    part.factor = a.factor / static_cast<float>(halves);
    for (uint32_t half = 0; half < halves; ++half) {
      part.x = reinterpret_cast<const uint8_t*>(tile.values) + (at + half) * tile.row_stride;
      part.rows = tile.rows + at + half;
      part.accumulates = half != 0;
      state_.simd.low_rank_int8.a(part);
    }
  }

  const State& state_;
  const Value &in_, &out_;
  const WeightId weight_;
};

// AroundMatmul of a changed matrix, each of whose rows has one change at most.
struct AroundAdapted {
  const State& state;
  const AdaptStep& step;
  const RunArgs& args;
  Span<const Step> next;

  // Prefetches the A of the next changed matrix, which follows few other bytes.
  void PrefetchNextA() const {
    for (const Step& following : next) {
      const auto* linear = following.If<LinearParams>();
      if (linear == nullptr) continue;
      ForAdaptedRows(args, [&](const AdaptedRows& rows) {
        for (const ActiveAdapter& active : rows.adapters) {
          const LowRank* change = active.adapter->Of(linear->weight);
          if (change == nullptr) continue;
          const uint64_t bytes = LowRankABytes(change->dtype, change->rank, change->cols);
          Prefetch(change->a, Min(bytes, kPrefetchBytes));
        }
      });
      return;
    }
  }

  static void Begin(const void* context, const QuantizedInput& input) {
    const auto& self = *static_cast<const AroundAdapted*>(context);
    ForAdaptedRows(self.args, [&](const AdaptedRows& rows) {
      float scale = 1.0f;
      const LowRank* change = self.step.OnlyChange(rows, &scale);
      if (change != nullptr) self.step.MultiplyA(*change, scale, rows, input);
    });
    if (!self.next.empty()) RequestPrefetch(self.state, self.next);
  }

  // Calls visit(rows, change, block, begin, end) for panels [begin, end) of blocks in columns
  // [first, first + n).
  template <typename Visit>
  void ForBlocks(uint32_t first, uint32_t n, const Visit& visit) const {
    ForAdaptedRows(args, [&](const AdaptedRows& rows) {
      float scale = 1.0f;  // A's product has it
      const LowRank* change = step.OnlyChange(rows, &scale);
      if (change == nullptr) return;
      for (const LowRankBlock& block : change->blocks) {
        const uint32_t begin = Max(first, block.first_row);
        const uint32_t end = Min(first + n, block.first_row + block.n_rows);
        if (begin >= end) continue;
        visit(rows, *change, block, (begin - block.first_row) / kLowRankColumns,
              LowRankPanels(end - block.first_row));
      }
    });
  }

  // Their short pieces of memory would be waited for, between long ones of the matrix.
  static void PrefetchColumns(const void* context, uint32_t first, uint32_t n) {
    const auto& self = *static_cast<const AroundAdapted*>(context);
    self.ForBlocks(first, n,
                   [](const AdaptedRows&, const LowRank& change, const LowRankBlock& block,
                      uint64_t begin, uint64_t end) {
                     const uint64_t bytes = LowRankPanelBytes(change.dtype, block.rank);
                     const uint64_t head = LowRankBHeadBytes(change.dtype, block.n_rows);
                     Prefetch(block.b + head + begin * bytes,
                              Min((end - begin) * bytes, kPrefetchBytes));
                   });
    if (first + n == self.step.n_outputs()) self.PrefetchNextA();
  }

  static void AddColumns(const void* context, uint32_t first, uint32_t n) {
    const auto& self = *static_cast<const AroundAdapted*>(context);
    self.ForBlocks(first, n,
                   [&](const AdaptedRows& rows, const LowRank& change, const LowRankBlock& block,
                       uint64_t begin, uint64_t end) {
                     self.step.Multiply(self.step.BOf(change, block, rows), begin, end);
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

// True if the matrix is changed, and all of its changes can be added to parts of the output.
bool JoinsMatmul(const State& state, WeightId weight, const RunArgs& args) {
  const uint32_t nr = state.gemm.For(state.program->weights[weight].dtype)->layout.nr;
  bool fits = true, is_changed = false;
  ForAdaptedRows(args, [&](const AdaptedRows& rows) {
    uint32_t n = 0;
    for (const ActiveAdapter& active : rows.adapters) {
      const LowRank* change = active.adapter->Of(weight);
      if (change == nullptr) continue;
      is_changed = true;
      fits = fits && ++n == 1 && PartsFit(*change, nr);
    }
  });
  return fits && is_changed;
}

}  // namespace

void RunAdapt(const State& state, const Step& step, const RunArgs& args) {
  const AdaptStep adapt(state, step);
  bool uses_integers = false;
  ForAdaptedRows(args, [&](const AdaptedRows& rows) {
    uses_integers = uses_integers || adapt.UsesIntegers(rows);
  });
  QuantizedInput input;
  if (uses_integers) {
    const float* in = state.memory.As<float>(state.program->values[step.in].slice);
    input = QuantizeInput(state, step.Get<AdaptParams>().weight, in, RunRows(args));
  }
  ForAdaptedRows(args, [&](const AdaptedRows& rows) { adapt.Run(rows, input); });
}

void RunSteer(const State& state, const Step& step, const RunArgs& args) {
  const uint32_t layer = step.Get<SteerParams>().layer;
  const Value& value = state.program->values[step.in];
  const uint32_t width = value.width;
  for (const SequenceRows& sequence : args.sequences) {
    for (const ActiveAdapter& active : sequence.adapters) {
      const float* direction = active.adapter->DirectionOf(layer);
      if (direction == nullptr) continue;
      float* rows = state.memory.As<float>(value.slice) + uint64_t{sequence.first_row} * width;
      state.threads.ForTiles(sequence.n_rows, kTaskRows, [&](size_t begin, size_t end) {
        for (size_t r = begin; r < end; ++r) {
          for (uint32_t i = 0; i < width; ++i) {
            rows[r * width + i] += active.scale * direction[i];
          }
        }
      });
    }
  }
}

bool RunAdapted(const State& state, const Step& linear, const Step& adapt, const RunArgs& args,
                Span<const Step> next) {
  const auto& p = linear.Get<LinearParams>();
  if (!JoinsMatmul(state, p.weight, args)) return false;
  const Program& program = *state.program;
  const float* in = state.memory.As<float>(program.values[linear.in].slice);
  float* out = state.memory.As<float>(program.values[linear.out].slice);
  Observe(args, p.weight, in, RunRows(args), p.accumulate ? out : nullptr);
  const AdaptStep step(state, adapt);
  const AroundAdapted adapted = {state, step, args, next};
  AroundMatmul around = {AroundAdapted::Begin, nullptr, AroundAdapted::AddColumns, &adapted};
  // With many rows, memory is a small part of the time.
  if (!next.empty()) around.before = AroundAdapted::PrefetchColumns;
  Matmul(state, p.weight, in, RunRows(args), p.accumulate, out, around);
  return true;
}

}  // namespace arn::cpu

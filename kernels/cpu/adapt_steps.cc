// kAdapt and kSteer: what the adapters of each sequence change.
#include "kernels/contract/check.h"
#include "kernels/cpu/adapt_step.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// Below this a task costs less than its dispatch to another thread.
constexpr uint64_t kMinTaskBytes = 24 * 1024;
// With at least this many rows per thread, threads share rows; else outputs.
constexpr uint32_t kRowsPerThread = 8;
// Rows of a task, whose inputs stay in a cache.
constexpr uint32_t kTaskRows = 24;

// True if the tasks that compute A's product of many rows round the ranks, too, in place. Blocks
// must not share ranks.
bool RoundsInPlace(const LowRank& change) {
  uint32_t end = 0;
  for (const LowRankBlock& block : change.blocks) {
    const bool fits = block.rank >= kLowRankInputs && block.rank <= kRankChunk;
    if (!fits || block.first_rank < end) return false;
    end = block.first_rank + block.rank;
  }
  return IsIntegerLowRank(change.dtype);
}

}  // namespace

AdaptStep::AdaptStep(const State& state, const Step& step)
    : state_(state),
      in_(state.program->values[step.in]),
      out_(state.program->values[step.out]),
      weight_(step.Get<AdaptParams>().weight) {}

void AdaptStep::Run(const AdaptedRows& rows, const QuantizedInput& input) const {
  for (const ActiveAdapter& active : rows.adapters) {
    const LowRank* change = active.adapter->Of(weight_);
    if (change == nullptr) continue;
    MultiplyA(*change, active.scale, rows, input);
    for (const LowRankBlock& block : change->blocks) {
      const LowRankArgs b = BOf(*change, block, rows);
      if (SharesRows(rows)) {
        ByRows(b, RoundedRanksOf(*change, b, rows));
      } else {
        ByOutputs(b);
      }
    }
  }
}

bool AdaptStep::UsesIntegers(const AdaptedRows& rows) const {
  for (const ActiveAdapter& active : rows.adapters) {
    const LowRank* change = active.adapter->Of(weight_);
    if (change != nullptr && IsIntegerLowRank(change->dtype)) return true;
  }
  return false;
}

void AdaptStep::MultiplyA(const LowRank& change, float scale, const AdaptedRows& rows,
                          const QuantizedInput& input) const {
  const float* in = state_.memory.As<float>(in_.slice) + uint64_t{rows.first_row} * in_.width;
  const LowRankArgs a = LowRankA(change, scale, in, rows.n_rows, RanksOf(rows));
  if (IsIntegerLowRank(change.dtype)) {
    IntegerA(change, a, rows, input);
  } else if (SharesRows(rows)) {
    ByRows(a, {});
  } else {
    ByOutputs(a);
  }
}

void AdaptStep::MultiplyRowByA(const LowRank& change, float scale, const AdaptedRows& rows,
                               const QuantizedInput& input, const std::byte* ahead) const {
  const LowRankArgs a = LowRankA(change, scale, nullptr, 1, RanksOf(rows));
  TileTimesA(a, rows, input, 0, 0, static_cast<uint32_t>(LowRankPanels(a.n)), ahead);
}

LowRankArgs AdaptStep::BOf(const LowRank& change, const LowRankBlock& block,
                           const AdaptedRows& rows) const {
  float* out = state_.memory.As<float>(out_.slice) + uint64_t{rows.first_row} * out_.width;
  return LowRankB(change, block, RanksOf(rows), rows.n_rows, out, out_.width);
}

RankRows AdaptStep::RoundedRanksOf(const LowRank& change, const LowRankArgs& b,
                                   const AdaptedRows& rows) const {
  if (!SharesRows(rows) || !RoundsInPlace(change)) return {};
  return {reinterpret_cast<const std::byte*>(b.x), b.x_stride * sizeof(float)};
}

void AdaptStep::Multiply(const LowRankArgs& all, const RankRows& ranks, uint64_t begin,
                         uint64_t end) const {
  LowRankArgs part = all;
  part.panels += begin * LowRankPanelBytes(all.dtype, all.inputs);
  part.scales += begin;
  part.out += begin * kLowRankColumns;
  part.n =
      static_cast<uint32_t>(Min<uint64_t>(end * kLowRankColumns, all.n) - begin * kLowRankColumns);
  Multiply(part, ranks);
}

bool AdaptStep::SharesRows(const AdaptedRows& rows) const {
  return rows.n_rows >= kRowsPerThread * state_.threads.count();
}

float* AdaptStep::RanksOf(const AdaptedRows& rows) const {
  return state_.low_rank + uint64_t{rows.first_row} * RankStride(state_.program->max_rank);
}

void AdaptStep::Multiply(const LowRankArgs& args, const RankRows& ranks) const {
  if (IsIntegerLowRank(args.dtype)) return state_.simd.low_rank_integer.b(args, ranks);
  state_.simd.low_rank(args);
}

void AdaptStep::ByRows(const LowRankArgs& all, const RankRows& ranks) const {
  state_.threads.ForTiles(all.n_rows, kTaskRows, [&](size_t begin, size_t end) {
    LowRankArgs part = all;
    part.x += begin * all.x_stride;
    part.out += begin * all.out_stride;
    part.n_rows = static_cast<uint32_t>(end - begin);
    Multiply(part, {ranks.first + begin * ranks.stride, ranks.stride});
  });
}

template <typename Body>
void AdaptStep::ForPanels(const LowRankArgs& all, const Body& body) const {
  const uint64_t panel_bytes = LowRankPanelBytes(all.dtype, all.inputs);
  const uint64_t n_panels = LowRankPanels(all.n);
  const uint64_t tile =
      Max(CeilDiv(kMinTaskBytes, panel_bytes), CeilDiv(n_panels, 2 * state_.threads.count()));
  state_.threads.ForTiles(n_panels, tile, [&](size_t begin, size_t end) {
    body(static_cast<uint32_t>(begin), static_cast<uint32_t>(Min<uint64_t>(end, n_panels)));
  });
}

void AdaptStep::ByOutputs(const LowRankArgs& all) const {
  ForPanels(all, [&](uint32_t begin, uint32_t end) { Multiply(all, {}, begin, end); });
}

void AdaptStep::IntegerA(const LowRank& change, const LowRankArgs& a, const AdaptedRows& rows,
                         const QuantizedInput& input) const {
  const auto n_panels = static_cast<uint32_t>(LowRankPanels(a.n));
  if (SharesRows(rows)) {
    state_.threads.ForTiles(input.n_tiles, 1, [&](size_t tile, size_t) {
      TileTimesA(a, rows, input, static_cast<uint32_t>(tile), 0, n_panels, nullptr);
      if (RoundsInPlace(change)) RoundTile(change, rows, input.Tile(static_cast<uint32_t>(tile)));
    });
    return;
  }
  ForPanels(a, [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = 0; i < input.n_tiles; ++i) {
      TileTimesA(a, rows, input, i, begin, end, nullptr);
    }
  });
}

void AdaptStep::RoundTile(const LowRank& change, const AdaptedRows& rows,
                          const QuantizedTile& tile) const {
  const uint32_t first = Max(tile.first_row, rows.first_row);
  const uint32_t last = Min(tile.first_row + tile.n_rows, rows.first_row + rows.n_rows);
  if (first >= last) return;
  for (const LowRankBlock& block : change.blocks) {
    LowRankArgs b = BOf(change, block, rows);
    float* ranks = RanksOf(rows) + block.first_rank + (first - rows.first_row) * b.x_stride;
    b.x = ranks;
    b.n_rows = last - first;
    state_.simd.low_rank_integer.round(b, reinterpret_cast<std::byte*>(ranks),
                                       b.x_stride * sizeof(float));
  }
}

void AdaptStep::TileTimesA(const LowRankArgs& a, const AdaptedRows& rows,
                           const QuantizedInput& input, uint32_t i, uint32_t begin, uint32_t end,
                           const std::byte* ahead) const {
  const QuantizedTile tile = input.Tile(i);
  const uint32_t first = Max(tile.first_row, rows.first_row);
  const uint32_t last = Min(tile.first_row + tile.n_rows, rows.first_row + rows.n_rows);
  if (first >= last) return;
  const uint32_t halves = input.is_split ? 2 : 1;
  const size_t at = size_t{first - tile.first_row} * halves;
  QuantizedLowRank part = {};
  part.dtype = a.dtype;
  part.panels = a.panels + begin * LowRankPanelBytes(a.dtype, a.inputs);
  part.scales = a.scales + size_t{begin} * kLowRankColumns;
  part.sums = a.sums + size_t{begin} * kLowRankColumns;
  part.inputs = a.inputs;
  part.ahead = ahead;
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
    state_.simd.low_rank_integer.a(part);
  }
}

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

}  // namespace arn::cpu

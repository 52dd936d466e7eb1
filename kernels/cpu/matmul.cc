// Matmuls of the CPU backend: one matrix or several of one shape, some of their columns, and argmax
// over them.
#include <atomic>
#include <cmath>
#include <cstring>

#include "kernels/cpu/backend_cpu.h"
#include "kernels/cpu/cpu_state.h"
#include "kernels/cpu/panel_matmul.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// Columns per block of BestColumn, on the stack.
constexpr uint32_t kBestColumns = 1024;
// Tasks that convert the rows of a part, at most, and rows that are worth one.
constexpr uint64_t kConvertTasks = 4, kRowsPerTask = 16;

// values[Columns(begin, end)] = x W^T + bias, of one row.
void MultiplyBlock(const PanelMatmul& matmul, size_t begin, size_t end, float* values) {
  matmul.Multiply(begin, end, /*accumulate=*/false, values, matmul.Columns(begin, end));
}

// The layout of the input of ConvertEach.
QuantizedLayout LayoutOfParts(const State& state, Span<const MatrixRows> parts) {
  const Program& program = *state.program;
  bool has_sums = false;
  for (const MatrixRows& part : parts) {
    has_sums = has_sums || HasMinimums(program.weights[part.weight].dtype);
  }
  return QuantizedRows(has_sums, program.max_rows, program.weights[parts[0].weight].cols,
                       program.splits_rows, kMaxMatrixRows);
}

// Returns a key that orders columns for argmax: larger values first, the lower column on ties. 0
// for NaN.
uint64_t Rank(float value, uint32_t column) {
  if (std::isnan(value)) return 0;
  value += 0.0f;  // -0 becomes 0
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  constexpr uint32_t kSign = 1u << 31;
  const uint32_t ordered = (bits & kSign) != 0 ? ~bits : bits | kSign;
  return uint64_t{ordered} << 32 | (UINT32_MAX - column);
}

}  // namespace

void RequestPrefetch(const State& state, Span<const Step> steps) {
  for (const Step& step : steps) {
    if (step.op() != Op::kLinear && step.op() != Op::kLogits) continue;
    const WeightId id = OperandsOf(step).first_matrix;
    const Weight& weight = state.program->weights[id];
    const GemmKernel& kernel = *state.gemm.For(weight);
    const uint64_t rows =
        kernel.IsInRows() ? weight.rows : AlignUp(weight.rows, uint64_t{kernel.columns()});
    return state.threads.SetPrefetch(state.matrices[id],
                                     rows * PanelBytes(kernel, weight) / kernel.columns());
  }
  state.threads.SetPrefetch(nullptr, 0);
}

QuantizedTile QuantizedInput::Tile(uint32_t i) const {
  const auto first = [&](uint64_t tile) { return static_cast<uint32_t>(tile * n_rows / n_tiles); };
  QuantizedTile tile;
  tile.first_row = first(i);
  tile.n_rows = first(i + 1) - tile.first_row;
  const uint32_t at = is_split ? 2 * tile.first_row : tile.first_row;
  const uint32_t height = is_split ? 2 * tile.n_rows : tile.n_rows;
  tile.values = values + at * stride_bytes;
  tile.rows = rows + at;
  tile.row_stride = group == 0 ? stride_bytes : group;
  tile.second = group == 4 ? size_t{height} * 4 : 4;
  tile.pair_stride = group == 0 ? kLowRankInputs : size_t{height} * kLowRankInputs;
  return tile;
}

QuantizedInput QuantizeInput(const State& state, WeightId id, const float* x, uint32_t rows) {
  return PanelMatmul(state, id, x, rows).Input();
}

void Matmul(const State& state, WeightId id, const float* x, uint32_t rows, bool accumulate,
            float* out, const AroundMatmul& around) {
  if (rows == 0) return;
  const PanelMatmul matmul(state, id, x, rows);
  if (around.begin != nullptr) around.begin(around.context, matmul.Input());
  const uint32_t width = state.program->weights[id].rows;
  matmul.ForPanels([&](size_t begin, size_t end) {
    auto first = static_cast<uint32_t>(begin * matmul.nr());
    for (uint32_t left = matmul.Columns(begin, end), n = left; left > 0; left -= n, first += n) {
      TileChange change;
      n = left;
      const size_t panel = first / matmul.nr();
      if (around.before != nullptr) {
        n = around.before(around.context, matmul.Panels(panel), first, n, &change);
      }
      matmul.Multiply(panel, CeilDiv(first + n, matmul.nr()), accumulate, out + first, width,
                      change.panels == nullptr ? nullptr : &change);
      if (around.after != nullptr && change.panels == nullptr) {
        around.after(around.context, first, n);
      }
    }
  });
}

void ConvertEach(const State& state, Span<const MatrixRows> parts, const float* x,
                 const RowFill& fill) {
  const QuantizedLayout layout = LayoutOfParts(state, parts);
  uint64_t most = 0;
  for (const MatrixRows& part : parts) most = Max<uint64_t>(most, part.n_rows);
  // One task for each part that has few rows, and several for others.
  const size_t n = Min<size_t>(kConvertTasks, CeilDiv(most, kRowsPerTask));
  state.threads.ForEach(parts.size() * n, [&](size_t, size_t task) {
    const MatrixRows& part = parts[task / n];
    const PanelMatmul matmul(state, part, x, layout);
    const RowTiles& tiles = matmul.tiles();
    const size_t end = tiles.count() * (task % n + 1) / n;
    for (size_t tile = tiles.count() * (task % n) / n; tile < end; ++tile) {
      const uint32_t first = tiles.First(tile);
      fill.fill(fill.context, part.first_in + first, tiles.First(tile + 1) - first);
      if (matmul.Converts()) matmul.Convert(tile);
    }
  });
}

void MultiplyEach(const State& state, Span<const MatrixRows> parts, const float* x, float* out) {
  const QuantizedLayout layout = LayoutOfParts(state, parts);
  const PanelMatmul like(state, parts[0], x, layout);
  const uint64_t n_panels = like.n_panels(), width = state.program->weights[parts[0].weight].rows;
  const uint64_t most = TilePanels(state, n_panels * parts.size(), like.panel_bytes());
  const uint64_t n_tiles = CeilDiv(n_panels, most);
  state.threads.ForEach(parts.size() * n_tiles, [&](size_t, size_t task) {
    if (IsCut(state)) return;
    const size_t i = task / n_tiles, tile = task % n_tiles;
    const size_t begin = n_panels * tile / n_tiles, end = n_panels * (tile + 1) / n_tiles;
    if (tile + 1 == n_tiles && i + 1 < parts.size()) {
      // As kernels of few rows do within a matrix.
      const std::byte* next = state.matrices[parts[i + 1].weight];
      for (size_t at = 0; at < kWeightsAhead; at += 64) __builtin_prefetch(next + at, 0, 2);
    }
    const PanelMatmul matmul(state, parts[i], x, layout);
    matmul.Multiply(begin, end, /*accumulate=*/false,
                    out + parts[i].first_out * width + begin * matmul.nr(), width);
  });
}

void MatmulParts(const State& state, WeightId id, const float* x, const float* parts,
                 uint32_t n_parts, uint32_t size, float* out) {
  const PanelMatmul matmul(state, id, x, 1);
  const uint32_t nr = matmul.nr();
  const size_t step = Max<size_t>(1, kBestColumns / nr);
  state.threads.ForTiles(n_parts, 1, [&](size_t begin, size_t end) {
    float values[kBestColumns];
    for (size_t i = begin; i < end && !IsCut(state); ++i) {
      const auto first = static_cast<uint32_t>(parts[i]) * size, last = first + size;
      for (size_t panel = first / nr; panel * nr < last; panel += step) {
        const size_t next = Min<size_t>(panel + step, CeilDiv(last, nr));
        const auto column = static_cast<uint32_t>(panel * nr);
        const uint32_t n = matmul.Columns(panel, next);
        MultiplyBlock(matmul, panel, next, values);
        const uint32_t from = Max(first, column), to = Min(last, column + n);
        std::memcpy(out + from, values + (from - column), (to - from) * sizeof(float));
      }
    }
  });
}

uint32_t BestColumn(const State& state, WeightId id, const float* x, float factor, float softcap) {
  const PanelMatmul matmul(state, id, x, 1);
  const LogitsOps& ops = *CpuLogitsOps();
  const bool is_scaled = factor != 1.0f || softcap != 0.0f;
  const size_t step = Max<size_t>(1, kBestColumns / matmul.nr());
  std::atomic<uint64_t> best{0};
  matmul.ForPanels([&](size_t begin, size_t end) {
    float values[kBestColumns];
    uint64_t found = 0;
    for (size_t panel = begin; panel < end; panel += step) {
      const size_t last = Min(panel + step, end);
      const uint32_t n = matmul.Columns(panel, last);
      MultiplyBlock(matmul, panel, last, values);
      if (is_scaled) state.simd.softcap(values, n, factor, softcap);
      const uint32_t at = ops.argmax(values, n);
      found = Max(found, Rank(values[at], static_cast<uint32_t>(panel * matmul.nr()) + at));
    }
    uint64_t seen = best.load(std::memory_order_relaxed);
    while (found > seen && !best.compare_exchange_weak(seen, found, std::memory_order_relaxed)) {
    }
  });
  const uint64_t rank = best.load(std::memory_order_relaxed);
  return rank == 0 ? 0 : UINT32_MAX - static_cast<uint32_t>(rank);
}

}  // namespace arn::cpu

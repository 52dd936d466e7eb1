// kAdapt and kSteer: what the adapters of each sequence change.
#include <atomic>
#include <thread>

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
constexpr uint64_t kLineBytes = 64;

// Into an L2 cache: the matrix passes through L1, whose few slots for misses it needs, too.
void Prefetch(const std::byte* data, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(data + i, 0, 2);
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
          ByRows(b, RoundedRanksOf(*change, b, rows));
        } else {
          ByOutputs(b);
        }
      }
    }
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
      IntegerA(change, a, rows, input);
    } else if (SharesRows(rows)) {
      ByRows(a, {});
    } else {
      ByOutputs(a);
    }
  }

  // Likewise of a lone row, on the calling thread. ahead: memory that is read next.
  void MultiplyRowByA(const LowRank& change, float scale, const AdaptedRows& rows,
                      const QuantizedInput& input, const std::byte* ahead) const {
    const LowRankArgs a = LowRankA(change, scale, nullptr, 1, RanksOf(rows));
    TileTimesA(a, rows, input, 0, 0, static_cast<uint32_t>(LowRankPanels(a.n)), ahead);
  }

  LowRankArgs BOf(const LowRank& change, const LowRankBlock& block, const AdaptedRows& rows) const {
    float* out = state_.memory.As<float>(out_.slice) + uint64_t{rows.first_row} * out_.width;
    return LowRankB(change, block, RanksOf(rows), rows.n_rows, out, out_.width);
  }

  // Returns the ranks of a block that MultiplyA() has rounded, if it has.
  RankRows RoundedRanksOf(const LowRank& change, const LowRankArgs& b,
                          const AdaptedRows& rows) const {
    if (!SharesRows(rows) || !RoundsInPlace(change)) return {};
    return {reinterpret_cast<const std::byte*>(b.x), b.x_stride * sizeof(float)};
  }

  // Computes a product of floats, or one with B, in panels [begin, end). ranks: of B, or none.
  void Multiply(const LowRankArgs& all, const RankRows& ranks, uint64_t begin, uint64_t end) const {
    LowRankArgs part = all;
    part.panels += begin * LowRankPanelBytes(all.dtype, all.inputs);
    part.scales += begin;
    part.out += begin * kLowRankColumns;
    part.n = static_cast<uint32_t>(Min<uint64_t>(end * kLowRankColumns, all.n) -
                                   begin * kLowRankColumns);
    Multiply(part, ranks);
  }

 private:
  bool SharesRows(const AdaptedRows& rows) const {
    return rows.n_rows >= kRowsPerThread * state_.threads.count();
  }
  float* RanksOf(const AdaptedRows& rows) const {
    return state_.low_rank + uint64_t{rows.first_row} * RankStride(state_.program->max_rank);
  }

  // True if the tasks that compute A's product of many rows round the ranks, too, in place. Blocks
  // must not share ranks.
  static bool RoundsInPlace(const LowRank& change) {
    uint32_t end = 0;
    for (const LowRankBlock& block : change.blocks) {
      const bool fits = block.rank >= kLowRankInputs && block.rank <= kRankChunk;
      if (!fits || block.first_rank < end) return false;
      end = block.first_rank + block.rank;
    }
    return change.dtype == DType::kInt8;
  }

  void Multiply(const LowRankArgs& args, const RankRows& ranks) const {
    if (args.dtype == DType::kInt8) return state_.simd.low_rank_int8.b(args, ranks);
    state_.simd.low_rank(args);
  }

  void ByRows(const LowRankArgs& all, const RankRows& ranks) const {
    state_.threads.ForTiles(all.n_rows, kTaskRows, [&](size_t begin, size_t end) {
      LowRankArgs part = all;
      part.x += begin * all.x_stride;
      part.out += begin * all.out_stride;
      part.n_rows = static_cast<uint32_t>(end - begin);
      Multiply(part, {ranks.first + begin * ranks.stride, ranks.stride});
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
    ForPanels(all, [&](uint32_t begin, uint32_t end) { Multiply(all, {}, begin, end); });
  }

  // Multiplies by an A in int8.
  void IntegerA(const LowRank& change, const LowRankArgs& a, const AdaptedRows& rows,
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
  // Rounds the ranks of the rows that a tile of the input has of these.
  void RoundTile(const LowRank& change, const AdaptedRows& rows, const QuantizedTile& tile) const {
    const uint32_t first = Max(tile.first_row, rows.first_row);
    const uint32_t last = Min(tile.first_row + tile.n_rows, rows.first_row + rows.n_rows);
    if (first >= last) return;
    for (const LowRankBlock& block : change.blocks) {
      LowRankArgs b = BOf(change, block, rows);
      float* ranks = RanksOf(rows) + block.first_rank + (first - rows.first_row) * b.x_stride;
      b.x = ranks;
      b.n_rows = last - first;
      state_.simd.low_rank_int8.round(b, reinterpret_cast<std::byte*>(ranks),
                                      b.x_stride * sizeof(float));
    }
  }
  // The rows that a tile of the input has of these, times panels [begin, end).
  void TileTimesA(const LowRankArgs& a, const AdaptedRows& rows, const QuantizedInput& input,
                  uint32_t i, uint32_t begin, uint32_t end, const std::byte* ahead) const {
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
      state_.simd.low_rank_int8.a(part);
    }
  }

  const State& state_;
  const Value &in_, &out_;
  const WeightId weight_;
};

// The changes of a matrix in a run, each of whose rows has one at most. They are looked up once for
// all parts of the output: the tables they are in leave the caches while the matrix passes through.
class ChangesOfRun {
 public:
  // A change of consecutive rows.
  struct Rows {
    AdaptedRows rows;
    const LowRank* change;
    float scale;
  };
  // Columns that a block of a change is added to.
  struct Columns {
    uint32_t first, n;
    LowRankArgs b;   // of all of them
    RankRows ranks;  // none: to be rounded for each part
  };

  // Returns false if there are none, or they cannot be added to parts of the output, or are too
  // many.
  bool Find(const State& state, const AdaptStep& step, WeightId weight, const RunArgs& args) {
    // Parts of the output must begin where panels of all blocks do.
    const uint32_t nr = state.gemm.For(state.program->weights[weight])->columns();
    bool fits = nr % kLowRankColumns == 0;
    ForAdaptedRows(args, [&](const AdaptedRows& rows) {
      bool is_changed = false;
      for (const ActiveAdapter& active : rows.adapters) {
        const LowRank* change = active.adapter->Of(weight);
        if (change == nullptr) continue;
        fits = fits && !is_changed && Add(step, {rows, change, active.scale});
        is_changed = true;
      }
    });
    return fits && n_rows_ > 0;
  }

  // Rounds the ranks of a few rows.
  void RoundRanks(const State& state) {
    uint64_t used = 0;
    for (uint32_t i = 0; i < n_columns_; ++i) {
      Columns& c = columns_[i];
      if (c.b.dtype != DType::kInt8 || c.ranks.first != nullptr) continue;
      const auto n_chunks = static_cast<size_t>(CeilDiv(c.b.inputs, kRankChunk));
      const uint64_t n = uint64_t{c.b.n_rows} * n_chunks;
      if (used + n > kMostRounded) continue;
      auto* to = reinterpret_cast<std::byte*>(rounded_ + used);
      c.ranks = {to, n_chunks * sizeof(RoundedRanks)};
      state.simd.low_rank_int8.round(c.b, to, c.ranks.stride);
      used += n;
    }
  }

  Span<const Rows> rows() const { return {rows_, n_rows_}; }
  Span<const Columns> columns() const { return {columns_, n_columns_}; }

  // Beginnings of A of the next changed matrix, in the order of the rows.
  void AddNext(const LowRank& change) {
    if (n_next_ == kMostRows) return;
    const uint64_t bytes = LowRankABytes(change.dtype, change.rank, change.cols);
    next_[n_next_++] = {change.a, static_cast<size_t>(Min(bytes, kPrefetchBytes))};
  }
  Span<const Span<const std::byte>> next() const { return {next_, n_next_}; }

 private:
  static constexpr uint32_t kMostRows = 16, kMostColumns = 48, kMostRounded = 12;

  bool Add(const AdaptStep& step, const Rows& rows) {
    const Span<const LowRankBlock> blocks = rows.change->blocks;
    if (n_rows_ == kMostRows || blocks.size() > kMostColumns - n_columns_) return false;
    rows_[n_rows_++] = rows;
    for (const LowRankBlock& block : blocks) {
      if (block.first_row % kLowRankColumns != 0) return false;
      const LowRankArgs b = step.BOf(*rows.change, block, rows.rows);
      columns_[n_columns_++] = {block.first_row, block.n_rows, b,
                                step.RoundedRanksOf(*rows.change, b, rows.rows)};
    }
    return true;
  }

  uint32_t n_rows_ = 0, n_columns_ = 0, n_next_ = 0;
  Span<const std::byte> next_[kMostRows];
  Rows rows_[kMostRows];
  Columns columns_[kMostColumns];
  RoundedRanks rounded_[kMostRounded];
};

// AroundMatmul of a changed matrix.
class AroundAdapted {
 public:
  AroundAdapted(const State& state, const AdaptStep& step, WeightId weight, const RunArgs& args,
                Span<const Step> next, ChangesOfRun* changes)
      : state_(state), step_(step), next_(next), changes_(changes) {
    const Program& program = *state.program;
    const Weight& matrix = program.weights[weight];
    share_ = static_cast<uint32_t>(CeilDiv(matrix.rows, state.threads.count()));
    const ChangesOfRun::Rows& first = changes->rows()[0];
    is_fused_ = first.rows.n_rows == RunRows(args) && first.change->dtype == DType::kInt8 &&
                state.gemm.For(matrix)->adds_changes && !program.splits_rows;
    is_lone_ = is_fused_ && RunRows(args) == 1;
  }

  AroundMatmul Calls() const {
    return {Begin, IsFused() || !next_.empty() ? Before : nullptr, AddColumns, this};
  }

 private:
  // Progress of A's product. A lone row's is computed by the first thread that comes to it, while
  // the others begin with the matrix.
  enum Progress : uint32_t { kUnbegun, kBegun, kDone, kLookedAhead };

  // True if the matmul's kernel adds the changes.
  bool IsFused() const { return kAddsChanges && is_fused_; }
  // True if it does, and the run has one row.
  bool IsLone() const { return kAddsChanges && is_lone_; }

  // Looks up the A that the next changed matrix begins with: it follows few other bytes.
  void LookAhead() const {
    for (const Step& following : next_) {
      const auto* linear = following.If<LinearParams>();
      if (linear == nullptr) continue;
      for (const ChangesOfRun::Rows& r : changes_->rows()) {
        for (const ActiveAdapter& active : r.rows.adapters) {
          const LowRank* change = active.adapter->Of(linear->weight);
          if (change == nullptr) continue;
          changes_->AddNext(*change);
          // Read next: what adds it to its matrix, and, likely, the change of the matrix after it.
          __builtin_prefetch(change->blocks.data());
          __builtin_prefetch(change + 1);
        }
      }
      return;
    }
  }

  static void Begin(const void* context, const QuantizedInput& input) {
    const auto& self = *static_cast<const AroundAdapted*>(context);
    if (self.IsLone()) {
      self.input_ = input;
    } else {
      for (const ChangesOfRun::Rows& r : self.changes_->rows()) {
        self.step_.MultiplyA(*r.change, r.scale, r.rows, input);
      }
      self.changes_->RoundRanks(self.state_);
      self.LookAhead();
      self.progress_.store(kLookedAhead, std::memory_order_relaxed);
    }
    if (!self.next_.empty()) RequestPrefetch(self.state_, self.next_);
  }

  // Calls visit(columns, begin, end) for panels [begin, end) of blocks in columns
  // [first, first + n).
  template <typename Visit>
  void ForBlocks(uint32_t first, uint32_t n, const Visit& visit) const {
    for (const ChangesOfRun::Columns& c : changes_->columns()) {
      const uint32_t begin = Max(first, c.first), end = Min(first + n, c.first + c.n);
      if (begin >= end) continue;
      visit(c, (begin - c.first) / kLowRankColumns, LowRankPanels(end - c.first));
    }
  }

  // Without a change to fuse, only called if the rows are few: of many, memory is a small part of
  // the time.
  static uint32_t Before(const void* context, const std::byte* panels, uint32_t first, uint32_t n,
                         TileChange* change) {
    const auto& self = *static_cast<const AroundAdapted*>(context);
    if (!self.IsFused()) {
      self.PrefetchColumns(first, n);
      return n;
    }
    if (self.MakeRanks(panels)) return self.Fuse(first, n, change);
    // Another thread makes them: they are waited for when the columns are complete.
    self.PrefetchB(first, n);
    return n;
  }

  // Returns true if there are the ranks of a lone row. panels: of the matrix, which are read next.
  bool MakeRanks(const std::byte* panels) const {
    uint32_t progress = progress_.load(std::memory_order_acquire);
    if (progress != kUnbegun) return progress >= kDone;
    if (!progress_.compare_exchange_strong(progress, kBegun, std::memory_order_relaxed)) {
      return false;
    }
    const ChangesOfRun::Rows& r = changes_->rows()[0];
    step_.MultiplyRowByA(*r.change, r.scale, r.rows, input_, panels);
    changes_->RoundRanks(state_);
    progress_.store(kDone, std::memory_order_release);
    LookAhead();
    progress_.store(kLookedAhead, std::memory_order_release);
    return true;
  }

  // Lets the kernel add the change of the first columns, the same for all rows, and returns how
  // many it has.
  uint32_t Fuse(uint32_t first, uint32_t n, TileChange* change) const {
    for (const ChangesOfRun::Columns& c : changes_->columns()) {
      const uint32_t end = c.first + c.n;
      if (first >= end) continue;
      if (first < c.first) return Min(n, c.first - first);
      const bool fits = end >= first + n || end % kLowRankColumns == 0;
      if (c.ranks.first == nullptr || c.b.inputs > kRankChunk || !fits) return n;
      const uint64_t panel = (first - c.first) / kLowRankColumns;
      change->panel_bytes = LowRankPanelBytes(DType::kInt8, c.b.inputs);
      change->panels = c.b.panels + panel * change->panel_bytes;
      change->scales = c.b.scales + panel;
      change->ranks = c.ranks;
      change->n_ranks = static_cast<uint32_t>(change->panel_bytes / kLowRankColumns);
      Prefetch(change->panels, 2 * change->panel_bytes);
      if (first < share_ && progress_.load(std::memory_order_acquire) == kLookedAhead &&
          !changes_->next().empty()) {
        const Span<const std::byte> next = changes_->next()[0];
        const uint64_t each = CeilDiv(next.size(), CeilDiv(share_, kLowRankColumns));
        change->next_bytes = static_cast<uint32_t>(AlignUp(each, kLineBytes));
        change->next = next.data() + first / kLowRankColumns * change->next_bytes;
      }
      return Min(n, end - first);
    }
    return n;
  }

  // Its short pieces of memory would be waited for, between long ones of the matrix.
  void PrefetchB(uint32_t first, uint32_t n) const {
    ForBlocks(first, n, [](const ChangesOfRun::Columns& c, uint64_t begin, uint64_t end) {
      const uint64_t bytes = LowRankPanelBytes(c.b.dtype, c.b.inputs);
      Prefetch(c.b.panels + begin * bytes, Min((end - begin) * bytes, kPrefetchBytes));
    });
  }
  void PrefetchColumns(uint32_t first, uint32_t n) const {
    PrefetchB(first, n);
    if (first >= share_) return;
    // A little at a time: a long burst would be dropped, or waited for.
    for (const Span<const std::byte>& a : changes_->next()) {
      const uint64_t lines = a.size() / kLineBytes, end = Min(first + n, share_);
      const uint64_t begin = lines * first / share_;
      Prefetch(a.data() + begin * kLineBytes, (lines * end / share_ - begin) * kLineBytes);
    }
  }

  static void AddColumns(const void* context, uint32_t first, uint32_t n) {
    const auto& self = *static_cast<const AroundAdapted*>(context);
    if (self.IsLone()) {
      while (self.progress_.load(std::memory_order_acquire) < kDone) std::this_thread::yield();
    }
    self.ForBlocks(first, n, [&](const ChangesOfRun::Columns& c, uint64_t begin, uint64_t end) {
      self.step_.Multiply(c.b, c.ranks, begin, end);
    });
  }

  const State& state_;
  const AdaptStep& step_;
  const Span<const Step> next_;
  ChangesOfRun* const changes_;
  uint32_t share_;  // columns that the calling thread begins with
  bool is_fused_, is_lone_;
  mutable QuantizedInput input_;
  mutable std::atomic<uint32_t> progress_{kUnbegun};
};

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
  const AdaptStep step(state, adapt);
  ChangesOfRun changes;
  if (!changes.Find(state, step, p.weight, args)) return false;
  const Program& program = *state.program;
  const float* in = state.memory.As<float>(program.values[linear.in].slice);
  float* out = state.memory.As<float>(program.values[linear.out].slice);
  Observe(args, p.weight, in, RunRows(args), p.accumulate ? out : nullptr);
  const AroundAdapted adapted(state, step, p.weight, args, next, &changes);
  Matmul(state, p.weight, in, RunRows(args), p.accumulate, out, adapted.Calls());
  return true;
}

}  // namespace arn::cpu

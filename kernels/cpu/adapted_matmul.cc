// A kLinear and the kAdapt behind it in one pass over the matrix.
#include <atomic>
#include <thread>

#include "kernels/contract/check.h"
#include "kernels/cpu/adapt_step.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// At most this much is prefetched at a time: a part of an L2 cache.
constexpr uint64_t kPrefetchBytes = 32 * 1024;
constexpr uint64_t kLineBytes = 64;

// Into an L2 cache: the matrix passes through L1, whose few slots for misses it needs, too.
void Prefetch(const std::byte* data, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(data + i, 0, 2);
  // Otherwise GCC takes this for a function without effects, and leaves the calls out.
  asm volatile("");
}

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
      if (!IsIntegerLowRank(c.b.dtype) || c.ranks.first != nullptr) continue;
      const auto n_chunks = static_cast<size_t>(CeilDiv(c.b.inputs, kRankChunk));
      const uint64_t n = uint64_t{c.b.n_rows} * n_chunks;
      if (used + n > kMostRounded) continue;
      auto* to = reinterpret_cast<std::byte*>(rounded_ + used);
      c.ranks = {to, n_chunks * sizeof(RoundedRanks)};
      state.simd.low_rank_integer.round(c.b, to, c.ranks.stride);
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
    is_fused_ = first.rows.n_rows == RunRows(args) && IsIntegerLowRank(first.change->dtype) &&
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
      change->dtype = c.b.dtype;
      change->panel_bytes = LowRankPanelBytes(c.b.dtype, c.b.inputs);
      change->panels = c.b.panels + panel * change->panel_bytes;
      change->scales = c.b.scales + panel;
      change->ranks = c.ranks;
      change->n_ranks = static_cast<uint32_t>(AlignUp(c.b.inputs, kLowRankInputs));
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

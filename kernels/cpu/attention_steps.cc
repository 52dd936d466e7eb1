// Attention steps: split queries and tokens into tasks for the threads.
#include "kernels/contract/check.h"
#include "kernels/cpu/cpu_plan.h"
#include "kernels/cpu/cpu_state.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// Tasks per thread below which a tile's tokens are split into segments too.
constexpr uint32_t kTasksPerThread = 4;
// Records from which merging them takes longer than waking the threads for it.
constexpr size_t kRecordsToShare = 128;

const float* VectorOf(const State& state, WeightId id) {
  return id == kNoWeight ? nullptr
                         : reinterpret_cast<const float*>(state.program->weights[id].data);
}

// Returns the fields common to all tiles of a step.
AttentionTile BaseTile(const State& state, const Step& step, const AttentionKind& kind,
                       WeightId relative_position_bias) {
  const Program& program = *state.program;
  AttentionTile base = {};
  base.kind = &kind;
  base.n_heads = kind.n_heads / kind.n_kv_heads;
  base.q_stride = program.values[step.in].width;
  base.out_stride = program.values[step.out].width;
  base.relative_position_bias = VectorOf(state, relative_position_bias);
  if (base.relative_position_bias != nullptr) {
    base.n_relative_positions = program.weights[relative_position_bias].rows;
  }
  return base;
}

uint32_t TileRows(const AttentionKind& kind) {
  return Max<uint32_t>(1, AttentionTileQueries(kind) / (kind.n_heads / kind.n_kv_heads));
}

// Splits the rows of the longest sequence into tiles of one size, so that threads end together.
uint32_t EvenTileRows(const AttentionKind& kind, const RunArgs& args) {
  uint32_t longest = 1;
  for (const SequenceRows& s : args.sequences) longest = Max(longest, s.n_rows);
  return static_cast<uint32_t>(CeilDiv(longest, CeilDiv(longest, TileRows(kind))));
}

uint32_t SegmentsOf(const AttentionTile& tile) {
  return (AttentionEnd(tile) - 1) / kAttentionSegment - AttentionFirst(tile) / kAttentionSegment +
         1;
}

class AttentionRunner {
 public:
  AttentionRunner(const State& state, const Step& step, const AttentionParams& p,
                  const RunArgs& args)
      : state_(state),
        args_(args),
        kind_(state.program->kinds[p.kind]),
        tile_rows_(EvenTileRows(kind_, args)),
        q_(state.memory.As<float>(state.program->values[step.in].slice)),
        out_(state.memory.As<float>(state.program->values[step.out].slice)),
        base_(BaseTile(state, step, kind_, p.relative_position_bias)) {
    base_.sinks = VectorOf(state, p.sinks);
    const KvGroup& group = state.program->kv_groups[kind_.group];
    base_.group = &group;
    base_.pools = KvPoolsOf(group, state.memory);
    base_.group_layer = p.group_layer;
    if (group.k_type == DType::kInt8 && group.v_type == DType::kInt8) {
      base_.dot = state.simd.int8_dot;
    }
    for (const SequenceRows& s : args.sequences) {
      n_tiles_ += static_cast<uint32_t>(CeilDiv(s.n_rows, tile_rows_));
      longest_tile_ = Max(longest_tile_, Min(s.n_rows, tile_rows_));
    }
  }

  void Run() {
    const uint32_t n_tasks = n_tiles_ * kind_.n_kv_heads;
    const uint32_t n_segments = SegmentsToShare(n_tasks);
    if (n_segments > 1) return RunSegments(n_tasks, n_segments);
    state_.threads.ForEach(n_tasks, [&](size_t thread, size_t task) {
      if (IsCut(state_)) return;
      // Late tiles attend to the most tokens, so they go first.
      AttentionTile tile = TileAt(n_tiles_ - 1 - task / kind_.n_kv_heads, task % kind_.n_kv_heads);
      tile.scratch = ScratchOf(thread);
      state_.simd.attention(tile);
    });
  }

 private:
  // One task per segment of a tile's tokens.
  void RunSegments(uint32_t n_tasks, uint32_t n_segments) {
    const size_t records = size_t{n_segments} * longest_tile_ * base_.n_heads;
    auto tile_of = [&](size_t task, size_t thread) {
      AttentionTile tile = TileAt(task / kind_.n_kv_heads, task % kind_.n_kv_heads);
      tile.scratch = ScratchOf(thread);
      tile.partials = state_.partials + task * records * AttentionPartialFloats(kind_);
      return tile;
    };
    state_.threads.ForEach(size_t{n_tasks} * n_segments, [&](size_t thread, size_t i) {
      if (IsCut(state_)) return;
      AttentionTile tile = tile_of(i / n_segments, thread);
      const size_t segment = i % n_segments;
      if (segment >= SegmentsOf(tile)) return;
      tile.partials += segment * tile.n_rows * tile.n_heads * AttentionPartialFloats(kind_);
      tile.segment = AttentionFirst(tile) / kAttentionSegment + static_cast<uint32_t>(segment);
      state_.simd.attention(tile);
    });
    const auto merge = [&](size_t thread, size_t task) {
      const AttentionTile tile = tile_of(task, thread);
      state_.simd.merge_attention(tile, SegmentsOf(tile));
    };
    if (n_tasks * records >= kRecordsToShare) return state_.threads.ForEach(n_tasks, merge);
    for (uint32_t task = 0; task < n_tasks; ++task) merge(0, task);
  }

  // Returns the number of segments of the longest tile if there are too few tasks for the threads,
  // else 1.
  uint32_t SegmentsToShare(uint32_t n_tasks) const {
    const uint32_t n_threads = state_.threads.count();
    if (n_threads == 1 || n_tasks >= kTasksPerThread * n_threads) return 1;
    uint32_t most = 1;
    for (uint32_t i = 0; i < n_tiles_; ++i) most = Max(most, SegmentsOf(TileAt(i, 0)));
    const uint64_t records = uint64_t{n_tasks} * most * longest_tile_ * base_.n_heads;
    return records * AttentionPartialFloats(kind_) <= state_.partial_floats ? most : 1;
  }

  std::byte* ScratchOf(size_t thread) const {
    return state_.scratch + thread * state_.thread_scratch_bytes;
  }

  AttentionTile TileAt(size_t tile, size_t kv_head) const {
    const SequenceRows* s = args_.sequences.data();
    for (; tile >= CeilDiv(s->n_rows, tile_rows_); ++s) tile -= CeilDiv(s->n_rows, tile_rows_);
    const auto first = static_cast<uint32_t>(tile) * tile_rows_;
    AttentionTile a = base_;
    a.table = &s->tables[kind_.group];
    a.encoder_rows = s->encoder_rows;
    if (!kind_.is_cross_attention) a.visible = VisibleFrom(args_, *s, s->first_row + first);
    a.kv_head = static_cast<uint32_t>(kv_head);
    a.first_head = a.kv_head * a.n_heads;
    a.first_position = s->first_position + first;
    a.n_rows = Min(tile_rows_, s->n_rows - first);
    a.q = q_ + (s->first_row + first) * base_.q_stride;
    a.out = out_ + (s->first_row + first) * base_.out_stride;
    return a;
  }

  const State& state_;
  const RunArgs& args_;
  const AttentionKind& kind_;
  const uint32_t tile_rows_;
  const float* q_;
  float* out_;
  AttentionTile base_;
  uint32_t n_tiles_ = 0;
  uint32_t longest_tile_ = 0;  // in rows
};

}  // namespace

// Segments of the heads of the rows that decode, a tile of them at most: a prompt has more tiles.
uint64_t PartialFloats(const Program& program, uint32_t n_threads) {
  uint64_t floats = 0;
  if (n_threads == 1) return floats;
  for (const AttentionKind& kind : program.kinds) {
    if (kind.n_heads == 0 || kind.group == kNoGroup) continue;
    if (kind.n_kv_heads >= kTasksPerThread * n_threads) continue;
    const uint32_t positions =
        kind.is_cross_attention ? program.max_encoder_rows : program.max_context;
    const uint64_t segments = CeilDiv(positions, kAttentionSegment);
    if (segments == 1) continue;
    const uint64_t rows = Min(Max(program.max_logit_rows, 1u), TileRows(kind));
    floats = Max(floats, segments * rows * kind.n_heads * AttentionPartialFloats(kind));
  }
  return floats;
}

void RunAttention(const State& state, const Step& step, const RunArgs& args) {
  AttentionRunner(state, step, step.Get<AttentionParams>(), args).Run();
}

void RunSelfAttention(const State& state, const Step& step, const RunArgs& args) {
  const Program& program = *state.program;
  const auto& p = step.Get<SelfAttentionParams>();
  const AttentionKind& kind = program.kinds[p.kind];
  const AttentionTile base = BaseTile(state, step, kind, p.relative_position_bias);
  const uint32_t tile_rows = TileRows(kind);
  const auto* qkv = state.memory.As<float>(program.values[step.in].slice);
  auto* out = state.memory.As<float>(program.values[step.out].slice);
  const uint64_t k_offset = uint64_t{kind.n_heads} * kind.head_dim;
  const uint64_t v_offset = k_offset + uint64_t{kind.n_kv_heads} * kind.head_dim;
  const Span<const SequenceRows> parts = AttentionParts(args, kind);
  size_t n_tiles = 0;
  for (const SequenceRows& s : parts) n_tiles += CeilDiv(s.n_rows, tile_rows);
  state.threads.ForEach(n_tiles * kind.n_kv_heads, [&](size_t thread, size_t task) {
    if (IsCut(state)) return;
    size_t tile = task / kind.n_kv_heads;
    const SequenceRows* s = parts.data();
    for (; tile >= CeilDiv(s->n_rows, tile_rows); ++s) tile -= CeilDiv(s->n_rows, tile_rows);
    const float* rows = qkv + uint64_t{s->first_row} * base.q_stride;
    AttentionTile a = base;
    a.encoder_rows = s->n_rows;
    a.kv_head = static_cast<uint32_t>(task % kind.n_kv_heads);
    a.first_head = a.kv_head * a.n_heads;
    a.first_position = static_cast<uint32_t>(tile) * tile_rows;
    a.n_rows = Min(tile_rows, s->n_rows - a.first_position);
    a.k_rows = rows + k_offset + uint64_t{a.kv_head} * kind.head_dim;
    a.v_rows = rows + v_offset + uint64_t{a.kv_head} * kind.head_dim;
    a.q = rows + a.first_position * base.q_stride;
    a.out = out + (s->first_row + a.first_position) * base.out_stride;
    a.scratch = state.scratch + thread * state.thread_scratch_bytes;
    state.simd.attention(a);
  });
}

}  // namespace arn::cpu

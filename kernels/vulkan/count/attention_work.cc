// Work of shaders/attention.comp, attention_tile.comp and attention_coop.comp on a sequence's
// pages.
#include "kernels/vulkan/count/dispatch_work.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

// Multiplications of a score in shaders/attention_coop.comp: by its scales, exp_f32(), by the
// value's scale.
constexpr uint64_t kScoreProducts = 2 + 11 + 2;

class Attention {
 public:
  Attention(const Dispatch& d, uint32_t rows, const WorkContext& context)
      : d_(d),
        c_(d.constants),
        push_(d.Push<AttentionPush>()),
        rows_(rows),
        run_(context.run),
        first_position_(context.run.n_before),
        dim_(c_[kKvHeadDimId]),
        quads_(CeilDiv(dim_, uint64_t{4})),
        heads_(c_[kAttentionHeadsId]),
        kv_heads_(c_[kAttentionKvHeadsId]) {
    // Pages before the run's are quantised.
    const uint64_t page = c_[kKvPageTokensId];
    if (c_[kKvHasQuantisedId] == 1) quantised_end_ = first_position_ / page * page;
  }

  // A workgroup has a row and some query heads; its invocations first have a key each, then
  // channels.
  KernelWork OfRows() const {
    const uint64_t width = c_[kWidthId], groups = d_.groups_x;
    KernelWork w;
    for (uint32_t row = 0; row < rows_; ++row) {
      const Keys seen = SeenBy(row);
      const uint64_t segments = CountOf(seen);
      const bool is_shared = segments > 1 && IsSplit();
      const uint64_t record = (c_[kAttendPerLaneId] * width + 1) * 16;
      if (c_[kAttentionIsMergeId] == 1) {
        if (segments <= 1) continue;
        // All invocations read the last part of a record.
        w.loaded += heads_ * (segments * (record - 16 + width * 16) + Sinks(width));
        w.stored += heads_ * dim_ * 4;
        w.least += heads_ * (segments * record + dim_ * 4);
        continue;
      }
      const uint64_t parts = is_shared ? segments : 1;
      const uint64_t keys = Loaded(true, seen) + SlotScales(true, seen);
      const uint64_t values = Loaded(false, seen) + SlotScales(false, seen);
      w.loaded += heads_ * parts * (dim_ * 4 + Sinks(width)) + groups * (keys + values);
      if (c_[kAttentionHasBiasId] == 1) w.loaded += heads_ * seen.size() * 4;
      w.far_loaded += kv_heads_ * (keys + values);
      w.stored += heads_ * (is_shared ? segments * record : dim_ * 4);
      if (is_shared && c_[kAttentionMergesId] == 1) {
        w.loaded += heads_ * segments * (record - 16 + width * 16);
        w.stored += heads_ * dim_ * 4 + groups * kArrivalBytes;
        w.least += heads_ * segments * record;
      }
      if (c_[kAttentionQuantizesId] == 1) {
        w.loaded += 2 * heads_ * dim_ * 4;
        w.stored += QuantisedRowBytes(push_.row_words) + kArrivalBytes;
        w.reductions += 2;
      }
      w.float_products += 2 * heads_ * seen.size() * quads_ * 4;
      w.reductions += 2 * heads_ * CeilDiv(seen.size(), width);
    }
    if (c_[kAttentionIsMergeId] == 0) AddOperands(&w);
    return w;
  }

  // A workgroup has a tile of rows and of query heads that share a key and value head.
  KernelWork OfTiles() const {
    const uint64_t width = c_[kWidthId], pairs = c_[kAttentionPairsId];
    const uint64_t tile_keys = c_[kAttentionKeysId], tile_rows = c_[kAttentionTileRowsId];
    const uint64_t in_quads = c_[kAttentionInQuadsId];
    const uint64_t query = in_quads == 1 ? quads_ * 16 : dim_ * 4;
    const uint64_t quads_per_lane = CeilDiv(quads_, width / (pairs / 4));
    KernelWork w;
    for (uint32_t first = 0; first < rows_; first += static_cast<uint32_t>(tile_rows)) {
      const uint32_t n = RowsFrom(first);
      const bool keeps = c_[kAttentionKeepsQueriesId] == 1;
      if (keeps) w.loaded += d_.groups_x * pairs * query;
      // Rows of one part after another.
      for (uint32_t row = first, next = first; row < first + n; row = next) {
        next = Min(first + n, EndOfPart(row));
        const Keys keys = {SeenBy(row).first, SeenBy(next - 1).end};
        const uint64_t tiles = CeilDiv(keys.end, tile_keys) - keys.first / tile_keys;
        // Each quad of a key or value comes with its scale.
        const uint64_t kv = Loaded(true, keys) + Loaded(false, keys) +
                            quads_ * (SlotScales(true, keys) + SlotScales(false, keys));
        w.loaded += d_.groups_x * (kv + (keeps ? 0 : tiles * width * 4 * query));
        w.far_loaded += d_.groups_x * kv;
        w.float_products +=
            d_.groups_x * tiles * tile_keys * (pairs * 4 * quads_ + width * quads_per_lane * 16);
      }
      // Each pair's invocations read its sink.
      w.loaded += n * heads_ * Sinks(width / pairs);
      AddBias(first, n, &w);
    }
    w.stored = rows_ * heads_ * dim_ * 4;
    AddOperands(&w);
    return w;
  }

  // The same with cooperative matrices. Heads are padded to 16 channels; each key and value comes
  // with its scale, once.
  KernelWork OfMatrices() const {
    const uint64_t width = c_[kWidthId], pairs = c_[kAttentionPairsId];
    const uint64_t tile_keys = c_[kAttentionKeysId], dim = AlignUp(dim_, 16);
    const uint64_t query = c_[kAttentionInQuadsId] == 1 ? quads_ * 16 : dim_ * 4;
    KernelWork w;
    for (uint32_t first = 0; first < rows_; first += c_[kAttentionTileRowsId]) {
      const uint32_t n = RowsFrom(first);
      const Keys keys = {SeenBy(first).first, SeenBy(first + n - 1).end};
      const uint64_t tiles = CeilDiv(keys.end, tile_keys) - keys.first / tile_keys;
      const uint64_t kv = Loaded(true, keys) + Loaded(false, keys) + SlotScales(true, keys) +
                          SlotScales(false, keys);
      // Queries are read for their largest element, and again.
      w.loaded += d_.groups_x * (kv + 2 * pairs * query) + n * heads_ * Sinks(width / pairs);
      w.far_loaded += d_.groups_x * kv;
      const uint64_t scores = d_.groups_x * tiles * tile_keys * pairs;
      w.half_matrix_products += 2 * scores * dim;
      w.float_products += scores * kScoreProducts + d_.groups_x * tiles * pairs * dim;
      AddBias(first, n, &w);
    }
    w.stored = rows_ * heads_ * dim_ * 4;
    AddOperands(&w);
    return w;
  }

 private:
  struct Keys {
    uint64_t first = 0, end = 0;
    uint64_t size() const { return end - first; }
  };

  // Rows of the tile that begins with row `first`.
  uint32_t RowsFrom(uint32_t first) const {
    return static_cast<uint32_t>(Min<uint64_t>(c_[kAttentionTileRowsId], rows_ - first));
  }
  void AddBias(uint32_t first, uint32_t n, KernelWork* w) const {
    if (c_[kAttentionHasBiasId] != 1) return;
    for (uint32_t row = first; row < first + n; ++row) w->loaded += heads_ * SeenBy(row).size() * 4;
  }
  bool IsSelf() const { return c_[kAttentionIsSelfId] == 1; }
  // Rows of the encoder's run that see each other: those of a part.
  uint64_t PartRows() const {
    const bool has_parts = c_[kAttentionHasPartsId] == 1 && run_.part_rows != 0;
    return has_parts ? run_.part_rows : run_.n_rows;
  }
  uint32_t EndOfPart(uint32_t row) const {
    if (!IsSelf()) return UINT32_MAX;
    const uint64_t at = uint64_t{d_.first_row} + row, part = PartRows();
    return static_cast<uint32_t>((at / part + 1) * part - d_.first_row);
  }
  Keys SeenInPart(uint32_t row) const {
    const uint64_t at = uint64_t{d_.first_row} + row, part = PartRows(), from = at / part * part;
    const uint64_t position = at - from;
    uint64_t first = 0, end = Min(part, run_.n_rows - from);
    if (c_[kAttentionIsCausalId] == 1) end = position + 1;
    if (push_.window != 0) {
      if (position >= push_.window) first = position - push_.window + 1;
      end = Min(end, position + push_.window);
    }
    return {from + first, from + end};
  }
  // As seen_by() of shaders/attention.glsl.
  Keys SeenBy(uint32_t row) const {
    if (IsSelf()) return SeenInPart(row);
    if (c_[kAttentionIsCrossId] == 1) return {0, run_.encoder_rows};
    const uint64_t position = first_position_ + row;
    uint64_t first = 0;
    if (push_.window != 0 && position >= push_.window) first = position - push_.window + 1;
    if (push_.chunk != 0) first = Max(first, position - position % push_.chunk);
    return {first, position + 1};
  }
  uint64_t CountOf(const Keys& keys) const {
    const uint64_t segment = c_[kAttentionSegmentId];
    return CeilDiv(keys.end, segment) - keys.first / segment;
  }
  // False if the grid has one segment for each row.
  bool IsSplit() const { return d_.segments.may_share() && rows_ <= d_.segments.max_rows; }
  uint64_t Sinks(uint64_t invocations) const {
    return c_[kAttentionHasSinksId] == 1 ? invocations * 4 : 0;
  }

  uint32_t BitsOf(bool keys) const { return c_[keys ? kKvQuantisedKBitsId : kKvQuantisedVBitsId]; }
  uint32_t TypeOf(bool keys) const { return c_[keys ? kKvKTypeId : kKvVTypeId]; }
  uint64_t Quantised(const Keys& keys) const {
    return Min(keys.end, quantised_end_) - Min(keys.first, quantised_end_);
  }
  // Bytes that are loaded for all channels of the keys, or values, of one head: kv_elements().
  uint64_t Loaded(bool is_keys, const Keys& keys) const {
    const uint64_t quantised = BitsOf(is_keys) == 0 ? 0 : Quantised(keys);
    const uint32_t type = TypeOf(is_keys);
    uint64_t row = dim_ * 4;  // a word for each channel
    if (dim_ % 4 == 0) row = quads_ * (type == kTypeF32 ? 16 : type == kTypeF16 ? 8 : 4);
    // A word and a range for each channel; or a word for four, and their ranges.
    uint64_t quantised_row = dim_ * 8;
    const uint64_t bits = BitsOf(is_keys), group = c_[kKvGroupSizeId];
    if (bits != 0 && dim_ * bits % 32 == 0 && (is_keys || group % 4 == 0)) {
      quantised_row = quads_ * (is_keys ? 20 : 8);
    }
    return (keys.size() - quantised) * row + quantised * quantised_row;
  }
  uint64_t SlotScales(bool is_keys, const Keys& keys) const {
    if (TypeOf(is_keys) != kTypeInt8) return 0;
    return 4 * (keys.size() - (BitsOf(is_keys) == 0 ? 0 : Quantised(keys)));
  }
  // Bytes of the pages.
  uint64_t Stored(bool is_keys, const Keys& keys) const {
    // Rows of self attention have no pages, and 0 for their groups.
    const uint64_t bits = BitsOf(is_keys), group = Max(c_[kKvGroupSizeId], 1u);
    const uint64_t quantised = bits == 0 ? 0 : Quantised(keys);
    const uint32_t type = TypeOf(is_keys);
    const uint64_t row = dim_ * (type == kTypeF32   ? 4
                                 : type == kTypeF16 ? 2
                                                    : 1) +
                         (type == kTypeInt8 ? 4 : 0);
    const uint64_t pairs = is_keys ? dim_ * 4 / group : CeilDiv(dim_, group) * 4;
    return (keys.size() - quantised) * row + quantised * (dim_ * bits / 8 + pairs);
  }
  // Queries, outputs, and all keys and values that any row sees.
  void AddOperands(KernelWork* w) const {
    const Keys all = {SeenBy(0).first, SeenBy(rows_ - 1).end};
    const bool has_values = IsSelf() || push_.active_pool.v_at != 0;
    w->far_bytes = kv_heads_ * (Stored(true, all) + (has_values ? Stored(false, all) : 0));
    w->least += w->far_bytes + 2 * rows_ * heads_ * dim_ * 4;
    if (c_[kAttentionQuantizesId] == 1 && d_.shader == Shader::kAttention) {
      w->least += rows_ * QuantisedRowBytes(push_.row_words);
    }
  }

  const Dispatch& d_;
  const uint32_t* const c_;
  const AttentionPush push_;
  const uint64_t rows_;
  const CountedRun run_;
  const uint64_t first_position_, dim_, quads_, heads_, kv_heads_;
  uint64_t quantised_end_ = 0;
};

}  // namespace

void AddEndingAttention(const Dispatch& matmul, const WorkContext& context, KernelWork* work) {
  const uint32_t* c = matmul.constants;
  // As in a dispatch of its own with a workgroup for each key and value head.
  Dispatch d;
  d.shader = Shader::kAttention;
  for (uint32_t id = kKvWindowsId; id <= kKvHasQuantisedId; ++id) d.constants[id] = c[id];
  d.constants[kWidthId] = c[kWidthId];
  d.constants[kAttendPerLaneId] = c[kAttendPerLaneId];
  d.constants[kAttentionHeadsId] = c[kQkvHeadsId];
  d.constants[kAttentionKvHeadsId] = c[kQkvKvHeadsId];
  d.constants[kAttentionSegmentId] = kAttentionSegment;
  d.constants[kAttentionQuantizesId] = 1;
  d.groups_x = c[kQkvKvHeadsId];
  const auto matmul_push = matmul.Push<MatmulPush>();
  AttentionPush push = {};
  push.active_pool.v_at = matmul_push.ARN_ROPE_V_AT;
  push.row_words = matmul_push.next_words;
  d.SetPush(push);
  const KernelWork attention = Attention(d, 1, context).OfRows();
  work->loaded += attention.loaded;
  work->stored += attention.stored + d.groups_x * kArrivalBytes;
  // Queries are outputs of the matmul, and so are those of attention, in their place.
  work->least += attention.least - 2 * uint64_t{c[kQkvHeadsId]} * c[kKvHeadDimId] * 4;
  work->float_products += attention.float_products;
  work->reductions += attention.reductions;
}

KernelWork AttentionWork(const Dispatch& d, uint32_t rows, const WorkContext& context) {
  const Attention attention(d, rows, context);
  return d.shader == Shader::kAttentionCoop   ? attention.OfMatrices()
         : d.shader == Shader::kAttentionTile ? attention.OfTiles()
                                              : attention.OfRows();
}

}  // namespace arn::vulkan

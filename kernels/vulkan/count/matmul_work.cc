// Work of shaders/gemv_*.comp and gemm_*.comp.
#include "kernels/vulkan/count/dispatch_work.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

constexpr uint32_t kQuad = 16, kFloat = 4;

class Matmul {
 public:
  Matmul(const Dispatch& d, uint32_t rows, const WorkContext& context)
      : d_(d),
        c_(d.constants),
        push_(d.Push<MatmulPush>()),
        rows_(rows),
        context_(context),
        n_chosen_(c_[kMatmulChosenId]),
        type_(c_[kMatmulTypeId]) {
    is_integer_ = type_ == kTypeInt8 || type_ == kTypeInt4;
    if (n_chosen_ != 0) SpreadOver(context.n_experts);
  }

  // Few rows: a workgroup has N_ROW rows and N_OUT outputs, and its invocations share the columns.
  KernelWork Gemv() const {
    const uint64_t n_row = c_[kMatmulRowsId], n_out = c_[kMatmulOutsId];
    const uint64_t teams = c_[kMatmulTeamsId], width = c_[kWidthId] / teams;
    const uint64_t row_groups = CeilDiv(uint64_t{experts_rows_}, n_row);
    const uint64_t groups = d_.groups_x * teams * row_groups;
    const uint64_t stride = is_integer_ ? c_[kMatmulStepsId] * width : width;
    const uint64_t quads = push_.row_quads;
    // Loads of a weight row by all invocations; those of further steps repeat its end.
    const uint64_t turns = quads / stride * width + Min(quads % stride, width);
    const uint64_t loads = is_integer_ ? c_[kMatmulStepsId] * turns : turns;
    KernelWork w;
    const uint64_t weights = loads * n_out * (kQuad + (type_ == kTypeInt4 ? 4 : 0));
    uint64_t inputs = n_row * uint64_t{push_.cols} * kFloat;
    if (is_integer_) inputs = loads * n_row * kQuad * (type_ == kTypeInt4 ? 2 : 1);
    w.loaded = groups * (weights + inputs);
    w.far_loaded = groups * weights;
    w.reductions = groups * n_row * n_out;
    AddProducts(groups * loads * n_row * n_out * ElementsPerQuad(), &w);
    // Each invocation looks up the expert, those of other bindings' experts too.
    if (n_chosen_ != 0) w.loaded += uint64_t{d_.groups_x} * rows_ * width * 4;
    AddOutputs(experts_rows_, &w);
    if (c_[kNextNormsId] == 1) AddNextNorm(c_, push_.out_stride, push_.next_words, rows_, &w);
    if (c_[kMatmulActivatesId] != 0 && c_[kNextQuantizesId] == 1) AddQuantised(&w);
    if (c_[kNextNormsId] == 1 || c_[kNextQuantizesId] == 1) {
      w.stored += row_groups * kArrivalBytes;
    }
    if (c_[kMatmulRotatesId] == 1) AddRotation(row_groups, &w);
    if (c_[kMatmulAttendsId] == 1) AddEndingAttention(d_, context_, &w);
    return w;
  }

  // Many rows: a workgroup has a tile of rows and outputs.
  KernelWork Gemm() const {
    const uint64_t tile_m = c_[kMatmulTileMId], tile_n = c_[kMatmulTileNId], width = c_[kWidthId];
    const uint64_t row_tiles = n_used_ * CeilDiv(uint64_t{list_rows_}, tile_m);
    const uint64_t tiles = d_.groups_x * row_tiles;
    KernelWork w;
    uint64_t weights, inputs, products;
    if (is_integer_) {
      const uint64_t blocks = c_[kMatmulBlocksId], stage_quads = 2 * blocks;
      const uint64_t stages = CeilDiv(uint64_t{push_.x_words} / 8, blocks);
      const uint64_t row_quads = type_ == kTypeInt4 ? blocks : stage_quads;
      weights = stages * CeilDiv(tile_n * row_quads, width) * width * kQuad;
      if (type_ == kTypeInt4) weights += stages * ScaleLoads() * 4;
      inputs = tile_m * push_.x_words * 4;
      products = stages * tile_m * tile_n * stage_quads * kQuad;
    } else {
      const uint64_t depth = c_[kMatmulDepthId], turns = CeilDiv(uint64_t{push_.cols}, depth);
      const uint64_t row_quads = depth / 4 / (type_ == kTypeF32 ? 1 : 2);
      weights = turns * CeilDiv(tile_n * row_quads, width) * width * kQuad;
      inputs = tile_m * push_.cols * kFloat;
      products = turns * tile_m * tile_n * depth;
    }
    w.loaded = tiles * (weights + inputs);
    if (d_.shader == Shader::kGemmHalf) {
      w.half_products = tiles * products;
      w.float_products = tiles * products / kHalfBlock;  // of the sums of blocks
    } else {
      AddProducts(tiles * products, &w);
    }
    if (n_chosen_ != 0) {
      // The lists' lengths, by all invocations of empty tiles too; and the tiles' rows.
      const uint64_t grid = d_.groups_x * CeilDiv(uint64_t{rows_}, tile_m) * push_.n_experts;
      w.loaded += (grid * width + uint64_t{d_.groups_x} * experts_rows_) * 4;
    }
    AddOutputs(experts_rows_, &w);
    // Neighbouring workgroups share the weights, or the inputs; the other operand is far.
    w.far_loaded = tiles * weights;
    if (c_[kMatmulRowsFirstId] == 1) {
      const uint64_t row = is_integer_ ? push_.x_words * 4 : push_.cols * kFloat;
      w.far_loaded = tiles * inputs;
      w.far_bytes = CeilDiv(uint64_t{experts_rows_}, uint64_t{c_[kMatmulRowsAnInputId]}) * row;
    }
    return w;
  }

 private:
  // Assumes that rows are spread evenly over the experts, of which the dispatch has some.
  void SpreadOver(uint32_t n_experts) {
    const bool is_tiled = d_.shader != Shader::kGemvInt && d_.shader != Shader::kGemvFloat;
    const uint64_t pairs = is_tiled ? uint64_t{rows_} * n_chosen_ : rows_;
    n_used_ = CeilDiv(Min<uint64_t>(pairs, n_experts) * push_.n_experts, n_experts);
    experts_rows_ = static_cast<uint32_t>(CeilDiv(pairs * push_.n_experts, n_experts));
    list_rows_ = static_cast<uint32_t>(CeilDiv(pairs, n_experts));
    n_matrices_ = n_used_;
  }

  uint64_t ElementsPerQuad() const {
    return type_ == kTypeF32 ? 4 : type_ == kTypeInt8 ? 16 : type_ == kTypeInt4 ? 32 : 8;
  }
  // Invocations of shaders/gemm_coop.comp each load a scale for a column of a matrix's rows.
  uint64_t ScaleLoads() const {
    const uint64_t blocks = c_[kMatmulBlocksId], tile_n = c_[kMatmulTileNId];
    if (d_.shader != Shader::kGemmCoop) return tile_n * blocks;
    const uint64_t width = c_[kWidthId];
    return blocks * width * CeilDiv(tile_n, Min(width, tile_n));
  }
  // Adds the quantisation that ends the rows, which are read again for their least and largest
  // element, and for the values.
  void AddQuantised(KernelWork* w) const {
    const uint64_t next = QuantisedRowBytes(push_.next_words);
    w->loaded += rows_ * 2 * uint64_t{push_.out_stride} * kFloat;
    w->stored += rows_ * next;
    w->least += rows_ * next;
    w->reductions += rows_ * 2;
  }
  // Adds the rotation that ends the heads, whose elements are those of the outputs.
  void AddRotation(uint64_t row_groups, KernelWork* w) const {
    const uint64_t kv_heads = c_[kQkvStoresId] == 1 ? c_[kQkvKvHeadsId] : 0;
    const uint64_t heads = c_[kQkvHeadsId] + 2 * kv_heads;
    const KernelWork rotation = RotationWork(d_, rows_, kv_heads, kv_heads);
    w->loaded += rotation.loaded;
    w->stored += rotation.stored + row_groups * heads * kArrivalBytes;
    w->least += rotation.least - 2 * rows_ * heads * c_[kKvHeadDimId] * kFloat;
    w->reductions += rotation.reductions;
  }
  void AddProducts(uint64_t n, KernelWork* w) const {
    (is_integer_ ? w->int_products : w->float_products) += n;
  }
  // Adds what each output loads and stores, and the operands' sizes.
  void AddOutputs(uint64_t out_rows, KernelWork* w) const {
    const bool accumulates = c_[kMatmulAccumulateId] == 1;
    // Bias, scales, zero points and sums of rows.
    const uint64_t heads = type_ == kTypeInt8 ? 20 : type_ == kTypeInt4 ? 16 : 4;
    const uint64_t n_outs = push_.n_outs, elements = out_rows * n_outs;
    w->loaded += elements * (heads + (accumulates ? kFloat : 0));
    // Gates and what they gate become one output.
    const uint64_t stored = elements / (c_[kMatmulActivatesId] == kActivatesPairs ? 2 : 1);
    w->stored += stored * kFloat;
    const uint64_t matrix =
        n_outs * (push_.row_quads * uint64_t{kQuad} + 4 * kRowHeadWords + 4 * push_.block_words);
    const uint64_t in_rows = CeilDiv(out_rows, uint64_t{c_[kMatmulRowsAnInputId]});
    w->far_bytes = n_matrices_ * n_outs * push_.row_quads * kQuad;
    w->least =
        n_matrices_ * matrix + stored * kFloat * (accumulates ? 2 : 1) +
        in_rows * (is_integer_ ? QuantisedRowBytes(push_.x_words) : uint64_t{push_.cols} * kFloat);
  }

  const Dispatch& d_;
  const uint32_t* const c_;
  const MatmulPush push_;
  const uint32_t rows_;
  const WorkContext& context_;
  const uint32_t n_chosen_;
  const uint32_t type_;
  bool is_integer_ = false;
  // With experts: those that have rows, their rows in all, and the rows of each.
  uint64_t n_used_ = 1, n_matrices_ = 1;
  uint32_t experts_rows_ = rows_, list_rows_ = rows_;
};

}  // namespace

KernelWork MatmulWork(const Dispatch& d, uint32_t rows, const WorkContext& context) {
  const Matmul matmul(d, rows, context);
  const bool is_tiled = d.shader != Shader::kGemvInt && d.shader != Shader::kGemvFloat;
  return is_tiled ? matmul.Gemm() : matmul.Gemv();
}

KernelWork HeadLinearWork(const Dispatch& d, uint32_t rows) {
  const auto push = d.Push<HeadLinearPush>();
  const uint32_t* c = d.constants;
  const uint32_t type = c[kHeadTypeId];
  const bool is_integer = type == kTypeInt8 || type == kTypeInt4;
  const uint64_t heads = push.n_heads, parts = c[kHeadPartsId], tile_rows = c[kHeadRowsId];
  const uint64_t n_outs = push.n_outs, group_outs = c[kWidthId] / parts * c[kHeadOutsId];
  const uint64_t groups = heads * d.groups_x * CeilDiv(uint64_t{rows}, tile_rows);
  const uint64_t quads = groups * group_outs * push.row_quads;
  const uint64_t outs = heads * n_outs * rows;
  // Bias; sums; scales.
  const uint64_t head_words = type == kTypeInt8 ? 3 : type == kTypeInt4 ? 2 : 1;
  const bool has_tails = d.groups_z > heads;
  const uint64_t copied =
      heads * push.n_copied + (has_tails ? push.tail_width + push.next_tail_width : 0);
  KernelWork w;
  w.far_loaded = quads * (kQuad + (type == kTypeInt4 ? 4 : 0));
  w.far_bytes = heads * n_outs * push.row_quads * kQuad;
  // A workgroup reads its rows; twice, if it quantises them.
  const uint64_t inputs = heads * rows * uint64_t{push.cols} * kFloat;
  w.loaded = w.far_loaded + d.groups_x * inputs * (is_integer ? 2 : 1) + outs * head_words * 4 +
             rows * copied * kFloat;
  w.stored = (outs + rows * copied) * kFloat;
  w.least = w.far_bytes + heads * n_outs * (4 * kRowHeadWords + 4 * push.block_words) + inputs +
            outs * kFloat + 2 * rows * copied * kFloat;
  const uint64_t per_quad = type == kTypeF32    ? 4
                            : type == kTypeInt8 ? 16
                            : type == kTypeInt4 ? 32
                                                : 8;
  (is_integer ? w.int_products : w.float_products) = quads * tile_rows * per_quad;
  w.reductions =
      groups * ((is_integer ? 2 * tile_rows : 0) + (parts > 1 ? tile_rows * c[kHeadOutsId] : 0));
  return w;
}

}  // namespace arn::vulkan

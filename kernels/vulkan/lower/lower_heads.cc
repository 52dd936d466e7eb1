// Lowers kHeadLinear: as many heads' matrices per dispatch as fit in a binding of 128 MiB. Those of
// several bindings wait for each other: bindings of neighbouring values overlap.
#include <bit>

#include "kernels/vulkan/lower/matmul.h"

namespace arn::vulkan {
namespace {

constexpr uint32_t kQuadBytes = 16;
constexpr uint32_t kMaxRowBytes = 8192;  // of a workgroup's rows, in shared memory
constexpr uint32_t kHeadOuts = 2;        // of an invocation

// Invocations that share an output's columns, at most, and rows of a workgroup, at most.
struct HeadTile {
  uint32_t parts, rows;
};
constexpr HeadTile kTiles[kModeCount] = {{8, 1}, {8, 4}, {1, 16}};

}  // namespace

Status Lowering::AddHeadLinear(const Step& step, const HeadLinearParams& p,
                               const BoundMatrices& bound, Mode mode) {
  const WeightId first = p.weight + bound.first;
  const Weight& weight = program_.weights[first];
  const DeviceWeight at = WeightAt(first);
  const uint32_t row_quads = at.row_bytes / kQuadBytes;
  const bool is_16 = weight.dtype == DType::kF16 || weight.dtype == DType::kBf16;
  const uint32_t in_quads = IsInteger(weight) ? QuantizedWords(weight.cols) / 4
                            : is_16           ? 2 * row_quads
                                              : row_quads;
  if (in_quads * kQuadBytes > kMaxRowBytes || at.values_bytes > Device::kMaxBindingBytes) {
    return UnsupportedError(step, "a head's matrix with rows of more than 8192 bytes or 128 MiB");
  }
  const HeadTile& tile = kTiles[static_cast<uint32_t>(mode)];
  const uint32_t parts = Min(tile.parts, std::bit_floor(row_quads));
  const uint32_t n_projected = Width(p.projected), n_gathered = Width(p.gathered);
  const bool is_last = bound.first + bound.n == p.n_heads;
  const bool has_tails = p.tails[0] != kNoValue || p.tails[1] != kNoValue;
  Dispatch d = Begin(Shader::kHeadLinear, step);
  d.modes = BitOf(mode);
  d.row_tile = Min(tile.rows, std::bit_floor(kMaxRowBytes / (in_quads * kQuadBytes)));
  d.groups_x = static_cast<uint32_t>(CeilDiv(n_projected, kWidth / parts * kHeadOuts));
  d.groups_z = bound.n + (is_last && has_tails ? 1 : 0);
  d.constants[kHeadTypeId] = static_cast<uint32_t>(weight.dtype);
  d.constants[kHeadRowsId] = d.row_tile;
  d.constants[kHeadOutsId] = kHeadOuts;
  d.constants[kHeadPartsId] = parts;
  d.constants[kHeadQuadsId] = in_quads;
  const uint64_t others = (bound.n - 1) * bound.stride;
  BindValue(&d, 1, step.in);
  BindValue(&d, 2, step.out);
  Bind(&d, 3, {Home::kWeights, at.block, at.values, at.values_bytes + others});
  Bind(&d, 4, {Home::kWeights, at.block, at.heads, at.heads_bytes + others});
  HeadLinearPush push = {};
  push.in_stride = Width(step.in);
  push.in_head = p.first + n_gathered;
  push.first = p.first;
  push.out_stride = Width(step.out);
  push.out_head = p.n_copied + n_projected;
  push.n_copied = p.n_copied;
  push.cols = n_gathered;
  push.n_outs = n_projected;
  push.row_quads = row_quads;
  push.blocks_at = at.blocks_words;
  push.block_words = at.block_words;
  push.first_head = bound.first;
  push.n_heads = bound.n;
  push.matrix_words = static_cast<uint32_t>(bound.stride / sizeof(uint32_t));
  push.tails_at = p.n_heads * push.out_head;
  if (p.tails[0] != kNoValue) {
    BindValue(&d, 5, p.tails[0]);
    push.tail_width = Width(p.tails[0]);
  }
  if (p.tails[1] != kNoValue) {
    push.next_tail_at = BindAt(&d, 6, PlaceOf(program_.values[p.tails[1]].slice));
    push.next_tail_width = Width(p.tails[1]);
  }
  d.SetPush(push);
  d.work = uint64_t{bound.n} * n_projected * n_gathered;
  return Add(d);
}

Status Lowering::Lower(const Step& step, const HeadLinearParams& p) {
  for (uint32_t first = 0; first < p.n_heads;) {
    const BoundMatrices bound =
        MatricesFrom(first, p.n_heads, [&](uint32_t h) { return p.weight + h; });
    for (const Mode mode : {Mode::kOne, Mode::kFew, Mode::kMany}) {
      ARN_TRY(AddHeadLinear(step, p, bound, mode));
    }
    first += bound.n;
  }
  return Status::kOk;
}

}  // namespace arn::vulkan

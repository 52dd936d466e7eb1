#include "kernels/vulkan/count/dispatch_work.h"

#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

constexpr uint64_t kFloat = 4;

// Bytes of one row, and of a weight that all rows share.
struct RowWork {
  uint64_t loaded = 0, stored = 0, least = 0, reductions = 0, float_products = 0;
  uint64_t weights = 0;
};

KernelWork OfRows(const RowWork& row, uint64_t rows) {
  KernelWork w;
  w.loaded = rows * row.loaded;
  w.stored = rows * row.stored;
  w.least = rows * row.least + row.weights;
  w.reductions = rows * row.reductions;
  w.float_products = rows * row.float_products;
  return w;
}

// Adds the quantisation of a row of n elements, which are read again.
void AddQuantised(uint64_t n, uint32_t row_words, RowWork* row) {
  row->loaded += n * kFloat;
  row->stored += QuantisedRowBytes(row_words);
  row->least += QuantisedRowBytes(row_words);
  row->reductions += 2;
}

RowWork Of(const EmbedPush& push, const uint32_t* c) {
  const uint32_t type = c[kEmbedTypeId];
  const bool is_integer = type == kTypeInt8 || type == kTypeInt4;
  RowWork row;
  // A word, and a scale, for each element.
  row.loaded = push.cols * kFloat * (1 + is_integer + c[kEmbedHasPositionsId]);
  row.stored = push.cols * kFloat;
  row.least = row.stored + push.row_words * 4 + push.block_words * 4 +
              c[kEmbedHasPositionsId] * push.cols * kFloat;
  return row;
}

RowWork Of(const NormPush& push, const uint32_t* c) {
  const uint64_t n = push.n;
  const uint32_t is_layer = c[kNormIsLayerId], accumulates = c[kNormAccumulateId];
  RowWork row;
  // x for the mean, for the sum of squares, and for the output.
  row.loaded = n * kFloat * (3 + 2 * is_layer + accumulates);
  row.stored = n * kFloat;
  row.least = n * kFloat * (2 + accumulates);
  row.reductions = 1 + is_layer;
  row.weights = n * kFloat * (1 + is_layer);
  if (c[kRowQuantizesId] == 1) AddQuantised(n, push.row_words, &row);
  if (c[kNormIsLostId] == 1) {
    // Computed twice instead of stored and loaded.
    row.loaded += n * kFloat * (1 + is_layer);
    row.stored -= n * kFloat;
    row.least -= n * kFloat;
  }
  return row;
}

RowWork Of(const GatedActPush& push, const uint32_t* c) {
  const uint64_t n = push.n, inputs = c[kActIsGatedId] == 1 ? 2 : 1;
  RowWork row;
  row.loaded = n * kFloat *
               (inputs + (static_cast<Activation>(c[kActivationId]) == Activation::kXielu ? 4 : 0));
  row.stored = n * kFloat;
  row.least = n * kFloat * (inputs + 1);
  if (c[kRowQuantizesId] == 1) AddQuantised(n, push.row_words, &row);
  return row;
}

RowWork OfRotation(const uint32_t* c, uint64_t key_heads, uint64_t value_heads) {
  const uint64_t heads = c[kQkvHeadsId], dim = c[kKvHeadDimId];
  RowWork row;
  const auto add_heads = [&](uint64_t n, bool has_norm, bool turns) {
    row.loaded += n * kFloat * (dim + (has_norm ? dim : 0) + (turns ? c[kQkvRotaryDimId] : 0));
    row.stored += n * kFloat * dim;
    if (c[kQkvHasQNormId] + c[kQkvHasKNormId] + c[kQkvHasVNormId] != 0) row.reductions += n;
  };
  add_heads(heads, c[kQkvHasQNormId] == 1, true);
  add_heads(key_heads, c[kQkvHasKNormId] == 1, true);
  add_heads(value_heads, c[kQkvHasVNormId] == 1, false);
  row.least = 2 * row.stored + c[kQkvRotaryDimId] * kFloat;
  if (c[kQkvStoresId] != 1) return row;
  for (const bool is_keys : {true, false}) {
    const uint64_t n = is_keys ? key_heads : value_heads;
    const uint32_t type = c[is_keys ? kKvKTypeId : kKvVTypeId];
    const uint64_t size = type == kTypeF32 ? 4 : type == kTypeF16 ? 2 : 1;
    const uint64_t bytes = dim * size + (type == kTypeInt8 ? 4 : 0);
    row.stored += n * bytes;
    row.least += n * bytes;
    if (type == kTypeInt8) row.reductions += n;
  }
  return row;
}

RowWork OfQkvRope(const Dispatch& d) {
  // None if another layer's keys and values are used; keys alone if they are the values, too.
  const uint64_t kv_heads = d.groups_x - d.constants[kQkvHeadsId];
  const uint64_t key_heads = Min<uint64_t>(kv_heads, d.constants[kQkvKvHeadsId]);
  return OfRotation(d.constants, key_heads, kv_heads - key_heads);
}

RowWork Of(const RoutePush& push, const uint32_t* c) {
  const uint64_t experts = push.n_experts, chosen = push.n_chosen;
  const bool is_corrected = c[kRouteHasCorrectionId] == 1, is_sigmoid = c[kRouteIsSigmoidId] == 1;
  const uint64_t divides = is_corrected && !is_sigmoid ? 1 : 0;
  RowWork row;
  uint64_t loads = experts * (2 + divides + chosen);
  // Experts that are taken have no correction.
  if (is_corrected) loads += chosen * experts - chosen * (chosen - 1) / 2 + chosen;
  uint64_t stores = experts * (1 + divides) + 3 * chosen;
  if (c[kRouteHasGroupsId] == 1) {
    // Experts of other groups are taken, and have no correction either.
    const uint64_t others = experts / push.n_groups * (push.n_groups - push.n_groups_chosen);
    loads += experts * (is_corrected ? 2 : 1);
    if (is_corrected) loads -= chosen * others;
    stores += others;
  }
  if (!is_sigmoid || c[kRouteNormTopkProbId] == 1) {
    loads += chosen;
    stores += chosen;
  }
  row.loaded = loads * kFloat;
  row.stored = stores * kFloat;
  row.least = (experts + 2 * chosen) * kFloat;
  row.reductions = 2 + chosen * (is_corrected ? 3 : 2) + 3 * push.n_groups;
  row.weights = is_corrected ? experts * kFloat : 0;
  return row;
}

KernelWork Of(const Dispatch& d, const ExpertsPush& push, uint32_t rows, const WorkContext& at) {
  const uint64_t n = push.n, chosen = push.n_chosen;
  const uint32_t* c = d.constants;
  if (c[kExpertsPartId] == kExpertsList) {
    const uint64_t pairs = at.run.n_rows * chosen;
    KernelWork w;
    w.loaded = d.groups_x * pairs * 4;
    w.stored = (pairs + d.groups_x) * 4;
    w.least = pairs * 4 + w.stored;
    return w;
  }
  RowWork row;
  row.stored = n * kFloat;
  if (c[kExpertsPartId] == kExpertsWeigh) {
    row.loaded = 2 * n * kFloat;
    row.least = 2 * n * kFloat;
  } else {
    const uint64_t accumulates = c[kExpertsAccumulateId];
    row.loaded = n * kFloat * (accumulates + chosen * (c[kExpertsIsWeighedId] == 1 ? 1 : 2));
    row.least = n * kFloat * (1 + accumulates + chosen);
  }
  return OfRows(row, rows);
}

// A row of a convolution; the sequence's last one stores the state too.
KernelWork Of(const ConvPush& push, const uint32_t* c, uint32_t rows, const WorkContext& at) {
  const uint64_t width = push.width, taps = push.taps, kept = taps - 1;
  const uint64_t inputs = c[kConvIsGatedId] == 1 ? 2 : 1;
  // Inputs of the taps before the rows: of the state, if there is one.
  const uint64_t n_old = [&] {
    uint64_t n = 0;
    for (uint64_t t = 0; t < Min<uint64_t>(rows, kept); ++t) n += kept - t;
    return n;
  }();
  const uint64_t has_state = at.run.n_before != 0 ? 1 : 0;
  const uint64_t kept_of_rows = Min<uint64_t>(kept, rows), kept_of_state = kept - kept_of_rows;
  KernelWork w;
  const uint64_t fresh = rows * taps - n_old + kept_of_rows;
  w.loaded = width * kFloat *
             (rows * (taps + c[kConvHasBiasId] + (inputs - 1)) + fresh * inputs +
              (n_old + kept_of_state) * has_state);
  w.stored = width * kFloat * (rows + kept);
  w.least = width * kFloat *
            (rows * (inputs + inputs) + taps + c[kConvHasBiasId] + kept * (1 + has_state));
  w.float_products = rows * taps * width;
  return w;
}

KernelWork Of(const ScanPush& push, const uint32_t* c, const WorkContext& at) {
  const uint64_t width = push.width, states = c[kScanStatesId], rows = at.run.n_rows;
  KernelWork w;
  if (c[kScanPassesById] == 1) {
    w.loaded = rows * width * 2 * kFloat;
    w.stored = rows * width * kFloat;
    w.least = rows * width * 2 * kFloat + width * kFloat;
    return w;
  }
  const uint64_t old_states = at.run.n_before != 0 ? states : 0;
  // Time step, x and the output's first part; B and C, by each channel.
  w.loaded = width * kFloat * (states + old_states + rows * (3 + 2 * states));
  w.stored = width * kFloat * (rows + states);
  w.least = width * kFloat * (2 * states + old_states + rows * 4) + rows * 2 * states * kFloat;
  w.float_products = rows * width * states * 4;
  return w;
}

// All rows of a sequence.
KernelWork OfLinearAttention(const Dispatch& d, const WorkContext& at) {
  const auto push = d.Push<LinearAttentionPush>();
  const uint32_t* c = d.constants;
  const uint64_t rows = at.run.n_rows, key_dim = c[kLinearKeyDimId];
  const uint64_t width = uint64_t{push.n_heads} * push.value_dim, states = key_dim * width;
  const uint64_t delta = c[kLinearHasDeltaRuleId], has_state = at.run.n_before != 0 ? 1 : 0;
  // Each workgroup reads the queries and keys of its head; the delta rule the first keys of the
  // next block too.
  const uint64_t next = delta * (CeilDiv(rows, uint64_t{c[kLinearBlockId]}) - 1);
  const uint64_t gates = 1 + delta, heads = 2 + c[kLinearHasSkipId];
  const uint64_t keys = push.n_heads / push.heads_per_key * key_dim;
  KernelWork w;
  w.loaded = kFloat * (has_state * states + rows * width +
                       d.groups_x * ((2 * rows + next) * key_dim + rows * (gates + heads)));
  w.stored = kFloat * (states + rows * width);
  w.least = kFloat * ((1 + has_state) * states + heads * push.n_heads +
                      rows * (2 * width + 2 * keys + gates * push.n_heads));
  w.float_products = (3 + delta) * rows * states;
  return w;
}

KernelWork OfGate(const Dispatch& d, uint32_t rows) {
  const auto push = d.Push<GatePush>();
  const uint64_t n = push.width, norm = d.constants[kGateNormId];
  const bool is_of_heads = d.constants[kGateIsOfHeadsId] == 1;
  RowWork row;
  // With a norm: the row again, and the norm's weights.
  row.loaded = n * kFloat * (norm == kGateHasNoNorm ? 2 : 4);
  row.stored = n * kFloat * (norm == kGateNormFollows ? 2 : 1);
  row.least = (2 * n + (is_of_heads ? n / push.head_dim : n)) * kFloat;
  if (norm != kGateHasNoNorm) {
    row.reductions = d.groups_x;
    row.weights = (push.group_weights == 0 ? push.n : n) * kFloat;
  }
  if (d.constants[kRowQuantizesId] == 1) {
    // The row again, for its least and largest element; and a counter.
    AddQuantised(n, push.row_words, &row);
    row.loaded += n * kFloat;
    row.stored += kArrivalBytes;
  }
  return OfRows(row, rows);
}

// Counts the rows that are read, for all outputs: those that exist.
KernelWork Of(const Im2colPush& push, uint32_t rows) {
  const uint64_t width = push.width, taps = push.taps, n_inputs = uint64_t{rows} * push.stride;
  uint64_t n_read = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t tap = 0; tap < taps; ++tap) {
      const uint64_t at = row * push.stride + tap;
      n_read += at >= taps / 2 && at - taps / 2 < n_inputs ? 1 : 0;
    }
  }
  KernelWork w;
  w.loaded = n_read * width * kFloat;
  w.stored = rows * taps * width * kFloat;
  w.least = n_inputs * width * kFloat + w.stored;
  return w;
}

RowWork Of(const AddPositionsPush& push, const uint32_t* c) {
  const uint64_t n = push.width * kFloat;
  RowWork row;
  row.loaded = n * (1 + c[kAddHasPositionsId] + c[kAddHasTypesId]);
  row.stored = n;
  row.least = n * (2 + c[kAddHasPositionsId]);
  row.weights = n * c[kAddHasTypesId];
  return row;
}

// Counts what rows that are pooled n_rows at a time take.
RowWork Of(const PoolPush& push, const uint32_t* c) {
  const uint64_t n = push.out_width * kFloat;
  const bool is_concat = static_cast<PoolKind>(c[kPoolKindId]) == PoolKind::kConcat;
  const uint64_t n_read = is_concat ? 1 : push.n_rows;
  const uint64_t extra = c[kPoolHasShiftId] + c[kPoolHasScaleId];
  RowWork row;
  row.loaded = n * (n_read + extra);
  row.stored = n;
  row.least = n * (1 + n_read);
  row.weights = n * extra;
  return row;
}

KernelWork Of(const ChoosePush& push, const uint32_t* c) {
  KernelWork w;
  // Greedy; each invocation reads the best one again.
  w.loaded = push.vocab * kFloat + c[kWidthId] * kFloat;
  w.stored = push.vocab * kFloat;
  w.least = 2 * push.vocab * kFloat;
  w.reductions = 2;
  return w;
}

}  // namespace

KernelWork RotationWork(const Dispatch& d, uint32_t rows, uint64_t key_heads,
                        uint64_t value_heads) {
  return OfRows(OfRotation(d.constants, key_heads, value_heads), rows);
}

void AddNextNorm(const uint32_t* c, uint64_t n, uint32_t next_words, uint64_t rows,
                 KernelWork* work) {
  const uint64_t is_layer = c[kNextNormIsLayerId], adds = c[kNextNormAddsId];
  const uint64_t quantises = c[kNextQuantizesId], row = n * kFloat;
  const uint64_t next = quantises * QuantisedRowBytes(next_words);
  // The row for the mean, the sum of squares and the values.
  work->loaded += rows * row * (3 + 2 * is_layer + adds + quantises);
  work->stored += rows * (row + next);
  work->least += rows * (row * (1 + adds) + next) + row * (1 + is_layer);
  work->reductions += rows * (1 + is_layer + 2 * quantises);
}

KernelWork WorkOf(const Dispatch& d, uint32_t rows, const WorkContext& context) {
  const uint32_t* c = d.constants;
  const auto of_rows = [&](const RowWork& row) { return OfRows(row, rows); };
  KernelWork w;
  switch (d.shader) {
    case Shader::kEmbed: {
      // Each token's row is in one of the slices: the first one here.
      const auto push = d.Push<EmbedPush>();
      if (push.first_token != 0) break;
      w = of_rows(Of(push, c));
      if (c[kNextNormsId] == 1) AddNextNorm(c, push.cols, push.next_words, rows, &w);
      break;
    }
    case Shader::kRopeAngles: {
      const uint64_t pairs = d.Push<RopeAnglesPush>().pairs;
      w = of_rows({.loaded = pairs * kFloat,
                   .stored = 2 * pairs * kFloat,
                   .least = 2 * pairs * kFloat,
                   .weights = pairs * kFloat});
      break;
    }
    case Shader::kNorm: {
      RowWork row = Of(d.Push<NormPush>(), c);
      const uint64_t groups = d.groups_x, n = d.Push<NormPush>().group_weights == 0 ? 1 : groups;
      w = OfRows({.loaded = row.loaded * groups,
                  .stored = row.stored * groups,
                  .least = row.least * groups,
                  .reductions = row.reductions * groups,
                  .weights = row.weights * n},
                 rows);
      break;
    }
    case Shader::kQuantize: {
      const auto push = d.Push<QuantizePush>();
      RowWork row = {.loaded = push.n * kFloat, .least = push.n * kFloat};
      AddQuantised(push.n, push.row_words, &row);
      w = of_rows(row);
      break;
    }
    case Shader::kGemvFloat:
    case Shader::kGemvInt:
    case Shader::kGemmFloat:
    case Shader::kGemmInt:
    case Shader::kGemmHalf:
    case Shader::kGemmCoop: w = MatmulWork(d, rows, context); break;
    case Shader::kHeadLinear: w = HeadLinearWork(d, rows); break;
    case Shader::kQkvRope: w = of_rows(OfQkvRope(d)); break;
    case Shader::kAttention:
    case Shader::kAttentionCoop:
    case Shader::kAttentionTile: w = AttentionWork(d, rows, context); break;
    case Shader::kGatedAct: w = of_rows(Of(d.Push<GatedActPush>(), c)); break;
    case Shader::kChoose: w = Of(d.Push<ChoosePush>(), c); break;
    case Shader::kRoute: w = of_rows(Of(d.Push<RoutePush>(), c)); break;
    case Shader::kExperts: w = Of(d, d.Push<ExpertsPush>(), rows, context); break;
    case Shader::kConv: w = Of(d.Push<ConvPush>(), c, rows, context); break;
    case Shader::kScan: w = Of(d.Push<ScanPush>(), c, context); break;
    case Shader::kLinearAttention: w = OfLinearAttention(d, context); break;
    case Shader::kGate: w = OfGate(d, rows); break;
    case Shader::kScaleRow: {
      const uint64_t n = d.Push<ScaleRowPush>().n;
      w = of_rows({.loaded = 2 * n * kFloat, .stored = n * kFloat, .least = (2 * n + 1) * kFloat});
      break;
    }
    case Shader::kMultiply: {
      const uint64_t n = d.Push<MultiplyPush>().width;
      const uint64_t has_value = c[kMultiplyHasValueId], has_scale = c[kMultiplyHasScaleId];
      w = of_rows({.loaded = n * kFloat * (1 + has_value + has_scale),
                   .stored = n * kFloat,
                   .least = n * kFloat * (2 + has_value),
                   .weights = has_scale * kFloat});
      break;
    }
    case Shader::kColumns: {
      const uint64_t n = d.Push<ColumnsPush>().width;
      w = of_rows({.loaded = n * kFloat, .stored = n * kFloat, .least = 2 * n * kFloat});
      break;
    }
    case Shader::kIm2col: w = Of(d.Push<Im2colPush>(), rows); break;
    case Shader::kAddPositions: w = of_rows(Of(d.Push<AddPositionsPush>(), c)); break;
    case Shader::kClamp: {
      const uint64_t n = d.Push<ClampPush>().n;
      w = of_rows({.loaded = 3 * n * kFloat, .stored = n * kFloat, .least = 2 * n * kFloat});
      break;
    }
    case Shader::kPool: w = of_rows(Of(d.Push<PoolPush>(), c)); break;
    // Edits, and embeddings in the place of tokens: a counted run has none.
    case Shader::kKvEdit:
    case Shader::kAddEmbeddings: break;
  }
  w.groups = uint64_t{d.groups_x} * CeilDiv(uint64_t{rows}, d.row_tile) * d.groups_z;
  return w;
}

}  // namespace arn::vulkan

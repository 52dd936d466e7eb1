// kAttention for one row and for a chunk at several depths, for each page type including quantised
// pages, and kQkvRope, which writes the pages.
#include "micro.h"

namespace arn::bench {
namespace {

using conformance::ProgramBuilder;

struct Heads {
  uint32_t n, kv, dim;
};
constexpr Heads k135M = {9, 3, 64}, k1B = {32, 8, 64};
constexpr uint32_t kPageTokens = 32;

// quantised_bits: of all whole pages before the rows; 0: active pages.
void Attention(benchmark::State& state, Heads heads, DType kv, uint32_t quantised_bits,
               uint32_t depth, uint32_t n_rows, bool rope) {
  const uint32_t context = depth + n_rows + kPageTokens;
  ProgramBuilder builder(/*vocab=*/2, n_rows, context);
  AttentionKind kind;
  kind.n_heads = heads.n;
  kind.n_kv_heads = heads.kv;
  kind.head_dim = heads.dim;
  kind.attention_scale = 0.125f;
  kind.rope = builder.AddRope(heads.dim, 10000.0f);
  // Enough layers to evict a layer's pages from the cache before its next turn, except at a small
  // depth.
  const uint32_t layers = n_rows == 1 ? 30 : 1;
  const uint32_t pages = context / kPageTokens + 1;
  const auto kind_id =
      static_cast<uint16_t>(builder.AddAttention(kind, kv, layers, kPageTokens, pages));
  if (quantised_bits != 0) {
    builder.AddQuantisedPages(kind_id, quantised_bits, quantised_bits, kPageTokens, pages);
  }
  const ValueId in = builder.AddValue((heads.n + 2 * heads.kv) * heads.dim);
  const ValueId out = builder.AddValue(heads.n * heads.dim);
  const ValueId angles = builder.AddValue(heads.dim);
  builder.AddStep(RopeAnglesParams(), kNoValue, angles);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    const auto group_layer = static_cast<uint16_t>(layer);
    if (rope) {
      const QkvRopeParams params = {.kind = kind_id, .group_layer = group_layer, .angles = angles};
      builder.AddStep(params, in, kNoValue, layer);
    } else {
      const AttentionParams params = {.kind = kind_id, .group_layer = group_layer};
      builder.AddStep(params, in, out, layer);
    }
  }
  StepBench bench(&builder, depth, n_rows);
  FillValue(&bench.session(), in, n_rows);
  // Unwritten pages hold a pattern that is NaN as f32.
  const KvGroup& group = bench.session().program().kv_groups[0];
  std::fill_n(reinterpret_cast<char*>(bench.session().Pools(0).active),
              group.active.n_pages * group.active.page_bytes, char{0x2c});
  if (quantised_bits != 0) {
    std::fill_n(reinterpret_cast<char*>(bench.session().Pools(0).quantised),
                group.quantised.n_pages * group.quantised.page_bytes, char{0x2c});
    bench.NameQuantised(depth / kPageTokens);
  }
  bench.Run(state);
  state.counters["layers"] = layers;
}

void Register(const char* geometry, Heads heads, DType kv, uint32_t quantised_bits, uint32_t depth,
              uint32_t n_rows, bool rope) {
  const std::string name =
      std::string(rope ? "qkv_rope/" : "attention/") + geometry + "/" +
      (quantised_bits == 0 ? std::string(DTypeName(kv)) : "int" + std::to_string(quantised_bits)) +
      "/depth:" + std::to_string(depth) + "/M:" + std::to_string(n_rows);
  benchmark::RegisterBenchmark(name,
                               [=](benchmark::State& state) {
                                 Attention(state, heads, kv, quantised_bits, depth, n_rows, rope);
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

void RegisterAttention() {
  const std::vector<uint32_t> kActive = {0}, kQuantised = {0, 4, 2};
  for (DType kv : {DType::kInt8, DType::kF16, DType::kF32}) {
    for (const uint32_t depth : {128u, 2048u, 8192u}) {
      for (const uint32_t n_rows : {1u, 128u}) {
        for (const uint32_t bits : kv == DType::kInt8 ? kQuantised : kActive) {
          Register("135M", k135M, kv, bits, depth, n_rows, false);
          Register("1B", k1B, kv, bits, depth, n_rows, false);
        }
      }
    }
    for (const uint32_t n_rows : {1u, 128u}) Register("1B", k1B, kv, 0, 128, n_rows, true);
  }
}

}  // namespace arn::bench

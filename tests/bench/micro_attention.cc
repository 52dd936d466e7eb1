// kAttention of one row and of a chunk at depths, for each type of pages; and kQkvRope, which fills
// them.
#include "micro.h"

namespace arn::bench {
namespace {

using conformance::ProgramBuilder;

struct Heads {
  uint32_t n, kv, dim;
};
constexpr Heads k135M = {9, 3, 64}, k1B = {32, 8, 64};
constexpr uint32_t kPageTokens = 32;

void Attention(benchmark::State& state, Heads heads, DType kv, uint32_t depth, uint32_t n_rows,
               bool rope) {
  const uint32_t context = depth + n_rows + kPageTokens;
  ProgramBuilder builder(/*vocab=*/2, n_rows, context);
  AttentionKind kind;
  kind.n_heads = heads.n;
  kind.n_kv_heads = heads.kv;
  kind.head_dim = heads.dim;
  kind.scale = 0.125f;
  kind.rope = builder.AddRope(heads.dim, 10000.0f);
  // Enough layers that one's pages are not in a cache when its turn comes, but at a small depth.
  const uint32_t layers = n_rows == 1 ? 30 : 1;
  const uint32_t pages = context / kPageTokens + 1;
  Step step;
  step.kind = static_cast<uint16_t>(builder.AddAttention(kind, kv, layers, kPageTokens, pages));
  step.op = rope ? Op::kQkvRope : Op::kAttention;
  step.in = builder.AddValue((heads.n + 2 * heads.kv) * heads.dim);
  const ValueId out = builder.AddValue(heads.n * heads.dim);
  step.angles = builder.AddValue(heads.dim);
  Step angles = step;
  angles.op = Op::kRopeAngles;
  angles.in = kNoValue;
  angles.out = step.angles;
  builder.AddStep(angles);
  if (!rope) step.out = out;
  for (uint32_t layer = 0; layer < layers; ++layer) {
    step.layer = step.group_layer = static_cast<uint16_t>(layer);
    builder.AddStep(step);
  }
  StepBench bench(&builder, depth, n_rows);
  FillValue(&bench.session(), step.in, n_rows);
  // Pages hold a pattern that is NaN as f32 until they are written.
  const KvGroup& group = bench.session().program().kv_groups[0];
  std::fill_n(reinterpret_cast<char*>(bench.session().Pools(0).open),
              group.open.n_pages * group.open.page_bytes, char{0x2c});
  bench.Run(state);
  state.counters["layers"] = layers;
}

void Register(const char* geometry, Heads heads, DType kv, uint32_t depth, uint32_t n_rows,
              bool rope) {
  const std::string name = std::string(rope ? "qkv_rope/" : "attention/") + geometry + "/" +
                           DTypeName(kv) + "/depth:" + std::to_string(depth) +
                           "/M:" + std::to_string(n_rows);
  benchmark::RegisterBenchmark(
      name, [=](benchmark::State& state) { Attention(state, heads, kv, depth, n_rows, rope); })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

void RegisterAttention() {
  for (DType kv : {DType::kInt8, DType::kF16, DType::kF32}) {
    for (const uint32_t depth : {128u, 2048u, 8192u}) {
      for (const uint32_t n_rows : {1u, 128u}) {
        Register("135M", k135M, kv, depth, n_rows, false);
        Register("1B", k1B, kv, depth, n_rows, false);
      }
    }
    for (const uint32_t n_rows : {1u, 128u}) Register("1B", k1B, kv, 128, n_rows, true);
  }
}

}  // namespace arn::bench

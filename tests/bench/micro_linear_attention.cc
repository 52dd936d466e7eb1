// kLinearAttention of both rules, for one row and for a chunk. GB/s and GOP/s count the states and
// the products of the recurrence.
#include "micro.h"

namespace arn::bench {
namespace {

struct Geometry {
  const char* name;
  uint32_t heads, key_heads, key_dim, value_dim;
  bool has_delta_rule;
};
constexpr Geometry kGeometries[] = {
    {"delta/16x128x128", 16, 16, 128, 128, true},
    {"mamba2/48x128x32", 48, 1, 128, 32, false},
};

void LinearAttention(benchmark::State& state, const Geometry& g, uint32_t n_rows) {
  // Enough layers to evict a layer's states from the cache before its next turn.
  const uint32_t layers = n_rows == 1 ? 18 : 1, width = g.heads * g.value_dim;
  const uint32_t keys = g.key_heads * g.key_dim, n_params = g.has_delta_rule ? 2 : 3;
  conformance::ProgramBuilder builder(/*vocab=*/2, n_rows, /*max_context=*/1024);
  std::mt19937 rng(1);
  conformance::Matrix heads;
  heads.rows = n_params;
  heads.cols = g.heads;
  const std::vector<float> values(size_t{n_params} * g.heads, -1.0f);
  heads.values.resize(values.size() * sizeof(float));
  std::copy_n(reinterpret_cast<const uint8_t*>(values.data()), heads.values.size(),
              heads.values.begin());
  LinearAttentionParams params;
  params.heads = builder.AddMatrix(heads, WeightLayout());
  params.key_dim = static_cast<uint16_t>(g.key_dim);
  params.has_delta_rule = g.has_delta_rule;
  params.group =
      static_cast<uint16_t>(builder.AddStates(g.heads * g.key_dim * g.value_dim, layers, 2));
  const ValueId in = builder.AddValue(2 * keys + width), out = builder.AddValue(width);
  params.gates = builder.AddValue(width + 2 * g.heads);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    params.group_layer = static_cast<uint16_t>(layer);
    builder.AddStep(params, in, out, layer);
  }
  StepBench bench(&builder, /*n_before=*/n_rows == 1 ? 1 : 0, n_rows);
  FillValue(&bench.session(), in, n_rows);
  FillValue(&bench.session(), params.gates, n_rows);
  // Unwritten slots hold a pattern that is NaN as f32.
  const KvGroup& group = bench.session().program().kv_groups[0];
  std::fill_n(reinterpret_cast<char*>(bench.session().Pools(0).active),
              group.active.n_pages * group.active.page_bytes, char{0x2c});
  bench.Run(state);
  state.counters["layers"] = layers;
}

}  // namespace

void RegisterLinearAttention() {
  for (const Geometry& geometry : kGeometries) {
    for (const uint32_t n_rows : {1u, 128u}) {
      benchmark::RegisterBenchmark(
          std::string("linear_attention/") + geometry.name + "/M:" + std::to_string(n_rows),
          [=](benchmark::State& state) { LinearAttention(state, geometry, n_rows); })
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace arn::bench

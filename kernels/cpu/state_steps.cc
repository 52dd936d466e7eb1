// Steps with a state: split the channels into tasks for the threads. Each channel of each sequence
// is one recurrence over the tokens, so results do not depend on the tiling.
#include "kernels/contract/state_slot.h"
#include "kernels/cpu/cpu_state.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// Minimum number of multiplications per task: a few microseconds of work.
constexpr uint64_t kProductsPerTask = 16 * 1024;
// Channels per task, a multiple of: whole vectors on every instruction set, and whole cache lines.
constexpr uint64_t kScanChannels = 32;
// A page: parts of a row that prefetchers follow.
constexpr uint64_t kConvChannels = 1024;

const float* FloatsOf(const Program& program, WeightId id) {
  return id == kNoWeight ? nullptr : reinterpret_cast<const float*>(program.weights[id].data);
}

float* RowOf(const State& state, ValueId id, uint32_t row) {
  const Value& value = state.program->values[id];
  return state.memory.As<float>(value.slice) + uint64_t{row} * value.width;
}

// Calls body(sequence, first, last) in parallel for the channels [first, last) of each sequence.
// `products`: cost of one channel of one row, in multiplications. `unit`: a task has a multiple of
// it, in channels.
template <typename Body>
void ForChannels(const State& state, const RunArgs& args, uint32_t width, uint32_t products,
                 uint64_t unit, const Body& body) {
  const uint64_t a_channel = args.tokens.size() * products / args.sequences.size() + 1;
  const uint64_t tile = AlignUp(kProductsPerTask / a_channel + 1, unit);
  const uint64_t tiles = CeilDiv(width, tile);
  state.threads.ForEach(static_cast<size_t>(tiles * args.sequences.size()),
                        [&](size_t, size_t task) {
                          const uint64_t first = task % tiles * tile;
                          body(args.sequences[task / tiles], static_cast<uint32_t>(first),
                               static_cast<uint32_t>(Min<uint64_t>(first + tile, width)));
                        });
}

}  // namespace

void RunConv(const State& state, const Step& step, const RunArgs& args) {
  const Program& program = *state.program;
  const auto& p = step.Get<ConvParams>();
  const Weight& weight = program.weights[p.weight];
  ConvTile base = {};
  base.weight = FloatsOf(program, p.weight);
  base.bias = FloatsOf(program, p.bias);
  base.taps = weight.rows;
  base.width = weight.cols;
  base.in_stride = program.values[step.in].width;
  ForChannels(state, args, weight.cols, weight.rows, kConvChannels,
              [&](const SequenceRows& s, uint32_t first, uint32_t last) {
                ConvTile tile = base;
                const float* in = RowOf(state, step.in, s.first_row);
                tile.x = in + base.in_stride - base.width;
                if (p.is_gated) {
                  tile.b = in;
                  tile.c = in + base.width;
                }
                tile.state = StateSlotOf(program, state.memory, p, s);
                tile.first = first;
                tile.last = last;
                tile.n_rows = s.n_rows;
                tile.out = RowOf(state, step.out, s.first_row);
                state.simd.conv(tile);
              });
}

void RunScan(const State& state, const Step& step, const RunArgs& args) {
  const Program& program = *state.program;
  const auto& p = step.Get<ScanParams>();
  const Weight& rates = program.weights[p.rates];
  ScanTile base = {};
  base.rates = FloatsOf(program, p.rates);
  base.skip = FloatsOf(program, p.skip);
  base.n_states = rates.rows;
  base.width = rates.cols;
  base.out_stride = program.values[step.out].width;
  // 8 per state: an exponential costs several multiplications.
  ForChannels(state, args, rates.cols, 8 * rates.rows, kScanChannels,
              [&](const SequenceRows& s, uint32_t first, uint32_t last) {
                ScanTile tile = base;
                tile.time_steps = RowOf(state, p.time_steps, s.first_row);
                tile.mix = RowOf(state, p.mix, s.first_row);
                tile.state = StateSlotOf(program, state.memory, p, s);
                tile.first = first;
                tile.last = last;
                tile.n_rows = s.n_rows;
                tile.x = RowOf(state, step.in, s.first_row);
                tile.out = RowOf(state, step.out, s.first_row) + base.out_stride - base.width;
                state.simd.scan(tile);
              });
}

void RunLinearAttention(const State& state, const Step& step, const RunArgs& args) {
  const Program& program = *state.program;
  const auto& p = step.Get<LinearAttentionParams>();
  LinearAttentionTile base = {};
  static_cast<LinearAttentionArgs&>(base) = LinearAttentionOf(program, step);
  base.heads = FloatsOf(program, p.heads);
  const uint64_t panels = uint64_t{base.n_heads} * CeilDiv(base.value_dim, kStateColumns);
  const uint64_t rows = args.tokens.size() / args.sequences.size() + 1;
  const uint64_t tile = kProductsPerTask / (rows * 3 * base.key_dim * kStateColumns) + 1;
  const uint64_t tiles = CeilDiv(panels, tile);
  state.threads.ForEach(
      static_cast<size_t>(tiles * args.sequences.size()), [&](size_t, size_t task) {
        const SequenceRows& s = args.sequences[task / tiles];
        LinearAttentionTile a = base;
        a.first = static_cast<uint32_t>(task % tiles * tile);
        a.last = static_cast<uint32_t>(Min<uint64_t>(a.first + tile, panels));
        a.state = StateSlotOf(program, state.memory, p, s);
        a.n_rows = s.n_rows;
        a.in = RowOf(state, step.in, s.first_row);
        a.gates = RowOf(state, p.gates, s.first_row) + program.values[step.out].width;
        a.out = RowOf(state, step.out, s.first_row);
        state.simd.linear_attention(a);
      });
}

}  // namespace arn::cpu

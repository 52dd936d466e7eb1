// Encoder steps.
#include <cstring>

#include "kernels/contract/check.h"
#include "kernels/contract/check_encoder.h"
#include "kernels/cpu/cpu_state.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// Minimum number of elements per task: a few microseconds of work.
constexpr uint32_t kElementsPerTask = 16 * 1024;

uint32_t WidthOf(const State& state, ValueId id) { return state.program->values[id].width; }
uint32_t RowsOf(const State& state, ValueId id, const RunArgs& args) {
  return RowsOf(state.program->values[id], RunRows(args));
}
float* DataOf(const State& state, ValueId id) {
  return state.memory.As<float>(state.program->values[id].slice);
}

const float* VectorOf(const State& state, WeightId id) {
  return id == kNoWeight ? nullptr
                         : reinterpret_cast<const float*>(state.program->weights[id].data);
}

// Calls body(row) in parallel for rows of `width` elements.
template <typename Body>
void ForRows(const State& state, uint32_t rows, uint32_t width, const Body& body) {
  const uint32_t tile = Max<uint32_t>(1, kElementsPerTask / Max<uint32_t>(1, width));
  state.threads.ForTiles(rows, tile, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) body(static_cast<uint32_t>(i));
  });
}

void RunIm2col(const State& state, const Step& step, const RunArgs& args) {
  const uint32_t width = WidthOf(state, step.in), out_width = WidthOf(state, step.out);
  const uint32_t in_rows = RowsOf(state, step.in, args);
  const auto& p = step.Get<Im2colParams>();
  const float* in = DataOf(state, step.in);
  float* out = DataOf(state, step.out);
  ForRows(state, RowsOf(state, step.out, args), out_width, [&](uint32_t row) {
    const int64_t first = int64_t{row} * p.stride - p.padding;
    float* const all = out + uint64_t{row} * out_width;
    if (first >= 0 && first + p.n_taps <= int64_t{in_rows}) {
      std::memcpy(all, in + static_cast<uint64_t>(first) * width, out_width * sizeof(float));
      return;
    }
    for (uint32_t t = 0; t < p.n_taps; ++t) {
      const int64_t from = first + t;
      float* to = all + uint64_t{t} * width;
      if (from < 0 || from >= int64_t{in_rows}) {
        std::memset(to, 0, width * sizeof(float));
      } else {
        std::memcpy(to, in + static_cast<uint64_t>(from) * width, width * sizeof(float));
      }
    }
  });
}

void RunAddPositions(const State& state, const Step& step, const RunArgs& args) {
  const uint32_t width = WidthOf(state, step.in);
  const auto& p = step.Get<AddPositionsParams>();
  const auto table = [&](WeightId id) {
    return id == kNoWeight ? nullptr
                           : reinterpret_cast<const float*>(state.program->weights[id].data);
  };
  const float *positions = table(p.positions), *types = table(p.token_types);
  for (const SequenceRows& s : args.sequences) {
    float* x = DataOf(state, step.in) + uint64_t{s.first_row} * width;
    ForRows(state, s.n_rows, width, [&](uint32_t row) {
      float* to = x + uint64_t{row} * width;
      if (types != nullptr) {
        state.simd.add_row(types + (row < s.n_first_type ? 0 : width), width, to);
      }
      if (positions != nullptr) {
        state.simd.add_row(positions + uint64_t{row} * width, width, to);
      }
    });
  }
}

void RunFeatures(const State& state, const Step& step, const RunArgs& args) {
  const auto& p = step.Get<FeaturesParams>();
  const uint32_t width = WidthOf(state, step.out), stride = p.stride == 0 ? width : p.stride;
  float* out = DataOf(state, step.out);
  const uint32_t rows = RowsOf(state, step.out, args);
  const uint32_t n = p.optional_rows == 0 ? rows : rows - OmittedRows(*state.program, args);
  ForRows(state, n, width, [&](uint32_t row) {
    std::memcpy(out + uint64_t{row} * width,
                args.features.data() + uint64_t{row} * stride + p.first, width * sizeof(float));
  });
  std::memset(out + uint64_t{n} * width, 0, uint64_t{rows - n} * width * sizeof(float));
}

void RunNormRows(const State& state, const Step& step, const RunArgs& args) {
  const auto& p = step.Get<NormRowsParams>();
  NormRows(VectorOf(state, p.weight), VectorOf(state, p.bias), p.epsilon,
           RowsOf(state, step.in, args) - OmittedRows(*state.program, args) / p.stride,
           WidthOf(state, step.in), DataOf(state, step.in));
}

void RunPool(const State& state, const Step& step, const RunArgs& args) {
  const uint32_t width = WidthOf(state, step.in);
  const auto& p = step.Get<PoolParams>();
  const PoolArgs pool = {p.mode, p.factor, VectorOf(state, p.shift), VectorOf(state, p.scale)};
  const uint32_t out_width = WidthOf(state, step.out);
  ForRows(state, PooledRows(*state.program, args), out_width, [&](uint32_t i) {
    const RowRange rows = RowsOfPooled(*state.program, args, i);
    PoolRows(pool, DataOf(state, step.in) + uint64_t{rows.first} * width, rows.n, width,
             DataOf(state, step.out) + uint64_t{i} * out_width);
  });
}

void RunClamp(const State& state, const Step& step, const RunArgs& args) {
  const auto& p = step.Get<ClampParams>();
  const float* range = VectorOf(state, p.ranges) + uint64_t{2} * p.range;
  const float low = range[0], high = range[1];
  const uint32_t width = WidthOf(state, step.in);
  float* x = DataOf(state, step.in) + p.first;
  ForRows(state, RowsOf(state, step.in, args), width, [&](uint32_t row) {
    float* at = x + uint64_t{row} * width;
    for (uint32_t i = 0; i < p.n_columns; ++i) at[i] = Min(Max(at[i], low), high);
  });
}

}  // namespace

void RunEncoderStep(const State& state, const Step& step, const RunArgs& args) {
  if (step.op() == Op::kFeatures) {
    RunFeatures(state, step, args);
  } else if (step.op() == Op::kIm2col) {
    RunIm2col(state, step, args);
  } else if (step.op() == Op::kAddPositions) {
    RunAddPositions(state, step, args);
  } else if (step.op() == Op::kPool) {
    RunPool(state, step, args);
  } else if (step.op() == Op::kClamp) {
    RunClamp(state, step, args);
  } else if (step.op() == Op::kNormRows) {
    RunNormRows(state, step, args);
  } else {
    RunSelfAttention(state, step, args);
  }
}

}  // namespace arn::cpu

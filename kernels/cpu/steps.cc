// Steps other than matmuls and attention: split rows into tasks for the threads.
#include <cmath>

#include "kernels/contract/check.h"
#include "kernels/contract/route.h"
#include "kernels/cpu/cpu_state.h"
#include "kernels/pack/pack.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// Minimum number of elements per task: a few microseconds of work.
constexpr uint32_t kElementsPerTask = 16 * 1024;

class Runner {
 public:
  Runner(const State& state, const RunArgs& args)
      : state_(state), program_(*state.program), args_(args), rows_(RunRows(args)) {}

  void Embed(const Step& step) const {
    const Weight& weight = program_.weights[step.weight];
    const float* positions = Vector(step.positions);
    for (const SequenceRows& sequence : args_.sequences) {
      ForRange(sequence.n_rows, weight.cols, [&](uint32_t i) {
        const uint32_t row = sequence.first_row + i;
        float* out = Row(step.out, row);
        UnpackRowF32(weight, static_cast<uint32_t>(args_.tokens[row]), out);
        if (step.factor != 1.0f) state_.simd.softcap(out, weight.cols, step.factor, 0.0f);
        if (positions == nullptr) return;
        const float* at = positions + uint64_t{sequence.first_position + i} * weight.cols;
        state_.simd.add_row(at, weight.cols, out);
      });
    }
  }

  // As kernels/reference/rope_angles.cc.
  void RopeAngles(const Step& step) const {
    const RopeKind& rope = program_.ropes[step.rope];
    const uint32_t half = rope.rotary_dim / 2;
    ForEachRow(args_, [&](uint32_t row, const SequenceRows&, uint32_t position) {
      float* out = Row(step.out, row);
      for (uint32_t i = 0; i < half; ++i) {
        const float angle = static_cast<float>(position) * rope.inv_freq[i];
        out[i] = std::cos(angle) * rope.amplitude;
        out[half + i] = std::sin(angle) * rope.amplitude;
      }
    });
  }

  void Norm(const Step& step) const {
    const uint32_t width = Width(step.in);
    const NormArgs norm = NormOf(step, step.weight);
    ForRows(width, [&](uint32_t row) {
      state_.simd.norm(norm, Row(step.in, row), width, Row(step.out, row));
    });
  }

  void QkvRope(const Step& step, const AttentionKind& kind) const {
    const KvGroup& group = program_.kv_groups[kind.group];
    QkvRopeArgs base = {};
    base.kind = &kind;
    base.group = &group;
    base.pools = KvPoolsOf(group, state_.memory);
    base.group_layer = step.group_layer;
    base.rotary_dim = kind.rope == kNoRope ? 0 : program_.ropes[kind.rope].rotary_dim;
    base.q_norm = Vector(step.q_norm);
    base.k_norm = Vector(step.k_norm);
    base.norms_span_heads = NormsSpanHeads(program_, step);
    base.epsilon = step.epsilon;
    base.shares_kv = step.shares_kv;
    for (const SequenceRows& sequence : args_.sequences) {
      ForRange(sequence.n_rows, Width(step.in), [&](uint32_t i) {
        QkvRopeArgs a = base;
        a.table = &sequence.tables[kind.group];
        a.position = sequence.first_position + i;
        if (kind.rope != kNoRope) a.angles = Row(step.angles, sequence.first_row + i);
        state_.simd.qkv_rope(a, Row(step.in, sequence.first_row + i));
      });
    }
  }

  void GatedAct(const Step& step) const {
    const uint32_t width = Width(step.out);
    ForRows(width, [&](uint32_t row) {
      state_.simd.gated_act(Row(step.in, row), width, step.activation, step.activation_limit,
                            Row(step.out, row));
    });
  }

  void Act(const Step& step) const {
    const uint32_t width = Width(step.in);
    ForRange(rows_ * program_.values[step.in].row_factor, width,
             [&](uint32_t row) { state_.simd.act(Row(step.in, row), width, step.activation); });
  }

  void Route(const Step& step) const {
    ForRows(step.n_experts * step.n_chosen, [&](uint32_t row) {
      arn::Route(RouteOf(step), Row(step.in, row), Row(step.out, row));
    });
  }

  // Loops over experts, so that each expert's weights are read once for all its rows, and not at
  // all if it has none.
  void Experts(const Step& step) const {
    const auto gate_up = static_cast<ValueId>(step.scratch + 1);
    const auto product = static_cast<ValueId>(step.scratch + 2);
    const auto result = static_cast<ValueId>(step.scratch + 3);
    const uint32_t width = Width(step.in), ffn = Width(product), out_width = Width(step.out);
    for (uint32_t e = 0; e < step.n_experts; ++e) {
      uint32_t n = 0;
      ForEachRowOf(step, e, [&](uint32_t row, float weight) {
        const float factor = step.weighs_input ? weight : 1.0f;
        const float* from = Row(step.in, row);
        float* to = Row(step.scratch, n++);
        for (uint32_t c = 0; c < width; ++c) to[c] = from[c] * factor;
      });
      if (n == 0) continue;
      Observe(args_, step.weight + 2 * e, Data(step.scratch), n);
      Matmul(state_, step.weight + 2 * e, Data(step.scratch), n, false, Data(gate_up));
      ForRange(n, ffn, [&](uint32_t i) {
        state_.simd.gated_act(Row(gate_up, i), ffn, step.activation, step.activation_limit,
                              Row(product, i));
      });
      Observe(args_, step.weight + 2 * e + 1, Data(product), n);
      Matmul(state_, step.weight + 2 * e + 1, Data(product), n, false, Data(result));
      n = 0;
      ForEachRowOf(step, e, [&](uint32_t row, float weight) {
        const float factor = step.weighs_input ? 1.0f : weight;
        const float* from = Row(result, n++);
        float* to = Row(step.out, row);
        for (uint32_t c = 0; c < out_width; ++c) to[c] += factor * from[c];
      });
    }
  }

  void Linear(const Step& step) const {
    const uint32_t rows = rows_ * program_.values[step.out].row_factor;
    Observe(args_, step.weight, Data(step.in), rows, step.accumulate ? Data(step.out) : nullptr);
    Matmul(state_, step.weight, Data(step.in), rows, step.accumulate, Data(step.out));
  }

  void Logits(const Step& step) const {
    const uint32_t width = Width(step.in);
    const NormArgs norm = NormOf(step, step.norm);
    uint32_t n = 0;
    ForEachLogitRow(args_, [&](uint32_t row) {
      state_.simd.norm(norm, Row(step.in, row), width, state_.normed + uint64_t{n} * width);
      ++n;
    });
    Observe(args_, step.weight, state_.normed, n);
    if (args_.best_id != nullptr) {
      *args_.best_id = static_cast<int32_t>(
          BestColumn(state_, step.weight, state_.normed, step.factor, step.softcap));
    } else {
      Head(step, n, state_.memory.As<float>(program_.logits));
    }
  }

  // Applies the head to n normalised rows.
  void Head(const Step& step, uint32_t n, float* logits) const {
    Matmul(state_, step.weight, state_.normed, n, /*accumulate=*/false, logits);
    if (step.factor == 1.0f && step.softcap == 0.0f) return;
    ForRange(n, program_.vocab, [&](uint32_t i) {
      state_.simd.softcap(logits + uint64_t{i} * program_.vocab, program_.vocab, step.factor,
                          step.softcap);
    });
  }

 private:
  // Calls visit(row, weight) for each row routed to the expert.
  template <typename Visit>
  void ForEachRowOf(const Step& step, uint32_t expert, const Visit& visit) const {
    for (uint32_t row = 0; row < rows_; ++row) {
      const float* topk = Row(step.topk, row);
      for (uint32_t i = 0; i < step.n_chosen; ++i) {
        if (topk[i] == static_cast<float>(expert)) visit(row, topk[step.n_chosen + i]);
      }
    }
  }

  // Calls body(i) for i of [0, n), in parallel if n rows of `width` elements are enough work.
  template <typename Body>
  void ForRange(uint32_t n, uint32_t width, const Body& body) const {
    const uint32_t tile = Max<uint32_t>(1, kElementsPerTask / Max<uint32_t>(1, width));
    state_.threads.ForTiles(n, tile, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) body(static_cast<uint32_t>(i));
    });
  }
  template <typename Body>
  void ForRows(uint32_t width, const Body& body) const {
    ForRange(rows_, width, body);
  }

  NormArgs NormOf(const Step& step, WeightId weight) const {
    return {step.norm_kind, Vector(weight), Vector(step.bias), step.epsilon, step.accumulate};
  }

  uint32_t Width(ValueId id) const { return program_.values[id].width; }
  float* Data(ValueId id) const { return state_.memory.As<float>(program_.values[id].slice); }
  float* Row(ValueId id, uint32_t row) const { return Data(id) + uint64_t{row} * Width(id); }
  // Returns null for kNoWeight.
  const float* Vector(WeightId id) const {
    return id == kNoWeight ? nullptr : reinterpret_cast<const float*>(program_.weights[id].data);
  }

  const State& state_;
  const Program& program_;
  const RunArgs& args_;
  const uint32_t rows_;
};

}  // namespace

void ReadLogits(const State& state, float* logits) {
  const Runner runner(state, RunArgs());
  for (const Step& step : state.program->steps) {
    if (step.op == Op::kLogits) runner.Head(step, 1, logits);
  }
}

void RunStep(const State& state, const Step& step, const RunArgs& args) {
  const Runner runner(state, args);
  switch (step.op) {
    case Op::kEmbed: return runner.Embed(step);
    case Op::kRopeAngles: return runner.RopeAngles(step);
    case Op::kNorm: return runner.Norm(step);
    case Op::kLinear: return runner.Linear(step);
    case Op::kQkvRope: return runner.QkvRope(step, state.program->kinds[step.kind]);
    case Op::kStoreKv: return runner.QkvRope(step, WithoutQueries(state.program->kinds[step.kind]));
    case Op::kAttention: return RunAttention(state, step, args);
    case Op::kGatedAct: return runner.GatedAct(step);
    case Op::kAct: return runner.Act(step);
    case Op::kRoute: return runner.Route(step);
    case Op::kExperts: return runner.Experts(step);
    case Op::kLogits: return runner.Logits(step);
    case Op::kFeatures:
    case Op::kIm2col:
    case Op::kAddPositions:
    case Op::kSelfAttention: return RunEncoderStep(state, step, args);
    case Op::kConv: return RunConv(state, step, args);
    case Op::kScan: return RunScan(state, step, args);
  }
}

}  // namespace arn::cpu

#include "kernels/reference/backend_reference.h"

#include <cstring>
#include <new>

#include "kernels/contract/check.h"
#include "kernels/contract/route.h"
#include "kernels/contract/step_clock.h"
#include "kernels/kv/kv_host.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/reference_state.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

using reference::State;

// Indices into BackendPlan::slices.
enum : uint32_t { kStateSlice, kScratchSlice, kScoresSlice, kNormedSlice };

Status Plan(const Program& program, const BackendOptions& options, Layout* layout,
            BackendPlan* plan, Diag* diag) {
  (void)options;  // always one thread
  *plan = BackendPlan();
  ARN_TRY(CheckProgram(program, diag));
  uint64_t scratch_bytes = 0;
  uint32_t normed_width = 0;
  for (const Step& step : program.steps) {
    if (step.op == Op::kLinear || step.op == Op::kLogits) {
      const auto rows = static_cast<uint32_t>(
          step.op == Op::kLinear ? MaxRowsOf(program, program.values[step.out]) : 1);
      scratch_bytes =
          Max(scratch_bytes, reference::LinearScratchBytes(program.weights[step.weight], rows));
    }
    for (uint32_t i = 0; step.op == Op::kExperts && i < 2u * step.n_experts; ++i) {
      scratch_bytes = Max(scratch_bytes, reference::LinearScratchBytes(
                                             program.weights[step.weight + i], program.max_rows));
    }
    if (step.op == Op::kLogits) normed_width = Max(normed_width, program.values[step.in].width);
  }
  ARN_ASSIGN(plan->slices[kStateSlice], layout->Add(Region::kConstants, sizeof(State)));
  ARN_ASSIGN(plan->slices[kScratchSlice], layout->Add(Region::kActivations, scratch_bytes));
  ARN_ASSIGN(plan->slices[kScoresSlice],
             layout->AddArray(Region::kActivations,
                              Max(program.max_context, program.max_encoder_rows), sizeof(float)));
  ARN_ASSIGN(plan->slices[kNormedSlice],
             layout->AddArray(Region::kActivations, normed_width, sizeof(float)));
  return Status::kOk;
}

Status Load(const Program& program, const BackendOptions& options, const BackendPlan& plan,
            const Memory& memory, void** state, Diag* diag) {
  (void)options;
  (void)diag;
  auto* s = new (memory.At(plan.slices[kStateSlice])) State();
  s->program = &program;
  s->memory = memory;
  s->scratch = memory.At(plan.slices[kScratchSlice]);
  s->scores = memory.As<float>(plan.slices[kScoresSlice]);
  s->normed = memory.As<float>(plan.slices[kNormedSlice]);
  *state = s;
  return Status::kOk;
}

// Runs one step on all rows of a run.
class Runner {
 public:
  Runner(const State& state, const RunArgs& args)
      : state_(state), program_(*state.program), args_(args) {}

  void RunStep(const Step& step) {
    const ValueId shape = step.out != kNoValue ? step.out : step.in;
    const uint32_t rows = RunRows(args_) * (shape == kNoValue ? 1 : RowFactor(shape));
    switch (step.op) {
      case Op::kEmbed: {
        ForEachRow(args_, [&](uint32_t row, const SequenceRows&, uint32_t position) {
          reference::Embed(args_.tokens[row], position, program_.weights[step.weight], step.factor,
                           state_.Vector(step.positions), Row(step.out, row));
        });
        return;
      }
      case Op::kRopeAngles: {
        const RopeKind& rope = program_.ropes[step.rope];
        ForEachRow(args_, [&](uint32_t row, const SequenceRows&, uint32_t position) {
          reference::RopeAngles(position, rope, Row(step.out, row));
        });
        return;
      }
      case Op::kNorm: {
        const reference::NormArgs norm = {step.norm_kind, state_.Vector(step.weight),
                                          state_.Vector(step.bias), step.epsilon, step.accumulate};
        for (uint32_t row = 0; row < rows; ++row) {
          reference::Norm(norm, Row(step.in, row), Width(step.in), Row(step.out, row));
        }
        return;
      }
      case Op::kLinear:
        Observe(args_, step.weight, Data(step.in), rows,
                step.accumulate ? Data(step.out) : nullptr);
        reference::Linear(Data(step.in), rows, program_.weights[step.weight], program_.splits_rows,
                          step.accumulate, Data(step.out), state_.scratch);
        return;
      case Op::kQkvRope: RunQkvRope(step, program_.kinds[step.kind]); return;
      case Op::kAttention: RunAttention(step); return;
      case Op::kGatedAct:
        for (uint32_t row = 0; row < rows; ++row) {
          reference::GatedAct(Row(step.in, row), Width(step.out), step.activation,
                              step.activation_limit, Row(step.out, row));
        }
        return;
      case Op::kAct:
        for (uint32_t row = 0; row < rows; ++row) {
          reference::Act(Row(step.in, row), Width(step.in), step.activation);
        }
        return;
      case Op::kRoute:
        for (uint32_t row = 0; row < rows; ++row) {
          Route(RouteOf(step), Row(step.in, row), Row(step.out, row));
        }
        return;
      case Op::kExperts: RunExperts(step, rows); return;
      case Op::kLogits: reference::Logits(state_, step, args_); return;
      case Op::kConv: RunConv(step); return;
      case Op::kScan: RunScan(step); return;
      case Op::kFeatures:
        std::memcpy(Data(step.out), args_.features.data(), args_.features.size() * sizeof(float));
        return;
      case Op::kIm2col: {
        const uint32_t stride = RowFactor(step.in) / RowFactor(step.out);
        for (uint32_t row = 0; row < rows; ++row) {
          reference::Im2col(Data(step.in), rows * stride, Width(step.in), step.n_taps, row * stride,
                            Row(step.out, row));
        }
        return;
      }
      case Op::kAddPositions:
        ForEachRow(args_, [&](uint32_t row, const SequenceRows&, uint32_t position) {
          const float* from = state_.Vector(step.positions) + uint64_t{position} * Width(step.in);
          for (uint32_t i = 0; i < Width(step.in); ++i) Row(step.in, row)[i] += from[i];
        });
        return;
      case Op::kSelfAttention: RunSelfAttention(step, rows); return;
      case Op::kStoreKv: RunQkvRope(step, WithoutQueries(program_.kinds[step.kind])); return;
    }
  }

 private:
  void RunQkvRope(const Step& step, const AttentionKind& kind) {
    const KvGroup& group = program_.kv_groups[kind.group];
    reference::QkvRopeArgs a = {};
    a.kind = &kind;
    a.group = &group;
    a.pools = KvPoolsOf(group, state_.memory);
    a.group_layer = step.group_layer;
    a.rotary_dim = kind.rope == kNoRope ? 0 : program_.ropes[kind.rope].rotary_dim;
    a.q_norm = state_.Vector(step.q_norm);
    a.k_norm = state_.Vector(step.k_norm);
    a.norms_span_heads = NormsSpanHeads(program_, step);
    a.epsilon = step.epsilon;
    a.shares_kv = step.shares_kv;
    ForEachRow(args_, [&](uint32_t row, const SequenceRows& sequence, uint32_t position) {
      a.table = &sequence.tables[kind.group];
      a.position = position;
      a.angles = kind.rope == kNoRope ? nullptr : Row(step.angles, row);
      reference::QkvRope(a, Row(step.in, row));
    });
  }

  void RunAttention(const Step& step) {
    const AttentionKind& kind = program_.kinds[step.kind];
    const KvGroup& group = program_.kv_groups[kind.group];
    reference::AttentionArgs a = {};
    a.kind = &kind;
    a.group = &group;
    a.pools = KvPoolsOf(group, state_.memory);
    a.group_layer = step.group_layer;
    a.sinks = state_.Vector(step.sinks);
    PutRelativePositionBias(step, &a);
    ForEachRow(args_, [&](uint32_t row, const SequenceRows& sequence, uint32_t position) {
      a.table = &sequence.tables[kind.group];
      a.encoder_rows = sequence.encoder_rows;
      a.position = position;
      reference::Attention(a, Row(step.in, row), Row(step.out, row), state_.scores);
    });
  }

  void PutRelativePositionBias(const Step& step, reference::AttentionArgs* args) {
    args->relative_position_bias = state_.Vector(step.relative_position_bias);
    if (args->relative_position_bias != nullptr) {
      args->n_relative_positions = program_.weights[step.relative_position_bias].rows;
    }
  }

  void RunSelfAttention(const Step& step, uint32_t rows) {
    reference::AttentionArgs a = {};
    a.kind = &program_.kinds[step.kind];
    a.both_ways = true;
    PutRelativePositionBias(step, &a);
    for (a.position = 0; a.position < rows; ++a.position) {
      reference::SelfAttention(a, Data(step.in), rows, Row(step.out, a.position), state_.scores);
    }
  }

  void RunConv(const Step& step) {
    const Weight& weight = program_.weights[step.weight];
    reference::ConvArgs a = {};
    a.weight = state_.Vector(step.weight);
    a.bias = state_.Vector(step.bias);
    a.taps = weight.rows;
    a.width = weight.cols;
    a.is_gated = step.is_gated;
    a.in_stride = Width(step.in);
    for (const SequenceRows& s : args_.sequences) {
      a.state = StateSlotOf(program_, state_.memory, step, s);
      reference::Conv(a, Row(step.in, s.first_row), s.n_rows, Row(step.out, s.first_row));
    }
  }

  void RunScan(const Step& step) {
    const Weight& rates = program_.weights[step.weight];
    reference::ScanArgs a = {};
    a.rates = state_.Vector(step.weight);
    a.skip = state_.Vector(step.skip);
    a.n_states = rates.rows;
    a.width = rates.cols;
    a.out_stride = Width(step.out);
    for (const SequenceRows& s : args_.sequences) {
      a.state = StateSlotOf(program_, state_.memory, step, s);
      a.time_steps = Row(step.time_steps, s.first_row);
      a.mix = Row(step.mix, s.first_row);
      float* out = Row(step.out, s.first_row) + Width(step.out) - rates.cols;
      reference::Scan(a, Row(step.in, s.first_row), s.n_rows, out);
    }
  }

  // Applies the experts row by row, in routing order. An input weight scales a copy of the row.
  void RunExperts(const Step& step, uint32_t rows) {
    const auto gate_up = static_cast<ValueId>(step.scratch + 1);
    const auto product = static_cast<ValueId>(step.scratch + 2);
    const auto result = static_cast<ValueId>(step.scratch + 3);
    for (uint32_t row = 0; row < rows; ++row) {
      const float* topk = Row(step.topk, row);
      for (uint32_t i = 0; i < step.n_chosen; ++i) {
        const Weight* expert = &program_.weights[step.weight + 2 * static_cast<uint32_t>(topk[i])];
        const float weight = topk[step.n_chosen + i];
        const float in_factor = step.weighs_input ? weight : 1.0f;
        const float out_factor = step.weighs_input ? 1.0f : weight;
        for (uint32_t c = 0; c < Width(step.in); ++c) {
          Data(step.scratch)[c] = Row(step.in, row)[c] * in_factor;
        }
        const auto id = static_cast<WeightId>(expert - program_.weights.data());
        Observe(args_, id, Data(step.scratch), 1);
        reference::Linear(Data(step.scratch), 1, expert[0], program_.splits_rows, false,
                          Data(gate_up), state_.scratch);
        reference::GatedAct(Data(gate_up), Width(product), step.activation, step.activation_limit,
                            Data(product));
        Observe(args_, id + 1, Data(product), 1);
        reference::Linear(Data(product), 1, expert[1], program_.splits_rows, false, Data(result),
                          state_.scratch);
        float* out = Row(step.out, row);
        for (uint32_t c = 0; c < Width(step.out); ++c) {
          out[c] += out_factor * Data(result)[c];
        }
      }
    }
  }

  uint32_t Width(ValueId id) const { return program_.values[id].width; }
  uint32_t RowFactor(ValueId id) const { return program_.values[id].row_factor; }
  float* Data(ValueId id) const { return state_.memory.As<float>(program_.values[id].slice); }
  float* Row(ValueId id, uint32_t row) const { return Data(id) + uint64_t{row} * Width(id); }

  const State& state_;
  const Program& program_;
  const RunArgs& args_;
};

Status Run(void* state, const RunArgs& args, Diag* diag) {
  const State& s = *static_cast<const State*>(state);
  ARN_TRY(ApplyKvEdits(*s.program, s.memory, args.edits, diag));
  uint32_t n_logit_rows;
  ARN_TRY(CheckRun(*s.program, args, &n_logit_rows, diag));
  if (RunRows(args) == 0) return Status::kOk;
  Runner runner(s, args);
  StepClock clock(args.step_ns);
  const Span<const Step> steps = StepsOf(*s.program, args.is_encoder);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (args.cancel != nullptr && args.cancel->load(std::memory_order_relaxed) != 0) {
      return Status::kCancelled;
    }
    NotifyAttentionObserver(args, steps.subspan(i, steps.size() - i));
    runner.RunStep(steps[i]);
    clock.Next();
  }
  return Status::kOk;
}

Status KvRead(void* state, Slice from, Span<std::byte> to) {
  return KvReadHost(static_cast<const State*>(state)->memory, from, to);
}

Status KvWrite(void* state, Slice to, Span<const std::byte> from) {
  return KvWriteHost(static_cast<const State*>(state)->memory, to, from);
}

void Unload(void* state) { (void)state; }

void PlaceKv(void* state, Span<std::byte> kv) {
  static_cast<State*>(state)->memory.region[static_cast<uint32_t>(Region::kKv)] = kv;
}

constexpr HostKvOps kHostKv = {PlaceKv};
constexpr Backend kBackend = {
    .name = "reference",
    .plan = Plan,
    .load = Load,
    .run = Run,
    .kv_read = KvRead,
    .kv_write = KvWrite,
    .unload = Unload,
    .host_kv = &kHostKv,
};

}  // namespace

const Backend* ReferenceBackend() { return &kBackend; }

}  // namespace arn

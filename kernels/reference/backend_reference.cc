#include "kernels/reference/backend_reference.h"

#include <cstring>
#include <new>

#include "kernels/contract/check.h"
#include "kernels/contract/check_encoder.h"
#include "kernels/contract/route.h"
#include "kernels/contract/step_clock.h"
#include "kernels/contract/streams.h"
#include "kernels/kv/kv_host.h"
#include "kernels/pack/row_table.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/reference_state.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

using reference::State;

// Indices into BackendPlan::slices.
enum : uint32_t { kStateSlice, kScratchSlice, kScoresSlice, kNormedSlice, kLowRankSlice };

Status Plan(const Program& program, const BackendOptions& options, Layout* layout,
            BackendPlan* plan, Diag* diag) {
  (void)options;  // always one thread
  *plan = BackendPlan();
  ARN_TRY(CheckProgram(program, diag));
  uint64_t scratch_bytes = 0;
  uint32_t normed_width = 0;
  for (const Step& step : program.steps) {
    const bool is_logits = step.op() == Op::kLogits;
    const auto rows = static_cast<uint32_t>(
        is_logits || step.out == kNoValue ? 1 : MaxRowsOf(program, program.values[step.out]));
    const StepOperands operands = OperandsOf(step);
    for (uint32_t i = 0; i < operands.n_matrices; ++i) {
      const Weight& matrix = program.weights[operands.first_matrix + i];
      scratch_bytes = Max(scratch_bytes, reference::LinearScratchBytes(matrix, rows));
    }
    if (is_logits) normed_width = Max(normed_width, program.values[step.in].width);
  }
  ARN_ASSIGN(plan->slices[kStateSlice], layout->Add(Region::kConstants, sizeof(State)));
  ARN_ASSIGN(plan->slices[kScratchSlice], layout->Add(Region::kActivations, scratch_bytes));
  ARN_ASSIGN(plan->slices[kScoresSlice],
             layout->AddArray(Region::kActivations,
                              Max(program.max_context, program.max_encoder_rows), sizeof(float)));
  ARN_ASSIGN(plan->slices[kNormedSlice],
             layout->AddArray(Region::kActivations, normed_width, sizeof(float)));
  ARN_ASSIGN(plan->slices[kLowRankSlice],
             layout->AddArray(Region::kActivations, RankStride(program.max_rank), sizeof(float)));
  plan->adapter_bytes = plan->slices[kLowRankSlice].bytes;
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
  s->low_rank = memory.As<float>(plan.slices[kLowRankSlice]);
  *state = s;
  return Status::kOk;
}

// Runs one step on all rows of a run.
class Runner {
 public:
  Runner(const State& state, const RunArgs& args)
      : state_(state), program_(*state.program), args_(args) {}

  void RunStep(const Step& step) {
    rows_ = IsPooled(program_, step) ? PooledRows(program_, args_)
                                     : RowsOf(program_, step, RunRows(args_));
    switch (step.op()) {
      case Op::kEmbed: return Run(step, step.Get<EmbedParams>());
      case Op::kRopeAngles: return Run(step, step.Get<RopeAnglesParams>());
      case Op::kNorm: return Run(step, step.Get<NormParams>());
      case Op::kLinear: return Run(step, step.Get<LinearParams>());
      case Op::kQkvRope: return Run(step, step.Get<QkvRopeParams>());
      case Op::kAttention: return Run(step, step.Get<AttentionParams>());
      case Op::kGatedAct: return Run(step, step.Get<GatedActParams>());
      case Op::kAct: return Run(step, step.Get<ActParams>());
      case Op::kRoute: return Run(step, step.Get<RouteParams>());
      case Op::kExperts: return Run(step, step.Get<ExpertsParams>());
      case Op::kLogits: return reference::Logits(state_, step, args_);
      case Op::kConv: return Run(step, step.Get<ConvParams>());
      case Op::kScan: return Run(step, step.Get<ScanParams>());
      case Op::kFeatures: return Run(step, step.Get<FeaturesParams>());
      case Op::kIm2col: return Run(step, step.Get<Im2colParams>());
      case Op::kAddPositions: return Run(step, step.Get<AddPositionsParams>());
      case Op::kSelfAttention: return Run(step, step.Get<SelfAttentionParams>());
      case Op::kStoreKv: return Run(step, step.Get<StoreKvParams>());
      case Op::kScaleRow: return Run(step, step.Get<ScaleRowParams>());
      case Op::kMultiply: return Run(step, step.Get<MultiplyParams>());
      case Op::kHeadLinear: return Run(step, step.Get<HeadLinearParams>());
      case Op::kLinearAttention: return Run(step, step.Get<LinearAttentionParams>());
      case Op::kGate: return Run(step, step.Get<GateParams>());
      case Op::kPool: return Run(step, step.Get<PoolParams>());
      case Op::kMixStreams: return Run(step, step.Get<MixStreamsParams>());
      case Op::kMatchRms: return Run(step, step.Get<MatchRmsParams>());
      case Op::kThreshold: return Run(step, step.Get<ThresholdParams>());
      case Op::kAdapt: return Run(step, step.Get<AdaptParams>());
      case Op::kSteer: return Run(step, step.Get<SteerParams>());
      case Op::kAddEmbeddings: return Run(step, step.Get<AddEmbeddingsParams>());
      case Op::kClamp: return Run(step, step.Get<ClampParams>());
      case Op::kNormRows: return Run(step, step.Get<NormRowsParams>());
    }
  }

 private:
  void Run(const Step& step, const EmbedParams& p) {
    const Weight& table = program_.weights[p.weight];
    ForEachRow(args_, [&](uint32_t row, const SequenceRows&, uint32_t position) {
      const int32_t token = args_.tokens[row];
      reference::Embed(token, EmbeddingOf(args_, p.embedding_stride, token),
                       TextPosition(args_, row, position), table, p.factor,
                       state_.Vector(p.positions), Row(step.out, row));
      ForgetRow(args_, table, token < 0 ? 0 : static_cast<uint32_t>(token));
    });
  }

  void Run(const Step& step, const RopeAnglesParams& p) {
    ForEachRow(args_, [&](uint32_t row, const SequenceRows&, uint32_t position) {
      const RopeKind& rope = program_.ropes[p.rope];
      reference::RopeAngles(TextPosition(args_, row, position), AxisPositions(args_, rope, row),
                            rope, Row(step.out, row));
    });
  }

  void Run(const Step& step, const NormParams& p) {
    NormArgs norm = {p.kind, state_.Vector(p.weight), state_.Vector(p.bias), p.epsilon,
                     p.accumulate};
    // Values are dense, so a group of a row is a row of its own.
    const uint32_t n = p.group != 0 ? p.group : program_.weights[p.weight].cols;
    const uint32_t groups = Width(step.in) / n;
    for (uint64_t i = 0; i < uint64_t{rows_} * groups; ++i) {
      if (p.group != 0) norm.weight = state_.Vector(p.weight) + i % groups * n;
      reference::Norm(norm, Data(step.in) + i * n, n, Data(step.out) + i * n);
    }
  }

  void Run(const Step& step, const LinearParams& p) {
    Observe(args_, p.weight, Data(step.in), rows_, p.accumulate ? Data(step.out) : nullptr);
    reference::Linear(Data(step.in), rows_, program_.weights[p.weight], program_.splits_rows,
                      p.accumulate, Data(step.out), state_.scratch);
  }

  void Run(const Step& step, const GatedActParams& p) {
    for (uint32_t row = 0; row < rows_; ++row) {
      reference::GatedAct(Row(step.in, row), Width(step.out), p.activation, p.activation_limit,
                          Row(step.out, row));
    }
  }

  void Run(const Step& step, const ActParams& p) {
    for (uint32_t row = 0; row < rows_; ++row) {
      reference::Act(Row(step.in, row), Width(step.in), p.activation, state_.Vector(p.parameters));
    }
  }

  void Run(const Step& step, const RouteParams& p) {
    for (uint32_t row = 0; row < rows_; ++row) {
      Route(p, state_.Vector(p.correction), Row(step.in, row), Row(step.out, row));
    }
  }

  void Run(const Step& step, const ScaleRowParams& p) {
    for (uint32_t row = 0; row < rows_; ++row) {
      reference::ScaleRow(*Row(p.scale, row), Width(step.in), Row(step.in, row));
    }
  }

  void Run(const Step& step, const MultiplyParams& p) {
    const float scale = p.factor * (p.scale == kNoWeight ? 1.0f : *state_.Vector(p.scale));
    for (uint32_t row = 0; row < rows_; ++row) {
      const float* by = p.by == kNoValue ? nullptr : Row(p.by, row) + p.first;
      reference::Multiply(by, scale, Width(step.in), Row(step.in, row));
    }
  }

  void Run(const Step& step, const MixStreamsParams& p) {
    MixStreamsArgs base = {};
    base.rule = p.rule;
    base.n_streams = p.n_streams;
    base.active = p.active;
    base.width = Width(step.in);
    base.scale = state_.Vector(p.scale);
    for (uint32_t row = 0; row < rows_; ++row) {
      MixStreamsArgs a = base;
      for (uint32_t i = 0; i < a.n_streams; ++i) {
        a.streams[i] = Row(static_cast<ValueId>(p.streams + i), row);
      }
      if (p.coefs != kNoValue) a.coefs = Row(p.coefs, row);
      MixStreams(a, Row(step.in, row));
    }
  }

  void Run(const Step& step, const MatchRmsParams& p) {
    for (uint32_t row = 0; row < rows_; ++row) {
      MatchRms(Row(step.in, row), Row(p.like, row), Width(step.in), p.epsilon, Row(step.out, row));
    }
  }

  void Run(const Step& step, const ThresholdParams& p) {
    for (uint32_t row = 0; row < rows_; ++row) {
      Threshold(p.deviations, p.n_columns, Row(step.in, row));
    }
  }

  void Run(const Step& step, const AdaptParams& p) {
    ForEachRow(args_, [&](uint32_t row, const SequenceRows& sequence, uint32_t) {
      for (const ActiveAdapter& active : sequence.adapters) {
        const LowRank* change = active.adapter->Of(p.weight);
        if (change == nullptr) continue;
        float* y = state_.low_rank;
        const float* x = Row(step.in, row);
        if (IsIntegerLowRank(change->dtype) && !program_.splits_rows) x = Rounded(x, change->cols);
        reference::MultiplyLowRank(LowRankA(*change, active.scale, x, 1, y));
        for (const LowRankBlock& block : change->blocks) {
          reference::MultiplyLowRank(
              LowRankB(*change, block, y, 1, Row(step.out, row), Width(step.out)));
        }
      }
    });
  }

  void Run(const Step& step, const SteerParams& p) {
    ForEachRow(args_, [&](uint32_t row, const SequenceRows& sequence, uint32_t) {
      for (const ActiveAdapter& active : sequence.adapters) {
        const float* direction = active.adapter->DirectionOf(p.layer);
        for (uint32_t i = 0; direction != nullptr && i < Width(step.in); ++i) {
          Row(step.in, row)[i] += active.scale * direction[i];
        }
      }
    });
  }

  // Rounds a row as integer matmuls do, in the scratch of one. With split rows what is left is
  // beyond the precision of tests.
  const float* Rounded(const float* x, uint32_t n) {
    auto* rounded = reinterpret_cast<float*>(state_.scratch);
    auto* values = reinterpret_cast<int8_t*>(rounded + n);
    const reference::QuantizedRow row =
        reference::QuantizeRow(x, n, /*is_symmetric=*/false, values);
    for (uint32_t i = 0; i < n; ++i) {
      rounded[i] = static_cast<float>(values[i] - row.zero_point) * row.scale;
    }
    return rounded;
  }

  void Run(const Step& step, const AddEmbeddingsParams& p) {
    for (uint32_t row = 0; row < rows_; ++row) {
      const float* added = EmbeddingOf(args_, p.stride, args_.tokens[row]);
      if (added == nullptr) continue;
      for (uint32_t i = 0; i < Width(step.in); ++i) Row(step.in, row)[i] += added[p.first + i];
    }
  }

  void Run(const Step& step, const FeaturesParams& p) {
    const uint32_t width = Width(step.out), stride = p.stride == 0 ? width : p.stride;
    const uint32_t n = p.optional_rows == 0 ? rows_ : rows_ - OmittedRows(program_, args_);
    for (uint32_t row = 0; row < n; ++row) {
      const float* from = args_.features.data() + uint64_t{row} * stride + p.first;
      std::memcpy(Row(step.out, row), from, width * sizeof(float));
    }
    std::memset(Row(step.out, n), 0, uint64_t{rows_ - n} * width * sizeof(float));
  }

  void Run(const Step& step, const NormRowsParams& p) {
    NormRows(state_.Vector(p.weight), state_.Vector(p.bias), p.epsilon,
             rows_ - OmittedRows(program_, args_) / p.stride, Width(step.in), Data(step.in));
  }

  void Run(const Step& step, const Im2colParams& p) {
    const uint32_t in_rows = RowsOf(program_.values[step.in], RunRows(args_));
    for (uint32_t row = 0; row < rows_; ++row) {
      reference::Im2col(Data(step.in), in_rows, Width(step.in), p, row, Row(step.out, row));
    }
  }

  void Run(const Step& step, const AddPositionsParams& p) {
    const uint32_t width = Width(step.in);
    const auto add = [&](WeightId table, uint32_t index, uint32_t row) {
      if (table == kNoWeight) return;
      const float* from = state_.Vector(table) + uint64_t{index} * width;
      for (uint32_t i = 0; i < width; ++i) Row(step.in, row)[i] += from[i];
    };
    ForEachRow(args_, [&](uint32_t row, const SequenceRows& s, uint32_t position) {
      add(p.token_types, position < s.n_first_type ? 0 : 1, row);
      add(p.positions, position, row);
    });
  }

  void Run(const Step& step, const QkvRopeParams& p) {
    const AttentionKind& kind = program_.kinds[p.kind];
    QkvRopeArgs a = {};
    a.rotary_dim = kind.rope == kNoRope ? 0 : program_.ropes[kind.rope].rotary_dim;
    a.q_norm = state_.Vector(p.q_norm);
    a.k_norm = state_.Vector(p.k_norm);
    a.v_norm = state_.Vector(p.v_norm);
    a.norms_span_heads = NormsSpanHeads(program_, p);
    a.epsilon = p.epsilon;
    a.shares_kv = p.shares_kv;
    RunQkvRope(step, kind, p.group_layer, kind.rope == kNoRope ? kNoValue : p.angles, a);
  }

  void Run(const Step& step, const StoreKvParams& p) {
    RunQkvRope(step, WithoutQueries(program_.kinds[p.kind]), p.group_layer, kNoValue, {});
  }

  void RunQkvRope(const Step& step, const AttentionKind& kind, uint32_t group_layer, ValueId angles,
                  QkvRopeArgs a) {
    a.kind = &kind;
    if (kind.group != kNoGroup) {
      a.group = &program_.kv_groups[kind.group];
      a.pools = KvPoolsOf(*a.group, state_.memory);
    }
    a.group_layer = group_layer;
    ForEachRow(args_, [&](uint32_t row, const SequenceRows& sequence, uint32_t position) {
      if (a.group != nullptr) a.table = &sequence.tables[kind.group];
      a.position = position;
      a.text_position = TextPosition(args_, row, position);
      a.angles = angles == kNoValue ? nullptr : Row(angles, row);
      reference::QkvRope(a, Row(step.in, row));
    });
  }

  void Run(const Step& step, const AttentionParams& p) {
    const AttentionKind& kind = program_.kinds[p.kind];
    const KvGroup& group = program_.kv_groups[kind.group];
    AttentionArgs a = {};
    a.kind = &kind;
    a.group = &group;
    a.pools = KvPoolsOf(group, state_.memory);
    a.group_layer = p.group_layer;
    a.sinks = state_.Vector(p.sinks);
    SetRelativePositionBias(p.relative_position_bias, &a);
    ForEachRow(args_, [&](uint32_t row, const SequenceRows& sequence, uint32_t position) {
      a.table = &sequence.tables[kind.group];
      a.encoder_rows = sequence.encoder_rows;
      if (!kind.is_cross_attention) a.visible = VisibleFrom(args_, sequence, row);
      reference::Attention(a, position, Row(step.in, row), Row(step.out, row), state_.scores);
    });
  }

  void Run(const Step& step, const SelfAttentionParams& p) {
    AttentionArgs a = {};
    a.kind = &program_.kinds[p.kind];
    SetRelativePositionBias(p.relative_position_bias, &a);
    const auto parts = AttentionParts(args_, *a.kind);
    ForEachRow(parts, [&](uint32_t row, const SequenceRows& s, uint32_t position) {
      a.encoder_rows = s.n_rows;
      reference::SelfAttention(a, position, Row(step.in, s.first_row), Row(step.out, row),
                               state_.scores);
    });
  }

  void Run(const Step& step, const ClampParams& p) {
    const float low = state_.Vector(p.ranges)[2 * p.range];
    const float high = state_.Vector(p.ranges)[2 * p.range + 1];
    for (uint32_t row = 0; row < rows_; ++row) {
      float* x = Row(step.in, row) + p.first;
      for (uint32_t i = 0; i < p.n_columns; ++i) x[i] = Min(Max(x[i], low), high);
    }
  }

  void Run(const Step& step, const PoolParams& p) {
    for (uint32_t i = 0; i < PooledRows(program_, args_); ++i) {
      const RowRange rows = RowsOfPooled(program_, args_, i);
      PoolRows({p.mode, p.factor, state_.Vector(p.shift), state_.Vector(p.scale)},
               Row(step.in, rows.first), rows.n, Width(step.in), Row(step.out, i));
    }
  }

  void SetRelativePositionBias(WeightId id, AttentionArgs* args) {
    args->relative_position_bias = state_.Vector(id);
    if (id != kNoWeight) args->n_relative_positions = program_.weights[id].rows;
  }

  void Run(const Step& step, const ConvParams& p) {
    const Weight& weight = program_.weights[p.weight];
    ConvArgs a = {};
    a.weight = state_.Vector(p.weight);
    a.bias = state_.Vector(p.bias);
    a.taps = weight.rows;
    a.width = weight.cols;
    a.in_stride = Width(step.in);
    for (const SequenceRows& s : args_.sequences) {
      const float* in = Row(step.in, s.first_row);
      a.state = StateSlotOf(program_, state_.memory, p, s);
      a.x = in + a.in_stride - a.width;
      if (p.is_gated) {
        a.b = in;
        a.c = in + a.width;
      }
      a.n_rows = s.n_rows;
      a.out = Row(step.out, s.first_row);
      reference::Conv(a);
    }
  }

  void Run(const Step& step, const ScanParams& p) {
    const Weight& rates = program_.weights[p.rates];
    ScanArgs a = {};
    a.rates = state_.Vector(p.rates);
    a.skip = state_.Vector(p.skip);
    a.n_states = rates.rows;
    a.width = rates.cols;
    a.out_stride = Width(step.out);
    for (const SequenceRows& s : args_.sequences) {
      a.state = StateSlotOf(program_, state_.memory, p, s);
      a.time_steps = Row(p.time_steps, s.first_row);
      a.mix = Row(p.mix, s.first_row);
      a.n_rows = s.n_rows;
      a.x = Row(step.in, s.first_row);
      a.out = Row(step.out, s.first_row) + Width(step.out) - rates.cols;
      reference::Scan(a);
    }
  }

  void Run(const Step& step, const LinearAttentionParams& p) {
    LinearAttentionArgs a = LinearAttentionOf(program_, step);
    a.heads = state_.Vector(p.heads);
    for (const SequenceRows& s : args_.sequences) {
      a.state = StateSlotOf(program_, state_.memory, p, s);
      a.n_rows = s.n_rows;
      a.in = Row(step.in, s.first_row);
      a.gates = Row(p.gates, s.first_row) + Width(step.out);
      a.out = Row(step.out, s.first_row);
      reference::LinearAttention(a);
    }
  }

  void Run(const Step& step, const GateParams& p) {
    GateArgs a = GateOf(program_, p);
    a.norm = state_.Vector(p.norm);
    for (uint32_t row = 0; row < rows_; ++row) {
      reference::Gate(a, Row(p.gate, row), Width(step.in), Row(step.in, row));
    }
  }

  // Applies the experts row by row, in routing order. An input weight scales a copy of the row.
  void Run(const Step& step, const ExpertsParams& p) {
    for (uint32_t row = 0; row < rows_; ++row) {
      if (!p.accumulate) std::fill_n(Row(step.out, row), Width(step.out), 0.0f);
      const float* topk = Row(p.topk, row);
      for (uint32_t i = 0; i < p.n_chosen; ++i) {
        const auto expert = static_cast<uint32_t>(topk[i]);
        const float weight = topk[p.n_chosen + i];
        const float in_factor = p.weighs_input ? weight : 1.0f;
        const float out_factor = p.weighs_input ? 1.0f : weight;
        for (uint32_t c = 0; c < Width(step.in); ++c) {
          Data(p.gathered)[c] = Row(step.in, row)[c] * in_factor;
        }
        MultiplyOneRow(p.gate_up_of(expert), p.gathered, p.gate_up);
        if (p.is_gated) {
          reference::GatedAct(Data(p.gate_up), Width(p.activated), p.activation, p.activation_limit,
                              Data(p.activated));
        } else {
          reference::Act(Data(p.gate_up), Width(p.gate_up), p.activation, nullptr);
        }
        MultiplyOneRow(p.down_of(expert), p.activated, p.expert_out);
        float* out = Row(step.out, row);
        for (uint32_t c = 0; c < Width(step.out); ++c) {
          out[c] += out_factor * Data(p.expert_out)[c];
        }
      }
    }
  }

  void Run(const Step& step, const HeadLinearParams& p) {
    const uint32_t n = Width(p.gathered), n_out = Width(p.projected);
    for (uint32_t row = 0; row < rows_; ++row) {
      float* to = Row(step.out, row);
      for (uint32_t h = 0; h < p.n_heads; ++h) {
        const float* from = Row(step.in, row) + uint64_t{h} * (p.first + n);
        std::memcpy(to, from, p.n_copied * sizeof(float));
        std::memcpy(Data(p.gathered), from + p.first, n * sizeof(float));
        MultiplyOneRow(p.weight + h, p.gathered, p.projected);
        std::memcpy(to + p.n_copied, Data(p.projected), n_out * sizeof(float));
        to += p.n_copied + n_out;
      }
      for (const ValueId tail : p.tails) {
        if (tail == kNoValue) continue;
        std::memcpy(to, Row(tail, row), Width(tail) * sizeof(float));
        to += Width(tail);
      }
    }
  }

  void MultiplyOneRow(WeightId matrix, ValueId in, ValueId out) {
    Observe(args_, matrix, Data(in), 1);
    reference::Linear(Data(in), 1, program_.weights[matrix], program_.splits_rows, false, Data(out),
                      state_.scratch);
  }

  uint32_t Width(ValueId id) const { return program_.values[id].width; }
  float* Data(ValueId id) const { return state_.memory.As<float>(program_.values[id].slice); }
  float* Row(ValueId id, uint32_t row) const { return Data(id) + uint64_t{row} * Width(id); }

  const State& state_;
  const Program& program_;
  const RunArgs& args_;
  uint32_t rows_ = 0;  // of the step's output
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
    // A cancelled run must leave the logits: none is cancelled once it has written them.
    const bool has_logits = i != 0 && steps[i - 1].op() == Op::kLogits;
    if (!has_logits && args.cancel != nullptr &&
        args.cancel->load(std::memory_order_relaxed) != 0) {
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
    .takes_masks = true,
    .takes_embeddings = true,
    .takes_features = true,
    .host_kv = &kHostKv,
};

}  // namespace

const Backend* ReferenceBackend() { return &kBackend; }

}  // namespace arn

// Steps other than matmuls and attention: split rows into tasks for the threads.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/contract/check.h"
#include "kernels/contract/route.h"
#include "kernels/contract/streams.h"
#include "kernels/cpu/backend_cpu.h"
#include "kernels/cpu/cpu_state.h"
#include "kernels/pack/pack.h"
#include "kernels/pack/row_table.h"
#include "platform/base/arith.h"

namespace arn::cpu {
namespace {

// Minimum number of elements per task: a few microseconds of work.
constexpr uint32_t kElementsPerTask = 16 * 1024;
// Cost of an element in these steps, relative to one that is loaded, added and stored.
constexpr uint32_t kRopeWork = 8, kActWork = 4;

class Runner {
 public:
  // rows: those that a step works on, before row factors.
  Runner(const State& state, const RunArgs& args, uint32_t rows)
      : state_(state), program_(*state.program), args_(args), rows_(rows) {}

  void Run(const Step& step, const EmbedParams& p) const {
    const Weight& weight = program_.weights[p.weight];
    const float* positions = Vector(p.positions);
    ForSequenceRows(weight.cols, [&](const SequenceRows& sequence, uint32_t i) {
      const uint32_t row = sequence.first_row + i;
      float* out = Row(step.out, row);
      Embed(p, weight, args_.tokens[row], out);
      if (positions == nullptr) return;
      const uint32_t position = TextPosition(args_, row, sequence.first_position + i);
      const float* at = positions + uint64_t{position} * weight.cols;
      state_.simd.add_row(at, weight.cols, out);
    });
  }

  void Embed(const EmbedParams& p, const Weight& weight, int32_t token, float* out) const {
    if (const float* own = EmbeddingOf(args_, p.embedding_stride, token)) {
      std::memcpy(out, own, weight.cols * sizeof(float));
      return;
    }
    const uint32_t row = token < 0 ? 0 : static_cast<uint32_t>(token);
    UnpackRowF32(weight, row, out);
    ForgetRow(args_, weight, row);
    if (p.factor != 1.0f) state_.simd.softcap(out, weight.cols, p.factor, 0.0f);
  }

  void Run(const Step& step, const AddEmbeddingsParams& p) const {
    for (uint32_t row = 0; row < rows_; ++row) {
      const float* added = EmbeddingOf(args_, p.stride, args_.tokens[row]);
      if (added != nullptr) state_.simd.add_row(added + p.first, Width(step.in), Row(step.in, row));
    }
  }

  // As kernels/reference/rope_angles.cc.
  void Run(const Step& step, const RopeAnglesParams& p) const {
    const RopeKind& rope = program_.ropes[p.rope];
    const uint32_t half = rope.rotary_dim / 2;
    ForEachRow(args_, [&](uint32_t row, const SequenceRows&, uint32_t place) {
      float* out = Row(step.out, row);
      const uint32_t position = TextPosition(args_, row, place);
      const uint32_t* by_axis = AxisPositions(args_, rope, row);
      for (uint32_t i = 0; i < half; ++i) {
        const uint32_t turn = by_axis == nullptr ? position : by_axis[rope.axes[i]];
        const float angle = static_cast<float>(turn) * rope.inv_freq[i];
        out[i] = std::cos(angle) * rope.amplitude;
        out[half + i] = std::sin(angle) * rope.amplitude;
      }
    });
  }

  void Run(const Step& step, const NormParams& p) const {
    // Values are dense, so a group of a row is a row of its own.
    const uint32_t n = p.group != 0 ? p.group : program_.weights[p.weight].cols;
    const uint32_t groups = Width(step.in) / n;
    const NormArgs whole = {p.kind, Vector(p.weight), Vector(p.bias), p.epsilon, p.accumulate};
    ForRange(rows_ * groups, n, [&](uint32_t i) {
      NormArgs norm = whole;
      if (p.group != 0) norm.weight += i % groups * n;
      state_.simd.norm(norm, Data(step.in) + uint64_t{i} * n, n, Data(step.out) + uint64_t{i} * n);
    });
  }

  void Run(const Step& step, const QkvRopeParams& p) const {
    const AttentionKind& kind = program_.kinds[p.kind];
    QkvRopeArgs base = {};
    base.group_layer = p.group_layer;
    base.q_norm = Vector(p.q_norm);
    base.k_norm = Vector(p.k_norm);
    base.v_norm = Vector(p.v_norm);
    base.norms_span_heads = NormsSpanHeads(program_, p);
    base.epsilon = p.epsilon;
    base.shares_kv = p.shares_kv;
    RunQkvRope(step, kind, p.angles, base);
  }

  void Run(const Step& step, const StoreKvParams& p) const {
    QkvRopeArgs base = {};
    base.group_layer = p.group_layer;
    RunQkvRope(step, WithoutQueries(program_.kinds[p.kind]), kNoValue, base);
  }

  void Run(const Step& step, const GatedActParams& p) const {
    const uint32_t width = Width(step.out);
    ForRows(kActWork * width, [&](uint32_t row) {
      state_.simd.gated_act(Row(step.in, row), width, p.activation, p.activation_limit,
                            Row(step.out, row));
    });
  }

  void Run(const Step& step, const ActParams& p) const {
    const uint32_t width = Width(step.in);
    ForRange(RowsOf(program_.values[step.in], rows_), width, [&](uint32_t row) {
      state_.simd.act(Row(step.in, row), width, p.activation, Vector(p.parameters));
    });
  }

  void Run(const Step& step, const GateParams& p) const {
    GateArgs gate = GateOf(program_, p);
    gate.norm = Vector(p.norm);
    const uint32_t width = Width(step.in);
    ForRows(width, [&](uint32_t row) {
      if (p.head_dim != 0) return GateHeads(p.head_dim, Row(p.gate, row), width, Row(step.in, row));
      state_.simd.gate(gate, Row(p.gate, row), width, Row(step.in, row));
    });
  }

  // A row has few heads: their softplus costs little beside the product that made the gate.
  void GateHeads(uint32_t head_dim, const float* gate, uint32_t width, float* x) const {
    for (uint32_t first = 0; first < width; first += head_dim, ++gate) {
      const float softplus = std::fmax(*gate, 0.0f) + std::log1p(std::exp(-std::fabs(*gate)));
      state_.simd.multiply(nullptr, softplus, head_dim, x + first);
    }
  }

  void Run(const Step& step, const RouteParams& p) const {
    ForRows(p.n_experts * p.n_chosen, [&](uint32_t row) {
      Route(p, Vector(p.correction), Row(step.in, row), Row(step.out, row));
    });
  }

  void Run(const Step& step, const ScaleRowParams& p) const {
    ForRows(Width(step.in), [&](uint32_t row) {
      state_.simd.scale_row(*Row(p.scale, row), Width(step.in), Row(step.in, row));
    });
  }

  void Run(const Step& step, const MultiplyParams& p) const {
    const float scale = p.factor * (p.scale == kNoWeight ? 1.0f : *Vector(p.scale));
    ForRows(Width(step.in), [&](uint32_t row) {
      const float* by = p.by == kNoValue ? nullptr : Row(p.by, row) + p.first;
      state_.simd.multiply(by, scale, Width(step.in), Row(step.in, row));
    });
  }

  void Run(const Step& step, const MixStreamsParams& p) const {
    MixStreamsArgs base = {};
    base.rule = p.rule;
    base.n_streams = p.n_streams;
    base.active = p.active;
    base.width = Width(step.in);
    base.scale = Vector(p.scale);
    ForRows(base.width * base.n_streams, [&](uint32_t row) {
      MixStreamsArgs a = base;
      for (uint32_t i = 0; i < a.n_streams; ++i) {
        a.streams[i] = Row(static_cast<ValueId>(p.streams + i), row);
      }
      if (p.coefs != kNoValue) a.coefs = Row(p.coefs, row);
      MixStreams(a, Row(step.in, row));
    });
  }

  void Run(const Step& step, const MatchRmsParams& p) const {
    ForRows(Width(step.in), [&](uint32_t row) {
      MatchRms(Row(step.in, row), Row(p.like, row), Width(step.in), p.epsilon, Row(step.out, row));
    });
  }

  void Run(const Step& step, const ThresholdParams& p) const {
    ForRows(p.n_columns,
            [&](uint32_t row) { Threshold(p.deviations, p.n_columns, Row(step.in, row)); });
  }

  // Each head's columns are gathered into dense rows and its result is scattered.
  void Run(const Step& step, const HeadLinearParams& p) const {
    const uint32_t n = Width(p.gathered), n_out = Width(p.projected);
    const uint32_t out_head = p.n_copied + n_out;
    for (uint32_t h = 0; h < p.n_heads; ++h) {
      ForRows(p.first + n, [&](uint32_t row) {
        const float* from = Row(step.in, row) + uint64_t{h} * (p.first + n);
        std::memcpy(Row(step.out, row) + uint64_t{h} * out_head, from, p.n_copied * sizeof(float));
        std::memcpy(Row(p.gathered, row), from + p.first, n * sizeof(float));
      });
      Observe(args_, p.weight + h, Data(p.gathered), rows_);
      Matmul(state_, p.weight + h, Data(p.gathered), rows_, false, Data(p.projected));
      ForRows(n_out, [&](uint32_t row) {
        std::memcpy(Row(step.out, row) + uint64_t{h} * out_head + p.n_copied, Row(p.projected, row),
                    n_out * sizeof(float));
      });
    }
    ForRows(Width(step.out), [&](uint32_t row) {
      float* to = Row(step.out, row) + uint64_t{p.n_heads} * out_head;
      for (const ValueId tail : p.tails) {
        if (tail == kNoValue) continue;
        std::memcpy(to, Row(tail, row), Width(tail) * sizeof(float));
        to += Width(tail);
      }
    });
  }

  void Run(const Step& step, const LinearParams& p) const {
    const uint32_t rows = RowsOf(program_.values[step.out], rows_);
    Observe(args_, p.weight, Data(step.in), rows, p.accumulate ? Data(step.out) : nullptr);
    Matmul(state_, p.weight, Data(step.in), rows, p.accumulate, Data(step.out));
  }

  void Run(const Step& step, const LogitsParams& p) const {
    const uint32_t width = Width(step.in);
    const NormArgs norm = {p.norm_kind, Vector(p.norm), Vector(p.bias), p.epsilon, false};
    const uint64_t first = KeepsNormed(args_) ? program_.max_logit_rows : 0;
    float* const normed = state_.normed + first * width;
    uint32_t n = 0;
    ForEachLogitRow(args_, [&](uint32_t row) {
      state_.simd.norm(norm, Row(step.in, row), width, normed + uint64_t{n} * width);
      ++n;
    });
    Observe(args_, p.weight, normed, n);
    uint32_t best = 0;
    if (kHasHeadParts && p.chosen != kNoValue) {
      HeadOfParts(p, normed);
    } else if (args_.best_id != nullptr) {
      best = BestColumn(state_, p.weight, normed, p.factor, p.softcap);
    } else {
      Head(p, normed, n, state_.memory.As<float>(program_.logits));
    }
    CopyLogits();
    if (first == 0 || state_.is_cut.load(std::memory_order_relaxed)) return;
    std::memcpy(state_.normed, normed, width * sizeof(float));
    if (args_.best_id != nullptr) *args_.best_id = static_cast<int32_t>(best);
  }

  // Applies the chosen parts of the head to the normalised rows that have logits.
  void HeadOfParts(const LogitsParams& p, const float* normed) const {
    float* logits = state_.memory.As<float>(program_.logits);
    const uint32_t vocab = program_.vocab;
    ForEachLogitRow(args_, [&](uint32_t row) {
      std::fill_n(logits, vocab, -INFINITY);
      MatmulParts(state_, p.weight, normed, Row(p.chosen, row), Width(p.chosen) / 2,
                  vocab / p.n_parts, logits);
      normed += program_.weights[p.weight].cols;
      logits += vocab;
    });
  }

  // Applies the head to n normalised rows.
  void Head(const LogitsParams& p, const float* normed, uint32_t n, float* logits) const {
    Matmul(state_, p.weight, normed, n, /*accumulate=*/false, logits);
    if (p.factor == 1.0f && p.softcap == 0.0f) return;
    ForRange(n, program_.vocab, [&](uint32_t i) {
      state_.simd.softcap(logits + uint64_t{i} * program_.vocab, program_.vocab, p.factor,
                          p.softcap);
    });
  }

 private:
  // Fills SequenceRows::logits_copy and best_id, on all threads: on one it took 3 % of a step of 8
  // sequences (135M, two threads).
  void CopyLogits() const {
    if (args_.logit_rows != LogitRows::kLastOfEach) return;
    const uint32_t vocab = program_.vocab;
    const auto n_sequences = static_cast<uint32_t>(args_.sequences.size());
    ForRange(n_sequences, vocab, [&](uint32_t i) {
      const SequenceRows& sequence = args_.sequences[i];
      if (sequence.logits_copy == nullptr) return;
      uint64_t row = 0;
      for (uint32_t j = 0; j < i; ++j) row += 1 + args_.sequences[j].more_logit_rows;
      const float* logits = state_.memory.As<float>(program_.logits) + row * vocab;
      std::memcpy(sequence.logits_copy, logits, vocab * sizeof(float));
      if (sequence.best_id == nullptr) return;
      *sequence.best_id = static_cast<int32_t>(CpuLogitsOps()->argmax(logits, vocab));
    });
  }

  void RunQkvRope(const Step& step, const AttentionKind& kind, ValueId angles,
                  QkvRopeArgs base) const {
    const bool rotates = angles != kNoValue && kind.rope != kNoRope;
    base.kind = &kind;
    if (kind.group != kNoGroup) {
      base.group = &program_.kv_groups[kind.group];
      base.pools = KvPoolsOf(*base.group, state_.memory);
    }
    base.rotary_dim = rotates ? program_.ropes[kind.rope].rotary_dim : 0;
    ForSequenceRows(kRopeWork * Width(step.in), [&](const SequenceRows& sequence, uint32_t i) {
      QkvRopeArgs a = base;
      if (a.group != nullptr) a.table = &sequence.tables[kind.group];
      a.position = sequence.first_position + i;
      a.text_position = TextPosition(args_, sequence.first_row + i, a.position);
      if (rotates) a.angles = Row(angles, sequence.first_row + i);
      state_.simd.qkv_rope(a, Row(step.in, sequence.first_row + i));
    });
  }

  // Rows of `width` elements that are enough work for a task.
  static uint32_t TileRows(uint32_t width) { return Max(1u, kElementsPerTask / Max(1u, width)); }

  // Calls body(i) for i of [0, n), in parallel if n rows of `width` elements are enough work.
  template <typename Body>
  void ForRange(uint32_t n, uint32_t width, const Body& body) const {
    state_.threads.ForTiles(n, TileRows(width), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) body(static_cast<uint32_t>(i));
    });
  }
  template <typename Body>
  void ForRows(uint32_t width, const Body& body) const {
    ForRange(rows_, width, body);
  }
  // Calls body(sequence, i) for row i of each sequence, likewise.
  template <typename Body>
  void ForSequenceRows(uint32_t width, const Body& body) const {
    state_.threads.ForTiles(rows_, TileRows(width), [&](size_t begin, size_t end) {
      const SequenceRows* s = args_.sequences.data();
      for (auto row = static_cast<uint32_t>(begin); row < end; ++row) {
        while (row - s->first_row >= s->n_rows) ++s;
        body(*s, row - s->first_row);
      }
    });
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
  const Runner runner(state, RunArgs(), 0);
  for (const Step& step : state.program->steps) {
    if (const auto* params = step.If<LogitsParams>()) runner.Head(*params, state.normed, 1, logits);
  }
}

void RunStep(const State& state, const Step& step, const RunArgs& args) {
  const bool is_pooled = IsPooled(*state.program, step);
  const Runner runner(state, args, is_pooled ? PooledRows(*state.program, args) : RunRows(args));
  switch (step.op()) {
    case Op::kEmbed: return runner.Run(step, step.Get<EmbedParams>());
    case Op::kAddEmbeddings: return runner.Run(step, step.Get<AddEmbeddingsParams>());
    case Op::kRopeAngles: return runner.Run(step, step.Get<RopeAnglesParams>());
    case Op::kNorm: return runner.Run(step, step.Get<NormParams>());
    case Op::kLinear: return runner.Run(step, step.Get<LinearParams>());
    case Op::kQkvRope: return runner.Run(step, step.Get<QkvRopeParams>());
    case Op::kStoreKv: return runner.Run(step, step.Get<StoreKvParams>());
    case Op::kAttention: return RunAttention(state, step, args);
    case Op::kGatedAct: return runner.Run(step, step.Get<GatedActParams>());
    case Op::kAct: return runner.Run(step, step.Get<ActParams>());
    case Op::kRoute: return runner.Run(step, step.Get<RouteParams>());
    case Op::kExperts: return RunExperts(state, step, args);
    case Op::kLogits: return runner.Run(step, step.Get<LogitsParams>());
    case Op::kFeatures:
    case Op::kIm2col:
    case Op::kAddPositions:
    case Op::kClamp:
    case Op::kNormRows:
    case Op::kPool:
    case Op::kSelfAttention: return RunEncoderStep(state, step, args);
    case Op::kConv: return RunConv(state, step, args);
    case Op::kScan: return RunScan(state, step, args);
    case Op::kHeadLinear: return runner.Run(step, step.Get<HeadLinearParams>());
    case Op::kMultiply: return runner.Run(step, step.Get<MultiplyParams>());
    case Op::kScaleRow: return runner.Run(step, step.Get<ScaleRowParams>());
    case Op::kLinearAttention: return RunLinearAttention(state, step, args);
    case Op::kGate: return runner.Run(step, step.Get<GateParams>());
    case Op::kMixStreams:
      if constexpr (kHasStreams) runner.Run(step, step.Get<MixStreamsParams>());
      return;
    case Op::kMatchRms:
      if constexpr (kHasStreams) runner.Run(step, step.Get<MatchRmsParams>());
      return;
    case Op::kThreshold:
      if constexpr (kHasStreams) runner.Run(step, step.Get<ThresholdParams>());
      return;
    case Op::kAdapt:
      if constexpr (kHasAdapters) RunAdapt(state, step, args);
      return;
    case Op::kSteer:
      if constexpr (kHasAdapters) RunSteer(state, step, args);
      return;
  }
}

}  // namespace arn::cpu

// kQkvRope and kAttention over pages of every type. One Program holds both steps and runs several
// times, so that later runs read what earlier ones wrote.
#include <cmath>
#include <cstring>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/contract/kv_page.h"
#include "platform/base/arith.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kTemperatureStep = 5;
// Queries and weights are rounded to f16, beside what int8 pages may round the other way.
constexpr double kMatrixTolerance = 5e-3;

// K and V of a sequence in double, by the formulas.
struct History {
  std::vector<std::vector<double>> k, v;  // [position][n_kv_heads * head_dim]
};

double RoundInt8Steps(double x, double largest) {
  const double scale = largest / 127.0;
  return scale == 0.0 ? 0.0 : std::nearbyint(x / scale) * scale;
}

class Oracle {
 public:
  Oracle(const AttentionShape& shape, DType kv_dtype, std::vector<float> q_norm,
         std::vector<float> k_norm, Span<const float> inv_freq, float epsilon,
         std::vector<float> sinks)
      : s_(shape),
        dtype_(kv_dtype),
        q_norm_(q_norm),
        k_norm_(k_norm),
        sinks_(sinks),
        epsilon_(epsilon) {
    for (float f : inv_freq) freq_.push_back(static_cast<double>(f));
  }

  // Normalises and rotates one row, appends it to `history` and attends. Writes the row after RoPE
  // to `rotated` and the output to `out`.
  void Token(const float* row, uint32_t position, History* history, std::vector<double>* rotated,
             std::vector<double>* out) const {
    const uint32_t dim = s_.head_dim;
    std::vector<double> x(row, row + (s_.n_heads + 2 * s_.n_kv_heads) * dim);
    if (s_.norms_span_heads) {
      Normalise(q_norm_, s_.n_heads * dim, x.data());
      Normalise(k_norm_, s_.n_kv_heads * dim, x.data() + s_.n_heads * dim);
    }
    const auto clip = static_cast<double>(s_.clip);
    for (double& e : x) e = clip == 0.0 ? e : std::fmax(-clip, std::fmin(e, clip));
    for (uint32_t h = 0; h < s_.n_heads + s_.n_kv_heads; ++h) {
      double* head = x.data() + h * dim;
      const auto& norm = h < s_.n_heads ? q_norm_ : k_norm_;
      const bool has_norm = !norm.empty() && !s_.norms_span_heads;
      if (has_norm && !s_.norm_follows_rope) Normalise(norm, dim, head);
      const uint32_t half = s_.rotary_dim / 2;
      for (uint32_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(static_cast<float>(position) * static_cast<float>(freq_[i]));
        const double a = head[i], b = head[half + i];
        head[i] = a * std::cos(angle) - b * std::sin(angle);
        head[half + i] = b * std::cos(angle) + a * std::sin(angle);
      }
      if (has_norm && s_.norm_follows_rope) Normalise(norm, dim, head);
    }
    if (s_.temperature != 0.0f) {
      const double steps =
          std::floor((position + s_.temperature_shift) / static_cast<double>(kTemperatureStep));
      for (uint32_t i = 0; i < s_.n_heads * dim; ++i) {
        x[i] *= 1.0 + static_cast<double>(s_.temperature) * std::log(1.0 + steps);
      }
    }
    const auto k = x.begin() + s_.n_heads * dim, v = k + s_.n_kv_heads * dim;
    history->k.push_back(Stored(std::vector<double>(k, v)));
    history->v.push_back(Stored(std::vector<double>(v, x.end())));
    *rotated = x;
    out->assign(s_.n_heads * dim, 0.0);
    for (uint32_t h = 0; h < s_.n_heads; ++h) Attend(x, h, position, *history, out);
  }

  static double Scale(const AttentionShape& shape) {
    return static_cast<double>(
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim))));
  }

 private:
  void Normalise(const std::vector<float>& norm, uint32_t n, double* x) const {
    double sum = 0.0;
    for (uint32_t i = 0; i < n; ++i) sum += x[i] * x[i];
    for (uint32_t i = 0; i < n; ++i) {
      x[i] *= static_cast<double>(norm[i]) / std::sqrt(sum / n + static_cast<double>(epsilon_));
    }
  }

  // Rounds x as the page type stores it.
  std::vector<double> Stored(std::vector<double> x) const {
    for (uint32_t h = 0; h < s_.n_kv_heads; ++h) {
      double largest = 0.0;
      for (uint32_t i = 0; i < s_.head_dim; ++i) {
        largest = std::fmax(largest, std::fabs(x[h * s_.head_dim + i]));
      }
      for (uint32_t i = 0; i < s_.head_dim; ++i) {
        double& e = x[h * s_.head_dim + i];
        if (dtype_ == DType::kF16) {
          e = static_cast<double>(F32FromF16(F16FromF32(static_cast<float>(e))));
        }
        if (dtype_ == DType::kInt8) e = RoundInt8Steps(e, largest);
      }
    }
    return x;
  }

  void Attend(const std::vector<double>& x, uint32_t h, uint32_t position, const History& history,
              std::vector<double>* out) const {
    const uint32_t dim = s_.head_dim, kv = h / (s_.n_heads / s_.n_kv_heads);
    uint32_t first = s_.window == 0 || position + 1 < s_.window ? 0 : position + 1 - s_.window;
    if (s_.chunk != 0) first = std::max(first, position / s_.chunk * s_.chunk);
    std::vector<double> p;
    double largest = static_cast<double>(sinks_.empty() ? -INFINITY : sinks_[h]), total = 0.0;
    for (uint32_t t = first; t <= position; ++t) {
      double dot = 0.0;
      for (uint32_t i = 0; i < dim; ++i) dot += x[h * dim + i] * history.k[t][kv * dim + i];
      dot *= Scale(s_);
      const auto cap = static_cast<double>(s_.softcap);
      p.push_back(cap == 0.0 ? dot : cap * std::tanh(dot / cap));
      largest = std::fmax(largest, p.back());
    }
    for (double& e : p) total += e = std::exp(e - largest);
    if (!sinks_.empty()) total += std::exp(static_cast<double>(sinks_[h]) - largest);
    for (uint32_t t = first; t <= position; ++t) {
      for (uint32_t i = 0; i < dim; ++i) {
        (*out)[h * dim + i] += p[t - first] / total * history.v[t][kv * dim + i];
      }
    }
  }

  AttentionShape s_;
  DType dtype_;
  std::vector<float> q_norm_, k_norm_, sinks_;
  std::vector<double> freq_;
  float epsilon_;
};

class AttentionTest : public BackendTest {};

TEST_P(AttentionTest, QkvRopeAndAttention_EveryShapeTypeAndRun_EqualTheFormula) {
  std::mt19937 rng(21);
  for (const AttentionShape& shape : kAttentionShapes) {
    for (DType kv_dtype : kKvTypes) {
      // The shaders of each shape, type and variant take a second to compile. The variants differ
      // in their reductions and tiles, which do not depend on the page type: each takes one type of
      // a shape, and those other than the first take every second shape.
      const auto turn = static_cast<size_t>(&shape - kAttentionShapes);
      const std::string& name = GetParam().name;
      const bool is_of_matrices = name == "VulkanMatrices";
      if (name.starts_with("Vulkan")) {
        const size_t variant = name == "Vulkan" ? 0 : name == "VulkanSharedMemory" ? 1 : 2;
        if (kv_dtype != kKvTypes[(turn + variant) % 3] && !is_of_matrices) continue;
        if (is_of_matrices && kv_dtype != kKvTypes[1 + turn % 2]) continue;
        if (variant != 0 && !is_of_matrices && (turn + variant) % 2 != 0) continue;
      }
      ProgramBuilder builder(/*vocab=*/2, /*max_rows=*/64, /*max_context=*/64);
      AttentionKind kind;
      kind.n_heads = shape.n_heads;
      kind.n_kv_heads = shape.n_kv_heads;
      kind.head_dim = shape.head_dim;
      kind.window = shape.window;
      kind.chunk = shape.chunk;
      kind.attention_scale = static_cast<float>(Oracle::Scale(shape));
      kind.softcap = shape.softcap;
      kind.query_temperature = shape.temperature;
      kind.query_temperature_step = kTemperatureStep;
      kind.query_temperature_shift = shape.temperature_shift;
      kind.qk_norm_follows_rope = shape.norm_follows_rope;
      kind.qkv_clip = shape.clip;
      kind.rope = kNoRope;
      const auto norm = [&](uint32_t heads) {
        const uint32_t size = shape.head_dim * (shape.norms_span_heads ? heads : 1);
        return shape.qk_norm ? RandomFloats(size, 1.0f, &rng) : std::vector<float>();
      };
      const std::vector<float> q_norm = norm(shape.n_heads), k_norm = norm(shape.n_kv_heads);
      Step angles{RopeAnglesParams()};
      Step rope{QkvRopeParams()};
      auto& rope_params = rope.Get<QkvRopeParams>();
      Step attention{AttentionParams()};
      if (shape.rotary_dim != 0) {
        kind.rope = builder.AddRope(shape.rotary_dim, 10000.0f);
        angles.Get<RopeAnglesParams>().rope = static_cast<uint16_t>(kind.rope);
        angles.out = builder.AddValue(shape.rotary_dim);
        builder.AddStep(angles);
      }
      const uint32_t width = (shape.n_heads + 2 * shape.n_kv_heads) * shape.head_dim;
      rope.in = builder.AddValue(width);
      rope_params.angles = angles.out;
      rope_params.epsilon = 1e-6f;
      if (shape.qk_norm) {
        rope_params.q_norm = builder.AddVector(q_norm);
        rope_params.k_norm = builder.AddVector(k_norm);
      }
      // Room for three sequences of 64 tokens.
      const uint32_t pages = 3 * static_cast<uint32_t>(CeilDiv(64, shape.page_tokens));
      rope_params.kind =
          static_cast<uint16_t>(builder.AddAttention(kind, kv_dtype, 3, shape.page_tokens, pages));
      rope_params.group_layer = 1;
      attention.in = rope.in;
      auto& params = attention.Get<AttentionParams>();
      params.kind = rope_params.kind;
      params.group_layer = 1;
      attention.out = builder.AddValue(shape.n_heads * shape.head_dim);
      std::vector<float> sinks;
      if (shape.has_sinks) {
        sinks = RandomFloats(shape.n_heads, 3.0f, &rng);
        params.sinks = builder.AddVector(sinks);
      }
      builder.AddStep(rope);
      builder.AddStep(attention);
      Session session(GetParam().backend, &builder, GetParam().n_threads);
      for (const auto& run : kRuns) {
        session.Forget();
        SCOPED_TRACE(testing::Message()
                     << shape.n_heads << ":" << shape.n_kv_heads << " dim " << shape.head_dim
                     << " window " << shape.window << " page " << shape.page_tokens << " "
                     << DTypeName(kv_dtype) << ", " << run.size() << " sequences, first "
                     << run[0].n_rows << " after " << run[0].n_before);
        const Span<const float> frequencies = kind.rope == kNoRope
                                                  ? Span<const float>()
                                                  : session.program().ropes[kind.rope].inv_freq;
        const Oracle oracle(shape, kv_dtype, q_norm, k_norm, frequencies, rope_params.epsilon,
                            sinks);
        std::vector<History> histories(run.size());
        // Runs the earlier tokens first, one sequence at a time, then the batch under test.
        std::vector<Batch::Part> empty;
        for (size_t s = 0; s < run.size(); ++s) empty.push_back({0, run[s].n_rows});
        Batch batch(session.program(), empty, &rng);
        const std::vector<SequenceRows> all = batch.sequences;
        for (size_t s = 0; s <= run.size(); ++s) {
          const bool last = s == run.size();
          std::vector<SequenceRows> sequences;
          uint32_t n_rows = 0;
          for (size_t i = 0; i < run.size(); ++i) {
            if (!last && i != s) continue;
            SequenceRows rows = all[i];
            rows.first_row = n_rows;
            rows.n_rows = last ? run[i].n_rows : run[i].n_before;
            rows.first_position = last ? run[i].n_before : 0;
            n_rows += rows.n_rows;
            if (rows.n_rows != 0) sequences.push_back(rows);
          }
          if (sequences.empty()) continue;
          const auto x = RandomFloats(size_t{n_rows} * width, 2.0f, &rng);
          std::memcpy(session.ValueData(rope.in), x.data(), x.size() * sizeof(float));
          const std::vector<int32_t> tokens(n_rows, 0);
          RunArgs args;
          args.tokens = {tokens.data(), tokens.size()};
          args.sequences = {sequences.data(), sequences.size()};
          args.logit_rows = LogitRows::kNone;
          ASSERT_EQ(session.Run(args), Status::kOk) << session.message();
          uint32_t row = 0;
          for (size_t i = 0; i < run.size(); ++i) {
            if (!last && i != s) continue;
            const uint32_t first = last ? run[i].n_before : 0;
            const uint32_t n = last ? run[i].n_rows : run[i].n_before;
            for (uint32_t t = 0; t < n; ++t, ++row) {
              std::vector<double> rotated, out;
              oracle.Token(x.data() + size_t{row} * width, first + t, &histories[i], &rotated,
                           &out);
              ExpectNear(session.ValueData(rope.in) + size_t{row} * width, rotated,
                         kAttentionTolerance);
              // A last-bit difference may make f16 and int8 round the other way: at most one step
              // of one element of many.
              ExpectNear(session.ValueData(attention.out) + size_t{row} * out.size(), out,
                         kv_dtype == DType::kF32   ? kAttentionTolerance
                         : is_of_matrices          ? kMatrixTolerance
                         : kv_dtype == DType::kF16 ? 5e-4
                                                   : 4e-3);
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

// Checks the pages slot by slot after one run of 19 tokens.
TEST_P(AttentionTest, QkvRope_Pages_HoldKAndVOfEveryToken) {
  std::mt19937 rng(22);
  constexpr uint32_t kDim = 20, kKv = 2, kPage = 8, kTokens = 19, kWidth = (2 + 2 * kKv) * kDim;
  for (DType kv_dtype : kKvTypes) {
    SCOPED_TRACE(DTypeName(kv_dtype));
    ProgramBuilder builder(2, 64, 64);
    AttentionKind kind;
    kind.n_heads = 2;
    kind.n_kv_heads = kKv;
    kind.head_dim = kDim;
    kind.rope = builder.AddRope(kDim, 10000.0f);
    Step angles{RopeAnglesParams()};
    Step rope{QkvRopeParams()};
    auto& rope_params = rope.Get<QkvRopeParams>();
    angles.out = builder.AddValue(kDim);
    rope.in = builder.AddValue(kWidth);
    rope_params.angles = angles.out;
    rope_params.kind = static_cast<uint16_t>(builder.AddAttention(kind, kv_dtype, 2, kPage, 8));
    rope_params.group_layer = 1;
    builder.AddStep(angles);
    builder.AddStep(rope);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    auto x = RandomFloats(kTokens * kWidth, 1.0f, &rng);
    std::fill_n(x.begin() + 3 * kWidth, kWidth, 0.0f);  // a zero row
    std::memcpy(session.ValueData(rope.in), x.data(), x.size() * sizeof(float));
    Batch batch(session.program(), {{0, kTokens}}, &rng);
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk);
    const KvGroup& group = session.program().kv_groups[0];
    for (uint32_t t = 0; t < kTokens; ++t) {
      for (uint32_t h = 0; h < kKv; ++h) {
        const KvHeadPage page = KvPageAt(group, session.Pools(0), batch.pages[0][t / kPage],
                                         rope_params.group_layer, h);
        const float* row = session.ValueData(rope.in) + t * kWidth;  // after RoPE
        for (bool v : {false, true}) {
          const float* expected = row + (2 + (v ? kKv : 0) + h) * kDim;
          const KvHeadBlock& block = v ? page.v : page.k;
          const std::byte* stored = block.values;
          float largest = 0.0f;
          for (uint32_t i = 0; i < kDim; ++i) {
            largest = std::fmax(largest, std::fabs(expected[i]));
          }
          if (kv_dtype == DType::kInt8) {
            const auto* scales = static_cast<const float*>(block.scales);
            ASSERT_EQ(scales[t % kPage], largest / 127.0f);
          }
          for (uint32_t i = 0; i < kDim; ++i) {
            const uint32_t at = t % kPage * kDim + i;
            if (kv_dtype == DType::kF32) {
              float e;
              std::memcpy(&e, stored + at * sizeof e, sizeof e);
              ASSERT_EQ(e, expected[i]);
            } else if (kv_dtype == DType::kF16) {
              uint16_t e;
              std::memcpy(&e, stored + at * sizeof e, sizeof e);
              ASSERT_EQ(e, F16FromF32(expected[i]));
            } else {
              const double steps = largest == 0.0f ? 0.0
                                                   : static_cast<double>(expected[i]) /
                                                         static_cast<double>(largest / 127.0f);
              ASSERT_NEAR(static_cast<double>(static_cast<int8_t>(stored[at])), steps, 0.5001);
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionTest, testing::ValuesIn(AttentionBackends()),
                         [](const auto& i) { return i.param.name; });
INSTANTIATE_TEST_SUITE_P(Matrices, AttentionTest, testing::ValuesIn(MatrixBackends()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance

// Latent attention: kHeadLinear, and kQkvRope and kAttention on pages that hold keys only.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/reference/backend_reference.h"
#include "platform/base/arith.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

struct HeadShape {
  uint32_t n_heads, first, n_copied, in, out;
  uint32_t tails[2];  // 0: none
};
// One column, odd sizes, rows of several blocks; the last two are those of DeepSeek-V3.
constexpr HeadShape kHeadShapes[] = {
    {1, 0, 0, 1, 1, {0, 0}},    {3, 8, 8, 20, 16, {8, 16}},       {5, 7, 6, 11, 27, {0, 9}},
    {4, 8, 0, 70, 150, {5, 0}}, {2, 64, 64, 128, 512, {64, 512}}, {2, 64, 0, 512, 128, {0, 0}},
};
constexpr uint32_t kRows[] = {1, 7, 37};

// Integer weights have their rows quantised to 8 bits.
constexpr double kIntegerTolerance = 2e-2;

// A kHeadLinear step with random matrices.
struct HeadLinear {
  HeadLinear(const HeadShape& shape, const std::vector<DType>& types, std::mt19937* rng)
      : s(shape), builder(2, kRows[2], 64) {
    auto& p = step.Get<HeadLinearParams>();
    p.n_heads = static_cast<uint16_t>(s.n_heads);
    p.first = static_cast<uint16_t>(s.first);
    p.n_copied = static_cast<uint16_t>(s.n_copied);
    step.in = builder.AddValue(in_width());
    step.out = builder.AddValue(out_width());
    p.gathered = builder.AddValue(s.in);
    p.projected = builder.AddValue(s.out);
    for (uint32_t t = 0; t < 2; ++t) {
      if (s.tails[t] != 0) p.tails[t] = builder.AddValue(s.tails[t]);
    }
    for (uint32_t h = 0; h < s.n_heads; ++h) {
      const DType dtype = types[h % types.size()];
      matrices.push_back(RandomMatrix(dtype, s.out, s.in, h == 1, rng));
      const WeightId id = builder.AddMatrix(matrices.back(), TargetLayout(PackTargets()[0], dtype));
      if (h == 0) p.weight = id;
    }
    builder.AddStep(step);
  }

  uint32_t in_width() const { return s.n_heads * (s.first + s.in); }
  uint32_t out_head() const { return s.n_copied + s.out; }
  uint32_t out_width() const { return s.n_heads * out_head() + s.tails[0] + s.tails[1]; }

  // Runs it and returns the output.
  std::vector<float> Run(const BackendCase& backend, const std::vector<float>& x,
                         const std::vector<float> tails[2], uint32_t rows, Session* session,
                         std::mt19937* rng) const {
    const auto put = [&](ValueId id, const std::vector<float>& values) {
      if (values.empty()) return;
      std::memcpy(session->ValueData(id), values.data(), values.size() * sizeof(float));
    };
    put(step.in, x);
    for (uint32_t t = 0; t < 2; ++t) put(step.Get<HeadLinearParams>().tails[t], tails[t]);
    Batch batch(session->program(), {{0, rows}}, rng);
    EXPECT_EQ(session->Run(batch.Args()), Status::kOk) << backend.name << session->message();
    const float* y = session->ValueData(step.out);
    return {y, y + size_t{rows} * out_width()};
  }

  // In double, with activations as they are.
  std::vector<double> Exact(const std::vector<float>& x, const std::vector<float> tails[2],
                            uint32_t rows) const {
    std::vector<double> y;
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t h = 0; h < s.n_heads; ++h) {
        const float* from = x.data() + row * in_width() + h * (s.first + s.in);
        y.insert(y.end(), from, from + s.n_copied);
        const Matrix& m = matrices[h];
        for (uint32_t r = 0; r < s.out; ++r) {
          double sum = m.bias.empty() ? 0.0 : static_cast<double>(m.bias[r]);
          for (uint32_t c = 0; c < s.in; ++c) {
            sum += m.exact[r * s.in + c] * static_cast<double>(from[s.first + c]);
          }
          y.push_back(sum);
        }
      }
      for (uint32_t t = 0; t < 2; ++t) {
        const auto at = tails[t].begin() + row * s.tails[t];
        y.insert(y.end(), at, at + s.tails[t]);
      }
    }
    return y;
  }

  const HeadShape s;
  ProgramBuilder builder;
  Step step{HeadLinearParams()};
  std::vector<Matrix> matrices;
};

class LatentTest : public BackendTest {
 protected:
  static bool IsDevice() { return GetParam().backend->host_kv == nullptr; }

  // Against the formula, and, with integer weights, against the reference backend, which rounds
  // their rows to the same steps.
  void ExpectHeads(const HeadShape& shape, const std::vector<DType>& types, bool is_integer) {
    HeadLinear c(shape, types, &rng_);
    Session session(GetParam().backend, &c.builder, GetParam().n_threads);
    Session reference(ReferenceBackend(), &c.builder, 1);
    for (const uint32_t rows : kRows) {
      SCOPED_TRACE(testing::Message() << rows << " rows");
      const auto x = RandomFloats(size_t{rows} * c.in_width(), 1.0f, &rng_);
      std::vector<float> tails[2];
      for (uint32_t t = 0; t < 2; ++t) {
        tails[t] = RandomFloats(size_t{rows} * shape.tails[t], 1.0f, &rng_);
      }
      const auto found = c.Run(GetParam(), x, tails, rows, &session, &rng_);
      ExpectNear(found.data(), c.Exact(x, tails, rows),
                 is_integer ? kIntegerTolerance : 2 * kTolerance);
      if (!is_integer) continue;
      ExpectNear(found.data(), c.Run(GetParam(), x, tails, rows, &reference, &rng_),
                 2 * kTolerance);
    }
  }

  std::mt19937 rng_{57};
};

// The shaders of a shape and type take a second to compile: on a device each shape has two types.
TEST_P(LatentTest, HeadLinear_EveryShapeTypeAndRowCount_EqualsTheFormula) {
  const std::vector<DType> types = WeightTypesOf(GetParam());
  const size_t variant = GetParam().name == "Vulkan" ? 0 : 1;
  for (const HeadShape& shape : kHeadShapes) {
    const auto turn = static_cast<size_t>(&shape - kHeadShapes);
    for (size_t i = 0; i < types.size(); ++i) {
      const size_t of_turn =
          (i + types.size() - (2 * turn + variant) % types.size()) % types.size();
      if (IsDevice() && of_turn > 1 - variant) continue;
      SCOPED_TRACE(testing::Message() << shape.n_heads << " heads of " << shape.out << " x "
                                      << shape.in << " " << DTypeName(types[i]));
      ExpectHeads(shape, {types[i]}, IsInteger(types[i]));
      if (HasFatalFailure()) return;
    }
  }
}

// Matrices at unequal distances.
TEST_P(LatentTest, HeadLinear_OfDifferentTypes_EqualsTheFormula) {
  ExpectHeads({7, 8, 8, 20, 16, {8, 16}}, {DType::kF32, DType::kInt8, DType::kInt8, DType::kInt4},
              /*is_integer=*/true);
}

struct LatentShape {
  uint32_t n_heads, head_dim, rotary_dim, window, page_tokens;
};
// Odd sizes, a window, more heads than a tile has queries; the last one is wider than tiles are.
constexpr LatentShape kLatentShapes[] = {
    {4, 24, 8, 0, 8}, {3, 33, 6, 0, 16}, {5, 40, 8, 6, 8}, {70, 16, 4, 0, 32}, {4, 576, 64, 0, 32},
};

// What a page gives back of a row.
std::vector<double> Stored(const float* x, uint32_t n, DType dtype) {
  std::vector<double> row(x, x + n);
  double largest = 0.0;
  for (const double e : row) largest = std::fmax(largest, std::fabs(e));
  for (double& e : row) {
    if (dtype == DType::kF16) {
      e = static_cast<double>(F32FromF16(F16FromF32(static_cast<float>(e))));
    } else if (dtype == DType::kInt8 && largest != 0.0) {
      e = std::nearbyint(e / (largest / 127.0)) * (largest / 127.0);
    }
  }
  return row;
}

// kQkvRope and kAttention on pages of keys only, in the second of two layers.
struct Latent {
  Latent(const LatentShape& shape, DType dtype) : builder(2, 64, 64) {
    const uint32_t dim = shape.head_dim, heads = shape.n_heads;
    kind.n_heads = heads;
    kind.n_kv_heads = 1;
    kind.head_dim = dim;
    kind.window = shape.window;
    kind.attention_scale = 1.0f / std::sqrt(static_cast<float>(dim));
    kind.rope = builder.AddRope(shape.rotary_dim, 10000.0f);
    RopeAnglesParams angles;
    angles.rope = static_cast<uint16_t>(kind.rope);
    QkvRopeParams rope;
    rope.angles = builder.AddValue(shape.rotary_dim);
    qkv = builder.AddValue((heads + 1) * dim);
    out = builder.AddValue(heads * dim);
    rope.kind = static_cast<uint16_t>(
        builder.AddAttention(kind, dtype, 2, shape.page_tokens, 64 / shape.page_tokens));
    rope.group_layer = 1;
    builder.KeepKeysOnly(rope.kind);
    AttentionParams attention;
    attention.kind = rope.kind;
    attention.group_layer = 1;
    builder.AddStep(angles, kNoValue, rope.angles);
    builder.AddStep(rope, qkv, kNoValue);
    builder.AddStep(attention, qkv, out);
  }
  ProgramBuilder builder;
  AttentionKind kind;
  ValueId qkv = kNoValue, out = kNoValue;
};

TEST_P(LatentTest, Attention_OfKeysOnly_TakesThemAsValues) {
  for (const LatentShape& shape : kLatentShapes) {
    for (const DType dtype : kKvTypes) {
      const auto turn = static_cast<size_t>(&shape - kLatentShapes);
      if (IsDevice() && dtype != kKvTypes[turn % 3]) continue;
      SCOPED_TRACE(testing::Message()
                   << shape.n_heads << " heads of " << shape.head_dim << " " << DTypeName(dtype));
      const uint32_t dim = shape.head_dim, heads = shape.n_heads, width = (heads + 1) * dim;
      Latent c(shape, dtype);
      Session session(GetParam().backend, &c.builder, GetParam().n_threads);
      std::vector<std::vector<double>> keys;
      Batch batch(session.program(), {{0, 19}}, &rng_);
      for (const uint32_t rows : {19u, 1u, 5u, 33u}) {
        if (!keys.empty()) batch.Advance({rows});
        const auto x = RandomFloats(size_t{rows} * width, 2.0f, &rng_);
        std::memcpy(session.ValueData(c.qkv), x.data(), x.size() * sizeof(float));
        ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
        for (uint32_t row = 0; row < rows; ++row) {
          const float* q = session.ValueData(c.qkv) + row * width;  // after RoPE
          keys.push_back(Stored(q + heads * dim, dim, dtype));
          const size_t end = keys.size(), window = shape.window;
          const size_t first = window == 0 || end < window ? 0 : end - window;
          std::vector<double> expected(size_t{heads} * dim, 0.0);
          for (uint32_t h = 0; h < heads; ++h) {
            std::vector<double> p;
            double largest = -INFINITY, total = 0.0;
            for (size_t t = first; t < end; ++t) {
              double dot = 0.0;
              for (uint32_t i = 0; i < dim; ++i) {
                dot += static_cast<double>(q[h * dim + i]) * keys[t][i];
              }
              p.push_back(dot * static_cast<double>(c.kind.attention_scale));
              largest = std::fmax(largest, p.back());
            }
            for (double& e : p) total += e = std::exp(e - largest);
            for (size_t t = first; t < end; ++t) {
              for (uint32_t i = 0; i < dim; ++i) {
                expected[h * dim + i] += p[t - first] / total * keys[t][i];
              }
            }
          }
          ExpectNear(session.ValueData(c.out) + row * expected.size(), expected,
                     dtype == DType::kInt8 ? 4e-3 : 5e-4);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// In place and into another page: un-rotated keys are not overwritten by the values.
TEST_P(LatentTest, Edit_OfKeysOnly_UnrotatesThemAsTheReferenceDoes) {
  const LatentShape shape = {4, 24, 8, 0, 8};
  const uint32_t width = (shape.n_heads + 1) * shape.head_dim;
  Latent c(shape, DType::kF32);
  Session session(GetParam().backend, &c.builder, GetParam().n_threads);
  Session reference(ReferenceBackend(), &c.builder, 1);
  Batch batch(session.program(), {{0, 16}}, &rng_);
  const auto x = RandomFloats(size_t{16} * width, 2.0f, &rng_);
  std::vector<uint32_t> used = batch.pages[0];
  uint32_t spare = 0;
  while (std::count(used.begin(), used.begin() + 2, spare) != 0) ++spare;
  const KvEdit edits[] = {{0, used[0], used[0], 5, 8}, {0, used[1], spare, 3, 8}};
  std::vector<float> keys[2];
  for (Session* s : {&session, &reference}) {
    std::memcpy(s->ValueData(c.qkv), x.data(), x.size() * sizeof(float));
    ASSERT_EQ(s->Run(batch.Args()), Status::kOk) << s->message();
    RunArgs args;
    args.edits = {edits, 2};
    args.logit_rows = LogitRows::kNone;
    ASSERT_EQ(s->Run(args), Status::kOk) << s->message();
    for (const KvEdit& edit : edits) {
      const KvHeadPage page = KvPageAt(s->program().kv_groups[0], s->Pools(0), edit.to, 1, 0);
      const auto* rows = reinterpret_cast<const float*>(page.k.values);
      auto& to = keys[s == &session ? 0 : 1];
      to.insert(to.end(), rows, rows + shape.page_tokens * shape.head_dim);
    }
  }
  ExpectNear(keys[0].data(), keys[1], kAttentionTolerance);
}

INSTANTIATE_TEST_SUITE_P(Backends, LatentTest, testing::ValuesIn(AttentionBackends()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance

// Encoder steps, cross-attention, and relative position biases.
#include <cmath>
#include <cstring>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/contract/relative_position_bias.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kMaxRows = 75;  // not a power of two, more than two tiles

struct EncoderShape {
  uint32_t n_heads, n_kv_heads, head_dim, rows;
  uint32_t n_relative_positions = 0;  // of the bias on one side of the query; 0: no bias
};
constexpr EncoderShape kShapes[] = {
    {4, 4, 8, 1, 3}, {4, 4, 16, 33, 5}, {7, 1, 80, 75}, {6, 2, 40, 32, 200}, {2, 2, 64, 64, 9},
};

AttentionKind KindOf(const EncoderShape& s) {
  AttentionKind kind;
  kind.n_heads = s.n_heads;
  kind.n_kv_heads = s.n_kv_heads;
  kind.head_dim = s.head_dim;
  kind.attention_scale = 0.3f;
  return kind;
}

Matrix BiasRows(uint32_t n_relative_positions, uint32_t n_heads, std::mt19937* rng) {
  return RandomMatrix(DType::kF32, n_relative_positions, n_heads, false, rng);
}

// Attention of one head over keys [n, dim] and values; bias(key) is added to the scores.
template <typename Bias>
std::vector<double> Attend(const float* q, const std::vector<const float*>& keys,
                           const std::vector<const float*>& values, uint32_t dim, double scale,
                           const Bias& bias) {
  std::vector<double> p, out(dim, 0.0);
  double largest = -INFINITY, total = 0.0;
  for (uint32_t t = 0; t < keys.size(); ++t) {
    double dot = 0.0;
    for (uint32_t i = 0; i < dim; ++i) {
      dot += static_cast<double>(q[i]) * static_cast<double>(keys[t][i]);
    }
    p.push_back(dot * scale + bias(t));
    largest = std::fmax(largest, p.back());
  }
  for (double& e : p) total += e = std::exp(e - largest);
  for (uint32_t t = 0; t < keys.size(); ++t) {
    for (uint32_t i = 0; i < dim; ++i) out[i] += p[t] / total * static_cast<double>(values[t][i]);
  }
  return out;
}

// Returns the bias row of the distance, clamped to the first and last row.
double BiasOf(const Matrix& rows, int64_t origin, int64_t distance, uint32_t head) {
  if (rows.rows == 0) return 0.0;
  const int64_t row = std::min<int64_t>(std::max<int64_t>(origin + distance, 0), rows.rows - 1);
  return rows.exact[static_cast<size_t>(row) * rows.cols + head];
}

RunArgs EncoderRun(const std::vector<float>& features, const SequenceRows& sequence) {
  RunArgs args;
  args.is_encoder = true;
  args.features = {features.data(), features.size()};
  args.sequences = {&sequence, 1};
  args.logit_rows = LogitRows::kNone;
  return args;
}

class EncoderTest : public BackendTest {};

TEST_P(EncoderTest, FeaturesAndIm2col_EveryStride_AreTheNeighbours) {
  std::mt19937 rng(61);
  for (uint32_t width : {1u, 7u, 40u}) {
    for (uint16_t stride : {1, 2}) {
      for (uint32_t rows : {1u, 2u, 31u}) {
        SCOPED_TRACE(testing::Message()
                     << width << " wide, stride " << stride << ", rows " << rows);
        ProgramBuilder builder(2, 1, 8);
        builder.SetEncoderRows(31);
        Step features{FeaturesParams()};
        features.out = builder.AddEncoderValue(width, 2);
        Step im2col{Im2colParams{.n_taps = 3, .stride = stride, .padding = 1}};
        im2col.in = features.out;
        im2col.out = builder.AddEncoderValue(3 * width, static_cast<uint16_t>(2 / stride));
        builder.AddEncoderStep(features);
        builder.AddEncoderStep(im2col);
        Session session(GetParam().backend, &builder, GetParam().n_threads);
        const auto x = RandomFloats(size_t{2} * rows * width, 1.0f, &rng);
        const SequenceRows sequence = {0, rows, 0, nullptr, rows};
        ASSERT_EQ(Status::kOk, session.Run(EncoderRun(x, sequence))) << session.message();
        std::vector<float> expected;
        for (int64_t center = 0; center < 2 * rows; center += stride) {
          for (int64_t from = center - 1; from <= center + 1; ++from) {
            for (uint32_t i = 0; i < width; ++i) {
              const bool exists = from >= 0 && from < 2 * rows;
              expected.push_back(exists ? x[static_cast<size_t>(from) * width + i] : 0.0f);
            }
          }
        }
        EXPECT_EQ(0, std::memcmp(expected.data(), session.ValueData(im2col.out),
                                 expected.size() * sizeof(float)));
      }
    }
  }
}

// An unpadded convolution's rows, of as many frames as it needs and of fewer, which a norm of all
// rows leaves out.
TEST_P(EncoderTest, RowsBesideAndNormOfRows_EveryShape_EqualTheFormula) {
  if (GetParam().name.starts_with("Vulkan")) GTEST_SKIP() << "refuses the step in its plan";
  std::mt19937 rng(64);
  struct Shape {
    uint32_t width;
    uint16_t taps, stride, next_taps, next_stride;
  };
  constexpr uint32_t kLargest = 9;
  for (const Shape& s : {Shape{1, 5, 3, 3, 2}, {7, 4, 1, 1, 1}, {3, 127, 64, 7, 3}}) {
    const auto out_more = static_cast<uint16_t>(s.next_taps - 1);
    const auto more = static_cast<uint16_t>(out_more * s.stride + s.taps - 1);
    const auto per_row = static_cast<uint16_t>(s.stride * s.next_stride);
    const uint32_t columns = s.taps * s.width;
    for (const uint32_t rows : {1u, 2u, kLargest}) {
      for (const uint32_t omitted : {0u, per_row / 2u, per_row - 1u}) {
        SCOPED_TRACE(testing::Message() << s.width << " wide, " << s.taps << " taps, rows " << rows
                                        << ", omitted " << omitted);
        ProgramBuilder builder(2, 1, 8);
        builder.SetEncoderRows(kLargest);
        Step features{FeaturesParams{.optional_rows = static_cast<uint16_t>(per_row - 1)}};
        features.out = builder.AddEncoderValue(s.width, per_row, more);
        Step im2col{Im2colParams{.n_taps = s.taps, .stride = s.stride}};
        im2col.in = features.out;
        im2col.out = builder.AddEncoderValue(columns, s.next_stride, out_more);
        const auto weight = RandomFloats(columns, 1.0f, &rng);
        const auto bias = RandomFloats(columns, 1.0f, &rng);
        Step norm{NormRowsParams{.weight = builder.AddVector(weight),
                                 .bias = builder.AddVector(bias),
                                 .epsilon = 1e-3f,
                                 .stride = s.stride}};
        norm.in = im2col.out;
        builder.AddEncoderStep(features);
        builder.AddEncoderStep(im2col);
        builder.AddEncoderStep(norm);
        Session session(GetParam().backend, &builder, GetParam().n_threads);
        const uint32_t n_frames = per_row * rows + more - omitted;
        const auto x = RandomFloats(size_t{n_frames} * s.width, 1.0f, &rng);
        const SequenceRows sequence = {0, rows, 0, nullptr, rows};
        ASSERT_EQ(Status::kOk, session.Run(EncoderRun(x, sequence))) << session.message();
        const uint32_t n_rows = (n_frames - s.taps) / s.stride + 1;
        std::vector<double> expected;
        double mean = 0, variance = 0;
        for (uint32_t row = 0; row < n_rows; ++row) {
          for (uint32_t i = 0; i < columns; ++i) {
            expected.push_back(static_cast<double>(x[size_t{row} * s.stride * s.width + i]));
            mean += expected.back();
          }
        }
        const auto n = static_cast<double>(expected.size());
        mean /= n;
        for (const double e : expected) variance += (e - mean) * (e - mean) / n;
        for (size_t i = 0; i < expected.size(); ++i) {
          expected[i] = (expected[i] - mean) / std::sqrt(variance + 1e-3) *
                            static_cast<double>(weight[i % columns]) +
                        static_cast<double>(bias[i % columns]);
        }
        ExpectNear(session.ValueData(norm.in), expected, 1e-5);
        std::vector<float> fewer(x.begin(), x.end() - s.width);
        if (omitted + 1 == per_row) {
          EXPECT_EQ(Status::kBadArgument, session.Run(EncoderRun(fewer, sequence)));
        }
      }
    }
  }
}

TEST_P(EncoderTest, AddPositionsAndSelfAttention_EveryShape_EqualTheFormula) {
  std::mt19937 rng(62);
  for (const EncoderShape& s : kShapes) {
    SCOPED_TRACE(testing::Message() << s.n_heads << ":" << s.n_kv_heads << " dim " << s.head_dim
                                    << " rows " << s.rows);
    ProgramBuilder builder(2, 1, 8);
    builder.SetEncoderRows(kMaxRows);
    const AttentionKind kind = KindOf(s);
    const uint32_t width = (s.n_heads + 2 * s.n_kv_heads) * s.head_dim;
    const Matrix table = RandomMatrix(DType::kF32, kMaxRows, width, false, &rng);
    Matrix bias;
    Step features{FeaturesParams()};
    Step positions{AddPositionsParams()};
    Step attention{SelfAttentionParams()};
    auto& attention_params = attention.Get<SelfAttentionParams>();
    features.out = positions.in = attention.in = builder.AddEncoderValue(width, 1);
    positions.Get<AddPositionsParams>().positions = builder.AddMatrix(table, WeightLayout());
    attention.out = builder.AddEncoderValue(s.n_heads * s.head_dim, 1);
    attention_params.kind = static_cast<uint16_t>(builder.AddSelfAttention(kind));
    if (s.n_relative_positions != 0) {
      bias = BiasRows(2 * s.n_relative_positions - 1, s.n_heads, &rng);
      attention_params.relative_position_bias = builder.AddMatrix(bias, WeightLayout());
    }
    builder.AddEncoderStep(features);
    builder.AddEncoderStep(positions);
    builder.AddEncoderStep(attention);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    const auto x = RandomFloats(size_t{s.rows} * width, 1.0f, &rng);
    const SequenceRows sequence = {0, s.rows, 0, nullptr, s.rows};
    ASSERT_EQ(Status::kOk, session.Run(EncoderRun(x, sequence))) << session.message();

    std::vector<float> qkv = x;
    for (size_t i = 0; i < qkv.size(); ++i) qkv[i] += static_cast<float>(table.exact[i]);
    EXPECT_EQ(0,
              std::memcmp(qkv.data(), session.ValueData(positions.in), qkv.size() * sizeof(float)));
    std::vector<double> expected;
    for (uint32_t r = 0; r < s.rows; ++r) {
      for (uint32_t h = 0; h < s.n_heads; ++h) {
        std::vector<const float*> keys, values;
        for (uint32_t t = 0; t < s.rows; ++t) {
          const uint32_t head = s.n_heads + h / (s.n_heads / s.n_kv_heads);
          keys.push_back(&qkv[size_t{t} * width + head * s.head_dim]);
          values.push_back(keys.back() + size_t{s.n_kv_heads} * s.head_dim);
        }
        const auto out =
            Attend(&qkv[size_t{r} * width + h * s.head_dim], keys, values, s.head_dim,
                   static_cast<double>(kind.attention_scale), [&](uint32_t t) {
                     return BiasOf(bias, int64_t{s.n_relative_positions} - 1, int64_t{r} - t, h);
                   });
        expected.insert(expected.end(), out.begin(), out.end());
      }
    }
    ExpectNear(session.ValueData(attention.out), expected, kAttentionTolerance);
  }
}

// Rows of parts are those that each part has alone.
TEST_P(EncoderTest, SelfAttention_WithParts_SeesTheRowsOfItsPartAlone) {
  std::mt19937 rng(67);
  const EncoderShape s = {7, 1, 80, 75, 0};
  ProgramBuilder builder(2, 1, 8);
  builder.SetEncoderRows(kMaxRows);
  AttentionKind kind = KindOf(s);
  kind.has_parts = true;
  const uint32_t width = (s.n_heads + 2 * s.n_kv_heads) * s.head_dim;
  const uint32_t out_width = s.n_heads * s.head_dim;
  Step features{FeaturesParams()};
  Step attention{SelfAttentionParams()};
  features.out = attention.in = builder.AddEncoderValue(width, 1);
  attention.out = builder.AddEncoderValue(out_width, 1);
  attention.Get<SelfAttentionParams>().kind = static_cast<uint16_t>(builder.AddSelfAttention(kind));
  builder.AddEncoderStep(features);
  builder.AddEncoderStep(attention);
  Session session(GetParam().backend, &builder, GetParam().n_threads);
  const auto x = RandomFloats(size_t{s.rows} * width, 1.0f, &rng);
  const SequenceRows whole = {0, s.rows, 0, nullptr, s.rows};
  const std::vector<SequenceRows> parts = {{0, 1, 0, nullptr, 0},
                                           {1, 40, 0, nullptr, 0},
                                           {41, 4, 0, nullptr, 0},
                                           {45, 30, 0, nullptr, 0}};
  std::vector<double> expected;
  for (const SequenceRows& part : parts) {
    const std::vector<float> own(x.begin() + part.first_row * width,
                                 x.begin() + (part.first_row + part.n_rows) * width);
    const SequenceRows alone = {0, part.n_rows, 0, nullptr, part.n_rows};
    ASSERT_EQ(Status::kOk, session.Run(EncoderRun(own, alone))) << session.message();
    const float* out = session.ValueData(attention.out);
    expected.insert(expected.end(), out, out + size_t{part.n_rows} * out_width);
  }
  RunArgs args = EncoderRun(x, whole);
  args.parts = {parts.data(), parts.size()};
  ASSERT_EQ(Status::kOk, session.Run(args)) << session.message();
  ExpectNear(session.ValueData(attention.out), expected, kAttentionTolerance);
  args.parts = {parts.data(), parts.size() - 1};
  EXPECT_EQ(Status::kBadArgument, session.Run(args));
  args.parts = {parts.data() + 1, parts.size() - 1};
  EXPECT_EQ(Status::kBadArgument, session.Run(args));
}

// Two sequences with encoder outputs of different lengths, each in its own page.
TEST_P(EncoderTest, StoreKvAndAttention_EveryShapeAndType_SeeTheWholeEncoderOutput) {
  std::mt19937 rng(63);
  constexpr uint32_t kQueries = 5;
  for (const EncoderShape& s : kShapes) {
    for (DType kv_dtype : kKvTypes) {
      SCOPED_TRACE(testing::Message() << s.n_heads << ":" << s.n_kv_heads << " dim " << s.head_dim
                                      << " rows " << s.rows << " " << DTypeName(kv_dtype));
      ProgramBuilder builder(2, 2 * kQueries, 8);
      builder.SetEncoderRows(kMaxRows);
      AttentionKind kind;
      kind.n_heads = s.n_heads;
      kind.n_kv_heads = s.n_kv_heads;
      kind.head_dim = s.head_dim;
      kind.attention_scale = 0.3f;
      const uint32_t kv_width = 2 * s.n_kv_heads * s.head_dim, q_width = s.n_heads * s.head_dim;
      Step features{FeaturesParams()};
      Step store{StoreKvParams()};
      auto& store_params = store.Get<StoreKvParams>();
      Step attention{AttentionParams()};
      features.out = store.in = builder.AddEncoderValue(kv_width, 1);
      store_params.kind = static_cast<uint16_t>(builder.AddCrossAttention(kind, kv_dtype, 3, 2));
      store_params.group_layer = 1;
      auto& params = attention.Get<AttentionParams>();
      params.kind = store_params.kind;
      params.group_layer = 1;
      params.shares_kv = true;
      attention.in = builder.AddValue(q_width);
      attention.out = builder.AddValue(q_width);
      builder.AddEncoderStep(features);
      builder.AddEncoderStep(store);
      builder.AddStep(attention);
      Session session(GetParam().backend, &builder, GetParam().n_threads);

      const uint32_t lengths[2] = {s.rows, kMaxRows - s.rows / 2};
      const uint32_t pages[2] = {1, 0};
      std::vector<float> sources[2];
      PageTable tables[2];
      SequenceRows sequences[2];
      for (uint32_t i = 0; i < 2; ++i) {
        sources[i] = RandomFloats(size_t{lengths[i]} * kv_width, 1.0f, &rng);
        tables[i] = {&pages[i], 1, 0};
        const SequenceRows sequence = {0, lengths[i], 0, &tables[i], lengths[i]};
        ASSERT_EQ(Status::kOk, session.Run(EncoderRun(sources[i], sequence))) << session.message();
        sequences[i] = {i * kQueries, kQueries, 3, &tables[i], lengths[i]};
      }
      const auto q = RandomFloats(size_t{2} * kQueries * q_width, 1.0f, &rng);
      std::memcpy(session.ValueData(attention.in), q.data(), q.size() * sizeof(float));
      const std::vector<int32_t> tokens(2 * kQueries, 0);
      RunArgs args;
      args.tokens = {tokens.data(), tokens.size()};
      args.sequences = {sequences, 2};
      args.logit_rows = LogitRows::kNone;
      ASSERT_EQ(Status::kOk, session.Run(args)) << session.message();
      std::vector<double> expected;
      for (uint32_t row = 0; row < 2 * kQueries; ++row) {
        const std::vector<float>& source = sources[row / kQueries];
        for (uint32_t h = 0; h < s.n_heads; ++h) {
          std::vector<const float*> keys, values;
          for (uint32_t t = 0; t < lengths[row / kQueries]; ++t) {
            const uint32_t head = h / (s.n_heads / s.n_kv_heads);
            keys.push_back(&source[size_t{t} * kv_width + head * s.head_dim]);
            values.push_back(keys.back() + size_t{s.n_kv_heads} * s.head_dim);
          }
          const auto out =
              Attend(&q[size_t{row} * q_width + h * s.head_dim], keys, values, s.head_dim,
                     static_cast<double>(kind.attention_scale), [](uint32_t) { return 0.0; });
          expected.insert(expected.end(), out.begin(), out.end());
        }
      }
      // The stored values are exact: the tolerance includes the rounding of the page type.
      ExpectNear(session.ValueData(attention.out), expected,
                 kv_dtype == DType::kF32   ? kAttentionTolerance
                 : kv_dtype == DType::kF16 ? 2e-3
                                           : 2e-2);
    }
  }
}

TEST_P(EncoderTest, Attention_BiasByDistanceBehindTheQuery_EqualsTheFormula) {
  std::mt19937 rng(64);
  for (uint32_t n_relative_positions : {1u, 4u, 90u}) {
    constexpr uint32_t kHeads = 4, kKvHeads = 2, kDim = 24, kRows = 21, kBefore = 40;
    ProgramBuilder builder(2, 64, 64);
    AttentionKind kind;
    kind.n_heads = kHeads;
    kind.n_kv_heads = kKvHeads;
    kind.head_dim = kDim;
    kind.attention_scale = 0.3f;
    kind.rope = kNoRope;
    const uint32_t width = (kHeads + 2 * kKvHeads) * kDim;
    const Matrix bias = BiasRows(n_relative_positions, kHeads, &rng);
    Step append{QkvRopeParams()};
    Step attention{AttentionParams()};
    append.in = builder.AddValue(width);
    auto& params = attention.Get<AttentionParams>();
    params.kind = append.Get<QkvRopeParams>().kind =
        static_cast<uint16_t>(builder.AddAttention(kind, DType::kF32, 1, 8, 8));
    attention.in = append.in;
    attention.out = builder.AddValue(kHeads * kDim);
    params.relative_position_bias = builder.AddMatrix(bias, WeightLayout());
    builder.AddStep(append);
    builder.AddStep(attention);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    Batch batch(session.program(), {{0, kBefore}}, &rng);
    batch.logit_rows = LogitRows::kNone;
    auto qkv = RandomFloats(size_t{kBefore + kRows} * width, 1.0f, &rng);
    std::memcpy(session.ValueData(append.in), qkv.data(), kBefore * width * sizeof(float));
    ASSERT_EQ(Status::kOk, session.Run(batch.Args())) << session.message();
    batch.Advance({kRows});
    std::memcpy(session.ValueData(append.in), &qkv[size_t{kBefore} * width],
                kRows * width * sizeof(float));
    ASSERT_EQ(Status::kOk, session.Run(batch.Args())) << session.message();
    std::vector<double> expected;
    for (uint32_t r = kBefore; r < kBefore + kRows; ++r) {
      for (uint32_t h = 0; h < kHeads; ++h) {
        std::vector<const float*> keys, values;
        for (uint32_t t = 0; t <= r; ++t) {
          keys.push_back(&qkv[size_t{t} * width + (kHeads + h / 2) * kDim]);
          values.push_back(keys.back() + kKvHeads * kDim);
        }
        const auto out = Attend(&qkv[size_t{r} * width + h * kDim], keys, values, kDim, 0.3f,
                                [&](uint32_t t) { return BiasOf(bias, 0, int64_t{r} - t, h); });
        expected.insert(expected.end(), out.begin(), out.end());
      }
    }
    ExpectNear(session.ValueData(attention.out), expected, kAttentionTolerance);
  }
}

TEST_P(EncoderTest, Runs_WithoutAnEncoderOutputOrOfWrongSize_AreRefused) {
  ProgramBuilder builder(2, 4, 8);
  builder.SetEncoderRows(6);
  AttentionKind kind;
  kind.n_heads = kind.n_kv_heads = 2;
  kind.head_dim = 8;
  Step features{FeaturesParams()};
  Step store{StoreKvParams()};
  Step attention{AttentionParams()};
  features.out = store.in = builder.AddEncoderValue(32, 1);
  auto& params = attention.Get<AttentionParams>();
  params.kind = store.Get<StoreKvParams>().kind =
      static_cast<uint16_t>(builder.AddCrossAttention(kind, DType::kF32, 1, 1));
  params.shares_kv = true;
  attention.in = builder.AddValue(16);
  attention.out = builder.AddValue(16);
  builder.AddEncoderStep(features);
  builder.AddEncoderStep(store);
  builder.AddStep(attention);
  Session session(GetParam().backend, &builder, GetParam().n_threads);
  const uint32_t page = 0;
  const PageTable table = {&page, 1, 0};
  const std::vector<float> x(7 * 32);
  const std::vector<float> right(6 * 32);
  EXPECT_EQ(Status::kBadArgument, session.Run(EncoderRun(x, {0, 7, 0, &table, 7})));
  EXPECT_EQ(Status::kBadArgument, session.Run(EncoderRun(x, {0, 6, 0, &table, 6})));
  EXPECT_EQ(Status::kBadArgument, session.Run(EncoderRun(right, {0, 6, 1, &table, 6})));
  EXPECT_EQ(Status::kOk, session.Run(EncoderRun(right, {0, 6, 0, &table, 6})));
  const int32_t token = 0;
  SequenceRows rows = {0, 1, 0, &table, 0};
  RunArgs args;
  args.tokens = {&token, 1};
  args.sequences = {&rows, 1};
  args.logit_rows = LogitRows::kNone;
  EXPECT_EQ(Status::kBadState, session.Run(args));
  rows.encoder_rows = 6;
  EXPECT_EQ(Status::kOk, session.Run(args));
}

INSTANTIATE_TEST_SUITE_P(Backends, EncoderTest, testing::ValuesIn(AttentionBackends()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance

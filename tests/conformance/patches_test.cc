// What a vision tower needs besides an encoder: columns of features, fixed numbers of rows that
// become one, and embeddings in place of tokens.
#include <algorithm>
#include <random>
#include <vector>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

class PatchesTest : public BackendTest {};

std::vector<float> RandomFloats(size_t n, std::mt19937* rng) {
  std::uniform_real_distribution<float> draw(-1.0f, 1.0f);
  std::vector<float> out(n);
  for (float& x : out) x = draw(*rng);
  return out;
}

TEST_P(PatchesTest, FeaturesByColumns_AndPoolsOfFixedRows_EqualTheFormula) {
  std::mt19937 rng(81);
  for (const PoolKind mode : {PoolKind::kConcat, PoolKind::kMean}) {
    for (const uint32_t group : {1u, 4u, 9u}) {
      SCOPED_TRACE(testing::Message() << "mode " << static_cast<int>(mode) << " of " << group);
      constexpr uint32_t kWidth = 13, kStride = 31, kFirst = 18, kGroups[] = {3, 1, 2};
      const uint32_t n_rows = 6 * group;
      ProgramBuilder builder(50, 1, n_rows);
      builder.SetEncoderRows(n_rows);
      builder.SetPoolRows(group);
      const ValueId front = builder.AddEncoderValue(kFirst, 1);
      const ValueId back = builder.AddEncoderValue(kWidth, 1);
      const uint32_t out_width = (mode == PoolKind::kConcat ? group : 1) * kWidth;
      const ValueId pooled = builder.AddPooledValue(out_width, 6);
      FeaturesParams features;
      features.stride = kStride;
      builder.AddEncoderStep(Step(features, kNoValue, front));
      features.first = kFirst;
      builder.AddEncoderStep(Step(features, kNoValue, back));
      PoolParams pool;
      pool.mode = mode;
      const std::vector<float> shift = RandomFloats(out_width, &rng);
      const std::vector<float> scale = RandomFloats(out_width, &rng);
      if (group == 4) {
        pool.factor = 2.5f;
        pool.shift = builder.AddVector(shift);
        pool.scale = builder.AddVector(scale);
      }
      builder.AddEncoderStep(Step(pool, back, pooled));
      Session session(GetParam().backend, &builder, GetParam().n_threads);
      const std::vector<float> in = RandomFloats(uint64_t{n_rows} * kStride, &rng);
      std::vector<SequenceRows> sequences;
      uint32_t next = 0;
      for (const uint32_t groups : kGroups) {
        SequenceRows s;
        s.first_row = next;
        s.n_rows = groups * group;
        next += s.n_rows;
        sequences.push_back(s);
      }
      RunArgs args;
      args.is_encoder = true;
      args.features = {in.data(), in.size()};
      args.sequences = {sequences.data(), sequences.size()};
      args.logit_rows = LogitRows::kNone;
      ASSERT_EQ(Status::kOk, session.Run(args)) << session.message();
      std::vector<double> expected;
      for (uint32_t i = 0; i < 6; ++i) {
        for (uint32_t c = 0; c < out_width; ++c) {
          double y = 0;
          for (uint32_t r = 0; r < group; ++r) {
            const float* row = in.data() + size_t{i * group + r} * kStride + kFirst;
            if (mode == PoolKind::kMean) y += static_cast<double>(row[c]) / group;
            if (mode == PoolKind::kConcat && c / kWidth == r) y = row[c % kWidth];
          }
          const auto less = static_cast<double>(shift[c]), times = static_cast<double>(scale[c]);
          expected.push_back(group == 4 ? (y * 2.5 - less) * times : y);
        }
      }
      ExpectNear(session.ValueData(pooled), expected, 1e-6);
      // A sequence that ends inside a group.
      sequences[0].n_rows += 1;
      const std::vector<float> more = RandomFloats(uint64_t{n_rows + 1} * kStride, &rng);
      sequences[2].first_row += 1;
      sequences[1].first_row += 1;
      args.features = {more.data(), more.size()};
      EXPECT_EQ(Status::kBadArgument, session.Run(args));
    }
  }
}

TEST_P(PatchesTest, Clamp_OfColumns_LeavesTheOthers) {
  std::mt19937 rng(83);
  constexpr uint32_t kWidth = 21, kRows = 5, kFirst = 4, kColumns = 11;
  ProgramBuilder builder(50, 1, kRows);
  builder.SetEncoderRows(kRows);
  const ValueId x = builder.AddEncoderValue(kWidth, 1);
  builder.AddEncoderStep(Step(FeaturesParams(), kNoValue, x));
  ClampParams clamp;
  clamp.ranges = builder.AddVector({-9.0f, 9.0f, -0.25f, 0.5f});
  clamp.range = 1;
  clamp.first = kFirst;
  clamp.n_columns = kColumns;
  builder.AddEncoderStep(Step(clamp, x));
  Session session(GetParam().backend, &builder, GetParam().n_threads);
  const std::vector<float> in = RandomFloats(kRows * kWidth, &rng);
  SequenceRows sequence;
  sequence.n_rows = sequence.encoder_rows = kRows;
  RunArgs args;
  args.is_encoder = true;
  args.features = {in.data(), in.size()};
  args.sequences = {&sequence, 1};
  args.logit_rows = LogitRows::kNone;
  ASSERT_EQ(Status::kOk, session.Run(args)) << session.message();
  std::vector<double> expected;
  for (size_t i = 0; i < in.size(); ++i) {
    const size_t c = i % kWidth;
    const bool is_clamped = c >= kFirst && c < kFirst + kColumns;
    expected.push_back(static_cast<double>(is_clamped ? std::clamp(in[i], -0.25f, 0.5f) : in[i]));
  }
  ExpectNear(session.ValueData(x), expected, 0.0);
}

TEST_P(PatchesTest, TokensBelowZero_TakeTheirEmbedding_WithoutTheFactor_AndWhatIsAddedLater) {
  std::mt19937 rng(82);
  constexpr uint32_t kVocab = 20, kWidth = 24;
  ProgramBuilder builder(kVocab, 4, 40);
  const Matrix table = RandomMatrix(DType::kF32, kVocab, kWidth, false, &rng);
  const Matrix other = RandomMatrix(DType::kF32, kVocab, 10, false, &rng);
  EmbedParams embed;
  embed.weight = builder.AddMatrix(table, WeightLayout());
  embed.factor = 3.5f;
  constexpr uint32_t kStride = 2 * kWidth + 5;
  embed.embedding_stride = kStride;
  const ValueId x = builder.AddValue(kWidth), y = builder.AddValue(10);
  builder.AddStep(Step(embed, kNoValue, x));
  EmbedParams plain;  // of another table: id 0 for embeddings
  plain.weight = builder.AddMatrix(other, WeightLayout());
  builder.AddStep(Step(plain, kNoValue, y));
  AddEmbeddingsParams add;  // also when x has changed
  add.first = kWidth + 3;
  add.stride = kStride;
  ActParams relu;
  relu.activation = Activation::kRelu;
  builder.AddStep(Step(relu, x));
  builder.AddStep(Step(add, x));
  Session session(GetParam().backend, &builder, GetParam().n_threads);
  const std::vector<float> rows = RandomFloats(2 * kStride, &rng);
  Batch batch(session.program(), {{0, 4}}, &rng);
  batch.tokens = {7, -2, -1, 3};
  RunArgs args = batch.Args();
  args.embeddings = {rows.data(), rows.size()};
  ASSERT_EQ(Status::kOk, session.Run(args)) << session.message();
  std::vector<double> expected, expected_other;
  for (const int32_t id : batch.tokens) {
    for (uint32_t c = 0; c < kWidth; ++c) {
      const size_t row = id < 0 ? static_cast<size_t>(-1 - id) : static_cast<size_t>(id);
      const float* own = rows.data() + row * kStride + c;
      expected.push_back(id < 0 ? std::max(static_cast<double>(own[0]), 0.0) +
                                      static_cast<double>(own[add.first])
                                : std::max(table.exact[row * kWidth + c] * 3.5, 0.0));
    }
    for (uint32_t c = 0; c < 10; ++c) {
      expected_other.push_back(other.exact[static_cast<size_t>(id < 0 ? 0 : id) * 10 + c]);
    }
  }
  ExpectNear(session.ValueData(x), expected, 1e-6);
  ExpectNear(session.ValueData(y), expected_other, 1e-6);
  // Rows that are not there.
  batch.tokens = {7, -3, -1, 3};
  args = batch.Args();
  args.embeddings = {rows.data(), rows.size()};
  EXPECT_EQ(Status::kBadToken, session.Run(args));
  args.embeddings = {};
  EXPECT_EQ(Status::kBadToken, session.Run(args));
}

INSTANTIATE_TEST_SUITE_P(Backends, PatchesTest, testing::ValuesIn(AllBackends()),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace arn::conformance

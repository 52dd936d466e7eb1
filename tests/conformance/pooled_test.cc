// Packed sequences: windows and causal masks of self-attention, rotation without pages, token
// types, pooling, and steps over pooled rows.
#include <cmath>
#include <cstring>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kVocab = 50;
constexpr uint32_t kMaxRows = 160;
constexpr uint32_t kLengths[] = {1, 75, 33, 40};  // not powers of two, more than two tiles

class PooledTest : public BackendTest {};

struct Packed {
  std::vector<int32_t> tokens;
  std::vector<SequenceRows> sequences;

  Packed() {
    for (const uint32_t n : kLengths) {
      SequenceRows s;
      s.first_row = static_cast<uint32_t>(tokens.size());
      s.n_rows = n;
      s.n_first_type = n / 3;
      sequences.push_back(s);
      for (uint32_t i = 0; i < n; ++i) tokens.push_back(static_cast<int32_t>((7 * i + n) % kVocab));
    }
  }
  RunArgs Args() const {
    RunArgs args;
    args.is_encoder = true;
    args.tokens = {tokens.data(), tokens.size()};
    args.sequences = {sequences.data(), sequences.size()};
    args.logit_rows = LogitRows::kNone;
    return args;
  }
};

// Adds embed -> value of `width`. Returns the embedding.
Matrix AddEmbed(uint32_t width, ValueId out, ProgramBuilder* builder, std::mt19937* rng) {
  const Matrix table = RandomMatrix(DType::kF32, kVocab, width, false, rng);
  EmbedParams embed;
  embed.weight = builder->AddMatrix(table, WeightLayout());
  builder->AddEncoderStep(Step(embed, kNoValue, out));
  return table;
}

struct Mask {
  uint32_t window;
  bool is_causal;
};

TEST_P(PooledTest, SelfAttention_WindowsAndCausal_EqualTheFormula) {
  std::mt19937 rng(71);
  for (const Mask mask : {Mask{0, true}, Mask{9, true}, Mask{9, false}, Mask{1, false},
                          Mask{40, false}, Mask{0, false}}) {
    for (const uint32_t n_heads : {2u, 6u}) {
      SCOPED_TRACE(testing::Message() << "window " << mask.window << " causal " << mask.is_causal
                                      << " heads " << n_heads);
      constexpr uint32_t kDim = 24, kKvHeads = 2;
      const uint32_t width = (n_heads + 2 * kKvHeads) * kDim;
      ProgramBuilder builder(kVocab, 1, kMaxRows);
      builder.SetEncoderRows(kMaxRows);
      AttentionKind kind;
      kind.n_heads = n_heads;
      kind.n_kv_heads = kKvHeads;
      kind.head_dim = kDim;
      kind.window = mask.window;
      kind.is_causal = mask.is_causal;
      kind.attention_scale = 0.4f;
      const ValueId qkv = builder.AddEncoderValue(width, 1);
      const ValueId out = builder.AddEncoderValue(n_heads * kDim, 1);
      const ValueId pooled = builder.AddPooledValue(n_heads * kDim, 4);
      const Matrix table = AddEmbed(width, qkv, &builder, &rng);
      SelfAttentionParams attention;
      attention.kind = static_cast<uint16_t>(builder.AddSelfAttention(kind));
      builder.AddEncoderStep(Step(attention, qkv, out));
      builder.AddEncoderStep(Step(PoolParams(), out, pooled));
      Session session(GetParam().backend, &builder, GetParam().n_threads);
      const Packed packed;
      ASSERT_EQ(Status::kOk, session.Run(packed.Args())) << session.message();
      std::vector<double> expected;
      const auto at = [&](uint32_t row, uint32_t column) {
        return table.exact[static_cast<size_t>(packed.tokens[row]) * width + column];
      };
      for (const SequenceRows& s : packed.sequences) {
        for (uint32_t r = 0; r < s.n_rows; ++r) {
          for (uint32_t h = 0; h < n_heads; ++h) {
            const uint32_t kv = (n_heads + h / (n_heads / kKvHeads)) * kDim;
            double total = 0;
            std::vector<double> y(kDim, 0.0);
            for (uint32_t t = 0; t < s.n_rows; ++t) {
              const uint32_t distance = t > r ? t - r : r - t;
              if ((mask.is_causal && t > r) || (mask.window != 0 && distance >= mask.window)) {
                continue;
              }
              double dot = 0;
              for (uint32_t i = 0; i < kDim; ++i) {
                dot += at(s.first_row + r, h * kDim + i) * at(s.first_row + t, kv + i);
              }
              const double p = std::exp(dot * 0.4);
              total += p;
              for (uint32_t i = 0; i < kDim; ++i) {
                y[i] += p * at(s.first_row + t, kv + kKvHeads * kDim + i);
              }
            }
            for (const double v : y) expected.push_back(v / total);
          }
        }
      }
      ExpectNear(session.ValueData(out), expected, kAttentionTolerance);
    }
  }
}

TEST_P(PooledTest, QkvRopeAndTokenTypes_EqualTheFormula) {
  std::mt19937 rng(72);
  constexpr uint32_t kHeads = 3, kDim = 10, kRotary = 6, kWidth = 3 * kHeads * kDim;
  ProgramBuilder builder(kVocab, 1, kMaxRows);
  builder.SetEncoderRows(kMaxRows);
  AttentionKind kind;
  kind.n_heads = kind.n_kv_heads = kHeads;
  kind.head_dim = kDim;
  kind.rope = builder.AddRope(kRotary, 30.0f, 1.5f);
  const ValueId qkv = builder.AddEncoderValue(kWidth, 1);
  const ValueId angles = builder.AddEncoderValue(kRotary, 1);
  const ValueId pooled = builder.AddPooledValue(kWidth, 4);
  const Matrix table = AddEmbed(kWidth, qkv, &builder, &rng);
  const Matrix types = RandomMatrix(DType::kF32, kTokenTypes, kWidth, false, &rng);
  AddPositionsParams add;
  add.token_types = builder.AddMatrix(types, WeightLayout());
  builder.AddEncoderStep(Step(add, qkv));
  RopeAnglesParams rope;
  rope.rope = static_cast<uint16_t>(kind.rope);
  builder.AddEncoderStep(Step(rope, kNoValue, angles));
  QkvRopeParams rotate;
  rotate.kind = static_cast<uint16_t>(builder.AddSelfAttention(kind));
  rotate.angles = angles;
  builder.AddEncoderStep(Step(rotate, qkv));
  builder.AddEncoderStep(Step(PoolParams(), qkv, pooled));
  Session session(GetParam().backend, &builder, GetParam().n_threads);
  const Packed packed;
  ASSERT_EQ(Status::kOk, session.Run(packed.Args())) << session.message();
  std::vector<double> expected;
  for (const SequenceRows& s : packed.sequences) {
    for (uint32_t r = 0; r < s.n_rows; ++r) {
      const uint32_t type = r < s.n_first_type ? 0 : 1;
      std::vector<double> x;
      for (uint32_t i = 0; i < kWidth; ++i) {
        x.push_back(table.exact[static_cast<size_t>(packed.tokens[s.first_row + r]) * kWidth + i] +
                    types.exact[type * kWidth + i]);
      }
      for (uint32_t h = 0; h < 2 * kHeads; ++h) {
        for (uint32_t i = 0; i < kRotary / 2; ++i) {
          const double angle = r * std::pow(30.0, -2.0 * i / kRotary);
          const double c = 1.5 * std::cos(angle), d = 1.5 * std::sin(angle);
          double &a = x[h * kDim + i], &b = x[h * kDim + i + kRotary / 2];
          const double first = a * c - b * d;
          b = b * c + a * d;
          a = first;
        }
      }
      expected.insert(expected.end(), x.begin(), x.end());
    }
  }
  ExpectNear(session.ValueData(qkv), expected, kAttentionTolerance);
}

TEST_P(PooledTest, Pool_EveryKind_EqualsTheFormula_AndALayerFollows) {
  std::mt19937 rng(73);
  for (uint32_t kind = 0; kind < kPoolKindCount; ++kind) {
    if (kind == static_cast<uint32_t>(PoolKind::kConcat)) continue;  // patches_test.cc
    for (const uint32_t width : {1u, 63u, 130u}) {
      SCOPED_TRACE(testing::Message() << "kind " << kind << " width " << width);
      ProgramBuilder builder(kVocab, 1, kMaxRows);
      builder.SetEncoderRows(kMaxRows);
      const ValueId rows = builder.AddEncoderValue(width, 1);
      const ValueId pooled = builder.AddPooledValue(width, 4);
      const ValueId out = builder.AddPooledValue(5, 4);
      const Matrix table = AddEmbed(width, rows, &builder, &rng);
      PoolParams pool;
      pool.mode = static_cast<PoolKind>(kind);
      builder.AddEncoderStep(Step(pool, rows, pooled));
      const Matrix weight = RandomMatrix(DType::kF32, 5, width, true, &rng);
      LinearParams linear;
      linear.weight = builder.AddMatrix(weight, TargetLayouts(DType::kF32)[0]);
      builder.AddEncoderStep(Step(linear, pooled, out));
      Session session(GetParam().backend, &builder, GetParam().n_threads);
      const Packed packed;
      ASSERT_EQ(Status::kOk, session.Run(packed.Args())) << session.message();
      std::vector<double> expected, after;
      for (const SequenceRows& s : packed.sequences) {
        std::vector<double> sum(width, 0.0);
        double divisor = 0;
        for (uint32_t r = 0; r < s.n_rows; ++r) {
          const bool is_first = r == 0, is_last = r + 1 == s.n_rows;
          double weight_of_row = 1;
          if (pool.mode == PoolKind::kFirst) weight_of_row = is_first ? 1 : 0;
          if (pool.mode == PoolKind::kLast) weight_of_row = is_last ? 1 : 0;
          if (pool.mode == PoolKind::kWeightedMean) weight_of_row = r + 1;
          divisor += weight_of_row;
          for (uint32_t i = 0; i < width; ++i) {
            const double x =
                table.exact[static_cast<size_t>(packed.tokens[s.first_row + r]) * width + i];
            if (pool.mode == PoolKind::kMax) {
              sum[i] = is_first ? x : std::fmax(sum[i], x);
            } else {
              sum[i] += weight_of_row * x;
            }
          }
        }
        if (pool.mode == PoolKind::kMax) divisor = 1;
        if (pool.mode == PoolKind::kMeanSqrt) divisor = std::sqrt(divisor);
        for (double& x : sum) x /= divisor;
        expected.insert(expected.end(), sum.begin(), sum.end());
        for (uint32_t o = 0; o < 5; ++o) {
          double y = weight.bias.empty() ? 0 : static_cast<double>(weight.bias[o]);
          for (uint32_t i = 0; i < width; ++i) y += weight.exact[size_t{o} * width + i] * sum[i];
          after.push_back(y);
        }
      }
      ExpectNear(session.ValueData(pooled), expected, kAttentionTolerance);
      ExpectNear(session.ValueData(out), after, kAttentionTolerance);
    }
  }
}

TEST_P(PooledTest, Runs_ThatDoNotFit_AreRefused) {
  std::mt19937 rng(74);
  ProgramBuilder builder(kVocab, 1, 70);
  builder.SetEncoderRows(kMaxRows);
  const ValueId rows = builder.AddEncoderValue(8, 1);
  const ValueId pooled = builder.AddPooledValue(8, 4);
  AddEmbed(8, rows, &builder, &rng);
  builder.AddEncoderStep(Step(PoolParams(), rows, pooled));
  Session session(GetParam().backend, &builder, GetParam().n_threads);
  EXPECT_EQ(Status::kBadArgument, session.Run(Packed().Args()));  // 75 rows of at most 70
  Packed two;
  two.sequences.resize(1);
  EXPECT_EQ(Status::kBadArgument, session.Run(two.Args()));  // rows of no sequence
  two.tokens.resize(1);
  EXPECT_EQ(Status::kOk, session.Run(two.Args())) << session.message();
  two.sequences[0].first_position = 1;
  EXPECT_EQ(Status::kBadArgument, session.Run(two.Args()));
}

INSTANTIATE_TEST_SUITE_P(Backends, PooledTest, testing::ValuesIn(AttentionBackends()),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace arn::conformance

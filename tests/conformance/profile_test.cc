// The work of each step against numbers computed by hand, and the times a run records.
#include <chrono>

#include "backends.h"
#include "kernels/contract/step_work.h"
#include "kernels/cpu/backend_cpu.h"
#include "kernels/reference/backend_reference.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kVocab = 50, kHidden = 32, kMaxRows = 16, kContext = 64, kPageTokens = 8;

// embed -> linear(qkv) -> qkv_rope -> attention -> logits, 4 heads over 2 kv heads of 16.
struct Decoder {
  explicit Decoder(DType weights, DType kv, uint32_t window = 0, bool quantised = false)
      : rng(5), builder(kVocab, kMaxRows, kContext) {
    const auto matrix = [&](DType type, uint32_t rows, uint32_t cols) {
      return builder.AddMatrix(RandomMatrix(type, rows, cols, true, &rng), WeightLayout());
    };
    AttentionKind kind;
    kind.n_heads = 4;
    kind.n_kv_heads = 2;
    kind.head_dim = 16;
    kind.window = window;
    kind.attention_scale = 0.25f;
    kind.rope = builder.AddRope(16, 10000.0f);
    const auto kind_id = static_cast<uint16_t>(builder.AddAttention(kind, kv, 1, kPageTokens, 16));
    if (quantised) builder.AddQuantisedPages(kind_id, 4, 4, kPageTokens, 8);
    const ValueId x = builder.AddValue(kHidden), qkv = builder.AddValue(128);
    const ValueId attended = builder.AddValue(64), angles = builder.AddValue(16);
    const WeightId embedding = matrix(DType::kF32, kVocab, kHidden);
    builder.AddStep(EmbedParams{.weight = embedding}, kNoValue, x);
    builder.AddStep(RopeAnglesParams(), kNoValue, angles);
    builder.AddStep(LinearParams{.weight = matrix(weights, 128, kHidden)}, x, qkv);
    builder.AddStep(QkvRopeParams{.kind = kind_id, .angles = angles}, qkv, kNoValue);
    builder.AddStep(AttentionParams{.kind = kind_id}, qkv, attended);
    LogitsParams logits;
    logits.weight = matrix(weights, kVocab, kHidden);
    logits.norm = builder.AddVector(RandomFloats(kHidden, 1, &rng));
    logits.epsilon = 1e-5f;
    builder.AddStep(logits, x, kNoValue);
    program = builder.Build(&layout);
  }
  StepWork Work(Op op, const RunArgs& args) const {
    StepWork sum;
    for (const Step& step : program.steps) {
      if (step.op() == op) sum += WorkOf(program, step, args);
    }
    return sum;
  }

  std::mt19937 rng;
  ProgramBuilder builder;
  Layout layout;
  Program program;
};

TEST(StepWorkTest, Embed_ThreeTokens_ReadsThreeRows) {
  Decoder d(DType::kF32, DType::kF32);
  Batch batch(d.program, {{0, 3}}, &d.rng);
  // The packed matrix has 50 rows of 32 floats and a bias of 50, each 64-byte aligned: 6400 + 200.
  EXPECT_EQ(d.program.weights[0].bytes, 6600u);
  EXPECT_EQ(d.Work(Op::kEmbed, batch.Args()).weight_bytes, 3 * 6600u / 50);
  EXPECT_EQ(d.Work(Op::kEmbed, batch.Args()).float_ops, 0u);
}

TEST(StepWorkTest, Linear_RowsOfTwoSequences_ReadsTheMatrixOnceAndMultipliesEachRow) {
  Decoder d(DType::kF32, DType::kF32);
  Batch batch(d.program, {{0, 3}, {7, 2}}, &d.rng);
  const StepWork work = d.Work(Op::kLinear, batch.Args());
  EXPECT_EQ(work.weight_bytes, 128u * 32 * 4 + 128 * 4);  // plus the bias
  EXPECT_EQ(work.float_ops, 2u * 5 * 128 * 32);
  EXPECT_EQ(work.integer_ops, 0u);
  EXPECT_EQ(work.kv_bytes, 0u);
}

TEST(StepWorkTest, Linear_IntegerWeights_CountsIntegerOperations) {
  for (DType type : {DType::kInt8, DType::kInt4}) {
    Decoder d(type, DType::kInt8);
    Batch batch(d.program, {{0, 5}}, &d.rng);
    const StepWork work = d.Work(Op::kLinear, batch.Args());
    EXPECT_EQ(work.integer_ops, 2u * 5 * 128 * 32);
    EXPECT_EQ(work.float_ops, 0u);
  }
}

TEST(StepWorkTest, Logits_OnlyTheRowsAskedFor_AreMultiplied) {
  Decoder d(DType::kF32, DType::kF32);
  Batch batch(d.program, {{0, 3}, {7, 2}}, &d.rng);
  const uint64_t head = 2u * 50 * 32;
  batch.logit_rows = LogitRows::kAll;
  EXPECT_EQ(d.Work(Op::kLogits, batch.Args()).float_ops, 5 * head);
  batch.logit_rows = LogitRows::kLastOfEach;
  EXPECT_EQ(d.Work(Op::kLogits, batch.Args()).float_ops, 2 * head);
  EXPECT_EQ(d.Work(Op::kLogits, batch.Args()).weight_bytes, 6600u + 32 * 4);  // plus the norm
  batch.logit_rows = LogitRows::kNone;
  EXPECT_EQ(d.Work(Op::kLogits, batch.Args()).float_ops, 0u);
  EXPECT_EQ(d.Work(Op::kLogits, batch.Args()).weight_bytes, 0u);
}

TEST(StepWorkTest, Attention_RowsAfterTokens_EachSeesAllBeforeIt) {
  Decoder d(DType::kF32, DType::kF32);
  Batch batch(d.program, {{10, 3}, {0, 2}}, &d.rng);
  const StepWork work = d.Work(Op::kAttention, batch.Args());
  // 11 + 12 + 13 and 1 + 2 pairs, 4 heads of 16, two dot products of two operations.
  EXPECT_EQ(work.float_ops, 39u * 4 * 16 * 4);
  // 13 and 2 tokens, 2 KV heads of 16 floats, K and V.
  EXPECT_EQ(work.kv_bytes, 15u * 2 * 16 * 4 * 2);
  EXPECT_EQ(work.weight_bytes, 0u);
}

TEST(StepWorkTest, Attention_Window_CountsWhatIsInIt) {
  Decoder d(DType::kF32, DType::kF32, /*window=*/4);
  Batch batch(d.program, {{10, 3}}, &d.rng);
  const StepWork work = d.Work(Op::kAttention, batch.Args());
  EXPECT_EQ(work.float_ops, 12u * 4 * 16 * 4);
  EXPECT_EQ(work.kv_bytes, 6u * 2 * 16 * 4 * 2);  // positions 7 to 12
}

TEST(StepWorkTest, Attention_Int8Pages_CountsScalesAndIntegerOperations) {
  Decoder d(DType::kInt8, DType::kInt8);
  Batch batch(d.program, {{15, 1}}, &d.rng);
  const StepWork work = d.Work(Op::kAttention, batch.Args());
  EXPECT_EQ(work.integer_ops, 16u * 4 * 16 * 4);
  EXPECT_EQ(work.float_ops, 0u);
  EXPECT_EQ(work.kv_bytes, 16u * 2 * (16 + 4) * 2);  // 16 values and a scale
}

TEST(StepWorkTest, Attention_QuantisedPages_AreCountedAsTheyAreKept) {
  Decoder d(DType::kInt8, DType::kInt8, 0, /*quantised=*/true);
  Batch batch(d.program, {{15, 1}}, &d.rng);
  batch.pages[0][0] = 3 | kQuantisedPage;
  const uint64_t active = 8u * 2 * (16 + 4) * 2;
  // 8 tokens of 2 heads in 4 bits; one f16 pair per channel (K) and per token (V).
  const uint64_t values = 8u * 2 * 16 / 2;
  const uint64_t quantised = 2 * values + 2 * 16 * 4 + 2 * 8 * 2 * 4;
  EXPECT_EQ(d.Work(Op::kAttention, batch.Args()).kv_bytes, active + quantised);
}

// Returns the work of a program with one step and a weight [rows, cols] of f32, on rows that follow
// n_before tokens each.
template <typename Params>
StepWork WorkOfLone(Params params, WeightId Params::*weight, uint32_t rows, uint32_t cols,
                    uint16_t more_weights, const std::vector<Batch::Part>& parts) {
  std::mt19937 rng(5);
  ProgramBuilder builder(kVocab, kMaxRows, kContext);
  const ValueId in = builder.AddValue(cols), out = builder.AddValue(cols);
  params.*weight = builder.AddMatrix(RandomMatrix(DType::kF32, rows, cols, false, &rng), {});
  for (uint16_t i = 0; i < more_weights; ++i) {
    builder.AddMatrix(RandomMatrix(DType::kF32, cols, rows / 2, false, &rng), {});
    builder.AddMatrix(RandomMatrix(DType::kF32, rows, cols, false, &rng), {});
  }
  builder.AddStep(params, in, out);
  Layout layout;
  const Program program = builder.Build(&layout);
  Batch batch(program, parts, &rng);
  return WorkOf(program, program.steps[0], batch.Args());
}

TEST(StepWorkTest, Conv_AndItsState_AreCounted) {
  // Four taps over 32 channels. The sequence that begins has no state yet.
  const StepWork work = WorkOfLone(ConvParams(), &ConvParams::weight, 4, 32, 0, {{0, 3}, {7, 2}});
  EXPECT_EQ(work.float_ops, 2u * 5 * 4 * 32);
  EXPECT_EQ(work.kv_bytes, 3u * 32 * 4);
}

TEST(StepWorkTest, Scan_AndItsState_AreCounted) {
  const StepWork work = WorkOfLone(ScanParams(), &ScanParams::rates, 8, 32, 0, {{6, 1}, {7, 2}});
  EXPECT_EQ(work.float_ops, 2u * 3 * 3 * 8 * 32);
  EXPECT_EQ(work.kv_bytes, 2u * 8 * 32 * 4);
}

TEST(StepWorkTest, Experts_ReadTheChosenOnesAndNoMoreThanThereAre) {
  ExpertsParams params;
  params.n_experts = 4;
  params.n_chosen = 2;
  // Each expert is [16, 32] and [32, 8]. The bytes include biases and padding to 64 bytes.
  const uint64_t expert = (16u * 32 * 4 + 16 * 4) + (32u * 8 * 4 + 32 * 4);
  const StepWork one = WorkOfLone(params, &ExpertsParams::weight, 16, 32, 4, {{0, 1}});
  EXPECT_EQ(one.weight_bytes, 2 * expert);
  EXPECT_EQ(one.float_ops, 2u * 2 * (16 * 32 + 32 * 8));
  const StepWork three = WorkOfLone(params, &ExpertsParams::weight, 16, 32, 4, {{0, 3}});
  EXPECT_EQ(three.weight_bytes, 4 * expert);
  EXPECT_EQ(three.float_ops, 3 * one.float_ops);
}

TEST(StepTimesTest, Run_TimesAskedFor_AddsThoseOfEveryStep) {
  using Clock = std::chrono::steady_clock;
  for (const Backend* backend : {ReferenceBackend(), CpuBackend()}) {
    Decoder d(DType::kF32, DType::kF32);
    Session session(backend, &d.builder, 2);
    Batch batch(session.program(), {{0, 16}}, &d.rng);
    std::vector<uint64_t> ns(session.program().steps.size() + 1, 0);
    RunArgs args = batch.Args();
    args.step_ns = ns.data();
    uint64_t last = 0;
    const auto start = Clock::now();
    for (int run = 1; run <= 3; ++run) {
      ASSERT_EQ(session.Run(args), Status::kOk) << session.message();
      EXPECT_GT(ns[2], last) << "the linear step, run " << run;
      last = ns[2];
    }
    const auto wall =
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    uint64_t sum = 0;
    for (const uint64_t n : ns) sum += n;
    EXPECT_LE(sum, static_cast<uint64_t>(wall));
    EXPECT_EQ(ns.back(), 0u) << "written past the last step";
  }
}

}  // namespace
}  // namespace arn::conformance

// Two-layer decoders, of one width or two, on both backends: chunked prefill, then decode, with
// several sequences. Also covers what holds for any run: bitwise equality for any number of threads
// and any grouping of rows into sequences, and cancellation.
#include <cstring>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/contract/code_type.h"
#include "kernels/cpu/backend_cpu.h"
#include "kernels/cpu/native_layout.h"
#include "kernels/reference/backend_reference.h"
#ifdef ARENITE_VULKAN
#include "kernels/vulkan/backend_vulkan.h"
#endif
#include "platform/base/arith.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

struct LayerShape {
  uint32_t ffn, n_heads, n_kv_heads, head_dim, window;
};
struct DecoderShape {
  DType weights, kv;
  uint32_t hidden;
  LayerShape first;
  bool qk_norm;
  const char* target;
  LayerShape second = {};  // ffn 0: as the first

  const LayerShape& layer(uint32_t i) const { return i == 0 || second.ffn == 0 ? first : second; }
};
constexpr DecoderShape kDecoders[] = {
    {DType::kF32, DType::kF32, 172, {461, 4, 2, 43, 0}, false, "portable"},
    {DType::kF16, DType::kF16, 64, {100, 4, 4, 16, 0}, true, "portable"},
    {DType::kBf16, DType::kF32, 96, {200, 7, 1, 80, 9}, false, "portable"},
    {DType::kInt8, DType::kInt8, 172, {460, 6, 2, 32, 0}, false, "arm64-neon"},
    {DType::kInt4, DType::kF16, 172, {460, 4, 2, 96, 12}, true, "x86-avx2"},
    {DType::kF32, DType::kInt8, 576, {1536, 9, 3, 64, 0}, false, "x86-avx512vnni"},
    {DType::kF32, DType::kF32, 96, {80, 8, 2, 16, 9}, true, "portable", {200, 3, 3, 48, 0}},
    {DType::kF16, DType::kF16, 64, {300, 6, 3, 32, 0}, false, "portable", {33, 4, 1, 12, 7}},
    {DType::kInt8, DType::kInt8, 172, {460, 4, 4, 96, 0}, false, "x86-avx2", {96, 2, 1, 32, 12}},
    {DType::kInt4, DType::kInt8, 172, {460, 4, 2, 96, 0}, true, "vulkan"},
};
constexpr uint32_t kVocab = 1021, kLayers = 2, kMaxRows = 24, kContext = 96;

// A pre-norm decoder with random weights and a tied head.
ProgramBuilder BuildDecoder(const DecoderShape& s, std::mt19937* rng) {
  ProgramBuilder b(kVocab, kMaxRows, kContext);
  const WeightLayout layout = TargetLayout(*FindPackTarget(s.target), s.weights);
  auto matrix = [&](uint32_t rows, uint32_t cols) {
    return b.AddMatrix(RandomMatrix(s.weights, rows, cols, true, rng), layout);
  };
  auto norm = [&](uint32_t n) { return b.AddVector(RandomFloats(n, 0.5f, rng)); };
  constexpr float kEpsilon = 1e-5f;
  const ValueId x = b.AddValue(s.hidden), normed = b.AddValue(s.hidden);
  struct LayerParts {
    uint16_t kind = 0;
    uint32_t qkv_width = 0, rotary_dim = 0;
    ValueId qkv = kNoValue, attended = kNoValue, gate_up = kNoValue, activated = kNoValue;
    ValueId angles = kNoValue;
  };
  // Layers of one shape share their values, RoPE and KV group.
  const bool is_uniform = s.second.ffn == 0;
  LayerParts parts[kLayers];
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    if (layer != 0 && is_uniform) {
      parts[layer] = parts[0];
      continue;
    }
    const LayerShape& shape = s.layer(layer);
    LayerParts& p = parts[layer];
    AttentionKind kind;
    kind.n_heads = shape.n_heads;
    kind.n_kv_heads = shape.n_kv_heads;
    kind.head_dim = shape.head_dim;
    kind.window = shape.window;
    kind.attention_scale = 0.25f;
    p.rotary_dim = shape.head_dim / 2 * 2;
    kind.rope = b.AddRope(p.rotary_dim, 10000.0f);
    p.kind = static_cast<uint16_t>(b.AddAttention(kind, s.kv, is_uniform ? kLayers : 1, 8, 48));
    p.qkv_width = (shape.n_heads + 2 * shape.n_kv_heads) * shape.head_dim;
    p.qkv = b.AddValue(p.qkv_width);
    p.attended = b.AddValue(shape.n_heads * shape.head_dim);
    p.gate_up = b.AddValue(2 * shape.ffn);
    p.activated = b.AddValue(shape.ffn);
    p.angles = b.AddValue(p.rotary_dim);
  }
  const WeightId embedding = matrix(kVocab, s.hidden);
  b.AddStep(EmbedParams{.weight = embedding}, kNoValue, x);
  for (uint32_t layer = 0; layer < (is_uniform ? 1 : kLayers); ++layer) {
    const RopeAnglesParams angles = {.rope = static_cast<uint16_t>(layer)};
    b.AddStep(angles, kNoValue, parts[layer].angles);
  }
  for (uint32_t layer = 0; layer < kLayers; ++layer) {
    const LayerParts& p = parts[layer];
    const LayerShape& shape = s.layer(layer);
    const uint32_t q_width = shape.n_heads * shape.head_dim;
    const auto add_norm = [&] {
      const WeightId weight = norm(s.hidden);
      b.AddStep(NormParams{.weight = weight, .epsilon = kEpsilon}, x, normed, layer);
    };
    const auto add_linear = [&](ValueId in, ValueId out, WeightId weight) {
      b.AddStep(LinearParams{.weight = weight, .accumulate = out == x}, in, out, layer);
    };
    QkvRopeParams qkv;
    qkv.kind = p.kind;
    qkv.group_layer = static_cast<uint16_t>(is_uniform ? layer : 0);
    qkv.angles = p.angles;
    qkv.epsilon = kEpsilon;
    AttentionParams attention;
    attention.kind = qkv.kind;
    attention.group_layer = qkv.group_layer;
    add_norm();
    add_linear(normed, p.qkv, matrix(p.qkv_width, s.hidden));
    if (s.qk_norm) {
      qkv.q_norm = norm(shape.head_dim);
      qkv.k_norm = norm(shape.head_dim);
    }
    b.AddStep(qkv, p.qkv, kNoValue, layer);
    b.AddStep(attention, p.qkv, p.attended, layer);
    add_linear(p.attended, x, matrix(s.hidden, q_width));
    add_norm();
    add_linear(normed, p.gate_up, matrix(2 * shape.ffn, s.hidden));
    b.AddStep(GatedActParams(), p.gate_up, p.activated, layer);
    add_linear(p.activated, x, matrix(s.hidden, shape.ffn));
  }
  const WeightId final_norm = norm(s.hidden);
  b.AddStep(LogitsParams{.norm = final_norm, .weight = embedding, .epsilon = kEpsilon}, x,
            kNoValue);
  return b;
}

// Runs two sequences: 20 rows, then 24, then a few decode steps of both. Returns all logits in
// order.
std::vector<float> RunDecoder(const DecoderShape& shape, const Backend* backend,
                              uint32_t n_threads) {
  std::mt19937 rng(31);
  ProgramBuilder builder = BuildDecoder(shape, &rng);
  Session session(backend, &builder, n_threads);
  std::vector<float> logits;
  Batch batch(session.program(), {{0, 13}, {0, 7}}, &rng);
  batch.logit_rows = LogitRows::kAll;
  const std::vector<std::vector<uint32_t>> next = {{1, 23}, {1, 1}, {1, 1}, {9, 1}};
  for (size_t i = 0; i <= next.size(); ++i) {
    if (i != 0) batch.Advance(next[i - 1]);
    EXPECT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
    logits.insert(logits.end(), session.Logits(), session.Logits() + batch.tokens.size() * kVocab);
  }
  return logits;
}

void ExpectAgreesWithReference(const Backend* backend, uint32_t n_threads) {
  for (const DecoderShape& shape : kDecoders) {
    SCOPED_TRACE(testing::Message() << DTypeName(shape.weights) << " kv " << DTypeName(shape.kv));
    const auto expected = RunDecoder(shape, ReferenceBackend(), 1);
    const auto found = RunDecoder(shape, backend, n_threads);
    ASSERT_EQ(found.size(), expected.size());
    // One int8 step of one activation changes all logits of a row. The bound is one such step.
    const bool exact =
        shape.weights != DType::kInt8 && shape.weights != DType::kInt4 && shape.kv == DType::kF32;
    ExpectNear(found.data(), expected, exact ? 2e-5 : 2e-2);
  }
}

TEST(DecoderTest, Decoder_CpuAgainstReference_AgreeWithinRounding) {
  ExpectAgreesWithReference(CpuBackend(), 2);
}

TEST(DecoderTest, Decoder_AnyNumberOfThreads_SameBits) {
  for (const DecoderShape& shape : kDecoders) {
    SCOPED_TRACE(testing::Message() << DTypeName(shape.weights) << " kv " << DTypeName(shape.kv));
    const auto one = RunDecoder(shape, CpuBackend(), 1);
    for (uint32_t n_threads : {2u, 3u, 7u}) {
      const auto many = RunDecoder(shape, CpuBackend(), n_threads);
      EXPECT_EQ(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)), 0) << n_threads;
    }
  }
}

TEST(DecoderTest, Decoder_AnotherInstructionSet_AgreesWithReference) {
  const DecoderShape& shape = kDecoders[0];
  const auto expected = RunDecoder(shape, ReferenceBackend(), 1);
  for (const BackendCase& backend : AllBackends()) {
    if (backend.backend->host_kv == nullptr) continue;  // covered by VulkanDecoderTest
    SCOPED_TRACE(backend.name);
    const auto found = RunDecoder(shape, backend.backend, backend.n_threads);
    ExpectNear(found.data(), expected, 2e-5);
  }
}

// Further rows of a sequence have the logits that they have among all.
TEST(DecoderTest, MoreLogitRows_AreThoseOfAll) {
  for (const Backend* backend : {ReferenceBackend(), CpuBackend()}) {
    const auto run = [&](LogitRows rows, uint32_t more) {
      std::mt19937 rng(34);
      ProgramBuilder builder = BuildDecoder(kDecoders[0], &rng);
      Session session(backend, &builder, 1);
      Batch batch(session.program(), {{0, 13}, {0, 7}}, &rng);
      batch.logit_rows = rows;
      batch.sequences[0].more_logit_rows = more;
      EXPECT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
      const float* logits = session.Logits();
      return std::vector<float>(logits, logits + 20 * kVocab);
    };
    const std::vector<float> all = run(LogitRows::kAll, 0), some = run(LogitRows::kLastOfEach, 4);
    const std::vector<float> of_first(all.begin() + 8 * kVocab, all.begin() + 13 * kVocab);
    const std::vector<float> of_second(all.begin() + 19 * kVocab, all.end());
    ExpectNear(some.data(), of_first, 2e-5);
    ExpectNear(some.data() + 5 * kVocab, of_second, 2e-5);
  }
}

void ExpectCancelled(const Backend* backend) {
  std::mt19937 rng(32);
  ProgramBuilder builder = BuildDecoder(kDecoders[0], &rng);
  Session session(backend, &builder, 1);
  Batch batch(session.program(), {{0, 3}}, &rng);
  std::atomic<uint32_t> cancel = 1;
  RunArgs args = batch.Args();
  args.cancel = &cancel;
  const float before = 42.0f;
  session.ValueData(0)[0] = before;
  EXPECT_EQ(session.Run(args), Status::kCancelled);
  EXPECT_EQ(session.ValueData(0)[0], before);
  cancel = 0;
  EXPECT_EQ(session.Run(args), Status::kOk);
}

TEST(DecoderTest, Run_Cancelled_EndsBeforeTheFirstStep) {
  for (const Backend* backend : {ReferenceBackend(), CpuBackend()}) ExpectCancelled(backend);
}

void ExpectRefused(const Backend* backend) {
  std::mt19937 rng(33);
  ProgramBuilder builder = BuildDecoder(kDecoders[0], &rng);
  Session session(backend, &builder, 1);
  auto expect = [&](Status status, auto change) {
    Batch batch(session.program(), {{0, 3}, {0, 2}}, &rng);
    change(&batch);
    EXPECT_EQ(session.Run(batch.Args()), status);
    EXPECT_NE(session.message()[0], '\0');
  };
  expect(Status::kBadToken, [](Batch* b) { b->tokens[4] = kVocab; });
  expect(Status::kBadToken, [](Batch* b) { b->tokens[0] = -1; });
  expect(Status::kBadArgument, [](Batch* b) { b->tokens.clear(); });
  expect(Status::kBadArgument, [](Batch* b) { b->tokens.resize(kMaxRows + 1); });
  expect(Status::kBadArgument, [](Batch* b) { b->sequences[1].first_row = 2; });
  expect(Status::kBadArgument, [](Batch* b) { b->sequences[1].n_rows = 3; });
  expect(Status::kBadArgument, [](Batch* b) { b->sequences.pop_back(); });
  expect(Status::kBadArgument, [](Batch* b) { b->sequences[1].more_logit_rows = 2; });
  expect(Status::kContextFull, [](Batch* b) { b->sequences[0].first_position = kContext - 2; });
  expect(Status::kInternal, [](Batch* b) { b->pages[0][0] = 48; });
  expect(Status::kInternal, [](Batch* b) { b->tables[1][0].n_pages = 0; });
  expect(Status::kInternal, [](Batch* b) { b->tables[1][0].first_page = 1; });
}

TEST(DecoderTest, Run_BadArguments_AreRefusedWithAMessage) {
  for (const Backend* backend : {ReferenceBackend(), CpuBackend()}) ExpectRefused(backend);
}

#ifdef ARENITE_VULKAN
class VulkanDecoderTest : public testing::TestWithParam<vulkan::Restriction> {
 protected:
  void SetUp() override {
    if (const char* problem = NoDevice(backend)) GTEST_SKIP() << problem;
  }
  const Backend* backend = vulkan::RestrictedBackend(GetParam());
};

TEST_P(VulkanDecoderTest, Decoder_AgainstReference_AgreesWithinRounding) {
  ExpectAgreesWithReference(backend, 1);
}

TEST_P(VulkanDecoderTest, Run_CancelledOrRefused_LeavesTheSessionUsable) {
  ExpectCancelled(backend);
  ExpectRefused(backend);
}

INSTANTIATE_TEST_SUITE_P(Restrictions, VulkanDecoderTest,
                         testing::Values(vulkan::Restriction::kNone,
                                         vulkan::Restriction::kSharedMemory,
                                         vulkan::Restriction::kStaged, vulkan::Restriction::kTeams),
                         [](const auto& p) { return NameOf(p.param); });
#endif

// Parameters of an op that does not exist.
struct UnknownParams {
  static constexpr auto kOp = static_cast<Op>(99);
};

TEST(DecoderTest, Plan_BadPrograms_AreRefusedWithAMessage) {
  for (const Backend* backend : {ReferenceBackend(), CpuBackend()}) {
    auto expect_refused = [&](const char* what, auto change) {
      SCOPED_TRACE(what);
      std::mt19937 rng(34);
      ProgramBuilder builder = BuildDecoder(kDecoders[3], &rng);
      Layout layout;
      Program program = builder.Build(&layout);
      std::vector<Step> steps(program.steps.begin(), program.steps.end());
      std::vector<Weight> weights(program.weights.begin(), program.weights.end());
      std::vector<KvGroup> groups(program.kv_groups.begin(), program.kv_groups.end());
      change(&program, &steps, &weights, &groups);
      program.steps = {steps.data(), steps.size()};
      program.weights = {weights.data(), weights.size()};
      program.kv_groups = {groups.data(), groups.size()};
      BackendPlan plan;
      Diag diag;
      EXPECT_NE(backend->plan(program, BackendOptions(), &layout, &plan, &diag), Status::kOk);
      EXPECT_NE(diag.text()[0], '\0');
    };
    using Steps = std::vector<Step>*;
    using Weights = std::vector<Weight>*;
    using Groups = std::vector<KvGroup>*;
    expect_refused("op",
                   [](Program*, Steps s, Weights, Groups) { (*s)[0] = Step(UnknownParams()); });
    expect_refused("weight id", [](Program*, Steps s, Weights, Groups) {
      (*s)[3].Get<LinearParams>().weight = 1000;
    });
    expect_refused("an output of an op in place",
                   [](Program*, Steps s, Weights, Groups) { (*s)[4].out = 0; });
    expect_refused("no input", [](Program*, Steps s, Weights, Groups) { (*s)[2].in = kNoValue; });
    expect_refused("value id", [](Program*, Steps s, Weights, Groups) { (*s)[3].in = 1000; });
    expect_refused("shape", [](Program*, Steps, Weights w, Groups) { (*w)[0].cols = 171; });
    expect_refused(
        "kind", [](Program*, Steps s, Weights, Groups) { (*s)[4].Get<QkvRopeParams>().kind = 7; });
    expect_refused("layer", [](Program*, Steps s, Weights, Groups) {
      (*s)[4].Get<QkvRopeParams>().group_layer = kLayers;
    });
    expect_refused("kv type",
                   [](Program*, Steps, Weights, Groups g) { (*g)[0].v_type = DType::kBf16; });
    expect_refused("page", [](Program*, Steps, Weights, Groups g) { (*g)[0].page_tokens = 24; });
    expect_refused("heads", [](Program*, Steps, Weights, Groups g) { (*g)[0].n_kv_heads = 1; });
    expect_refused("logits", [](Program* p, Steps, Weights, Groups) { p->logits.bytes = 4; });
    expect_refused("rows", [](Program* p, Steps, Weights, Groups) { p->max_rows = 0; });
  }
}

TEST(DecoderTest, Plan_NativeLayout_RepacksNothing) {
  std::mt19937 rng(35);
  for (const DType dtype : kWeightTypes) {
    if (!kHasLowBits && FindCodeType(dtype) != nullptr) continue;
    for (bool native : {true, false}) {
      ProgramBuilder builder(2, 1, 8);
      Step step{LinearParams()};
      step.in = builder.AddValue(64);
      step.out = builder.AddValue(100);
      step.Get<LinearParams>().weight = builder.AddMatrix(
          RandomMatrix(dtype, 100, 64, true, &rng), native ? NativeLayout(dtype) : WeightLayout{});
      builder.AddStep(step);
      Session session(CpuBackend(), &builder, 1);
      const bool in_place = native || NativeLayout(dtype).order == WeightOrder::kRows ||
                            FindCodeType(dtype) != nullptr;  // one layout on every CPU
      EXPECT_EQ(session.plan().repacked_weight_bytes == 0, in_place) << DTypeName(dtype);
    }
  }
}

TEST(DecoderTest, NativeLayout_ThisMachine_IsATargetsUnlessRare) {
  // Every x86 with AVX-512 VNNI or with only AVX2, every ARM except 32-bit programs on cores with
  // dot products, and RISC-V without vectors has its own pack target.
  bool known = false;
  for (const PackTarget& target : PackTargets()) {
    auto same = [&](DType dtype) {
      WeightLayout a = TargetLayout(target, dtype), b = NativeLayout(dtype);
      return a == b;
    };
    known = known || (same(DType::kF32) && same(DType::kF16) && same(DType::kBf16) &&
                      same(DType::kInt8) && same(DType::kInt4));
  }
#if defined(__aarch64__) || defined(__riscv)
  EXPECT_TRUE(known);
#else
  if (!known) GTEST_SKIP() << "this CPU's tiles (as nr) f32 " << int{NativeLayout(DType::kF32).nr};
#endif
}

}  // namespace
}  // namespace arn::conformance

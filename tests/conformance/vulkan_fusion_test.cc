// Steps that share a dispatch in runs of few rows (kernels/vulkan/lower/fusion.h): which do, and
// what they compute, against the reference.
#include "kernels/vulkan/lower/fusion.h"

#include <cstring>
#include <string>

#include "backends.h"
#include "cases.h"
#include "dispatch_collector.h"
#include "expect_near.h"
#include "kernels/reference/backend_reference.h"
#include "kernels/vulkan/backend_vulkan.h"
#include "kernels/vulkan/lower/grid.h"
#include "kernels/vulkan/lower/lower.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

using vulkan::Ending;
using vulkan::Mode;
using vulkan::Shader;

constexpr uint32_t kMaxRows = 40;
constexpr uint8_t kOne = vulkan::BitOf(Mode::kOne), kFew = vulkan::BitOf(Mode::kFew);
// Kinds of runs.
constexpr auto kOneRun = static_cast<uint32_t>(Mode::kOne);
constexpr auto kFewRun = static_cast<uint32_t>(Mode::kFew);
constexpr auto kManyRun = static_cast<uint32_t>(Mode::kMany);

WeightId AddRandom(ProgramBuilder* b, DType dtype, uint32_t rows, uint32_t cols,
                   std::mt19937* rng) {
  return b->AddMatrix(RandomMatrix(dtype, rows, cols, true, rng), TargetLayouts(dtype)[0]);
}

WeightId AddFloatRows(ProgramBuilder* b, uint32_t rows, uint32_t cols, std::mt19937* rng) {
  return b->AddMatrix(RandomMatrix(DType::kF32, rows, cols, false, rng), WeightLayout());
}

// A pre-norm layer between two others: attention, and a gated feed-forward block.
ProgramBuilder DenseLayers(DType dtype) {
  constexpr uint32_t kHidden = 64, kFfn = 96, kHeads = 4, kHeadDim = 16;
  std::mt19937 rng(7);
  ProgramBuilder b(2, kMaxRows, 1024);
  AttentionKind kind;
  kind.n_heads = kind.n_kv_heads = kHeads;
  kind.head_dim = kHeadDim;
  kind.rope = kNoRope;
  const auto attention = static_cast<uint16_t>(b.AddAttention(kind, DType::kInt8, 3, 32, 32));
  const ValueId x = b.AddValue(kHidden), normed = b.AddValue(kHidden);
  const ValueId qkv = b.AddValue(3 * kHidden), attended = b.AddValue(kHidden);
  const ValueId gate_up = b.AddValue(2 * kFfn), activated = b.AddValue(kFfn);
  for (uint16_t layer = 0; layer < 3; ++layer) {
    const auto add_norm = [&] {
      const WeightId weight = b.AddVector(RandomFloats(kHidden, 0.5f, &rng));
      b.AddStep(NormParams{.weight = weight, .epsilon = 1e-5f}, x, normed, layer);
    };
    const auto add_linear = [&](ValueId in, ValueId out, uint32_t rows, uint32_t cols) {
      const WeightId weight = AddRandom(&b, dtype, rows, cols, &rng);
      b.AddStep(LinearParams{.weight = weight, .accumulate = out == x}, in, out, layer);
    };
    add_norm();
    add_linear(normed, qkv, 3 * kHidden, kHidden);
    QkvRopeParams rope;
    AttentionParams attend;
    rope.kind = attend.kind = attention;
    rope.group_layer = attend.group_layer = layer;
    b.AddStep(rope, qkv, kNoValue, layer);
    b.AddStep(attend, qkv, attended, layer);
    add_linear(attended, x, kHidden, kHidden);
    add_norm();
    add_linear(normed, gate_up, 2 * kFfn, kHidden);
    b.AddStep(GatedActParams(), gate_up, activated, layer);
    add_linear(activated, x, kHidden, kFfn);
  }
  return b;
}

bool Attends(const vulkan::Dispatch& d) {
  return d.shader == Shader::kAttention
             ? d.constants[vulkan::kAttentionIsMergeId] == 0
             : d.shader == Shader::kGemvInt && d.constants[vulkan::kMatmulAttendsId] == 1;
}

// Returns the dispatches of a program, nowhere in memory.
DispatchCollector Lowered(ProgramBuilder* builder, bool fuses) {
  Layout layout;
  const Program program = builder->Build(&layout);
  vulkan::Traits traits;
  traits.fuses = fuses;
  const vulkan::Workspace nowhere = {};
  DispatchCollector all;
  Diag diag;
  EXPECT_EQ(Status::kOk, vulkan::Lowering(program, {}, nowhere, traits).Run(&all, &diag));
  return all;
}

// Counts the dispatches of a layer, which the layers before and after it have too.
uint32_t DispatchesOfALayer(DType dtype, uint32_t kind, bool fuses) {
  ProgramBuilder builder = DenseLayers(dtype);
  const DispatchCollector all = Lowered(&builder, fuses);
  uint32_t n_layers = 0, n = 0;
  for (const vulkan::Dispatch& d : all.dispatches) {
    if (!d.IsIn(kind)) continue;
    n_layers += Attends(d);
    n += n_layers == 1;  // from a layer's attention to the next one's
  }
  return n;
}

TEST(VulkanFusionTest, DenseLayer_OfFewRows_HasFiveDispatches) {
  for (const uint32_t kind : {kOneRun, kFewRun}) {
    EXPECT_EQ(5u, DispatchesOfALayer(DType::kInt8, kind, true));
    EXPECT_EQ(5u, DispatchesOfALayer(DType::kF16, kind, true));
    EXPECT_EQ(11u, DispatchesOfALayer(DType::kInt8, kind, false));
    EXPECT_EQ(10u, DispatchesOfALayer(DType::kF16, kind, false));
  }
  EXPECT_EQ(DispatchesOfALayer(DType::kInt8, kManyRun, false),
            DispatchesOfALayer(DType::kInt8, kManyRun, true));
}

TEST(VulkanFusionTest, DenseLayer_OfARowInAShortContext_HasFourDispatches) {
  EXPECT_EQ(4u, DispatchesOfALayer(DType::kInt8, vulkan::kShortRun, true));
  EXPECT_EQ(5u, DispatchesOfALayer(DType::kF16, vulkan::kShortRun, true))
      << "outputs are quantised";
  EXPECT_EQ(11u, DispatchesOfALayer(DType::kInt8, vulkan::kShortRun, false));
}

TEST(VulkanFusionTest, RunsOfOneRow_AreShortUpToASegment) {
  EXPECT_EQ(vulkan::kShortRun, vulkan::RunKindOf(1, 0, 256));
  EXPECT_EQ(vulkan::kShortRun, vulkan::RunKindOf(1, 255, 256));
  EXPECT_EQ(kOneRun, vulkan::RunKindOf(1, 256, 256));
  EXPECT_EQ(kOneRun, vulkan::RunKindOf(1, 0, 0)) << "nothing is recorded for them";
  EXPECT_EQ(kFewRun, vulkan::RunKindOf(2, 0, 256));
}

// What a token has beside its layers: an embedding, angles and the first norm; and the head behind
// the last matmul.
ProgramBuilder EmbeddingAndHead(DType dtype, uint32_t width) {
  constexpr uint32_t kVocab = 96;
  std::mt19937 rng(13);
  ProgramBuilder b(kVocab, kMaxRows, 64);
  const ValueId x = b.AddValue(width), normed = b.AddValue(width), angles = b.AddValue(8);
  const WeightId table = AddRandom(&b, dtype, kVocab, width, &rng);
  const WeightId norm = b.AddVector(RandomFloats(width, 1.0f, &rng));
  const WeightId matrix = AddRandom(&b, dtype, width, width, &rng);
  b.AddStep(EmbedParams{.weight = table}, kNoValue, x);
  b.AddStep(RopeAnglesParams{.rope = static_cast<uint16_t>(b.AddRope(8, 10000.0f))}, kNoValue,
            angles);
  b.AddStep(NormParams{.weight = norm, .epsilon = 1e-5f}, x, normed);
  b.AddStep(LinearParams{.weight = matrix, .accumulate = true}, normed, x);
  b.AddStep(LogitsParams{.norm = norm, .weight = table, .epsilon = 1e-5f}, x, kNoValue);
  return b;
}

// Counts the dispatches that wait for those before them.
uint32_t WaitsOf(ProgramBuilder builder, Mode mode, bool fuses) {
  const DispatchCollector all = Lowered(&builder, fuses);
  uint32_t n = 0;
  for (const vulkan::Dispatch& d : all.dispatches) {
    const bool is_step = d.shader != Shader::kChoose && d.shader != Shader::kKvEdit;
    n += is_step && (d.modes & vulkan::BitOf(mode)) != 0 && !d.joins_previous;
  }
  return n;
}

TEST(VulkanFusionTest, EmbeddingAndHead_OfATokenWaitOnceEach) {
  for (const DType dtype : {DType::kInt8, DType::kF16}) {
    // The third is the matmul between them.
    EXPECT_EQ(3u, WaitsOf(EmbeddingAndHead(dtype, 64), Mode::kOne, true));
    EXPECT_EQ(4u, WaitsOf(EmbeddingAndHead(dtype, 64), Mode::kFew, true));
    EXPECT_EQ(5u, WaitsOf(EmbeddingAndHead(dtype, 64), Mode::kMany, true));
    EXPECT_EQ(5u, WaitsOf(EmbeddingAndHead(dtype, 64), Mode::kOne, false));
    EXPECT_EQ(5u, WaitsOf(EmbeddingAndHead(dtype, 66), Mode::kOne, true)) << "no vectors of four";
  }
}

TEST(VulkanFusionTest, NormOfAnotherValue_DoesNotEndAnEmbedding) {
  ProgramBuilder builder = EmbeddingAndHead(DType::kInt8, 64);
  Layout layout;
  Program program = builder.Build(&layout);
  std::vector<Step> steps(program.steps.begin(), program.steps.end());
  program.steps = {steps.data(), steps.size()};
  EXPECT_EQ(Ending::kNorm, vulkan::FusionOf(program, 0).ending);
  steps[2].in = 1;
  EXPECT_EQ(Ending::kNone, vulkan::FusionOf(program, 0).ending);
}

// A norm, a layer's linear attention, and the next norm.
ProgramBuilder LinearLayer() {
  constexpr uint32_t kHidden = 64, kHeads = 2, kKeys = 2 * 12, kWidth = kHeads * 16;
  constexpr uint32_t kConvolved = 2 * kKeys + kWidth;
  std::mt19937 rng(11);
  ProgramBuilder b(2, kMaxRows, 64);
  const ValueId x = b.AddValue(kHidden), normed = b.AddValue(kHidden), out = b.AddValue(kWidth);
  const ValueId mixed = b.AddValue(kWidth + 2 * kHeads + kConvolved);
  const ValueId convolved = b.AddValue(kConvolved);
  const auto add_linear = [&](ValueId in, ValueId to, uint32_t rows, uint32_t cols) {
    b.AddStep(LinearParams{.weight = AddRandom(&b, DType::kInt8, rows, cols, &rng)}, in, to);
  };
  NormParams norm;
  norm.weight = b.AddVector(RandomFloats(kHidden, 1.0f, &rng));
  ConvParams conv;
  conv.weight = AddFloatRows(&b, 4, kConvolved, &rng);
  conv.group = static_cast<uint16_t>(b.AddStates(3 * kConvolved + 12 * kWidth, 1, 2));
  LinearAttentionParams attend;
  attend.heads = AddFloatRows(&b, 2, kHeads, &rng);
  attend.gates = mixed;
  attend.group = conv.group;
  attend.key_dim = 12;
  attend.state_offset = 3 * kConvolved;
  attend.has_delta_rule = true;
  GateParams gate;
  gate.gate = mixed;
  gate.norm = b.AddVector(RandomFloats(16, 1.0f, &rng));
  gate.norm_group = 16;
  b.AddStep(norm, x, normed);
  add_linear(normed, mixed, kWidth + 2 * kHeads + kConvolved, kHidden);
  b.AddStep(conv, mixed, convolved);
  b.AddStep(ActParams{.activation = Activation::kSilu}, convolved, kNoValue);
  b.AddStep(attend, convolved, out);
  b.AddStep(gate, out, kNoValue);
  add_linear(out, x, kHidden, kWidth);
  b.AddStep(norm, x, normed);
  return b;
}

TEST(VulkanFusionTest, LinearAttention_OfFewRows_HasFiveDispatches) {
  ProgramBuilder builder = LinearLayer();
  Layout layout;
  const Program program = builder.Build(&layout);
  const auto dispatches = [&](Mode mode, bool fuses) {
    vulkan::Traits traits;
    traits.fuses = fuses;
    const vulkan::Workspace nowhere = {};
    DispatchCollector all;
    Diag diag;
    EXPECT_EQ(Status::kOk, vulkan::Lowering(program, {}, nowhere, traits).Run(&all, &diag));
    uint32_t n = 0;
    for (const vulkan::Dispatch& d : all.dispatches) {
      n += (d.modes & vulkan::BitOf(mode)) != 0 && d.shader != Shader::kKvEdit;
    }
    return n - 1;  // without the first norm
  };
  for (const Mode mode : {Mode::kOne, Mode::kFew, Mode::kMany}) {
    EXPECT_EQ(mode == Mode::kMany ? 7u : 5u, dispatches(mode, true));
    EXPECT_EQ(8u, dispatches(mode, false));
  }
}

// A matmul and the norm behind it, in a program whose values may be moved.
struct Pair {
  explicit Pair(DType dtype, uint32_t width = 64, NormParams norm = {}) {
    std::mt19937 rng(8);
    const ValueId in = builder.AddValue(32), x = builder.AddValue(width);
    const ValueId normed = builder.AddValue(width);
    builder.AddStep(LinearParams{.weight = AddRandom(&builder, dtype, width, 32, &rng)}, in, x);
    norm.weight = builder.AddVector(RandomFloats(norm.group == 0 ? width : norm.group, 1.0f, &rng));
    builder.AddStep(norm, x, normed);
    program = builder.Build(&layout);
    values.assign(program.values.begin(), program.values.end());
    steps.assign(program.steps.begin(), program.steps.end());
  }
  vulkan::Fusion Find() {
    program.values = {values.data(), values.size()};
    program.steps = {steps.data(), steps.size()};
    return vulkan::FusionOf(program, 0);
  }

  ProgramBuilder builder{2, kMaxRows, 64};
  Layout layout;
  Program program;
  std::vector<Value> values;
  std::vector<Step> steps;
};

TEST(VulkanFusionTest, NormBehindAMatmul_EndsIt) {
  for (const DType dtype : {DType::kF32, DType::kInt8}) {
    const vulkan::Fusion found = Pair(dtype).Find();
    EXPECT_EQ(Ending::kNorm, found.ending);
    EXPECT_EQ(kOne | kFew, found.modes);
  }
}

TEST(VulkanFusionTest, NormThatOverwritesTheMatmulsInput_EndsSingleRowsOfFloats) {
  for (const DType dtype : {DType::kF32, DType::kInt8}) {
    Pair pair(dtype);
    pair.values[2].slice = pair.values[0].slice;
    EXPECT_EQ(dtype == DType::kF32 ? kOne : kOne | kFew, pair.Find().modes);
  }
}

// A matmul, and a gated activation of its outputs.
struct GatedPair {
  explicit GatedPair(DType dtype) {
    std::mt19937 rng(12);
    const ValueId in = builder.AddValue(32), outs = builder.AddValue(64);
    const ValueId activated = builder.AddValue(32), added = builder.AddValue(64);
    builder.AddStep(LinearParams{.weight = AddRandom(&builder, dtype, 64, 32, &rng)}, in, outs);
    builder.AddStep(GatedActParams(), outs, activated);
    builder.AddStep(MultiplyParams{.by = added}, in, kNoValue);
    program = builder.Build(&layout);
    values.assign(program.values.begin(), program.values.end());
    steps.assign(program.steps.begin(), program.steps.end());
    program.values = {values.data(), values.size()};
    program.steps = {steps.data(), steps.size()};
  }
  uint8_t Modes() const { return vulkan::FusionOf(program, 0).modes; }

  ProgramBuilder builder{2, kMaxRows, 64};
  Layout layout;
  Program program;
  std::vector<Value> values;
  std::vector<Step> steps;
};

TEST(VulkanFusionTest, ActivationBehindAMatmul_EndsItUnlessItsInputsAreRead) {
  for (const DType dtype : {DType::kF32, DType::kInt8}) {
    EXPECT_EQ(vulkan::kAllModes, GatedPair(dtype).Modes());
    GatedPair other(dtype);
    other.steps[2].in = 1;
    EXPECT_EQ(0, other.Modes()) << "gates that a later step reads";
    GatedPair read(dtype);
    read.steps[2].Get<MultiplyParams>().by = 1;
    EXPECT_EQ(0, read.Modes()) << "gates that a later step multiplies by";
    GatedPair overwriting(dtype);
    overwriting.values[2].slice = overwriting.values[0].slice;
    EXPECT_EQ(dtype == DType::kF32 ? 0 : vulkan::kAllModes, overwriting.Modes());
  }
}

TEST(VulkanFusionTest, OtherRows_HaveADispatchOfTheirOwn) {
  EXPECT_EQ(0, Pair(DType::kInt8, 66).Find().modes) << "no vectors of four";
  EXPECT_EQ(0, Pair(DType::kInt8, 64, {.group = 32}).Find().modes) << "a norm of groups";
  Pair other(DType::kInt8);
  other.steps[1].in = 0;
  EXPECT_EQ(0, other.Find().modes) << "of another value";
  Pair encoder(DType::kInt8);
  encoder.program.n_encoder_steps = 2;
  EXPECT_EQ(0, encoder.Find().modes) << "of an encoder";
}

// Matmuls that end with norms of each kind, of which others follow; and attention before one.
struct Chains {
  struct Case {
    DType first, second;
    uint32_t width;
    NormKind kind;
    bool accumulates;
  };
  static constexpr uint32_t kIn = 96, kOut = 70, kHeads = 4, kHeadDim = 24;

  explicit Chains(uint32_t seed = 9) {
    std::mt19937 rng(seed);
    // Few, since a software driver compiles each shader slowly. The last has no vectors of four.
    constexpr Case kCases[] = {
        {DType::kInt8, DType::kInt8, 172, NormKind::kRms, false},
        {DType::kInt4, DType::kInt4, 576, NormKind::kRms, true},
        {DType::kF32, DType::kInt8, 172, NormKind::kLayer, false},
        {DType::kF16, DType::kF16, 64, NormKind::kRms, false},
        {DType::kInt8, DType::kInt8, 71, NormKind::kRms, false},
    };
    for (const Case& c : kCases) {
      // Rows of a norm that are quantised for all that reads them are not written.
      const bool is_lost = IsInteger(c.second) && !c.accumulates;
      const ValueId in = Add(kIn), x = Add(c.width), out = Add(kOut);
      const ValueId normed = is_lost ? builder.AddValue(c.width) : Add(c.width);
      AddLinear(c.first, in, x, c.width, kIn, true, &rng);
      NormParams norm;
      norm.kind = c.kind;
      norm.accumulate = c.accumulates;
      norm.epsilon = 1e-5f;
      norm.weight = builder.AddVector(RandomFloats(c.width, 1.0f, &rng));
      if (c.kind == NormKind::kLayer) {
        norm.bias = builder.AddVector(RandomFloats(c.width, 1.0f, &rng));
      }
      builder.AddStep(norm, x, normed);
      AddLinear(c.second, normed, out, kOut, c.width, false, &rng);
    }
    AttentionKind kind;
    kind.n_heads = kHeads;
    kind.n_kv_heads = 2;
    kind.head_dim = kHeadDim;
    kind.attention_scale = 0.2f;
    kind.rope = kNoRope;
    const auto attention = static_cast<uint16_t>(builder.AddAttention(kind, DType::kF32, 1, 8, 32));
    const ValueId qkv = Add((kHeads + 4) * kHeadDim), attended = Add(kHeads * kHeadDim);
    QkvRopeParams rope;
    AttentionParams attend;
    rope.kind = attend.kind = attention;
    builder.AddStep(rope, qkv, kNoValue);
    builder.AddStep(attend, qkv, attended);
    AddLinear(DType::kInt8, attended, Add(kOut), kOut, kHeads * kHeadDim, false, &rng);
    AddGates(&rng);
    AddConvolution(&rng);
    AddActivations(&rng);
    AddRotations(&rng);
  }
  // Matmuls that end with activations. Gates, and what they gate, are in no value then: they are
  // not compared. The last has no vectors of four.
  void AddActivations(std::mt19937* rng) {
    struct Activated {
      DType first, second;
      uint32_t width;
      GatedActParams act;
      bool is_gated;
    };
    const Activated kActivated[] = {
        {DType::kInt8, DType::kInt8, 172, {}, true},
        {DType::kInt4, DType::kF32, 60, {Activation::kClampedSwiglu, 0.4f}, true},
        {DType::kF16, DType::kInt8, 64, {Activation::kGeluTanh}, true},
        {DType::kInt8, DType::kInt4, 96, {Activation::kRelu}, false},
        {DType::kF32, DType::kF32, 44, {Activation::kGelu}, false},
        {DType::kInt8, DType::kInt8, 54, {}, true},
    };
    for (const Activated& c : kActivated) {
      const uint32_t n_outs = c.width * (c.is_gated ? 2 : 1);
      const ValueId in = Add(kIn), outs = builder.AddValue(n_outs);
      AddLinear(c.first, in, outs, n_outs, kIn, false, rng);
      ValueId activated = outs;
      if (c.is_gated) {
        activated = Add(c.width);
        builder.AddStep(c.act, outs, activated);
      } else {
        values.push_back(outs);
        builder.AddStep(ActParams{.activation = c.act.activation}, outs, kNoValue);
      }
      AddLinear(c.second, activated, Add(kOut), kOut, c.width, false, rng);
    }
  }
  // Matmuls that end with the rotation and storage of their heads, and attention behind them.
  void AddRotations(std::mt19937* rng) {
    struct Rotated {
      DType weights, pages;
      uint32_t head_dim, rotary_dim;
      bool has_norms, norm_follows;
    };
    constexpr Rotated kRotated[] = {
        {DType::kInt8, DType::kInt8, 24, 24, false, false},
        {DType::kF16, DType::kF16, 72, 40, true, false},
        {DType::kInt4, DType::kF32, 16, 0, true, true},
    };
    for (const Rotated& c : kRotated) {
      AttentionKind kind;
      kind.n_heads = kHeads;
      kind.n_kv_heads = 2;
      kind.head_dim = c.head_dim;
      kind.attention_scale = 0.2f;
      kind.qk_norm_follows_rope = c.norm_follows;
      kind.rope = kNoRope;
      QkvRopeParams rope;
      rope.epsilon = 1e-5f;
      if (c.rotary_dim != 0) {
        kind.rope = builder.AddRope(c.rotary_dim, 10000.0f);
        rope.angles = builder.AddValue(c.rotary_dim);
        builder.AddStep(RopeAnglesParams{.rope = static_cast<uint16_t>(kind.rope)}, kNoValue,
                        rope.angles);
      }
      const auto norm = [&] { return builder.AddVector(RandomFloats(c.head_dim, 1.0f, rng)); };
      if (c.has_norms) {
        rope.q_norm = norm();
        rope.k_norm = norm();
        if (c.norm_follows) rope.v_norm = norm();
      }
      const auto id = static_cast<uint16_t>(builder.AddAttention(kind, c.pages, 2, 8, 32));
      AttentionParams attend;
      rope.kind = attend.kind = id;
      rope.group_layer = attend.group_layer = 1;
      const uint32_t width = (kHeads + 4) * c.head_dim;
      const ValueId in = Add(kIn), qkv = Add(width), attended = Add(kHeads * c.head_dim);
      AddLinear(c.weights, in, qkv, width, kIn, false, rng);
      builder.AddStep(rope, qkv, kNoValue);
      builder.AddStep(attend, qkv, attended);
    }
  }
  // Gates with a norm of groups, of whole rows and without one, and matmuls behind them. The last
  // has no vectors of four.
  void AddGates(std::mt19937* rng) {
    for (const auto& [width, group] : {std::pair{96u, 24u}, {172u, 172u}, {196u, 0u}, {54u, 18u}}) {
      const ValueId x = Add(width);
      GateParams gate;
      gate.gate = Add(width + 3);
      gate.norm_group = group;
      gate.epsilon = 1e-5f;
      gate.norms_first = width == 96;
      if (group != 0) gate.norm = builder.AddVector(RandomFloats(group, 1.0f, rng));
      builder.AddStep(gate, x, kNoValue);
      AddLinear(DType::kInt8, x, Add(kOut), kOut, width, false, rng);
    }
  }
  void AddConvolution(std::mt19937* rng) {
    constexpr uint32_t kWidth = 77;
    ConvParams conv;
    conv.weight = AddFloatRows(&builder, 3, kWidth, rng);
    conv.group = static_cast<uint16_t>(builder.AddStates(2 * kWidth, 1, 2));
    const ValueId in = Add(kWidth), out = Add(kWidth);
    builder.AddStep(conv, in, out);
    builder.AddStep(ActParams{.activation = Activation::kSilu}, out, kNoValue);
  }
  ValueId Add(uint32_t width) {
    values.push_back(builder.AddValue(width));
    return values.back();
  }
  void AddLinear(DType dtype, ValueId in, ValueId out, uint32_t rows, uint32_t cols,
                 bool accumulates, std::mt19937* rng) {
    const WeightId weight = AddRandom(&builder, dtype, rows, cols, rng);
    builder.AddStep(LinearParams{.weight = weight, .accumulate = accumulates}, in, out);
  }

  ProgramBuilder builder{2, kMaxRows, 128};
  std::vector<ValueId> values;
};

// Runs of many rows, a few and one, one after the other. Returns all values after each.
std::vector<std::vector<float>> Values(const Backend* backend, Chains* chains) {
  Session session(backend, &chains->builder, 1);
  std::mt19937 rng(10);
  std::vector<std::vector<float>> found;
  Batch batch(session.program(), {{0, kMaxRows}}, &rng);
  for (const uint32_t rows : {kMaxRows, 1u, 8u, 3u, 1u, 1u}) {
    if (rows != kMaxRows) {
      // The run reads the slot of states that the last one wrote.
      std::swap(batch.pages[1].front(), batch.pages[1].back());
      batch.Advance({rows});
    }
    for (const ValueId id : chains->values) {
      const auto x = RandomFloats(size_t{rows} * session.program().values[id].width, 1.0f, &rng);
      std::memcpy(session.ValueData(id), x.data(), x.size() * sizeof(float));
    }
    EXPECT_EQ(Status::kOk, session.Run(batch.Args())) << session.message();
    for (const ValueId id : chains->values) {
      const float* value = session.ValueData(id);
      found.emplace_back(value, value + size_t{rows} * session.program().values[id].width);
    }
  }
  return found;
}

struct FusionCase {
  const Backend* backend;
  const char* name;
};
void PrintTo(const FusionCase& c, std::ostream* out) { *out << c.name; }

class VulkanEndingsTest : public testing::TestWithParam<FusionCase> {};

TEST_P(VulkanEndingsTest, RunsOfAllSizes_AreTheReference) {
  if (const char* problem = NoDevice(GetParam().backend)) GTEST_SKIP() << problem;
  Chains chains, same;
  const auto expected = Values(ReferenceBackend(), &chains);
  const auto found = Values(GetParam().backend, &same);
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(testing::Message()
                 << "run " << i / chains.values.size() << ", value " << i % chains.values.size());
    // A value of an input that is rounded otherwise changes all outputs.
    ExpectNear(found[i].data(), expected[i], 1e-2);
    if (HasFatalFailure()) return;
  }
}

// The shared table runs with a dispatch for each step on VulkanSharedMemory.
INSTANTIATE_TEST_SUITE_P(
    Backends, VulkanEndingsTest,
    testing::Values(FusionCase{VulkanBackend(), "All"},
                    FusionCase{vulkan::RestrictedBackend(vulkan::Restriction::kTeams), "Teams"},
                    FusionCase{vulkan::VariantBackend(5), "SharedMemory"},
                    FusionCase{vulkan::VariantBackend(1), "Tiles64x64"},
                    FusionCase{vulkan::VariantBackend(2), "Tiles64x32"},
                    FusionCase{vulkan::VariantBackend(3), "Tiles32x64"},
                    FusionCase{vulkan::VariantBackend(6), "MatricesOrFirst"}),
    [](const auto& i) { return std::string(i.param.name); });

}  // namespace
}  // namespace arn::conformance

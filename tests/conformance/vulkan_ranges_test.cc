// Towers whose rows a grid or a binding does not hold: the same bits as whole, and plans of the
// largest images of published models.
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backends.h"
#include "dispatch_collector.h"
#include "expect_near.h"
#include "kernels/cpu/backend_cpu.h"
#include "kernels/pack/pack.h"
#include "kernels/reference/backend_reference.h"
#include "kernels/vulkan/backend_vulkan.h"
#include "kernels/vulkan/lower/attention_tiles.h"
#include "kernels/vulkan/lower/grid.h"
#include "kernels/vulkan/lower/lower.h"
#include "kernels/vulkan/replay/vulkan_plan.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

using vulkan::Device;
using vulkan::Restriction;

constexpr uint32_t kMerged = 4;      // patches that become one row
constexpr uint8_t kAxes[] = {1, 2};  // of RoPE's pairs, in turn
constexpr double kTolerance = 2e-5;  // of sums of up to 128 products

struct TowerShape {
  uint32_t rows, pixels, hidden, n_heads, ffn, out;
  DType dtype = DType::kF32;
  bool has_parts = false;
  bool norms_span_heads = false;
};

// A tower of one layer. has_weights = false: of planning, without their data.
class Tower {
 public:
  Tower(const TowerShape& shape, bool has_weights)
      : s_(shape), has_weights_(has_weights), builder_(2, 1, shape.rows) {
    const uint32_t head_dim = s_.hidden / s_.n_heads, wide = kMerged * s_.hidden;
    builder_.SetEncoderRows(s_.rows);
    builder_.SetPoolRows(kMerged);
    for (uint32_t i = 0; i < head_dim / 2; ++i) axes_.push_back(kAxes[i % 2]);
    const auto value = [&](uint32_t width) {
      widths_.push_back(width);
      return builder_.AddEncoderValue(width, 1);
    };
    const auto pooled = [&](uint32_t width) {
      widths_.push_back(width);
      return builder_.AddPooledValue(width, s_.rows / kMerged);
    };
    const ValueId pixels = value(s_.pixels), x = value(s_.hidden), normed = value(s_.hidden);
    const ValueId angles = value(head_dim), qkv = value(3 * s_.hidden), mixed = value(s_.hidden);
    const ValueId gate_up = value(2 * s_.ffn), gated = value(s_.ffn);
    const ValueId merged = pooled(wide), stage = pooled(wide);
    out_ = pooled(s_.out);
    FeaturesParams features;
    features.stride = stride();
    Add(features, kNoValue, pixels);
    features.first = s_.pixels;
    Add(features, kNoValue, x);
    AddLinear(pixels, x, /*accumulate=*/true);
    RopeAnglesParams rope;
    rope.rope =
        static_cast<uint16_t>(builder_.AddRope(head_dim, 1e4f, 1.0f, {axes_.data(), axes_.size()}));
    Add(rope, kNoValue, angles);
    AddNorm(NormKind::kRms, x, normed);
    AddLinear(normed, qkv);
    AddAttention(head_dim, rope.rope, angles, qkv, mixed);
    AddLinear(mixed, x, true);
    AddNorm(NormKind::kLayer, x, normed);
    AddLinear(normed, gate_up);
    Add(GatedActParams{.activation = Activation::kSilu}, gate_up, gated);
    AddLinear(gated, x, true);
    PoolParams pool;
    pool.mode = PoolKind::kConcat;
    Add(pool, x, merged);
    AddNorm(NormKind::kLayer, merged, merged);
    AddLinear(merged, stage);
    Add(ActParams{.activation = Activation::kGelu}, stage, kNoValue);
    AddLinear(stage, out_);
  }

  ProgramBuilder* builder() { return &builder_; }
  ValueId out() const { return out_; }
  uint32_t out_width() const { return s_.out; }
  uint32_t stride() const { return s_.pixels + s_.hidden; }

  // The program with the shapes of weights that have no data.
  Program Build(Layout* layout) {
    Program program = builder_.Build(layout);
    if (!has_weights_) program.weights = {shapes_.data(), shapes_.size()};
    return program;
  }

 private:
  template <typename Params>
  void Add(const Params& params, ValueId in, ValueId out) {
    builder_.AddEncoderStep(Step(params, in, out));
  }
  WeightId Vector(uint32_t n) {
    Weight w;
    w.is_vector = true;
    w.rows = 1;
    w.cols = n;
    w.bytes = n * sizeof(float);
    shapes_.push_back(w);
    return builder_.AddVector(RandomFloats(has_weights_ ? n : 1, 1.0f, &rng_));
  }

  void AddNorm(NormKind kind, ValueId in, ValueId out) {
    NormParams norm;
    norm.kind = kind;
    norm.weight = Vector(widths_[in]);
    if (kind == NormKind::kLayer) norm.bias = Vector(widths_[in]);
    norm.epsilon = 1e-5f;
    Add(norm, in, out);
  }

  void AddLinear(ValueId in, ValueId out, bool accumulate = false) {
    Weight w;
    w.dtype = s_.dtype;
    w.rows = widths_[out];
    w.cols = widths_[in];
    EXPECT_TRUE(PackedBytes(w.dtype, w.layout, w.rows, w.cols, &w.bytes));
    shapes_.push_back(w);
    const uint32_t rows = has_weights_ ? w.rows : 1, cols = has_weights_ ? w.cols : 1;
    LinearParams linear;
    linear.weight = builder_.AddMatrix(RandomMatrix(s_.dtype, rows, cols, true, &rng_), {});
    linear.accumulate = accumulate;
    Add(linear, in, out);
  }

  void AddAttention(uint32_t head_dim, uint16_t rope, ValueId angles, ValueId qkv, ValueId out) {
    AttentionKind kind;
    kind.n_heads = kind.n_kv_heads = s_.n_heads;
    kind.head_dim = head_dim;
    kind.attention_scale = 0.25f;
    kind.rope = rope;
    kind.has_parts = s_.has_parts;
    const auto id = static_cast<uint16_t>(builder_.AddSelfAttention(kind));
    QkvRopeParams params;
    params.kind = id;
    params.angles = angles;
    params.epsilon = 1e-6f;
    params.q_norm = Vector(s_.norms_span_heads ? s_.hidden : head_dim);
    params.k_norm = Vector(s_.norms_span_heads ? s_.hidden : head_dim);
    Add(params, qkv, kNoValue);
    SelfAttentionParams attention;
    attention.kind = id;
    Add(attention, qkv, out);
  }

  const TowerShape s_;
  const bool has_weights_;
  std::mt19937 rng_{91};
  ProgramBuilder builder_;
  std::vector<Weight> shapes_;
  std::vector<uint32_t> widths_;
  std::vector<uint8_t> axes_;
  ValueId out_ = kNoValue;
};

// A run of the first n rows of a tower.
class TowerRun {
 public:
  TowerRun(const Tower& tower, uint32_t n, uint32_t rows_of_part) {
    std::mt19937 rng(92);
    features_ = RandomFloats(size_t{n} * tower.stride(), 1.0f, &rng);
    for (uint32_t i = 0; i < n; ++i) {
      for (const uint32_t position : {0u, i / 16, i % 16}) positions_.push_back(position);
    }
    for (uint32_t first = 0; first < n; first += rows_of_part) {
      SequenceRows part;
      part.first_row = first;
      part.n_rows = std::min(rows_of_part, n - first);
      parts_.push_back(part);
    }
    sequence_.n_rows = sequence_.encoder_rows = n;
    args_.is_encoder = true;
    args_.features = {features_.data(), features_.size()};
    args_.axis_positions = {positions_.data(), positions_.size()};
    args_.sequences = {&sequence_, 1};
    args_.parts = {parts_.data(), parts_.size()};
    args_.logit_rows = LogitRows::kNone;
  }

  std::vector<float> On(Session* session, const Tower& tower) const {
    EXPECT_EQ(Status::kOk, session->Run(args_)) << session->message();
    const float* first = session->ValueData(tower.out());
    return {first, first + size_t{sequence_.n_rows / kMerged} * tower.out_width()};
  }

 private:
  std::vector<float> features_;
  std::vector<uint32_t> positions_;
  std::vector<SequenceRows> parts_;
  SequenceRows sequence_;
  RunArgs args_;
};

// Expects that rows are in ranges: every dispatch of a full run fits a grid and its bindings, and
// those of a step have all of its rows.
void ExpectRanges(const Program& program, uint64_t binding_bytes) {
  vulkan::Traits traits;
  traits.binding_bytes = binding_bytes;
  DispatchCollector collector;
  Diag diag;
  ASSERT_EQ(Status::kOk, vulkan::Lowering(program, {}, {}, traits).Run(&collector, &diag))
      << diag.text();
  const vulkan::RowCounts counts = {program.max_encoder_rows, program.max_pooled_rows, 0, 1};
  uint32_t next = 0, n_ranges = 0;
  for (const vulkan::Dispatch& d : collector.dispatches) {
    const vulkan::GridOf grid(d);
    const uint32_t rows = RowsOf(grid, counts);
    EXPECT_LE(CeilDiv(rows, d.row_tile), 65535u);
    for (const vulkan::Place& place : d.places) {
      if (place.home != vulkan::Home::kActivations) continue;
      EXPECT_LE(place.bytes, binding_bytes);
      EXPECT_EQ(0u, place.offset % Device::kBindingAlign);
    }
    if ((d.modes & vulkan::BitOf(vulkan::Mode::kMany)) == 0) continue;
    EXPECT_EQ(next, d.first_row);
    n_ranges += next != 0 ? 1 : 0;
    next += rows;
    const bool is_pooled = d.rows == vulkan::GridRows::kPooled;
    if (next == (is_pooled ? counts.pooled : counts.run)) next = 0;
  }
  EXPECT_EQ(0u, next);
  EXPECT_NE(0u, n_ranges);
}

// Returns the buffers of a plan's activations, of which each is at most `most` bytes long.
uint32_t CountBuffers(Tower* tower, const Backend* backend, uint64_t buffer_bytes, uint64_t most) {
  Layout layout;
  const Program program = tower->Build(&layout);
  BackendPlan plan;
  Diag diag;
  EXPECT_EQ(Status::kOk, backend->plan(program, {}, &layout, &plan, &diag)) << diag.text();
  uint32_t n = 0;
  const uint64_t all = plan.slices[vulkan::kActivationsSlice].bytes;
  for (uint64_t start = 0, end; start < all; start = end, ++n) {
    end = vulkan::EndOfActivations(program, plan, start, buffer_bytes);
    EXPECT_LE(end - start, most);
    EXPECT_EQ(0u, start % Device::kBindingAlign);
  }
  return n;
}

class VulkanRangesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* problem = NoDevice(VulkanBackend())) GTEST_SKIP() << problem;
  }
};

// Whole ranges, a last one of some rows, one range alone, and few rows, in runs that follow one
// another. Heads of 16 elements are copied two at a time, and the third alone.
TEST_F(VulkanRangesTest, BindingsOf128KiB_TheBitsAreThoseOfLargeOnes) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kInt8, DType::kInt4}) {
    for (const bool has_parts : {false, true}) {
      SCOPED_TRACE(testing::Message() << DTypeName(dtype) << " parts " << has_parts);
      const TowerShape shape = {.rows = 800,
                                .pixels = 22,
                                .hidden = has_parts ? 18u : 48u,
                                .n_heads = 3,
                                .ffn = 40,
                                .out = 24,
                                .dtype = dtype,
                                .has_parts = has_parts,
                                .norms_span_heads = has_parts};
      Tower small(shape, true), large(shape, true), host(shape, true);
      Session in_ranges(vulkan::RestrictedBackend(Restriction::kRanges), small.builder(), 1);
      Session whole(vulkan::AttentionBackend(vulkan::kAttentionOfTiles), large.builder(), 1);
      Session reference(ReferenceBackend(), host.builder(), 1);
      ExpectRanges(in_ranges.program(), 128 << 10);
      const Backend* small_buffers = vulkan::RestrictedBackend(Restriction::kRanges);
      EXPECT_GE(CountBuffers(&small, small_buffers, 256 << 10, 1 << 20), 3u);
      for (const uint32_t n : {800u, 4u, 300u, 128u, 8u, 796u, 800u}) {
        SCOPED_TRACE(testing::Message() << n << " rows");
        const TowerRun run(small, n, has_parts ? 48 : n);
        const std::vector<float> found = run.On(&in_ranges, small);
        EXPECT_EQ(run.On(&whole, large), found);
        if (dtype == DType::kF32) {
          ExpectNear(found.data(), run.On(&reference, host), kTolerance);
        }
      }
    }
  }
}

// As many patches as Qwen2.5-VL has of its largest image, and more than a grid has rows.
TEST_F(VulkanRangesTest, MoreRowsThanAGrid_EqualTheCpu) {
  const TowerShape shape = {.rows = 65536 + 64,
                            .pixels = 12,
                            .hidden = 16,
                            .n_heads = 2,
                            .ffn = 24,
                            .out = 8,
                            .has_parts = true};
  Tower tower(shape, true), host(shape, true);
  Session session(VulkanBackend(), tower.builder(), 1);
  Session cpu(CpuBackend(), host.builder(), 2);
  const TowerRun run(tower, shape.rows, 64);
  ExpectNear(run.On(&session, tower).data(), run.On(&cpu, host), kTolerance);
}

// The geometry of Qwen2.5-VL (12,845,056 pixels in patches of 14) and of Qwen3-VL (16,777,216 in
// patches of 16), whose feed-forward networks have no gate: here they are larger.
TEST(VulkanRangesPlanTest, LargestImagesOfPublishedTowers_ArePlanned) {
  const TowerShape shapes[] = {
      {.rows = 65536, .pixels = 1176, .hidden = 1280, .n_heads = 16, .ffn = 3420, .out = 2048},
      {.rows = 65536, .pixels = 1536, .hidden = 1152, .n_heads = 16, .ffn = 4304, .out = 4096}};
  for (TowerShape shape : shapes) {
    for (const DType dtype : {DType::kF16, DType::kInt8}) {
      SCOPED_TRACE(testing::Message() << shape.hidden << " " << DTypeName(dtype));
      shape.dtype = dtype;
      Tower tower(shape, false);
      Layout layout;
      const Program program = tower.Build(&layout);
      BackendPlan plan;
      Diag diag;
      ASSERT_EQ(Status::kOk, VulkanBackend()->plan(program, {}, &layout, &plan, &diag))
          << diag.text();
      EXPECT_GT(plan.device_bytes, uint64_t{1} << 32);
      ExpectRanges(program, Device::kMaxBindingBytes);
      constexpr uint64_t kGiB = uint64_t{1} << 30;
      EXPECT_LE(CountBuffers(&tower, VulkanBackend(), kGiB, 3 * kGiB), vulkan::kActivationBuffers);
    }
  }
}

// What has no ranges is refused by name.
TEST(VulkanRangesPlanTest, WhatHasNoRanges_IsRefused) {
  const auto expect_refused = [](Tower* tower, const char* why) {
    Layout layout;
    const Program program = tower->Build(&layout);
    BackendPlan plan;
    Diag diag;
    EXPECT_EQ(Status::kUnsupported, VulkanBackend()->plan(program, {}, &layout, &plan, &diag));
    EXPECT_NE(nullptr, std::strstr(diag.text(), why)) << diag.text();
  };
  Tower wide({.rows = 65540, .pixels = 8, .hidden = 260, .n_heads = 1, .ffn = 8, .out = 8}, false);
  expect_refused(&wide, "step self_attention: heads of more than 256 elements");
  Tower many({.rows = 1u << 19, .pixels = 8, .hidden = 64, .n_heads = 1, .ffn = 8, .out = 8},
             false);
  expect_refused(&many, "step self_attention: keys of a head that do not fit a binding");
}

}  // namespace
}  // namespace arn::conformance

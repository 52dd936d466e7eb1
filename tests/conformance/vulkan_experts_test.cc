// How experts are bound to descriptors, for models whose weights do not fit in a test.
#include <gtest/gtest.h>

#include <vector>

#include "dispatch_collector.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/lower.h"

namespace arn::conformance {
namespace {

using vulkan::Device;
using vulkan::DeviceWeight;
using vulkan::Dispatch;

// A kExperts step with weights that have sizes but no bytes.
struct BigExperts {
  BigExperts(uint32_t n_experts, uint32_t width, uint32_t ffn, DType dtype) {
    for (const uint32_t value_width : {width, width, 4u, width, 2 * ffn, ffn, width}) {
      Value value;
      value.width = value_width;
      value.slice = {Region::kActivations, 0, uint64_t{kRows} * value_width * sizeof(float)};
      values.push_back(value);
    }
    for (uint32_t e = 0; e < n_experts; ++e) {
      for (const auto& [rows, cols] : {std::pair{2 * ffn, width}, {width, ffn}}) {
        Weight weight;
        weight.dtype = dtype;
        weight.rows = rows;
        weight.cols = cols;
        weights.push_back(weight);
      }
    }
    ExpertsParams params;
    params.weight = 0;
    params.n_experts = static_cast<uint16_t>(n_experts);
    params.n_chosen = 2;
    params.topk = 2;
    params.gathered = 3;
    params.gate_up = 4;
    params.activated = 5;
    params.expert_out = 6;
    step = Step(params, 0, 1);
    program.steps = {&step, 1};
    program.values = {values.data(), values.size()};
    program.weights = {weights.data(), weights.size()};
    program.max_rows = kRows;
    vulkan::WeightPlacer placer;
    for (const Weight& weight : weights) placed.push_back(placer.Place(weight));
  }

  std::vector<Dispatch> Lower(bool is_placed) {
    DispatchCollector collector;
    Diag diag;
    const vulkan::Workspace workspace;
    Span<const DeviceWeight> places;
    if (is_placed) places = {placed.data(), placed.size()};
    vulkan::Lowering lowering(program, places, workspace, {});
    EXPECT_EQ(Status::kOk, lowering.Run(&collector, &diag)) << diag.text();
    return collector.dispatches;
  }

  static constexpr uint32_t kRows = 16;
  std::vector<Value> values;
  std::vector<Weight> weights;
  std::vector<DeviceWeight> placed;
  Step step;
  Program program;
};

struct Shape {
  uint32_t n_experts, width, ffn;
  DType dtype;
  bool has_blocks, has_slices;  // true if weights span several blocks, and if experts are split
};

TEST(VulkanExpertsTest, EachExpert_IsBoundOnceByEachKernelWithinItsBlock) {
  for (const Shape& s : {Shape{24, 4096, 4064, DType::kInt8, true, false},
                         {128, 2048, 768, DType::kInt4, false, false},
                         {3, 4096, 20000, DType::kBf16, true, true},
                         {7, 64, 36, DType::kF32, false, false}}) {
    SCOPED_TRACE(testing::Message() << s.n_experts << " experts");
    BigExperts experts(s.n_experts, s.width, s.ffn, s.dtype);
    const std::vector<Dispatch> dispatches = experts.Lower(true);
    EXPECT_EQ(dispatches.size(), experts.Lower(false).size()) << "planned otherwise";
    EXPECT_EQ(s.has_blocks, experts.placed.back().block != 0);
    // Outputs computed per expert and matrix, by the few-row and by the many-row kernel.
    std::vector<uint64_t> outs(size_t{s.n_experts} * 4);
    bool has_slices = false;
    for (const Dispatch& d : dispatches) {
      if (d.places[2].home != vulkan::Home::kWeights) continue;
      const bool is_many = d.modes == BitOf(vulkan::Mode::kMany);
      const auto push = d.Push<vulkan::MatmulPush>();
      const bool is_down = push.cols == s.ffn;
      const uint32_t bytes_a_row = push.row_quads * 16;
      for (uint32_t i = 0; i < push.n_experts; ++i) {
        const uint32_t e = push.first_expert + i;
        const DeviceWeight& at = experts.placed[2 * e + (is_down ? 1 : 0)];
        EXPECT_EQ(at.row_bytes, bytes_a_row);
        EXPECT_EQ(at.block, d.places[2].block);
        const uint64_t offset = uint64_t{i} * push.expert_words * sizeof(uint32_t);
        EXPECT_EQ(at.values + uint64_t{push.first_out} * bytes_a_row,
                  d.places[2].offset + push.weights_at * sizeof(uint32_t) + offset);
        EXPECT_EQ(at.heads, d.places[3].offset + push.rows_at * sizeof(uint32_t) + offset);
        outs[e * 4 + (is_down ? 2 : 0) + (is_many ? 1 : 0)] += push.n_outs;
      }
      const uint64_t last = uint64_t{push.n_experts - 1} * push.expert_words * sizeof(uint32_t);
      EXPECT_GE(d.places[2].bytes, last + uint64_t{push.n_outs} * bytes_a_row);
      EXPECT_LE(d.places[2].bytes, Device::kMaxBindingBytes);
      EXPECT_LE(d.places[3].bytes, Device::kMaxBindingBytes);
      has_slices = has_slices || push.first_out != 0;
    }
    EXPECT_EQ(s.has_slices, has_slices);
    for (size_t i = 0; i < outs.size(); ++i) {
      EXPECT_EQ(i % 4 < 2 ? 2 * s.ffn : s.width, outs[i]) << i;
    }
  }
}

}  // namespace
}  // namespace arn::conformance

#include "kernels/vulkan/device/device_weight.h"

#include <cstring>

#include "kernels/pack/pack.h"
#include "kernels/vulkan/device/device.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

constexpr uint32_t kQuadBytes = 16;

uint32_t BlocksOf(const Weight& weight) {
  return static_cast<uint32_t>(CeilDiv(weight.cols, kInt4BlockSize));
}

uint64_t ElementsBytes(const Weight& weight) {
  if (weight.dtype == DType::kInt4) return uint64_t{BlocksOf(weight)} * kInt4BlockSize / 2;
  return uint64_t{weight.cols} * ElementBytes(weight.dtype);
}

int32_t SumOf(const int8_t* values, uint32_t n) {
  int32_t sum = 0;
  for (uint32_t c = 0; c < n; ++c) sum += values[c];
  return sum;
}

// Sum of the values of a block of int4 words (UnpackRowInt4Words).
int32_t SumOfBlock(const uint32_t* words) {
  uint32_t sum = 0;
  for (uint32_t w = 0; w < kInt4BlockSize / 8; ++w) {
    const uint32_t pairs = (words[w] & 0x0f0f0f0fu) + (words[w] >> 4 & 0x0f0f0f0fu);
    sum += pairs * 0x01010101u >> 24;
  }
  return static_cast<int32_t>(sum) - 8 * static_cast<int32_t>(kInt4BlockSize);
}

// Holds a row's scale, and the bits of the sum of its values.
struct RowHead {
  float scale = 0.0f;
  uint32_t sum = 0;
};

RowHead FillInt8(const Weight& weight, uint32_t row, std::byte* scratch, std::byte* values) {
  RowHead head;
  auto* unpacked = reinterpret_cast<int8_t*>(scratch);
  UnpackRowInt8(weight, row, unpacked, &head.scale);
  head.sum = static_cast<uint32_t>(SumOf(unpacked, weight.cols));
  std::memcpy(values, unpacked, weight.cols);
  return head;
}

RowHead FillInt4(const Weight& weight, const DeviceWeight& at, uint32_t row, std::byte* scratch,
                 std::byte* values, std::byte* blocks) {
  const uint32_t n_blocks = BlocksOf(weight);
  auto* words = reinterpret_cast<uint32_t*>(scratch);
  auto* scales = reinterpret_cast<float*>(scratch + ElementsBytes(weight));
  UnpackRowInt4Words(weight, row, words, scales);
  std::memcpy(values, words, ElementsBytes(weight));
  std::memset(blocks, 0, at.block_words * sizeof(uint32_t));
  double sum = 0.0;
  for (uint32_t b = 0; b < n_blocks; ++b) {
    const int32_t of_block = SumOfBlock(words + b * (kInt4BlockSize / 8));
    sum += static_cast<double>(of_block) * static_cast<double>(scales[b]);
    const uint16_t bits = Bf16FromF32(scales[b]);
    std::memcpy(blocks + b * sizeof bits, &bits, sizeof bits);
  }
  return {0.0f, BitsFromF32(static_cast<float>(sum))};
}

}  // namespace

DeviceWeight WeightPlacer::Put(DeviceWeight weight) {
  const uint64_t values = AlignUp(weight.values_bytes, Device::kBindingAlign);
  const uint64_t all = values + AlignUp(weight.heads_bytes, Device::kBindingAlign);
  if (used_ != 0 && used_ + all > kBlockBytes) {
    ++block_;
    used_ = 0;
  }
  weight.block = block_;
  weight.values = used_;
  weight.heads = used_ + values;
  used_ += all;
  total_ += all;
  return weight;
}

DeviceWeight WeightPlacer::Place(const Weight& weight) {
  DeviceWeight at;
  if (weight.is_vector) {
    at.row_bytes = weight.cols * ElementBytes(weight.dtype);
    at.values_bytes = at.row_bytes;
    return Put(at);
  }
  at.row_bytes = static_cast<uint32_t>(AlignUp(ElementsBytes(weight), kQuadBytes));
  at.values_bytes = uint64_t{at.row_bytes} * weight.rows;
  at.blocks_words = kRowHeadWords * weight.rows;
  if (weight.dtype == DType::kInt4) {
    at.block_words = static_cast<uint32_t>(CeilDiv(BlocksOf(weight), 2));
  }
  at.heads_bytes = uint64_t{kRowHeadWords + at.block_words} * weight.rows * sizeof(uint32_t);
  return Put(at);
}

DeviceWeight WeightPlacer::PlaceRope(const RopeKind& rope) {
  DeviceWeight at;
  at.row_bytes = static_cast<uint32_t>(rope.inv_freq.size() * sizeof(float));
  at.values_bytes = at.row_bytes;
  return Put(at);
}

UsedWeights UsedWeightsOf(const Program& program) {
  UsedWeights used = {kNoWeight, 0};
  const auto add = [&](WeightId first, uint32_t n) {
    if (first == kNoWeight || n == 0) return;
    used.first = Min(used.first, first);
    used.end = Max(used.end, first + n);
  };
  for (const Step& step : program.steps) {
    const StepOperands operands = OperandsOf(step);
    for (uint32_t i = 0; i < operands.n_weights; ++i) add(operands.weights[i], 1);
    add(operands.first_matrix, operands.n_matrices);
    // Tables of which only some rows are read.
    if (const auto* embed = step.If<EmbedParams>(); embed != nullptr) {
      add(embed->weight, 1);
      add(embed->positions, 1);
    }
    if (const auto* positions = step.If<AddPositionsParams>(); positions != nullptr) {
      add(positions->positions, 1);
      add(positions->token_types, 1);
    }
  }
  return used;
}

uint64_t RowScratchBytes(const Weight& weight) {
  const uint64_t scales = uint64_t{BlocksOf(weight)} * sizeof(float);
  return AlignUp(ElementsBytes(weight), sizeof(float)) + scales;
}

void FillRow(const Weight& weight, const DeviceWeight& at, uint32_t row, std::byte* scratch,
             std::byte* values, std::byte* head, std::byte* blocks) {
  const uint64_t bytes = ElementsBytes(weight);
  RowHead filled;
  if (weight.dtype == DType::kInt8) {
    filled = FillInt8(weight, row, scratch, values);
  } else if (weight.dtype == DType::kInt4) {
    filled = FillInt4(weight, at, row, scratch, values, blocks);
  } else if (weight.layout.order == WeightOrder::kRows) {
    std::memcpy(values, weight.data + row * bytes, bytes);
  } else if (weight.dtype == DType::kF32) {
    UnpackRowF32(weight, row, reinterpret_cast<float*>(values));
  } else {
    UnpackRow16(weight, row, reinterpret_cast<uint16_t*>(values));
  }
  std::memset(values + bytes, 0, at.row_bytes - bytes);
  uint32_t words[kRowHeadWords] = {};
  words[0] = BitsFromF32(filled.scale);
  words[1] = BitsFromF32(UnpackBias(weight, row));
  words[2] = filled.sum;
  std::memcpy(head, words, sizeof words);
}

}  // namespace arn::vulkan

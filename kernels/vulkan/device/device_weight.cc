#include "kernels/vulkan/device/device_weight.h"

#include <cstring>

#include "kernels/pack/device_rows.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/shaders/shared.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

static_assert(kDeviceAlign == Device::kBindingAlign);
static_assert(kDeviceHeadBytes == kRowHeadWords * sizeof(uint32_t));

uint64_t AddressOf(const std::byte* at) { return reinterpret_cast<uintptr_t>(at); }

}  // namespace

WeightPlacer::WeightPlacer(const Program& program) {
  const UsedWeights used = UsedWeightsOf(program);
  file_ = program.file;
  for (WeightId id = used.first; id < used.end && id < program.weights.size(); ++id) {
    const Weight& weight = program.weights[id];
    if (!weight.is_vector && IsInFile(weight)) return;
  }
  file_ = {};  // the vectors of a bundle packed for a CPU are not worth its pages
}

bool WeightPlacer::IsInFile(const Weight& weight) const {
  if (!weight.is_vector && weight.layout.order != WeightOrder::kDeviceRows) return false;
  const uint64_t at = AddressOf(weight.data), file = AddressOf(file_.data());
  return at % kDeviceAlign == 0 && at - at % kFilePageBytes >= file && at < file + file_.size() &&
         weight.bytes <= file + file_.size() - at;
}

void WeightPlacer::Begin(Open* open, const std::byte* pages) {
  open->exists = true;
  open->index = n_blocks_++;
  open->block = {0, pages};
}

void WeightPlacer::Grow(Open* open, uint64_t bytes) {
  const uint64_t added = AlignUp(bytes, kDeviceAlign) - open->block.bytes;
  open->block.bytes += added;
  total_ += added;
  if (open->block.pages != nullptr) in_file_ += added;
}

DeviceWeight WeightPlacer::Put(DeviceWeight weight) {
  const uint64_t values = AlignUp(weight.values_bytes, kDeviceAlign);
  const uint64_t all = values + AlignUp(weight.heads_bytes, kDeviceAlign);
  const uint64_t used = converted_.block.bytes;
  if (!converted_.exists || (used != 0 && used + all > kBlockBytes)) Begin(&converted_, nullptr);
  weight.block = converted_.index;
  weight.values = converted_.block.bytes;
  weight.heads = weight.values + values;
  Grow(&converted_, converted_.block.bytes + all);
  last_in_file_ = false;
  return weight;
}

// Continues the block if the weight is in it or follows it closely.
DeviceWeight WeightPlacer::Leave(const Weight& weight, DeviceWeight at) {
  const uint64_t first = AddressOf(weight.data);
  const uint64_t begin = AddressOf(pages_.block.pages), end = begin + pages_.block.bytes;
  if (!pages_.exists || first < begin || first > end + kMostGapBytes ||
      first + weight.bytes - begin > kBlockBytes) {
    Begin(&pages_, weight.data - first % kFilePageBytes);
  }
  at.block = pages_.index;
  at.values = first - AddressOf(pages_.block.pages);
  at.heads = at.values + AlignUp(at.values_bytes, kDeviceAlign);
  Grow(&pages_, Max(pages_.block.bytes, at.values + weight.bytes));
  last_in_file_ = true;
  return at;
}

DeviceWeight WeightPlacer::Shape(const Weight& weight) const {
  DeviceWeight at;
  if (weight.is_vector) {
    at.row_bytes = weight.cols * ElementBytes(weight.dtype);
    at.values_bytes = at.row_bytes;
    return at;
  }
  const DeviceRows shape = ShapeOfDeviceRows(weight.dtype, weight.rows, weight.cols);
  at.row_bytes = static_cast<uint32_t>(shape.row_bytes);
  at.values_bytes = shape.row_bytes * weight.rows;
  at.blocks_words = kRowHeadWords * weight.rows;
  at.block_words = static_cast<uint32_t>(shape.block_row_bytes / sizeof(uint32_t));
  at.heads_bytes = shape.bytes - shape.heads_offset;
  return at;
}

DeviceWeight WeightPlacer::Place(const Weight& weight) {
  const DeviceWeight at = Shape(weight);
  return !file_.empty() && IsInFile(weight) ? Leave(weight, at) : Put(at);
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
  const DeviceRows shape = ShapeOfDeviceRows(weight.dtype, weight.rows, weight.cols);
  return AlignUp(shape.element_bytes, sizeof(float)) + 2 * shape.block_row_bytes;
}

void FillRow(const Weight& weight, uint32_t row, std::byte* scratch, std::byte* values,
             std::byte* head, std::byte* blocks) {
  const DeviceRows shape = ShapeOfDeviceRows(weight.dtype, weight.rows, weight.cols);
  DeviceRowSource source;
  source.elements = scratch;
  source.bias = UnpackBias(weight, row);
  if (weight.dtype == DType::kInt8) {
    UnpackRowInt8(weight, row, reinterpret_cast<int8_t*>(scratch), &source.scale);
  } else if (weight.dtype == DType::kInt4) {
    auto* scales = reinterpret_cast<float*>(scratch + shape.element_bytes);
    UnpackRowInt4Words(weight, row, reinterpret_cast<uint32_t*>(scratch), scales);
    // bf16 to begin with, in place.
    auto* narrow = scratch + shape.element_bytes;
    for (uint64_t b = 0; b < shape.element_bytes / (kInt4BlockSize / 2); ++b) {
      const uint16_t bits = Bf16FromF32(scales[b]);
      std::memcpy(narrow + b * sizeof bits, &bits, sizeof bits);
    }
    source.block_scales = reinterpret_cast<const uint16_t*>(narrow);
  } else if (weight.layout.order == WeightOrder::kRows) {
    source.elements = weight.data + row * shape.element_bytes;
  } else if (weight.dtype == DType::kF32) {
    UnpackRowF32(weight, row, reinterpret_cast<float*>(scratch));
  } else {
    UnpackRow16(weight, row, reinterpret_cast<uint16_t*>(scratch));
  }
  PutDeviceRow(shape, weight.dtype, source, values, head, blocks);
}

}  // namespace arn::vulkan

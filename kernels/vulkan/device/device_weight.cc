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

// Packs int4 words. `values`: -8 to 7, in order.
void PackInt4(const int8_t* values, uint32_t n, std::byte* out) {
  for (uint32_t w = 0; w < n / 8; ++w) {
    for (uint32_t i = 0; i < 4; ++i) {
      const int low = values[8 * w + i] + 8, high = values[8 * w + 4 + i] + 8;
      out[4 * w + i] = static_cast<std::byte>(low | high << 4);
    }
  }
}

// Offset of the block scales in the scratch of a row.
float* ScalesIn(const Weight& weight, std::byte* row) {
  return reinterpret_cast<float*>(row + AlignUp(weight.cols, kInt4BlockSize) * sizeof(float));
}

// True if rows can be copied unchanged: row-major and not int4.
bool IsPlain(const Weight& weight) {
  return weight.layout.order == WeightOrder::kRows && weight.dtype != DType::kInt4;
}

void UnpackRow(const Weight& weight, uint32_t row, std::byte* out) {
  float scales[1];
  switch (weight.dtype) {
    case DType::kF32: UnpackRowF32(weight, row, reinterpret_cast<float*>(out)); return;
    case DType::kF16:
    case DType::kBf16: UnpackRow16(weight, row, reinterpret_cast<uint16_t*>(out)); return;
    case DType::kInt8: UnpackRowInt8(weight, row, reinterpret_cast<int8_t*>(out), scales); return;
    case DType::kInt4: return;  // handled in blocks
  }
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

uint64_t WeightRowBytes(const Weight& weight) {
  return AlignUp(weight.cols, kInt4BlockSize) * sizeof(float) +
         uint64_t{BlocksOf(weight)} * sizeof(float);
}

void FillValues(const Weight& weight, const DeviceWeight& at, uint32_t first, uint32_t n,
                std::byte* row, std::byte* out) {
  const uint64_t bytes = ElementsBytes(weight);
  for (uint32_t r = first; r < first + n; ++r, out += at.row_bytes) {
    if (IsPlain(weight)) {
      std::memcpy(out, weight.data + r * bytes, bytes);
    } else if (weight.dtype == DType::kInt4) {
      auto* values = reinterpret_cast<int8_t*>(row);
      UnpackRowInt4(weight, r, values, ScalesIn(weight, row));
      PackInt4(values, BlocksOf(weight) * kInt4BlockSize, out);
    } else {
      UnpackRow(weight, r, out);
    }
    std::memset(out + bytes, 0, at.row_bytes - bytes);
  }
}

void FillHeads(const Weight& weight, const DeviceWeight& at, uint32_t first, uint32_t n,
               std::byte* row, std::byte* heads, std::byte* blocks) {
  const uint32_t n_blocks = BlocksOf(weight);
  for (uint32_t r = first; r < first + n; ++r) {
    float scale = 0.0f;
    uint32_t words[kRowHeadWords] = {};
    auto* values = reinterpret_cast<int8_t*>(row);
    if (weight.dtype == DType::kInt8) {
      UnpackRowInt8(weight, r, values, &scale);
      int32_t sum = 0;
      for (uint32_t c = 0; c < weight.cols; ++c) sum += values[c];
      words[2] = static_cast<uint32_t>(sum);
    }
    if (weight.dtype == DType::kInt4) {
      float* scales = ScalesIn(weight, row);
      UnpackRowInt4(weight, r, values, scales);
      double sum = 0.0;
      std::memset(blocks, 0, at.block_words * sizeof(uint32_t));
      for (uint32_t b = 0; b < n_blocks; ++b) {
        int32_t of_block = 0;
        for (uint32_t i = 0; i < kInt4BlockSize; ++i) of_block += values[b * kInt4BlockSize + i];
        sum += static_cast<double>(of_block) * static_cast<double>(scales[b]);
        const uint16_t bits = Bf16FromF32(scales[b]);
        std::memcpy(blocks + b * sizeof bits, &bits, sizeof bits);
      }
      words[2] = BitsFromF32(static_cast<float>(sum));
    }
    words[0] = BitsFromF32(scale);
    words[1] = BitsFromF32(UnpackBias(weight, r));
    std::memcpy(heads, words, sizeof words);
    heads += sizeof words;
    blocks += at.block_words * sizeof(uint32_t);
  }
}

}  // namespace arn::vulkan

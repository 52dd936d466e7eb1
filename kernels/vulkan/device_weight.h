// Weights as they lie on the device. Of a matrix, each from a multiple of 256 bytes on:
//   values  [rows, row_bytes]: its elements, each row padded with zeros to 16 bytes. Of int4, byte
//           i of a word has element i in its low half and element i + 4 in its high one, each
//           plus 8.
//   heads   [rows, 4] words: scale f32 (int8), bias f32, the sum of the row's values (int8: i32;
//           int4: f32, each times its scale), 0
//   blocks  int4: [rows, block_words] words of two bf16 scales each
// A vector has values alone. Behind the weights come the frequencies of the ropes, as vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/program.h"
#include "platform/base/span.h"

namespace arn::vulkan {

// Weights are shared out over buffers of about this size: some devices allow none of 4 GiB.
inline constexpr uint64_t kBlockBytes = uint64_t{1} << 30;
inline constexpr uint32_t kRowHeadWords = 4;

struct DeviceWeight {
  uint32_t block = 0;
  uint64_t values = 0, heads = 0;  // bytes from the start of the block
  uint64_t values_bytes = 0;
  uint64_t heads_bytes = 0;   // with the blocks' scales; 0: a vector
  uint32_t row_bytes = 0;     // of the values
  uint32_t blocks_words = 0;  // from the heads to the blocks' scales
  uint32_t block_words = 0;   // of each row
};

// Places all weights of a program, and its ropes behind them.
class WeightPlacer {
 public:
  DeviceWeight Place(const Weight& weight);
  DeviceWeight PlaceRope(const RopeKind& rope);
  uint32_t n_blocks() const { return used_ == 0 ? block_ : block_ + 1; }
  // Of the block that is being filled, and of all.
  uint64_t used() const { return used_; }
  uint64_t total() const { return total_; }

 private:
  DeviceWeight Put(DeviceWeight weight);
  uint32_t block_ = 0;
  uint64_t used_ = 0, total_ = 0;
};

// The values of rows [first, first + n) as they lie on the device, and their heads and blocks'
// scales (matrices only). `row`: scratch of WeightRowBytes(weight), 4-byte aligned.
void FillValues(const Weight& weight, const DeviceWeight& at, uint32_t first, uint32_t n,
                std::byte* row, std::byte* out);
void FillHeads(const Weight& weight, const DeviceWeight& at, uint32_t first, uint32_t n,
               std::byte* row, std::byte* heads, std::byte* blocks);
uint64_t WeightRowBytes(const Weight& weight);

}  // namespace arn::vulkan

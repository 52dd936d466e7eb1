// Layout of weights on the device. The parts of a matrix, each aligned to 256 bytes:
//   values  [rows, row_bytes]: the elements; each row is zero-padded to 16 bytes. int4: byte i of a
//           word has element i in its low half and element i + 4 in its high half, each plus 8.
//   heads   [rows, kRowHeadWords] words: scale f32 (int8), bias f32, sum of the row's values (int8:
//           i32; int4: f32, each times its scale), 0
//   blocks  int4: [rows, block_words] words of two bf16 scales each
// A vector has only values. After the weights come the frequencies of the ropes, as vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/program.h"
#include "kernels/vulkan/shaders/shared.h"
#include "platform/base/span.h"

namespace arn::vulkan {

// Weights are split into buffers of about this size: some devices do not allow 4 GiB.
inline constexpr uint64_t kBlockBytes = uint64_t{1} << 30;

struct DeviceWeight {
  uint32_t block = 0;
  uint64_t values = 0, heads = 0;  // bytes from the start of the buffer (block)
  uint64_t values_bytes = 0;
  uint64_t heads_bytes = 0;   // including the block scales; 0: a vector
  uint32_t row_bytes = 0;     // of values
  uint32_t blocks_words = 0;  // from the heads to the block scales
  uint32_t block_words = 0;   // per row
};

// Assigns addresses to all weights of a program, followed by its ropes.
class WeightPlacer {
 public:
  DeviceWeight Place(const Weight& weight);
  DeviceWeight PlaceRope(const RopeKind& rope);
  uint32_t n_blocks() const { return used_ == 0 ? block_ : block_ + 1; }
  // Bytes used in the current buffer, and in total.
  uint64_t used() const { return used_; }
  uint64_t total() const { return total_; }

 private:
  DeviceWeight Put(DeviceWeight weight);
  uint32_t block_ = 0;
  uint64_t used_ = 0, total_ = 0;
};

// Weights that the steps of a program name: [first, end) holds all of them. The others, such as
// those of the decoder beside a vision tower, are not on the device.
struct UsedWeights {
  WeightId first = 0, end = 0;
  bool Has(WeightId id) const { return id >= first && id < end; }
};
UsedWeights UsedWeightsOf(const Program& program);

// Calls visit(index, at) for all weights and then all ropes of a program. Weights that are not in
// use take no bytes.
template <typename Visit>
void PlaceAll(const Program& program, WeightPlacer* placer, Visit visit) {
  const UsedWeights used = UsedWeightsOf(program);
  const auto n = static_cast<WeightId>(program.weights.size());
  for (WeightId id = 0; id < n; ++id) {
    visit(id, used.Has(id) ? placer->Place(program.weights[id]) : DeviceWeight());
  }
  for (uint32_t r = 0; r < program.ropes.size(); ++r) {
    visit(n + r, placer->PlaceRope(program.ropes[r]));
  }
}

// Converts a row of a matrix to the device layout. scratch: RowScratchBytes(weight), 4-byte
// aligned. values: [row_bytes]; head: [kRowHeadWords] words; blocks: [block_words] words, only for
// int4. Only writes to them: they may be memory of the device. Any thread may call it.
void FillRow(const Weight& weight, const DeviceWeight& at, uint32_t row, std::byte* scratch,
             std::byte* values, std::byte* head, std::byte* blocks);
uint64_t RowScratchBytes(const Weight& weight);

}  // namespace arn::vulkan

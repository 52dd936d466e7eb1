// Where weights are on the device, in the layout of kernels/pack/device_rows.h: those of a bundle
// packed for a device as they are in its file, page for page, all others converted, in buffers of
// their own. A vector has only values. After the weights come the frequencies of the ropes, as
// vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/program.h"
#include "platform/base/span.h"

namespace arn::vulkan {

// Weights are split into buffers of about this size: some devices do not allow 4 GiB.
inline constexpr uint64_t kBlockBytes = uint64_t{1} << 30;
// A buffer of the file's pages starts at a multiple of this, a page on every CPU in use, ...
inline constexpr uint64_t kFilePageBytes = 16384;
// ... and ends before a gap of more bytes than these.
inline constexpr uint64_t kMostGapBytes = 65536;

struct DeviceWeight {
  uint32_t block = 0;
  uint64_t values = 0, heads = 0;  // bytes from the start of the buffer (block)
  uint64_t values_bytes = 0;
  uint64_t heads_bytes = 0;   // including the block scales; 0: a vector
  uint32_t row_bytes = 0;     // of values
  uint32_t blocks_words = 0;  // from the heads to the block scales
  uint32_t block_words = 0;   // per row
};

// Weights that the steps of a program name: [first, end) holds all of them. The others, such as
// those of the decoder beside a vision tower, are not on the device.
struct UsedWeights {
  WeightId first = 0, end = 0;
  bool Has(WeightId id) const { return id >= first && id < end; }
};
UsedWeights UsedWeightsOf(const Program& program);

// A buffer of weights.
struct WeightBlock {
  uint64_t bytes = 0;
  const std::byte* pages = nullptr;  // of the file, whose bytes it has; null: converted weights
};

// Assigns addresses to all weights of a program, followed by its ropes. They depend on the program
// and on where its file is, not on the device.
class WeightPlacer {
 public:
  // Converts all weights: for their shapes.
  WeightPlacer() = default;
  // Leaves weights in the file's pages, if it is packed for a device.
  explicit WeightPlacer(const Program& program);

  DeviceWeight Place(const Weight& weight);
  DeviceWeight PlaceRope(const RopeKind& rope);
  uint32_t n_blocks() const { return n_blocks_; }
  // The block of the last weight, as large as it has become.
  WeightBlock block() const { return last_in_file_ ? pages_.block : converted_.block; }
  // Bytes of all blocks, and of those with pages of the file.
  uint64_t total() const { return total_; }
  uint64_t in_file() const { return in_file_; }

 private:
  struct Open {
    bool exists = false;
    uint32_t index = 0;
    WeightBlock block;
  };

  DeviceWeight Shape(const Weight& weight) const;
  bool IsInFile(const Weight& weight) const;
  DeviceWeight Put(DeviceWeight weight);
  DeviceWeight Leave(const Weight& weight, DeviceWeight at);
  void Begin(Open* open, const std::byte* pages);
  void Grow(Open* open, uint64_t bytes);

  Span<const std::byte> file_;  // empty: nothing stays in it
  Open converted_, pages_;      // the current blocks
  bool last_in_file_ = false;   // where the last weight is
  uint32_t n_blocks_ = 0;
  uint64_t total_ = 0, in_file_ = 0;
};

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
// aligned. The rest as in PutDeviceRow(). Any thread may call it.
void FillRow(const Weight& weight, uint32_t row, std::byte* scratch, std::byte* values,
             std::byte* head, std::byte* blocks);
uint64_t RowScratchBytes(const Weight& weight);

}  // namespace arn::vulkan

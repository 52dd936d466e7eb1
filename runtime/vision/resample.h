// Resizes images as torchvision does, the default of transformers' image processors: Pillow's
// separable filters, which widen with the scale so that shrinking averages, with weights of 16 bits
// and pixels of 8 bits between the two passes, as torch's interpolate of uint8 has them.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "runtime/model/vision_spec.h"

namespace arn {

// Interleaved RGB, 8 bits a channel.
struct ImageView {
  const uint8_t* pixels = nullptr;
  uint32_t width = 0, height = 0;
  uint64_t stride = 0;  // bytes from a row to the next

  const uint8_t* Row(uint32_t y) const { return pixels + y * stride; }
};

struct ImageSize {
  uint32_t width = 0, height = 0;

  bool exists() const { return width != 0; }
  uint64_t bytes() const { return uint64_t{kPixelChannels} * width * height; }
  friend bool operator==(ImageSize a, ImageSize b) {
    return a.width == b.width && a.height == b.height;
  }
};

// Weights of the inputs [first, first + n) of an output. They add up to 1.
struct FilterTaps {
  uint32_t first = 0, n = 0;
};

// Returns the most inputs that an output of this filter has.
uint32_t MostTaps(Resample filter, uint32_t in, uint32_t out);
// Writes the weights of output `i` of `out`. REQUIRES: room for MostTaps.
FilterTaps MakeTaps(Resample filter, uint32_t in, uint32_t out, uint32_t i, Span<double> weights);

// Resizes with memory that is planned for the largest sides.
class Resizer {
 public:
  // Returns the bytes of a resizer for inputs and outputs with sides of at most these lengths.
  static uint64_t Bytes(uint32_t max_in, uint32_t max_out);
  Resizer(uint32_t max_in, uint32_t max_out, Span<std::byte> memory);

  // Writes dense rows of `size` to `out`. REQUIRES: sides within the limits, none of them 0.
  void Resize(const ImageView& in, ImageSize size, Resample filter, uint8_t* out);

 private:
  static constexpr uint32_t kCachedRows = 32;
  struct Buffers {
    double* weights = nullptr;      // of one output
    FilterTaps* columns = nullptr;  // [max_out]
    int32_t* taps = nullptr;        // of all output columns, MostTaps each
    int32_t* row_taps = nullptr;    // of one output row
    int32_t* sums = nullptr;        // of one output row
    uint8_t* cache = nullptr;       // [kCachedRows, max_out, channels]
  };
  static uint64_t Partition(uint32_t max_in, uint32_t max_out, std::byte* memory, Buffers* out);
  // Fills columns and taps. Returns the bits of fraction.
  uint32_t MakeColumns(uint32_t in, uint32_t out, Resample filter, Span<double> weights);
  // Returns input row y, resized to the output's width.
  const uint8_t* RowOf(const ImageView& in, uint32_t y, uint32_t width, uint32_t most_taps,
                       uint32_t bits);

  Buffers b_;
  uint32_t cached_[kCachedRows] = {};  // input row of each cached one, plus 1; 0: none
};

}  // namespace arn

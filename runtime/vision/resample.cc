#include "runtime/vision/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "platform/base/arith.h"
#include "platform/base/layout.h"

namespace arn {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr uint32_t kWidestSupport = 3;

double SupportOf(Resample filter) {
  switch (filter) {
    case Resample::kLanczos: return 3.0;
    case Resample::kBilinear: return 1.0;
    case Resample::kBicubic: return 2.0;
  }
  return 1.0;
}

double Sinc(double x) { return x == 0.0 ? 1.0 : std::sin(x * kPi) / (x * kPi); }

// Keys' cubic with a = -0.5.
double Cubic(double x) {
  constexpr double a = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
}

double WeightAt(Resample filter, double x) {
  switch (filter) {
    case Resample::kLanczos: return x >= -3.0 && x < 3.0 ? Sinc(x) * Sinc(x / 3) : 0.0;
    case Resample::kBilinear: return std::fabs(x) < 1.0 ? 1.0 - std::fabs(x) : 0.0;
    case Resample::kBicubic: return Cubic(x);
  }
  return 0.0;
}

uint32_t TapsOf(double support, uint32_t in, uint32_t out) {
  const double scale = Max(static_cast<double>(in) / out, 1.0);
  return static_cast<uint32_t>(std::ceil(support * scale)) * 2 + 1;
}

// Returns the bits of fraction of an axis' weights: as many as the largest one leaves in 16 bits
// (ATen's UpSampleKernel.cpp, _compute_index_ranges_int16_weights).
uint32_t FractionBits(Resample filter, uint32_t in, uint32_t out, Span<double> weights) {
  double largest = 0.0;
  for (uint32_t i = 0; i < out; ++i) {
    const FilterTaps taps = MakeTaps(filter, in, out, i, weights);
    for (uint32_t k = 0; k < taps.n; ++k) largest = Max(largest, weights[k]);
  }
  uint32_t bits = 0;
  while (bits < 22 && static_cast<int>(0.5 + largest * (1 << (bits + 1))) < (1 << 15)) ++bits;
  return bits;
}

void ToFixed(Span<const double> weights, uint32_t bits, int32_t* out) {
  for (const double weight : weights) {
    *out++ = static_cast<int32_t>((weight < 0 ? -0.5 : 0.5) + weight * (1 << bits));
  }
}

int32_t Half(uint32_t bits) { return bits == 0 ? 0 : 1 << (bits - 1); }

uint8_t PixelOf(int32_t sum, uint32_t bits) {
  return static_cast<uint8_t>(Min(Max(sum >> bits, 0), 255));
}

}  // namespace

uint32_t MostTaps(Resample filter, uint32_t in, uint32_t out) {
  return TapsOf(SupportOf(filter), in, out);
}

FilterTaps MakeTaps(Resample filter, uint32_t in, uint32_t out, uint32_t i, Span<double> weights) {
  const double scale = static_cast<double>(in) / out, widening = Max(scale, 1.0);
  const double support = SupportOf(filter) * widening;
  const double center = (i + 0.5) * scale;
  const auto first = static_cast<uint32_t>(Max(center - support + 0.5, 0.0));
  const auto end = static_cast<uint32_t>(Min(center + support + 0.5, static_cast<double>(in)));
  FilterTaps taps = {first, end - first};
  double sum = 0.0;
  for (uint32_t k = 0; k < taps.n; ++k) {
    weights[k] = WeightAt(filter, (k + first - center + 0.5) / widening);
    sum += weights[k];
  }
  for (uint32_t k = 0; k < taps.n && sum != 0.0; ++k) weights[k] /= sum;
  return taps;
}

uint64_t Resizer::Partition(uint32_t max_in, uint32_t max_out, std::byte* memory, Buffers* out) {
  const uint32_t longest = Max(max_in, max_out);
  // Each input is in twice the support of outputs; each output has up to 3 more.
  const uint64_t all_taps = uint64_t{2} * kWidestSupport * longest + uint64_t{3} * max_out;
  const uint64_t most_taps = uint64_t{2} * kWidestSupport * longest + 3;
  uint64_t at = 0;
  const auto take = [&](auto** array, uint64_t n) {
    using T = std::remove_reference_t<decltype(**array)>;
    if (memory != nullptr) *array = reinterpret_cast<T*>(memory + at);
    at += AlignUp(n * sizeof(T), kSliceAlign);
  };
  const uint64_t row = uint64_t{kPixelChannels} * max_out;
  take(&out->weights, most_taps);
  take(&out->columns, max_out);
  take(&out->taps, all_taps);
  take(&out->row_taps, most_taps);
  take(&out->sums, row);
  take(&out->cache, kCachedRows * row);
  return at;
}

uint64_t Resizer::Bytes(uint32_t max_in, uint32_t max_out) {
  Buffers buffers;
  return Partition(max_in, max_out, nullptr, &buffers);
}

Resizer::Resizer(uint32_t max_in, uint32_t max_out, Span<std::byte> memory) {
  Partition(max_in, max_out, memory.data(), &b_);
}

uint32_t Resizer::MakeColumns(uint32_t in, uint32_t out, Resample filter, Span<double> weights) {
  const uint32_t bits = FractionBits(filter, in, out, weights);
  const uint32_t most = MostTaps(filter, in, out);
  for (uint32_t x = 0; x < out; ++x) {
    b_.columns[x] = MakeTaps(filter, in, out, x, weights);
    ToFixed(weights.subspan(0, b_.columns[x].n), bits, b_.taps + uint64_t{x} * most);
  }
  return bits;
}

const uint8_t* Resizer::RowOf(const ImageView& in, uint32_t y, uint32_t width, uint32_t most_taps,
                              uint32_t bits) {
  if (in.width == width) return in.Row(y);
  const uint32_t slot = y % kCachedRows;
  uint8_t* out = b_.cache + uint64_t{slot} * kPixelChannels * width;
  if (cached_[slot] == y + 1) return out;
  cached_[slot] = y + 1;
  uint8_t* to = out;
  for (uint32_t x = 0; x < width; ++x) {
    const FilterTaps column = b_.columns[x];
    const int32_t* taps = b_.taps + uint64_t{x} * most_taps;
    const uint8_t* from = in.Row(y) + uint64_t{kPixelChannels} * column.first;
    int32_t sums[kPixelChannels];
    std::fill(sums, sums + kPixelChannels, Half(bits));
    for (uint32_t k = 0; k < column.n; ++k, from += kPixelChannels) {
      for (uint32_t c = 0; c < kPixelChannels; ++c) sums[c] += taps[k] * from[c];
    }
    for (uint32_t c = 0; c < kPixelChannels; ++c) *to++ = PixelOf(sums[c], bits);
  }
  return out;
}

void Resizer::Resize(const ImageView& in, ImageSize size, Resample filter, uint8_t* out) {
  const uint64_t row_bytes = uint64_t{kPixelChannels} * size.width;
  const uint32_t most_taps = MostTaps(filter, in.width, size.width);
  const Span<double> weights(b_.weights, Max(most_taps, MostTaps(filter, in.height, size.height)));
  const bool widens = in.width != size.width, heightens = in.height != size.height;
  const uint32_t across = widens ? MakeColumns(in.width, size.width, filter, weights) : 0;
  const uint32_t down = heightens ? FractionBits(filter, in.height, size.height, weights) : 0;
  std::fill(cached_, cached_ + kCachedRows, 0u);
  for (uint32_t y = 0; y < size.height; ++y, out += row_bytes) {
    if (!heightens) {
      std::memcpy(out, RowOf(in, y, size.width, most_taps, across), row_bytes);
      continue;
    }
    const FilterTaps rows = MakeTaps(filter, in.height, size.height, y, weights);
    ToFixed(weights.subspan(0, rows.n), down, b_.row_taps);
    std::fill(b_.sums, b_.sums + row_bytes, Half(down));
    for (uint32_t k = 0; k < rows.n; ++k) {
      const uint8_t* row = RowOf(in, rows.first + k, size.width, most_taps, across);
      const int32_t tap = b_.row_taps[k];
      for (uint64_t i = 0; i < row_bytes; ++i) b_.sums[i] += tap * row[i];
    }
    for (uint64_t i = 0; i < row_bytes; ++i) out[i] = PixelOf(b_.sums[i], down);
  }
}

}  // namespace arn

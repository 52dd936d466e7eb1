#include "tools/arenite/image_file.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tools/arenite/error.h"
#include "tools/arenite/io.h"

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_FAILURE_USERMSG
#define STBI_MAX_DIMENSIONS 32768
// Zeroed: a damaged JPEG has pixels that no scan writes, which must not show what memory held.
#define STBI_MALLOC(n) std::calloc(1, n)
#define STBI_REALLOC(p, n) std::realloc(p, n)
#define STBI_FREE(p) std::free(p)
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include "stb_image.h"
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace arn::tool {
namespace {

constexpr int kChannels = 3;

// A TIFF header's numbers, within bounds.
class Tiff {
 public:
  Tiff(const uint8_t* data, size_t size) : data_(data), size_(size) {
    is_big_ = size >= 2 && data[0] == 'M';
  }
  // Returns a number of n bytes; 0 beyond the end.
  uint32_t At(size_t offset, size_t n) const {
    if (n > size_ || offset > size_ - n) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < n; ++i) {
      const size_t at = is_big_ ? i : n - 1 - i;
      value = value << 8 | data_[offset + at];
    }
    return value;
  }

 private:
  const uint8_t* data_;
  size_t size_;
  bool is_big_;
};

// Exif 2.32, 4.6.4: the orientation is an entry of the first directory.
uint32_t OrientationOf(const Tiff& tiff) {
  constexpr uint32_t kOrientation = 0x0112, kEntryBytes = 12;
  const uint32_t directory = tiff.At(4, 4), n = tiff.At(directory, 2);
  for (uint32_t i = 0; i < n; ++i) {
    const size_t entry = size_t{directory} + 2 + size_t{i} * kEntryBytes;
    if (tiff.At(entry, 2) != kOrientation) continue;
    const uint32_t value = tiff.At(entry + 8, 2);
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

struct FreePixels {
  void operator()(stbi_uc* pixels) const { stbi_image_free(pixels); }
};

}  // namespace

uint32_t ExifOrientation(const std::vector<uint8_t>& bytes) {
  constexpr uint8_t kStartOfScan = 0xDA, kApp1 = 0xE1;
  constexpr char kExif[] = "Exif\0";  // and a second NUL
  if (bytes.size() < 4 || bytes[0] != 0xFF || bytes[1] != 0xD8) return 1;
  for (size_t at = 2; at + 4 <= bytes.size() && bytes[at] == 0xFF;) {
    const uint8_t marker = bytes[at + 1];
    const size_t length = size_t{bytes[at + 2]} << 8 | bytes[at + 3];
    if (marker == kStartOfScan || length < 2 || length > bytes.size() - at - 2) return 1;
    const uint8_t* data = bytes.data() + at + 4;
    if (marker == kApp1 && length >= 2 + sizeof kExif &&
        std::memcmp(data, kExif, sizeof kExif) == 0) {
      return OrientationOf(Tiff(data + sizeof kExif, length - 2 - sizeof kExif));
    }
    at += 2 + length;
  }
  return 1;
}

RgbImage Upright(RgbImage image, uint32_t orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  const bool is_turned = orientation >= 5;  // rows become columns
  const bool mirrors_x =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirrors_y =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  RgbImage out;
  out.width = is_turned ? image.height : image.width;
  out.height = is_turned ? image.width : image.height;
  out.pixels.resize(image.pixels.size());
  uint8_t* to = out.pixels.data();
  for (uint32_t y = 0; y < out.height; ++y) {
    for (uint32_t x = 0; x < out.width; ++x, to += kChannels) {
      uint32_t from_x = is_turned ? y : x, from_y = is_turned ? x : y;
      if (mirrors_x) from_x = image.width - 1 - from_x;
      if (mirrors_y) from_y = image.height - 1 - from_y;
      std::memcpy(to, &image.pixels[(size_t{from_y} * image.width + from_x) * kChannels],
                  kChannels);
    }
  }
  return out;
}

RgbImage DecodeImage(const std::vector<uint8_t>& bytes, const std::string& name,
                     uint32_t max_side) {
  int width = 0, height = 0, channels = 0;
  const int size = bytes.size() > INT32_MAX ? INT32_MAX : static_cast<int>(bytes.size());
  if (stbi_info_from_memory(bytes.data(), size, &width, &height, &channels) != 0 &&
      static_cast<uint32_t>(std::max(width, height)) > max_side) {
    throw Error(
        Format("%s: %d x %d pixels, at most %u a side", name.c_str(), width, height, max_side));
  }
  const std::unique_ptr<stbi_uc, FreePixels> pixels(
      stbi_load_from_memory(bytes.data(), size, &width, &height, &channels, kChannels));
  if (pixels == nullptr) {
    throw Error(name + ": not a PNG or JPEG image that can be read: " + stbi_failure_reason());
  }
  RgbImage image = {static_cast<uint32_t>(width), static_cast<uint32_t>(height), {}};
  image.pixels.assign(pixels.get(), pixels.get() + size_t{image.width} * image.height * kChannels);
  return Upright(std::move(image), ExifOrientation(bytes));
}

RgbImage ReadImageFile(const std::string& path) {
  const std::string contents = ReadFile(path);
  return DecodeImage(std::vector<uint8_t>(contents.begin(), contents.end()), path);
}

}  // namespace arn::tool

// Reads images of PNG and JPEG files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace arn::tool {

// Dense rows of red, green, blue.
struct RgbImage {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> pixels;
};

// Longest side of an image: that of arn_image_options.
inline constexpr uint32_t kMaxImageSide = 8192;
// Decodes the contents of a file, upright as its Exif orientation says; drops transparency. `name`:
// for messages. Throws Error, for an image with a longer side than max_side before its pixels are
// decoded.
RgbImage DecodeImage(const std::vector<uint8_t>& bytes, const std::string& name,
                     uint32_t max_side = kMaxImageSide);
RgbImage ReadImageFile(const std::string& path);

// Returns the Exif orientation of a JPEG file, 1 to 8; 1 if it has none.
uint32_t ExifOrientation(const std::vector<uint8_t>& bytes);
// Returns an image that is stored in this orientation, upright.
RgbImage Upright(RgbImage image, uint32_t orientation);

}  // namespace arn::tool

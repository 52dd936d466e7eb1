// ImageReader: images of requests as embeddings. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "tools/arenite/images.h"

namespace arn::serve {

// An image as a request has it.
struct ImageSource {
  std::string url;
  std::string path;  // of the field, for errors
};

class ImageReader {
 public:
  static constexpr uint32_t kMaxSide = 4096;
  // Bytes of the images that are kept: clients send all images of a conversation each time.
  static constexpr uint64_t kKeptBytes = uint64_t{64} << 20;

  // The model must outlive it, and take images. Throws tool::Error.
  ImageReader(const tool::Model& model, const arn_session_options& session);

  // Returns the images, encoded. Throws ApiError.
  tool::ImageList Read(const std::vector<ImageSource>& sources);
  // Why Vulkan refused the tower, which then runs on the CPU; empty: it did not.
  const std::string& refused() const { return encoder_.refused(); }
  // The most bytes that it holds: the encoder, an image that is decoded, and what is kept.
  uint64_t bytes() const;

 private:
  struct Kept {
    std::vector<uint8_t> file;
    std::shared_ptr<const tool::EncodedImage> image;
    uint64_t bytes() const { return file.size() + image->embeddings.size() * sizeof(float); }
  };

  std::shared_ptr<const tool::EncodedImage> ReadOne(const ImageSource& source);

  const tool::Model& model_;
  const tool::ImageEncoder encoder_;
  std::list<Kept> kept_;  // the latest first
};

// Returns the contents of a "data:image/...;base64,..." URI. Throws ApiError.
std::vector<uint8_t> BytesOfDataUri(const ImageSource& source);

}  // namespace arn::serve

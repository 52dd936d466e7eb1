// Images of prompts: files to embeddings, and markers to the tokens of images.
#pragma once

#include <arenite/arenite.h>

#include <memory>
#include <string>
#include <vector>

#include "tools/arenite/chat_format.h"
#include "tools/arenite/image_file.h"
#include "tools/arenite/model.h"

namespace arn::tool {

// An image that has been encoded.
struct EncodedImage {
  std::string name;  // of its file
  arn_image_size size = {0, 0};
  std::vector<float> embeddings;
};
using ImageList = std::vector<std::shared_ptr<const EncodedImage>>;

// True if the model takes images.
bool TakesImages(const Model& model);
// Returns arn_image_info. Throws Error if the model takes no images.
arn_image_info ImageInfo(const Model& model);

// The vision tower with its memory.
class ImageEncoder {
 public:
  // Runs on the backend of `session`, or on the CPU if that is Vulkan and refuses the tower. The
  // model must outlive it. Throws Error.
  ImageEncoder(const Model& model, const arn_session_options& session,
               uint32_t max_side = kMaxImageSide);
  // `name`: for messages. Throws Error.
  std::shared_ptr<const EncodedImage> Encode(const RgbImage& image, const std::string& name) const;
  uint64_t bytes() const { return bytes_; }
  // Why Vulkan refused the tower; empty: it did not.
  const std::string& refused() const { return refused_; }

 private:
  struct Destroy {
    void operator()(arn_image_encoder* encoder) const { arn_image_encoder_destroy(encoder); }
  };

  const Model& model_;
  uint64_t bytes_ = 0;
  std::string refused_;
  std::unique_ptr<arn_image_encoder, Destroy> encoder_;
};

// Encodes images. The memory of the vision tower is free when it returns. Tells on stderr if the
// CPU took the place of `session`'s backend. Throws Error.
ImageList EncodeImages(const Model& model, const std::vector<std::string>& files,
                       const arn_session_options& session);

// Replaces the markers of a prompt by the images' tokens. Throws Error unless it has as many.
PromptText ExpandImages(const Model& model, const PromptText& prompt, const ImageList& images);
// Returns the embeddings of all, one after the other.
std::vector<float> EmbeddingsOf(const ImageList& images);

}  // namespace arn::tool

#include "tools/arenite/images.h"

#include <algorithm>
#include <cstdio>

#include "tools/arenite/error.h"

namespace arn::tool {

bool TakesImages(const Model& model) {
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  return arn_image_get_info(model.get(), &info) == ARN_OK;
}

arn_image_info ImageInfo(const Model& model) {
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  if (arn_image_get_info(model.get(), &info) != ARN_OK) {
    throw Error(model.path() +
                ": the model takes no images: its bundle has no vision tower (docs/skills.md)");
  }
  return info;
}

ImageEncoder::ImageEncoder(const Model& model, const arn_session_options& session,
                           uint32_t max_side)
    : model_(model) {
  ImageInfo(model);
  arn_image_options options = ARN_IMAGE_OPTIONS_INIT;
  options.backend = session.backend;
  options.n_threads = session.n_threads;
  options.max_side = max_side;
  options.device = session.device;
  options.device_folder = session.device_folder;
  options.needs_gpu = session.needs_gpu;
  options.trust_device = session.trust_device;
  char error[512] = "";
  arn_image_plan_data plan = ARN_IMAGE_PLAN_DATA_INIT;
  arn_status status = arn_image_plan(model.get(), &options, error, sizeof error, &plan);
  if (status == ARN_UNSUPPORTED && options.backend == ARN_BACKEND_VULKAN) {
    refused_ = error;
    options.backend = ARN_BACKEND_CPU;
    status = arn_image_plan(model.get(), &options, error, sizeof error, &plan);
  }
  arn_image_encoder* encoder = nullptr;
  if (status != ARN_OK || arn_image_encoder_create(model.get(), &options, nullptr, 0, error,
                                                   sizeof error, &encoder) != ARN_OK) {
    throw Error(model.path() + ": " + error);
  }
  bytes_ = plan.total_bytes;
  encoder_.reset(encoder);
}

std::shared_ptr<const EncodedImage> ImageEncoder::Encode(const RgbImage& image,
                                                         const std::string& name) const {
  auto encoded = std::make_shared<EncodedImage>();
  encoded->name = name;
  encoded->size = {image.width, image.height};
  char error[512] = "";
  arn_image_layout layout = ARN_IMAGE_LAYOUT_INIT;
  if (arn_image_get_layout(model_.get(), image.width, image.height, error, sizeof error, &layout) !=
      ARN_OK) {
    throw Error(name + ": " + error);
  }
  encoded->embeddings.resize(size_t{layout.n_embeddings} * ImageInfo(model_).width);
  const arn_image view = {image.pixels.data(), image.width, image.height, 0};
  uint32_t n = 0;
  if (arn_image_encode(encoder_.get(), &view, encoded->embeddings.data(),
                       encoded->embeddings.size(), &n) != ARN_OK) {
    throw Error(name + ": " + arn_image_encoder_last_error(encoder_.get()));
  }
  return encoded;
}

ImageList EncodeImages(const Model& model, const std::vector<std::string>& files,
                       const arn_session_options& session) {
  ImageList images;
  if (files.empty()) return images;
  ImageInfo(model);
  std::vector<RgbImage> read;
  uint32_t longest = 1;
  for (const std::string& file : files) {
    read.push_back(ReadImageFile(file));
    longest = std::max({longest, read.back().width, read.back().height});
  }
  const ImageEncoder encoder(model, session, longest);
  if (!encoder.refused().empty()) {
    std::fprintf(stderr, "images are encoded on the CPU: %s\n", encoder.refused().c_str());
  }
  for (size_t i = 0; i < files.size(); ++i) images.push_back(encoder.Encode(read[i], files[i]));
  return images;
}

PromptText ExpandImages(const Model& model, const PromptText& prompt, const ImageList& images) {
  std::vector<arn_image_size> sizes;
  for (const auto& image : images) sizes.push_back(image->size);
  PromptText out;
  out.plain.resize(prompt.plain.size());
  out.text.resize(prompt.text.size() + 16384);
  for (;;) {
    char error[512] = "";
    size_t bytes = 0;
    const arn_status status =
        arn_image_expand(model.get(), sizes.data(), sizes.size(), prompt.text.data(),
                         prompt.text.size(), prompt.plain.data(), prompt.plain.size(), error,
                         sizeof error, out.text.data(), out.text.size(), &bytes, out.plain.data());
    out.text.resize(bytes);
    if (status == ARN_OK) return out;
    if (status != ARN_BUFFER_TOO_SMALL) {
      throw Error(*error == '\0' ? arn_status_name(status) : error);
    }
  }
}

std::vector<float> EmbeddingsOf(const ImageList& images) {
  std::vector<float> all;
  for (const auto& image : images) {
    all.insert(all.end(), image->embeddings.begin(), image->embeddings.end());
  }
  return all;
}

}  // namespace arn::tool

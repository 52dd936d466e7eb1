// A seeded checkpoint of a model that sees, images, and what transformers computes with them
// (make_vision_goldens.py).
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/golden/golden_case.h"

namespace arn::test {

struct RgbImage {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> pixels;

  arn_image view() const { return {pixels.data(), width, height, 0}; }
};

// As image_of of make_vision_goldens.py.
inline RgbImage GoldenImage(uint32_t width, uint32_t height, uint32_t index) {
  RgbImage image = {width, height, {}};
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) {
      for (uint32_t c = 0; c < 3; ++c) {
        const uint32_t value = x * (3 + c) + y * (5 - c) + ((x * y) >> 3) * (index + 1);
        image.pixels.push_back(static_cast<uint8_t>(value & 255));
      }
    }
  }
  return image;
}

using ImageEncoderPtr = std::unique_ptr<arn_image_encoder, decltype(&arn_image_encoder_destroy)>;

inline ImageEncoderPtr NewImageEncoder(const arn_model* model, const arn_image_options* options) {
  arn_image_encoder* encoder = nullptr;
  char error[256] = "";
  EXPECT_EQ(ARN_OK,
            arn_image_encoder_create(model, options, nullptr, 0, error, sizeof error, &encoder))
      << error;
  return {encoder, &arn_image_encoder_destroy};
}

class VisionGoldenTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    Load(GetParam());
    ASSERT_TRUE(Make("f32"));
  }

  // Tokens of an image see all of it.
  static bool SeesBothWays() {
    return std::string(GetParam()).find("both_ways") != std::string::npos;
  }

  void Load(const std::string& which) {
    const std::string name = "vision/" + which;
    golden_ = LoadGolden(name);
    json_ = nlohmann::json::parse(ReadText(SourcePath("tests/golden/data/" + name + ".json")));
    for (const nlohmann::json& size : json_.at("images")) {
      images_.push_back(GoldenImage(size[0], size[1], static_cast<uint32_t>(images_.size())));
    }
  }

  bool Make(const std::string& weights) {
    const std::filesystem::path checkpoint = folder_ / "checkpoint";
    std::filesystem::create_directories(checkpoint);
    WriteFile(checkpoint / "preprocessor_config.json", json_.at("preprocessor").dump());
    if (!ConvertGolden(golden_, ConfigStyle::kTransformers5, checkpoint, folder_ / "model.arn",
                       {"--weights", weights})) {
      return false;
    }
    model_ = OpenModel(folder_ / "model.arn");
    return model_ != nullptr;
  }

  // Embeddings of all images, one after the other.
  std::vector<float> Encode(uint32_t backend) {
    arn_image_options options = ARN_IMAGE_OPTIONS_INIT;
    options.backend = backend;
    options.n_threads = 2;
    const ImageEncoderPtr encoder = NewImageEncoder(model_.get(), &options);
    std::vector<float> all;
    for (const RgbImage& image : images_) {
      const std::vector<float> rows = EncodeOne(encoder.get(), image);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }

  std::vector<float> EncodeOne(arn_image_encoder* encoder, const RgbImage& image) {
    arn_image_layout layout = ARN_IMAGE_LAYOUT_INIT;
    EXPECT_EQ(ARN_OK,
              arn_image_get_layout(model_.get(), image.width, image.height, nullptr, 0, &layout));
    arn_image_info info = ARN_IMAGE_INFO_INIT;
    EXPECT_EQ(ARN_OK, arn_image_get_info(model_.get(), &info));
    std::vector<float> rows(uint64_t{layout.n_embeddings} * info.width);
    const arn_image view = image.view();
    uint32_t n = 0;
    EXPECT_EQ(ARN_OK, arn_image_encode(encoder, &view, rows.data(), rows.size(), &n))
        << arn_image_encoder_last_error(encoder);
    EXPECT_EQ(layout.n_embeddings, n);
    return rows;
  }

  uint32_t n_places() const {
    arn_image_info info = ARN_IMAGE_INFO_INIT;
    arn_image_get_info(model_.get(), &info);
    uint32_t n = 0;
    for (const int32_t id : golden_.prompt) n += id == info.token_id ? 1 : 0;
    return n;
  }

  arn_session_options Options(uint32_t backend) const {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.backend = backend;
    options.kv_type = ARN_KV_F32;
    options.n_threads = 2;
    options.embedding_rows = n_places();
    return options;
  }

  TempFolder folder_;
  GoldenCase golden_;
  nlohmann::json json_;
  std::vector<RgbImage> images_;
  ModelPtr model_;
};

}  // namespace arn::test

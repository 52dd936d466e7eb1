// Vectors of texts, speech and images under failing calls.
#include <cmath>
#include <cstring>

#include "tests/trust/scenario_parts.h"

namespace arn::test {
namespace {

std::string Bits(const float* values, size_t n) {
  std::string text;
  for (size_t i = 0; i < n; ++i) {
    uint32_t word = 0;
    std::memcpy(&word, values + i, sizeof word);
    text += std::to_string(word) + " ";
  }
  return text;
}

class Embed : public WithModel {
 public:
  explicit Embed(const std::string& folder) : WithModel(folder + "/vectors.arn"), out_(2 * 4096) {}
  Outcome Try() override {
    arn_embedder_destroy(embedder_);
    arn_embed_options options = ARN_EMBED_OPTIONS_INIT;
    options.n_threads = 2;
    options.max_tokens = 64;
    char error[512] = "";
    arn_status status =
        arn_embedder_create(model_, &options, nullptr, 0, error, sizeof error, &embedder_);
    if (status != ARN_OK) return {status, error};
    const arn_text texts[] = {{"a fox", 5}, {"once upon a time", 16}};
    status = arn_embed(embedder_, nullptr, texts, 2, out_.data(), out_.size());
    return {status, arn_embedder_last_error(embedder_)};
  }
  std::string Result() override {
    arn_embed_info info = ARN_EMBED_INFO_INIT;
    Need(arn_embed_get_info(model_, &info), "embed_get_info");
    return Bits(out_.data(), 2 * info.width);
  }
  void TearDown() override {
    arn_embedder_destroy(embedder_);
    WithModel::TearDown();
  }

 private:
  std::vector<float> out_;
  arn_embedder* embedder_ = nullptr;
};

class Transcribe : public WithModel {
 public:
  explicit Transcribe(const std::string& folder) : WithModel(folder + "/speech.arn"), pcm_(4000) {
    for (size_t i = 0; i < pcm_.size(); ++i) {
      pcm_[i] = 0.3f * std::sin(0.05f * static_cast<float>(i));
    }
  }
  void SetUp() override {
    WithModel::SetUp();
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.n_threads = 1;
    char error[512] = "";
    Need(arn_session_create(model_, &options, nullptr, 0, error, sizeof error, &session_), "create",
         error);
  }
  Outcome Try() override {
    arn_transcriber_destroy(transcriber_);
    char error[512] = "";
    arn_status status =
        arn_transcriber_create(session_, nullptr, nullptr, 0, error, sizeof error, &transcriber_);
    if (status != ARN_OK) return {status, error};
    arn_transcribe_options options = ARN_TRANSCRIBE_OPTIONS_INIT;
    options.language = "en";
    result_ = ARN_TRANSCRIBE_RESULT_INIT;
    status = arn_transcribe(transcriber_, pcm_.data(), pcm_.size(), &options, &result_);
    return {status, arn_transcriber_last_error(transcriber_)};
  }
  std::string Result() override {
    return std::to_string(result_.n_segments) + " " + std::to_string(result_.n_tokens) + " " +
           TokensOf(session_);
  }
  void TearDown() override {
    arn_transcriber_destroy(transcriber_);
    arn_session_destroy(session_);
    WithModel::TearDown();
  }

 private:
  std::vector<float> pcm_;
  arn_session* session_ = nullptr;
  arn_transcriber* transcriber_ = nullptr;
  arn_transcribe_result result_ = ARN_TRANSCRIBE_RESULT_INIT;
};

class Image : public WithModel {
 public:
  explicit Image(const std::string& folder)
      : WithModel(folder + "/image.arn"), pixels_(64 * 40 * 3), out_(1 << 20) {
    for (size_t i = 0; i < pixels_.size(); ++i) pixels_[i] = static_cast<uint8_t>(i * 7);
  }
  Outcome Try() override {
    arn_image_encoder_destroy(encoder_);
    arn_image_options options = ARN_IMAGE_OPTIONS_INIT;
    options.n_threads = 2;
    options.max_side = 128;
    char error[512] = "";
    arn_status status =
        arn_image_encoder_create(model_, &options, nullptr, 0, error, sizeof error, &encoder_);
    if (status != ARN_OK) return {status, error};
    const arn_image image = {pixels_.data(), 64, 40, 0};
    status = arn_image_encode(encoder_, &image, out_.data(), out_.size(), &rows_);
    return {status, arn_image_encoder_last_error(encoder_)};
  }
  std::string Result() override {
    arn_image_info info = ARN_IMAGE_INFO_INIT;
    Need(arn_image_get_info(model_, &info), "image_get_info");
    return Bits(out_.data(), size_t{rows_} * info.width);
  }
  void TearDown() override {
    arn_image_encoder_destroy(encoder_);
    WithModel::TearDown();
  }

 private:
  std::vector<uint8_t> pixels_;
  std::vector<float> out_;
  arn_image_encoder* encoder_ = nullptr;
  uint32_t rows_ = 0;
};

}  // namespace

std::vector<NamedScenario> SkillScenarios() {
  return {{"embed", Make<Embed>}, {"transcribe", Make<Transcribe>}, {"image", Make<Image>}};
}

}  // namespace arn::test

#include "tools/arenite/encoder_input.h"

#include <algorithm>
#include <cstring>

#include "CLI/CLI.hpp"
#include "tools/arenite/io.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

// Reads raw float32 [width, frames] and transposes it to [frames, width].
std::vector<float> ReadFeatures(const std::string& path, uint32_t width, uint32_t frames) {
  const std::string bytes = ReadFile(path);
  const uint64_t wanted = uint64_t{width} * frames * sizeof(float);
  if (bytes.size() != wanted) {
    throw Error(Format("%s: %zu bytes, expected %llu: float32 [%u, %u] of --features-shape",
                       path.c_str(), bytes.size(), static_cast<unsigned long long>(wanted), width,
                       frames));
  }
  std::vector<float> stored(bytes.size() / sizeof(float)), features(stored.size());
  std::memcpy(stored.data(), bytes.data(), bytes.size());
  for (uint64_t f = 0; f < frames; ++f) {
    for (uint64_t w = 0; w < width; ++w) features[f * width + w] = stored[w * frames + f];
  }
  return features;
}

uint32_t EncoderFramesOf(const arn_model_info& info, uint32_t rows) {
  return info.encoder_row_frames * rows + info.encoder_more_frames;
}

// Returns the encoder rows of n frames; 0: they make no rows, or too many.
uint32_t EncoderRowsOf(const arn_model_info& info, uint32_t n) {
  const uint64_t padded = uint64_t{n} + info.encoder_optional_frames;
  if (padded < EncoderFramesOf(info, 1) || n > EncoderFramesOf(info, info.encoder_rows)) return 0;
  const auto rows =
      static_cast<uint32_t>((padded - info.encoder_more_frames) / info.encoder_row_frames);
  return n <= EncoderFramesOf(info, rows) ? rows : 0;
}

}  // namespace

void AddEncoderOptions(CLI::App* app, EncoderArguments* arguments) {
  CLI::Option_group* group = app->add_option_group(
      "encoder", "Encoder input, which models with an encoder need (T5, Whisper)");
  group->add_option("--encoder-text", arguments->text, "Text");
  group->add_option("--encoder-ids", arguments->ids, "Token ids: 1,2,3");
  CLI::Option* features = group->add_option(
      "--features", arguments->features,
      "File of raw float32 features [MELS, FRAMES], in this machine's byte order");
  group->require_option(0, 1);
  CLI::Option* shape =
      app->add_option("--features-shape", arguments->shape, "Shape of the features: MELS,FRAMES");
  features->needs(shape);
  shape->needs(features);
}

EncoderInput::EncoderInput(const Model& model, const EncoderArguments& arguments) {
  const arn_model_info& info = model.info();
  const bool is_given = arguments.text || arguments.ids || arguments.features;
  if (info.encoder_rows == 0) {
    if (is_given)
      throw Error(model.path() + ": the model has no encoder: give its text as --prompt");
    return;
  }
  const bool takes_features = info.encoder_feature_width != 0;
  if (!is_given || takes_features != arguments.features.has_value()) {
    throw Error(model.path() + ": the model's encoder takes " +
                (takes_features ? "features: --features and --features-shape are needed"
                                : "tokens: --encoder-text or --encoder-ids is needed"));
  }
  if (!takes_features) {
    ids_ = arguments.ids ? ParseIds(*arguments.ids, "--encoder-ids")
                         : model.Tokenize(*arguments.text, ARN_TOKENIZE_DEFAULT);
    if (ids_.empty()) throw Error("--encoder-text: the text has no tokens");
    rows_ = static_cast<uint32_t>(ids_.size());
    return;
  }
  const std::vector<uint32_t> shape = ParseCounts(arguments.shape, "--features-shape");
  if (shape.size() != 2 || shape[0] != info.encoder_feature_width ||
      EncoderRowsOf(info, shape[1]) == 0) {
    throw Error(
        Format("--features-shape %s: expected %u,FRAMES with %u to %u frames, in steps of %u",
               arguments.shape.c_str(), info.encoder_feature_width,
               EncoderFramesOf(info, 1) - info.encoder_optional_frames,
               EncoderFramesOf(info, info.encoder_rows),
               info.encoder_optional_frames != 0 ? 1 : info.encoder_row_frames));
  }
  width_ = shape[0];
  n_frames_ = shape[1];
  rows_ = EncoderRowsOf(info, n_frames_);
  features_ = ReadFeatures(*arguments.features, width_, n_frames_);
}

EncoderInput EncoderInput::ForMeasuring(const Model& model) {
  constexpr uint32_t kTokens = 128, kMostRows = 1500;
  const arn_model_info& info = model.info();
  EncoderInput encoder_input;
  if (info.encoder_rows == 0) return encoder_input;
  if (info.encoder_feature_width == 0) {
    for (uint32_t i = 0; i < std::min(kTokens, info.encoder_rows); ++i) {
      encoder_input.ids_.push_back(static_cast<int32_t>(i % info.vocab));
    }
    encoder_input.rows_ = static_cast<uint32_t>(encoder_input.ids_.size());
    return encoder_input;
  }
  encoder_input.width_ = info.encoder_feature_width;
  encoder_input.rows_ = std::min(kMostRows, info.encoder_rows);
  encoder_input.n_frames_ = EncoderFramesOf(info, encoder_input.rows_);
  encoder_input.features_.resize(size_t{encoder_input.width_} * encoder_input.n_frames_);
  return encoder_input;
}

void EncoderInput::SizeSession(arn_session_options* options) const {
  if (rows_ != 0) options->encoder_rows = rows_;
}

void EncoderInput::Encode(const Session& session) const {
  if (!ids_.empty()) {
    session.Check(arn_session_encode_ids(session.get(), ids_.data(), ids_.size()));
  }
  if (n_frames_ != 0) {
    session.Check(arn_session_encode_features(session.get(), features_.data(), n_frames_, width_));
  }
}

}  // namespace arn::tool

// Encoder input of encoder-decoder models: options, and encoding it in a session.
#pragma once

#include <arenite/arenite.h>

#include <optional>
#include <string>
#include <vector>

#include "tools/arenite/model.h"

namespace CLI {
class App;
}  // namespace CLI

namespace arn::tool {

struct EncoderArguments {
  std::optional<std::string> text;
  std::optional<std::string> ids;
  std::optional<std::string> features;  // a file
  std::string shape;                    // "MELS,FRAMES" of the features
};
// Adds --source, --encoder-ids, --features and --features-shape; at most one input.
void AddEncoderOptions(CLI::App* app, EncoderArguments* arguments);

class EncoderInput {
 public:
  EncoderInput() = default;  // none
  // Reads the input that the arguments name. Throws Error with the reason, also if the model takes
  // another type of input or none.
  EncoderInput(const Model& model, const EncoderArguments& arguments);

  // Returns synthetic input for benchmarks; none if the model has no encoder.
  static EncoderInput ForMeasuring(const Model& model);

  // Sizes the session for the input; changes nothing without one.
  void SizeSession(arn_session_options* options) const;
  void Encode(const Session& session) const;
  // Rows that the encoder computes; 0 without input.
  uint32_t rows() const { return rows_; }

 private:
  std::vector<int32_t> ids_;
  std::vector<float> features_;  // [n_frames, width]
  uint32_t n_frames_ = 0;
  uint32_t rows_ = 0;
  uint32_t width_ = 0;
};

}  // namespace arn::tool

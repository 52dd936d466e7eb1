// The source of models that attend to one: options, and giving it to a session.
#pragma once

#include <arenite/arenite.h>

#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "tools/arenite/model.h"

namespace arn::tool {

struct SourceArguments {
  std::optional<std::string> text;
  std::optional<std::string> ids;
  std::optional<std::string> features;  // a file
  std::string shape;                    // "MELS,FRAMES" of it
};
// --source, --source-ids, --features and --features-shape: one source at most.
void AddSourceOptions(CLI::App* app, SourceArguments* arguments);

class Source {
 public:
  // Reads what the arguments name. Throws Error when the model needs a source of another kind, or
  // none, and naming what is wrong.
  Source(const Model& model, const SourceArguments& arguments);

  // A source of some content, none when the model has none: for measuring.
  static Source ForMeasuring(const Model& model);

  // What a session needs to have room for it; leaves it alone when there is no source.
  void SizeSession(arn_session_options* options) const;
  void Encode(const Session& session) const;

 private:
  Source() = default;

  std::vector<int32_t> ids_;
  std::vector<float> features_;  // [n_frames, width]
  uint32_t n_frames_ = 0;
  uint32_t width_ = 0;
};

}  // namespace arn::tool

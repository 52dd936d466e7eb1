// The models that arenite serve answers with, opened as its options say.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tools/arenite/adapters.h"
#include "tools/arenite/draft.h"
#include "tools/serve/image_reader.h"
#include "tools/serve/prompter.h"
#include "tools/serve/scheduler.h"
#include "tools/serve/serve_options.h"
#include "tools/serve/text_scorer.h"
#include "tools/serve/transcriber.h"

namespace arn::tool {

// A bundle of --embedder or --reranker, if there is one.
class OtherModel {
 public:
  // `base`: the name of the server's own bundle. Throws Error.
  OtherModel(const ServeArguments& arguments, const std::string& bundle, const std::string& base,
             const char* option);

  serve::TextScorer* scorer() { return scorer_ ? &*scorer_ : nullptr; }
  uint64_t bytes() const { return scorer_ ? scorer_->plan().total_bytes : 0; }

 private:
  std::optional<Model> model_;
  std::optional<serve::TextScorer> scorer_;
};

// A bundle of --transcriber, if there is one.
class SpeechModel {
 public:
  // Throws Error.
  SpeechModel(const ServeArguments& arguments, const std::string& base);

  static bool WritesSpeech(const Model& model);
  serve::Transcriber* transcriber() { return transcriber_ ? &*transcriber_ : nullptr; }
  uint64_t bytes() const { return transcriber_ ? transcriber_->bytes() : 0; }

 private:
  std::optional<Model> model_;
  std::optional<serve::Transcriber> transcriber_;
};

// The model that makes text, and what answers requests for it.
struct TextModel {
  TextModel(Model opened, const ServeArguments& arguments, serve::Metrics* metrics);

  const Model model;
  const Adapters adapters;
  const Draft draft;
  const arn_session_options session;
  const std::unique_ptr<serve::ImageReader> images;  // null: the model or the backend takes none
  const serve::Prompter prompter;
  serve::Scheduler scheduler;
};

// Gives the bundle each role that its model can take and that no other bundle has: embedder,
// reranker, transcriber. Returns true if it also makes text. Throws Error if it has nothing to do.
bool TakeRoles(const Model& model, ServeArguments* arguments);

}  // namespace arn::tool

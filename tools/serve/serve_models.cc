#include "tools/serve/serve_models.h"

#include <cstring>
#include <filesystem>
#include <utility>

#include "tools/arenite/images.h"
#include "tools/arenite/io.h"
#include "tools/serve/sampling_fields.h"
#include "tools/serve/state_file.h"

namespace arn::tool {
namespace {

// Longest text of a request for vectors or scores: 8,192 tokens of any language. The tokenizer
// reserves about 100 times as much.
constexpr size_t kMaxScoredBytes = 256 * 1024;

arn_session_options SessionOptions(const ServeArguments& arguments, const Model& model,
                                   const Adapters& adapters, const Draft& draft) {
  arn_session_options options = ToSessionOptions(arguments.session);
  adapters.AddTo(&options);
  draft.AddTo(&options);
  options.constraint_bytes = ParseBytes(arguments.constraint_memory, "--constraint-memory");
  serve::ReserveForRequests(model.get(), &options);
  // Bundles without what constraints need generate without them, and libraries too.
  arn_session_options plain = options;
  plain.constraint_bytes = 0;
  if (!model.CanPlan(options) && model.CanPlan(plain)) return plain;
  return options;
}

// Room for as many embeddings as the cache has tokens, where the backend takes them.
arn_session_options WithImages(const Model& model, arn_session_options options) {
  const arn_session_options text_only = options;
  if (!TakesImages(model) || !model.CanPlan(options)) return text_only;
  options.embedding_rows = model.Plan(options).kv_tokens;
  return model.CanPlan(options) ? options : text_only;
}

// Returns the path of the state folder, "" if there is none. Throws Error.
std::filesystem::path StateFolder(const ServeArguments& arguments) {
  if (arguments.state_folder.empty()) return "";
  if (!arguments.adapters.empty()) {
    throw Error("--state-folder: not with --adapter, whose scales are not saved");
  }
  namespace fs = std::filesystem;
  fs::path folder = fs::absolute(arguments.state_folder).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "DIR/"
  serve::MakeStateFolder(folder);
  return folder;
}

serve::SchedulerOptions OptionsOf(const ServeArguments& arguments) {
  serve::SchedulerOptions options;
  options.queue_capacity = arguments.queue;
  options.save_after = std::chrono::seconds(arguments.save_after);
  const std::filesystem::path folder = StateFolder(arguments);
  if (folder.empty()) return options;
  const std::string name = std::filesystem::path(arguments.model.bundle).stem().string();
  options.state_file = folder / (name + ".state");
  options.kept_folder = folder / (name + ".kept");
  options.kept_bytes = ParseBytes(arguments.state_bytes, "--state-bytes");
  return options;
}

}  // namespace

OtherModel::OtherModel(const ServeArguments& arguments, const std::string& bundle,
                       const std::string& base, const char* option) {
  if (bundle.empty()) return;
  ModelArguments own = arguments.model;
  own.bundle = bundle;
  model_.emplace(OpenModel(own));
  const arn_model_info& info = model_->info();
  const bool is_reranker = std::strcmp(option, "--reranker") == 0;
  if ((is_reranker ? info.makes_scores : info.makes_vectors) == 0) {
    throw Error(Format("%s %s: the model makes no %s of texts", option, bundle.c_str(),
                       is_reranker ? "scores of pairs" : "vectors"));
  }
  const bool is_base = bundle == arguments.model.bundle;
  scorer_.emplace(*model_, is_base ? base : std::filesystem::path(bundle).stem().string(),
                  arguments.session.threads, kMaxScoredBytes);
  if (is_reranker && scorer_->plan().width != 1) {
    throw Error(Format("%s %s: gives %u scores for a pair, and documents are ordered by one",
                       option, bundle.c_str(), scorer_->plan().width));
  }
}

SpeechModel::SpeechModel(const ServeArguments& arguments, const std::string& base) {
  const std::string& bundle = arguments.transcriber;
  if (bundle.empty()) return;
  ModelArguments own = arguments.model;
  own.bundle = bundle;
  model_.emplace(OpenModel(own));
  if (!WritesSpeech(*model_)) {
    throw Error("--transcriber " + bundle + ": the model does not write speech down (Whisper " +
                "does)");
  }
  // Context, sequences and pools of the options are those of the model that makes text.
  SessionArguments session;
  session.backend = arguments.session.backend;
  session.device = arguments.session.device;
  session.kv = arguments.session.kv;
  session.encoder_kv = arguments.session.encoder_kv;
  session.threads = arguments.session.threads;
  const bool is_base = bundle == arguments.model.bundle;
  transcriber_.emplace(*model_, is_base ? base : std::filesystem::path(bundle).stem().string(),
                       ToSessionOptions(session));
}

bool SpeechModel::WritesSpeech(const Model& model) {
  arn_transcribe_info info = ARN_TRANSCRIBE_INFO_INIT;
  return arn_transcribe_get_info(model.get(), &info) == ARN_OK;
}

TextModel::TextModel(Model opened, const ServeArguments& arguments, serve::Metrics* metrics)
    : model(std::move(opened)),
      adapters(model, arguments.adapters),
      draft(arguments.session),
      session(WithImages(model, SessionOptions(arguments, model, adapters, draft))),
      images(session.embedding_rows == 0 ? nullptr
                                         : std::make_unique<serve::ImageReader>(model, session)),
      prompter(model, images.get()),
      scheduler(model, session, OptionsOf(arguments), metrics) {}

bool TakeRoles(const Model& model, ServeArguments* arguments) {
  const arn_model_info& info = model.info();
  const std::string& bundle = arguments->model.bundle;
  struct Task {
    bool can;
    std::string* bundle;
    const char *made, *option;
  };
  const Task roles[] = {
      {info.makes_vectors != 0, &arguments->embedder, "vectors", "--embedder"},
      {info.makes_scores != 0, &arguments->reranker, "scores", "--reranker"},
      {SpeechModel::WritesSpeech(model), &arguments->transcriber, "transcripts", "--transcriber"}};
  bool has_role = false;
  const Task* other = nullptr;
  for (const Task& role : roles) {
    if (!role.can) continue;
    if (role.bundle->empty()) *role.bundle = bundle;
    has_role = has_role || *role.bundle == bundle;
    other = &role;
  }
  if (info.makes_text != 0 && info.encoder_rows == 0) return true;
  if (!arguments->adapters.empty()) {
    throw Error(model.path() + ": the model makes no text, and --adapter is for one that does");
  }
  if (has_role) return false;
  if (other != nullptr) {
    throw Error(Format("%s: the model makes only %s, and %s names another bundle for them",
                       model.path().c_str(), other->made, other->option));
  }
  if (info.encoder_rows != 0 && info.makes_text != 0) {
    throw Error(model.path() + ": the model has an encoder, which no request here has input for");
  }
  throw Error(model.path() + ": the model makes no text, no vectors and no scores");
}

}  // namespace arn::tool

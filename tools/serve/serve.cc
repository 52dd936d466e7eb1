// arenite serve: the library behind HTTP.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "CLI/CLI.hpp"
#include "tools/arenite/adapters.h"
#include "tools/arenite/commands.h"
#include "tools/arenite/images.h"
#include "tools/arenite/io.h"
#include "tools/arenite/memory_report.h"
#include "tools/arenite/options.h"
#include "tools/cli/program.h"
#include "tools/serve/api.h"
#include "tools/serve/heap.h"
#include "tools/serve/image_reader.h"
#include "tools/serve/sampling_fields.h"

namespace arn::tool {
namespace {

struct ServeArguments {
  ModelArguments model;
  SessionArguments session;
  std::string host = "127.0.0.1";
  uint32_t port = 8080;
  std::string name;
  uint32_t queue = 32;
  uint32_t connections = 64;
  std::string max_body;  // empty: the default
  uint32_t max_tokens = 0;
  uint32_t time_limit = 600;
  std::string api_key_file;
  std::string cors;
  std::string constraint_memory = "4M";
  std::string embedder, reranker, transcriber;
  std::string state_folder;
  uint32_t save_after = 5;
  std::vector<std::string> adapters;
};

// Parsing, a template and the tokenizer hold this many times a body at most; measured with 1 MB of
// values that are as small as can be: 59 times for tools, 36 for arrays, 12 for texts.
constexpr uint64_t kParseFactor = 64;
// Bytes of samples for a byte of a file: 8 bits at kLowestRate become f32, then twice as many.
constexpr uint64_t kSampleFactor = 12;
// Longest body with sound, four minutes of it with 16 bits a sample, or with images.
constexpr const char* kMediaBody = "8M";
// Longest text of a request for vectors or scores: 8,192 tokens of any language. The tokenizer
// reserves about 100 times as much.
constexpr size_t kMaxScoredBytes = 256 * 1024;

std::vector<std::string> ReadKeys(const std::string& path) {
  std::vector<std::string> keys;
  if (path.empty()) return keys;
  const std::string text = ReadFile(path);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string key = text.substr(at, end - at);
    while (!key.empty() && (key.back() == '\r' || key.back() == ' ')) key.pop_back();
    if (!key.empty()) keys.push_back(std::move(key));
    at = end + 1;
  }
  if (keys.empty()) throw Error(path + ": has no key: expected one on each line");
  return keys;
}

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.compare(0, 4, "127.") == 0;
}

arn_session_options SessionOptions(const ServeArguments& arguments, const Model& model,
                                   const Adapters& adapters) {
  arn_session_options options = ToSessionOptions(arguments.session);
  adapters.AddTo(&options);
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

// A bundle of --embedder or --reranker, if there is one.
class OtherModel {
 public:
  // `base`: the name of the server's own bundle.
  OtherModel(const ServeArguments& arguments, const std::string& bundle, const std::string& base,
             const char* option) {
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

  serve::TextScorer* scorer() { return scorer_ ? &*scorer_ : nullptr; }
  uint64_t bytes() const { return scorer_ ? scorer_->plan().total_bytes : 0; }

 private:
  std::optional<Model> model_;
  std::optional<serve::TextScorer> scorer_;
};

// A bundle of --transcriber, if there is one.
class SpeechModel {
 public:
  SpeechModel(const ServeArguments& arguments, const std::string& base) {
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

  static bool WritesSpeech(const Model& model) {
    arn_transcribe_info info = ARN_TRANSCRIBE_INFO_INIT;
    return arn_transcribe_get_info(model.get(), &info) == ARN_OK;
  }
  serve::Transcriber* transcriber() { return transcriber_ ? &*transcriber_ : nullptr; }
  uint64_t bytes() const { return transcriber_ ? transcriber_->bytes() : 0; }

 private:
  std::optional<Model> model_;
  std::optional<serve::Transcriber> transcriber_;
};

// Creates a folder, and those above it. Returns true if it was not there. Syncs what it is created
// in: a loss of power must not take it away with a file that was saved in it.
bool MakeFolder(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path above = folder.parent_path();
  if (fs::exists(folder, error)) return false;
  if (above != folder && !above.empty()) MakeFolder(above);
  if (!fs::create_directory(folder, error)) return false;
  const int fd = open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    fsync(fd);
    close(fd);
  }
  return true;
}

// Creates the folder, which is readable by its user alone. Throws Error.
std::string StateFile(const ServeArguments& arguments) {
  if (arguments.state_folder.empty()) return "";
  if (!arguments.adapters.empty()) {
    throw Error("--state-folder: not with --adapter, whose scales are not saved");
  }
  namespace fs = std::filesystem;
  fs::path folder = fs::absolute(arguments.state_folder).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "DIR/"
  std::error_code error;
  if (MakeFolder(folder)) fs::permissions(folder, fs::perms::owner_all, error);
  if (!fs::is_directory(folder)) throw Error("--state-folder " + folder.string() + ": no folder");
  return folder / (fs::path(arguments.model.bundle).stem().string() + ".state");
}

serve::SchedulerOptions OptionsOf(const ServeArguments& arguments) {
  serve::SchedulerOptions options;
  options.queue_capacity = arguments.queue;
  options.state_file = StateFile(arguments);
  options.save_after = std::chrono::seconds(arguments.save_after);
  return options;
}

// The model that makes text, and what answers requests for it.
struct TextModel {
  TextModel(Model opened, const ServeArguments& arguments, serve::Metrics* metrics)
      : model(std::move(opened)),
        adapters(model, arguments.adapters),
        session(WithImages(model, SessionOptions(arguments, model, adapters))),
        images(session.embedding_rows == 0 ? nullptr
                                           : std::make_unique<serve::ImageReader>(model, session)),
        prompter(model, images.get()),
        scheduler(model, session, OptionsOf(arguments), metrics) {}

  const Model model;
  const Adapters adapters;
  const arn_session_options session;
  const std::unique_ptr<serve::ImageReader> images;  // null: the model or the backend takes none
  const serve::Prompter prompter;
  serve::Scheduler scheduler;
};

std::string MemoryText(const TextModel* text, const serve::HttpOptions& http, bool has_speech,
                       uint64_t other_bytes) {
  const uint64_t body = http.max_body_bytes;
  uint64_t requests =
      http.n_connections * (body + serve::Mailbox::kFullBytes) + kParseFactor * body;
  // Copies that wait, and the samples of one.
  if (has_speech) requests += (http.n_connections + kSampleFactor) * body;
  uint64_t total = requests + other_bytes;
  std::string lines, weights;
  if (text != nullptr) {
    const serve::Scheduler& scheduler = text->scheduler;
    const arn_memory_plan& plan = scheduler.plan();
    total += plan.total_bytes + plan.copied_bytes + scheduler.reply_bytes();
    lines =
        PlanTable(plan) + Format("\nreplies  %s for %u parsers\n",
                                 HumanBytes(scheduler.reply_bytes()).c_str(), plan.max_sequences);
    weights = "; weights " + HumanBytes(plan.weights_bytes) + " mapped";
  }
  return lines + Format(
                     "requests %s at most, for %zu connections\n"
                     "others   %s for embedder, reranker, transcriber and images\n"
                     "whole    %s at most, and the program itself%s\n",
                     HumanBytes(requests).c_str(), http.n_connections,
                     HumanBytes(other_bytes).c_str(), HumanBytes(total).c_str(), weights.c_str());
}

// Gives the bundle each role that its model can take and that no other bundle has: embedder,
// reranker, transcriber. Returns true if it also makes text. Throws Error if it has nothing to do.
bool TakeRoles(const Model& model, ServeArguments* arguments) {
  const arn_model_info& info = model.info();
  const std::string& bundle = arguments->model.bundle;
  struct Role {
    bool can;
    std::string* bundle;
    const char *made, *option;
  };
  const Role roles[] = {
      {info.makes_vectors != 0, &arguments->embedder, "vectors", "--embedder"},
      {info.makes_scores != 0, &arguments->reranker, "scores", "--reranker"},
      {SpeechModel::WritesSpeech(model), &arguments->transcriber, "transcripts", "--transcriber"}};
  bool has_role = false;
  const Role* other = nullptr;
  for (const Role& role : roles) {
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

// Waits for Ctrl-C or SIGTERM, which all threads of this one block.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
    signal(SIGPIPE, SIG_IGN);
  }
  ~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  void Wait() const {
    int came = 0;
    sigwait(&set_, &came);
  }

 private:
  sigset_t set_, before_;
};

int Run(ServeArguments arguments) {
  serve::SetUpHeap();
  cli::HoldReserve();
  const Signals signals;
  serve::ApiOptions api_options;
  api_options.keys = ReadKeys(arguments.api_key_file);
  api_options.cors = arguments.cors;
  api_options.is_local = IsLoopback(arguments.host);
  Model model = OpenModel(arguments.model);
  serve::Metrics metrics;
  std::unique_ptr<TextModel> text;
  if (TakeRoles(model, &arguments)) {
    text = std::make_unique<TextModel>(std::move(model), arguments, &metrics);
  }
  serve::HttpOptions http;
  http.n_connections = arguments.connections;
  if (arguments.max_body.empty()) {
    const bool has_images = text && text->images != nullptr;
    arguments.max_body = arguments.transcriber.empty() && !has_images ? "1M" : kMediaBody;
  }
  http.max_body_bytes = ParseBytes(arguments.max_body, "--max-body");
  serve::ServedModels* const models = &api_options.limits.models;
  models->base = arguments.name.empty()
                     ? std::filesystem::path(arguments.model.bundle).stem().string()
                     : arguments.name;
  for (size_t i = 0; text && i < text->adapters.size(); ++i) {
    models->adapters.push_back({text->adapters.name(i), text->adapters.scale(i)});
  }
  models->Check();
  api_options.limits.n_sequences = arguments.session.sequences;
  api_options.limits.max_tokens = arguments.max_tokens;
  api_options.limits.time = std::chrono::seconds(arguments.time_limit);

  OtherModel embedder(arguments, arguments.embedder, models->base, "--embedder");
  OtherModel reranker(arguments, arguments.reranker, models->base, "--reranker");
  SpeechModel speech(arguments, models->base);
  api_options.embedder = embedder.scorer();
  api_options.reranker = reranker.scorer();
  api_options.transcriber = speech.transcriber();

  std::optional<serve::TextServices> services;
  if (text) services.emplace(serve::TextServices{text->prompter, text->scheduler});
  serve::Api api(services, &metrics, api_options);
  serve::HttpServer server(
      http,
      [&api](const serve::HttpRequest& request, serve::HttpReply* reply) {
        cli::HoldReserve();
        return api.Gate(request, reply);
      },
      serve::Api::ErrorBody);
  api.AddTo(&server);
  if (text && !text->scheduler.state_problem().empty()) {
    std::fprintf(stderr, "arenite: warning: conversations begin from scratch: %s\n",
                 text->scheduler.state_problem().c_str());
  }
  Print(MemoryText(text.get(), http, speech.bytes() != 0,
                   embedder.bytes() + reranker.bytes() + speech.bytes() +
                       (text && text->images != nullptr ? text->images->bytes() : 0)));
  const int port = server.Bind(arguments.host, static_cast<int>(arguments.port));
  if (port == 0) {
    throw Error(Format("cannot listen on %s, port %u: is another server there?",
                       arguments.host.c_str(), arguments.port));
  }
  const bool is_v6 = arguments.host.find(':') != std::string::npos;
  Print(Format("listening on http://%s%s%s:%d\n", is_v6 ? "[" : "", arguments.host.c_str(),
               is_v6 ? "]" : "", port));
  if (!api_options.is_local && api_options.keys.empty()) {
    std::fprintf(stderr,
                 "arenite: warning: everyone who reaches this machine can use the model: see "
                 "--api-key-file\n");
  }
  std::string problem;
  std::thread listener([&] {
    problem = server.Listen();
    if (!problem.empty()) kill(getpid(), SIGTERM);
  });
  signals.Wait();
  if (text) text->scheduler.Stop();
  if (speech.transcriber() != nullptr) speech.transcriber()->Stop();
  server.Stop();
  listener.join();
  if (!problem.empty()) throw Error("the server has ended: " + problem);
  Print("ended\n");
  return 0;
}

}  // namespace

Command AddServe(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("serve", "Answers HTTP requests in the form of OpenAI's API");
  const auto arguments = std::make_shared<ServeArguments>();
  arguments->session.sequences = 4;
  arguments->session.state_snapshots = 8;
  AddModelOptions(sub, &arguments->model);
  sub->add_option("--host", arguments->host,
                  "Address to listen on; 0.0.0.0 is every one of this machine")
      ->capture_default_str();
  sub->add_option("--port", arguments->port, "Port; 0: a free one, which is printed")
      ->check(CLI::Range(0u, 65535u))
      ->capture_default_str();
  sub->add_option("--name", arguments->name, "Name of the model in the API [the bundle's file]");
  AddAdapterOption(sub, &arguments->adapters,
                   "each is a model of its own, by the name of its file");
  sub->add_option("--api-key-file", arguments->api_key_file,
                  "File with keys, one a line; requests then need one of them");
  sub->add_option("--cors", arguments->cors,
                  "Origin of web pages that may use the API, such as https://example.org; *: all");
  sub->add_option("--queue", arguments->queue,
                  "Requests that may wait for a sequence; more are refused (429)")
      ->check(CLI::Range(1u, 65536u))
      ->capture_default_str();
  sub->add_option("--connections", arguments->connections,
                  "Connections that are answered at a time; more wait")
      ->check(CLI::Range(1u, 4096u))
      ->capture_default_str();
  sub->add_option(
      "--max-body", arguments->max_body,
      Format("Longest body of a request; more is 413 [1M; %s with a transcriber or images]",
             kMediaBody));
  sub->add_option("--max-tokens", arguments->max_tokens,
                  "Tokens of a reply whose request sets no limit (0: what the context holds)")
      ->capture_default_str();
  sub->add_option("--time-limit", arguments->time_limit, "Seconds that a request may take")
      ->check(CLI::Range(1u, 86400u))
      ->capture_default_str();
  CLI::Option* state = sub->add_option(
      "--state-folder", arguments->state_folder,
      "Keeps what was computed of conversations in a file there, and goes on from it");
  sub->add_option("--save-after", arguments->save_after,
                  "Seconds without work after which --state-folder's file is written; at the end, "
                  "too")
      ->check(CLI::Range(1u, 86400u))
      ->capture_default_str()
      ->needs(state);
  sub->add_option(
      "--embedder", arguments->embedder,
      "Bundle whose model makes the vectors of /v1/embeddings [the server's, if it can]");
  sub->add_option("--reranker", arguments->reranker,
                  "Bundle whose model makes the scores of /v1/rerank [the server's, if it can]");
  sub->add_option(
      "--transcriber", arguments->transcriber,
      "Bundle whose model writes the speech of /v1/audio down [the server's, if it can]");
  AddSessionOptions(sub, &arguments->session, "the model's, at most 4096");
  AddPoolOptions(sub, &arguments->session);
  AddSnapshotOptions(sub, &arguments->session);
  sub->add_option("--speculate", arguments->session.speculate,
                  "Where guesses of the next tokens come from, in rows that a step has left over: "
                  "none, or ngram (each reply's text so far)")
      ->check(CLI::IsMember({"none", "ngram"}))
      ->capture_default_str();
  sub->add_option("--constraint-memory", arguments->constraint_memory,
                  "Bytes for each sequence's compiled constraint; they are committed as they are "
                  "used")
      ->capture_default_str();
  sub->footer(
      "Prints all memory that it will use, then listens. http://HOST:PORT/ is a page to chat "
      "with.\n\nExamples:\n"
      "  arenite serve model.arn\n"
      "  arenite serve model.arn --sequences 8 --kv-tokens 16384 --host 0.0.0.0 "
      "--api-key-file keys.txt");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool

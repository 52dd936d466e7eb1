// arenite serve: the library behind HTTP.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "CLI/CLI.hpp"
#include "tools/arenite/commands.h"
#include "tools/arenite/io.h"
#include "tools/cli/program.h"
#include "tools/serve/api.h"
#include "tools/serve/heap.h"
#include "tools/serve/memory_text.h"
#include "tools/serve/serve_models.h"
#include "tools/serve/serve_options.h"

namespace arn::tool {
namespace {

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
  if (!arguments.certificate.empty() && !serve::kHasTls) {
    throw Error(
        "--tls-certificate: this program is built without TLS (ARENITE_SERVE_TLS): put a proxy in "
        "front");
  }
  Model model = OpenModel(arguments.model);
  serve::Metrics metrics;
  std::unique_ptr<TextModel> text;
  if (TakeRoles(model, &arguments)) {
    text = std::make_unique<TextModel>(std::move(model), arguments, &metrics);
  }
  serve::HttpOptions http;
  http.n_connections = arguments.connections;
  http.certificate = arguments.certificate;
  http.key = arguments.key;
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
  if (text && text->images != nullptr && !text->images->refused().empty()) {
    std::fprintf(stderr, "images are encoded on the CPU: %s\n", text->images->refused().c_str());
  }
  serve::CommitHeap(http.n_connections * serve::HttpOptions::kConnectionBytes);
  Print(MemoryText(text.get(), http, speech.bytes() != 0,
                   embedder.bytes() + reranker.bytes() + speech.bytes() +
                       (text && text->images != nullptr ? text->images->bytes() : 0)));
  const int port = server.Bind(arguments.host, static_cast<int>(arguments.port));
  if (port == 0) {
    throw Error(Format("cannot listen on %s, port %u: is another server there?",
                       arguments.host.c_str(), arguments.port));
  }
  const bool is_v6 = arguments.host.find(':') != std::string::npos;
  Print(Format("listening on %s://%s%s%s:%d\n", arguments.certificate.empty() ? "http" : "https",
               is_v6 ? "[" : "", arguments.host.c_str(), is_v6 ? "]" : "", port));
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
  AddServeOptions(sub, arguments.get());
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool

#include "tools/serve/api.h"

#include <algorithm>
#include <ctime>

#include "tools/arenite/error.h"
#include "tools/cli/format.h"
#include "tools/serve/heap.h"
#include "tools/serve/pages.h"
#include "tools/serve/speech_answer.h"

namespace arn::serve {
namespace {

constexpr std::chrono::milliseconds kPatience{100};
constexpr size_t kLargeBody = 64 * 1024;  // its values take a multiple of it

HttpReply JsonReply(const Json& value) {
  HttpReply reply;
  reply.body = Dump(value);
  return reply;
}

HttpReply ErrorReply(const ApiError& error) {
  HttpReply reply;
  reply.status = error.status();
  reply.body = error.Json();
  if (error.status() == 429) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

// Tells the mailbox's writer that nobody reads any more, whatever ends this scope.
class Closing {
 public:
  explicit Closing(Mailbox* mailbox) : mailbox_(mailbox) {}
  ~Closing() {
    if (mailbox_ != nullptr) mailbox_->Close();
  }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  void Release() { mailbox_ = nullptr; }

 private:
  Mailbox* mailbox_;
};

ApiError NoModelFor(const std::string& what, const std::string& option) {
  return {501, "invalid_request_error",
          "this server has no model that " + what + ": arenite serve " + option + " FILE adds one",
          "model", "unsupported_endpoint"};
}

ApiError NoSpeech() { return NoModelFor("writes speech down", "--transcriber"); }

HttpReply PageReply(std::string_view page) {
  HttpReply reply;
  reply.type = "text/html; charset=utf-8";
  reply.body = page;
  // The page runs what it contains, talks to its own server only, and cannot be framed. It plays
  // the sound that it was given.
  reply.headers = {{"Content-Security-Policy",
                    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                    "connect-src 'self'; img-src 'self' data:; media-src blob:; base-uri 'none'; "
                    "form-action 'none'; frame-ancestors 'none'"},
                   {"X-Content-Type-Options", "nosniff"},
                   {"Referrer-Policy", "no-referrer"}};
  return reply;
}

Json OtherModelJson(const std::string& name) {
  return {{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "arenite"}};
}

ApiError Gone() { return {499, "server_error", "the client has gone"}; }

}  // namespace

Api::Api(std::optional<TextServices> text, Metrics* metrics, ApiOptions options)
    : text_(text), metrics_(*metrics), options_(std::move(options)) {
  if (text_) reader_.emplace(text_->prompter, options_.limits);
}

const TextServices& Api::Text() const {
  if (text_) return *text_;
  throw ApiError(501, "invalid_request_error", "this server has no model that makes text", "model",
                 "unsupported_endpoint");
}

HttpReply Api::Guard(const std::function<HttpReply()>& make) {
  HttpReply reply;
  try {
    reply = make();
  } catch (const ApiError& error) {
    reply = ErrorReply(error);
  } catch (const tool::Error& error) {  // a text that the tokenizer refuses
    reply = ErrorReply({400, "invalid_request_error", error.what()});
  } catch (const std::bad_alloc&) {
    reply = ErrorReply(Unavailable("out of memory", "out_of_memory"));
  } catch (const std::exception& error) {
    reply = ErrorReply({500, "server_error", error.what()});
  }
  ++metrics_.requests;
  if (reply.status >= 500 && reply.status != 501) ++metrics_.failed;
  return reply;
}

HttpReply Api::Reply(const HttpRequest& request, Kind kind) {
  const Prompter& prompter = Text().prompter;
  const auto mailbox = std::make_shared<Mailbox>();
  std::shared_ptr<Answer> answer;
  ReplyRequest read = Read(request.body, kind);
  const uint32_t n = read.parts[0].n;
  const auto n_choices = static_cast<uint32_t>(read.parts.size()) * n;
  const std::string name = read.model_name;
  answer = kind == Kind::kChat ? MakeChatAnswer(prompter, name, n_choices)
           : kind == Kind::kCompletion
               ? MakeCompletionAnswer(prompter, name, n_choices, n, std::move(read.echoes))
               : MakeResponseAnswer(prompter, name, std::move(read.response_fields));
  for (Work& work : read.parts) work.mailbox = mailbox;
  const bool streams = read.streams, includes_usage = read.includes_usage;
  Closing closing(mailbox.get());
  Text().scheduler.Submit(std::move(read.parts));
  if (!streams) return Collect(request, mailbox, answer);
  WaitForStart(request, mailbox.get());
  closing.Release();
  return Stream(mailbox, answer, includes_usage);
}

ReplyRequest Api::Read(const std::string& body, Kind kind) {
  ChatSource source;
  {
    const std::lock_guard<std::mutex> lock(reading_);
    if (kind == Kind::kCompletion) return reader().ReadCompletion(body);
    source = kind == Kind::kChat ? reader().ReadChat(body) : reader().ReadResponse(body);
  }
  tool::ImageList images = Encode(source);
  const std::lock_guard<std::mutex> lock(reading_);
  return reader().Finish(std::move(source), std::move(images));
}

tool::ImageList Api::Encode(const ChatSource& source) {
  if (source.images.empty()) return {};
  const std::lock_guard<std::mutex> lock(encoding_);
  return reader().Encode(source);
}

void Api::WaitForStart(const HttpRequest& request, Mailbox* mailbox) {
  for (;;) {
    if (const auto event = mailbox->Take(kPatience)) {
      if (event->kind == Event::Kind::kError) throw ApiError(*event->error);
      return;  // the first event of a work is its start
    }
    if (request.is_gone()) throw Gone();
  }
}

HttpReply Api::Collect(const HttpRequest& request, std::shared_ptr<Mailbox> mailbox,
                       std::shared_ptr<Answer> answer) {
  while (!answer->IsComplete()) {
    const auto event = mailbox->Take(kPatience);
    if (!event) {
      if (request.is_gone()) throw Gone();
      continue;
    }
    if (event->kind == Event::Kind::kError) throw ApiError(*event->error);
    if (event->kind == Event::Kind::kFinish) answer->Count(*event);
    answer->Add(*event);
  }
  HttpReply reply;
  reply.body = answer->Whole();
  return reply;
}

HttpReply Api::Stream(std::shared_ptr<Mailbox> mailbox, std::shared_ptr<Answer> answer,
                      bool includes_usage) {
  HttpReply reply;
  reply.type = "text/event-stream";
  reply.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  const auto has_begun = std::make_shared<bool>(false);
  reply.stream = [mailbox, answer, includes_usage, has_begun](std::string* out) {
    if (!*has_begun) {
      *has_begun = true;
      for (const std::string& chunk : answer->FirstChunks()) *out += chunk;
      if (!out->empty()) return true;
    }
    const auto event = mailbox->Take(kPatience);
    if (!event) return true;
    if (event->kind == Event::Kind::kError) {
      *out += answer->ErrorChunk(*event->error);
      return false;
    }
    if (event->kind == Event::Kind::kFinish) answer->Count(*event);
    for (const std::string& chunk : answer->Chunks(*event)) *out += chunk;
    if (!answer->IsComplete()) return true;
    for (const std::string& chunk : answer->LastChunks(includes_usage)) *out += chunk;
    return false;
  };
  reply.on_end = [mailbox] { mailbox->Close(); };
  return reply;
}

Json Api::ModelJson() const {
  const Prompter& prompter = Text().prompter;
  const arn_model_info& info = prompter.model().info();
  return {{"id", options_.limits.models.base},
          {"object", "model"},
          {"created", 0},
          {"owned_by", "arenite"},
          {"meta",
           {{"architecture", info.architecture},
            {"n_params", info.n_parameters},
            {"n_vocab", info.vocab},
            {"n_ctx", Text().scheduler.plan().context_tokens},
            {"n_ctx_train", info.max_context},
            {"size", info.file_bytes},
            {"has_chat_template", prompter.has_template()},
            {"has_reasoning", prompter.has_reasoning()},
            {"takes_images", prompter.takes_images()}}}};
}

Json Api::AdapterJson(uint32_t index) const {
  const ServedModels& models = options_.limits.models;
  return {{"id", models.adapters[index].name},
          {"object", "model"},
          {"created", 0},
          {"owned_by", "arenite"},
          {"parent", models.base},
          {"meta", {{"lora", index}, {"scale", models.adapters[index].scale}}}};
}

std::vector<std::string> Api::OtherNames() const {
  std::vector<std::string> names;
  for (const TextScorer* scorer : {options_.embedder, options_.reranker}) {
    if (scorer != nullptr) names.push_back(scorer->name());
  }
  if (options_.transcriber != nullptr) names.push_back(options_.transcriber->name());
  return names;
}

HttpReply Api::Models() const {
  Json models = Json::array();
  if (text_) models.push_back(ModelJson());
  for (uint32_t i = 0; i < options_.limits.models.adapters.size(); ++i) {
    models.push_back(AdapterJson(i));
  }
  for (const std::string& name : OtherNames()) {
    const auto is_listed = [&](const Json& model) { return model["id"] == name; };
    if (std::none_of(models.begin(), models.end(), is_listed)) {
      models.push_back(OtherModelJson(name));
    }
  }
  return JsonReply({{"object", "list"}, {"data", std::move(models)}});
}

HttpReply Api::ModelNamed(const std::string& name) const {
  const bool is_base = text_ && name == options_.limits.models.base;
  for (const std::string& other : OtherNames()) {
    if (!is_base && other == name) return JsonReply(OtherModelJson(name));
  }
  if (!text_) {
    throw ApiError(404, "invalid_request_error", "there is no model \"" + name + "\"", "model",
                   "model_not_found");
  }
  const uint32_t index = options_.limits.models.Find(name);
  return JsonReply(is_base ? ModelJson() : AdapterJson(index));
}

HttpReply Api::Tokenize(const HttpRequest& request) {
  const Prompter& prompter = Text().prompter;
  const std::lock_guard<std::mutex> lock(reading_);
  const Json body = ParseBody(request.body);
  Fields fields(body, "");
  const std::string text = fields.NeedText("content");
  const bool adds = fields.Bool("add_special").value_or(false);
  const bool parses = fields.Bool("parse_special").value_or(true);
  const bool with_pieces = fields.Bool("with_pieces").value_or(false);
  fields.End();
  uint32_t flags = adds ? ARN_TOKENIZE_DEFAULT : ARN_TOKENIZE_NO_SPECIAL;
  if (!parses) flags |= ARN_TOKENIZE_PLAIN;
  Json tokens = Json::array();
  for (const int32_t id : prompter.model().Tokenize(text, flags)) {
    if (with_pieces) {
      tokens.push_back({{"id", id}, {"piece", prompter.TextOf(id)}});
    } else {
      tokens.push_back(id);
    }
  }
  return JsonReply({{"tokens", std::move(tokens)}});
}

HttpReply Api::Detokenize(const HttpRequest& request) {
  const Prompter& prompter = Text().prompter;
  const std::lock_guard<std::mutex> lock(reading_);
  const Json body = ParseBody(request.body);
  Fields fields(body, "");
  const Json& tokens = fields.Need("tokens");
  fields.End();
  if (!tokens.is_array()) throw BadField("tokens", "is " + KindOf(tokens) + ", expected an array");
  std::vector<int32_t> ids;
  const uint32_t vocab = prompter.model().info().vocab;
  for (const Json& id : tokens) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocab) {
      throw BadField("tokens",
                     "has " + Dump(id) + cli::Format(", expected token ids below %u", vocab));
    }
    ids.push_back(id.get<int32_t>());
  }
  return JsonReply({{"content", prompter.model().Detokenize(ids, ARN_DETOKENIZE_DEFAULT)}});
}

HttpReply Api::ApplyTemplate(const HttpRequest& request) {
  ChatSource source;
  {
    const std::lock_guard<std::mutex> lock(reading_);
    source = reader().ReadTemplate(request.body);
  }
  tool::ImageList images = Encode(source);
  const std::lock_guard<std::mutex> lock(reading_);
  return JsonReply({{"prompt", reader().Render(source, std::move(images)).text}});
}

Json Api::ParseLocked(const std::string& body) {
  const std::lock_guard<std::mutex> lock(reading_);
  return ParseBody(body);
}

HttpReply Api::Embed(const HttpRequest& request) {
  if (options_.embedder == nullptr) throw NoModelFor("makes embeddings", "--embedder");
  return JsonReply(options_.embedder->Embed(ParseLocked(request.body)));
}

HttpReply Api::Rerank(const HttpRequest& request) {
  if (options_.reranker == nullptr) throw NoModelFor("makes scores", "--reranker");
  return JsonReply(options_.reranker->Rerank(ParseLocked(request.body)));
}

HttpReply Api::Transcribe(const HttpRequest& request, bool translates) {
  if (options_.transcriber == nullptr) throw NoSpeech();
  return AnswerSpeech(request, translates, options_.transcriber);
}

Json Api::TranscriberJson() const {
  const Transcriber* const transcriber = options_.transcriber;
  if (transcriber == nullptr) return nullptr;
  return {{"id", transcriber->name()},
          {"languages", transcriber->languages()},
          {"can_translate", transcriber->can_translate()},
          {"has_timestamps", transcriber->has_timestamps()},
          {"has_word_times", transcriber->has_word_times()},
          {"bytes", transcriber->bytes()}};
}

HttpReply Api::Status() const {
  if (!text_) {
    return JsonReply({{"model", nullptr},
                      {"transcriber", TranscriberJson()},
                      {"memory", {{"resident", ResidentBytes()}}}});
  }
  const SchedulerStatus status = text_->scheduler.Status();
  const arn_memory_plan& plan = status.plan;
  Json sequences = Json::array();
  for (const SequenceUse& use : status.sequences) {
    sequences.push_back({{"tokens", use.n_tokens}, {"busy", use.is_busy}});
  }
  Json adapters = Json::array();
  for (const ServedAdapter& adapter : options_.limits.models.adapters) {
    adapters.push_back(adapter.name);
  }
  return JsonReply(
      {{"model", ModelJson()},
       {"transcriber", TranscriberJson()},
       {"adapters", std::move(adapters)},
       {"memory",
        {{"weights", plan.weights_bytes},
         {"constants", plan.constants_bytes},
         {"kv", plan.kv_bytes},
         {"kv_used", status.kv_used_bytes},
         {"activations", plan.activations_bytes},
         {"io", plan.io_bytes},
         {"total", plan.total_bytes},
         {"resident", ResidentBytes()}}},
       {"context", plan.context_tokens},
       {"kv_tokens", plan.kv_tokens},
       {"page_tokens", plan.kv_page_tokens},
       {"sequences", std::move(sequences)},
       {"kept",
        {{"conversations", metrics_.states_kept.load()}, {"bytes", metrics_.states_bytes.load()}}},
       {"queue", {{"waiting", status.n_waiting}, {"capacity", status.queue_capacity}}},
       {"tokens",
        {{"prompt", metrics_.prompt_tokens.load()},
         {"cached", metrics_.cached_tokens.load()},
         {"reply", metrics_.reply_tokens.load()}}}});
}

void Api::AddTo(HttpServer* server) {
  const auto get = [&](const char* path, std::function<HttpReply(const HttpRequest&)> make) {
    server->Add("GET", path, [this, make](const HttpRequest& request) {
      return Guard([&] { return make(request); });
    });
  };
  const auto post = [&](const char* path, std::function<HttpReply(const HttpRequest&)> make) {
    server->Add("POST", path, [this, make](const HttpRequest& request) {
      HttpReply reply = Guard([&] { return make(request); });
      if (request.body.size() >= kLargeBody) TrimHeap();
      return reply;
    });
  };
  get("/", [this](const HttpRequest&) {
    if (!text_ && options_.transcriber != nullptr) return PageReply(SpeechPage());
    Text();  // the page writes to a model
    return PageReply(ChatPage());
  });
  get("/speech", [this](const HttpRequest&) {
    if (options_.transcriber == nullptr) throw NoSpeech();
    return PageReply(SpeechPage());
  });
  get("/health", [](const HttpRequest&) { return JsonReply({{"status", "ok"}}); });
  get("/metrics", [this](const HttpRequest&) {
    HttpReply reply;
    reply.type = "text/plain; version=0.0.4; charset=utf-8";
    reply.body = MetricsText(metrics_, text_ ? text_->scheduler.Status() : SchedulerStatus());
    return reply;
  });
  get("/v1/models", [this](const HttpRequest&) { return Models(); });
  get("/v1/models/:model", [this](const HttpRequest& r) { return ModelNamed(r.parameter); });
  get("/v1/status", [this](const HttpRequest&) { return Status(); });
  post("/v1/chat/completions", [this](const HttpRequest& r) { return Reply(r, Kind::kChat); });
  post("/v1/completions", [this](const HttpRequest& r) { return Reply(r, Kind::kCompletion); });
  post("/v1/responses", [this](const HttpRequest& r) { return Reply(r, Kind::kResponse); });
  post("/v1/embeddings", [this](const HttpRequest& r) { return Embed(r); });
  post("/v1/rerank", [this](const HttpRequest& r) { return Rerank(r); });
  post("/v1/audio/transcriptions",
       [this](const HttpRequest& r) { return Transcribe(r, /*translates=*/false); });
  post("/v1/audio/translations",
       [this](const HttpRequest& r) { return Transcribe(r, /*translates=*/true); });
  post("/tokenize", [this](const HttpRequest& r) { return Tokenize(r); });
  post("/detokenize", [this](const HttpRequest& r) { return Detokenize(r); });
  post("/apply-template", [this](const HttpRequest& r) { return ApplyTemplate(r); });
}

}  // namespace arn::serve

// Api: the endpoints.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tools/serve/answer.h"
#include "tools/serve/http_server.h"
#include "tools/serve/metrics.h"
#include "tools/serve/request_reader.h"
#include "tools/serve/scheduler.h"
#include "tools/serve/text_scorer.h"
#include "tools/serve/transcriber.h"

namespace arn::serve {

struct ApiOptions {
  RequestLimits limits;
  std::vector<std::string> keys;  // any of them; empty: none is needed
  std::string cors;               // origin of pages that may use the API; "": of its own only
  bool is_local = true;           // listens on this machine only
  // Models of vectors and of scores, which must outlive the API; null: there is none.
  TextScorer* embedder = nullptr;
  TextScorer* reranker = nullptr;
  Transcriber* transcriber = nullptr;  // model that writes speech down, likewise
};

// TextServices: the prompter and the scheduler of the model that makes text.
struct TextServices {
  const Prompter& prompter;
  Scheduler& scheduler;
};

class Api {
 public:
  // All must outlive the API. Without `text` requests for text are refused (501).
  Api(std::optional<TextServices> text, Metrics* metrics, ApiOptions options);

  // Adds the endpoints to a server.
  void AddTo(HttpServer* server);
  // Answers what needs no body: a missing key, a page of another origin, OPTIONS.
  bool Gate(const HttpRequest& request, HttpReply* reply) const;
  static std::string ErrorBody(int status, const std::string& path);

 private:
  HttpReply Guard(const std::function<HttpReply()>& make);
  enum class Kind : uint8_t { kChat, kCompletion, kResponse };
  HttpReply Reply(const HttpRequest& request, Kind kind);
  ReplyRequest Read(const std::string& body, Kind kind);
  // Encodes the images of a request, one request at a time.
  tool::ImageList Encode(const ChatSource& source);
  HttpReply Collect(const HttpRequest& request, std::shared_ptr<Mailbox> mailbox,
                    std::shared_ptr<Answer> answer);
  HttpReply Stream(std::shared_ptr<Mailbox> mailbox, std::shared_ptr<Answer> answer,
                   bool includes_usage);
  // Waits until the first part has begun, so that errors get a status of their own.
  void WaitForStart(const HttpRequest& request, Mailbox* mailbox);
  HttpReply Models() const;
  HttpReply ModelNamed(const std::string& name) const;
  HttpReply Tokenize(const HttpRequest& request);
  HttpReply Detokenize(const HttpRequest& request);
  HttpReply ApplyTemplate(const HttpRequest& request);
  HttpReply Embed(const HttpRequest& request);
  HttpReply Rerank(const HttpRequest& request);
  HttpReply Transcribe(const HttpRequest& request, bool translates);
  Json ParseLocked(const std::string& body);
  HttpReply Status() const;
  Json TranscriberJson() const;  // null: there is none
  // Throws ApiError if there is no model that makes text.
  const TextServices& Text() const;
  const RequestReader& reader() const { return Text(), *reader_; }
  Json ModelJson() const;
  Json AdapterJson(uint32_t index) const;
  // Returns the names of the models that make no text.
  std::vector<std::string> OtherNames() const;
  bool HasKey(const HttpRequest& request) const;

  const std::optional<TextServices> text_;
  Metrics& metrics_;
  const ApiOptions options_;
  std::optional<RequestReader> reader_;  // where there is text_
  // Parsing, templates and the tokenizer take memory by the length of a body: one body at a time.
  std::mutex reading_;
  std::mutex encoding_;  // images, beside what is read
};

}  // namespace arn::serve

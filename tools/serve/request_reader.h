// RequestReader: the bodies of /v1/chat/completions, /v1/completions and /v1/responses, checked, as
// work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/serve/json_fields.h"
#include "tools/serve/prompter.h"
#include "tools/serve/work.h"

namespace arn::serve {

struct RequestLimits {
  ServedModels models;
  uint32_t n_sequences = 1;
  uint32_t max_tokens = 0;  // of a reply that says nothing itself; 0: none
  std::chrono::seconds time{600};
};

struct ReplyRequest {
  std::string model_name;  // as the answer repeats it
  std::shared_ptr<const Settings> settings;
  std::vector<Work> parts;
  std::vector<std::string> echoes;  // the prompt of each part, if it is to be repeated
  Json response_fields;             // of the request, which a response repeats
  bool streams = false;
  bool includes_usage = false;
};

// ChatSource: what a chat request has, checked, without its body: what its prompt is made of.
struct ChatSource {
  ReplyRequest request;                    // without parts
  std::string messages, tools, variables;  // JSON; "": none
  std::vector<ImageSource> images;
  uint32_t n = 1;
  // Returns what the client calls a field of a chat request, for errors.
  std::string (*name_of)(const std::string& field) = nullptr;
};

class RequestReader {
 public:
  // `prompter` must outlive it.
  RequestReader(const Prompter& prompter, RequestLimits limits)
      : prompter_(prompter), limits_(std::move(limits)) {}

  // All throw ApiError. A chat is read, then its images are encoded, which takes long and may run
  // beside all other calls, then it is rendered.
  ChatSource ReadChat(const std::string& body) const;
  ChatSource ReadResponse(const std::string& body) const;
  // Reads what /apply-template renders: messages, tools and variables only.
  ChatSource ReadTemplate(const std::string& body) const;
  tool::ImageList Encode(const ChatSource& source) const;
  Prompt Render(const ChatSource& source, tool::ImageList images) const;
  ReplyRequest Finish(ChatSource source, tool::ImageList images) const;
  ReplyRequest ReadCompletion(const std::string& body) const;

 private:
  ChatSource ReadChatFields(const Json& json,
                            std::string (*name_of)(const std::string& field)) const;
  // Reads what both kinds of request have.
  void ReadCommon(Fields* fields, Settings* settings, ReplyRequest* request, uint32_t* n) const;
  void ReadReasoning(Fields* fields, Settings* settings, Json* variables) const;
  // Reads messages, tools and variables.
  void ReadPrompt(Fields* fields, Settings* settings, ChatSource* source) const;
  void AddPart(const Prompt& prompt, const std::string& param, uint32_t n,
               ReplyRequest* request) const;

  const Prompter& prompter_;
  const RequestLimits limits_;
};

}  // namespace arn::serve

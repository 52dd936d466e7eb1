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

class RequestReader {
 public:
  // `prompter` must outlive it.
  RequestReader(const Prompter& prompter, RequestLimits limits)
      : prompter_(prompter), limits_(std::move(limits)) {}

  // All throw ApiError.
  ReplyRequest ReadChat(const std::string& body) const;
  ReplyRequest ReadCompletion(const std::string& body) const;
  ReplyRequest ReadResponse(const std::string& body) const;
  // The text that the chat template makes of a chat request.
  std::string ApplyTemplate(const std::string& body) const;

 private:
  // `name_of`: what the client calls a field of a chat request, for errors.
  ReplyRequest ReadChatFields(const Json& json,
                              std::string (*name_of)(const std::string& field)) const;
  // Reads what both kinds of request have.
  void ReadCommon(Fields* fields, Settings* settings, ReplyRequest* request, uint32_t* n) const;
  void ReadReasoning(Fields* fields, Settings* settings, Json* variables) const;
  // Reads messages, tools and variables, and renders them.
  Prompt ReadPrompt(Fields* fields, Settings* settings) const;
  void AddPart(const Prompt& prompt, const std::string& param, uint32_t n,
               ReplyRequest* request) const;

  const Prompter& prompter_;
  const RequestLimits limits_;
};

}  // namespace arn::serve

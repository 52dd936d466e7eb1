// The answer of /v1/chat/completions.
#include <algorithm>

#include "tools/serve/answer.h"

namespace arn::serve {
namespace {

class ChatAnswer : public Answer {
 public:
  ChatAnswer(const Prompter& prompter, const std::string& model_name, uint32_t n_choices)
      : Answer(prompter, model_name, "chatcmpl-", "chat.completion", "chat.completion.chunk",
               n_choices, n_choices),
        choices_(n_choices) {}

  void Add(const Event& event) override;
  std::vector<std::string> Chunks(const Event& event) override;
  std::vector<std::string> FirstChunks() override;

 protected:
  Json Choices() const override;

 private:
  struct Call {
    std::string id, name, arguments;
    bool is_shown = false;  // its first chunk, with its id, was sent
  };
  struct Choice {
    std::string text, reasoning;
    std::vector<Call> calls;
    Json logprobs = Json::array();
    bool has_logprobs = false;
    std::string finish;
  };

  static std::string FinishOf(const Event& event, const Choice& choice);
  static Json CallJson(const Call& call);
  std::string DeltaChunk(uint32_t index, Json delta) const;
  std::vector<std::string> CallChunks(const Event& event, Choice* choice);

  std::vector<Choice> choices_;
};

std::string ChatAnswer::FinishOf(const Event& event, const Choice& choice) {
  if (event.finish == ARN_FINISH_LENGTH || event.finish == ARN_FINISH_CONTEXT) return "length";
  return choice.calls.empty() ? "stop" : "tool_calls";
}

Json ChatAnswer::CallJson(const Call& call) {
  return {{"id", call.id},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

void ChatAnswer::Add(const Event& event) {
  Choice& choice = choices_[event.choice];
  switch (event.kind) {
    case Event::Kind::kText: choice.text += event.text; break;
    case Event::Kind::kReasoning: choice.reasoning += event.text; break;
    case Event::Kind::kCallBegin: choice.calls.push_back({RandomName(9), event.text, ""}); break;
    case Event::Kind::kCallId: choice.calls.back().id = event.text; break;
    case Event::Kind::kCallArguments: choice.calls.back().arguments += event.text; break;
    case Event::Kind::kToken:
      choice.has_logprobs = true;
      choice.logprobs.push_back(LogprobOf(event));
      break;
    case Event::Kind::kFinish: choice.finish = FinishOf(event, choice); break;
    case Event::Kind::kCallEnd:
    case Event::Kind::kStarted:
    case Event::Kind::kError: break;
  }
}

Json ChatAnswer::Choices() const {
  Json list = Json::array();
  for (uint32_t i = 0; i < n_choices(); ++i) {
    const Choice& choice = choices_[i];
    Json message = {{"role", "assistant"}};
    const bool has_text = !choice.text.empty() || choice.calls.empty();
    message["content"] = has_text ? Json(choice.text) : Json();
    if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
    for (const Call& call : choice.calls) message["tool_calls"].push_back(CallJson(call));
    message["refusal"] = nullptr;
    Json one = {{"index", i}, {"message", std::move(message)}};
    one["logprobs"] = choice.has_logprobs ? Json{{"content", choice.logprobs}} : Json();
    one["finish_reason"] = choice.finish;
    list.push_back(std::move(one));
  }
  return list;
}

std::string ChatAnswer::DeltaChunk(uint32_t index, Json delta) const {
  return Chunk({{"index", index},
                {"delta", std::move(delta)},
                {"logprobs", nullptr},
                {"finish_reason", nullptr}});
}

std::vector<std::string> ChatAnswer::FirstChunks() {
  std::vector<std::string> chunks;
  for (uint32_t i = 0; i < n_choices(); ++i) {
    chunks.push_back(DeltaChunk(i, {{"role", "assistant"}, {"content", ""}}));
  }
  return chunks;
}

// The id that a model writes behind a call's name comes before its first chunk; one that comes
// behind the arguments is too late, and the call has the id that it got here.
std::vector<std::string> ChatAnswer::CallChunks(const Event& event, Choice* choice) {
  std::vector<std::string> chunks;
  if (event.kind == Event::Kind::kCallBegin) {
    choice->calls.push_back({RandomName(9), event.text, ""});
    return chunks;
  }
  const size_t index = choice->calls.size() - 1;
  Call& call = choice->calls[index];
  if (event.kind == Event::Kind::kCallId) {
    if (!call.is_shown) call.id = event.text;
    return chunks;
  }
  if (!call.is_shown) {
    call.is_shown = true;
    Json first = CallJson(call);
    first["index"] = index;
    chunks.push_back(DeltaChunk(event.choice, {{"tool_calls", Json::array({std::move(first)})}}));
  }
  if (event.kind == Event::Kind::kCallArguments) {
    Json more = {{"index", index}, {"function", {{"arguments", event.text}}}};
    chunks.push_back(DeltaChunk(event.choice, {{"tool_calls", Json::array({std::move(more)})}}));
  }
  return chunks;
}

std::vector<std::string> ChatAnswer::Chunks(const Event& event) {
  Choice& choice = choices_[event.choice];
  switch (event.kind) {
    case Event::Kind::kText: return {DeltaChunk(event.choice, {{"content", event.text}})};
    case Event::Kind::kReasoning:
      return {DeltaChunk(event.choice, {{"reasoning_content", event.text}})};
    case Event::Kind::kCallBegin:
    case Event::Kind::kCallId:
    case Event::Kind::kCallArguments:
    case Event::Kind::kCallEnd: return CallChunks(event, &choice);
    case Event::Kind::kToken:
      return {Chunk({{"index", event.choice},
                     {"delta", Json::object()},
                     {"logprobs", {{"content", Json::array({LogprobOf(event)})}}},
                     {"finish_reason", nullptr}})};
    case Event::Kind::kFinish:
      return {Chunk({{"index", event.choice},
                     {"delta", Json::object()},
                     {"logprobs", nullptr},
                     {"finish_reason", FinishOf(event, choice)}})};
    case Event::Kind::kStarted:
    case Event::Kind::kError: break;
  }
  return {};
}

}  // namespace

std::unique_ptr<Answer> MakeChatAnswer(const Prompter& prompter, const std::string& model_name,
                                       uint32_t n_choices) {
  return std::make_unique<ChatAnswer>(prompter, model_name, n_choices);
}

}  // namespace arn::serve

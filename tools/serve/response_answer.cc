// The answer of /v1/responses: output items, one after another, each of reasoning, text or a call.
#include <utility>

#include "tools/serve/answer.h"

namespace arn::serve {
namespace {

class ResponseAnswer : public Answer {
 public:
  ResponseAnswer(const Prompter& prompter, const std::string& model_name, Json echo)
      : Answer(prompter, model_name, "resp_", "response", "response", 1, 1),
        echo_(std::move(echo)) {}

  void Add(const Event& event) override { Chunks(event); }
  std::vector<std::string> Chunks(const Event& event) override;
  std::vector<std::string> FirstChunks() override;
  std::vector<std::string> LastChunks(bool) const override { return {}; }
  std::string ErrorChunk(const ApiError& error) override;
  std::string Whole() const override { return Dump(Response("", true)); }

 protected:
  Json Choices() const override { return output_; }

 private:
  enum class ItemKind : uint8_t { kNone, kReasoning, kText, kCall };

  // Makes the frame of an event of the stream.
  void Send(const std::string& type, Json fields);
  // status "": that of the end.
  Json Response(const std::string& status, bool has_usage) const;
  // Opens an item of this kind, unless it is open, and closes another.
  void Open(ItemKind kind, const std::string& name);
  void Close();
  void AddText(const std::string& text);
  void AddArguments(const std::string& text);
  void ShowCall();
  Json Part() const;
  // Where an event of the stream belongs.
  Json Place(bool in_part) const;

  const Json echo_;
  Json output_ = Json::array();  // the items; the last may be open
  ItemKind open_ = ItemKind::kNone;
  std::string text_;  // of the open item: text, or the arguments of a call
  bool is_call_shown_ = false;
  Json logprobs_ = Json::array(), new_logprobs_ = Json::array();  // of the open text
  bool is_cut_ = false;                                           // at the limit of tokens
  uint64_t n_sent_ = 0;
  std::vector<std::string> frames_;
};

void ResponseAnswer::Send(const std::string& type, Json fields) {
  Json frame = {{"type", type}, {"sequence_number", n_sent_++}};
  frame.update(fields);
  frames_.push_back(Frame(frame, type));
}

Json ResponseAnswer::Response(const std::string& status, bool has_usage) const {
  const std::string end = is_cut_ ? "incomplete" : "completed";
  Json response = {{"id", id()},
                   {"object", "response"},
                   {"created_at", created()},
                   {"status", status.empty() ? end : status},
                   {"error", nullptr},
                   {"incomplete_details", nullptr},
                   {"model", model_name()},
                   {"output", output_}};
  if (status.empty() && is_cut_) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
  response.update(echo_);
  response["usage"] = nullptr;
  if (has_usage) {
    response["usage"] = {{"input_tokens", counts().n_prompt},
                         {"input_tokens_details", {{"cached_tokens", counts().n_cached}}},
                         {"output_tokens", counts().n_tokens},
                         {"output_tokens_details", {{"reasoning_tokens", counts().n_reasoning}}},
                         {"total_tokens", counts().n_prompt + counts().n_tokens}};
  }
  return response;
}

Json ResponseAnswer::Place(bool in_part) const {
  Json place = {{"item_id", output_.back()["id"]}, {"output_index", output_.size() - 1}};
  if (in_part) place["content_index"] = 0;
  return place;
}

Json ResponseAnswer::Part() const {
  if (open_ == ItemKind::kReasoning) return {{"type", "reasoning_text"}, {"text", text_}};
  return {{"type", "output_text"},
          {"text", text_},
          {"annotations", Json::array()},
          {"logprobs", logprobs_}};
}

// Events of the stream have the place of an item and more fields.
Json With(Json place, const Json& fields) {
  place.update(fields);
  return place;
}

void ResponseAnswer::Open(ItemKind kind, const std::string& name) {
  if (open_ == kind && kind != ItemKind::kCall) return;
  Close();
  open_ = kind;
  text_.clear();
  logprobs_ = Json::array();
  is_call_shown_ = false;
  if (kind == ItemKind::kCall) {
    output_.push_back({{"type", "function_call"},
                       {"id", "fc_" + RandomName(24)},
                       {"call_id", "call_" + RandomName(24)},
                       {"name", name},
                       {"arguments", ""},
                       {"status", "in_progress"}});
    return;  // shown once its id is known
  }
  if (kind == ItemKind::kReasoning) {
    output_.push_back({{"type", "reasoning"},
                       {"id", "rs_" + RandomName(24)},
                       {"summary", Json::array()},
                       {"content", Json::array()},
                       {"status", "in_progress"}});
  } else {
    output_.push_back({{"type", "message"},
                       {"id", "msg_" + RandomName(24)},
                       {"role", "assistant"},
                       {"content", Json::array()},
                       {"status", "in_progress"}});
  }
  Send("response.output_item.added",
       {{"output_index", output_.size() - 1}, {"item", output_.back()}});
  Send("response.content_part.added", With(Place(true), {{"part", Part()}}));
}

void ResponseAnswer::ShowCall() {
  if (is_call_shown_) return;
  is_call_shown_ = true;
  Send("response.output_item.added",
       {{"output_index", output_.size() - 1}, {"item", output_.back()}});
}

void ResponseAnswer::Close() {
  if (open_ == ItemKind::kNone) return;
  Json& item = output_.back();
  if (open_ == ItemKind::kCall) {
    ShowCall();
    item["arguments"] = text_;
    Send("response.function_call_arguments.done",
         With(Place(false), {{"name", item["name"]}, {"arguments", text_}}));
  } else {
    if (open_ == ItemKind::kReasoning) {
      Send("response.reasoning_text.done", With(Place(true), {{"text", text_}}));
    } else {
      Send("response.output_text.done",
           With(Place(true), {{"text", text_}, {"logprobs", logprobs_}}));
    }
    item["content"] = Json::array({Part()});
    Send("response.content_part.done", With(Place(true), {{"part", Part()}}));
  }
  item["status"] = is_cut_ ? "incomplete" : "completed";
  Send("response.output_item.done", {{"output_index", output_.size() - 1}, {"item", item}});
  open_ = ItemKind::kNone;
}

void ResponseAnswer::AddText(const std::string& text) {
  text_ += text;
  if (open_ == ItemKind::kReasoning) {
    Send("response.reasoning_text.delta", With(Place(true), {{"delta", text}}));
    return;
  }
  Send("response.output_text.delta",
       With(Place(true), {{"delta", text}, {"logprobs", new_logprobs_}}));
  for (Json& one : new_logprobs_) logprobs_.push_back(std::move(one));
  new_logprobs_ = Json::array();
}

void ResponseAnswer::AddArguments(const std::string& text) {
  ShowCall();
  text_ += text;
  Send("response.function_call_arguments.delta", With(Place(false), {{"delta", text}}));
}

std::vector<std::string> ResponseAnswer::FirstChunks() {
  Send("response.created", {{"response", Response("in_progress", false)}});
  Send("response.in_progress", {{"response", Response("in_progress", false)}});
  return std::exchange(frames_, {});
}

std::vector<std::string> ResponseAnswer::Chunks(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kText:
      Open(ItemKind::kText, "");
      AddText(event.text);
      break;
    case Event::Kind::kReasoning:
      Open(ItemKind::kReasoning, "");
      AddText(event.text);
      break;
    case Event::Kind::kCallBegin: Open(ItemKind::kCall, event.text); break;
    case Event::Kind::kCallId:
      // An id behind the arguments is too late: the call has the id that it got here.
      if (!is_call_shown_) output_.back()["call_id"] = event.text;
      break;
    case Event::Kind::kCallArguments: AddArguments(event.text); break;
    case Event::Kind::kCallEnd: Close(); break;
    case Event::Kind::kToken: new_logprobs_.push_back(LogprobOf(event)); break;
    case Event::Kind::kFinish:
      is_cut_ = event.finish == ARN_FINISH_LENGTH || event.finish == ARN_FINISH_CONTEXT;
      if (output_.empty()) Open(ItemKind::kText, "");
      Close();
      Send(is_cut_ ? "response.incomplete" : "response.completed",
           {{"response", Response("", true)}});
      break;
    case Event::Kind::kStarted:
    case Event::Kind::kError: break;
  }
  return std::exchange(frames_, {});
}

std::string ResponseAnswer::ErrorChunk(const ApiError& error) {
  frames_.clear();
  Send("error", {{"code", error.code()},
                 {"message", error.what()},
                 {"param", error.param().empty() ? Json() : Json(error.param())}});
  return frames_.back();
}

}  // namespace

std::unique_ptr<Answer> MakeResponseAnswer(const Prompter& prompter, const std::string& model_name,
                                           Json echo) {
  return std::make_unique<ResponseAnswer>(prompter, model_name, std::move(echo));
}

}  // namespace arn::serve

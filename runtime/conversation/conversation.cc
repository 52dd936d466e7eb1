#include "runtime/conversation/conversation.h"

#include <cstring>
#include <new>

#include "platform/os/pages.h"
#include "runtime/chat/chat.h"
#include "runtime/chat/json.h"
#include "runtime/chat/reply_format.h"
#include "runtime/conversation/reply_message.h"
#include "runtime/session/stop_filter.h"

namespace arn {

// Between the session's callback and the caller's.
struct Conversation::Generation {
  Conversation* conversation;
  const chat::ReplyCallback& callback;
  StopFilter filter;
  chat::ReplyParser parser;
  Tokenizer::DecodeState decode;
  bool is_stopped = false;  // by a stop string
  bool is_ended = false;    // by the caller
  bool is_full = false;     // the text does not fit the transcript

  // Takes what was written to the filter's space. Returns false if the reply ends here.
  bool Take(size_t bytes, bool is_last) {
    StringView text;
    is_stopped = filter.Add(bytes, is_last, &text);
    const std::string_view shown(text.data, text.size);
    is_full = !conversation->transcript_.AddReply(shown);
    if (is_full) return false;
    if (!is_ended && !shown.empty()) is_ended = !parser.Feed(shown, callback);
    return !is_stopped && !is_ended;
  }

  static int32_t OnToken(void* user, int32_t id, const char* /*text*/, size_t /*text_bytes*/) {
    Generation& generation = *static_cast<Generation*>(user);
    if (id < 0) return 0;
    const Tokenizer& tokenizer = *generation.conversation->model_.tokenizer;
    const size_t bytes = tokenizer.DecodeToken(&generation.decode, id, /*skip_special=*/false,
                                               generation.filter.Space());
    return generation.Take(bytes, /*is_last=*/false) ? 0 : 1;
  }

  // Sends what was held back.
  void Finish() {
    if (!is_stopped && !is_full) {
      const Tokenizer& tokenizer = *conversation->model_.tokenizer;
      Take(tokenizer.DecodeFinish(&decode, filter.Space()), /*is_last=*/true);
    }
    if (!is_ended) is_ended = !parser.Finish(callback);
  }
};

Conversation::Conversation(Session* session, const Model& model, const ConversationPlan& plan,
                           Span<std::byte> block, Span<std::byte> pages)
    : session_(*session),
      model_(model),
      plan_(plan),
      block_(block),
      pages_(pages),
      arena_(At(plan.arena)),
      format_(model.templates->reply()),
      messages_(As<char>(plan.messages), As<MessageList::Record>(plan.records)),
      transcript_(model.tokenizer,
                  {As<char>(plan.text), As<int32_t>(plan.ids), As<Transcript::Reply>(plan.replies),
                   As<char>(plan.piece), At(plan.scratch), As<TextSpan>(plan.spans)}) {}

Status Conversation::ReadInputs(const ConversationOptions& given, Diag* diag) {
  const auto copy = [this](std::string_view from, const Slice& to) {
    if (!from.empty()) std::memcpy(At(to).data(), from.data(), from.size());
    return std::string_view(As<char>(to).data(), from.size());
  };
  plan_.options.tools = copy(given.tools, plan_.tools);
  plan_.options.variables = copy(given.variables, plan_.variables);
  plan_.options.template_name = copy(given.template_name, plan_.template_name);
  if (!given.tools.empty()) {
    chat::Heap heap(At(plan_.tool_values), plan_.options.max_steps, diag);
    ARN_TRY(tools_.Read(plan_.options.tools, &heap, diag));
  }
  if (!given.variables.empty()) {
    chat::Heap heap(arena_, plan_.options.max_steps, diag);
    chat::Value value;
    ARN_TRY(chat::ReadJson(plan_.options.variables, "variables", &heap, diag, &value));
    if (value.kind != chat::Kind::kDict) {
      return diag->Fail(Status::kBadArgument, "variables: expected an object");
    }
  }
  return Status::kOk;
}

Status Conversation::Create(Session* session, const Model& model, const ConversationPlan& plan,
                            Span<std::byte> block, Span<std::byte> pages, Conversation** out,
                            Diag* diag) {
  if (plan.options.sequence >= session->sequences().size()) {
    return diag->Fail(Status::kBadArgument, "sequence is %u, the session has %u",
                      plan.options.sequence, session->sequences().size());
  }
  auto* made = new (block.data()) Conversation(session, model, plan, block, pages);
  ARN_TRY(made->ReadInputs(plan.options, diag));
  *out = made;
  return Status::kOk;
}

void Conversation::Destroy(Conversation* conversation) {
  if (conversation != nullptr) ReleasePages(conversation->pages_);
}

Status Conversation::Enter() {
  if (session_.is_in_callback()) {
    return diag_.Fail(Status::kBadState,
                      "the session is in a call; its callback may only read the conversation");
  }
  diag_.Clear();
  return Status::kOk;
}

Status Conversation::FromSession(Status status) {
  if (status == Status::kOk) return status;
  const char* const text = session_.diag()->text();
  return diag_.Fail(status, "%s", text[0] != '\0' ? text : StatusName(status));
}

bool Conversation::DropOldestTurn() {
  size_t first = 0;
  while (first < messages_.size() && messages_.role(first) == MessageRole::kSystem) ++first;
  for (size_t next = first + 1; next < messages_.size(); ++next) {
    if (messages_.role(next) != MessageRole::kUser) continue;
    messages_.Erase(first, next);
    return true;
  }
  return false;
}

template <typename Function>
Status Conversation::AddDropping(const Function& add) {
  for (;;) {
    const Status status = add();
    if (status != Status::kOutOfMemory || !plan_.options.drops_oldest || !DropOldestTurn()) {
      return status;
    }
    diag_.Clear();
  }
}

// Messages move in their buffer while others are appended.
Status Conversation::CheckIsOther(std::string_view text) {
  const std::string_view own = messages_.json();
  const auto at = [](const char* p) { return reinterpret_cast<uintptr_t>(p); };
  if (text.empty() || at(text.data()) >= at(own.data() + own.size()) ||
      at(text.data() + text.size()) <= at(own.data())) {
    return Status::kOk;
  }
  return diag_.Fail(Status::kBadArgument,
                    "the text lies in this conversation's messages: copy it first");
}

Status Conversation::Add(std::string_view role, std::string_view text) {
  ARN_TRY(CheckIsOther(role));
  ARN_TRY(CheckIsOther(text));
  return AddDropping([&] { return messages_.Add(role, text, &diag_); });
}

Status Conversation::AddJson(std::string_view json) {
  ARN_TRY(CheckIsOther(json));
  return AddDropping([&] {
    chat::Heap heap = NewHeap();
    return messages_.AddJson(json, &heap, &diag_);
  });
}

Status Conversation::AddToolResult(uint32_t call, std::string_view text) {
  ARN_TRY(CheckIsOther(text));
  size_t reply = messages_.size();
  while (reply > 0 && messages_.role(reply - 1) == MessageRole::kTool) --reply;
  if (reply == 0 || messages_.role(reply - 1) != MessageRole::kAssistant) {
    return diag_.Fail(Status::kNotFound, "call %u: the last message is no reply with calls", call);
  }
  std::string_view name, id;
  chat::Heap heap = NewHeap();
  ARN_TRY(messages_.FindCall(reply - 1, call, &heap, &diag_, &name, &id));
  return messages_.AddToolResult(name, id, text, &diag_);
}

Status Conversation::UndoReply() {
  const size_t n = messages_.size();
  if (n == 0 || messages_.role(n - 1) != MessageRole::kAssistant) {
    return diag_.Fail(Status::kBadState, "the last message is no reply");
  }
  messages_.Truncate(n - 1);
  return Status::kOk;
}

Status Conversation::Undo() {
  for (size_t n = messages_.size(); n > 0; --n) {
    if (messages_.role(n - 1) != MessageRole::kUser) continue;
    messages_.Truncate(n - 1);
    return Status::kOk;
  }
  return diag_.Fail(Status::kBadState, "there is no message of the user to take back");
}

Status Conversation::Truncate(uint32_t n_messages) {
  if (n_messages > messages_.size()) {
    return diag_.Fail(Status::kBadArgument, "n_messages is %u, there are %zu", n_messages,
                      messages_.size());
  }
  messages_.Truncate(n_messages);
  return Status::kOk;
}

Status Conversation::Render(ReplyResult* out) {
  chat::RenderInput input;
  input.messages = messages_.json();
  input.tools = plan_.options.tools;
  input.variables = plan_.options.variables;
  input.template_name = plan_.options.template_name;
  input.now = plan_.options.now;
  input.add_generation_prompt = true;
  const Span<char> room = As<char>(plan_.rendered);
  chat::RenderedText text;
  const Status status =
      chat::Render(*model_.templates, input, arena_, plan_.options.max_steps, room, &text, &diag_);
  if (status == Status::kBufferTooSmall) {
    return diag_.Fail(Status::kOutOfMemory,
                      "the conversation has %zu bytes as the template writes it, text_bytes is %zu",
                      text.bytes, room.size());
  }
  ARN_TRY(status);
  size_t n_ids = 0;
  const Status found = transcript_.Become({room.data(), text.bytes}, text.given, &n_ids, &diag_);
  out->n_prompt_tokens = static_cast<uint32_t>(n_ids);
  if (found != Status::kContextFull) return found;
  out->n_missing = static_cast<uint32_t>(n_ids) - plan_.context_tokens;
  return diag_.Fail(found,
                    "the conversation has %zu tokens, the context %u: take messages back, or set "
                    "drops_oldest",
                    n_ids, plan_.context_tokens);
}

Status Conversation::Read(ReplyResult* out) {
  for (size_t n_before = messages_.size();;) {
    out->n_missing = 0;
    const Status status = Render(out);
    out->n_dropped = static_cast<uint32_t>(n_before - messages_.size());
    if (status == Status::kOk) break;
    const bool is_too_long = status == Status::kContextFull || status == Status::kOutOfMemory;
    if (!is_too_long || !plan_.options.drops_oldest || !DropOldestTurn()) return status;
    diag_.Clear();
  }
  return FromSession(session_.ReusePrefix(transcript_.ids(), {}, &out->n_kept));
}

Status Conversation::Generate(const GenerateOptions& options, Generation* generation,
                              ReplyResult* out) {
  GenerateOptions tokens = options;
  tokens.stops = {};  // the filter's
  tokens.callback = Generation::OnToken;
  tokens.user = generation;
  GenerateResult result;
  const Status status = session_.Generate(tokens, &result);
  generation->Finish();
  out->n_tokens = result.n_tokens;
  out->finish = result.finish;
  out->n_logprobs = result.n_logprobs;
  if (generation->is_stopped) {
    out->finish = Finish::kStop;
  } else if (status == Status::kContextFull) {
    out->finish = Finish::kContext;
  }
  return FromSession(status);
}

Status Conversation::AddReplyMessage(bool begins_in_reasoning, ReplyResult* out) {
  JsonWriter writer = messages_.Begin();
  out->n_calls = WriteReplyMessage({transcript_.reply(), &format_, &tools_, begins_in_reasoning},
                                   arena_, &writer);
  ARN_TRY(messages_.End(writer, MessageRole::kAssistant, &diag_));
  out->is_added = true;
  return Status::kOk;
}

Status Conversation::Reply(const GenerateOptions& options, const chat::ReplyCallback& callback,
                           ReplyResult* out) {
  *out = ReplyResult();
  if (session_.scheduler().is_open()) {
    return diag_.Fail(Status::kBadState,
                      "the session has a scheduler, which alone changes its sequences");
  }
  const size_t n = messages_.size();
  if (n == 0) return diag_.Fail(Status::kBadState, "there is no message to reply to");
  if (messages_.role(n - 1) == MessageRole::kAssistant) {
    return diag_.Fail(Status::kBadState,
                      "the last message is a reply: add a message, or take the reply back");
  }
  const uint32_t selected_before = session_.sequences().selected();
  ARN_TRY(FromSession(session_.Select(plan_.options.sequence)));
  Status status = Read(out);
  if (status == Status::kOk) {
    status = Answer(options, callback, out);
  } else if (status == Status::kCancelled) {
    out->finish = Finish::kCancelled;
  }
  (void)session_.Select(selected_before);
  return status;
}

Status Conversation::Answer(const GenerateOptions& options, const chat::ReplyCallback& callback,
                            ReplyResult* out) {
  const bool in_reasoning =
      chat::StartOfReply(format_, transcript_.text()) == ReplyStart::kInReasoning;
  Generation generation{this, callback, StopFilter(options.stops, As<char>(plan_.filter)), {}, {}};
  generation.parser.Start(&format_, &tools_, in_reasoning);
  transcript_.BeginReply();
  Status status = Generate(options, &generation, out);
  const bool is_cut = status == Status::kCancelled || status == Status::kContextFull;
  if (generation.is_full) {
    status = diag_.Fail(Status::kOutOfMemory, "the reply does not fit text_bytes, which is %zu",
                        As<char>(plan_.text).size());
  } else if (status == Status::kOk || (is_cut && !transcript_.reply().empty())) {
    const Status added = AddReplyMessage(in_reasoning, out);
    if (added != Status::kOk) status = added;
  }
  transcript_.EndReply(session_.sequences().Ids(plan_.options.sequence));
  return status;
}

}  // namespace arn

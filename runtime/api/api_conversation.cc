// Implements arn_conversation_*.
#include "platform/os/pages.h"
#include "runtime/api/caller_block.h"
#include "runtime/api/chat_time.h"
#include "runtime/api/handles.h"
#include "runtime/api/options.h"
#include "runtime/conversation/conversation.h"

namespace arn::api {
namespace {

Conversation* ToConversation(arn_conversation* handle) {
  return reinterpret_cast<Conversation*>(handle);
}
const Conversation* ToConversation(const arn_conversation* handle) {
  return reinterpret_cast<const Conversation*>(handle);
}

Status ReadJsonText(const char* name, const char* text, size_t bytes, std::string_view* out,
                    Diag* diag) {
  if (text == nullptr && bytes > 0) {
    return diag->Fail(Status::kBadArgument, "%s is NULL and has %zu bytes", name, bytes);
  }
  if (text != nullptr) *out = {text, bytes};
  return Status::kOk;
}

Status ReadConversationOptions(const arn_conversation_options* options, ConversationOptions* out,
                               Diag* diag) {
  arn_conversation_options read = ARN_CONVERSATION_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_conversation_options", &read, diag));
  ARN_TRY(CheckFlag("drops_oldest", read.drops_oldest, diag));
  ARN_TRY(ReadJsonText("tools", read.tools, read.tools_bytes, &out->tools, diag));
  ARN_TRY(ReadJsonText("variables", read.variables, read.variables_bytes, &out->variables, diag));
  ARN_TRY(ReadTime(read.now, &out->now, diag));
  if (read.template_name != nullptr) out->template_name = read.template_name;
  out->text_bytes = read.text_bytes;
  out->arena_bytes = read.arena_bytes;
  out->max_steps = read.max_steps;
  out->sequence = read.sequence;
  out->drops_oldest = read.drops_oldest == 1;
  return Status::kOk;
}

Status Plan(const Model& model, const arn_session_options* session_options,
            const arn_conversation_options* options, uint64_t* out_bytes, Diag* diag) {
  ConversationOptions read;
  ARN_TRY(ReadConversationOptions(options, &read, diag));
  SessionPlan session;
  ARN_TRY(PlanFromC(model, session_options, &session, diag));
  ConversationPlan plan;
  ARN_TRY(PlanConversation(model, session.options.context_tokens, read, &plan, diag));
  *out_bytes = plan.total_bytes;
  return Status::kOk;
}

Status CreateConversation(Session* session, const arn_conversation_options* options, void* memory,
                          uint64_t memory_bytes, Conversation** out, Diag* diag) {
  ConversationOptions read;
  ARN_TRY(ReadConversationOptions(options, &read, diag));
  const Model& model = session->model();
  ConversationPlan plan;
  ARN_TRY(PlanConversation(model, session->plan().options.context_tokens, read, &plan, diag));
  CallerBlock block;
  ARN_TRY(FindBlock("conversation", plan.total_bytes, memory, memory_bytes, &block, diag));
  const Status status =
      Conversation::Create(session, model, plan, block.block, block.pages, out, diag);
  if (status != Status::kOk) ReleasePages(block.pages);
  return status;
}

// Runs `call`, a Status(Conversation&), as OnSession does.
template <typename Call>
arn_status OnConversation(arn_conversation* handle, const Call& call) {
  if (handle == nullptr) return ARN_BAD_ARGUMENT;
  Conversation& conversation = *ToConversation(handle);
  const Status status = conversation.Enter();
  return ToC(status == Status::kOk ? call(conversation) : status);
}

struct Receiver {
  arn_reply_callback callback;
  void* user;
};

bool OnEvent(void* user, chat::ReplyEvent event, std::string_view text) {
  const Receiver& receiver = *static_cast<const Receiver*>(user);
  return receiver.callback == nullptr ||
         receiver.callback(receiver.user, static_cast<uint32_t>(event), text.data(), text.size()) ==
             0;
}

Status CheckReplyOptions(const GenerateOptions& options, const arn_generate_options& given,
                         Diag* diag) {
  if (given.reply != nullptr || given.on_event != nullptr || given.reasoning_budget != 0) {
    return diag->Fail(Status::kUnsupported,
                      "arn_generate_options.%s: a conversation has a reply of its own",
                      given.reply != nullptr      ? "reply"
                      : given.on_event != nullptr ? "on_event"
                                                  : "reasoning_budget");
  }
  if (options.callback != nullptr) {
    return diag->Fail(Status::kUnsupported,
                      "arn_generate_options.callback: a reply has events instead");
  }
  for (const StringView& stop : options.stops) {
    if (stop.size == 0 || stop.size > kMaxStopBytes) {
      return diag->Fail(Status::kBadArgument, "a stop string has %zu bytes, expected 1..%u",
                        stop.size, kMaxStopBytes);
    }
  }
  return Status::kOk;
}

Status Reply(Conversation* conversation, const arn_generate_options* options, Receiver receiver,
             ReplyResult* result) {
  GenerateOptions read;
  arn_generate_options given;
  ARN_TRY(ReadGenerateOptions(options, &read, &given, conversation->diag()));
  ARN_TRY(CheckReplyOptions(read, given, conversation->diag()));
  return conversation->Reply(read, {OnEvent, &receiver}, result);
}

Status WriteResult(const ReplyResult& result, arn_conversation_result* out_result) {
  arn_conversation_result out = ARN_CONVERSATION_RESULT_INIT;
  out.finish = static_cast<uint32_t>(result.finish);
  out.n_tokens = result.n_tokens;
  out.n_prompt_tokens = result.n_prompt_tokens;
  out.n_kept = result.n_kept;
  out.n_calls = result.n_calls;
  out.n_missing = result.n_missing;
  out.n_dropped = result.n_dropped;
  out.is_added = result.is_added ? 1 : 0;
  out.n_logprobs = result.n_logprobs;
  return WriteStruct(out, out_result);
}

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_conversation_plan(const arn_model* model, const arn_session_options* session_options,
                                 const arn_conversation_options* options, char* error,
                                 size_t error_bytes, uint64_t* out_bytes) {
  if (out_bytes == nullptr) return ARN_BAD_ARGUMENT;
  *out_bytes = 0;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  return Report(Plan(*ToModel(model), session_options, options, out_bytes, &diag), diag, error,
                error_bytes);
}

arn_status arn_conversation_create(arn_session* session, const arn_conversation_options* options,
                                   void* memory, uint64_t memory_bytes, char* error,
                                   size_t error_bytes, arn_conversation** out_conversation) {
  if (out_conversation == nullptr) return ARN_BAD_ARGUMENT;
  *out_conversation = nullptr;
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  Conversation* conversation = nullptr;
  const Status status =
      CreateConversation(ToSession(session), options, memory, memory_bytes, &conversation, &diag);
  *out_conversation = reinterpret_cast<arn_conversation*>(conversation);
  return Report(status, diag, error, error_bytes);
}

void arn_conversation_destroy(arn_conversation* conversation) {
  Conversation::Destroy(ToConversation(conversation));
}

const char* arn_conversation_last_error(const arn_conversation* conversation) {
  return conversation == nullptr ? "" : ToConversation(conversation)->diag().text();
}

arn_status arn_conversation_add(arn_conversation* conversation, const char* role, const char* text,
                                size_t text_bytes) {
  return OnConversation(conversation, [&](Conversation& c) {
    if (role == nullptr) return c.diag()->Fail(Status::kBadArgument, "role is NULL");
    std::string_view read;
    ARN_TRY(ReadJsonText("text", text, text_bytes, &read, c.diag()));
    return c.Add(role, read);
  });
}

arn_status arn_conversation_add_json(arn_conversation* conversation, const char* json,
                                     size_t json_bytes) {
  return OnConversation(conversation, [&](Conversation& c) {
    std::string_view read;
    ARN_TRY(ReadJsonText("json", json, json_bytes, &read, c.diag()));
    return c.AddJson(read);
  });
}

arn_status arn_conversation_add_tool_result(arn_conversation* conversation, uint32_t call,
                                            const char* text, size_t text_bytes) {
  return OnConversation(conversation, [&](Conversation& c) {
    std::string_view read;
    ARN_TRY(ReadJsonText("text", text, text_bytes, &read, c.diag()));
    return c.AddToolResult(call, read);
  });
}

arn_status arn_conversation_reply(arn_conversation* conversation,
                                  const arn_generate_options* options, arn_reply_callback callback,
                                  void* user, arn_conversation_result* out_result) {
  ReplyResult result;
  const arn_status status = OnConversation(conversation, [&](Conversation& c) {
    return Reply(&c, options, {callback, user}, &result);
  });
  if (out_result == nullptr) return status;
  const arn_status written = ToC(WriteResult(result, out_result));
  return status == ARN_OK ? written : status;
}

arn_status arn_conversation_undo_reply(arn_conversation* conversation) {
  return OnConversation(conversation, [](Conversation& c) { return c.UndoReply(); });
}

arn_status arn_conversation_undo(arn_conversation* conversation) {
  return OnConversation(conversation, [](Conversation& c) { return c.Undo(); });
}

arn_status arn_conversation_truncate(arn_conversation* conversation, uint32_t n_messages) {
  return OnConversation(conversation, [&](Conversation& c) { return c.Truncate(n_messages); });
}

arn_status arn_conversation_get_info(const arn_conversation* conversation,
                                     arn_conversation_info* out_info) {
  if (conversation == nullptr || out_info == nullptr) return ARN_BAD_ARGUMENT;
  const Conversation& c = *ToConversation(conversation);
  arn_conversation_info out = ARN_CONVERSATION_INFO_INIT;
  out.n_messages = static_cast<uint32_t>(c.messages().size());
  out.n_tokens = static_cast<uint32_t>(c.transcript().ids().size());
  out.context_tokens = c.plan().context_tokens;
  out.has_reasoning = c.format().has_reasoning() ? 1 : 0;
  out.has_calls = c.format().has_calls() ? 1 : 0;
  out.messages_bytes = c.messages().json().size();
  out.text_bytes = c.plan().options.text_bytes;
  return ToC(WriteStruct(out, out_info));
}

arn_status arn_conversation_messages(const arn_conversation* conversation, const char** out_json,
                                     size_t* out_bytes) {
  if (out_json == nullptr || out_bytes == nullptr) return ARN_BAD_ARGUMENT;
  *out_json = nullptr;
  *out_bytes = 0;
  if (conversation == nullptr) return ARN_BAD_ARGUMENT;
  const std::string_view json = ToConversation(conversation)->messages().json();
  *out_json = json.data();
  *out_bytes = json.size();
  return ARN_OK;
}

}  // extern "C"

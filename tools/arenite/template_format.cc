#include "tools/arenite/template_format.h"

#include <ctime>

#include "tools/arenite/chat_history.h"
#include "tools/arenite/io.h"

namespace arn::tool {
namespace {

arn_status Create(const Model& model, char* error, size_t error_bytes, arn_chat** out) {
  arn_chat_options options = ARN_CHAT_OPTIONS_INIT;
  options.arena_bytes = uint64_t{64} << 20;  // reserved address space; a chat touches a small part
  return arn_chat_create(model.get(), &options, nullptr, 0, error, error_bytes, out);
}

}  // namespace

arn_chat_time LocalTime() {
  const time_t seconds = time(nullptr);
  tm local = {};
  localtime_r(&seconds, &local);
  return {local.tm_year + 1900,
          local.tm_mon + 1,
          local.tm_mday,
          local.tm_hour,
          local.tm_min,
          local.tm_sec,
          0};
}

bool HasTemplate(const Model& model) {
  char error[512] = "";
  arn_chat* chat = nullptr;
  const arn_status status = Create(model, error, sizeof error, &chat);
  arn_chat_destroy(chat);
  // Libraries may be built without templates.
  if (status == ARN_OK || status == ARN_NOT_FOUND || status == ARN_UNSUPPORTED) {
    return status == ARN_OK;
  }
  throw Error(model.path() + ": " + error);
}

TemplateFormat::TemplateFormat(const Model& model, std::string tools, std::string variables)
    : tools_(std::move(tools)), variables_(std::move(variables)) {
  char error[512] = "";
  arn_chat* chat = nullptr;
  if (Create(model, error, sizeof error, &chat) != ARN_OK) {
    throw Error(model.path() + ": " + error);
  }
  chat_.reset(chat);
}

PromptText TemplateFormat::Prompt(const std::vector<Message>& messages) const {
  const std::string json = ToJson(messages);
  arn_chat_input input = ARN_CHAT_INPUT_INIT;
  input.messages = json.data();
  input.messages_bytes = json.size();
  if (!tools_.empty()) input.tools = tools_.data();
  input.tools_bytes = tools_.size();
  if (!variables_.empty()) input.variables = variables_.data();
  input.variables_bytes = variables_.size();
  const arn_chat_time now = LocalTime();
  input.now = &now;
  input.add_generation_prompt = 1;
  std::string text(2 * json.size() + tools_.size() + 4096, '\0');
  for (;;) {
    size_t bytes = 0;
    const arn_status status =
        arn_chat_render(chat_.get(), &input, text.data(), text.size(), &bytes);
    if (status != ARN_OK && status != ARN_BUFFER_TOO_SMALL) {
      const std::string why = arn_chat_last_error(chat_.get());
      throw Error("the chat template: " + (why.empty() ? arn_status_name(status) : why));
    }
    text.resize(bytes);
    if (status != ARN_OK) continue;
    const arn_text_span* spans = nullptr;
    size_t n_spans = 0;
    if (arn_chat_plain_spans(chat_.get(), &spans, &n_spans) != ARN_OK) {
      throw Error("the chat template: its plain spans cannot be read");
    }
    return {std::move(text), std::vector<arn_text_span>(spans, spans + n_spans)};
  }
}

}  // namespace arn::tool

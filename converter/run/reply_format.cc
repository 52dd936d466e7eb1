#include "converter/run/reply_format.h"

#include <arenite/arenite.h>

#include <memory>
#include <optional>
#include <string>

#include "converter/base/error.h"
#include "converter/chat/probe_reply.h"

namespace arn::convert {
namespace {

struct CloseModel {
  void operator()(arn_model* model) const { arn_model_close(model); }
};
struct DestroyChat {
  void operator()(arn_chat* chat) const { arn_chat_destroy(chat); }
};

// Far from any template that prints the date conditionally.
constexpr arn_chat_time kNoon = {2026, 1, 15, 12, 0, 0, 0};

std::optional<std::string> Render(arn_chat* chat, const std::string& messages,
                                  const std::string& tools, bool add_generation_prompt) {
  arn_chat_input input = ARN_CHAT_INPUT_INIT;
  input.messages = messages.data();
  input.messages_bytes = messages.size();
  if (!tools.empty()) {
    input.tools = tools.data();
    input.tools_bytes = tools.size();
  }
  input.template_name = tools.empty() ? "default" : nullptr;
  input.now = &kNoon;
  input.add_generation_prompt = add_generation_prompt ? 1 : 0;
  std::string text(1024, '\0');
  size_t bytes = 0;
  arn_status status = arn_chat_render(chat, &input, text.data(), text.size(), &bytes);
  if (status == ARN_BUFFER_TOO_SMALL) {
    text.resize(bytes);
    status = arn_chat_render(chat, &input, text.data(), text.size(), &bytes);
  }
  if (status != ARN_OK) return std::nullopt;
  text.resize(bytes);
  return text;
}

bool IsToken(const arn_model* model, const std::string& text) {
  int32_t id = 0;
  size_t n = 0, bytes = 0;
  std::string back(text.size() + 1, '\0');
  return arn_tokenize(model, text.data(), text.size(), ARN_TOKENIZE_NO_SPECIAL, nullptr, 0, &id, 1,
                      &n) == ARN_OK &&
         n == 1 &&  // and not the unknown token
         arn_detokenize(model, &id, 1, ARN_DETOKENIZE_DEFAULT, back.data(), back.size(), &bytes) ==
             ARN_OK &&
         back.compare(0, bytes, text) == 0;
}

}  // namespace

ReplyFormatText ProbeReplyFormat(const std::filesystem::path& bundle) {
  char error[512] = "";
  arn_model* opened = nullptr;
  if (arn_model_open(bundle.c_str(), nullptr, error, sizeof error, &opened) != ARN_OK) {
    Fail("%s", error);
  }
  const std::unique_ptr<arn_model, CloseModel> model(opened);
  arn_chat* made = nullptr;
  if (arn_chat_create(model.get(), nullptr, nullptr, 0, error, sizeof error, &made) != ARN_OK) {
    return {};
  }
  const std::unique_ptr<arn_chat, DestroyChat> chat(made);
  ReplyProbe probe;
  probe.render = [&chat](const std::string& messages, const std::string& tools,
                         bool add_generation_prompt) {
    return Render(chat.get(), messages, tools, add_generation_prompt);
  };
  probe.is_token = [&model](const std::string& text) { return IsToken(model.get(), text); };
  return FindReplyFormat(probe);
}

}  // namespace arn::convert

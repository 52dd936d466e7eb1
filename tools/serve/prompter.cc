#include "tools/serve/prompter.h"

#include "tools/arenite/error.h"
#include "tools/arenite/template_format.h"
#include "tools/serve/api_error.h"

namespace arn::serve {
namespace {

// Models, and libraries, may have no templates and no replies to parse. Other failures pass.
void CheckMade(const tool::Model& model, arn_status status, const char* error) {
  if (status == ARN_OK || status == ARN_NOT_FOUND || status == ARN_UNSUPPORTED) return;
  throw tool::Error(model.path() + ": " + error);
}

}  // namespace

Prompter::Prompter(const tool::Model& model, ImageReader* images) : model_(model), images_(images) {
  arn_chat_options options = ARN_CHAT_OPTIONS_INIT;
  options.arena_bytes = uint64_t{64} << 20;  // reserved address space; a chat touches a small part
  char error[512] = "";
  arn_chat* chat = nullptr;
  CheckMade(model, arn_chat_create(model.get(), &options, nullptr, 0, error, sizeof error, &chat),
            error);
  chat_.reset(chat);
  arn_reply* reply = nullptr;
  arn_reply_info info = ARN_REPLY_INFO_INIT;
  CheckMade(model, arn_reply_create(model.get(), nullptr, nullptr, 0, error, sizeof error, &reply),
            error);
  if (reply != nullptr && arn_reply_get_info(reply, &info) == ARN_OK && info.has_reasoning != 0) {
    reasoning_end_ = info.reasoning_end;
  }
  arn_reply_destroy(reply);
  std::vector<char> piece(arn_detokenizer_piece_bytes(model.get()));
  for (const int32_t id : model.Tokenize("a", ARN_TOKENIZE_NO_SPECIAL)) {
    size_t bytes = 0;
    arn_detokenizer_next(model.get(), &in_text_, id, ARN_DETOKENIZE_DEFAULT, piece.data(),
                         piece.size(), &bytes);
  }
}

Prompt Prompter::OfMessages(const std::string& messages, const std::string& tools,
                            const std::string& variables, tool::ImageList images) const {
  if (chat_ == nullptr) {
    throw ApiError(400, "invalid_request_error",
                   "the model has no chat template: use /v1/completions", "messages",
                   "no_chat_template");
  }
  arn_chat_input input = ARN_CHAT_INPUT_INIT;
  input.messages = messages.data();
  input.messages_bytes = messages.size();
  if (!tools.empty()) input.tools = tools.data();
  input.tools_bytes = tools.size();
  if (!variables.empty()) input.variables = variables.data();
  input.variables_bytes = variables.size();
  const arn_chat_time now = tool::LocalTime();
  input.now = &now;
  input.add_generation_prompt = 1;
  Prompt prompt;
  prompt.text.resize(2 * messages.size() + tools.size() + 4096);
  for (arn_status status = ARN_BUFFER_TOO_SMALL; status != ARN_OK;) {
    size_t bytes = 0;
    status = arn_chat_render(chat_.get(), &input, prompt.text.data(), prompt.text.size(), &bytes);
    if (status != ARN_OK && status != ARN_BUFFER_TOO_SMALL) {
      throw BadField("messages", std::string("are refused by the model's chat template: ") +
                                     arn_chat_last_error(chat_.get()));
    }
    prompt.text.resize(bytes);
  }
  const arn_text_span* spans = nullptr;
  size_t n_spans = 0;
  if (arn_chat_plain_spans(chat_.get(), &spans, &n_spans) != ARN_OK) {
    throw ApiError(500, "server_error", arn_chat_last_error(chat_.get()));
  }
  tool::PromptText rendered = {std::move(prompt.text), {spans, spans + n_spans}};
  if (!images.empty()) {
    prompt.images = std::move(images);
    rendered = tool::ExpandImages(model_, rendered, prompt.images);
  }
  prompt.text = std::move(rendered.text);
  prompt.ids = model_.Tokenize(prompt.text, ARN_TOKENIZE_NO_SPECIAL, rendered.plain);
  return prompt;
}

Prompt Prompter::OfText(const std::string& text) const {
  Prompt prompt{text, model_.Tokenize(text, ARN_TOKENIZE_DEFAULT), {}};
  if (prompt.ids.empty() && model_.info().bos_id >= 0) prompt.ids.push_back(model_.info().bos_id);
  return prompt;
}

std::vector<int32_t> Prompter::ReasoningEnd(const std::string& sentence) const {
  return model_.Tokenize(sentence + reasoning_end_, ARN_TOKENIZE_NO_SPECIAL);
}

std::string Prompter::TextOf(int32_t id) const {
  arn_detokenizer state = in_text_;
  std::string piece(arn_detokenizer_piece_bytes(model_.get()), '\0');
  size_t bytes = 0;
  if (arn_detokenizer_next(model_.get(), &state, id, ARN_DETOKENIZE_DEFAULT, piece.data(),
                           piece.size(), &bytes) != ARN_OK) {
    bytes = 0;
  }
  piece.resize(bytes);
  return piece;
}

}  // namespace arn::serve

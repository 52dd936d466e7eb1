#include "tools/serve/answer.h"

#include <ctime>

namespace arn::serve {

std::string RandomName(size_t n) {
  static constexpr char kLetters[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::string name;
  uint64_t bits = 0;
  for (size_t i = 0; i < n; ++i) {
    if (i % 8 == 0) bits = arn_random_seed();
    name += kLetters[bits % (sizeof kLetters - 1)];
    bits /= sizeof kLetters - 1;
  }
  return name;
}

std::string Dump(const Json& value) {
  return value.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace);
}

Answer::Answer(const Prompter& prompter, std::string model_name, const std::string& id_prefix,
               const char* object, const char* chunk_object, uint32_t n_choices,
               uint32_t n_per_prompt)
    : prompter_(prompter),
      model_name_(std::move(model_name)),
      id_(id_prefix + RandomName(24)),
      object_(object),
      chunk_object_(chunk_object),
      created_(static_cast<int64_t>(time(nullptr))),
      n_choices_(n_choices),
      n_per_prompt_(n_per_prompt) {}

void Answer::Count(const Event& finish) {
  ++n_ended_;
  counts_.n_tokens += finish.n_tokens;
  counts_.n_reasoning += finish.n_reasoning;
  if (finish.choice % n_per_prompt_ != 0) return;
  counts_.n_prompt += finish.n_prompt;
  counts_.n_cached += finish.n_cached;
}

Json Answer::Head(const char* object) const {
  return {{"id", id_}, {"object", object}, {"created", created_}, {"model", model_name_}};
}

std::string Answer::Chunk(Json choice) const {
  Json chunk = Head(chunk_object_);
  chunk["choices"] = Json::array({std::move(choice)});
  return Frame(chunk);
}

std::string Answer::Frame(const Json& value, const std::string& event) {
  return (event.empty() ? "" : "event: " + event + "\n") + "data: " + Dump(value) + "\n\n";
}

Json Answer::Usage() const {
  return {{"prompt_tokens", counts_.n_prompt},
          {"completion_tokens", counts_.n_tokens},
          {"total_tokens", counts_.n_prompt + counts_.n_tokens},
          {"prompt_tokens_details", {{"cached_tokens", counts_.n_cached}}},
          {"completion_tokens_details", {{"reasoning_tokens", counts_.n_reasoning}}}};
}

std::vector<std::string> Answer::LastChunks(bool includes_usage) const {
  std::vector<std::string> chunks;
  if (includes_usage) {
    Json chunk = Head(chunk_object_);
    chunk["choices"] = Json::array();
    chunk["usage"] = Usage();
    chunks.push_back(Frame(chunk));
  }
  chunks.push_back("data: [DONE]\n\n");
  return chunks;
}

std::string Answer::ErrorChunk(const ApiError& error) { return "data: " + error.Json() + "\n\n"; }

std::string Answer::Whole() const {
  Json whole = Head(object_);
  whole["choices"] = Choices();
  whole["usage"] = Usage();
  return Dump(whole);
}

std::string Answer::TokenText(int32_t id) const {
  std::string text = prompter_.TextOf(id);
  if (!text.empty()) return text;
  const char* stored = nullptr;
  size_t bytes = 0;
  if (arn_token_text(prompter_.model().get(), id, &stored, &bytes) == ARN_OK) {
    text.assign(stored, bytes);
  }
  return text;
}

Json Answer::TokenJson(int32_t id, float logprob) const {
  const std::string text = prompter_.TextOf(id);
  Json bytes = text.empty() ? Json() : Json::array();
  for (const char c : text) bytes.push_back(static_cast<uint8_t>(c));
  return {{"token", TokenText(id)},
          {"logprob", static_cast<double>(logprob)},
          {"bytes", std::move(bytes)}};
}

Json Answer::LogprobOf(const Event& event) const {
  Json token = TokenJson(event.id, event.logprob);
  token["top_logprobs"] = Json::array();
  for (const arn_token_logprob& top : event.top) {
    token["top_logprobs"].push_back(TokenJson(top.id, top.logprob));
  }
  return token;
}

}  // namespace arn::serve

// The answer of /v1/completions.
#include "tools/serve/answer.h"

namespace arn::serve {
namespace {

class CompletionAnswer : public Answer {
 public:
  CompletionAnswer(const Prompter& prompter, const std::string& model_name, uint32_t n_choices,
                   uint32_t n_per_prompt, std::vector<std::string> echoes)
      : Answer(prompter, model_name, "cmpl-", "text_completion", "text_completion", n_choices,
               n_per_prompt),
        choices_(n_choices) {
    for (uint32_t i = 0; i < n_choices && !echoes.empty(); ++i) {
      choices_[i].text = choices_[i].echo = echoes[i / n_per_prompt];
    }
  }

  void Add(const Event& event) override;
  std::vector<std::string> Chunks(const Event& event) override;
  std::vector<std::string> FirstChunks() override;

 protected:
  Json Choices() const override;

 private:
  struct Choice {
    std::string echo, text;
    Json logprobs;  // null without
    size_t n_bytes = 0;
    std::string finish;
  };

  // Adds a token to {"tokens", "token_logprobs", "top_logprobs", "text_offset"}.
  void AddToken(const Event& event, size_t offset, Json* logprobs) const;
  static const char* FinishOf(const Event& event) {
    return event.finish == ARN_FINISH_LENGTH || event.finish == ARN_FINISH_CONTEXT ? "length"
                                                                                   : "stop";
  }

  std::vector<Choice> choices_;
};

void CompletionAnswer::AddToken(const Event& event, size_t offset, Json* logprobs) const {
  Json top = Json::object();
  for (const arn_token_logprob& one : event.top) {
    top[TokenText(one.id)] = static_cast<double>(one.logprob);
  }
  (*logprobs)["tokens"].push_back(TokenText(event.id));
  (*logprobs)["token_logprobs"].push_back(static_cast<double>(event.logprob));
  (*logprobs)["top_logprobs"].push_back(std::move(top));
  (*logprobs)["text_offset"].push_back(offset);
}

void CompletionAnswer::Add(const Event& event) {
  Choice& choice = choices_[event.choice];
  if (event.kind == Event::Kind::kText) choice.text += event.text;
  if (event.kind == Event::Kind::kToken) AddToken(event, choice.text.size(), &choice.logprobs);
  if (event.kind == Event::Kind::kFinish) choice.finish = FinishOf(event);
}

Json CompletionAnswer::Choices() const {
  Json list = Json::array();
  for (uint32_t i = 0; i < n_choices(); ++i) {
    list.push_back({{"index", i},
                    {"text", choices_[i].text},
                    {"logprobs", choices_[i].logprobs},
                    {"finish_reason", choices_[i].finish}});
  }
  return list;
}

std::vector<std::string> CompletionAnswer::FirstChunks() {
  std::vector<std::string> chunks;
  for (uint32_t i = 0; i < n_choices(); ++i) {
    if (choices_[i].echo.empty()) continue;
    chunks.push_back(Chunk({{"index", i},
                            {"text", choices_[i].echo},
                            {"logprobs", nullptr},
                            {"finish_reason", nullptr}}));
  }
  return chunks;
}

std::vector<std::string> CompletionAnswer::Chunks(const Event& event) {
  Json choice = {
      {"index", event.choice}, {"text", ""}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
  size_t& n_bytes = choices_[event.choice].n_bytes;
  if (event.kind == Event::Kind::kText) {
    choice["text"] = event.text;
    n_bytes += event.text.size();
  } else if (event.kind == Event::Kind::kToken) {
    AddToken(event, n_bytes, &choice["logprobs"]);
  } else if (event.kind == Event::Kind::kFinish) {
    choice["finish_reason"] = FinishOf(event);
  } else {
    return {};
  }
  return {Chunk(std::move(choice))};
}

}  // namespace

std::unique_ptr<Answer> MakeCompletionAnswer(const Prompter& prompter,
                                             const std::string& model_name, uint32_t n_choices,
                                             uint32_t n_per_prompt,
                                             std::vector<std::string> echoes) {
  return std::make_unique<CompletionAnswer>(prompter, model_name, n_choices, n_per_prompt,
                                            std::move(echoes));
}

}  // namespace arn::serve

// Tokens, templates, conversations and constraints under failing calls.
#include <cstring>

#include "tests/trust/scenario_parts.h"

namespace arn::test {
namespace {

constexpr char kMessages[] = "[{\"role\": \"user\", \"content\": \"Tell a story of a fox.\"}]";
constexpr char kSchema[] =
    "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 8}, "
    "\"age\": {\"type\": \"integer\", \"maximum\": 99}}, \"required\": [\"name\", \"age\"], "
    "\"additionalProperties\": false}";

class Tokenize : public WithModel {
 public:
  explicit Tokenize(const std::string& folder) : WithModel(folder + "/text.arn") {}
  Outcome Try() override {
    static constexpr char kText[] = "Once upon a time there was a fox, and 3 bears; caf\xC3\xA9.";
    return {arn_tokenize(model_, kText, sizeof kText - 1, 0, nullptr, 0, ids_, 128, &count_), "-"};
  }
  std::string Result() override {
    char text[512];
    size_t bytes = 0;
    Need(arn_detokenize(model_, ids_, count_, 0, text, sizeof text, &bytes), "detokenize");
    return std::string(text, bytes);
  }

 private:
  int32_t ids_[128] = {};
  size_t count_ = 0;
};

class Chat : public WithModel {
 public:
  explicit Chat(const std::string& folder) : WithModel(folder + "/text.arn") {}
  Outcome Try() override {
    arn_chat_destroy(chat_);
    char error[512] = "";
    arn_status status = arn_chat_create(model_, nullptr, nullptr, 0, error, sizeof error, &chat_);
    if (status != ARN_OK) return {status, error};
    arn_chat_input input = ARN_CHAT_INPUT_INIT;
    input.messages = kMessages;
    input.messages_bytes = sizeof kMessages - 1;
    input.add_generation_prompt = 1;
    status = arn_chat_render(chat_, &input, text_, sizeof text_, &bytes_);
    return {status, arn_chat_last_error(chat_)};
  }
  std::string Result() override { return std::string(text_, bytes_); }
  void TearDown() override {
    arn_chat_destroy(chat_);
    WithModel::TearDown();
  }

 private:
  arn_chat* chat_ = nullptr;
  char text_[1024];
  size_t bytes_ = 0;
};

class Conversation : public WithSession {
 public:
  explicit Conversation(const std::string& folder) : WithSession(folder + "/text.arn") {}
  Outcome Try() override {
    arn_conversation_destroy(chat_);
    char error[512] = "";
    arn_status status =
        arn_conversation_create(session_, nullptr, nullptr, 0, error, sizeof error, &chat_);
    if (status != ARN_OK) return {status, error};
    arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
    options.max_tokens = 12;
    status = arn_conversation_add(chat_, "user", "Tell a story.", 13);
    if (status == ARN_OK) {
      status = arn_conversation_reply(chat_, &options, nullptr, nullptr, nullptr);
    }
    return {status, arn_conversation_last_error(chat_)};
  }
  std::string Result() override {
    const char* json = nullptr;
    size_t bytes = 0;
    Need(arn_conversation_messages(chat_, &json, &bytes), "messages");
    return std::string(json, bytes);
  }
  void TearDown() override {
    arn_conversation_destroy(chat_);
    WithSession::TearDown();
  }

 private:
  arn_conversation* chat_ = nullptr;
};

arn_constraint_options Schema() {
  arn_constraint_options options = ARN_CONSTRAINT_OPTIONS_INIT;
  options.text = kSchema;
  options.text_bytes = sizeof kSchema - 1;
  return options;
}

class Constraint : public WithModel {
 public:
  explicit Constraint(const std::string& folder) : WithModel(folder + "/text.arn") {}
  Outcome Try() override {
    const arn_constraint_options options = Schema();
    char error[512] = "";
    const arn_status status = arn_constraint_create(model_, &options, nullptr, 4 << 20, error,
                                                    sizeof error, &constraint_);
    return {status, error};
  }
  std::string Unchanged() override {
    return constraint_ == nullptr ? "" : "a constraint came back";
  }
  std::string Result() override {
    arn_model_info info = ARN_MODEL_INFO_INIT;
    Need(arn_model_get_info(model_, &info), "get_info");
    std::vector<uint32_t> mask((info.vocab + 31) / 32);
    Need(arn_constraint_mask(constraint_, mask.data(), mask.size()), "mask");
    std::string text;
    for (const uint32_t word : mask) text += std::to_string(word) + " ";
    return text;
  }
  void TearDown() override {
    arn_constraint_destroy(constraint_);
    WithModel::TearDown();
  }

 private:
  arn_constraint* constraint_ = nullptr;
};

// A constraint is set, a reply is written under it, and the log-probabilities of one token are
// read.
class Constrained : public WithSession {
 public:
  explicit Constrained(const std::string& folder) : WithSession(folder + "/text.arn") {}
  Outcome Try() override {
    const arn_constraint_options options = Schema();
    arn_status status = arn_session_set_constraint(session_, &options);
    arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
    generate.max_tokens = 40;
    if (status == ARN_OK) status = arn_session_generate(session_, &generate, nullptr);
    return Failed(status);
  }
  std::string Result() override { return TokensOf(session_); }

 protected:
  arn_session_options Options() const override {
    arn_session_options options = SmallSession();
    options.constraint_bytes = 1 << 20;
    return options;
  }
};

}  // namespace

std::vector<NamedScenario> TextScenarios() {
  return {
      {"tokenize", Make<Tokenize>},         {"chat", Make<Chat>},
      {"conversation", Make<Conversation>}, {"constraint", Make<Constraint>},
      {"constrained", Make<Constrained>},
  };
}

}  // namespace arn::test

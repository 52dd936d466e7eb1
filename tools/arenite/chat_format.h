// From messages to the text that a model reads.
#pragma once

#include <string>
#include <vector>

namespace arn::tool {

enum class Role { kSystem, kUser, kAssistant, kTool };

struct Message {
  Role role = Role::kUser;
  std::string text;
};

class ChatFormat {
 public:
  virtual ~ChatFormat() = default;
  // Whether Prompt() gives the whole conversation, or only what is new in it.
  virtual bool IsWhole() const = 0;
  // What comes before the answer to the last of `messages`, which is the user's: all of it from the
  // start of everything, or from the end of the last answer among them. Throws Error.
  virtual std::string Prompt(const std::vector<Message>& messages) const = 0;
  // Texts at which an answer ends; it also ends at the model's end tokens.
  virtual std::vector<std::string> Stops() const = 0;
};

// Every message between two fixed texts.
struct PlainFormat : ChatFormat {
  std::string user_prefix = "User: ";
  std::string user_suffix = "\n";
  std::string answer_prefix = "Assistant:";
  std::string answer_suffix = "\n";

  bool IsWhole() const override { return false; }
  std::string Prompt(const std::vector<Message>& messages) const override;
  // What begins the user's next message: a model that goes on without an end writes it itself.
  std::vector<std::string> Stops() const override;
};

// \n, \t and \\ of a flag's text, as shells hand them over. Throws Error for another escape.
std::string Unescape(const std::string& text, const char* option);

}  // namespace arn::tool

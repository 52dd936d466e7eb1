// Formats chat messages as the text that a model reads.
#pragma once

#include <arenite/arenite.h>

#include <string>
#include <vector>

namespace arn::tool {

enum class Role { kSystem, kUser, kAssistant, kTool };

struct ToolCall {
  std::string name, arguments, id;  // arguments: JSON; id: "" if the model gave none
};

struct Message {
  Role role = Role::kUser;
  std::string text;
  std::string reasoning = {};        // of an answer
  std::vector<ToolCall> calls = {};  // of an answer
  uint32_t n_images = 0;             // before the text
};

// Text for a model to read.
struct PromptText {
  std::string text;
  // Spans written by users and tools, or by the model itself: special tokens in them are plain
  // text. Sorted, without overlap.
  std::vector<arn_text_span> plain;

  void Add(const std::string& more) { text += more; }
  void AddPlain(const std::string& more);
};

class ChatFormat {
 public:
  virtual ~ChatFormat() = default;
  // True if Prompt() returns the whole conversation; false if only the new part.
  virtual bool IsWhole() const = 0;
  // Returns the text before the answer to the last of `messages`, which is the user's: from the
  // start of the conversation, or from the end of the last answer in `messages`. Throws Error.
  virtual PromptText Prompt(const std::vector<Message>& messages) const = 0;
  // Returns stop strings; the model's stop token ids apply too.
  virtual std::vector<std::string> Stops() const = 0;
};

// Puts every message between two fixed texts.
struct PlainFormat : ChatFormat {
  std::string user_prefix = "User: ";
  std::string user_suffix = "\n";
  std::string answer_prefix = "Assistant:";
  std::string answer_suffix = "\n";

  bool IsWhole() const override { return false; }
  PromptText Prompt(const std::vector<Message>& messages) const override;
  // Stops at the start of a user message, which a model without a stop token writes itself.
  std::vector<std::string> Stops() const override;
};

// Decodes \n, \t and \\ in a flag's text. Throws Error for another escape.
std::string Unescape(const std::string& text, const char* option);

}  // namespace arn::tool

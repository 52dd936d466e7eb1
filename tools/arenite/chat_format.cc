#include "tools/arenite/chat_format.h"

#include "tools/arenite/error.h"
#include "tools/arenite/io.h"

namespace arn::tool {

void PromptText::AddPlain(const std::string& more) {
  if (more.empty()) return;
  plain.push_back({text.size(), more.size()});
  text += more;
}

PromptText PlainFormat::Prompt(const std::vector<Message>& messages) const {
  PromptText prompt;
  for (const Message& message : messages) {
    switch (message.role) {
      case Role::kSystem:
        prompt.AddPlain(message.text);
        prompt.Add("\n");
        break;
      case Role::kTool:
      case Role::kUser:
        prompt.Add(user_prefix);
        prompt.AddPlain(message.text);
        prompt.Add(user_suffix);
        break;
      case Role::kAssistant:
        prompt = {answer_suffix, {}};
        break;  // the session holds everything
                // before it
    }
  }
  prompt.Add(answer_prefix);
  return prompt;
}

std::vector<std::string> PlainFormat::Stops() const {
  std::string stop = answer_suffix + user_prefix;
  stop.erase(stop.find_last_not_of(" \n\t") + 1);
  if (stop.empty()) return {};
  return {stop};
}

std::string Unescape(const std::string& text, const char* option) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char next = i + 1 < text.size() ? text[++i] : '\0';
    if (next != 'n' && next != 't' && next != '\\') {
      throw Error(Format("%s: expected n, t or a backslash after the backslash", option));
    }
    out += next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
  }
  return out;
}

}  // namespace arn::tool

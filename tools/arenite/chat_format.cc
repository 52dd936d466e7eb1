#include "tools/arenite/chat_format.h"

#include "tools/arenite/error.h"
#include "tools/arenite/io.h"

namespace arn::tool {

std::string PlainFormat::Prompt(const std::vector<Message>& messages) const {
  std::string text;
  for (const Message& message : messages) {
    switch (message.role) {
      case Role::kSystem: text += message.text + "\n"; break;
      case Role::kTool:
      case Role::kUser: text += user_prefix + message.text + user_suffix; break;
      case Role::kAssistant: text = answer_suffix; break;  // what was before it has been read
    }
  }
  return text + answer_prefix;
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
      throw Error(Format("%s: after a backslash comes n, t or another backslash", option));
    }
    out += next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
  }
  return out;
}

}  // namespace arn::tool

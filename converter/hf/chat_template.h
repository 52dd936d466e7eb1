// The chat templates of a checkpoint, and what they are given besides messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"

namespace arn::convert {

struct ChatTemplate {
  std::string name;  // "default", "tool_use", ...
  std::string source;
  std::vector<uint8_t> program;  // runtime/bundle/chat_program.h
};
struct ChatTemplates {
  std::vector<ChatTemplate> templates;                         // "default" first, if there is one
  std::vector<std::pair<std::string, std::string>> variables;  // bos_token and the like

  // The source of "default", or "".
  std::string DefaultSource() const;
};

// As transformers finds them: chat_template.jinja (with additional_chat_templates/NAME.jinja beside
// it), else chat_template of tokenizer_config.json (a text, or a list of {name, template}), else
// that of chat_template.json. Throws ConvertError with the file, the line and what is not
// supported.
ChatTemplates ReadChatTemplates(const std::filesystem::path& folder);
// The same from what tokenizer_config.json would say; `label` names it in errors.
ChatTemplates ReadChatTemplates(const nlohmann::json& config, const std::string& label);

}  // namespace arn::convert

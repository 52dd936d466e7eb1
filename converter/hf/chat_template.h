// Reads the chat templates of a checkpoint, and their variables other than the messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json_fwd.hpp"

namespace arn::convert {

struct ChatTemplate {
  std::string name;  // "default", "tool_use", ...
  std::string source;
  std::vector<uint8_t> program;  // runtime/bundle/chat_program.h
};
struct ChatTemplates {
  std::vector<ChatTemplate> templates;                         // "default" first, if present
  std::vector<std::pair<std::string, std::string>> variables;  // bos_token and similar

  // Returns the source of "default", or "".
  std::string DefaultSource() const;
};

// Looks up the templates as transformers does: chat_template.jinja (with
// additional_chat_templates/NAME.jinja beside it), else chat_template of tokenizer_config.json (a
// text, or a list of {name, template}), else chat_template.json. Throws ConvertError with file,
// line and the unsupported construct.
ChatTemplates ReadChatTemplates(const std::filesystem::path& folder);
// Same, from the contents of a tokenizer_config.json; `label` names it in errors.
ChatTemplates ReadChatTemplates(const nlohmann::json& config, const std::string& label);

}  // namespace arn::convert

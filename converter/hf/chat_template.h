// The text of a checkpoint's chat template.
#pragma once

#include <filesystem>
#include <string>

namespace arn::convert {

// chat_template.jinja, else chat_template of tokenizer_config.json: a string, or a list of {name,
// template} of which the one named "default" counts. Empty when there is none.
std::string ReadChatTemplate(const std::filesystem::path& folder);

}  // namespace arn::convert

// From a chat template's text to the program that a bundle carries.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "converter/chat/template_error.h"

namespace arn::convert {

// The bytes of runtime/bundle/chat_program.h. Throws TemplateError, whose sentence says what is
// wrong or what is not supported.
std::vector<uint8_t> CompileChatTemplate(std::string_view source);

}  // namespace arn::convert

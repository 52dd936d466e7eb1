// Compiles a chat template's text into the program that a bundle carries.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "converter/chat/template_error.h"

namespace arn::convert {

// Returns the bytes of runtime/bundle/chat_program.h. Throws TemplateError with what is wrong or
// unsupported.
std::vector<uint8_t> CompileChatTemplate(std::string_view source);

}  // namespace arn::convert

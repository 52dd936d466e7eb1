// UTF-8 in the texts of tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace arn::convert {

// Well-formed as Unicode defines it.
bool IsUtf8Text(const uint8_t* text, size_t size);

// Bytes of the text's character at a place.
size_t CharacterBytes(const std::string& text, size_t at);

}  // namespace arn::convert

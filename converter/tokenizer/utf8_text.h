// UTF-8 helpers for token texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace arn::convert {

// True if the text is well-formed as Unicode defines it.
bool IsUtf8Text(const uint8_t* text, size_t size);

// Returns the bytes of the character at byte offset `at`.
size_t CharacterBytes(const std::string& text, size_t at);

}  // namespace arn::convert

// The alphabet in which byte-level tokenizers write bytes as printable characters (GPT-2's
// bytes_to_unicode; tokenizers/src/pre_tokenizers/byte_level.rs).
#pragma once

#include <optional>
#include <string>

namespace arn::convert {

// The bytes that the text spells; nothing when a character is not of the alphabet.
std::optional<std::string> BytesOfAlphabet(const std::string& text);

}  // namespace arn::convert

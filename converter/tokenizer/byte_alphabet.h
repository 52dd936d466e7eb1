// The byte-level alphabet: maps each byte to a printable character (GPT-2's bytes_to_unicode;
// tokenizers/src/pre_tokenizers/byte_level.rs).
#pragma once

#include <optional>
#include <string>

namespace arn::convert {

// Returns the bytes that the text spells; nullopt if a character is not in the alphabet.
std::optional<std::string> BytesOfAlphabet(const std::string& text);

}  // namespace arn::convert

// The character tables of unicode.h and normal_form.h in either build: the same sources are
// compiled twice, once in namespace arn_minimal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

struct Characters {
  bool (*is_word)(uint32_t);
  bool (*is_numeric)(uint32_t);
  bool (*is_punctuation)(uint32_t);
  bool (*is_mark)(uint32_t);
  bool (*is_nonspacing_mark)(uint32_t);
  bool (*is_control)(uint32_t);
  bool (*is_known)(uint32_t);  // assigned in the table's Unicode version
  size_t (*to_lowercase)(uint32_t, uint32_t[2]);
  size_t (*grapheme_bytes)(std::string_view);
  // Returns the status of NFC or NFKC. Sets *is_same to true if the text is unchanged.
  uint32_t (*normalize)(bool is_compatible, std::string_view text, bool* is_same);
};

const Characters& FullCharacters();     // utf8proc
const Characters& MinimalCharacters();  // PCRE2, no normal forms

// The tables of characters behind unicode.h and normal_form.h, of either build: the same sources
// are compiled twice, once as namespace arn_minimal.
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
  bool (*is_known)(uint32_t);  // assigned, in the version of Unicode that the table is of
  size_t (*to_lowercase)(uint32_t, uint32_t[2]);
  size_t (*grapheme_bytes)(std::string_view);
  // The status of NFC and of NFKC, and whether the text came back as it was.
  uint32_t (*normalize)(bool is_compatible, std::string_view text, bool* is_same);
};

const Characters& FullCharacters();     // utf8proc
const Characters& MinimalCharacters();  // PCRE2, no normal forms

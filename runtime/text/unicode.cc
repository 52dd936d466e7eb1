#include "runtime/text/unicode.h"

#include "runtime/text/unicode_later.h"
#include "runtime/text/utf8.h"
#include "utf8proc.h"

namespace arn {
namespace {

// Other_Alphabetic outside of category M: circled and squared Latin letters (PropList.txt).
bool IsAlphabeticSymbol(uint32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

constexpr uint32_t Bit(utf8proc_category_t category) { return 1u << category; }

bool IsOf(uint32_t categories, uint32_t c) {
  return (categories >> utf8proc_category(static_cast<utf8proc_int32_t>(c)) & 1) != 0;
}

bool IsAsciiLetterOrDigit(uint32_t c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

}  // namespace

bool IsWhiteSpace(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool IsWordCharacter(uint32_t c) {
  if (c < 0x80) return IsAsciiLetterOrDigit(c) || c == '_';
  constexpr uint32_t kWordCategories =
      Bit(UTF8PROC_CATEGORY_LU) | Bit(UTF8PROC_CATEGORY_LL) | Bit(UTF8PROC_CATEGORY_LT) |
      Bit(UTF8PROC_CATEGORY_LM) | Bit(UTF8PROC_CATEGORY_LO) | Bit(UTF8PROC_CATEGORY_MN) |
      Bit(UTF8PROC_CATEGORY_MC) | Bit(UTF8PROC_CATEGORY_ME) | Bit(UTF8PROC_CATEGORY_ND) |
      Bit(UTF8PROC_CATEGORY_NL) | Bit(UTF8PROC_CATEGORY_PC);
  const bool is_word =
      IsOf(kWordCategories, c) || c == 0x200C || c == 0x200D || IsAlphabeticSymbol(c);
  return is_word != IsOtherwiseInReference(CharacterTable::kWord, c);
}

bool IsNumeric(uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return IsOf(Bit(UTF8PROC_CATEGORY_ND) | Bit(UTF8PROC_CATEGORY_NL) | Bit(UTF8PROC_CATEGORY_NO), c);
}

bool IsPunctuation(uint32_t c) {
  if (c < 0x80) return c > 0x20 && c < 0x7F && !IsAsciiLetterOrDigit(c);
  const bool is_punctuation =
      IsOf(Bit(UTF8PROC_CATEGORY_PC) | Bit(UTF8PROC_CATEGORY_PD) | Bit(UTF8PROC_CATEGORY_PS) |
               Bit(UTF8PROC_CATEGORY_PE) | Bit(UTF8PROC_CATEGORY_PI) | Bit(UTF8PROC_CATEGORY_PF) |
               Bit(UTF8PROC_CATEGORY_PO),
           c);
  return is_punctuation != IsOtherwiseInReference(CharacterTable::kPunctuation, c);
}

bool IsMark(uint32_t c) {
  if (c < 0x300) return false;
  const bool is_mark =
      IsOf(Bit(UTF8PROC_CATEGORY_MN) | Bit(UTF8PROC_CATEGORY_MC) | Bit(UTF8PROC_CATEGORY_ME), c);
  return is_mark != IsOtherwiseInReference(CharacterTable::kMark, c);
}

bool IsNonspacingMark(uint32_t c) {
  if (c < 0x300) return false;
  return IsOf(Bit(UTF8PROC_CATEGORY_MN), c) !=
         IsOtherwiseInReference(CharacterTable::kNonspacing, c);
}

bool IsControl(uint32_t c) {
  if (c < 0x80) return c < 0x20 || c == 0x7F;
  const bool is_control =
      IsOf(Bit(UTF8PROC_CATEGORY_CC) | Bit(UTF8PROC_CATEGORY_CF) | Bit(UTF8PROC_CATEGORY_CO), c);
  return is_control != IsOtherwiseInReference(CharacterTable::kControl, c);
}

bool IsIdeograph(uint32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

size_t ToLowercase(uint32_t c, uint32_t out[2]) {
  constexpr uint32_t kCapitalIWithDot = 0x130, kDotAbove = 0x307;
  if (c == kCapitalIWithDot) {
    out[0] = 'i';
    out[1] = kDotAbove;
    return 2;
  }
  out[0] = c < 0x80 ? (c >= 'A' && c <= 'Z' ? c + 32 : c)
                    : static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  return 1;
}

size_t GraphemeBytes(StringView text) {
  const char* const end = text.data + text.size;
  Utf8Char c = ReadValidUtf8(text.data);
  const char* p = text.data + c.bytes;
  utf8proc_int32_t state = 0;
  while (p != end) {
    const Utf8Char next = ReadValidUtf8(p);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c.code_point),
                                         static_cast<utf8proc_int32_t>(next.code_point), &state)) {
      break;
    }
    c = next;
    p += c.bytes;
  }
  return static_cast<size_t>(p - text.data);
}

}  // namespace arn

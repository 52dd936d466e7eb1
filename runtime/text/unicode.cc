#include "runtime/text/unicode.h"

#include "runtime/text/unicode_data.h"
#include "runtime/text/unicode_later.h"

namespace arn {
namespace {

// Other_Alphabetic outside category M: circled and squared Latin letters (PropList.txt).
bool IsAlphabeticSymbol(uint32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

constexpr uint32_t Bit(Category category) { return 1u << static_cast<uint32_t>(category); }

bool IsOf(uint32_t categories, uint32_t c) { return (categories & Bit(CategoryOf(c))) != 0; }

// Unassigned characters in the tables stay unassigned; differences apply only to assigned ones.
bool IsOtherwise(CharacterTable table, uint32_t c) {
  return IsOtherwiseInReference(table, c) && CategoryOf(c) != Category::kCn;
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
      Bit(Category::kLu) | Bit(Category::kLl) | Bit(Category::kLt) | Bit(Category::kLm) |
      Bit(Category::kLo) | Bit(Category::kMn) | Bit(Category::kMc) | Bit(Category::kMe) |
      Bit(Category::kNd) | Bit(Category::kNl) | Bit(Category::kPc);
  const bool is_word =
      IsOf(kWordCategories, c) || c == 0x200C || c == 0x200D || IsAlphabeticSymbol(c);
  return is_word != IsOtherwise(CharacterTable::kWord, c);
}

bool IsNumeric(uint32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return IsOf(Bit(Category::kNd) | Bit(Category::kNl) | Bit(Category::kNo), c);
}

bool IsPunctuation(uint32_t c) {
  if (c < 0x80) return c > 0x20 && c < 0x7F && !IsAsciiLetterOrDigit(c);
  const bool is_punctuation =
      IsOf(Bit(Category::kPc) | Bit(Category::kPd) | Bit(Category::kPs) | Bit(Category::kPe) |
               Bit(Category::kPi) | Bit(Category::kPf) | Bit(Category::kPo),
           c);
  return is_punctuation != IsOtherwise(CharacterTable::kPunctuation, c);
}

bool IsMark(uint32_t c) {
  if (c < 0x300) return false;
  const bool is_mark = IsOf(Bit(Category::kMn) | Bit(Category::kMc) | Bit(Category::kMe), c);
  return is_mark != IsOtherwise(CharacterTable::kMark, c);
}

bool IsNonspacingMark(uint32_t c) {
  if (c < 0x300) return false;
  return IsOf(Bit(Category::kMn), c) != IsOtherwise(CharacterTable::kNonspacing, c);
}

bool IsControl(uint32_t c) {
  if (c < 0x80) return c < 0x20 || c == 0x7F;
  const bool is_control = IsOf(Bit(Category::kCc) | Bit(Category::kCf) | Bit(Category::kCo), c);
  return is_control != IsOtherwise(CharacterTable::kControl, c);
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
  out[0] = c < 0x80 ? (c >= 'A' && c <= 'Z' ? c + 32 : c) : LowercaseOf(c);
  return 1;
}

}  // namespace arn

#include "runtime/chat/text.h"

#include <iterator>

#include "runtime/chat/case_tables.h"
#include "runtime/text/utf8.h"
#include "utf8proc.h"

namespace arn::chat {
namespace {

utf8proc_category_t Category(uint32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}
bool IsUpperChar(uint32_t c) { return Category(c) == UTF8PROC_CATEGORY_LU; }
bool IsLowerChar(uint32_t c) {
  // Other_Lowercase, which Python adds to Ll: ordinals, modifier letters, small Roman numerals.
  return Category(c) == UTF8PROC_CATEGORY_LL || c == 0xAA || c == 0xBA ||
         (c >= 0x2B0 && c <= 0x2B8) || (c >= 0x2170 && c <= 0x217F) || (c >= 0x24D0 && c <= 0x24E9);
}
bool IsTitleChar(uint32_t c) { return Category(c) == UTF8PROC_CATEGORY_LT; }
bool IsCased(uint32_t c) {
  return IsUpperChar(c) || IsLowerChar(c) || IsTitleChar(c) || (c >= 0x2160 && c <= 0x216F) ||
         (c >= 0x24B6 && c <= 0x24CF);
}
// Characters ignored when looking for the end of a word (final sigma).
bool IsCaseIgnorable(uint32_t c) {
  const utf8proc_category_t category = Category(c);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
         category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
         category == UTF8PROC_CATEGORY_SK || c == '\'' || c == '.' || c == ':' || c == 0xB7 ||
         c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027;
}

Status AppendChar(uint32_t c, TextBuilder* out) {
  char bytes[4];
  return out->Append({bytes, WriteUtf8(c, bytes)});
}

template <size_t N>
Status AppendMapped(uint32_t c, const CaseSequence (&table)[N], uint32_t simple, TextBuilder* out) {
  for (const CaseSequence& sequence : table) {
    if (sequence.from != c) continue;
    for (const uint16_t to : sequence.to) {
      if (to != 0) ARN_TRY(AppendChar(to, out));
    }
    return Status::kOk;
  }
  return AppendChar(simple, out);
}

Status AppendUpper(uint32_t c, TextBuilder* out) {
  if (c < 0x80) return out->Append(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
  const auto simple = static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
  return AppendMapped(c, kUpperSequences, simple, out);
}

Status AppendTitle(uint32_t c, TextBuilder* out) {
  if (c < 0x80) return out->Append(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
  const auto simple = static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
  return AppendMapped(c, kTitleSequences, simple, out);
}

// True if the sigma at `at` (2 bytes) ends a word.
bool IsFinalSigma(std::string_view text, size_t at) {
  const char* const begin = text.data();
  bool has_before = false;
  for (const char* p = begin + at; p > begin;) {
    p = PreviousUtf8(p);
    const uint32_t c = ReadValidUtf8(p).code_point;
    if (IsCaseIgnorable(c)) continue;
    has_before = IsCased(c);
    break;
  }
  if (!has_before) return false;
  for (size_t i = at + 2; i < text.size();) {
    const Utf8Char c = ReadValidUtf8(begin + i);
    i += c.bytes;
    if (!IsCaseIgnorable(c.code_point)) return !IsCased(c.code_point);
  }
  return true;
}

Status AppendLower(std::string_view text, size_t at, uint32_t c, TextBuilder* out) {
  if (c < 0x80) return out->Append(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  if (c == 0x130) return out->Append("i\xCC\x87");
  if (c == 0x3A3) return AppendChar(IsFinalSigma(text, at) ? 0x3C2 : 0x3C3, out);
  return AppendChar(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), out);
}

bool Passes(uint32_t c, CharTest test) {
  const utf8proc_category_t category = Category(c);
  const bool is_alpha = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
  const bool is_number = category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
                         category == UTF8PROC_CATEGORY_NO;
  // Superscripts and circled digits count as digits.
  const bool is_digit = category == UTF8PROC_CATEGORY_ND || c == 0xB2 || c == 0xB3 || c == 0xB9 ||
                        c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
                        (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468);
  switch (test) {
    case CharTest::kAlpha: return is_alpha;
    case CharTest::kAlnum: return is_alpha || is_number;
    case CharTest::kDigit: return is_digit;
    case CharTest::kNumeric: return is_number;
    case CharTest::kSpace: return IsSpace(c);
    case CharTest::kAscii: return c < 0x80;
    case CharTest::kLower:
    case CharTest::kUpper:
    case CharTest::kTitle: break;  // not decided per character
  }
  return false;
}

bool IsCaseOf(std::string_view text, CharTest test) {
  bool has_cased = false, after_cased = false;
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = ReadValidUtf8(text.data() + i);
    i += c.bytes;
    const bool is_cased = IsCased(c.code_point);
    const bool is_lower = IsLowerChar(c.code_point);
    if (test == CharTest::kLower && is_cased && !is_lower) return false;
    if (test == CharTest::kUpper && is_cased && (is_lower || IsTitleChar(c.code_point))) {
      return false;
    }
    if (test == CharTest::kTitle && is_cased && is_lower != after_cased) return false;
    after_cased = is_cased;
    has_cased = has_cased || is_cased;
  }
  return has_cased;
}

}  // namespace

uint32_t CountChars(std::string_view text) {
  uint32_t n = 0;
  for (const char c : text) n += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return n;
}

size_t OffsetOfChar(std::string_view text, uint64_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += ReadValidUtf8(text.data() + at).bytes;
  return at;
}

bool IsSpace(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool IsPrintable(uint32_t c) {
  if (c < 0x7F) return c >= 0x20;
  const utf8proc_category_t category = Category(c);
  return category != UTF8PROC_CATEGORY_CN &&
         category < UTF8PROC_CATEGORY_ZS;  // white space, controls and private use come last
}

std::string_view Strip(std::string_view text, Side side, const std::string_view* chars) {
  const auto goes = [chars](std::string_view c) {
    if (chars != nullptr) {
      for (size_t i = 0; i < chars->size();) {
        const size_t bytes = ReadValidUtf8(chars->data() + i).bytes;
        if (chars->substr(i, bytes) == c) return true;
        i += bytes;
      }
      return false;
    }
    return IsSpace(ReadValidUtf8(c.data()).code_point);
  };
  while (side != Side::kRight && !text.empty()) {
    const size_t bytes = ReadValidUtf8(text.data()).bytes;
    if (!goes(text.substr(0, bytes))) break;
    text.remove_prefix(bytes);
  }
  while (side != Side::kLeft && !text.empty()) {
    const char* last = PreviousUtf8(text.data() + text.size());
    const auto at = static_cast<size_t>(last - text.data());
    if (!goes(text.substr(at))) break;
    text = text.substr(0, at);
  }
  return text;
}

Status ChangeCase(std::string_view text, Case to, Heap* heap, Value* out) {
  ARN_TRY(heap->Spend(text.size()));
  TextBuilder builder(heap);
  bool after_cased = false;
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = ReadValidUtf8(text.data() + i);
    builder.MakeFrom(text.substr(i, c.bytes));
    const bool begins = to == Case::kTitle ? !after_cased : i == 0;
    const bool swaps_up = to == Case::kSwap && IsLowerChar(c.code_point);
    if (to == Case::kUpper || swaps_up) {
      ARN_TRY(AppendUpper(c.code_point, &builder));
    } else if ((to == Case::kTitle || to == Case::kCapitalize) && begins) {
      ARN_TRY(AppendTitle(c.code_point, &builder));
    } else {
      ARN_TRY(AppendLower(text, i, c.code_point, &builder));
    }
    after_cased = IsCased(c.code_point);
    i += c.bytes;
  }
  *out = builder.ToValue();
  return Status::kOk;
}

bool IsAll(std::string_view text, CharTest test) {
  if (test == CharTest::kLower || test == CharTest::kUpper || test == CharTest::kTitle) {
    return IsCaseOf(text, test);
  }
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = ReadValidUtf8(text.data() + i);
    if (!Passes(c.code_point, test)) return false;
    i += c.bytes;
  }
  return !text.empty() || test == CharTest::kAscii;
}

size_t LineEnd(std::string_view text, size_t begin, size_t* next) {
  for (size_t i = begin; i < text.size();) {
    const Utf8Char c = ReadValidUtf8(text.data() + i);
    const uint32_t u = c.code_point;
    if ((u >= 0x0A && u <= 0x0D) || (u >= 0x1C && u <= 0x1E) || u == 0x85 || u == 0x2028 ||
        u == 0x2029) {
      *next = i + c.bytes;
      if (u == 0x0D && *next < text.size() && text[*next] == '\n') ++*next;
      return i;
    }
    i += c.bytes;
  }
  *next = text.size();
  return text.size();
}

}  // namespace arn::chat

#include "runtime/constrain/code_points.h"

#include <algorithm>

#include "platform/base/arith.h"
#include "runtime/text/unicode_data.h"

namespace arn {
namespace {

// A number is written as digits of a few bits each, the highest first. A level is one digit.
struct Level {
  uint8_t bits;
  uint8_t first;       // the byte of digit 0; of hexadecimal digits, the value of digit 0
  bool is_hex;         // in either case
  const char* prefix;  // before the digit
};
struct Encoding {
  uint32_t offset;       // of the number that is written: code point - offset
  uint32_t first, last;  // code points written so
  uint32_t n_levels;
  Level levels[6];
};

// UTF-8, Unicode 15, table 3-7 (shortest forms; no surrogates).
constexpr Level kNext = {6, 0x80, false, ""};
constexpr Encoding kUtf8[] = {
    {0, 0, 0x7F, 1, {{7, 0, false, ""}}},
    {0, 0x80, 0x7FF, 2, {{5, 0xC0, false, ""}, kNext}},
    {0, 0x800, 0xD7FF, 3, {{4, 0xE0, false, ""}, kNext, kNext}},
    {0, 0xE000, 0xFFFF, 3, {{4, 0xE0, false, ""}, kNext, kNext}},
    {0, 0x10000, kMaxCodePoint, 4, {{3, 0xF0, false, ""}, kNext, kNext, kNext}},
};
// JSON, RFC 8259, section 7.
constexpr Level kHex = {4, 0, true, ""};
constexpr Encoding kJsonEscapes[] = {
    {0, 0, 0xD7FF, 4, {{4, 0, true, "\\u"}, kHex, kHex, kHex}},
    {0, 0xE000, 0xFFFF, 4, {{4, 0, true, "\\u"}, kHex, kHex, kHex}},
    {0x10000,
     0x10000,
     kMaxCodePoint,
     6,
     {{2, 0x8, true, "\\ud"}, kHex, kHex, {2, 0xC, true, "\\ud"}, kHex, kHex}},
};
struct ShortEscape {
  uint8_t code_point, letter;
};
constexpr ShortEscape kShortEscapes[] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'\b', 'b'},
                                         {'\f', 'f'}, {'\n', 'n'},  {'\r', 'r'}, {'\t', 't'}};

class TrieBuilder {
 public:
  TrieBuilder(Terms* terms, const Encoding& encoding) : terms_(terms), encoding_(encoding) {}

  // The numbers in `ranges` whose digits before `level` make `base`, from that level on.
  Term Build(Span<const CodePointRange> ranges, uint32_t level, uint32_t base) {
    if (level == encoding_.n_levels) return kEmpty;
    const uint32_t shift = BitsAfter(level);
    const uint32_t n_digits = 1u << encoding_.levels[level].bits;
    ByteSet whole;  // digits after which every number belongs to the ranges
    Term parts[65];
    size_t n_parts = 0, i = 0;
    for (uint32_t digit = 0; digit < n_digits; ++digit) {
      const uint32_t low = base + (digit << shift);
      const uint32_t high = low + ((1u << shift) - 1);
      while (i < ranges.size() && EndsBefore(ranges[i], low)) ++i;
      if (i == ranges.size()) break;
      const CodePointRange range = Clip(ranges[i]);
      if (range.first > high) continue;
      if (range.first <= low && range.last >= high) {
        AddDigit(level, digit, &whole);
        continue;
      }
      ByteSet bytes;
      AddDigit(level, digit, &bytes);
      const Term rest = Build(ranges.subspan(i, ranges.size() - i), level + 1, low);
      parts[n_parts++] = WithPrefix(level, terms_->Concat(terms_->Bytes(bytes), rest));
    }
    if (!whole.IsEmpty()) {
      parts[n_parts++] = WithPrefix(level, terms_->Concat(terms_->Bytes(whole), All(level + 1)));
    }
    return terms_->Either({parts, n_parts});
  }

 private:
  // As numbers, and none that this encoding does not write.
  CodePointRange Clip(const CodePointRange& range) const {
    const uint32_t first = Max(range.first, encoding_.first);
    const uint32_t last = Min(range.last, encoding_.last);
    if (first > last) return {1, 0};
    return {first - encoding_.offset, last - encoding_.offset};
  }
  bool EndsBefore(const CodePointRange& range, uint32_t number) const {
    const CodePointRange clipped = Clip(range);
    return clipped.first > clipped.last || clipped.last < number;
  }
  uint32_t BitsAfter(uint32_t level) const {
    uint32_t bits = 0;
    for (uint32_t i = level + 1; i < encoding_.n_levels; ++i) bits += encoding_.levels[i].bits;
    return bits;
  }
  void AddDigit(uint32_t level, uint32_t digit, ByteSet* bytes) const {
    const Level& l = encoding_.levels[level];
    const uint32_t value = l.first + digit;
    if (!l.is_hex) {
      bytes->Add(static_cast<uint8_t>(value));
    } else if (value < 10) {
      bytes->Add(static_cast<uint8_t>('0' + value));
    } else {
      bytes->Add(static_cast<uint8_t>('a' + value - 10));
      bytes->Add(static_cast<uint8_t>('A' + value - 10));
    }
  }
  // The `d` of surrogates may be a capital too.
  Term WithPrefix(uint32_t level, Term term) {
    const char* prefix = encoding_.levels[level].prefix;
    size_t n = 0;
    while (prefix[n] != '\0') ++n;
    for (; n > 0; --n) {
      ByteSet byte = ByteSet::Of(static_cast<uint8_t>(prefix[n - 1]));
      if (prefix[n - 1] == 'd') byte.Add('D');
      term = terms_->Concat(terms_->Bytes(byte), term);
    }
    return term;
  }
  // All numbers from `level` on.
  Term All(uint32_t level) {
    Term term = kEmpty;
    for (uint32_t l = encoding_.n_levels; l-- > level;) {
      ByteSet bytes;
      for (uint32_t digit = 0; digit < 1u << encoding_.levels[l].bits; ++digit) {
        AddDigit(l, digit, &bytes);
      }
      term = WithPrefix(l, terms_->Concat(terms_->Bytes(bytes), term));
    }
    return term;
  }

  Terms* terms_;
  const Encoding& encoding_;
};

// Names of general categories: of one letter, all that begin with it.
struct CategoryName {
  StringView brief, full;
  Category category;
};
constexpr CategoryName kCategoryNames[] = {
    {"Lu", "Uppercase_Letter", Category::kLu},
    {"Ll", "Lowercase_Letter", Category::kLl},
    {"Lt", "Titlecase_Letter", Category::kLt},
    {"Lm", "Modifier_Letter", Category::kLm},
    {"Lo", "Other_Letter", Category::kLo},
    {"Mn", "Nonspacing_Mark", Category::kMn},
    {"Mc", "Spacing_Mark", Category::kMc},
    {"Me", "Enclosing_Mark", Category::kMe},
    {"Nd", "Decimal_Number", Category::kNd},
    {"Nl", "Letter_Number", Category::kNl},
    {"No", "Other_Number", Category::kNo},
    {"Pc", "Connector_Punctuation", Category::kPc},
    {"Pd", "Dash_Punctuation", Category::kPd},
    {"Ps", "Open_Punctuation", Category::kPs},
    {"Pe", "Close_Punctuation", Category::kPe},
    {"Pi", "Initial_Punctuation", Category::kPi},
    {"Pf", "Final_Punctuation", Category::kPf},
    {"Po", "Other_Punctuation", Category::kPo},
    {"Sm", "Math_Symbol", Category::kSm},
    {"Sc", "Currency_Symbol", Category::kSc},
    {"Sk", "Modifier_Symbol", Category::kSk},
    {"So", "Other_Symbol", Category::kSo},
    {"Zs", "Space_Separator", Category::kZs},
    {"Zl", "Line_Separator", Category::kZl},
    {"Zp", "Paragraph_Separator", Category::kZp},
    {"Cc", "Control", Category::kCc},
    {"Cf", "Format", Category::kCf},
    {"Co", "Private_Use", Category::kCo},
    {"Cn", "Unassigned", Category::kCn},
    {"Cs", "Surrogate", Category::kCs},
    {"Nd", "digit", Category::kNd},
    {"Cc", "cntrl", Category::kCc},
};
struct GroupName {
  StringView brief, full;
};
constexpr GroupName kGroupNames[] = {
    {"L", "Letter"},    {"M", "Mark"},  {"N", "Number"}, {"P", "Punctuation"},   {"S", "Symbol"},
    {"Z", "Separator"}, {"C", "Other"}, {"P", "punct"},  {"M", "Combining_Mark"}};

// Long ranges of one category, sorted: ideographs, syllables, surrogates, private use, unassigned.
constexpr CodePointRange kUniform[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},    {0xAC00, 0xD7A3},
                                       {0xD800, 0xDFFF},   {0xE000, 0xF8FF},    {0x17000, 0x187F7},
                                       {0x20000, 0x2A6DF}, {0x2B820, 0x2CEA1},  {0x2CEB0, 0x2EBE0},
                                       {0x30000, 0x3134A}, {0x33480, 0xDFFFF},  {0xE01F0, 0xEFFFF},
                                       {0xF0000, 0xFFFFD}, {0x100000, 0x10FFFD}};

constexpr uint32_t Bit(Category category) { return 1u << static_cast<uint32_t>(category); }

uint32_t CategoriesOf(StringView name) {
  uint32_t categories = 0;
  for (const CategoryName& c : kCategoryNames) {
    if (name == c.brief || name == c.full) categories |= Bit(c.category);
  }
  if (name == StringView("LC") || name == StringView("Cased_Letter")) {
    return Bit(Category::kLu) | Bit(Category::kLl) | Bit(Category::kLt);
  }
  for (const GroupName& group : kGroupNames) {
    if (!(name == group.brief) && !(name == group.full)) continue;
    for (const CategoryName& c : kCategoryNames) {
      if (c.brief.data[0] == group.brief.data[0]) categories |= Bit(c.category);
    }
  }
  return categories;
}

}  // namespace

Span<const uint32_t> PushCategories(Terms* terms) {
  const uint32_t mark = terms->PushedMark();
  Category before = CategoryOf(0);
  terms->Push(static_cast<uint32_t>(before));
  uint32_t c = 1;
  const auto scan_to = [&](uint32_t end) {
    for (; c < end; ++c) {
      const Category category = CategoryOf(c);
      if (category == before) continue;
      terms->Push(c << 8 | static_cast<uint32_t>(category));
      before = category;
    }
  };
  for (const CodePointRange& range : kUniform) {
    scan_to(range.first + 1);
    c = range.last + 1;
  }
  scan_to(kMaxCodePoint + 1);
  if (terms->failed()) return {};
  return {terms->PushedSince(mark), terms->PushedMark() - mark};
}

bool CodePoints::AddProperty(StringView name, Span<const uint32_t> categories) {
  uint32_t wanted = CategoriesOf(name);
  if (name == StringView("Any")) wanted = 0xFFFFFFFFu;
  if (name == StringView("Assigned")) wanted = ~Bit(Category::kCn);
  if (name == StringView("ASCII")) {
    Add(0, 0x7F);
    return true;
  }
  for (size_t i = 0; i < categories.size(); ++i) {
    if ((wanted >> (categories[i] & 0xFF) & 1) == 0) continue;
    const bool is_last = i + 1 == categories.size();
    Add(categories[i] >> 8, is_last ? kMaxCodePoint : (categories[i + 1] >> 8) - 1);
  }
  return wanted != 0;
}

uint32_t CodePoints::Normalize(uint32_t from) {
  auto* ranges = reinterpret_cast<CodePointRange*>(terms_->PushedSince(from));
  const uint32_t n = (terms_->PushedMark() - from) / 2;
  std::sort(ranges, ranges + n,
            [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
  uint32_t n_out = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (n_out > 0 && ranges[i].first <= ranges[n_out - 1].last + 1) {
      ranges[n_out - 1].last = Max(ranges[n_out - 1].last, ranges[i].last);
    } else {
      ranges[n_out++] = ranges[i];
    }
  }
  terms_->ReleaseTo(from + n_out * 2);
  return n_out;
}

// In place: the gaps are at most one more than the ranges.
void CodePoints::Negate(uint32_t from) {
  const uint32_t n = Normalize(from);
  Add(0, 0);
  if (terms_->failed()) return;
  auto* ranges = reinterpret_cast<CodePointRange*>(terms_->PushedSince(from));
  uint32_t next = 0, n_out = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const CodePointRange range = ranges[i];
    if (range.first > next) ranges[n_out++] = {next, range.first - 1};
    next = range.last + 1;
  }
  if (next <= kMaxCodePoint) ranges[n_out++] = {next, kMaxCodePoint};
  terms_->ReleaseTo(from + n_out * 2);
}

Span<const CodePointRange> CodePoints::Ranges() {
  const uint32_t n = Normalize(mark_);
  return {reinterpret_cast<const CodePointRange*>(terms_->PushedSince(mark_)), n};
}

namespace {

bool Has(Span<const CodePointRange> ranges, uint32_t code_point) {
  for (const CodePointRange& range : ranges) {
    if (code_point >= range.first && code_point <= range.last) return true;
  }
  return false;
}

// The escapes of one letter; those that kCanonicalJson needs, or all.
Term ShortEscapes(Terms* terms, Span<const CodePointRange> ranges, bool needed_only) {
  ByteSet letters;
  for (const ShortEscape& escape : kShortEscapes) {
    if (needed_only && escape.code_point == '/') continue;
    if (Has(ranges, escape.code_point)) letters.Add(escape.letter);
  }
  return terms->Concat(terms->Byte('\\'), terms->Bytes(letters));
}

// \u00xx for the controls that have no escape of one letter.
Term ControlEscapes(Terms* terms, Span<const CodePointRange> ranges) {
  ByteSet digits[2];
  for (uint32_t c = 0; c < 0x20; ++c) {
    bool is_short = false;
    for (const ShortEscape& escape : kShortEscapes) is_short |= escape.code_point == c;
    const auto digit = static_cast<uint8_t>(c % 16 < 10 ? '0' + c % 16 : 'a' + c % 16 - 10);
    if (!is_short && Has(ranges, c)) digits[c / 16].Add(digit);
  }
  const Term numbers[] = {terms->Concat(terms->Byte('0'), terms->Bytes(digits[0])),
                          terms->Concat(terms->Byte('1'), terms->Bytes(digits[1]))};
  return terms->Concat(terms->Literal("\\u00"), terms->Either(numbers));
}

}  // namespace

Term CharacterTerm(Terms* terms, Span<const CodePointRange> ranges, TextForm form) {
  Term forms[16];
  size_t n = 0;
  const bool is_json = form != TextForm::kUtf8;
  for (const Encoding& encoding : kUtf8) {
    Term term = TrieBuilder(terms, encoding).Build(ranges, 0, 0);
    if (is_json && encoding.last == 0x7F && term != kNothing) {
      ByteSet plain = ByteSet::Range(0x20, 0x7F);
      plain.Remove('"');
      plain.Remove('\\');
      plain &= terms->FirstBytes(term);
      term = terms->Bytes(plain);
    }
    forms[n++] = term;
  }
  if (form == TextForm::kJsonString) {
    for (const Encoding& encoding : kJsonEscapes) {
      forms[n++] = TrieBuilder(terms, encoding).Build(ranges, 0, 0);
    }
    forms[n++] = ShortEscapes(terms, ranges, /*needed_only=*/false);
  } else if (form == TextForm::kCanonicalJson) {
    forms[n++] = ShortEscapes(terms, ranges, /*needed_only=*/true);
    forms[n++] = ControlEscapes(terms, ranges);
  }
  return terms->Either({forms, n});
}

Term AnyCharacter(Terms* terms, TextForm form) {
  const CodePointRange all[] = {{0, kMaxCodePoint}};
  return CharacterTerm(terms, all, form);
}

}  // namespace arn

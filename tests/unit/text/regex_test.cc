// Matches found in windows of a text, against PCRE2's in the whole text.
#include "runtime/text/regex.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "pcre2.h"

namespace arn::test {
namespace {

using Matches = std::vector<std::pair<size_t, size_t>>;

const char* const kPatterns[] = {
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
    "(?i:'s|'t)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}]+[\\p{Ll}]*|\\p{N}|\\s+",
    "a*b",
    "a*",
    "x?",
    "(?m:^)a",
    "a(?m:$)",
    "(?m:^)",
    "(?m:$)",
    "\\b",
    "a\\b",
    "\\Ba",
    "\\n+",
    "(?<=a)\\n",
    "(?<!a)b",
    "(?<=\\n)(?m:^)",
    "a+(?=\\n)",
    "a+(?!a)",
    "aa\\z",
    "\\Aa",
    "\\n\\Z",
    "(?:ab|a)+",
    "[^b]{100,200}",
    "é+",
    "(?s:.{130})",
    ".{3,}",
    "b.*\\n",
};

Matches Whole(const char* pattern, const std::string& text) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NO_START_OPTIMIZE, &error, &offset, context);
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data);
  Matches found;
  size_t last_end = SIZE_MAX;
  for (size_t at = 0; at <= text.size();) {
    if (pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at, 0, data,
                    nullptr) < 0) {
      break;
    }
    at = range[1];
    if (range[0] == range[1]) {
      // Not directly after the previous match; the next search starts one character later.
      if (range[1] != last_end) found.emplace_back(range[0], range[1]);
      last_end = range[1];
      do ++at;
      while (at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
      continue;
    }
    found.emplace_back(range[0], range[1]);
    last_end = at;
  }
  pcre2_match_data_free(data);
  pcre2_code_free(code);
  pcre2_compile_context_free(context);
  return found;
}

Matches Windows(const char* pattern, const std::string& text) {
  std::vector<max_align_t> memory(
      (Regex::ArenaBytes(200 + std::string(pattern).size()) + RegexMatcher::kScratchBytes + 4096) /
      sizeof(max_align_t));
  Arena arena({reinterpret_cast<std::byte*>(memory.data()), memory.size() * sizeof(max_align_t)});
  Diag diag;
  Regex regex;
  EXPECT_EQ(regex.Compile({pattern, std::string(pattern).size()}, "it", &arena, &diag), Status::kOk)
      << diag.text();
  WorkBudget budget(1 << 24, nullptr, nullptr);
  RegexMatcher matcher;
  EXPECT_EQ(matcher.Init(&arena, &budget), Status::kOk);
  RegexIterator matches(regex, &matcher, {text.data(), text.size()});
  Matches found;
  for (;;) {
    bool is_found = false;
    size_t begin = 0, end = 0;
    EXPECT_EQ(matches.Next(&is_found, &begin, &end, &diag), Status::kOk) << diag.text();
    if (!is_found) return found;
    found.emplace_back(begin, end);
  }
}

TEST(Regex, Windows_LengthsAroundTheirs_AsTheWholeText) {
  for (const char* pattern : kPatterns) {
    for (size_t n = 120; n < 136; ++n) {
      for (const char* tail : {"", "b", "\n", "\nab", "\n\nA", "é", " a1b'S", "\n   ", "''"}) {
        for (const char* unit : {"a", "A", " ", "\n", "é", "ab", "a\n", "日本"}) {
          std::string text;
          while (text.size() < n) text += unit;
          text += tail;
          ASSERT_EQ(Windows(pattern, text), Whole(pattern, text))
              << pattern << ": " << n << " of " << unit << ", then " << tail;
        }
      }
    }
  }
}

TEST(Regex, Windows_MixedTexts_AsTheWholeText) {
  uint64_t state = 7;
  const auto below = [&state](uint64_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
  };
  static const char* const kUnits[] = {"a", "b", "A", " ", "\n", "é", "1", "'s", "日", "\r", "."};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    while (text.size() < 700) {
      const char* unit = kUnits[below(std::size(kUnits))];
      for (uint64_t n = below(8) == 0 ? 1 + below(200) : 1; n > 0; --n) text += unit;
    }
    for (const char* pattern : kPatterns) {
      ASSERT_EQ(Windows(pattern, text), Whole(pattern, text)) << pattern << ": " << text;
    }
  }
}

}  // namespace
}  // namespace arn::test

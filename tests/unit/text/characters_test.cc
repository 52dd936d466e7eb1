// The character tables without utf8proc equal those with it.
#include "characters.h"

#include <gtest/gtest.h>

#include <string>

#include "platform/base/status.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

constexpr uint32_t kEnd = 0x110000;

bool IsSurrogate(uint32_t c) { return c >= 0xD800 && c < 0xE000; }

std::string Utf8(std::initializer_list<uint32_t> characters) {
  std::string out;
  for (const uint32_t c : characters) {
    char bytes[4];
    out.append(bytes, WriteUtf8(c, bytes));
  }
  return out;
}

TEST(CharactersTest, Classes_OfAllThatBothKnow_AreTheSame) {
  const Characters& full = FullCharacters();
  const Characters& minimal = MinimalCharacters();
  uint32_t known = 0;
  for (uint32_t c = 0; c < kEnd; ++c) {
    if (!minimal.is_known(c) || !full.is_known(c)) continue;
    ++known;
    EXPECT_EQ(minimal.is_word(c), full.is_word(c)) << std::hex << c;
    EXPECT_EQ(minimal.is_numeric(c), full.is_numeric(c)) << std::hex << c;
    EXPECT_EQ(minimal.is_punctuation(c), full.is_punctuation(c)) << std::hex << c;
    EXPECT_EQ(minimal.is_mark(c), full.is_mark(c)) << std::hex << c;
    EXPECT_EQ(minimal.is_nonspacing_mark(c), full.is_nonspacing_mark(c)) << std::hex << c;
    EXPECT_EQ(minimal.is_control(c), full.is_control(c)) << std::hex << c;
  }
  EXPECT_GT(known, 280000u);
}

TEST(CharactersTest, Lowercase_OfAllThatBothKnow_IsTheSame) {
  for (uint32_t c = 0; c < kEnd; ++c) {
    if (!MinimalCharacters().is_known(c) || !FullCharacters().is_known(c)) continue;
    uint32_t full[2] = {}, minimal[2] = {};
    EXPECT_EQ(MinimalCharacters().to_lowercase(c, minimal), FullCharacters().to_lowercase(c, full));
    EXPECT_EQ(minimal[0], full[0]) << std::hex << c;
    EXPECT_EQ(minimal[1], full[1]) << std::hex << c;
  }
}

TEST(CharactersTest, Classes_OfWhatOnlyOneKnows_AreNone) {
  for (uint32_t c = 0; c < kEnd; ++c) {
    if (MinimalCharacters().is_known(c)) continue;
    EXPECT_FALSE(MinimalCharacters().is_word(c)) << std::hex << c;
    EXPECT_FALSE(MinimalCharacters().is_mark(c)) << std::hex << c;
  }
}

TEST(CharactersTest, Graphemes_Kinds_AreTheSame) {
  const std::string texts[] = {
      "a",
      "ab",
      "\r\nx",
      Utf8({'e', 0x301, 'x'}),
      Utf8({0x1F468, 0x200D, 0x1F469, 0x200D, 0x1F467, 'x'}),  // a ZWJ family
      Utf8({0x1F1E9, 0x1F1EA, 0x1F1EB, 0x1F1F7}),              // two flags
      Utf8({0x1100, 0x1161, 0x11A8, 'x'}),                     // a Hangul syllable of jamo
      Utf8({0x1F44D, 0x1F3FD, 'x'}),                           // an emoji with a skin tone
      Utf8({0x0E01, 0x0E33, 'x'}),
      Utf8({0x0600, '1'}),
  };
  for (const std::string& text : texts) {
    EXPECT_EQ(MinimalCharacters().grapheme_bytes(text), FullCharacters().grapheme_bytes(text))
        << text;
  }
  EXPECT_EQ(MinimalCharacters().grapheme_bytes(texts[5]), 8u);
}

// Text accepted without normal forms must already be normalised.
TEST(CharactersTest, NormalForms_OfCharactersThatMinimalTakes_AreTheText) {
  for (const bool is_compatible : {false, true}) {
    uint32_t taken = 0;
    for (uint32_t c = 1; c < kEnd; ++c) {
      if (IsSurrogate(c)) continue;
      // After a letter, with which a combining mark would compose.
      const std::string text = Utf8({'a', c});
      bool is_same = false;
      const uint32_t status = MinimalCharacters().normalize(is_compatible, text, &is_same);
      if (status == static_cast<uint32_t>(Status::kUnsupported)) continue;
      ASSERT_EQ(status, 0u);
      EXPECT_TRUE(is_same);
      ++taken;
      EXPECT_EQ(FullCharacters().normalize(is_compatible, text, &is_same), 0u);
      EXPECT_TRUE(is_same) << std::hex << c;
    }
    EXPECT_EQ(taken, is_compatible ? 0x9Fu : 0x2FFu);
  }
}

}  // namespace
}  // namespace arn

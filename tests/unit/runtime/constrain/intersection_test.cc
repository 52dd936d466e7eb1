// Intersections: their normal form, and whether they have a string, with and without a search.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "constrain_fixture.h"
#include "runtime/constrain/terms.h"

namespace arn {
namespace {

using test::AllStrings;
using test::Block;

// Any x's, the text, any x's.
Term Contains(Terms* terms, Term x, const std::string& text) {
  const Term any = terms->Repeat(x, 0, kUnbounded);
  const Term word = terms->Literal({text.data(), text.size()});
  return terms->Concat(any, terms->Concat(word, any));
}

TEST(Intersection, EqualOnes_AreOneTerm) {
  Block block(1 << 20);
  Terms& terms = *Terms::Create(block.span());
  const Term x = terms.Bytes(ByteSet::Range('a', 'z'));
  const Term a = Contains(&terms, x, "a"), b = Contains(&terms, x, "b"),
             c = Contains(&terms, x, "c");
  EXPECT_EQ(terms.Both(a, terms.Both(b, c)), terms.Both(terms.Both(c, a), b));
  EXPECT_EQ(terms.Both(terms.Both(a, b), terms.Both(b, a)), terms.Both(a, b));
  EXPECT_EQ(terms.Both(terms.AnyBytes(), terms.Both(a, b)), terms.Both(a, b));
  EXPECT_EQ(terms.Both(terms.Both(a, b), kEmpty), kNothing);
  EXPECT_EQ(
      terms.Both(terms.Bytes(ByteSet::Range('a', 'm')), terms.Bytes(ByteSet::Range('k', 'z'))),
      terms.Bytes(ByteSet::Range('k', 'm')));
  EXPECT_FALSE(terms.failed());
}

TEST(Intersection, WhatWasFound_IsForgotten) {
  Block block(1 << 20);
  Terms& terms = *Terms::Create(block.span());
  const Term x = terms.Bytes(ByteSet::Range('a', 'z'));
  const Term any = terms.Repeat(x, 0, kUnbounded);
  EXPECT_EQ(terms.Either(any, Contains(&terms, x, "ab")), any);
  Term state = Contains(&terms, x, "ab");
  for (const char c : {'x', 'a', 'b'}) state = terms.Derive(state, static_cast<uint8_t>(c));
  EXPECT_EQ(state, any);
  // Strings that are not made of x's stay.
  const Term other = terms.Concat(any, terms.Byte('1'));
  EXPECT_NE(terms.Either(any, other), any);
  EXPECT_TRUE(terms.IsNullable(terms.Derive(terms.Either(any, other), '1')));
}

TEST(Intersection, OpenOver_IsWhatStringsAreSoughtIn) {
  Block block(1 << 20);
  Terms& terms = *Terms::Create(block.span());
  const Term x = terms.Bytes(ByteSet::Range('a', 'z'));
  const Term y = terms.Bytes(ByteSet::Range('0', '9'));
  const Term ab = Contains(&terms, x, "ab");
  EXPECT_EQ(terms.OpenOver(ab), x);
  EXPECT_EQ(terms.OpenOver(terms.Repeat(x, 3, kUnbounded)), x);
  EXPECT_EQ(terms.OpenOver(terms.Both(ab, Contains(&terms, x, "cd"))), x);
  EXPECT_EQ(terms.OpenOver(terms.Either(terms.Byte('!'), ab)), x);
  EXPECT_EQ(terms.OpenOver(Contains(&terms, x, "a1")), kEmpty);  // not made of x's
  EXPECT_EQ(terms.OpenOver(terms.Repeat(x, 3, 9)), kEmpty);
  EXPECT_EQ(terms.OpenOver(terms.Concat(terms.Repeat(x, 0, kUnbounded), terms.Byte('b'))), kEmpty);
  const Term prefixed = terms.Concat(terms.Byte('b'), terms.Repeat(x, 0, kUnbounded));
  EXPECT_EQ(terms.OpenOver(prefixed), kEmpty);
  const Term digits = terms.Both(terms.Either(ab, Contains(&terms, y, "1")), ab);
  EXPECT_TRUE(digits == kNothing || terms.OpenOver(digits) != y);
}

// The states of random intersections of texts that are sought, counts and anchored texts, after
// every beginning: they have a string exactly if one of all short strings is theirs.
TEST(Intersection, HasAString_AsAllShortOnesSay) {
  constexpr size_t kLongest = 8, kBeginning = 3;
  const std::vector<std::string> texts = AllStrings("ab", kLongest);
  Block block(4 << 20);
  std::mt19937 rng(5);
  const auto draw = [&rng](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
  int n_nothing = 0;
  for (int i = 0; i < 400; ++i) {
    Terms& terms = *Terms::Create(block.span());
    const Term x = terms.Bytes(ByteSet::Range('a', 'b'));
    const Term any = terms.Repeat(x, 0, kUnbounded);
    // None needs more than kLongest bytes, as long as there are few, but with a minimum above it.
    const uint32_t most = 1 + draw(kLongest);
    Term both = terms.Repeat(x, draw(most + 1), most);
    std::string text = "at most " + std::to_string(most);
    for (uint32_t n = 1 + draw(4); n > 0; --n) {
      std::string word;
      for (uint32_t k = 1 + draw(3); k > 0; --k) word += draw(2) == 0 ? 'a' : 'b';
      const Term literal = terms.Literal({word.data(), word.size()});
      switch (draw(5)) {
        case 0: both = terms.Both(both, terms.Concat(literal, any)); break;
        case 1: both = terms.Both(both, terms.Concat(any, literal)); break;
        case 2: both = terms.Without(both, Contains(&terms, x, word)); break;
        default: both = terms.Both(both, Contains(&terms, x, word)); break;
      }
      text += ", " + word;
    }
    ASSERT_FALSE(terms.failed()) << text;
    n_nothing += both == kNothing ? 1 : 0;
    for (const std::string& beginning : AllStrings("ab", kBeginning)) {
      Term state = both;
      for (const char c : beginning) state = terms.Derive(state, static_cast<uint8_t>(c));
      const bool has_string = std::any_of(texts.begin(), texts.end(), [&](const std::string& all) {
        return all.compare(0, beginning.size(), beginning) == 0 &&
               test::TermMatches(&terms, both, all);
      });
      ASSERT_EQ(has_string, state != kNothing) << text << " after " << beginning;
    }
  }
  EXPECT_GT(n_nothing, 20);
}

// Sixty texts that are sought at the same time: each byte makes a few terms, none of which is the
// result of a search.
TEST(Intersection, OfManySoughtTexts_TakesFewTerms) {
  Block block(4 << 20);
  Terms& terms = *Terms::Create(block.span());
  const Term x = terms.Bytes(ByteSet::Range('a', 'z'));
  Term both = terms.AnyBytes();
  for (int i = 0; i < 60; ++i) {
    const std::string text = {static_cast<char>('a' + i % 26),
                              static_cast<char>('a' + (i * 7 + i / 26) % 26)};
    both = terms.Both(both, Contains(&terms, x, text));
  }
  ASSERT_NE(both, kNothing);
  const uint32_t before = terms.n_terms();
  EXPECT_LT(before, 1000u);
  for (int first = 'a'; first <= 'z'; ++first) {
    const Term state = terms.Derive(both, static_cast<uint8_t>(first));
    for (int second = 'a'; second <= 'z'; ++second) {
      ASSERT_NE(terms.Derive(state, static_cast<uint8_t>(second)), kNothing);
    }
  }
  EXPECT_LT(terms.n_terms() - before, 4u * 26 * 26);
  EXPECT_FALSE(terms.failed());
}

}  // namespace
}  // namespace arn

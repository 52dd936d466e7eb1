// Terms: builders, derivatives and collection, against a plain matcher over all short strings.
#include "runtime/constrain/terms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "constrain_fixture.h"

namespace arn {
namespace {

using test::AllStrings;
using test::Block;
using test::Expression;
using test::Extra;
using test::Matches;
using test::RandomExpression;
using test::TermMatches;

TEST(Terms, Literal_HasOneString) {
  Block block(Terms::kMinBytes);
  Terms& terms = *Terms::Create(block.span());
  const Term term = terms.Literal("ab");
  EXPECT_TRUE(TermMatches(&terms, term, "ab"));
  for (const char* text : {"", "a", "b", "abc", "ba"}) {
    EXPECT_FALSE(TermMatches(&terms, term, text)) << text;
  }
}

TEST(Terms, EqualTerms_AreOneTerm) {
  Block block(Terms::kMinBytes);
  Terms& terms = *Terms::Create(block.span());
  const Term a = terms.Byte('a'), b = terms.Byte('b'), c = terms.Byte('c');
  EXPECT_EQ(terms.Concat(terms.Concat(a, b), c), terms.Concat(a, terms.Concat(b, c)));
  EXPECT_EQ(terms.Either(a, terms.Either(b, c)), terms.Either(terms.Either(c, a), b));
  EXPECT_EQ(terms.Either(a, kNothing), a);
  EXPECT_EQ(terms.Concat(a, kNothing), kNothing);
  EXPECT_EQ(terms.Concat(kEmpty, a), a);
  EXPECT_EQ(terms.Repeat(terms.Repeat(a, 0, kUnbounded), 0, kUnbounded),
            terms.Repeat(a, 0, kUnbounded));
  EXPECT_EQ(terms.Repeat(terms.Repeat(a, 0, 65536), 0, 65535), terms.Repeat(a, 0, 4294901760u));
  EXPECT_EQ(terms.Both(a, b), kNothing);
  EXPECT_EQ(terms.Complement(terms.Complement(a)), a);
  EXPECT_EQ(terms.Complement(terms.AnyBytes()), kNothing);
  EXPECT_FALSE(terms.failed());
}

TEST(Terms, Repeat_CountsWithoutExpanding) {
  Block block(Terms::kMinBytes);
  Terms& terms = *Terms::Create(block.span());
  Term term = terms.Repeat(terms.Byte('a'), 1000000, 4000000000u);
  const uint32_t before = terms.n_terms();
  for (int i = 0; i < 10; ++i) term = terms.Derive(term, 'a');
  EXPECT_EQ(term, terms.Repeat(terms.Byte('a'), 999990, 3999999990u));
  EXPECT_LE(terms.n_terms(), before + 20);
}

TEST(Terms, FirstBytes_AreThoseWithADerivative) {
  Block block(Terms::kMinBytes);
  Terms& terms = *Terms::Create(block.span());
  const Term term = terms.Concat(terms.Optional(terms.Byte('a')),
                                 terms.Either(terms.Literal("bc"), terms.Literal("de")));
  const ByteSet first = terms.FirstBytes(term);
  EXPECT_EQ(3u, first.Count());
  for (const char c : {'a', 'b', 'd'}) EXPECT_TRUE(first.Has(static_cast<uint8_t>(c)));
}

TEST(Terms, Rules_MatchNestedBrackets) {
  Block block(Terms::kMinBytes);
  Terms& terms = *Terms::Create(block.span());
  const Term value = terms.NewRule("value");
  terms.Define(value,
               terms.Either(terms.Byte('x'),
                            terms.Concat(terms.Byte('['), terms.Concat(value, terms.Byte(']')))));
  Diag diag;
  ASSERT_EQ(Status::kOk, terms.Resolve(value, &diag)) << diag.text();
  EXPECT_FALSE(terms.IsRegular(value));
  for (const size_t depth : {0u, 1u, 5u, 100u}) {
    const std::string text = std::string(depth, '[') + "x" + std::string(depth, ']');
    EXPECT_TRUE(TermMatches(&terms, value, text)) << text;
    EXPECT_FALSE(TermMatches(&terms, value, text + "]")) << text;
    EXPECT_FALSE(TermMatches(&terms, value, "[" + text)) << text;
  }
}

TEST(Terms, Define_RemovesLeftRecursion) {
  Block block(Terms::kMinBytes);
  Terms& terms = *Terms::Create(block.span());
  const Term sum = terms.NewRule("sum");
  terms.Define(sum, terms.Either(terms.Concat(sum, terms.Literal("+n")), terms.Byte('n')));
  Diag diag;
  ASSERT_EQ(Status::kOk, terms.Resolve(sum, &diag)) << diag.text();
  EXPECT_TRUE(TermMatches(&terms, sum, "n"));
  EXPECT_TRUE(TermMatches(&terms, sum, "n+n+n"));
  EXPECT_FALSE(TermMatches(&terms, sum, "n+"));
  EXPECT_FALSE(TermMatches(&terms, sum, "+n"));
}

TEST(Terms, Resolve_RefusesByTheRulesName) {
  Block block(Terms::kMinBytes);
  Diag diag;
  {
    Terms& terms = *Terms::Create(block.span());
    EXPECT_EQ(Status::kBadArgument, terms.Resolve(terms.NewRule("missing"), &diag));
    EXPECT_STREQ("rule 'missing' is used but not defined", diag.text());
  }
  {
    Terms& terms = *Terms::Create(block.span());
    const Term endless = terms.NewRule("endless");
    terms.Define(endless, terms.Concat(terms.Byte('a'), endless));
    EXPECT_EQ(Status::kBadArgument, terms.Resolve(endless, &diag));
    EXPECT_STREQ("rule 'endless' matches no text: it never ends", diag.text());
  }
  {
    Terms& terms = *Terms::Create(block.span());
    const Term a = terms.NewRule("a"), b = terms.NewRule("b");
    const Term space = terms.Optional(terms.Byte(' '));
    terms.Define(a, terms.Either(terms.Concat(space, b), terms.Byte('x')));
    terms.Define(b, terms.Concat(a, terms.Byte('y')));
    EXPECT_EQ(Status::kBadArgument, terms.Resolve(a, &diag));
    EXPECT_NE(std::string(diag.text()).find("begins with itself"), std::string::npos);
  }
}

// 2^n stacks of an ambiguous grammar share their tops.
TEST(Terms, AmbiguousGrammar_StaysSmall) {
  Block block(256 << 10);
  Terms& terms = *Terms::Create(block.span());
  const Term s = terms.NewRule("s"), x = terms.NewRule("x"), y = terms.NewRule("y");
  terms.Define(x, terms.Concat(s, terms.Byte('x')));
  terms.Define(y, terms.Concat(s, terms.Byte('y')));
  const Term a = terms.Byte('a');
  terms.Define(s, terms.Either(terms.Concat(a, terms.Either(x, y)), terms.Byte('b')));
  Diag diag;
  ASSERT_EQ(Status::kOk, terms.Resolve(s, &diag)) << diag.text();
  std::string text(200, 'a');
  text += "b";
  for (int i = 0; i < 200; ++i) text += "xy"[i * 7 % 2];
  EXPECT_TRUE(TermMatches(&terms, s, text));
  EXPECT_FALSE(terms.failed());
  EXPECT_FALSE(TermMatches(&terms, s, text + "x"));
}

// Strings of "a", "b", "c" in any order, each once: the set is the data.
struct AnyOrder {
  static uint32_t Rest(const CustomArgs& args) { return args.data[0]; }
  static bool IsNullable(const Terms&, const CustomArgs& args) { return Rest(args) == 0; }
  static ByteSet First(Terms*, const CustomArgs& args) {
    ByteSet first;
    for (uint32_t i = 0; i < 3; ++i) {
      if ((Rest(args) >> i & 1) != 0) first.Add(static_cast<uint8_t>('a' + i));
    }
    return first;
  }
  static Term Derive(Terms* terms, const CustomArgs& args, uint8_t byte, ByteSet* same) {
    *same &= ByteSet::Of(byte);
    uint32_t rest[] = {Rest(args) & ~(1u << (byte - 'a'))};
    return terms->Custom(&kOps, {}, rest);
  }
  static Term Expand(Terms* terms, const CustomArgs& args) {
    Term all = Rest(args) == 0 ? kEmpty : kNothing;
    for (uint32_t i = 0; i < 3; ++i) {
      if ((Rest(args) >> i & 1) == 0) continue;
      uint32_t rest[] = {Rest(args) & ~(1u << i)};
      all = terms->Either(all, terms->Concat(terms->Byte(static_cast<uint8_t>('a' + i)),
                                             terms->Custom(&kExpanding, {}, rest)));
    }
    return all;
  }
  static const CustomOps kOps;
  static const CustomOps kExpanding;
};
const CustomOps AnyOrder::kOps = {IsNullable, nullptr, First, Derive, nullptr};
const CustomOps AnyOrder::kExpanding = {IsNullable, Expand, nullptr, nullptr, nullptr};

TEST(Terms, Custom_DerivesOrExpands) {
  Block block(64 << 10);
  for (const CustomOps* ops : {&AnyOrder::kOps, &AnyOrder::kExpanding}) {
    Terms& terms = *Terms::Create(block.span());
    uint32_t all[] = {7};
    const Term term = terms.Concat(terms.Custom(ops, {}, all), terms.Byte('.'));
    Diag diag;
    ASSERT_EQ(Status::kOk, terms.Resolve(term, &diag)) << diag.text();
    for (const std::string& text : AllStrings("abc.", 4)) {
      std::string sorted = text.substr(0, 3);
      std::sort(sorted.begin(), sorted.end());
      EXPECT_EQ(sorted == "abc" && text.size() == 4 && text[3] == '.',
                TermMatches(&terms, term, text))
          << text;
    }
  }
}

TEST(Terms, Cursor_GivesTheDerivatives) {
  Block block(1 << 20);
  std::mt19937 rng(4);
  for (int i = 0; i < 200; ++i) {
    Terms& terms = *Terms::Create(block.span());
    Term state = RandomExpression(&rng, 4, Extra::kBoth).Build(&terms);
    for (int step = 0; step < 6 && state != kNothing; ++step) {
      Terms::Cursor cursor;
      terms.Begin(state, &cursor);
      for (int k = 0; k < 40; ++k) {
        const auto byte = static_cast<uint8_t>('a' + rng() % 5);
        const Term to = terms.Derive(&cursor, byte);
        ASSERT_EQ(terms.Derive(state, byte), to);
      }
      state = terms.Derive(state, static_cast<uint8_t>('a' + rng() % 3));
    }
  }
}

// A custom term that needs one of its parts, which never ends.
bool NeverNullable(const Terms&, const CustomArgs&) { return false; }
Term ItsTerm(Terms*, const CustomArgs& args) { return args.terms[0]; }
bool HasItsTerm(const Terms& terms, const CustomArgs& args) {
  return terms.IsProductive(args.terms[0]);
}
constexpr CustomOps kWrapper = {NeverNullable, ItsTerm, nullptr, nullptr, HasItsTerm};

TEST(Terms, Resolve_AsksCustomTermsWhetherTheyEnd) {
  Block block(Terms::kMinBytes);
  Diag diag;
  for (const bool ends : {false, true}) {
    Terms& terms = *Terms::Create(block.span());
    const Term list = terms.NewRule("list");
    Term parts[] = {terms.Concat(terms.Byte('a'), list)};
    const Term more = terms.Custom(&kWrapper, parts, {});
    terms.Define(list, ends ? terms.Either(more, terms.Byte('.')) : more);
    EXPECT_EQ(ends ? Status::kOk : Status::kBadArgument, terms.Resolve(list, &diag));
    if (ends) {
      EXPECT_TRUE(TermMatches(&terms, list, "aaa."));
      EXPECT_FALSE(TermMatches(&terms, list, "aaa"));
    } else {
      EXPECT_STREQ("rule 'list' matches no text: it never ends", diag.text());
    }
  }
}

TEST(Terms, RandomExpressions_MatchWhatAPlainMatcherMatches) {
  const std::vector<std::string> texts = AllStrings("abc", 4);
  Block block(4 << 20);
  std::mt19937 rng(1);
  for (int i = 0; i < 2000; ++i) {
    Terms& terms = *Terms::Create(block.span());
    const Expression expression = RandomExpression(&rng, 4, Extra::kBoth);
    const Term term = expression.Build(&terms);
    ASSERT_FALSE(terms.failed()) << expression.Text();
    bool any = false;
    for (const std::string& text : texts) {
      const bool expected = Matches(expression, text);
      any |= expected;
      ASSERT_EQ(expected, TermMatches(&terms, term, text)) << expression.Text() << " on " << text;
    }
    // A term that is not kNothing has a string; strings longer than 4 are the only excuse.
    if (term == kNothing) {
      EXPECT_FALSE(any) << expression.Text();
    }
  }
}

// A state that is not kNothing can always be completed: some derivative is nullable.
TEST(Terms, EveryState_CanBeCompleted) {
  Block block(4 << 20);
  std::mt19937 rng(2);
  for (int i = 0; i < 1000; ++i) {
    Terms& terms = *Terms::Create(block.span());
    const Expression expression = RandomExpression(&rng, 4, Extra::kBoth);
    const Term start = expression.Build(&terms);
    std::vector<Term> states = {start};
    for (size_t k = 0; k < states.size() && k < 300; ++k) {
      for (const char c : {'a', 'b', 'c'}) {
        const Term to = terms.Derive(states[k], static_cast<uint8_t>(c));
        if (to != kNothing && std::find(states.begin(), states.end(), to) == states.end()) {
          states.push_back(to);
        }
      }
    }
    if (start == kNothing || states.size() >= 300) continue;
    // Backwards from nullable states.
    std::vector<bool> completes(states.size());
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t k = 0; k < states.size(); ++k) {
        if (completes[k]) continue;
        bool now = terms.IsNullable(states[k]);
        for (const char b : {'a', 'b', 'c', 'd'}) {  // d stands for all others
          const Term to = terms.Derive(states[k], static_cast<uint8_t>(b));
          const auto at = std::find(states.begin(), states.end(), to);
          now |= to != kNothing && (at == states.end() || completes[at - states.begin()]);
        }
        if (now) completes[k] = changed = true;
      }
    }
    for (size_t k = 0; k < states.size(); ++k) ASSERT_TRUE(completes[k]) << expression.Text();
  }
}

// Collecting after every byte changes no answer.
TEST(Terms, Collect_KeepsTheMeaningOfStates) {
  const std::vector<std::string> texts = AllStrings("abc", 4);
  Block block(1 << 20);
  std::mt19937 rng(3);
  for (int i = 0; i < 300; ++i) {
    Terms& terms = *Terms::Create(block.span());
    const Expression expression = RandomExpression(&rng, 4, Extra::kBoth);
    const Term start = expression.Build(&terms);
    for (const std::string& text : texts) {
      Term state = start;
      for (const char c : text) {
        state = terms.Derive(state, static_cast<uint8_t>(c));
        const Term roots[] = {start, state};
        terms.Collect(roots);
      }
      ASSERT_EQ(Matches(expression, text), terms.IsNullable(state))
          << expression.Text() << " on " << text;
    }
    ASSERT_FALSE(terms.failed());
  }
}

TEST(Terms, FullBlock_FailsAndWorksAfterCollect) {
  Block block(Terms::kMinBytes);
  Terms& terms = *Terms::Create(block.span());
  const Term start = terms.Concat(terms.Repeat(terms.Byte('a'), 0, 100000), terms.Byte('b'));
  Term state = start;
  uint32_t n_failures = 0;
  for (int i = 0; i < 20000; ++i) {
    Term next = terms.Derive(state, 'a');
    if (terms.failed()) {
      ASSERT_EQ(TermFailure::kBlockFull, terms.failure());
      ++n_failures;
      const Term roots[] = {start, state};
      terms.Collect(roots);
      next = terms.Derive(state, 'a');
    }
    ASSERT_FALSE(terms.failed());
    state = next;
  }
  EXPECT_GT(n_failures, 0u);
  EXPECT_EQ(state, terms.Concat(terms.Repeat(terms.Byte('a'), 0, 80000), terms.Byte('b')));
}

TEST(Terms, NestedTooDeep_IsRefused) {
  Block block(1 << 20);
  Terms& terms = *Terms::Create(block.span());
  Term term = terms.Byte('a');
  for (int i = 0; i < 1000; ++i) {
    term = terms.Either(terms.Concat(term, terms.Byte('b')), terms.Byte('a'));
    term = terms.Repeat(term, 2, 3);
  }
  Diag diag;
  EXPECT_EQ(Status::kUnsupported, terms.Resolve(term, &diag));
  EXPECT_STREQ("the constraint is nested too deep", diag.text());
}

}  // namespace
}  // namespace arn

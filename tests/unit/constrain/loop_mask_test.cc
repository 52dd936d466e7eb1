// Masks of states to which most characters lead back, against the test of every token.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/constrain/constraint.h"
#include "vocabulary.h"

namespace arn {
namespace {

using test::Vocabulary;

std::vector<std::string> Tokens(std::mt19937* rng) {
  static const std::string kPieces[] = {
      "a",    "b",        "word",     " the", " ",    "\"",   "\\",  "\n",    "\x01",
      "<",    "</",       "<call>",   "t",    ">",    ",",    "é",   "東",    "😀",
      "\xC3", "\xE6\x9D", "\xF0\x9F", "\x80", "\xFF", "\xC0", "0",   "7",     "u00",
      "{",    "A",        "Z-",       "@",    ".com", "_",    "\"}", "\",\"", "n"};
  constexpr uint32_t n_pieces = sizeof kPieces / sizeof kPieces[0];
  std::vector<std::string> tokens;
  for (int i = 0; i < 1500; ++i) {
    std::string token;
    for (uint32_t k = 1 + (*rng)() % 5; k > 0; --k) token += kPieces[(*rng)() % n_pieces];
    // Some are longer than kLongDepth.
    if (i % 50 == 0) token += std::string(20 + (*rng)() % 60, 'x');
    // Some have about kManyCharacters, and go on.
    if (i % 100 == 1) {
      for (uint32_t k = 250 + (*rng)() % 10; k > 0; --k) token += i % 200 == 1 ? "é" : "y";
      if (i % 300 != 1) token += i % 400 == 1 ? "\"" : "\\n\"}";
    }
    tokens.push_back(token);
  }
  return tokens;
}

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};

TEST(LoopMask, IsTheTestOfEveryToken) {
  std::mt19937 rng(3);
  const Vocabulary vocabulary(Tokens(&rng));
  const struct {
    ConstraintKind kind;
    const char* text;
    bool loops;  // a state of it is filled so
  } cases[] = {
      {ConstraintKind::kJsonSchema, R"({"items": {"type": "string"}})", true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "maxLength": 70})", true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "maxLength": 33})", true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "minLength": 40})", true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "maxLength": 1})", true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "maxLength": 5})", true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "minLength": 1})", true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "minLength": 7, "maxLength": 7})", true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "minLength": 3, "maxLength": 254})",
       true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "minLength": 255, "maxLength": 255})",
       true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "minLength": 256, "maxLength": 258})",
       true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "minLength": 300, "maxLength": 500})",
       true},
      {ConstraintKind::kJsonSchema,
       R"({"additionalProperties": {"type": "string", "maxLength": 9}, "maxProperties": 2})", true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "pattern": "^[A-Za-z_]{2,9}$"})", true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "pattern": "^[a-z0-9._-]+@[a-z]+$"})",
       true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "pattern": "^[^\"<]{0,8}<[^<]*$"})",
       true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "format": "email"})", true},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "format": "uri"})", true},
      {ConstraintKind::kJsonSchema,
       R"({"type": "string", "allOf": [{"pattern": "wo"}, {"pattern": "[0-9]"}]})", true},
      {ConstraintKind::kJsonSchema,
       R"({"type": "string", "allOf": [{"pattern": "é"}, {"pattern": "\\.com|[{,]"}]})", true},
      {ConstraintKind::kJsonSchema,
       R"({"type": "string", "minLength": 9, "pattern": "word[a-z]+@"})", true},
      {ConstraintKind::kJsonSchema,
       R"({"type": "string", "maxLength": 30, "allOf": [{"pattern": "wo"}, {"pattern": "Z"}]})",
       false},
      {ConstraintKind::kRegex, R"([a-zé]{2,6}[A-Z]?)", true},
      {ConstraintKind::kRegex, R"((?:[a-z]|[a-z]X){2,6})", false},
      {ConstraintKind::kRegex, R"([a-z]{2,6}[a-m]{1,3})", false},
      {ConstraintKind::kRegex, R"([a-z]{2,6}é?)", true},
      {ConstraintKind::kRegex, R"([^ ]{3,})", true},
      {ConstraintKind::kRegex, R"((?:.|\.){1,9})", true},
      {ConstraintKind::kRegex, R"((?:[^<]|<[^c]|<c[^a])*(<call>[a-z]+)?)", true},
      {ConstraintKind::kRegex, R"([^"\\\n]*")", true},
      {ConstraintKind::kRegex, R"([\s\S]*)", true},
      {ConstraintKind::kRegex, R"([^é]*)", true},
      {ConstraintKind::kRegex, R"([^a]*)", false},
      {ConstraintKind::kRegex, R"([a-z0-9 ]*)", true},
  };
  for (const size_t bytes : {size_t{1} << 20, size_t{192} << 10}) {
    const std::unique_ptr<std::byte, Free> block(
        static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
    for (const auto& c : cases) {
      SCOPED_TRACE(c.text);
      ConstraintOptions options;
      options.kind = c.kind;
      options.text = {c.text, std::strlen(c.text)};
      Constraint* constraint = nullptr;
      Diag diag;
      ASSERT_EQ(Constraint::Compile(options, 2, {block.get(), bytes}, &constraint, &diag),
                Status::kOk)
          << diag.text();
      int n_loops = 0;
      for (int step = 0; step < 60; ++step) {
        std::vector<uint32_t> bits(vocabulary.all().size(), 0xA5A5A5A5u);
        uint32_t n_sure = UINT32_MAX;  // longer tokens are not decided
        bool is_filled = constraint->FillMaskOfLoop(0, vocabulary.tree(), vocabulary.places(),
                                                    vocabulary.all(), {bits.data(), bits.size()});
        if (!is_filled && constraint->WithoutCounts(0, 1)) {
          std::vector<uint32_t> free(bits.size());
          is_filled = constraint->FillMaskOfLoop(1, vocabulary.tree(), vocabulary.places(),
                                                 vocabulary.all(), {free.data(), free.size()});
          ASSERT_TRUE(is_filled) << c.text;
          is_filled = constraint->FillMaskOfCounts(0, vocabulary.tree(), vocabulary.places(),
                                                   {free.data(), free.size()},
                                                   {bits.data(), bits.size()}, &n_sure);
        }
        n_loops += is_filled ? 1 : 0;
        std::vector<uint32_t> allowed;
        for (uint32_t id = 0; id < vocabulary.tokens().size(); ++id) {
          const std::string& token = vocabulary.tokens()[id];
          const Span<const uint8_t> text(reinterpret_cast<const uint8_t*>(token.data()),
                                         token.size());
          const bool is_allowed = constraint->Accepts(0, text);
          if (is_allowed) allowed.push_back(id);
          const bool is_left = vocabulary.places().token_characters[id] > n_sure;
          if (!is_filled || (is_left && !is_allowed)) continue;
          ASSERT_EQ((bits[id / 32] >> (id % 32) & 1) != 0, is_allowed)
              << token << " at step " << step << " of " << c.text;
        }
        ASSERT_FALSE(constraint->failed());
        if (allowed.empty()) {
          constraint->Reset(0);
          continue;
        }
        const std::string& token = vocabulary.tokens()[allowed[rng() % allowed.size()]];
        ASSERT_TRUE(
            constraint->Advance(0, {reinterpret_cast<const uint8_t*>(token.data()), token.size()}));
      }
      EXPECT_EQ(n_loops > 0, c.loops);
    }
  }
}

}  // namespace
}  // namespace arn

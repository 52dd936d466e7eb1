// Constraint: states, forced bytes, masks and flushes, for all kinds but JSON schemas.
#include "runtime/constrain/constraint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "constrain_fixture.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

using test::AllStrings;
using test::Block;
using test::Expression;
using test::Extra;
using test::RandomExpression;

Span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Constraint* Compile(Block* block, ConstraintKind kind, const std::string& text, Diag* diag,
                    uint32_t n_states = 2) {
  ConstraintOptions options;
  options.kind = kind;
  options.text = {text.data(), text.size()};
  Constraint* constraint = nullptr;
  const Status status = Constraint::Compile(options, n_states, block->span(), &constraint, diag);
  EXPECT_EQ(status == Status::kOk, constraint != nullptr);
  return constraint;
}

// A tree of tokens, in pre-order with siblings by byte.
class Tree {
 public:
  explicit Tree(const std::vector<std::string>& tokens) {
    std::map<std::string, std::vector<uint32_t>> sorted;
    for (uint32_t id = 0; id < tokens.size(); ++id) sorted[tokens[id]].push_back(id);
    std::map<std::string, std::vector<uint32_t>> prefixes;
    for (const auto& [text, ids] : sorted) {
      for (size_t n = 1; n <= text.size(); ++n) prefixes[text.substr(0, n)];
      prefixes[text] = ids;
    }
    ids_ = prefixes[""];
    prefixes.erase("");
    for (const auto& [text, ids] : prefixes) {
      uint32_t size = 0;
      for (auto it = prefixes.lower_bound(text);
           it != prefixes.end() && it->first.compare(0, text.size(), text) == 0; ++it) {
        ++size;
      }
      nodes_.push_back({static_cast<uint8_t>(text.back()) | size << 8,
                        static_cast<uint32_t>(text.size() - 1) | static_cast<uint32_t>(ids_.size())
                                                                     << ByteNode::kDepthBits});
      ids_.insert(ids_.end(), ids.begin(), ids.end());
    }
    nodes_.push_back({0, static_cast<uint32_t>(ids_.size()) << ByteNode::kDepthBits});
  }
  ByteTree view() const { return {{nodes_.data(), nodes_.size() - 1}, {ids_.data(), ids_.size()}}; }

 private:
  std::vector<ByteNode> nodes_;
  std::vector<uint32_t> ids_;
};

TEST(Constraint, Choices_AreForcedWhereOneIsLeft) {
  Block block(256 << 10);
  Diag diag;
  const std::string choices("yes\0no\0nothing", 14);
  Constraint* c = Compile(&block, ConstraintKind::kChoices, choices, &diag);
  ASSERT_NE(nullptr, c) << diag.text();
  uint8_t forced[16];
  EXPECT_EQ(0u, c->Forced(0, forced));
  ASSERT_TRUE(c->Advance(0, Bytes("y")));
  EXPECT_EQ(2u, c->Forced(0, forced));
  EXPECT_EQ("es", std::string(reinterpret_cast<char*>(forced), 2));
  EXPECT_FALSE(c->CanEnd(0));
  ASSERT_TRUE(c->Advance(0, Bytes("es")));
  EXPECT_TRUE(c->MustEnd(0));

  c->Reset(0);
  size_t n_ok = 9;
  EXPECT_FALSE(c->Accepts(0, Bytes("note"), &n_ok));
  EXPECT_EQ(3u, n_ok);
  EXPECT_FALSE(c->Advance(0, Bytes("note")));
  ASSERT_TRUE(c->Advance(0, Bytes("no")));
  EXPECT_TRUE(c->CanEnd(0));
  EXPECT_FALSE(c->MustEnd(0));
  EXPECT_EQ(0u, c->Forced(0, forced)) << "it may end here";
  c->CopyState(0, 1);
  EXPECT_EQ(c->StateKey(0), c->StateKey(1));
  ASSERT_TRUE(c->Advance(1, Bytes("t")));
  EXPECT_NE(c->StateKey(0), c->StateKey(1));
  EXPECT_EQ(4u, c->Forced(1, forced));
  EXPECT_FALSE(c->failed());
}

TEST(Constraint, Compile_RefusesWithAReason) {
  Block block(256 << 10);
  Diag diag;
  EXPECT_EQ(nullptr, Compile(&block, ConstraintKind::kRegex, "[]", &diag));
  EXPECT_STREQ("no text fits the constraint", diag.text());
  EXPECT_EQ(nullptr, Compile(&block, ConstraintKind::kRegex, "(a", &diag));
  EXPECT_STREQ("regular expression, offset 0: unmatched '('", diag.text());
  EXPECT_EQ(nullptr, Compile(&block, ConstraintKind::kChoices, std::string("a\0", 2), &diag));
  EXPECT_STREQ("choices: number 2 is empty", diag.text());
  Block small(1024);
  EXPECT_EQ(nullptr, Compile(&small, ConstraintKind::kRegex, "a", &diag));
  EXPECT_NE(std::string(diag.text()).find("needs"), std::string::npos) << diag.text();
  Block tight(Constraint::MinBytes(1));
  EXPECT_EQ(nullptr, Compile(&tight, ConstraintKind::kRegex, "(\\p{L}|\\w)*", &diag, 1));
  EXPECT_NE(std::string(diag.text()).find("needs more memory than it was given ("),
            std::string::npos)
      << diag.text();
}

std::vector<std::string> RandomTokens(std::mt19937* rng, const std::string& alphabet, size_t n) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < n; ++i) {
    std::string token;
    for (uint32_t k = (*rng)() % 5; k > 0; --k) token += alphabet[(*rng)() % alphabet.size()];
    tokens.push_back(token);
  }
  return tokens;
}

// Every mask bit is what testing the token says, and what the plain matcher says about the prefix.
TEST(Constraint, Masks_AreWhatTestingEveryTokenSays) {
  std::mt19937 rng(9);
  Block block(1 << 20);
  Diag diag;
  for (int i = 0; i < 300; ++i) {
    const Expression expression = RandomExpression(&rng, 3, Extra::kNone);
    Constraint* c = Compile(&block, ConstraintKind::kRegex, expression.Text(), &diag);
    ASSERT_NE(nullptr, c) << diag.text();
    const std::vector<std::string> tokens = RandomTokens(&rng, "abcd", 90);
    const Tree tree(tokens);
    std::string text;
    for (int step = 0; step < 8; ++step) {
      uint32_t bits[2] = {};  // fewer than there are ids: the others are left out
      c->FillMask(0, tree.view(), bits);
      std::vector<uint32_t> allowed;
      for (uint32_t id = 0; id < 64; ++id) {
        const bool is_set = (bits[id / 32] >> (id % 32) & 1) != 0;
        ASSERT_EQ(c->Accepts(0, Bytes(tokens[id])), is_set)
            << expression.Text() << " after " << text << ": " << tokens[id];
        if (is_set && !tokens[id].empty()) allowed.push_back(id);
      }
      if (allowed.empty()) break;
      const uint32_t id = allowed[rng() % allowed.size()];
      ASSERT_TRUE(c->Advance(0, Bytes(tokens[id])));
      text += tokens[id];
      if (text.size() > 20) break;
      ASSERT_EQ(test::Matches(expression, text), c->CanEnd(0)) << expression.Text() << " " << text;
    }
    ASSERT_FALSE(c->failed());
  }
}

// The smallest blocks flush all the time; answers stay those of a large block.
TEST(Constraint, TinyBlocks_FlushAndStayRight) {
  std::mt19937 rng(10);
  Block large(1 << 20), tiny(Constraint::MinBytes(2));
  Diag diag;
  uint64_t n_flushes = 0;
  int n_compared = 0;
  for (int i = 0; i < 300; ++i) {
    const Expression expression = RandomExpression(&rng, 5, Extra::kNone);
    const std::string pattern = "((" + expression.Text() + ")[d-z]{0,40}(x[^a]{3}){0,1000}){0,100}";
    Constraint* expected = Compile(&large, ConstraintKind::kRegex, pattern, &diag);
    ASSERT_NE(nullptr, expected) << diag.text();
    Constraint* c = Compile(&tiny, ConstraintKind::kRegex, pattern, &diag);
    if (c == nullptr) continue;  // does not fit
    ++n_compared;
    const std::vector<std::string> tokens = RandomTokens(&rng, "abcdefx", 128);
    const Tree tree(tokens);
    for (int step = 0; step < 20; ++step) {
      uint32_t bits[4], expected_bits[4];
      c->FillMask(0, tree.view(), bits);
      expected->FillMask(0, tree.view(), expected_bits);
      if (c->failed()) break;
      ASSERT_TRUE(std::equal(bits, bits + 4, expected_bits)) << pattern;
      ASSERT_EQ(expected->CanEnd(0), c->CanEnd(0));
      ASSERT_EQ(expected->MustEnd(0), c->MustEnd(0));
      std::vector<std::string> allowed;
      for (uint32_t id = 0; id < tokens.size(); ++id) {
        if ((bits[id / 32] >> (id % 32) & 1) != 0) allowed.push_back(tokens[id]);
      }
      if (allowed.empty()) break;
      const std::string token = allowed[rng() % allowed.size()];
      ASSERT_TRUE(c->Advance(0, Bytes(token)));
      ASSERT_TRUE(expected->Advance(0, Bytes(token)));
      if (step == 10) c->CopyState(0, 1);  // a second state keeps its meaning
      if (step == 15) {
        c->CopyState(1, 0);
        expected->CopyState(1, 0);
      }
      if (step == 10) expected->CopyState(0, 1);
    }
    n_flushes += c->n_flushes();
  }
  EXPECT_GT(n_compared, 100);
  EXPECT_GT(n_flushes, 100u);
}

TEST(Constraint, RandomBytes_NeverGoWrong) {
  std::mt19937 rng(11);
  Block block(512 << 10);
  Diag diag;
  const std::pair<ConstraintKind, const char*> cases[] = {
      {ConstraintKind::kRegex, "(.|\\n)*"},
      {ConstraintKind::kRegex, "\\p{L}*"},
      {ConstraintKind::kGrammar, "root ::= [^x]* \"x\" root?"},
  };
  for (const auto& [kind, text] : cases) {
    Constraint* c = Compile(&block, kind, text, &diag);
    ASSERT_NE(nullptr, c) << diag.text();
    for (int i = 0; i < 2000; ++i) {
      std::string bytes;
      for (uint32_t n = rng() % 6; n > 0; --n) bytes += static_cast<char>(rng() % 256);
      c->Reset(0);
      size_t n_ok = 0;
      const bool accepted = c->Accepts(0, Bytes(bytes), &n_ok);
      ASSERT_EQ(accepted, n_ok == bytes.size());
      ASSERT_EQ(accepted, c->Advance(0, Bytes(bytes)));
      // What may be written is the beginning of valid UTF-8.
      const char* p = bytes.data();
      const char* const end = p + n_ok;
      while (p != end) {
        const Utf8Char read = ReadUtf8(p, end);
        ASSERT_NE(Utf8Kind::kInvalid, read.kind);
        if (read.kind == Utf8Kind::kIncomplete) break;
        p += read.bytes;
      }
    }
    EXPECT_FALSE(c->failed());
  }
}

}  // namespace
}  // namespace arn

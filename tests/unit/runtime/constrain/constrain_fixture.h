// Shared by the tests of constraints: blocks, and expressions with a plain matcher of their own.
#pragma once

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "runtime/constrain/terms.h"

namespace arn::test {

class Block {
 public:
  explicit Block(size_t bytes)
      : memory_(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64))),
        bytes_(bytes) {}
  ~Block() { std::free(memory_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  Span<std::byte> span() { return {memory_, bytes_}; }

 private:
  std::byte* memory_;
  size_t bytes_;
};

inline bool TermMatches(Terms* terms, Term term, const std::string& text) {
  for (const char c : text) term = terms->Derive(term, static_cast<uint8_t>(c));
  return terms->IsNullable(term);
}

// Follows `state` for `n_bytes` bytes, random ones of those that may follow, and makes room when
// the block is full. Returns how many it went; stops where the text must end, or on a failure.
inline int RandomWalk(Terms* terms, Term state, int n_bytes) {
  std::mt19937 rng(12);
  const Term start = state;
  for (int i = 0; i < n_bytes; ++i) {
    const Term roots[] = {start, state};
    ByteSet first = terms->FirstBytes(state);
    if (terms->failed()) {
      terms->Collect(roots);
      first = terms->FirstBytes(state);
    }
    Term next = kNothing;
    for (int tries = 0; tries < 20 && next == kNothing && !first.IsEmpty(); ++tries) {
      const uint32_t from = first.Next(static_cast<uint32_t>(rng() % 256));
      const auto byte = static_cast<uint8_t>(from < 256 ? from : first.Next(0));
      next = terms->Derive(state, byte);
      if (terms->failed()) {
        terms->Collect(roots);
        next = terms->Derive(state, byte);
      }
    }
    if (terms->failed() || next == kNothing) return i;
    state = next;
  }
  return n_bytes;
}

inline std::vector<std::string> AllStrings(const std::string& alphabet, size_t max_length) {
  std::vector<std::string> all = {""};
  for (size_t i = 0; i < all.size() && all[i].size() < max_length; ++i) {
    for (const char c : alphabet) all.push_back(all[i] + c);
  }
  return all;
}

// An expression as a tree. Matches() below finds, for each part and start, the ends of its matches.
struct Expression {
  enum Op { kEmptyOp, kSet, kConcat, kEither, kRepeat, kBoth, kNot, kBegin, kEnd } op = kEmptyOp;
  std::string set;
  uint32_t min = 0, max = 0;
  std::vector<Expression> parts;

  Term Build(Terms* terms) const {
    std::vector<Term> built;
    for (const Expression& part : parts) built.push_back(part.Build(terms));
    switch (op) {
      case kEmptyOp: return kEmpty;
      case kSet: {
        ByteSet bytes;
        for (const char c : set) bytes.Add(static_cast<uint8_t>(c));
        return terms->Bytes(bytes);
      }
      case kConcat: return terms->Concat(built[0], built[1]);
      case kEither: return terms->Either({built.data(), built.size()});
      case kRepeat: return terms->Repeat(built[0], min, max);
      case kBoth: return terms->Both(built[0], built[1]);
      case kNot: return terms->Complement(built[0]);
      case kBegin:
      case kEnd: break;  // parsed only
    }
    return kNothing;
  }

  std::string Text() const {
    const auto part = [this](size_t i) { return parts[i].Text(); };
    switch (op) {
      case kEmptyOp: return "()";
      case kSet: return "[" + set + "]";
      case kConcat: return part(0) + part(1);
      case kEither: {
        std::string text = "(" + part(0);
        for (size_t i = 1; i < parts.size(); ++i) text += "|" + part(i);
        return text + ")";
      }
      case kRepeat:
        return "(" + part(0) + "){" + std::to_string(min) + "," +
               (max == kUnbounded ? "" : std::to_string(max)) + "}";
      case kBoth: return "(" + part(0) + "&" + part(1) + ")";
      case kNot: return "!(" + part(0) + ")";
      case kBegin: return "^";
      case kEnd: return "$";
    }
    return "";
  }

  // Bit p: a match that starts at `at` can end at p. REQUIRES: text.size() < 32.
  uint32_t Ends(const std::string& text, size_t at) const {
    const auto from = [&](const Expression& part, uint32_t starts) {
      uint32_t ends = 0;
      for (size_t p = 0; p <= text.size(); ++p) {
        if ((starts >> p & 1) != 0) ends |= part.Ends(text, p);
      }
      return ends;
    };
    const uint32_t here = 1u << at;
    switch (op) {
      case kEmptyOp: return here;
      case kSet: return at < text.size() && set.find(text[at]) != std::string::npos ? here << 1 : 0;
      case kConcat: return from(parts[1], parts[0].Ends(text, at));
      case kEither: {
        uint32_t ends = 0;
        for (const Expression& part : parts) ends |= part.Ends(text, at);
        return ends;
      }
      case kRepeat: {
        uint32_t now = here, ends = 0;
        // After text.size() + min rounds, another can only repeat empty matches.
        for (uint32_t i = 0; i <= max && i <= text.size() + min + 1 && now != 0; ++i) {
          if (i >= min) ends |= now;
          now = from(parts[0], now);
        }
        return ends;
      }
      case kBegin: return at == 0 ? here : 0;
      case kEnd: return at == text.size() ? here : 0;
      case kBoth: return parts[0].Ends(text, at) & parts[1].Ends(text, at);
      case kNot: {
        const uint32_t all = (2u << text.size()) - here;  // [at, size]
        return all & ~parts[0].Ends(text, at);
      }
    }
    return 0;
  }
};

inline bool Matches(const Expression& expression, const std::string& text) {
  return (expression.Ends(text, 0) >> text.size() & 1) != 0;
}

inline bool Finds(const Expression& expression, const std::string& text) {
  for (size_t at = 0; at <= text.size(); ++at) {
    if (expression.Ends(text, at) != 0) return true;
  }
  return false;
}

enum class Extra { kNone, kBoth, kAnchors };

inline Expression RandomExpression(std::mt19937* rng, int depth, Extra extra) {
  const auto draw = [rng](uint32_t n) { return static_cast<uint32_t>((*rng)() % n); };
  Expression e;
  const uint32_t kind = depth == 0 ? draw(6) : 4 + draw(extra == Extra::kBoth ? 13 : 11);
  if (kind <= 5) {
    if (extra == Extra::kAnchors && draw(3) == 0) {
      e.op = draw(2) == 0 ? Expression::kBegin : Expression::kEnd;
      return e;
    }
    e.op = kind == 0 ? Expression::kEmptyOp : Expression::kSet;
    for (const char c : {'a', 'b', 'c'}) {
      if (draw(2) != 0) e.set += c;
    }
    if (e.set.empty()) e.set = "a";
    return e;
  }
  const auto part = [&] { e.parts.push_back(RandomExpression(rng, depth - 1, extra)); };
  part();
  if (kind <= 9) {
    e.op = Expression::kConcat;
    part();
  } else if (kind <= 11) {
    e.op = Expression::kEither;
    for (uint32_t n = 1 + draw(3); n > 0; --n) part();
  } else if (kind <= 14) {
    e.op = Expression::kRepeat;
    e.min = draw(4);
    e.max = draw(3) == 0 ? kUnbounded : e.min + draw(3);
  } else if (kind == 15) {
    e.op = Expression::kBoth;
    part();
  } else {
    e.op = Expression::kNot;
  }
  return e;
}

}  // namespace arn::test

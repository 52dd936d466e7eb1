#include "runtime/constrain/regex_parse.h"

#include "platform/base/arith.h"
#include "platform/base/result.h"
#include "runtime/constrain/text_reader.h"

namespace arn {
namespace {

constexpr uint32_t kMaxNesting = 200;  // of groups: bounds the parser's recursion

// Holds an expression's terms. Through ^ and $, its matches depend on whether it stands at the
// beginning and at the end of the text: one term each for neither, beginning, end, both. A variant
// at an edge includes the one that is not.
enum Edge : uint32_t { kInside = 0, kAtBegin = 1, kAtEnd = 2, kAtBoth = 3 };
struct Piece {
  Term terms[4];
  bool has_anchor = false;  // else the four are the same

  static Piece Plain(Term t) { return {{t, t, t, t}, false}; }
};
constexpr uint32_t kPieceWords = 4;

class Parser {
 public:
  Parser(Terms* terms, StringView pattern, TextForm form, Diag* diag)
      : terms_(terms), in_(pattern), form_(form), diag_(diag) {}

  Status Parse(bool search, Term* out) {
    for (TextReader rest = in_; !rest.AtEnd(); rest.Next()) {
      if (!rest.AtAll("\\p") && !rest.AtAll("\\P")) continue;
      categories_ = PushCategories(terms_);
      break;
    }
    Piece piece;
    ARN_TRY(ParseAlternatives(0, &piece));
    if (!in_.AtEnd()) return Refuse(in_.offset(), "unmatched ')'");
    *out = piece.terms[kAtBoth];
    if (search) {
      const Term any = terms_->Repeat(AnyCharacter(terms_, form_), 0, kUnbounded);
      const Term alternatives[] = {
          terms_->Concat(any, terms_->Concat(piece.terms[kInside], any)),
          terms_->Concat(piece.terms[kAtBegin], any),
          terms_->Concat(any, piece.terms[kAtEnd]),
          piece.terms[kAtBoth],
      };
      *out = terms_->Either(alternatives);
    }
    return Check(0);
  }

 private:
  Status Refuse(size_t offset, const char* why) {
    return diag_->Fail(Status::kBadArgument, "regular expression, offset %zu: %s", offset, why);
  }
  Status RefuseUnsupported(size_t offset, const char* what) {
    return diag_->Fail(Status::kUnsupported, "regular expression, offset %zu: %s not supported",
                       offset, what);
  }
  Status Check(size_t offset) {
    if (!terms_->failed()) return Status::kOk;
    return diag_->Fail(TermFailureStatus(terms_->failure()), "regular expression, offset %zu: %s",
                       offset, terms_->FailureText());
  }

  // ---- Structure ----

  // Alternatives and the elements of a sequence wait on the stack, so that a long list is not
  // copied once for each of its elements.
  void Push(const Piece& piece) {
    if (piece.has_anchor) {
      for (const Term t : piece.terms) terms_->Push(t);
      terms_->Push(1);
    } else {
      terms_->Push(piece.terms[0]);
      terms_->Push(0);
    }
  }
  // Reads the piece that ends before word `end`; returns where it begins.
  uint32_t PieceBefore(uint32_t end, Piece* piece) {
    const uint32_t* words = terms_->PushedSince(0);
    if (words[end - 1] == 0) {
      *piece = Piece::Plain(words[end - 2]);
      return end - 2;
    }
    for (uint32_t i = 0; i < kPieceWords; ++i) piece->terms[i] = words[end - 1 - kPieceWords + i];
    piece->has_anchor = true;
    return end - 1 - kPieceWords;
  }

  Status ParseAlternatives(uint32_t depth, Piece* out) {
    if (depth > kMaxNesting) return Refuse(in_.offset(), "groups are nested deeper than 200");
    const uint32_t mark = terms_->PushedMark();
    bool has_anchor = false;
    do {
      Piece piece;
      ARN_TRY(ParseSequence(depth, &piece));
      has_anchor |= piece.has_anchor;
      Push(piece);
      ARN_TRY(Check(in_.offset()));
    } while (in_.Skip('|'));
    const uint32_t end = terms_->PushedMark();
    for (uint32_t edge = kInside; edge <= (has_anchor ? kAtBoth : kInside); ++edge) {
      uint32_t n = 0;
      Piece piece;
      for (uint32_t at = end; at > mark; ++n) {
        at = PieceBefore(at, &piece);
        if (!terms_->Push(piece.terms[edge])) break;
      }
      ARN_TRY(Check(in_.offset()));
      out->terms[edge] = terms_->Either({terms_->PushedSince(end), n});
      terms_->ReleaseTo(end);
    }
    terms_->ReleaseTo(mark);
    if (!has_anchor) *out = Piece::Plain(out->terms[0]);
    out->has_anchor = has_anchor;
    return Check(in_.offset());
  }

  Status ParseSequence(uint32_t depth, Piece* out) {
    const uint32_t mark = terms_->PushedMark();
    while (!in_.AtEnd() && !in_.At('|') && !in_.At(')')) {
      Piece piece;
      ARN_TRY(ParseElement(depth, &piece));
      Push(piece);
      ARN_TRY(Check(in_.offset()));
    }
    *out = Piece::Plain(kEmpty);
    for (uint32_t at = terms_->PushedMark(); at > mark;) {
      Piece piece;
      at = PieceBefore(at, &piece);
      *out = Sequence(piece, *out);
    }
    terms_->ReleaseTo(mark);
    return Check(in_.offset());
  }

  // If both are not empty, `a` is not at the end and `b` not at the beginning; an empty one leaves
  // the other where the whole is.
  Piece Sequence(const Piece& a, const Piece& b) {
    if (!a.has_anchor && !b.has_anchor) return Piece::Plain(terms_->Concat(a.terms[0], b.terms[0]));
    Piece whole;
    whole.has_anchor = true;
    for (uint32_t edge = kInside; edge <= kAtBoth; ++edge) {
      const Term a_first = a.terms[edge & kAtBegin], b_last = b.terms[edge & kAtEnd];
      Term alternatives[4] = {terms_->Concat(a_first, b_last), kNothing, kNothing, kNothing};
      if (terms_->IsNullable(a_first)) alternatives[1] = b.terms[edge];
      if (terms_->IsNullable(b_last)) alternatives[2] = a.terms[edge];
      const bool may_be_empty =
          terms_->IsNullable(a.terms[edge]) && terms_->IsNullable(b.terms[edge]);
      if (may_be_empty) alternatives[3] = kEmpty;
      whole.terms[edge] = terms_->Either(alternatives);
    }
    return whole;
  }

  Status ParseElement(uint32_t depth, Piece* out) {
    const size_t start = in_.offset();
    if (in_.Skip('^')) {
      *out = {{kNothing, kEmpty, kNothing, kEmpty}, true};
      return Status::kOk;
    }
    if (in_.Skip('$')) {
      *out = {{kNothing, kNothing, kEmpty, kEmpty}, true};
      return Status::kOk;
    }
    if (in_.At('*') || in_.At('+') || in_.At('?')) return Refuse(start, "nothing to repeat");
    if (in_.Skip('(')) {
      ARN_TRY(ParseGroup(start, depth, out));
    } else {
      ARN_TRY(ParseCharacter(out));
    }
    return ParseCount(start, out);
  }

  Status ParseGroup(size_t start, uint32_t depth, Piece* out) {
    if (in_.Skip('?')) {
      if (in_.SkipAll("<=") || in_.SkipAll("<!") || in_.At('=') || in_.At('!')) {
        return RefuseUnsupported(start, "look-around is");
      }
      if (in_.Skip('<')) {
        while (!in_.AtEnd() && !in_.At('>')) in_.Next();
        if (!in_.Skip('>')) return Refuse(start, "the name of the group does not end");
      } else if (!in_.Skip(':')) {
        return RefuseUnsupported(start, "this kind of group is");
      }
    }
    ARN_TRY(ParseAlternatives(depth + 1, out));
    return in_.Skip(')') ? Status::kOk : Refuse(start, "unmatched '('");
  }

  // A count after an element, if there is one.
  Status ParseCount(size_t start, Piece* piece) {
    const size_t at = in_.offset();
    uint32_t min = 0, max = kUnbounded;
    if (in_.Skip('*')) {
    } else if (in_.Skip('+')) {
      min = 1;
    } else if (in_.Skip('?')) {
      max = 1;
    } else {
      bool is_count = false, fits = true;
      in_.ReadCount(&min, &max, &is_count, &fits);
      if (!is_count) return Status::kOk;
      if (!fits) return Refuse(at, "the count is above 4294967294");
      if (min > max) return Refuse(at, "the counts are out of order");
    }
    in_.Skip('?');  // lazy
    if (in_.At('*') || in_.At('+') || in_.At('?')) {
      return Refuse(in_.offset(), "a count after a count");
    }
    if (!piece->has_anchor) {
      *piece = Piece::Plain(terms_->Repeat(piece->terms[0], min, max));
    } else if (min == 0 && max == 1) {
      for (Term& t : piece->terms) t = terms_->Optional(t);
    } else if (min != 1 || max != 1) {
      return RefuseUnsupported(start, "a repeated ^ or $ is");
    }
    return Check(start);
  }

  // ---- Characters ----

  Status ParseCharacter(Piece* out) {
    CodePoints set(terms_);
    if (in_.Skip('.')) {
      AddLineEnds(&set);
      set.Negate(set.mark());
    } else if (in_.At('[')) {
      ARN_TRY(ParseClass(&set));
    } else if (in_.At('\\')) {
      bool is_set = false;
      uint32_t c = 0;
      ARN_TRY(ParseEscape(/*in_class=*/false, &set, &is_set, &c));
      if (!is_set) set.Add(c, c);
    } else {
      uint32_t c = 0;
      if (!in_.Read(&c)) return Refuse(in_.offset(), "not UTF-8");
      set.Add(c, c);
    }
    const Term term = CharacterTerm(terms_, set.Ranges(), form_);
    terms_->ReleaseTo(set.mark());
    *out = Piece::Plain(term);
    return Check(in_.offset());
  }

  static void AddLineEnds(CodePoints* set) {
    set->Add('\n', '\n');
    set->Add('\r', '\r');
    set->Add(0x2028, 0x2029);
  }

  Status ParseClass(CodePoints* set) {
    const size_t start = in_.offset();
    in_.Next();
    const bool negated = in_.Skip('^');
    while (!in_.At(']')) {
      if (in_.AtEnd()) return Refuse(start, "unmatched '['");
      const size_t at = in_.offset();
      bool is_set = false, last_is_set = false;
      uint32_t first = 0, last = 0;
      ARN_TRY(ParseClassAtom(set, &is_set, &first));
      // A hyphen before ']' or beside a set stands for itself.
      if (!in_.At('-') || in_.AtAll("-]")) {
        if (!is_set) set->Add(first, first);
        continue;
      }
      in_.Next();
      ARN_TRY(ParseClassAtom(set, &last_is_set, &last));
      if (!is_set && !last_is_set) {
        if (first > last) return Refuse(at, "the range is out of order");
        set->Add(first, last);
      } else {
        set->Add('-', '-');
        if (!is_set) set->Add(first, first);
        if (!last_is_set) set->Add(last, last);
      }
      ARN_TRY(Check(at));
    }
    in_.Next();
    if (negated) set->Negate(set->mark());
    return Status::kOk;
  }

  Status ParseClassAtom(CodePoints* set, bool* is_set, uint32_t* c) {
    if (in_.At('\\')) return ParseEscape(/*in_class=*/true, set, is_set, c);
    if (in_.AtEnd()) return Refuse(in_.offset(), "unmatched '['");
    return in_.Read(c) ? Status::kOk : Refuse(in_.offset(), "not UTF-8");
  }

  // A set is added to `set`; a character is returned.
  Status ParseEscape(bool in_class, CodePoints* set, bool* is_set, uint32_t* c) {
    const size_t start = in_.offset();
    in_.Next();
    if (in_.AtEnd()) return Refuse(start, "'\\' at the end");
    uint32_t letter = 0;
    if (!in_.Read(&letter)) return Refuse(in_.offset(), "not UTF-8");
    const uint32_t from = terms_->PushedMark();
    *is_set = true;
    switch (letter) {
      case 'd':
      case 'D': set->Add('0', '9'); break;
      case 'w':
      case 'W':
        set->Add('0', '9');
        set->Add('A', 'Z');
        set->Add('_', '_');
        set->Add('a', 'z');
        break;
      case 's':
      case 'S': AddWhiteSpace(set); break;
      case 'p':
      case 'P': ARN_TRY(ParseProperty(start, set)); break;
      default: *is_set = false;
    }
    if (*is_set) {
      if (letter >= 'A' && letter <= 'Z') set->Negate(from);
      return Status::kOk;
    }
    switch (letter) {
      case 't': *c = '\t'; return Status::kOk;
      case 'n': *c = '\n'; return Status::kOk;
      case 'v': *c = '\v'; return Status::kOk;
      case 'f': *c = '\f'; return Status::kOk;
      case 'r': *c = '\r'; return Status::kOk;
      case 'b':
        if (!in_class) return RefuseUnsupported(start, "\\b is");
        *c = '\b';
        return Status::kOk;
      case 'B': return RefuseUnsupported(start, "\\B is");
      case 'k': return RefuseUnsupported(start, "a back reference is");
      case '0':
        if (in_.AtDigit()) return Refuse(start, "an octal escape");
        *c = 0;
        return Status::kOk;
      case 'c': {
        uint32_t control = 0;
        if (!in_.Read(&control) || !IsAsciiLetter(control)) {
          return Refuse(start, "\\c needs a letter");
        }
        *c = control & 31;
        return Status::kOk;
      }
      case 'x': return in_.ReadHex(2, c) ? Status::kOk : Refuse(start, "\\x needs two digits");
      case 'u':
        return in_.ReadUnicodeEscape(c) ? Status::kOk
                                        : Refuse(start, "\\u needs a character's code");
      default: break;
    }
    if (letter >= '1' && letter <= '9') return RefuseUnsupported(start, "a back reference is");
    if (IsAsciiLetter(letter)) return Refuse(start, "an escape of unknown meaning");
    *c = letter;
    return Status::kOk;
  }

  static bool IsAsciiLetter(uint32_t c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }

  // WhiteSpace and LineTerminator of ECMA-262.
  static void AddWhiteSpace(CodePoints* set) {
    set->Add('\t', '\r');
    for (const uint32_t c : {0x20u, 0xA0u, 0x1680u, 0x202Fu, 0x205Fu, 0x3000u, 0xFEFFu}) {
      set->Add(c, c);
    }
    set->Add(0x2000, 0x200A);
    set->Add(0x2028, 0x2029);
  }

  Status ParseProperty(size_t start, CodePoints* set) {
    if (!in_.Skip('{')) return Refuse(start, "\\p needs a name in braces");
    if (!in_.SkipAll("General_Category=")) in_.SkipAll("gc=");
    const size_t name = in_.offset();
    while (!in_.AtEnd() && !in_.At('}')) in_.Next();
    const StringView text = in_.Since(name);
    if (!in_.Skip('}')) return Refuse(start, "the name of the property does not end");
    if (!set->AddProperty(text, categories_)) {
      return diag_->Fail(Status::kUnsupported,
                         "regular expression, offset %zu: the property '%.*s' is not supported",
                         start, static_cast<int>(Min<size_t>(text.size, 40)), text.data);
    }
    return Check(start);
  }

  Terms* terms_;
  TextReader in_;
  TextForm form_;
  Diag* diag_;
  Span<const uint32_t> categories_;  // if \p occurs
};

}  // namespace

Status ParseRegex(Terms* terms, StringView pattern, const RegexOptions& options, Term* out,
                  Diag* diag) {
  const uint32_t mark = terms->PushedMark();
  const Status status = Parser(terms, pattern, options.form, diag).Parse(options.search, out);
  terms->ReleaseTo(mark);
  return status;
}

}  // namespace arn

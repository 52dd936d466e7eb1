#include "runtime/constrain/gbnf.h"

#include "platform/base/arith.h"
#include "platform/base/result.h"
#include "runtime/constrain/code_points.h"
#include "runtime/constrain/text_reader.h"

namespace arn {
namespace {

constexpr uint32_t kMaxNesting = 200;  // of groups: bounds the parser's recursion

class Parser {
 public:
  Parser(Terms* terms, StringView grammar, Diag* diag)
      : terms_(terms), text_(grammar), in_(grammar), diag_(diag) {}

  Status Parse(Term* out) {
    ARN_TRY(MakeTable());
    SkipSpace(true);
    while (!in_.AtEnd()) ARN_TRY(ParseRule());
    NamedRule* root = Find("root");
    if (root == nullptr || root->term == kNothing) {
      return diag_->Fail(Status::kBadArgument, "grammar: there is no rule 'root'");
    }
    *out = root->term;
    return Check(0);
  }

 private:
  // An entry of the table of names; free while `bytes` is 0.
  struct NamedRule {
    Term term;
    uint32_t offset, bytes;  // of the name
  };
  static constexpr uint32_t kRuleWords = sizeof(NamedRule) / sizeof(uint32_t);

  Status Refuse(size_t offset, const char* why) {
    return diag_->Fail(Status::kBadArgument, "grammar, line %u, offset %zu: %s", LineOf(offset),
                       offset, why);
  }
  Status Check(size_t offset) {
    if (!terms_->failed()) return Status::kOk;
    return diag_->Fail(TermFailureStatus(terms_->failure()), "grammar, line %u, offset %zu: %s",
                       LineOf(offset), offset, terms_->FailureText());
  }
  uint32_t LineOf(size_t offset) const {
    uint32_t line = 1;
    for (size_t i = 0; i < offset; ++i) line += text_.data[i] == '\n' ? 1 : 0;
    return line;
  }

  // ---- Names ----

  // There are no more rules than times that "::=" occurs; half of the entries stay free.
  Status MakeTable() {
    uint32_t n = 1;
    for (TextReader rest(text_); !rest.AtEnd(); rest.Next()) n += rest.AtAll("::=") ? 1 : 0;
    max_names_ = n;
    uint32_t entries = 4;
    while (entries < 2 * (uint64_t{n} + 1)) entries *= 2;
    table_mask_ = entries - 1;
    table_ = terms_->PushedMark();
    for (uint64_t i = 0; i < uint64_t{entries} * kRuleWords; ++i) {
      if (!terms_->Push(0)) return Check(0);
    }
    return Status::kOk;
  }
  NamedRule* At(uint32_t entry) {
    return reinterpret_cast<NamedRule*>(terms_->PushedSince(table_)) + entry;
  }
  StringView NameOf(const NamedRule& rule) const { return {text_.data + rule.offset, rule.bytes}; }
  // Returns the entry of the name, or the free one for it. FNV-1a, linear probing.
  NamedRule* Find(StringView name) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < name.size; ++i) {
      hash = (hash ^ static_cast<uint8_t>(name.data[i])) * 16777619u;
    }
    for (uint32_t entry = hash;; ++entry) {
      NamedRule* rule = At(entry & table_mask_);
      if (rule->bytes == 0 || NameOf(*rule) == name) return rule;
    }
  }
  static bool IsWord(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  }
  bool AtWord() const { return !in_.AtEnd() && IsWord(in_.Peek()); }
  // Reads a name, and returns its rule, which it makes the first time.
  Status ReadName(Term* rule) {
    const size_t start = in_.offset();
    while (AtWord()) in_.Next();
    const StringView name = in_.Since(start);
    if (name.size == 0) return Refuse(start, "a rule's name is missing");
    NamedRule* named = Find(name);
    if (named->bytes == 0) {
      if (n_names_ == max_names_) return RefuseUndefined(name);
      *named = {terms_->NewRule(name), static_cast<uint32_t>(start),
                static_cast<uint32_t>(name.size)};
      ++n_names_;
    }
    *rule = named->term;
    return Check(start);
  }
  // More names than rules: some name has none.
  Status RefuseUndefined(StringView name) {
    for (uint32_t i = 0; i <= table_mask_; ++i) {
      if (At(i)->bytes != 0 && !IsDefinedSomewhere(NameOf(*At(i)))) name = NameOf(*At(i));
    }
    return diag_->Fail(Status::kBadArgument, "grammar: rule '%.*s' is used but not defined",
                       static_cast<int>(Min<size_t>(name.size, 100)), name.data);
  }
  bool IsDefinedSomewhere(StringView name) const {
    char before = '\n';
    for (TextReader rest(text_); !rest.AtEnd(); before = rest.Next()) {
      if (IsWord(before) || !rest.AtAll(name)) continue;
      TextReader after = rest;
      after.SkipAll(name);
      while (after.At(' ') || after.At('\t')) after.Next();
      if (after.AtAll("::=")) return true;
    }
    return false;
  }

  // ---- Structure ----

  void SkipSpace(bool with_lines) {
    while (!in_.AtEnd()) {
      if (in_.At('#')) {
        while (!in_.AtEnd() && !in_.At('\r') && !in_.At('\n')) in_.Next();
      } else if (in_.At(' ') || in_.At('\t') || (with_lines && (in_.At('\r') || in_.At('\n')))) {
        in_.Next();
      } else {
        return;
      }
    }
  }

  Status ParseRule() {
    const size_t start = in_.offset();
    Term rule = kNothing;
    ARN_TRY(ReadName(&rule));
    const StringView name = in_.Since(start);
    if (terms_->IsDefined(rule)) {
      return diag_->Fail(Status::kBadArgument, "grammar, line %u: rule '%.*s' is defined twice",
                         LineOf(start), static_cast<int>(Min<size_t>(name.size, 100)), name.data);
    }
    SkipSpace(false);
    if (!in_.SkipAll("::=")) return Refuse(in_.offset(), "'::=' is missing");
    SkipSpace(true);
    Term body = kNothing;
    ARN_TRY(ParseAlternatives(0, &body));
    if (!in_.AtEnd() && !in_.At('\r') && !in_.At('\n')) {
      return Refuse(in_.offset(), "the rule should end here");
    }
    SkipSpace(true);
    terms_->Define(rule, body);
    return Check(start);
  }

  Status ParseAlternatives(uint32_t depth, Term* out) {
    if (depth > kMaxNesting) return Refuse(in_.offset(), "groups are nested deeper than 200");
    const uint32_t mark = terms_->PushedMark();
    while (true) {
      Term sequence = kNothing;
      ARN_TRY(ParseSequence(depth, &sequence));
      if (!terms_->Push(sequence)) return Check(in_.offset());
      if (!in_.Skip('|')) break;
      SkipSpace(true);
    }
    *out = terms_->Either({terms_->PushedSince(mark), terms_->PushedMark() - mark});
    terms_->ReleaseTo(mark);
    return Check(in_.offset());
  }

  Status ParseSequence(uint32_t depth, Term* out) {
    const uint32_t mark = terms_->PushedMark();
    while (!in_.AtEnd()) {
      Term element = kNothing;
      const size_t start = in_.offset();
      if (in_.Skip('"')) {
        ARN_TRY(ParseLiteral(start, &element));
      } else if (in_.At('[')) {
        ARN_TRY(ParseClass(&element));
      } else if (in_.Skip('.')) {
        element = AnyCharacter(terms_, TextForm::kUtf8);
      } else if (in_.Skip('(')) {
        SkipSpace(true);
        ARN_TRY(ParseAlternatives(depth + 1, &element));
        if (!in_.Skip(')')) return Refuse(start, "unmatched '('");
      } else if (AtWord()) {
        ARN_TRY(ReadName(&element));
      } else {
        break;
      }
      SkipSpace(depth > 0);
      ARN_TRY(ParseCounts(depth, &element));
      if (!terms_->Push(element)) return Check(start);
    }
    if (in_.At('*') || in_.At('+') || in_.At('?') || in_.At('{')) {
      return Refuse(in_.offset(), "nothing to repeat");
    }
    *out = kEmpty;
    const uint32_t end = terms_->PushedMark();
    for (uint32_t i = end; i > mark; --i) *out = terms_->Concat(*terms_->PushedSince(i - 1), *out);
    terms_->ReleaseTo(mark);
    return Check(in_.offset());
  }

  Status ParseCounts(uint32_t depth, Term* element) {
    while (true) {
      const size_t start = in_.offset();
      uint32_t min = 0, max = kUnbounded;
      if (in_.Skip('*')) {
      } else if (in_.Skip('+')) {
        min = 1;
      } else if (in_.Skip('?')) {
        max = 1;
      } else if (in_.At('{')) {
        bool is_count = false, fits = true;
        in_.ReadCount(&min, &max, &is_count, &fits, /*min_may_lack=*/true);
        if (!is_count) return Refuse(start, "a count is {n}, {n,}, {n,m} or {,m}");
        if (!fits) return Refuse(start, "the count is above 4294967294");
        if (min > max) return Refuse(start, "the counts are out of order");
      } else {
        return Status::kOk;
      }
      *element = terms_->Repeat(*element, min, max);
      ARN_TRY(Check(start));
      SkipSpace(depth > 0);
    }
  }

  // ---- Characters ----

  Status ReadCharacter(uint32_t* c) {
    const size_t start = in_.offset();
    if (in_.AtEnd()) return Refuse(start, "the grammar ends inside a literal or class");
    if (!in_.Skip('\\')) return in_.Read(c) ? Status::kOk : Refuse(start, "not UTF-8");
    bool is_known = !in_.AtEnd();
    if (is_known) {
      switch (in_.Next()) {
        case 'n': *c = '\n'; break;
        case 'r': *c = '\r'; break;
        case 't': *c = '\t'; break;
        case '\\': *c = '\\'; break;
        case '"': *c = '"'; break;
        case '[': *c = '['; break;
        case ']': *c = ']'; break;
        case 'x': is_known = in_.ReadHex(2, c); break;
        case 'u': is_known = in_.ReadHex(4, c); break;
        case 'U': is_known = in_.ReadHex(8, c); break;
        default: is_known = false;
      }
    }
    if (!is_known) return Refuse(start, "an unknown escape");
    if (*c > kMaxCodePoint || (*c >= 0xD800 && *c <= 0xDFFF)) {
      return Refuse(start, "the escape is no character");
    }
    return Status::kOk;
  }

  Status ParseLiteral(size_t start, Term* out) {
    const uint32_t mark = terms_->PushedMark();
    while (!in_.Skip('"')) {
      uint32_t c = 0;
      ARN_TRY(ReadCharacter(&c));
      char bytes[4];
      const size_t n = WriteUtf8(c, bytes);
      for (size_t i = 0; i < n; ++i) {
        if (!terms_->Push(static_cast<uint8_t>(bytes[i]))) return Check(start);
      }
    }
    *out = kEmpty;
    for (uint32_t i = terms_->PushedMark(); i > mark; --i) {
      const auto byte = static_cast<uint8_t>(*terms_->PushedSince(i - 1));
      *out = terms_->Concat(terms_->Byte(byte), *out);
    }
    terms_->ReleaseTo(mark);
    return Check(start);
  }

  Status ParseClass(Term* out) {
    const size_t start = in_.offset();
    in_.Next();
    const bool negated = in_.Skip('^');
    if (in_.At(']')) return Refuse(start, "an empty class");
    CodePoints set(terms_);
    while (!in_.Skip(']')) {
      const size_t at = in_.offset();
      uint32_t first = 0, last = 0;
      ARN_TRY(ReadCharacter(&first));
      last = first;
      if (in_.At('-') && !in_.AtAll("-]")) {
        in_.Next();
        ARN_TRY(ReadCharacter(&last));
      }
      if (first > last) return Refuse(at, "the range is out of order");
      set.Add(first, last);
      ARN_TRY(Check(at));
    }
    if (negated) set.Negate(set.mark());
    *out = CharacterTerm(terms_, set.Ranges(), TextForm::kUtf8);
    terms_->ReleaseTo(set.mark());
    return Check(start);
  }

  Terms* terms_;
  StringView text_;
  TextReader in_;
  Diag* diag_;
  uint32_t table_ = 0;
  uint32_t table_mask_ = 0;
  uint32_t n_names_ = 0;
  uint32_t max_names_ = 0;
};

}  // namespace

Status ParseGbnf(Terms* terms, StringView grammar, Term* out, Diag* diag) {
  const uint32_t mark = terms->PushedMark();
  const Status status = grammar.size < kUnbounded
                            ? Parser(terms, grammar, diag).Parse(out)
                            : diag->Fail(Status::kUnsupported, "grammar: larger than 4 GiB");
  terms->ReleaseTo(mark);
  return status;
}

}  // namespace arn

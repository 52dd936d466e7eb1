#include "converter/tokenizer/regex_translate.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/tokenizer/regex_properties.h"
#include "pcre2.h"

namespace arn::convert {
namespace {

constexpr std::string_view kSpace =
    "\\x{09}-\\x{0D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}"
    "\\x{205F}\\x{3000}";
constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
// Outside classes, and for word boundaries, Oniguruma uses a table for the first 256 characters
// that counts superscript digits and fractions as word characters.
constexpr std::string_view kBareWord =
    "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
constexpr std::string_view kHexDigit = "0-9A-Fa-f";

[[noreturn]] void Refuse(const std::string& what) { throw std::invalid_argument(what); }

// Compiles a pattern. Throws if it is invalid.
class CompiledRegex {
 public:
  explicit CompiledRegex(const std::string& pattern) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_ =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
    if (code_ == nullptr) {
      PCRE2_UCHAR reason[128] = {0};
      pcre2_get_error_message(error, reason, sizeof reason);
      Refuse(reinterpret_cast<const char*>(reason));
    }
    data_ = pcre2_match_data_create(1, nullptr);
  }
  ~CompiledRegex() {
    pcre2_match_data_free(data_);
    pcre2_code_free(code_);
  }
  CompiledRegex(const CompiledRegex&) = delete;
  CompiledRegex& operator=(const CompiledRegex&) = delete;

  // True if the pattern matches one ASCII character.
  bool Matches(char c) const {
    return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(&c), 1, 0, 0, data_, nullptr) >= 0;
  }

 private:
  pcre2_code* code_ = nullptr;
  pcre2_match_data* data_ = nullptr;
};

class Translator {
 public:
  explicit Translator(const std::string& pattern) : in_(pattern) {}

  std::string Run() {
    Alternatives();
    if (!AtEnd()) Refuse("a ) without a (");
    return std::move(out_);
  }

 private:
  bool AtEnd() const { return at_ == in_.size(); }
  char Peek(size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  bool StartsWith(std::string_view text) const { return in_.compare(at_, text.size(), text) == 0; }
  bool Take(std::string_view text) {
    if (!StartsWith(text)) return false;
    at_ += text.size();
    return true;
  }

  // Translates alternatives up to the end or to an unmatched ')'.
  void Alternatives() {
    // Start in out_ of the last item that a quantifier can follow.
    size_t atom = std::string::npos;
    while (!AtEnd() && Peek() != ')') {
      const size_t start = out_.size();
      const char c = Peek();
      if (c == '|') {
        ++at_;
        out_ += '|';
        atom = std::string::npos;
      } else if (c == '*' || c == '+' || c == '?' || IsInterval()) {
        if (atom == std::string::npos) Refuse("a quantifier after nothing to repeat");
        Quantifier(atom);
        if (Peek() == '*' || Peek() == '+' || Peek() == '?' || IsInterval()) {
          Refuse("a quantifier after a quantifier");
        }
        atom = std::string::npos;
      } else if (c == '(') {
        const bool is_atom = Group();
        atom = is_atom ? start : std::string::npos;
      } else if (c == '[') {
        Class();
        atom = start;
      } else if (c == '\\') {
        const bool is_atom = Escape(false);
        atom = is_atom ? start : std::string::npos;
      } else if (c == '^' || c == '$') {
        ++at_;
        out_ += c == '^' ? "(?m:^)" : "(?m:$)";
        atom = std::string::npos;
      } else {
        Character();
        atom = start;
      }
    }
  }

  // Translates one literal character or a dot.
  void Character() {
    if (Peek() == '{') out_ += '\\';
    do {
      out_ += in_[at_++];
    } while (!AtEnd() && (static_cast<uint8_t>(Peek()) & 0xC0) == 0x80);
  }

  // True for {n}, {n,}, {n,m} and {,m}; any other { is literal.
  bool IsInterval() const {
    if (Peek() != '{') return false;
    size_t i = 1, digits = 0;
    for (; std::isdigit(static_cast<unsigned char>(Peek(i))); ++i) ++digits;
    if (Peek(i) == ',') {
      for (++i; std::isdigit(static_cast<unsigned char>(Peek(i))); ++i) ++digits;
    }
    return digits > 0 && Peek(i) == '}';
  }

  void Quantifier(size_t atom) {
    if (Peek() != '{') {
      out_ += in_[at_++];
      if (Peek() == '?' || Peek() == '+') out_ += in_[at_++];
      return;
    }
    const size_t end = in_.find('}', at_) + 1;
    const std::string interval = in_.substr(at_, end - at_);
    at_ = end;
    if (Peek() == '?' && interval.find(',') == std::string::npos) {
      Refuse("the quantifier " + interval + "?");
    }
    if (Peek() == '+') {
      ++at_;
      // A repeated interval. With a minimum of one it equals +.
      if (interval.compare(0, 3, "{1,") == 0) {
        out_ += '+';
      } else {
        out_ = out_.substr(0, atom) + "(?:" + out_.substr(atom) + interval + ")+";
      }
      return;
    }
    out_ += interval;
    if (Peek() == '?') out_ += in_[at_++];
  }

  // Translates a group; true if a quantifier can follow it.
  bool Group() {
    static constexpr std::string_view kAsIs[] = {"(?:", "(?>", "(?=", "(?!", "(?<=", "(?<!"};
    bool is_atom = true;
    bool is_rest = false;
    const auto as_is = std::find_if(std::begin(kAsIs), std::end(kAsIs),
                                    [this](std::string_view open) { return StartsWith(open); });
    if (as_is != std::end(kAsIs)) {
      is_atom = as_is < std::begin(kAsIs) + 2;
      at_ += as_is->size();
      out_ += *as_is;
    } else if (Take("(?<")) {
      const size_t close = in_.find('>', at_);
      if (close == std::string::npos) Refuse("a group without the end of its name");
      at_ = close + 1;
      out_ += "(?:";
    } else if (Take("(?")) {
      is_rest = Options();
    } else {
      ++at_;
      out_ += "(?:";
    }
    Alternatives();
    out_ += ')';
    if (is_rest) return false;  // the option extends to the end of the enclosing group
    if (!Take(")")) Refuse("a ( without a )");
    return is_atom;
  }

  // Translates the letters of an option group; true if it applies to the rest of the enclosing
  // group.
  bool Options() {
    std::string flags;
    for (; !AtEnd() && Peek() != ':' && Peek() != ')'; ++at_) {
      const char c = Peek();
      if (c != 'i' && c != 'm' && c != '-') Refuse(std::string("the group (?") + c);
      flags += c == 'm' ? 's' : c;
    }
    const bool is_rest = Peek() == ')';
    ++at_;
    out_ += "(?" + flags + ":";
    return is_rest;
  }

  // A class as a PCRE2 term: [..] if a list of characters and ranges can express it, else a set
  // expression for (?[ ]).
  struct ClassTerm {
    std::string text;
    bool is_list = false;
    bool is_negated = false;  // lists only
    std::string members;      // lists only
    bool has_hat = false;     // as written in the source
  };

  void Class() {
    const ClassTerm term = ReadClass();
    out_ += term.is_list ? term.text : "(?[ " + AsTerm(term) + " ])";
  }

  // Reads a class from its '['. As in Oniguruma, && binds loosest, and ^ negates the whole class.
  ClassTerm ReadClass() {
    ++at_;
    const bool is_negated = Take("^");
    ClassTerm term = ReadOperands(is_negated);
    term.has_hat = is_negated;
    return term;
  }

  ClassTerm ReadOperands(bool is_negated) {
    if (Peek() == ']') Refuse("a character class that begins with ]");
    std::vector<ClassTerm> operands = {ReadUnion()};
    while (Take("&&")) operands.push_back(ReadUnion());
    ++at_;  // ]
    ClassTerm term = operands[0];
    if (operands.size() == 1 && term.is_list && !(is_negated && term.is_negated)) {
      return List(term.members, is_negated || term.is_negated);
    }
    if (operands.size() == 1 && !is_negated) return term;
    std::string all;
    for (const ClassTerm& operand : operands) {
      all += (all.empty() ? "" : " & ") + AsTerm(operand);
    }
    term = ClassTerm();
    term.text = (is_negated ? "!(" : "(") + all + ")";
    return term;
  }

  // Reads the items of a class up to its end or to &&.
  ClassTerm ReadUnion() {
    std::string members;
    std::vector<ClassTerm> others;
    const std::string outside = std::exchange(out_, "");
    bool is_behind_class = false;
    for (; Peek() != ']' && !StartsWith("&&"); members += std::exchange(out_, "")) {
      if (AtEnd()) Refuse("a [ without a ]");
      const bool is_hyphen = Peek() == '-';
      if (is_hyphen && is_behind_class) Refuse("a - after a class within a class");
      is_behind_class = false;
      if (Peek() == '[') {
        if (Peek(1) == ':') Refuse("a POSIX bracket");
        const ClassTerm inner = ReadClass();
        if (inner.has_hat && !MatchesAscii(inner)) {
          // Oniguruma would add all non-ASCII characters here.
          Refuse("a class within a class that begins with ^ and has no ASCII character");
        }
        if (inner.is_list && !inner.is_negated) {
          out_ = inner.members;
        } else {
          others.push_back(inner);
        }
        is_behind_class = true;
      } else if (StartsWith("\\W") || StartsWith("\\H")) {
        others.push_back(List(std::string(Peek(1) == 'W' ? kWord : kHexDigit), true));
        at_ += 2;
        is_behind_class = true;
      } else if (Peek() == '\\') {
        Escape(true);
      } else {
        do {
          out_ += in_[at_++];
        } while (!AtEnd() && (static_cast<uint8_t>(Peek()) & 0xC0) == 0x80);
      }
      if (is_hyphen && Peek() == '[') Refuse("a - before a class within a class");
    }
    out_ = outside;
    if (members.empty() && others.empty()) Refuse("a && without an operand");
    if (others.empty()) return List(members, false);
    if (others.size() == 1 && members.empty()) return others[0];
    ClassTerm term;
    if (!members.empty()) term.text = AsTerm(List(members, false));
    for (const ClassTerm& other : others) {
      term.text += (term.text.empty() ? "" : " + ") + AsTerm(other);
    }
    term.text = "(" + term.text + ")";
    return term;
  }

  static ClassTerm List(const std::string& members, bool is_negated) {
    ClassTerm term;
    term.is_list = true;
    term.is_negated = is_negated;
    term.members = members;
    term.text = (is_negated ? "[^" : "[") + members + "]";
    return term;
  }

  static bool MatchesAscii(const ClassTerm& term) {
    const CompiledRegex regex(term.is_list ? term.text : "(?[ " + term.text + " ])");
    for (char c = 0;; ++c) {
      if (regex.Matches(c)) return true;
      if (c == 0x7F) return false;
    }
  }

  // Escapes blanks, which (?[ ]) would skip.
  static std::string AsTerm(const ClassTerm& term) {
    if (!term.is_list) return term.text;
    std::string out;
    for (size_t i = 0; i < term.text.size(); ++i) {
      const char c = term.text[i];
      if (c == ' ' || c == '\t') {
        out += c == ' ' ? "\\x{20}" : "\\x{09}";
      } else {
        out += c;
        if (c == '\\') out += term.text[++i];
      }
    }
    return out;
  }

  // Writes a set of characters: bare inside a class, else as a new class, negated if `negated`.
  void Set(std::string_view members, bool negated, bool in_class) {
    if (in_class) {
      out_ += members;
    } else {
      out_ += (negated ? "[^" : "[") + std::string(members) + "]";
    }
  }

  // Translates an escape; true if a quantifier can follow it.
  bool Escape(bool in_class) {
    ++at_;
    if (AtEnd()) Refuse("a \\ at the end");
    const char c = in_[at_++];
    switch (c) {
      case 's':
      case 'S':
        if (in_class && c == 'S') {
          out_ += "\\P{White_Space}";
        } else {
          Set(kSpace, c == 'S', in_class);
        }
        return true;
      case 'w':
      case 'W': Set(in_class ? kWord : kBareWord, c == 'W', in_class); return true;
      case 'h':
      case 'H': Set(kHexDigit, c == 'H', in_class); return true;
      case 'd':
      case 'D':
      case 'n':
      case 't':
      case 'r':
      case 'f':
      case 'a':
      case 'e': out_ += {'\\', c}; return true;
      case 'v': out_ += "\\x{0B}"; return true;
      case 'x':
      case 'u': CodePoint(c); return true;
      case 'p':
      case 'P': Property(c == 'P'); return true;
      case 'b':
      case 'B':
        if (in_class) {
          if (c == 'B') Refuse("\\B within a character class");
          out_ += "\\x{08}";
          return true;
        }
        WordBorder(c == 'b');
        return false;
      case 'A':
      case 'z':
      case 'Z':
        if (in_class) Refuse(std::string("\\") + c + " within a character class");
        out_ += {'\\', c};
        return false;
      default: break;
    }
    if (std::isalnum(static_cast<unsigned char>(c))) Refuse(std::string("\\") + c);
    if (static_cast<uint8_t>(c) < 0x80) out_ += '\\';
    out_ += c;
    while (!AtEnd() && (static_cast<uint8_t>(Peek()) & 0xC0) == 0x80) out_ += in_[at_++];
    return true;
  }

  void WordBorder(bool is_border) {
    const std::string word = "[" + std::string(kBareWord) + "]";
    out_ += is_border ? "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))"
                      : "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))";
  }

  // Translates \xHH, \x{H...}, \uHHHH.
  void CodePoint(char kind) {
    std::string digits;
    const auto take_digits = [&](size_t most) {
      while (digits.size() < most && std::isxdigit(static_cast<unsigned char>(Peek()))) {
        digits += in_[at_++];
      }
    };
    if (kind == 'x' && Take("{")) {
      take_digits(8);
      if (!Take("}")) Refuse("a \\x{ without a }");
    } else {
      take_digits(kind == 'x' ? 2 : 4);
      if (kind == 'u' && digits.size() != 4) Refuse("\\u without four digits");
      if (kind == 'x' && digits.size() == 2 && (digits[0] >= '8')) {
        Refuse("\\x" + digits + ", which is a byte of a character");
      }
    }
    if (digits.empty()) Refuse("\\x without digits");
    out_ += "\\x{" + digits + "}";
  }

  void Property(bool negated) {
    if (!Take("{")) Refuse("\\p without {");
    if (Take("^")) negated = !negated;
    const size_t close = in_.find('}', at_);
    if (close == std::string::npos) Refuse("a \\p{ without a }");
    const std::string given = in_.substr(at_, close - at_);
    at_ = close + 1;
    std::string name;
    for (const char c : given) {
      if (c == ' ' || c == '-' || c == '_') continue;
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    const std::string_view known = Pcre2Property(name);
    out_ += negated ? "\\P{" : "\\p{";
    out_ += known.empty() ? "sc:" + given : std::string(known);
    out_ += '}';
  }

  const std::string& in_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string TranslateRegex(const std::string& pattern) {
  const std::string translated = Translator(pattern).Run();
  const CompiledRegex check(translated);
  return translated;
}

std::string LiteralRegex(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<uint8_t>(c) < 0x80 && !std::isalnum(static_cast<unsigned char>(c))) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace arn::convert

#include "converter/tokenizer/regex_translate.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "converter/tokenizer/regex_properties.h"
#include "pcre2.h"

namespace arn::convert {
namespace {

constexpr std::string_view kSpace =
    "\\x{09}-\\x{0D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}"
    "\\x{205F}\\x{3000}";
constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
constexpr std::string_view kHexDigit = "0-9A-Fa-f";

[[noreturn]] void Refuse(const std::string& what) { throw std::invalid_argument(what); }

class Translator {
 public:
  explicit Translator(const std::string& pattern) : in_(pattern) {}

  std::string Run() {
    Alternatives();
    if (!AtEnd()) Refuse("a ) without its (");
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

  // Up to the end or to an unmatched ')'.
  void Alternatives() {
    std::optional<size_t> atom;  // where the last thing that can be repeated begins in out_
    while (!AtEnd() && Peek() != ')') {
      const size_t start = out_.size();
      const char c = Peek();
      if (c == '|') {
        ++at_;
        out_ += '|';
        atom.reset();
      } else if (c == '*' || c == '+' || c == '?' || IsInterval()) {
        if (!atom) Refuse("a quantifier behind nothing that can be repeated");
        Quantifier(*atom);
        if (Peek() == '*' || Peek() == '+' || Peek() == '?' || IsInterval()) {
          Refuse("a quantifier behind a quantifier");
        }
        atom.reset();
      } else if (c == '(') {
        const bool is_atom = Group();
        atom = is_atom ? std::optional<size_t>(start) : std::nullopt;
      } else if (c == '[') {
        Class();
        atom = start;
      } else if (c == '\\') {
        const bool is_atom = Escape(false);
        atom = is_atom ? std::optional<size_t>(start) : std::nullopt;
      } else if (c == '^' || c == '$') {
        ++at_;
        out_ += c == '^' ? "(?m:^)" : "(?m:$)";
        atom.reset();
      } else {
        Character();
        atom = start;
      }
    }
  }

  // One literal character or a dot.
  void Character() {
    if (Peek() == '{') out_ += '\\';
    do {
      out_ += in_[at_++];
    } while (!AtEnd() && (static_cast<uint8_t>(Peek()) & 0xC0) == 0x80);
  }

  // {n}, {n,}, {n,m} or {,m}; any other { stands for itself.
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
      // A repeated interval. From one on it is the same as +.
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

  // Whether it can be repeated.
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
    if (is_rest) return false;  // the enclosing group ends where this one does
    if (!Take(")")) Refuse("a ( without its )");
    return is_atom;
  }

  // The letters of an option group; true when it holds for the rest of the enclosing group.
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

  void Class() {
    ++at_;
    out_ += '[';
    if (Take("^")) out_ += '^';
    if (Peek() == ']') Refuse("a character class that begins with ]");
    while (Peek() != ']') {
      if (AtEnd()) Refuse("a [ without its ]");
      if (Peek() == '[') Refuse(Peek(1) == ':' ? "a POSIX bracket" : "a class within a class");
      if (StartsWith("&&")) Refuse("the class operator &&");
      if (Peek() == '\\') {
        Escape(true);
      } else {
        do {
          out_ += in_[at_++];
        } while (!AtEnd() && (static_cast<uint8_t>(Peek()) & 0xC0) == 0x80);
      }
    }
    ++at_;
    out_ += ']';
  }

  // A set of characters, or its complement, inside of a class or as one.
  void Set(std::string_view members, bool negated, bool in_class) {
    if (in_class && negated) Refuse("a negated set within a character class");
    if (in_class) {
      out_ += members;
    } else {
      out_ += (negated ? "[^" : "[") + std::string(members) + "]";
    }
  }

  // Whether it can be repeated.
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
      case 'W': Set(kWord, c == 'W', in_class); return true;
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
    const std::string word = "[" + std::string(kWord) + "]";
    out_ += is_border ? "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))"
                      : "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))";
  }

  // \xHH, \x{H...}, \uHHHH.
  void CodePoint(char kind) {
    std::string digits;
    const auto take_digits = [&](size_t most) {
      while (digits.size() < most && std::isxdigit(static_cast<unsigned char>(Peek()))) {
        digits += in_[at_++];
      }
    };
    if (kind == 'x' && Take("{")) {
      take_digits(8);
      if (!Take("}")) Refuse("a \\x{ without its }");
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
    if (close == std::string::npos) Refuse("a \\p{ without its }");
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

void CheckWithPcre2(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code == nullptr) {
    PCRE2_UCHAR reason[128] = {0};
    pcre2_get_error_message(error, reason, sizeof reason);
    Refuse(reinterpret_cast<const char*>(reason));
  }
  pcre2_code_free(code);
}

}  // namespace

std::string TranslateRegex(const std::string& pattern) {
  const std::string translated = Translator(pattern).Run();
  CheckWithPcre2(translated);
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

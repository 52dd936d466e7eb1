#include "converter/chat/lexer.h"

#include <algorithm>

#include "converter/chat/escapes.h"
#include "converter/chat/template_error.h"

namespace arn::convert {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

// Converts "\r\n" and "\r" to "\n" and drops a final line end (Jinja: keep_trailing_newline is
// off).
std::string Normalized(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    text += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(Normalized(source)) {}

  std::vector<Token> Run() {
    while (at_ < text_.size()) Root();
    Push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const { throw TemplateError(line_, what); }

  bool StartsWith(std::string_view what) const {
    return text_.compare(at_, what.size(), what) == 0;
  }
  void Push(TokenKind kind, std::string value) {
    tokens_.push_back({kind, line_, std::move(value)});
  }
  // Skips `bytes` bytes, counting lines.
  void Skip(size_t bytes) {
    line_ += static_cast<uint32_t>(std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                                              text_.begin() + static_cast<ptrdiff_t>(at_ + bytes),
                                              '\n'));
    at_ += bytes;
  }
  void SkipSpaces() {
    while (at_ < text_.size()) {
      const size_t bytes = WhiteSpaceBytes(std::string_view(text_).substr(at_));
      if (bytes == 0) return;
      Skip(bytes);
    }
  }

  // Lexes the text up to the next tag, and the tag.
  void Root() {
    size_t tag = at_;
    for (;; ++tag) {
      tag = text_.find('{', tag);
      if (tag == std::string::npos || tag + 1 >= text_.size()) {
        tag = std::string::npos;
        break;
      }
      const char c = text_[tag + 1];
      if (c == '{' || c == '%' || c == '#') break;
    }
    const size_t end = tag == std::string::npos ? text_.size() : tag;
    const std::string_view data = std::string_view(text_).substr(at_, end - at_);
    if (tag == std::string::npos) {
      Push(TokenKind::kData, std::string(data));
      Skip(data.size());
      return;
    }
    const char kind = text_[tag + 1];
    const char sign = tag + 2 < text_.size() ? text_[tag + 2] : '\0';
    EmitData(data, sign, kind != '{');
    Skip(data.size() + 2);
    if (sign == '-' || sign == '+') Skip(1);
    line_starting_ = false;
    if (kind == '#') {
      Comment();
    } else if (kind == '{') {
      Push(TokenKind::kVariableBegin, "");
      Expression("}}", TokenKind::kVariableEnd);
    } else if (!Raw()) {
      Push(TokenKind::kBlockBegin, "");
      Expression("%}", TokenKind::kBlockEnd);
    }
  }

  void EmitData(std::string_view data, char sign, bool strips_line) {
    size_t kept = data.size();
    if (sign == '-') {
      kept = TrimmedEnd(data);
    } else if (sign != '+' && strips_line) {
      const size_t line = data.rfind('\n') == std::string_view::npos ? 0 : data.rfind('\n') + 1;
      if ((line > 0 || line_starting_) && IsAllSpace(data.substr(line)) && line < data.size()) {
        kept = line;
      }
    }
    if (kept > 0) Push(TokenKind::kData, std::string(data.substr(0, kept)));
  }

  // After a block or comment: "-" skips white space, no sign skips one line end.
  void AfterBlock(char sign) {
    const size_t before = at_;
    if (sign == '-') {
      SkipSpaces();
    } else if (sign != '+' && at_ < text_.size() && text_[at_] == '\n') {
      Skip(1);
    }
    line_starting_ = at_ > before && text_[at_ - 1] == '\n';
  }

  void Comment() {
    const size_t end = text_.find("#}", at_);
    if (end == std::string::npos) Fail("unterminated comment: {# without #}");
    char sign = end > at_ ? text_[end - 1] : '\0';
    if (sign != '-' && sign != '+') sign = '\0';
    Skip(end + 2 - at_);
    AfterBlock(sign);
  }

  // Lexes {% raw %} ... {% endraw %}; at_ is after "{%" and its sign.
  bool Raw() {
    const size_t begin = at_;
    const uint32_t line = line_;
    SkipSpaces();
    if (!StartsWith("raw")) return Back(begin, line);
    Skip(3);
    SkipSpaces();
    if (StartsWith("-%}")) {
      Skip(3);
      SkipSpaces();
    } else if (StartsWith("%}")) {
      Skip(2);
    } else {
      return Back(begin, line);
    }
    line_starting_ = text_[at_ - 1] == '\n';
    for (size_t tag = text_.find("{%", at_); tag != std::string::npos;
         tag = text_.find("{%", tag + 2)) {
      size_t at = tag + 2;
      char sign = at < text_.size() ? text_[at] : '\0';
      if (sign == '-' || sign == '+') ++at;
      at = AfterSpaces(at);
      if (text_.compare(at, 6, "endraw") != 0) continue;
      at = AfterSpaces(at + 6);
      char end_sign = at < text_.size() ? text_[at] : '\0';
      if (end_sign == '-' || end_sign == '+') ++at;
      if (text_.compare(at, 2, "%}") != 0) continue;
      EmitData(std::string_view(text_).substr(at_, tag - at_), sign, true);
      Skip(at + 2 - at_);
      AfterBlock(end_sign);
      return true;
    }
    Fail("{% raw %} without {% endraw %}");
  }
  bool Back(size_t at, uint32_t line) {
    at_ = at;
    line_ = line;
    return false;
  }
  size_t AfterSpaces(size_t at) const {
    while (at < text_.size()) {
      const size_t bytes = WhiteSpaceBytes(std::string_view(text_).substr(at));
      if (bytes == 0) break;
      at += bytes;
    }
    return at;
  }

  // Lexes an expression up to `end`.
  void Expression(std::string_view end, TokenKind end_kind) {
    std::string open;  // open brackets
    for (;;) {
      SkipSpaces();
      if (at_ >= text_.size()) Fail("the template ends inside a tag");
      if (open.empty() && Ends(end, end_kind)) return;
      const char c = text_[at_];
      if (IsDigit(c)) {
        Number();
      } else if (IsNameStart(c)) {
        size_t n = 1;
        // White space may be of several bytes.
        while (at_ + n < text_.size() && IsNamePart(text_[at_ + n]) &&
               WhiteSpaceBytes(std::string_view(text_).substr(at_ + n)) == 0) {
          ++n;
        }
        Push(TokenKind::kName, text_.substr(at_, n));
        Skip(n);
      } else if (c == '\'' || c == '"') {
        String(c);
      } else {
        Operator(&open);
      }
    }
  }

  bool Ends(std::string_view end, TokenKind end_kind) {
    const char sign = text_[at_];
    const bool has_sign = sign == '-' || (sign == '+' && end_kind == TokenKind::kBlockEnd);
    if (text_.compare(at_ + (has_sign ? 1 : 0), 2, end) != 0) return false;
    Push(end_kind, "");
    Skip(has_sign ? 3 : 2);
    if (end_kind == TokenKind::kBlockEnd) {
      AfterBlock(has_sign ? sign : '\0');
    } else {
      const size_t before = at_;
      if (has_sign) SkipSpaces();
      line_starting_ = at_ > before && text_[at_ - 1] == '\n';
    }
    return true;
  }

  void Operator(std::string* open) {
    static constexpr std::string_view kOperators[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view op : kOperators) {
      if (!StartsWith(op)) continue;
      const char c = op[0];
      if (c == '(' || c == '[' || c == '{') *open += c == '(' ? ')' : c == '[' ? ']' : '}';
      if (c == ')' || c == ']' || c == '}') {
        if (open->empty()) Fail("unexpected '" + std::string(op) + "'");
        if (open->back() != c) {
          Fail("unexpected '" + std::string(op) + "', expected '" + open->back() + "'");
        }
        open->pop_back();
      }
      Push(TokenKind::kOperator, std::string(op));
      Skip(op.size());
      return;
    }
    Fail(std::string("unexpected character '") + text_[at_] + "'");
  }

  void String(char quote) {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) Fail("unterminated string");
    std::string value;
    const std::string error =
        Unescape(std::string_view(text_).substr(at_ + 1, end - at_ - 1), &value);
    if (!error.empty()) Fail(error);
    Push(TokenKind::kString, std::move(value));
    Skip(end + 1 - at_);
  }

  // Skips digits with single underscores between them, from a digit at `at`; returns their end.
  size_t Digits(size_t at) const {
    while (at < text_.size() && (IsDigit(text_[at]) || (text_[at] == '_' && at + 1 < text_.size() &&
                                                        IsDigit(text_[at + 1])))) {
      ++at;
    }
    return at;
  }

  void Number() {
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (text_[at_] == '0' && std::string_view("bBoOxX").find(next) != std::string_view::npos) {
      Fail("binary, octal and hexadecimal numbers are not supported");
    }
    const size_t whole = Digits(at_);
    size_t end = whole;
    // A tag has begun: there is a token.
    const bool follows_dot = tokens_.back().IsOperator(".") && text_[at_ - 1] == '.';
    if (!follows_dot) {
      if (end + 1 < text_.size() && text_[end] == '.' && IsDigit(text_[end + 1])) {
        end = Digits(end + 1);
      }
      if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
        size_t exponent = end + 1;
        if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) {
          ++exponent;
        }
        if (exponent < text_.size() && IsDigit(text_[exponent])) end = Digits(exponent);
      }
    }
    std::string value = text_.substr(at_, end - at_);
    value.erase(std::remove(value.begin(), value.end(), '_'), value.end());
    const bool is_float = end != whole;
    if (!is_float && value.size() > 1 && value[0] == '0') {
      if (value.find_first_not_of('0') != std::string::npos) {
        Fail("a number with a leading 0: " + value);
      }
      value = "0";
    }
    Push(is_float ? TokenKind::kFloat : TokenKind::kInteger, std::move(value));
    Skip(end - at_);
  }

  const std::string text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;  // true at the start of a line
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Tokenize(std::string_view source) { return Lexer(source).Run(); }

}  // namespace arn::convert

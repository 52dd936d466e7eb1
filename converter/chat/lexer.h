// A template's text as tokens. The rules are those of Jinja 3.1's lexer with trim_blocks and
// lstrip_blocks, as transformers sets it up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace arn::convert {

enum class TokenKind : uint8_t {
  kData,           // text as it is; the value
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,   // the value, unescaped
  kInteger,  // the value: decimal digits
  kFloat,    // the value: as from_chars reads it
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  uint32_t line = 1;
  std::string value;

  bool IsName(std::string_view name) const { return kind == TokenKind::kName && value == name; }
  bool IsOperator(std::string_view op) const { return kind == TokenKind::kOperator && value == op; }
};

// The last token is a kEnd. Throws TemplateError.
std::vector<Token> Tokenize(std::string_view source);

}  // namespace arn::convert

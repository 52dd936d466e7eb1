// Lexer of templates: Jinja 3.1's rules with trim_blocks and lstrip_blocks, as transformers sets
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace arn::convert {

enum class TokenKind : uint8_t {
  kData,           // literal text; the value
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,
  kString,   // the value, unescaped
  kInteger,  // the value: decimal digits
  kFloat,    // the value: in from_chars syntax
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

// Ends the list with a kEnd token. Throws TemplateError.
std::vector<Token> Tokenize(std::string_view source);

}  // namespace arn::convert

// Parses tokens into a program: the grammar of Jinja 3.1 with the loopcontrols extension and {%
// generation %}, as transformers sets it up. Refuses by name what the runtime does not support.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "converter/chat/lexer.h"
#include "converter/chat/program_builder.h"

namespace arn::convert {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // Parses the whole template. Throws TemplateError.
  std::vector<uint8_t> Run();

 private:
  using Op = chat::Op;
  using Nodes = std::vector<uint32_t>;
  class Nesting;

  // tokens
  const Token& Now() const { return tokens_[at_]; }
  const Token& Next() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token Take();
  bool TakeName(std::string_view name);
  bool TakeOperator(std::string_view op);
  void ExpectOperator(std::string_view op);
  std::string ExpectName();
  void ExpectKind(TokenKind kind, const char* what);
  [[noreturn]] void Fail(const std::string& what) const;
  [[noreturn]] void FailAt(uint32_t line, const std::string& what) const;

  // statements
  uint32_t Statements(std::initializer_list<std::string_view> ends);
  uint32_t Body(std::initializer_list<std::string_view> ends);
  uint32_t Statement();
  uint32_t If();
  uint32_t For();
  uint32_t Set();
  uint32_t Macro();
  uint32_t With();
  uint32_t FilterBlock();
  uint32_t PrintStatement();
  uint32_t Generation();
  uint32_t LoopControl(Op op);
  uint32_t Target(bool with_field, bool ends_at_in);
  uint32_t TargetPart(bool with_field);

  // expressions
  uint32_t Tuple(bool with_choice, bool is_parenthesised, std::string_view end_name = "");
  uint32_t Expression(bool with_choice = true);
  uint32_t Choice();
  uint32_t Or();
  uint32_t And();
  uint32_t Not();
  uint32_t Compare();
  uint32_t Sum();
  uint32_t Concat();
  uint32_t Product();
  uint32_t Power();
  uint32_t Unary(bool with_filter);
  uint32_t Primary();
  uint32_t Name(const Token& token);
  uint32_t Postfix(uint32_t node);
  uint32_t FilterExpression(uint32_t node);
  uint32_t Subscript(uint32_t node);
  uint32_t Index(uint32_t node, uint32_t line);
  uint32_t ListLiteral();
  uint32_t DictLiteral();
  uint32_t Call(uint32_t callee);
  uint32_t FilterChain(uint32_t node, bool starts_inside);
  uint32_t TestExpression(uint32_t node);
  // Parses "(...)" into args; adds the argument nodes to `children`.
  uint32_t Arguments(Nodes* children);
  uint32_t NoArguments();
  void CheckCall(uint32_t callee, uint32_t line) const;
  uint32_t Number(const Token& token);
  uint32_t ListOf(Op op, uint32_t line, const Nodes& items);
  uint32_t Binary(Op op, uint32_t line, uint32_t a, uint32_t b);

  std::vector<Token> tokens_;
  size_t at_ = 0;
  uint32_t depth_ = 0;   // nesting of statements and expressions
  uint32_t loops_ = 0;   // enclosing loops, up to the enclosing macro
  uint32_t macros_ = 0;  // enclosing macros
  std::vector<std::string> open_tags_;
  std::vector<std::string> parameters_;  // of the enclosing macros
  ProgramBuilder builder_;
};

// Recursion limit of the parser.
inline constexpr uint32_t kMaxParserDepth = 400;

class Parser::Nesting {
 public:
  explicit Nesting(Parser* parser) : parser_(parser) {
    if (++parser_->depth_ > kMaxParserDepth) parser_->Fail("nested too deeply");
  }
  ~Nesting() { --parser_->depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Parser* parser_;
};

}  // namespace arn::convert

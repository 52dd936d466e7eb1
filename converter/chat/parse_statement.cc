// Parses tags: {% if %}, {% for %}, ...
#include <algorithm>

#include "converter/chat/parser.h"
#include "converter/chat/template_error.h"

namespace arn::convert {
namespace {

std::string Joined(std::initializer_list<std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    text += (text.empty() ? "'" : " or '") + std::string(name) + "'";
  }
  return text;
}

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData: return "text";
    case TokenKind::kVariableBegin: return "{{";
    case TokenKind::kVariableEnd: return "}}";
    case TokenKind::kBlockBegin: return "{%";
    case TokenKind::kBlockEnd: return "%}";
    case TokenKind::kString: return "a string";
    case TokenKind::kEnd: return "the end of the template";
    case TokenKind::kName:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
    case TokenKind::kOperator: return "'" + token.value + "'";
  }
  return "";
}

}  // namespace

std::vector<uint8_t> Parser::Run() {
  const uint32_t root = Statements({});
  return builder_.Finish(root);
}

Token Parser::Take() {
  Token token = Now();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::TakeName(std::string_view name) {
  if (!Now().IsName(name)) return false;
  Take();
  return true;
}

bool Parser::TakeOperator(std::string_view op) {
  if (!Now().IsOperator(op)) return false;
  Take();
  return true;
}

void Parser::ExpectOperator(std::string_view op) {
  if (!TakeOperator(op)) Fail("expected '" + std::string(op) + "', found " + Describe(Now()));
}

std::string Parser::ExpectName() {
  if (Now().kind != TokenKind::kName) Fail("expected a name, found " + Describe(Now()));
  return Take().value;
}

void Parser::ExpectKind(TokenKind kind, const char* what) {
  if (Now().kind != kind) {
    Fail(std::string("expected '") + what + "', found " + Describe(Now()));
  }
  Take();
}

void Parser::Fail(const std::string& what) const { FailAt(Now().line, what); }

void Parser::FailAt(uint32_t line, const std::string& what) const {
  throw TemplateError(line, what);
}

// Parses statements up to {% and one of `ends`, and leaves that name as the next token; without
// `ends`, up to the end of the template.
uint32_t Parser::Statements(std::initializer_list<std::string_view> ends) {
  const Nesting nesting(this);
  const uint32_t line = Now().line;
  Nodes items;
  for (;;) {
    const Token token = Now();
    if (token.kind == TokenKind::kEnd) {
      if (ends.size() == 0) break;
      Fail("the template ends; {% " + open_tags_.back() + " %} needs " + Joined(ends));
    } else if (token.kind == TokenKind::kData) {
      Take();
      items.push_back(builder_.Add(Op::kText, token.line, builder_.AddString(token.value), 0, 0));
    } else if (token.kind == TokenKind::kVariableBegin) {
      Take();
      const uint32_t value = Tuple(/*with_choice=*/true, /*is_parenthesised=*/false);
      ExpectKind(TokenKind::kVariableEnd, "}}");
      items.push_back(builder_.Add(Op::kPrint, token.line, value, 0, 0, {value}));
    } else {
      ExpectKind(TokenKind::kBlockBegin, "{%");
      if (Now().kind == TokenKind::kName &&
          std::find(ends.begin(), ends.end(), Now().value) != ends.end()) {
        break;
      }
      items.push_back(Statement());
      ExpectKind(TokenKind::kBlockEnd, "%}");
    }
  }
  if (items.size() == 1) return items[0];
  return ListOf(Op::kSequence, line, items);
}

// Parses the end of the opening tag, then statements as above.
uint32_t Parser::Body(std::initializer_list<std::string_view> ends) {
  TakeOperator(":");
  ExpectKind(TokenKind::kBlockEnd, "%}");
  return Statements(ends);
}

uint32_t Parser::Statement() {
  const Nesting nesting(this);
  if (Now().kind != TokenKind::kName) Fail("expected the name of a tag, found " + Describe(Now()));
  const std::string name = Now().value;
  open_tags_.push_back(name);
  uint32_t node = chat::kNoIndex;
  if (name == "if") {
    node = If();
  } else if (name == "for") {
    node = For();
  } else if (name == "set") {
    node = Set();
  } else if (name == "macro") {
    node = Macro();
  } else if (name == "with") {
    node = With();
  } else if (name == "filter") {
    node = FilterBlock();
  } else if (name == "print") {
    node = PrintStatement();
  } else if (name == "generation") {
    node = Generation();
  } else if (name == "break") {
    node = LoopControl(Op::kBreak);
  } else if (name == "continue") {
    node = LoopControl(Op::kContinue);
  } else if (name == "include" || name == "import" || name == "from" || name == "extends" ||
             name == "block" || name == "call" || name == "autoescape") {
    Fail("{% " + name + " %} is not supported");
  } else {
    open_tags_.pop_back();
    Fail("unknown tag '" + name + "'" +
         (open_tags_.empty() ? "" : "; the innermost open one is '" + open_tags_.back() + "'"));
  }
  open_tags_.pop_back();
  return node;
}

uint32_t Parser::If() {
  const uint32_t line = Take().line;
  Nodes parts;
  uint32_t otherwise = chat::kNoIndex;
  for (;;) {
    parts.push_back(Tuple(/*with_choice=*/false, /*is_parenthesised=*/false));
    parts.push_back(Body({"elif", "else", "endif"}));
    if (TakeName("elif")) continue;
    if (TakeName("else")) otherwise = Body({"endif"});
    Take();  // endif
    break;
  }
  Nodes children = parts;
  children.push_back(otherwise);
  const auto n = static_cast<uint32_t>(parts.size());
  return builder_.Add(Op::kIf, line, builder_.AddLinks(parts), n, otherwise, children);
}

uint32_t Parser::For() {
  const uint32_t line = Take().line;
  const uint32_t target = Target(/*with_field=*/false, /*ends_at_in=*/true);
  if (!TakeName("in")) Fail("expected 'in', found " + Describe(Now()));
  const uint32_t iterable = Tuple(/*with_choice=*/false, /*is_parenthesised=*/false, "recursive");
  uint32_t condition = chat::kNoIndex;
  if (TakeName("if")) condition = Expression();
  if (Now().IsName("recursive")) Fail("{% for %} with 'recursive' is not supported");
  ++loops_;
  const uint32_t body = Body({"endfor", "else"});
  --loops_;
  uint32_t otherwise = chat::kNoIndex;
  if (TakeName("else")) otherwise = Body({"endfor"});
  Take();  // endfor
  const Nodes parts = {target, iterable, body, otherwise, condition};
  return builder_.Add(Op::kFor, line, builder_.AddLinks(parts), 0, 0, parts);
}

uint32_t Parser::Set() {
  const uint32_t line = Take().line;
  const uint32_t target = Target(/*with_field=*/true, /*ends_at_in=*/false);
  if (TakeOperator("=")) {
    const uint32_t value = Tuple(/*with_choice=*/true, /*is_parenthesised=*/false);
    return builder_.Add(Op::kSet, line, target, value, 0, {target, value});
  }
  uint32_t filter = chat::kNoIndex;
  if (Now().IsOperator("|")) {
    filter = FilterChain(builder_.Add(Op::kCaptured, line, 0, 0, 0), /*starts_inside=*/false);
  }
  const uint32_t body = Body({"endset"});
  Take();  // endset
  return builder_.Add(Op::kSetBlock, line, target, body, filter, {target, body, filter});
}

uint32_t Parser::Macro() {
  const uint32_t line = Take().line;
  const uint32_t name = builder_.AddString(ExpectName());
  ExpectOperator("(");
  Nodes links = {0};
  Nodes children;
  const size_t outer_parameters = parameters_.size();
  bool has_default = false;
  ++macros_;
  while (!Now().IsOperator(")")) {
    if (links[0] > 0) ExpectOperator(",");
    const std::string parameter = ExpectName();
    parameters_.push_back(parameter);
    uint32_t value = chat::kNoIndex;
    if (TakeOperator("=")) {
      value = Expression();
      has_default = true;
    } else if (has_default) {
      Fail("the parameter '" + parameter + "' has no default and follows one that has");
    }
    links.push_back(builder_.AddString(parameter));
    links.push_back(value);
    children.push_back(value);
    ++links[0];
  }
  ExpectOperator(")");
  const uint32_t outer_loops = loops_;
  loops_ = 0;
  const uint32_t body = Body({"endmacro"});
  Take();  // endmacro
  loops_ = outer_loops;
  --macros_;
  parameters_.resize(outer_parameters);
  children.push_back(body);
  return builder_.Add(Op::kMacro, line, name, builder_.AddLinks(links), body, children);
}

uint32_t Parser::With() {
  const uint32_t line = Take().line;
  Nodes parts;
  while (Now().kind != TokenKind::kBlockEnd) {
    if (!parts.empty()) ExpectOperator(",");
    parts.push_back(Target(/*with_field=*/false, /*ends_at_in=*/false));
    ExpectOperator("=");
    parts.push_back(Expression());
  }
  const uint32_t body = Body({"endwith"});
  Take();  // endwith
  Nodes children = parts;
  children.push_back(body);
  const auto n = static_cast<uint32_t>(parts.size());
  return builder_.Add(Op::kWith, line, builder_.AddLinks(parts), n, body, children);
}

uint32_t Parser::FilterBlock() {
  const uint32_t line = Take().line;
  const uint32_t filter =
      FilterChain(builder_.Add(Op::kCaptured, line, 0, 0, 0), /*starts_inside=*/true);
  const uint32_t body = Body({"endfilter"});
  Take();  // endfilter
  return builder_.Add(Op::kFilterBlock, line, body, filter, 0, {body, filter});
}

uint32_t Parser::PrintStatement() {
  const uint32_t line = Take().line;
  Nodes items;
  while (Now().kind != TokenKind::kBlockEnd) {
    if (!items.empty()) ExpectOperator(",");
    const uint32_t value = Expression();
    items.push_back(builder_.Add(Op::kPrint, line, value, 0, 0, {value}));
  }
  return ListOf(Op::kSequence, line, items);
}

uint32_t Parser::Generation() {
  const uint32_t line = Take().line;
  const uint32_t outer_loops = loops_;
  loops_ = 0;
  const uint32_t body = Body({"endgeneration"});
  Take();  // endgeneration
  loops_ = outer_loops;
  return builder_.Add(Op::kScope, line, body, 0, 0, {body});
}

uint32_t Parser::LoopControl(Op op) {
  const Token token = Take();
  if (loops_ == 0) FailAt(token.line, "'" + token.value + "' outside a loop");
  return builder_.Add(op, token.line, 0, 0, 0);
}

uint32_t Parser::TargetPart(bool with_field) {
  const Nesting nesting(this);
  const Token token = Now();
  if (TakeOperator("(")) {
    const uint32_t inner = Target(with_field, /*ends_at_in=*/false);
    ExpectOperator(")");
    return inner;
  }
  if (token.kind != TokenKind::kName) Fail("cannot assign to " + Describe(token));
  for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
    if (token.value == constant) Fail("cannot assign to '" + token.value + "'");
  }
  Take();
  const uint32_t name = builder_.AddString(token.value);
  if (with_field && TakeOperator(".")) {
    const uint32_t field = builder_.AddString(ExpectName());
    return builder_.Add(Op::kTargetField, token.line, name, field, 0);
  }
  return builder_.Add(Op::kTargetName, token.line, name, 0, 0);
}

uint32_t Parser::Target(bool with_field, bool ends_at_in) {
  const uint32_t line = Now().line;
  Nodes items;
  bool is_tuple = false;
  for (;;) {
    if (Now().kind == TokenKind::kBlockEnd || Now().IsOperator(")") ||
        (ends_at_in && Now().IsName("in"))) {
      break;
    }
    items.push_back(TargetPart(with_field));
    if (!TakeOperator(",")) break;
    is_tuple = true;
  }
  if (items.empty()) Fail("expected a name to assign to, found " + Describe(Now()));
  return is_tuple ? ListOf(Op::kTargetTuple, line, items) : items[0];
}

}  // namespace arn::convert

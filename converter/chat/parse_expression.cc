// Parses expressions, from the lowest-precedence operator to the highest.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "converter/chat/parser.h"
#include "converter/chat/template_error.h"

namespace arn::convert {
namespace {

using chat::Comparison;
using chat::kNoIndex;

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

uint32_t Parser::ListOf(Op op, uint32_t line, const Nodes& items) {
  const auto n = static_cast<uint32_t>(items.size());
  return builder_.Add(op, line, builder_.AddLinks(items), n, 0, items);
}

uint32_t Parser::Binary(Op op, uint32_t line, uint32_t a, uint32_t b) {
  return builder_.Add(op, line, a, b, 0, {a, b});
}

uint32_t Parser::Tuple(bool with_choice, bool is_parenthesised, std::string_view end_name) {
  const uint32_t line = Now().line;
  Nodes items;
  bool is_tuple = false;
  for (;;) {
    if (Now().kind == TokenKind::kVariableEnd || Now().kind == TokenKind::kBlockEnd ||
        Now().IsOperator(")") || (!end_name.empty() && Now().IsName(end_name))) {
      break;
    }
    items.push_back(Expression(with_choice));
    if (!TakeOperator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return items[0];
  if (!is_tuple && !is_parenthesised) Fail("expected an expression");
  return ListOf(Op::kTuple, line, items);
}

uint32_t Parser::Expression(bool with_choice) {
  const Nesting nesting(this);
  return with_choice ? Choice() : Or();
}

uint32_t Parser::Choice() {
  const Nesting nesting(this);
  uint32_t line = Now().line;
  uint32_t value = Or();
  while (TakeName("if")) {
    const uint32_t condition = Or();
    const uint32_t otherwise = TakeName("else") ? Choice() : kNoIndex;
    value =
        builder_.Add(Op::kChoice, line, value, condition, otherwise, {value, condition, otherwise});
    line = Now().line;
  }
  return value;
}

uint32_t Parser::Or() {
  const uint32_t line = Now().line;
  uint32_t left = And();
  while (TakeName("or")) left = Binary(Op::kOr, line, left, And());
  return left;
}

uint32_t Parser::And() {
  const uint32_t line = Now().line;
  uint32_t left = Not();
  while (TakeName("and")) left = Binary(Op::kAnd, line, left, Not());
  return left;
}

uint32_t Parser::Not() {
  if (!Now().IsName("not")) return Compare();
  const Nesting nesting(this);
  const uint32_t line = Take().line;
  const uint32_t value = Not();
  return builder_.Add(Op::kNot, line, value, 0, 0, {value});
}

uint32_t Parser::Compare() {
  static constexpr std::string_view kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
  const uint32_t line = Now().line;
  const uint32_t first = Sum();
  Nodes links;
  Nodes children = {first};
  for (;;) {
    auto comparison = Comparison::kEqual;
    const auto* op = std::find(std::begin(kOperators), std::end(kOperators), Now().value);
    if (Now().kind == TokenKind::kOperator && op != std::end(kOperators)) {
      comparison = static_cast<Comparison>(op - std::begin(kOperators));
      Take();
    } else if (TakeName("in")) {
      comparison = Comparison::kIn;
    } else if (Now().IsName("not") && Next().IsName("in")) {
      Take();
      Take();
      comparison = Comparison::kNotIn;
    } else {
      break;
    }
    links.push_back(static_cast<uint32_t>(comparison));
    links.push_back(Sum());
    children.push_back(links.back());
  }
  if (links.empty()) return first;
  const auto n = static_cast<uint32_t>(links.size() / 2);
  return builder_.Add(Op::kCompare, line, first, builder_.AddLinks(links), n, children);
}

uint32_t Parser::Sum() {
  const uint32_t line = Now().line;
  uint32_t left = Concat();
  for (;;) {
    if (TakeOperator("+")) {
      left = Binary(Op::kAdd, line, left, Concat());
    } else if (TakeOperator("-")) {
      left = Binary(Op::kSubtract, line, left, Concat());
    } else {
      return left;
    }
  }
}

uint32_t Parser::Concat() {
  const uint32_t line = Now().line;
  Nodes items = {Product()};
  while (TakeOperator("~")) items.push_back(Product());
  return items.size() == 1 ? items[0] : ListOf(Op::kConcat, line, items);
}

uint32_t Parser::Product() {
  const uint32_t line = Now().line;
  uint32_t left = Power();
  for (;;) {
    if (TakeOperator("*")) {
      left = Binary(Op::kMultiply, line, left, Power());
    } else if (TakeOperator("/")) {
      left = Binary(Op::kDivide, line, left, Power());
    } else if (TakeOperator("//")) {
      left = Binary(Op::kFloorDivide, line, left, Power());
    } else if (TakeOperator("%")) {
      if (builder_.node(left).op == static_cast<uint8_t>(Op::kString)) {
        FailAt(line, "formatting with '%' is not supported");
      }
      left = Binary(Op::kModulo, line, left, Power());
    } else {
      return left;
    }
  }
}

uint32_t Parser::Power() {
  const uint32_t line = Now().line;
  uint32_t left = Unary(/*with_filter=*/true);
  while (TakeOperator("**")) left = Binary(Op::kPower, line, left, Unary(/*with_filter=*/true));
  return left;
}

uint32_t Parser::Unary(bool with_filter) {
  const Nesting nesting(this);
  const uint32_t line = Now().line;
  uint32_t node = 0;
  if (TakeOperator("-")) {
    const uint32_t value = Unary(/*with_filter=*/false);
    node = builder_.Add(Op::kNegative, line, value, 0, 0, {value});
  } else if (TakeOperator("+")) {
    const uint32_t value = Unary(/*with_filter=*/false);
    node = builder_.Add(Op::kPositive, line, value, 0, 0, {value});
  } else {
    node = Primary();
  }
  node = Postfix(node);
  return with_filter ? FilterExpression(node) : node;
}

uint32_t Parser::Primary() {
  const Token token = Now();
  switch (token.kind) {
    case TokenKind::kName: Take(); return Name(token);
    case TokenKind::kString: {
      std::string text;
      while (Now().kind == TokenKind::kString) text += Take().value;
      return builder_.Add(Op::kString, token.line, builder_.AddString(text), 0, 0);
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat: Take(); return Number(token);
    case TokenKind::kOperator:
      if (TakeOperator("(")) {
        const uint32_t inner = Tuple(/*with_choice=*/true, /*is_parenthesised=*/true);
        ExpectOperator(")");
        return inner;
      }
      if (token.value == "[") return ListLiteral();
      if (token.value == "{") return DictLiteral();
      Fail("unexpected '" + token.value + "'");
    case TokenKind::kData:
    case TokenKind::kVariableBegin:
    case TokenKind::kVariableEnd:
    case TokenKind::kBlockBegin:
    case TokenKind::kBlockEnd:
    case TokenKind::kEnd: break;
  }
  Fail("expected an expression");
}

uint32_t Parser::Name(const Token& token) {
  if (IsOneOf(token.value, {"true", "True"})) return builder_.Add(Op::kTrue, token.line, 0, 0, 0);
  if (IsOneOf(token.value, {"false", "False"})) {
    return builder_.Add(Op::kFalse, token.line, 0, 0, 0);
  }
  if (IsOneOf(token.value, {"none", "None"})) return builder_.Add(Op::kNone, token.line, 0, 0, 0);
  if (macros_ > 0 && IsOneOf(token.value, {"varargs", "kwargs", "caller"}) &&
      std::find(parameters_.begin(), parameters_.end(), token.value) == parameters_.end()) {
    FailAt(token.line, "'" + token.value + "' of a macro is not supported");
  }
  return builder_.Add(Op::kName, token.line, builder_.AddString(token.value), 0, 0);
}

uint32_t Parser::Number(const Token& token) {
  const char* begin = token.value.data();
  const char* end = begin + token.value.size();
  if (token.kind == TokenKind::kInteger) {
    int64_t value = 0;
    if (std::from_chars(begin, end, value).ec != std::errc()) {
      return builder_.Add(Op::kBigInt, token.line, builder_.AddString(token.value), 0, 0);
    }
    const auto bits = static_cast<uint64_t>(value);
    return builder_.Add(Op::kInt, token.line, static_cast<uint32_t>(bits),
                        static_cast<uint32_t>(bits >> 32), 0);
  }
  double value = 0.0;
  if (std::from_chars(begin, end, value).ec != std::errc()) {
    // Out of a double's range: infinity, or zero if too small.
    const size_t e = token.value.find_first_of("eE");
    const bool is_small = e != std::string::npos && token.value[e + 1] == '-';
    value = is_small ? 0.0 : std::numeric_limits<double>::infinity();
  }
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return builder_.Add(Op::kFloat, token.line, static_cast<uint32_t>(bits),
                      static_cast<uint32_t>(bits >> 32), 0);
}

uint32_t Parser::ListLiteral() {
  const uint32_t line = Take().line;
  Nodes items;
  while (!Now().IsOperator("]")) {
    items.push_back(Expression());
    if (!TakeOperator(",")) break;
  }
  ExpectOperator("]");
  return ListOf(Op::kList, line, items);
}

uint32_t Parser::DictLiteral() {
  const uint32_t line = Take().line;
  Nodes items;
  while (!Now().IsOperator("}")) {
    items.push_back(Expression());
    ExpectOperator(":");
    items.push_back(Expression());
    if (!TakeOperator(",")) break;
  }
  ExpectOperator("}");
  return ListOf(Op::kDict, line, items);
}

uint32_t Parser::Postfix(uint32_t node) {
  for (;;) {
    if (Now().IsOperator(".") || Now().IsOperator("[")) {
      node = Subscript(node);
    } else if (Now().IsOperator("(")) {
      node = Call(node);
    } else {
      return node;
    }
  }
}

uint32_t Parser::FilterExpression(uint32_t node) {
  for (;;) {
    if (Now().IsOperator("|")) {
      node = FilterChain(node, /*starts_inside=*/false);
    } else if (Now().IsName("is")) {
      node = TestExpression(node);
    } else if (Now().IsOperator("(")) {
      node = Call(node);
    } else {
      return node;
    }
  }
}

uint32_t Parser::Subscript(uint32_t node) {
  const Token token = Take();
  if (token.value == "[") return Index(node, token.line);
  if (Now().kind == TokenKind::kName) {
    const uint32_t name = builder_.AddString(Take().value);
    return builder_.Add(Op::kGetAttr, token.line, node, name, 0, {node});
  }
  if (Now().kind != TokenKind::kInteger) Fail("expected a name or a number after '.'");
  const uint32_t index = Number(Take());
  return builder_.Add(Op::kGetItem, token.line, node, index, 0, {node, index});
}

uint32_t Parser::Index(uint32_t node, uint32_t line) {
  Nodes items;
  Nodes slice = {kNoIndex, kNoIndex, kNoIndex};
  bool is_slice = false;
  for (;;) {
    if (!Now().IsOperator(":")) {
      slice[0] = Expression();
      items.push_back(slice[0]);
    }
    if (TakeOperator(":")) {
      is_slice = true;
      if (!Now().IsOperator(":") && !Now().IsOperator("]")) slice[1] = Expression();
      if (TakeOperator(":") && !Now().IsOperator("]")) slice[2] = Expression();
    }
    if (!Now().IsOperator(",")) break;
    if (is_slice) Fail("a slice inside a tuple is not supported");
    Take();
  }
  ExpectOperator("]");
  if (is_slice) {
    if (items.size() > 1) FailAt(line, "a slice inside a tuple is not supported");
    const Nodes children = {node, slice[0], slice[1], slice[2]};
    return builder_.Add(Op::kSlice, line, node, builder_.AddLinks(slice), 0, children);
  }
  const uint32_t index = items.size() == 1 ? items[0] : ListOf(Op::kTuple, line, items);
  return builder_.Add(Op::kGetItem, line, node, index, 0, {node, index});
}

uint32_t Parser::Arguments(Nodes* children) {
  ExpectOperator("(");
  Nodes positional, named;
  while (!Now().IsOperator(")")) {
    if (Now().IsOperator("*") || Now().IsOperator("**")) {
      Fail("arguments with '" + Now().value + "' are not supported");
    }
    if (Now().kind == TokenKind::kName && Next().IsOperator("=")) {
      named.push_back(builder_.AddString(Take().value));
      Take();
      named.push_back(Expression());
      children->push_back(named.back());
    } else {
      if (!named.empty()) Fail("a positional argument follows a named one");
      positional.push_back(Expression());
      children->push_back(positional.back());
    }
    if (!TakeOperator(",")) break;
  }
  ExpectOperator(")");
  Nodes links = {static_cast<uint32_t>(positional.size()), static_cast<uint32_t>(named.size() / 2)};
  links.insert(links.end(), positional.begin(), positional.end());
  links.insert(links.end(), named.begin(), named.end());
  return builder_.AddLinks(links);
}

uint32_t Parser::NoArguments() { return builder_.AddLinks({0, 0}); }

void Parser::CheckCall(uint32_t callee, uint32_t line) const {
  const chat::ProgramNode& node = builder_.node(callee);
  if (node.op == static_cast<uint8_t>(Op::kName)) {
    const std::string& name = builder_.text(node.a);
    if (name == "loop") FailAt(line, "recursive loops are not supported");
    if (IsOneOf(name, {"lipsum", "cycler", "joiner"})) {
      FailAt(line, "the function '" + name + "' is not supported");
    }
  } else if (node.op == static_cast<uint8_t>(Op::kGetAttr)) {
    const std::string& name = builder_.text(node.b);
    if (IsOneOf(name, {"format", "format_map", "encode", "decode", "casefold", "expandtabs",
                       "translate", "maketrans", "isidentifier", "isprintable", "isdecimal",
                       "fromkeys", "bit_length", "as_integer_ratio", "is_integer", "hex"})) {
      FailAt(line, "the method '" + name + "' is not supported");
    }
  }
}

uint32_t Parser::Call(uint32_t callee) {
  const uint32_t line = Now().line;
  CheckCall(callee, line);
  Nodes children = {callee};
  const uint32_t arguments = Arguments(&children);
  return builder_.Add(Op::kCall, line, callee, 0, arguments, children);
}

uint32_t Parser::FilterChain(uint32_t node, bool starts_inside) {
  while (starts_inside || TakeOperator("|")) {
    starts_inside = false;
    const uint32_t line = Now().line;
    const std::string name = ExpectName();
    const auto* found =
        std::find_if(std::begin(chat::kFilterNames), std::end(chat::kFilterNames),
                     [&](const chat::FilterName& known) { return known.name == name; });
    if (found == std::end(chat::kFilterNames)) {
      FailAt(line, "the filter '" + name + "' is not supported");
    }
    Nodes children = {node};
    const uint32_t arguments = Now().IsOperator("(") ? Arguments(&children) : NoArguments();
    node = builder_.Add(Op::kFilter, line, node, static_cast<uint32_t>(found->filter), arguments,
                        children);
  }
  return node;
}

uint32_t Parser::TestExpression(uint32_t node) {
  const uint32_t line = Take().line;
  const bool is_negated = TakeName("not");
  const std::string name = ExpectName();
  const auto* found = std::find_if(std::begin(chat::kTestNames), std::end(chat::kTestNames),
                                   [&](const chat::TestName& known) { return known.name == name; });
  if (found == std::end(chat::kTestNames)) FailAt(line, "the test '" + name + "' is not supported");
  Nodes children = {node};
  uint32_t arguments = 0;
  const Token& next = Now();
  const bool begins_value = next.kind == TokenKind::kName || next.kind == TokenKind::kString ||
                            next.kind == TokenKind::kInteger || next.kind == TokenKind::kFloat ||
                            next.IsOperator("[") || next.IsOperator("{");
  if (next.IsOperator("(")) {
    arguments = Arguments(&children);
  } else if (begins_value && !next.IsName("else") && !next.IsName("or") && !next.IsName("and")) {
    if (next.IsName("is")) Fail("tests cannot follow one another");
    const uint32_t value = Postfix(Primary());
    children.push_back(value);
    arguments = builder_.AddLinks({1, 0, value});
  } else {
    arguments = NoArguments();
  }
  const uint32_t test =
      builder_.Add(Op::kTest, line, node, static_cast<uint32_t>(found->test), arguments, children);
  return is_negated ? builder_.Add(Op::kNot, line, test, 0, 0, {test}) : test;
}

}  // namespace arn::convert

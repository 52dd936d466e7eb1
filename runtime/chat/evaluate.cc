#include <cstring>

#include "platform/base/arith.h"
#include "runtime/chat/arithmetic.h"
#include "runtime/chat/compare.h"
#include "runtime/chat/filters.h"
#include "runtime/chat/print.h"
#include "runtime/chat/renderer.h"

namespace arn::chat {

Status Renderer::Evaluate(uint32_t index, Value* out) {
  Level level(heap_);
  ARN_TRY(level.Check());
  ARN_TRY(heap_->Spend(1));
  const ProgramNode& node = program_.node(index);
  heap_->set_line(node.line);
  const Op op = static_cast<Op>(node.op);
  switch (op) {
    case Op::kNone:
    case Op::kTrue:
    case Op::kFalse:
    case Op::kInt:
    case Op::kBigInt:
    case Op::kFloat:
    case Op::kString: return Literal(node, out);
    case Op::kName: return LookUp(node.a, out);
    case Op::kList: return MakeList(node, Kind::kList, out);
    case Op::kTuple: return MakeList(node, Kind::kTuple, out);
    case Op::kDict: return MakeDict(node, out);
    case Op::kGetAttr: return Attribute(node, out);
    case Op::kGetItem: return Item(node, out);
    case Op::kSlice: return Slice(node, out);
    case Op::kCall: return Call(node, out);
    case Op::kFilter: return Filtered(node, out);
    case Op::kTest: return Tested(node, out);
    case Op::kNot:
    case Op::kNegative:
    case Op::kPositive: return Unary(op, node, out);
    case Op::kAnd:
    case Op::kOr: return Logic(op, node, out);
    case Op::kAdd:
    case Op::kSubtract:
    case Op::kMultiply:
    case Op::kDivide:
    case Op::kFloorDivide:
    case Op::kModulo:
    case Op::kPower: return Binary(op, node, out);
    case Op::kConcat: return Concat(node, out);
    case Op::kCompare: return CompareChain(node, out);
    case Op::kChoice: return Choice(node, out);
    case Op::kCaptured: *out = captured_; return Status::kOk;
    case Op::kTargetName:
    case Op::kTargetField:
    case Op::kTargetTuple:
    case Op::kText:
    case Op::kPrint:
    case Op::kSequence:
    case Op::kIf:
    case Op::kFor:
    case Op::kSet:
    case Op::kSetBlock:
    case Op::kMacro:
    case Op::kWith:
    case Op::kFilterBlock:
    case Op::kScope:
    case Op::kBreak:
    case Op::kContinue: break;  // not expressions: excluded by Program::Open
  }
  return Status::kInternal;
}

Status Renderer::Literal(const ProgramNode& node, Value* out) {
  const Op op = static_cast<Op>(node.op);
  const uint64_t bits = uint64_t{node.b} << 32 | node.a;
  if (op == Op::kNone) {
    *out = NoneValue();
  } else if (op == Op::kTrue || op == Op::kFalse) {
    *out = BoolValue(op == Op::kTrue);
  } else if (op == Op::kInt) {
    *out = IntValue(static_cast<int64_t>(bits));
  } else if (op == Op::kFloat) {
    double value = 0.0;
    std::memcpy(&value, &bits, sizeof value);
    *out = FloatValue(value);
  } else {
    *out = TextValue(program_.string(node.a));
    if (op == Op::kBigInt) out->kind = Kind::kBigInt;
  }
  return Status::kOk;
}

Status Renderer::LookUp(uint32_t name, Value* out) {
  const std::string_view text = program_.string(name);
  uint64_t walked = context_.size;
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    for (const Variable* v = scope->variables; v != nullptr; v = v->next, ++walked) {
      if (v->name != name) continue;
      *out = v->value;
      return heap_->Spend(walked / 8);
    }
    ++walked;
    if (scope->loop != nullptr && text == "loop") {
      *out = Value();
      out->kind = Kind::kLoop;
      out->loop = scope->loop;
      return heap_->Spend(walked / 8);
    }
  }
  ARN_TRY(heap_->Spend(walked / 8));
  if (const Value* given = FindText(context_, text)) {
    *out = *given;
    return Status::kOk;
  }
  *out = FindFunction(text);
  if (out->kind == Kind::kMissing) *out = UndefinedValue(UndefinedBecause::kNoVariable, text);
  return Status::kOk;
}

Status Renderer::MakeList(const ProgramNode& node, Kind kind, Value* out) {
  Value* items = nullptr;
  List* list = nullptr;
  ARN_TRY(heap_->NewArray(node.b, &items));
  ARN_TRY(heap_->New(&list));
  for (uint32_t i = 0; i < node.b; ++i) ARN_TRY(Evaluate(program_.link(node.a + i), &items[i]));
  *list = {items, node.b};
  *out = ListValue(list, kind);
  return Status::kOk;
}

Status Renderer::MakeDict(const ProgramNode& node, Value* out) {
  Dict* dict = nullptr;
  ARN_TRY(heap_->New(&dict));
  for (uint32_t i = 0; i < node.b; i += 2) {
    Value key, value;
    ARN_TRY(Evaluate(program_.link(node.a + i), &key));
    ARN_TRY(Evaluate(program_.link(node.a + i + 1), &value));
    ARN_TRY(SetKey(dict, key, value, heap_));
  }
  *out = DictValue(dict);
  return Status::kOk;
}

Status Renderer::Attribute(const ProgramNode& node, Value* out) {
  Value object;
  ARN_TRY(Evaluate(node.a, &object));
  return GetAttr(object, program_.string(node.b), heap_, out);
}

Status Renderer::Item(const ProgramNode& node, Value* out) {
  Value object, index;
  ARN_TRY(Evaluate(node.a, &object));
  ARN_TRY(Evaluate(node.b, &index));
  return GetItem(object, index, heap_, out);
}

Status Renderer::Slice(const ProgramNode& node, Value* out) {
  Value object;
  ARN_TRY(Evaluate(node.a, &object));
  Value parts[3] = {NoneValue(), NoneValue(), NoneValue()};
  for (uint32_t i = 0; i < 3; ++i) {
    const uint32_t part = program_.link(node.b + i);
    if (part != kNoIndex) ARN_TRY(Evaluate(part, &parts[i]));
  }
  return GetSlice(object, parts[0], parts[1], parts[2], heap_, out);
}

Status Renderer::EvaluateArguments(uint32_t first, Arguments* out) {
  const uint32_t n_positional = program_.link(first);
  const uint32_t n_named = program_.link(first + 1);
  Value* positional = nullptr;
  NamedValue* named = nullptr;
  ARN_TRY(heap_->NewArray(n_positional, &positional));
  ARN_TRY(heap_->NewArray(n_named, &named));
  for (uint32_t i = 0; i < n_positional; ++i) {
    ARN_TRY(Evaluate(program_.link(first + 2 + i), &positional[i]));
  }
  const uint32_t names = first + 2 + n_positional;
  for (uint32_t i = 0; i < n_named; ++i) {
    named[i].name = program_.string(program_.link(names + 2 * i));
    ARN_TRY(Evaluate(program_.link(names + 2 * i + 1), &named[i].value));
  }
  *out = {positional, n_positional, named, n_named};
  return Status::kOk;
}

Status Renderer::Call(const ProgramNode& node, Value* out) {
  Value callee;
  ARN_TRY(Evaluate(node.a, &callee));
  Arguments arguments;
  ARN_TRY(EvaluateArguments(node.c, &arguments));
  heap_->set_line(node.line);
  if (callee.kind == Kind::kMacro) {
    ARN_TRY(CallMacro(*callee.macro, arguments, out));
    heap_->set_line(node.line);
    return Status::kOk;
  }
  if (callee.kind == Kind::kFunction) {
    return CallFunction(static_cast<Function>(callee.about), arguments, now_, heap_, out);
  }
  if (callee.kind == Kind::kMethod) {
    return CallMethod(static_cast<Method>(callee.about), *callee.self, arguments, heap_, out);
  }
  if (callee.kind == Kind::kUndefined) return FailUndefined(callee, heap_);
  return heap_->Fail("%s cannot be called", TypeName(callee));
}

Status Renderer::CallMacro(const Macro& macro, const Arguments& arguments, Value* out) {
  Scope* scope = nullptr;
  ARN_TRY(NewScope(macro.scope, &scope));
  Scope* const outer = scope_;
  scope_ = scope;
  const Status status = BindParameters(macro, arguments, scope);
  scope_ = outer;
  ARN_TRY(status);
  Flow flow = Flow::kOn;
  return Capture(scope, program_.node(macro.node).c, &flow, out);
}

Status Renderer::BindParameters(const Macro& macro, const Arguments& arguments, Scope* scope) {
  const ProgramNode& node = program_.node(macro.node);
  const std::string_view name = program_.string(node.a);
  const int name_bytes = static_cast<int>(Min<size_t>(name.size(), 60));
  const uint32_t count = program_.link(node.b);
  if (arguments.n_positional > count) {
    return heap_->Fail("macro '%.*s' takes not more than %u argument(s)", name_bytes, name.data(),
                       count);
  }
  uint32_t used = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t parameter = program_.link(node.b + 1 + 2 * i);
    const uint32_t otherwise = program_.link(node.b + 2 + 2 * i);
    const std::string_view text = program_.string(parameter);
    Value value = MissingValue();
    if (i < arguments.n_positional) value = arguments.positional[i];
    for (uint32_t j = 0; j < arguments.n_named; ++j) {
      if (arguments.named[j].name != text) continue;
      if (value.kind != Kind::kMissing) {
        return heap_->Fail("macro '%.*s' got multiple values for an argument", name_bytes,
                           name.data());
      }
      value = arguments.named[j].value;
      ++used;
    }
    if (value.kind == Kind::kMissing) {
      value = UndefinedValue(UndefinedBecause::kNoArgument, text);
      if (otherwise != kNoIndex) ARN_TRY(Evaluate(otherwise, &value));
    }
    ARN_TRY(SetVariable(scope, parameter, value));
  }
  if (used < arguments.n_named) {
    return heap_->Fail("macro '%.*s' takes no such named argument", name_bytes, name.data());
  }
  return Status::kOk;
}

Status Renderer::Filtered(const ProgramNode& node, Value* out) {
  Value input;
  ARN_TRY(Evaluate(node.a, &input));
  Arguments arguments;
  ARN_TRY(EvaluateArguments(node.c, &arguments));
  heap_->set_line(node.line);
  return ApplyFilter(static_cast<Filter>(node.b), input, arguments, heap_, out);
}

Status Renderer::Tested(const ProgramNode& node, Value* out) {
  Value value;
  ARN_TRY(Evaluate(node.a, &value));
  Arguments arguments;
  ARN_TRY(EvaluateArguments(node.c, &arguments));
  heap_->set_line(node.line);
  bool passes = false;
  ARN_TRY(ApplyTest(static_cast<Test>(node.b), value, arguments, heap_, &passes));
  *out = BoolValue(passes);
  return Status::kOk;
}

Status Renderer::Unary(Op op, const ProgramNode& node, Value* out) {
  Value value;
  ARN_TRY(Evaluate(node.a, &value));
  if (op == Op::kNot) {
    *out = BoolValue(!IsTrue(value));
    return Status::kOk;
  }
  if (op == Op::kNegative) return Negate(value, heap_, out);
  if (!value.IsNumber()) {
    if (value.kind == Kind::kUndefined) return FailUndefined(value, heap_);
    return heap_->Fail("'+' is not supported before %s", TypeName(value));
  }
  *out = value.IsWhole() ? IntValue(value.AsInt()) : value;
  return Status::kOk;
}

Status Renderer::Logic(Op op, const ProgramNode& node, Value* out) {
  ARN_TRY(Evaluate(node.a, out));
  return IsTrue(*out) == (op == Op::kAnd) ? Evaluate(node.b, out) : Status::kOk;
}

Status Renderer::Binary(Op op, const ProgramNode& node, Value* out) {
  Value a, b;
  ARN_TRY(Evaluate(node.a, &a));
  ARN_TRY(Evaluate(node.b, &b));
  return Calculate(op, a, b, heap_, out);
}

Status Renderer::Concat(const ProgramNode& node, Value* out) {
  TextBuilder builder(heap_);
  for (uint32_t i = 0; i < node.b; ++i) {
    Value part;
    ARN_TRY(Evaluate(program_.link(node.a + i), &part));
    ARN_TRY(AppendText(part, heap_, &builder));
  }
  *out = builder.ToValue();
  return Status::kOk;
}

Status Renderer::CompareChain(const ProgramNode& node, Value* out) {
  Value left;
  ARN_TRY(Evaluate(node.a, &left));
  bool holds = true;
  for (uint32_t i = 0; i < node.c && holds; ++i) {
    Value right;
    ARN_TRY(Evaluate(program_.link(node.b + 2 * i + 1), &right));
    ARN_TRY(Compare(static_cast<Comparison>(program_.link(node.b + 2 * i)), left, right, heap_,
                    &holds));
    left = right;
  }
  *out = BoolValue(holds);
  return Status::kOk;
}

Status Renderer::Choice(const ProgramNode& node, Value* out) {
  Value condition;
  ARN_TRY(Evaluate(node.b, &condition));
  if (IsTrue(condition)) return Evaluate(node.a, out);
  if (node.c != kNoIndex) return Evaluate(node.c, out);
  *out = UndefinedValue(UndefinedBecause::kNoVariable, "the if without an else");
  return Status::kOk;
}

}  // namespace arn::chat

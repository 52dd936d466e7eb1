#include <cstring>
#include <new>

#include "runtime/chat/compare.h"
#include "runtime/chat/iterate.h"
#include "runtime/chat/print.h"
#include "runtime/chat/renderer.h"

namespace arn::chat {

Status Renderer::Run() {
  ARN_TRY(NewScope(nullptr, &scope_));
  Flow flow = Flow::kOn;
  return Execute(program_.root(), &flow);
}

Status Renderer::NewScope(Scope* parent, Scope** out) {
  ARN_TRY(heap_->New(out));
  (*out)->parent = parent;
  return Status::kOk;
}

Status Renderer::Write(std::string_view text) {
  if (text.empty()) return Status::kOk;
  if (capture_ != nullptr) return capture_->Append(text);
  ARN_TRY(heap_->Spend(text.size() / 64));
  if (out_->bytes < out_->capacity) {
    const size_t room = out_->capacity - static_cast<size_t>(out_->bytes);
    std::memcpy(out_->text + out_->bytes, text.data(), text.size() < room ? text.size() : room);
  }
  ARN_TRY(AddSpans(text));
  out_->bytes += text.size();
  return Status::kOk;
}

// Adds the given spans of a text appended to the output.
Status Renderer::AddSpans(std::string_view text) {
  for (uint64_t at = out_->bytes; !text.empty();) {
    bool is_given = false;
    const size_t n = heap_->given().Run(text, &is_given);
    if (is_given && out_->n_spans > 0 && out_->spans->offset + out_->spans->bytes == at) {
      out_->spans->bytes += n;
    } else if (is_given) {
      void* place = nullptr;
      ARN_TRY(heap_->AllocateAtEnd(sizeof(TextSpan), alignof(TextSpan), &place));
      out_->spans = new (place) TextSpan{static_cast<size_t>(at), n};
      ++out_->n_spans;
    }
    at += n;
    text.remove_prefix(n);
  }
  return Status::kOk;
}

Status Renderer::Execute(uint32_t index, Flow* flow) {
  Level level(heap_);
  ARN_TRY(level.Check());
  ARN_TRY(heap_->Spend(1));
  const ProgramNode& node = program_.node(index);
  heap_->set_line(node.line);
  const Op op = static_cast<Op>(node.op);
  if (op == Op::kText) return Write(program_.string(node.a));
  if (op == Op::kPrint) return Print(node);
  if (op == Op::kSequence) return Sequence(node, flow);
  if (op == Op::kIf) return If(node, flow);
  if (op == Op::kFor) return For(node, flow);
  if (op == Op::kSet) {
    Value value;
    ARN_TRY(Evaluate(node.b, &value));
    return Assign(node.a, value);
  }
  if (op == Op::kSetBlock) return SetBlock(node, flow);
  if (op == Op::kMacro) return DefineMacro(index, node);
  if (op == Op::kWith) return With(node, flow);
  if (op == Op::kFilterBlock) return FilterBlock(node, flow);
  if (op == Op::kScope) {
    Scope* scope = nullptr;
    ARN_TRY(NewScope(scope_, &scope));
    return ExecuteIn(scope, node.a, flow);
  }
  *flow = op == Op::kBreak ? Flow::kBreak : Flow::kContinue;
  return Status::kOk;
}

Status Renderer::ExecuteIn(Scope* scope, uint32_t index, Flow* flow) {
  Scope* const outer = scope_;
  scope_ = scope;
  const Status status = Execute(index, flow);
  scope_ = outer;
  return status;
}

Status Renderer::Capture(Scope* scope, uint32_t index, Flow* flow, Value* out) {
  TextBuilder builder(heap_);
  TextBuilder* const outer = capture_;
  capture_ = &builder;
  const Status status = ExecuteIn(scope, index, flow);
  capture_ = outer;
  *out = builder.ToValue();
  return status;
}

Status Renderer::Sequence(const ProgramNode& node, Flow* flow) {
  for (uint32_t i = 0; i < node.b && *flow == Flow::kOn; ++i) {
    ARN_TRY(Execute(program_.link(node.a + i), flow));
  }
  return Status::kOk;
}

Status Renderer::Print(const ProgramNode& node) {
  Value value;
  ARN_TRY(Evaluate(node.a, &value));
  heap_->set_line(node.line);
  if (!value.IsString()) ARN_TRY(ToText(value, heap_, &value));
  return Write(value.view());
}

Status Renderer::If(const ProgramNode& node, Flow* flow) {
  for (uint32_t i = 0; i < node.b; i += 2) {
    Value condition;
    ARN_TRY(Evaluate(program_.link(node.a + i), &condition));
    if (IsTrue(condition)) return Execute(program_.link(node.a + i + 1), flow);
  }
  return node.c == kNoIndex ? Status::kOk : Execute(node.c, flow);
}

Status Renderer::For(const ProgramNode& node, Flow* flow) {
  Value iterable;
  ARN_TRY(Evaluate(program_.link(node.a + 1), &iterable));
  heap_->set_line(node.line);
  List items;
  ARN_TRY(ToList(iterable, heap_, &items));
  if (program_.link(node.a + 4) != kNoIndex) ARN_TRY(Passing(node, &items));
  if (items.size > 0) return Iterate(node, items, flow);
  const uint32_t otherwise = program_.link(node.a + 3);
  if (otherwise == kNoIndex) return Status::kOk;
  Scope* scope = nullptr;
  ARN_TRY(NewScope(scope_, &scope));
  return ExecuteIn(scope, otherwise, flow);
}

// Returns the items that satisfy the loop's condition.
Status Renderer::Passing(const ProgramNode& node, List* items) {
  ListBuilder kept(heap_);
  Scope* const outer = scope_;
  for (uint32_t i = 0; i < items->size; ++i) {
    ARN_TRY(NewScope(outer, &scope_));
    ARN_TRY(Assign(program_.link(node.a), items->items[i]));
    Value condition;
    ARN_TRY(Evaluate(program_.link(node.a + 4), &condition));
    if (IsTrue(condition)) ARN_TRY(kept.Append(items->items[i]));
  }
  scope_ = outer;
  *items = {kept.items(), kept.size()};
  return Status::kOk;
}

Status Renderer::Iterate(const ProgramNode& node, const List& items, Flow* flow) {
  Loop* loop = nullptr;
  ARN_TRY(heap_->New(&loop));
  loop->list = items;
  loop->changed = MissingValue();
  Scope* const outer = scope_;
  for (uint32_t i = 0; i < items.size; ++i) {
    loop->index0 = i;
    // One scope per iteration: a macro may keep a reference to it.
    ARN_TRY(NewScope(outer, &scope_));
    scope_->loop = loop;
    heap_->set_line(node.line);
    ARN_TRY(Assign(program_.link(node.a), items.items[i]));
    Flow inner = Flow::kOn;
    ARN_TRY(Execute(program_.link(node.a + 2), &inner));
    if (inner == Flow::kBreak) break;
  }
  scope_ = outer;
  *flow = Flow::kOn;
  return Status::kOk;
}

Status Renderer::SetBlock(const ProgramNode& node, Flow* flow) {
  Scope* scope = nullptr;
  ARN_TRY(NewScope(scope_, &scope));
  Value text;
  ARN_TRY(Capture(scope, node.b, flow, &text));
  if (*flow != Flow::kOn) return Status::kOk;
  if (node.c != kNoIndex) {
    const Value outer = captured_;
    captured_ = text;
    ARN_TRY(Evaluate(node.c, &text));
    captured_ = outer;
  }
  return Assign(node.a, text);
}

Status Renderer::FilterBlock(const ProgramNode& node, Flow* flow) {
  Scope* scope = nullptr;
  ARN_TRY(NewScope(scope_, &scope));
  Value text;
  ARN_TRY(Capture(scope, node.a, flow, &text));
  if (*flow != Flow::kOn) return Status::kOk;
  const Value outer = captured_;
  captured_ = text;
  ARN_TRY(Evaluate(node.b, &text));
  captured_ = outer;
  if (!text.IsString()) ARN_TRY(ToText(text, heap_, &text));
  return Write(text.view());
}

Status Renderer::DefineMacro(uint32_t index, const ProgramNode& node) {
  Macro* macro = nullptr;
  ARN_TRY(heap_->New(&macro));
  macro->node = index;
  macro->scope = scope_;
  Value value;
  value.kind = Kind::kMacro;
  value.macro = macro;
  return SetVariable(scope_, node.a, value);
}

Status Renderer::With(const ProgramNode& node, Flow* flow) {
  Scope* const outer = scope_;
  Scope* scope = nullptr;
  ARN_TRY(NewScope(outer, &scope));
  for (uint32_t i = 0; i < node.b; i += 2) {
    Value value;
    ARN_TRY(Evaluate(program_.link(node.a + i + 1), &value));
    scope_ = scope;
    const Status status = Assign(program_.link(node.a + i), value);
    scope_ = outer;
    ARN_TRY(status);
  }
  return ExecuteIn(scope, node.c, flow);
}

Status Renderer::Assign(uint32_t target, const Value& value) {
  Level level(heap_);
  ARN_TRY(level.Check());
  const ProgramNode& node = program_.node(target);
  if (node.op == static_cast<uint8_t>(Op::kTargetName)) {
    return SetVariable(scope_, node.a, value);
  }
  if (node.op == static_cast<uint8_t>(Op::kTargetField)) {
    Value object;
    ARN_TRY(LookUp(node.a, &object));
    if (object.kind != Kind::kNamespace) {
      return heap_->Fail("cannot assign attribute on non-namespace object");
    }
    return SetKey(object.dict, TextValue(program_.string(node.b)), value, heap_);
  }
  List parts;
  ARN_TRY(ToList(value, heap_, &parts));
  if (parts.size != node.b) {
    return heap_->Fail("%u values for %u names", parts.size, node.b);
  }
  for (uint32_t i = 0; i < node.b; ++i) {
    ARN_TRY(Assign(program_.link(node.a + i), parts.items[i]));
  }
  return Status::kOk;
}

Status Renderer::SetVariable(Scope* scope, uint32_t name, const Value& value) {
  uint64_t walked = 0;
  for (Variable* v = scope->variables; v != nullptr; v = v->next, ++walked) {
    if (v->name != name) continue;
    v->value = value;
    return heap_->Spend(walked / 8);
  }
  ARN_TRY(heap_->Spend(walked / 8));
  Variable* variable = nullptr;
  ARN_TRY(heap_->New(&variable));
  *variable = {name, value, scope->variables};
  scope->variables = variable;
  return Status::kOk;
}

}  // namespace arn::chat

// Renderer: runs a program over a context once. All memory is the heap's.
#pragma once

#include "runtime/chat/call.h"
#include "runtime/chat/heap.h"
#include "runtime/chat/program.h"
#include "runtime/chat/strftime.h"

namespace arn::chat {

struct Variable {
  uint32_t name = 0;  // string index in the program
  Value value;
  Variable* next = nullptr;
};
struct Scope {
  Scope* parent = nullptr;
  Variable* variables = nullptr;
  Loop* loop = nullptr;  // loop of this iteration scope
};

// Output text, cut at `capacity`; its full size; and the spans of the full text given by the
// caller, last first, not adjacent.
struct Output {
  char* text = nullptr;
  size_t capacity = 0;
  uint64_t bytes = 0;
  TextSpan* spans = nullptr;
  size_t n_spans = 0;
};

class Renderer {
 public:
  // `context`: the template's variables. All arguments must outlive the renderer.
  Renderer(const Program& program, const Dict& context, const CivilTime& now, Heap* heap,
           Output* out)
      : program_(program), context_(context), now_(now), heap_(heap), out_(out) {}

  Status Run();

 private:
  // Effect of a statement on the enclosing loop.
  enum class Flow : uint8_t { kOn = 0, kBreak, kContinue };

  // statements: run_statement.cc
  Status Execute(uint32_t index, Flow* flow);
  Status ExecuteIn(Scope* scope, uint32_t index, Flow* flow);
  // Runs the statement and returns its output.
  Status Capture(Scope* scope, uint32_t index, Flow* flow, Value* out);
  Status Sequence(const ProgramNode& node, Flow* flow);
  Status Print(const ProgramNode& node);
  Status If(const ProgramNode& node, Flow* flow);
  Status For(const ProgramNode& node, Flow* flow);
  Status Iterate(const ProgramNode& node, const List& items, Flow* flow);
  Status Passing(const ProgramNode& node, List* items);
  Status SetBlock(const ProgramNode& node, Flow* flow);
  Status FilterBlock(const ProgramNode& node, Flow* flow);
  Status DefineMacro(uint32_t index, const ProgramNode& node);
  Status With(const ProgramNode& node, Flow* flow);
  Status Assign(uint32_t target, const Value& value);
  Status SetVariable(Scope* scope, uint32_t name, const Value& value);
  Status NewScope(Scope* parent, Scope** out);
  Status Write(std::string_view text);
  Status AddSpans(std::string_view text);

  // expressions: evaluate.cc
  Status Evaluate(uint32_t index, Value* out);
  Status Literal(const ProgramNode& node, Value* out);
  Status LookUp(uint32_t name, Value* out);
  Status MakeList(const ProgramNode& node, Kind kind, Value* out);
  Status MakeDict(const ProgramNode& node, Value* out);
  Status Attribute(const ProgramNode& node, Value* out);
  Status Item(const ProgramNode& node, Value* out);
  Status Slice(const ProgramNode& node, Value* out);
  Status Call(const ProgramNode& node, Value* out);
  Status CallMacro(const Macro& macro, const Arguments& arguments, Value* out);
  Status BindParameters(const Macro& macro, const Arguments& arguments, Scope* scope);
  Status Filtered(const ProgramNode& node, Value* out);
  Status Tested(const ProgramNode& node, Value* out);
  Status EvaluateArguments(uint32_t first, Arguments* out);
  Status Unary(Op op, const ProgramNode& node, Value* out);
  Status Logic(Op op, const ProgramNode& node, Value* out);
  Status Binary(Op op, const ProgramNode& node, Value* out);
  Status Concat(const ProgramNode& node, Value* out);
  Status CompareChain(const ProgramNode& node, Value* out);
  Status Choice(const ProgramNode& node, Value* out);

  const Program& program_;
  const Dict& context_;
  const CivilTime& now_;
  Heap* const heap_;
  Output* const out_;
  TextBuilder* capture_ = nullptr;  // output target instead of out_
  Scope* scope_ = nullptr;
  Value captured_;  // value of kCaptured
};

}  // namespace arn::chat

// Arithmetic + - * / // % ** and signs with Python's semantics. Integer results stay within 64
// bits.
#pragma once

#include "runtime/bundle/chat_program.h"
#include "runtime/chat/heap.h"

namespace arn::chat {

// `op` is kAdd to kPower.
Status Calculate(Op op, const Value& a, const Value& b, Heap* heap, Value* out);
Status Negate(const Value& value, Heap* heap, Value* out);

// Appends the text with &, <, >, " and ' escaped for HTML.
Status AppendEscaped(std::string_view text, TextBuilder* out);

}  // namespace arn::chat

// + - * / // % ** and their signs, as Python has them. Whole numbers stay within 64 bits.
#pragma once

#include "runtime/bundle/chat_program.h"
#include "runtime/chat/heap.h"

namespace arn::chat {

// `op` is one of kAdd to kPower.
Status Calculate(Op op, const Value& a, const Value& b, Heap* heap, Value* out);
Status Negate(const Value& value, Heap* heap, Value* out);

// The text with &, <, >, " and ' as HTML has them.
Status AppendEscaped(std::string_view text, TextBuilder* out);

}  // namespace arn::chat

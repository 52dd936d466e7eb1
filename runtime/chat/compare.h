// Truth, equality, order and membership, as Python has them.
#pragma once

#include "runtime/bundle/chat_program.h"
#include "runtime/chat/heap.h"

namespace arn::chat {

bool IsTrue(const Value& value);
// a == b. Fails only when the values are nested too deep.
Status Equals(const Value& a, const Value& b, Heap* heap, bool* out);
// a < b; kTemplateError when the two cannot be ordered.
Status Less(const Value& a, const Value& b, Heap* heap, bool* out);
// item in container.
Status Contains(const Value& container, const Value& item, Heap* heap, bool* out);
Status Compare(Comparison comparison, const Value& a, const Value& b, Heap* heap, bool* out);

// kTemplateError with Jinja's sentence about an undefined value.
Status FailUndefined(const Value& value, Heap* heap);

}  // namespace arn::chat

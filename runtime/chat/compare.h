// Truth, equality, order and membership with Python's semantics.
#pragma once

#include "runtime/bundle/chat_program.h"
#include "runtime/chat/heap.h"

namespace arn::chat {

bool IsTrue(const Value& value);
// a == b. Fails only if the values are nested too deep.
Status Equals(const Value& a, const Value& b, Heap* heap, bool* out);
// a < b. kTemplateError if the two cannot be ordered.
Status Less(const Value& a, const Value& b, Heap* heap, bool* out);
// item in container.
Status Contains(const Value& container, const Value& item, Heap* heap, bool* out);
Status Compare(Comparison comparison, const Value& a, const Value& b, Heap* heap, bool* out);

// Returns kTemplateError with Jinja's message for an undefined value.
Status FailUndefined(const Value& value, Heap* heap);

}  // namespace arn::chat

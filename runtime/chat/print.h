// str() and repr().
#pragma once

#include "runtime/chat/heap.h"

namespace arn::chat {

// str(value). Returns a kString unchanged.
Status ToText(const Value& value, Heap* heap, Value* out);
// Appends str(value). kTemplateError for values without a text, such as a generator.
Status AppendText(const Value& value, Heap* heap, TextBuilder* out);
Status AppendRepr(const Value& value, Heap* heap, TextBuilder* out);

}  // namespace arn::chat

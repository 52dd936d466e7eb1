// str() and repr().
#pragma once

#include "runtime/chat/heap.h"

namespace arn::chat {

// str(value). A kString is itself.
Status ToText(const Value& value, Heap* heap, Value* out);
// The same, behind what is there. kTemplateError for what has no text, like a generator.
Status AppendText(const Value& value, Heap* heap, TextBuilder* out);
Status AppendRepr(const Value& value, Heap* heap, TextBuilder* out);

}  // namespace arn::chat

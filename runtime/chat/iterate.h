// Length and iteration of values.
#pragma once

#include <cstdint>

#include "platform/base/status.h"
#include "runtime/chat/heap.h"
#include "runtime/chat/value.h"

namespace arn::chat {

// len(value). kTemplateError if it has none.
Status Length(const Value& value, Heap* heap, int64_t* out);
// Returns the items of a loop over the value. Exhausts an iterator.
Status ToList(const Value& value, Heap* heap, List* out);

}  // namespace arn::chat

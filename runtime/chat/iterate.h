// A value as what a loop goes over.
#pragma once

#include <cstdint>

#include "platform/base/status.h"
#include "runtime/chat/heap.h"
#include "runtime/chat/value.h"

namespace arn::chat {

// len(value); kTemplateError when it has none.
Status Length(const Value& value, Heap* heap, int64_t* out);
// What a loop over the value goes over. An iterator is used up.
Status ToList(const Value& value, Heap* heap, List* out);

}  // namespace arn::chat

// Filters (value | name) and tests (value is name).
#pragma once

#include "runtime/bundle/chat_program.h"
#include "runtime/chat/call.h"
#include "runtime/chat/heap.h"

namespace arn::chat {

Status ApplyFilter(Filter filter, const Value& input, const Arguments& arguments, Heap* heap,
                   Value* out);
Status ApplyTest(Test test, const Value& value, const Arguments& arguments, Heap* heap, bool* out);

// Looks up a name, as for `map` and `select`; false if it does not exist.
bool FindFilter(std::string_view name, Filter* out);
bool FindTest(std::string_view name, Test* out);

// Parts of ApplyFilter: filters that return strings and numbers, and filters over sequences. *known
// is false if the filter belongs to the other part.
Status ApplyScalarFilter(Filter filter, const Value& input, const Arguments& arguments, Heap* heap,
                         Value* out, bool* known);
Status ApplySequenceFilter(Filter filter, const Value& input, const Arguments& arguments,
                           Heap* heap, Value* out, bool* known);
// map, select, reject, selectattr, rejectattr.
Status ApplyMap(const Value& input, const Arguments& arguments, Heap* heap, Value* out);
Status ApplySelect(Filter filter, const Value& input, const Arguments& arguments, Heap* heap,
                   Value* out);

// Wraps the items as the iterator that map and similar filters return.
Status MakeIterator(const ListBuilder& items, Heap* heap, Value* out);

}  // namespace arn::chat

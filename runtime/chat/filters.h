// Filters (value | name) and tests (value is name).
#pragma once

#include "runtime/bundle/chat_program.h"
#include "runtime/chat/call.h"
#include "runtime/chat/heap.h"

namespace arn::chat {

Status ApplyFilter(Filter filter, const Value& input, const Arguments& arguments, Heap* heap,
                   Value* out);
Status ApplyTest(Test test, const Value& value, const Arguments& arguments, Heap* heap, bool* out);

// By name, as `map` and `select` are told; false when there is none.
bool FindFilter(std::string_view name, Filter* out);
bool FindTest(std::string_view name, Test* out);

// Parts of ApplyFilter: those that make texts and numbers, and those that go over sequences.
// *known is false when the filter is of the other kind.
Status ApplyScalarFilter(Filter filter, const Value& input, const Arguments& arguments, Heap* heap,
                         Value* out, bool* known);
Status ApplySequenceFilter(Filter filter, const Value& input, const Arguments& arguments,
                           Heap* heap, Value* out, bool* known);
// map, select, reject, selectattr, rejectattr.
Status ApplyMap(const Value& input, const Arguments& arguments, Heap* heap, Value* out);
Status ApplySelect(Filter filter, const Value& input, const Arguments& arguments, Heap* heap,
                   Value* out);

// The items as what map and the like give.
Status MakeIterator(const ListBuilder& items, Heap* heap, Value* out);

}  // namespace arn::chat

#include "runtime/chat/filters.h"

namespace arn::chat {

bool FindFilter(std::string_view name, Filter* out) {
  for (const FilterName& known : kFilterNames) {
    if (known.name != name) continue;
    *out = known.filter;
    return true;
  }
  return false;
}

bool FindTest(std::string_view name, Test* out) {
  for (const TestName& known : kTestNames) {
    if (known.name != name) continue;
    *out = known.test;
    return true;
  }
  return false;
}

Status MakeIterator(const ListBuilder& items, Heap* heap, Value* out) {
  Iterator* iterator = nullptr;
  ARN_TRY(heap->New(&iterator));
  iterator->list = {items.items(), items.size()};
  *out = Value();
  out->kind = Kind::kIterator;
  out->iterator = iterator;
  return Status::kOk;
}

Status ApplyFilter(Filter filter, const Value& input, const Arguments& arguments, Heap* heap,
                   Value* out) {
  Level level(heap);
  ARN_TRY(level.Check());
  bool is_known = false;
  ARN_TRY(ApplyScalarFilter(filter, input, arguments, heap, out, &is_known));
  if (is_known) return Status::kOk;
  ARN_TRY(ApplySequenceFilter(filter, input, arguments, heap, out, &is_known));
  return is_known ? Status::kOk : Status::kInternal;
}

}  // namespace arn::chat

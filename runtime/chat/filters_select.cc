// map, select and similar: filters that apply a filter or test to every item. Python's are lazy;
// here all items are evaluated at once.
#include "platform/base/arith.h"
#include "runtime/chat/compare.h"
#include "runtime/chat/filters.h"
#include "runtime/chat/iterate.h"

namespace arn::chat {
namespace {

Status FailName(const char* what, std::string_view name, Heap* heap) {
  return heap->Fail("unknown %s '%.*s'", what, static_cast<int>(Min<size_t>(name.size(), 60)),
                    name.data());
}

// Returns the named argument, or kMissing.
Value Named(const Arguments& arguments, std::string_view name) {
  for (uint32_t i = 0; i < arguments.n_named; ++i) {
    if (arguments.named[i].name == name) return arguments.named[i].value;
  }
  return MissingValue();
}

Arguments Behind(const Arguments& arguments, uint32_t n) {
  Arguments rest = arguments;
  rest.positional += n;
  rest.n_positional -= n;
  return rest;
}

}  // namespace

Status ApplyMap(const Value& input, const Arguments& arguments, Heap* heap, Value* out) {
  List items;
  ARN_TRY(ToList(input, heap, &items));
  ListBuilder mapped(heap);
  const Value attribute = Named(arguments, "attribute");
  if (attribute.kind != Kind::kMissing) {
    if (arguments.n_positional > 0) {
      return heap->Fail("map takes an attribute or a filter, not both");
    }
    const Value otherwise = Named(arguments, "default");
    for (uint32_t i = 0; i < items.size; ++i) {
      Value value;
      ARN_TRY(GetPath(items.items[i], attribute, heap, &value, &otherwise));
      ARN_TRY(mapped.Append(value));
    }
    return MakeIterator(mapped, heap, out);
  }
  if (arguments.n_positional == 0) return heap->Fail("map needs a filter or an attribute");
  ARN_TRY(NeedText(arguments.positional[0], "map: the filter", heap));
  Filter filter = Filter::kList;
  if (!FindFilter(arguments.positional[0].view(), &filter)) {
    return FailName("filter", arguments.positional[0].view(), heap);
  }
  for (uint32_t i = 0; i < items.size; ++i) {
    Value value;
    ARN_TRY(ApplyFilter(filter, items.items[i], Behind(arguments, 1), heap, &value));
    ARN_TRY(mapped.Append(value));
  }
  return MakeIterator(mapped, heap, out);
}

Status ApplySelect(Filter filter, const Value& input, const Arguments& arguments, Heap* heap,
                   Value* out) {
  const bool by_attribute = filter == Filter::kSelectAttr || filter == Filter::kRejectAttr;
  const bool keeps_true = filter == Filter::kSelect || filter == Filter::kSelectAttr;
  const uint32_t name_at = by_attribute ? 1 : 0;
  if (arguments.n_positional < name_at) return heap->Fail("selectattr needs an attribute");
  Test test = Test::kTrue;
  const bool has_test = arguments.n_positional > name_at;
  if (has_test) {
    const Value& name = arguments.positional[name_at];
    ARN_TRY(NeedText(name, "the test", heap));
    if (!FindTest(name.view(), &test)) return FailName("test", name.view(), heap);
  }
  List items;
  ARN_TRY(ToList(input, heap, &items));
  ListBuilder kept(heap);
  for (uint32_t i = 0; i < items.size; ++i) {
    Value value = items.items[i];
    if (by_attribute) ARN_TRY(GetPath(items.items[i], arguments.positional[0], heap, &value));
    bool passes = IsTrue(value);
    if (has_test) {
      ARN_TRY(ApplyTest(test, value, Behind(arguments, name_at + 1), heap, &passes));
    }
    if (passes == keeps_true) ARN_TRY(kept.Append(items.items[i]));
  }
  return MakeIterator(kept, heap, out);
}

}  // namespace arn::chat

#include "runtime/chat/compare.h"

#include <cmath>

#include "platform/base/arith.h"
#include "runtime/chat/lookup.h"

namespace arn::chat {
namespace {

// Returns -1, 0 or 1; 2 if one is not a number.
int CompareNumbers(const Value& a, const Value& b) {
  if (a.IsWhole() && b.IsWhole()) {
    return a.AsInt() < b.AsInt() ? -1 : a.AsInt() > b.AsInt() ? 1 : 0;
  }
  const double x = a.AsFloat(), y = b.AsFloat();
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

Status EqualLists(const List& a, const List& b, Heap* heap, bool* out) {
  *out = a.size == b.size;
  for (uint32_t i = 0; *out && i < a.size; ++i) {
    ARN_TRY(Equals(a.items[i], b.items[i], heap, out));
  }
  return Status::kOk;
}

Status EqualDicts(const Dict& a, const Dict& b, Heap* heap, bool* out) {
  *out = a.size == b.size;
  for (uint32_t i = 0; *out && i < a.size; ++i) {
    const Value* other = nullptr;
    ARN_TRY(FindKey(b, a.entries[i].key, heap, &other));
    *out = other != nullptr;
    if (*out) ARN_TRY(Equals(a.entries[i].value, *other, heap, out));
  }
  return Status::kOk;
}

Status FailOrder(const Value& a, const Value& b, Heap* heap) {
  if (a.kind == Kind::kUndefined) return FailUndefined(a, heap);
  if (b.kind == Kind::kUndefined) return FailUndefined(b, heap);
  return heap->Fail("%s and %s cannot be ordered", TypeName(a), TypeName(b));
}

}  // namespace

Status FailUndefined(const Value& value, Heap* heap) {
  const int n = static_cast<int>(Min<uint32_t>(value.size, 100));
  switch (static_cast<UndefinedBecause>(value.about)) {
    case UndefinedBecause::kNoVariable: return heap->Fail("'%.*s' is undefined", n, value.text);
    case UndefinedBecause::kNoField: {
      Value owner;
      owner.kind = static_cast<Kind>(value.owner);
      return heap->Fail("'%s%s' has no attribute '%.*s'", TypeName(owner),
                        owner.kind == Kind::kNone ? "" : " object", n, value.text);
    }
    case UndefinedBecause::kNoArgument:
      return heap->Fail("parameter '%.*s' was not provided", n, value.text);
    case UndefinedBecause::kEmptySequence: return heap->Fail("the sequence was empty");
  }
  return heap->Fail("a value is undefined");
}

bool IsTrue(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kMissing:
    case Kind::kNone: return false;
    case Kind::kBool: return value.boolean;
    case Kind::kInt: return value.integer != 0;
    case Kind::kFloat: return value.number != 0.0;
    case Kind::kString: return value.size != 0;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kView: return value.list->size != 0;
    case Kind::kDict: return value.dict->size != 0;
    case Kind::kBigInt:
    case Kind::kNamespace:
    case Kind::kIterator:
    case Kind::kMacro:
    case Kind::kFunction:
    case Kind::kMethod:
    case Kind::kLoop: return true;
  }
  return false;
}

Status Equals(const Value& a, const Value& b, Heap* heap, bool* out) {
  ARN_TRY(heap->Spend(1));
  *out = false;
  if (a.IsNumber() && b.IsNumber()) {
    *out = CompareNumbers(a, b) == 0;
    return Status::kOk;
  }
  if (a.kind != b.kind) return Status::kOk;
  Level level(heap);
  ARN_TRY(level.Check());
  switch (a.kind) {
    case Kind::kUndefined:
    case Kind::kMissing:
    case Kind::kNone: *out = true; break;
    case Kind::kBigInt:
    case Kind::kString:
      ARN_TRY(heap->Spend(a.size / 64));
      *out = a.view() == b.view();
      break;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange: return EqualLists(*a.list, *b.list, heap, out);
    case Kind::kDict: return EqualDicts(*a.dict, *b.dict, heap, out);
    case Kind::kNamespace: *out = a.dict == b.dict; break;
    case Kind::kView: *out = a.list == b.list; break;
    case Kind::kIterator: *out = a.iterator == b.iterator; break;
    case Kind::kMacro: *out = a.macro == b.macro; break;
    case Kind::kLoop: *out = a.loop == b.loop; break;
    case Kind::kFunction: *out = a.about == b.about; break;
    case Kind::kMethod: *out = a.about == b.about && a.self == b.self; break;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat: break;  // handled above
  }
  return Status::kOk;
}

Status Less(const Value& a, const Value& b, Heap* heap, bool* out) {
  ARN_TRY(heap->Spend(1));
  if (a.IsNumber() && b.IsNumber()) {
    *out = CompareNumbers(a, b) == -1;
    return Status::kOk;
  }
  if (a.IsString() && b.IsString()) {
    ARN_TRY(heap->Spend(Min(a.size, b.size) / 64));
    // Byte order of UTF-8 equals code point order.
    *out = a.view() < b.view();
    return Status::kOk;
  }
  if (a.kind != b.kind || (a.kind != Kind::kList && a.kind != Kind::kTuple)) {
    return FailOrder(a, b, heap);
  }
  Level level(heap);
  ARN_TRY(level.Check());
  const List& x = *a.list;
  const List& y = *b.list;
  for (uint32_t i = 0; i < x.size && i < y.size; ++i) {
    bool is_equal = false;
    ARN_TRY(Equals(x.items[i], y.items[i], heap, &is_equal));
    if (!is_equal) return Less(x.items[i], y.items[i], heap, out);
  }
  *out = x.size < y.size;
  return Status::kOk;
}

Status Contains(const Value& container, const Value& item, Heap* heap, bool* out) {
  *out = false;
  switch (container.kind) {
    case Kind::kUndefined: return Status::kOk;
    case Kind::kString:
      if (item.kind == Kind::kUndefined) return FailUndefined(item, heap);
      if (!item.IsString()) {
        return heap->Fail("'in' a string needs a string on its left, not %s", TypeName(item));
      }
      ARN_TRY(heap->SpendSearch(container.size, item.size));
      *out = container.view().find(item.view()) != std::string_view::npos;
      return Status::kOk;
    case Kind::kDict: {
      const Value* found = nullptr;
      ARN_TRY(FindKey(*container.dict, item, heap, &found));
      *out = found != nullptr;
      return Status::kOk;
    }
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kView:
      for (uint32_t i = 0; !*out && i < container.list->size; ++i) {
        ARN_TRY(Equals(container.list->items[i], item, heap, out));
      }
      return Status::kOk;
    case Kind::kIterator: {
      Iterator& iterator = *container.iterator;
      while (!*out && iterator.at < iterator.list.size) {
        ARN_TRY(Equals(iterator.list.items[iterator.at++], item, heap, out));
      }
      return Status::kOk;
    }
    case Kind::kMissing:
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kBigInt:
    case Kind::kFloat:
    case Kind::kNamespace:
    case Kind::kMacro:
    case Kind::kFunction:
    case Kind::kMethod:
    case Kind::kLoop: break;
  }
  return heap->Fail("'in' cannot search %s", TypeName(container));
}

Status Compare(Comparison comparison, const Value& a, const Value& b, Heap* heap, bool* out) {
  bool flips = false;
  switch (comparison) {
    case Comparison::kNotEqual: flips = true; [[fallthrough]];
    case Comparison::kEqual: ARN_TRY(Equals(a, b, heap, out)); break;
    case Comparison::kNotIn: flips = true; [[fallthrough]];
    case Comparison::kIn: ARN_TRY(Contains(b, a, heap, out)); break;
    case Comparison::kLess: ARN_TRY(Less(a, b, heap, out)); break;
    case Comparison::kGreater: ARN_TRY(Less(b, a, heap, out)); break;
    case Comparison::kLessOrEqual:
    case Comparison::kGreaterOrEqual: {
      // a < b or a == b, not !(b < a): with NaN every comparison is false.
      const bool swaps = comparison == Comparison::kGreaterOrEqual;
      ARN_TRY(Less(swaps ? b : a, swaps ? a : b, heap, out));
      if (!*out) ARN_TRY(Equals(a, b, heap, out));
      break;
    }
  }
  if (flips) *out = !*out;
  return Status::kOk;
}

}  // namespace arn::chat

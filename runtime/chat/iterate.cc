#include "runtime/chat/iterate.h"

#include "runtime/chat/text.h"
#include "runtime/text/utf8.h"

namespace arn::chat {

Status Length(const Value& value, Heap* heap, int64_t* out) {
  switch (value.kind) {
    case Kind::kUndefined: *out = 0; return Status::kOk;
    case Kind::kString:
      ARN_TRY(heap->Spend(value.size / 64));
      *out = CountChars(value.view());
      return Status::kOk;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kView: *out = value.list->size; return Status::kOk;
    case Kind::kDict: *out = value.dict->size; return Status::kOk;
    case Kind::kLoop: *out = value.loop->list.size; return Status::kOk;
    case Kind::kMissing:
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kBigInt:
    case Kind::kFloat:
    case Kind::kNamespace:
    case Kind::kIterator:
    case Kind::kMacro:
    case Kind::kFunction:
    case Kind::kMethod: break;
  }
  return heap->Fail("%s has no length", TypeName(value));
}

Status ToList(const Value& value, Heap* heap, List* out) {
  *out = List();
  switch (value.kind) {
    case Kind::kUndefined: return Status::kOk;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kView: *out = *value.list; return Status::kOk;
    case Kind::kString: {
      const std::string_view text = value.view();
      Value* items = nullptr;
      const uint32_t n = CountChars(text);
      ARN_TRY(heap->Spend(n));
      ARN_TRY(heap->NewArray(n, &items));
      for (size_t i = 0, c = 0; i < text.size(); ++c) {
        const size_t bytes = ReadValidUtf8(text.data() + i).bytes;
        items[c] = TextValue(text.substr(i, bytes));
        i += bytes;
      }
      *out = {items, n};
      return Status::kOk;
    }
    case Kind::kDict: {
      Value* items = nullptr;
      ARN_TRY(heap->Spend(value.dict->size));
      ARN_TRY(heap->NewArray(value.dict->size, &items));
      for (uint32_t i = 0; i < value.dict->size; ++i) items[i] = value.dict->entries[i].key;
      *out = {items, value.dict->size};
      return Status::kOk;
    }
    case Kind::kIterator: {
      Iterator& iterator = *value.iterator;
      *out = {iterator.list.items + iterator.at, iterator.list.size - iterator.at};
      iterator.at = iterator.list.size;
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
  return heap->Fail("%s cannot be iterated over", TypeName(value));
}

}  // namespace arn::chat

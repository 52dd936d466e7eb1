#include "runtime/chat/lookup.h"

#include <cstring>

#include "platform/base/arith.h"
#include "runtime/chat/compare.h"
#include "runtime/chat/number.h"
#include "runtime/chat/text.h"
#include "runtime/text/utf8.h"

namespace arn::chat {
namespace {

struct MethodName {
  const char* name;
  Method method;
};
constexpr MethodName kStringMethods[] = {
    {"strip", Method::kStrip},
    {"lstrip", Method::kLStrip},
    {"rstrip", Method::kRStrip},
    {"split", Method::kSplit},
    {"rsplit", Method::kRSplit},
    {"splitlines", Method::kSplitLines},
    {"startswith", Method::kStartsWith},
    {"endswith", Method::kEndsWith},
    {"replace", Method::kReplace},
    {"lower", Method::kLower},
    {"upper", Method::kUpper},
    {"title", Method::kTitle},
    {"capitalize", Method::kCapitalize},
    {"swapcase", Method::kSwapCase},
    {"find", Method::kFind},
    {"rfind", Method::kRFind},
    {"index", Method::kIndex},
    {"rindex", Method::kRIndex},
    {"count", Method::kCount},
    {"join", Method::kJoin},
    {"isalpha", Method::kIsAlpha},
    {"isalnum", Method::kIsAlnum},
    {"isdigit", Method::kIsDigit},
    {"isnumeric", Method::kIsNumeric},
    {"isspace", Method::kIsSpace},
    {"islower", Method::kIsLower},
    {"isupper", Method::kIsUpper},
    {"istitle", Method::kIsTitle},
    {"isascii", Method::kIsAscii},
    {"removeprefix", Method::kRemovePrefix},
    {"removesuffix", Method::kRemoveSuffix},
    {"partition", Method::kPartition},
    {"rpartition", Method::kRPartition},
    {"center", Method::kCenter},
    {"ljust", Method::kLJust},
    {"rjust", Method::kRJust},
    {"zfill", Method::kZFill},
};
constexpr MethodName kDictMethods[] = {
    {"get", Method::kGet},           {"items", Method::kItems},
    {"keys", Method::kKeys},         {"values", Method::kValues},
    {"copy", Method::kCopy},         {"clear", Method::kForbidden},
    {"pop", Method::kForbidden},     {"popitem", Method::kForbidden},
    {"update", Method::kForbidden},  {"setdefault", Method::kForbidden},
    {"fromkeys", Method::kForbidden}};
constexpr MethodName kListMethods[] = {
    {"index", Method::kListIndex},   {"count", Method::kListCount}, {"copy", Method::kCopy},
    {"append", Method::kForbidden},  {"clear", Method::kForbidden}, {"extend", Method::kForbidden},
    {"insert", Method::kForbidden},  {"pop", Method::kForbidden},   {"remove", Method::kForbidden},
    {"reverse", Method::kForbidden}, {"sort", Method::kForbidden}};
constexpr MethodName kLoopMethods[] = {{"cycle", Method::kCycle}, {"changed", Method::kChanged}};

// Finds a method and binds it to `object`.
template <size_t N>
Status FindMethod(const MethodName (&names)[N], const Value& object, std::string_view name,
                  Heap* heap, Value* out, bool* found) {
  for (const MethodName& known : names) {
    if (known.name != name) continue;
    Value* self = nullptr;
    ARN_TRY(heap->New(&self));
    *self = object;
    *out = Value();
    out->kind = Kind::kMethod;
    out->about = static_cast<uint8_t>(known.method);
    out->self = self;
    *found = true;
    return Status::kOk;
  }
  return Status::kOk;
}

Value LoopField(const Loop& loop, std::string_view name, bool* found) {
  const int64_t index0 = loop.index0;
  const int64_t length = loop.list.size;
  *found = true;
  if (name == "index") return IntValue(index0 + 1);
  if (name == "index0") return IntValue(index0);
  if (name == "first") return BoolValue(index0 == 0);
  if (name == "last") return BoolValue(index0 + 1 == length);
  if (name == "length") return IntValue(length);
  if (name == "revindex") return IntValue(length - index0);
  if (name == "revindex0") return IntValue(length - index0 - 1);
  if (name == "depth") return IntValue(1);
  if (name == "depth0") return IntValue(0);
  const auto none = UndefinedValue(UndefinedBecause::kNoVariable, name);
  if (name == "previtem") return index0 == 0 ? none : loop.list.items[index0 - 1];
  if (name == "nextitem") return index0 + 1 == length ? none : loop.list.items[index0 + 1];
  *found = false;
  return none;
}

// getattr(): methods, and attributes of loops and namespaces.
Status FindAttribute(const Value& object, std::string_view name, Heap* heap, Value* out,
                     bool* found) {
  *found = false;
  switch (object.kind) {
    case Kind::kString: return FindMethod(kStringMethods, object, name, heap, out, found);
    case Kind::kDict: return FindMethod(kDictMethods, object, name, heap, out, found);
    case Kind::kList: return FindMethod(kListMethods, object, name, heap, out, found);
    case Kind::kNamespace: {
      ARN_TRY(heap->Spend(object.dict->size / 8));
      const Value* field = FindText(*object.dict, name);
      *found = field != nullptr;
      if (*found) *out = *field;
      return Status::kOk;
    }
    case Kind::kLoop:
      *out = LoopField(*object.loop, name, found);
      if (*found) return Status::kOk;
      return FindMethod(kLoopMethods, object, name, heap, out, found);
    case Kind::kTuple:
    case Kind::kRange:
      if (name != "index" && name != "count") return Status::kOk;
      return FindMethod(kListMethods, object, name, heap, out, found);
    case Kind::kUndefined:
    case Kind::kMissing:
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kBigInt:
    case Kind::kFloat:
    case Kind::kView:
    case Kind::kIterator:
    case Kind::kMacro:
    case Kind::kFunction:
    case Kind::kMethod: return Status::kOk;
  }
  return Status::kOk;
}

// Python's object[index].
Status FindItem(const Value& object, const Value& index, Heap* heap, Value* out, bool* found) {
  *found = false;
  if (object.kind == Kind::kDict) {
    const Value* value = nullptr;
    ARN_TRY(FindKey(*object.dict, index, heap, &value));
    *found = value != nullptr;
    if (*found) *out = *value;
    return Status::kOk;
  }
  if (!index.IsWhole()) return Status::kOk;
  int64_t at = index.AsInt();
  if (object.kind == Kind::kString) {
    const std::string_view text = object.view();
    ARN_TRY(heap->Spend(text.size() / 64));
    const int64_t n = CountChars(text);
    if (at < 0) at += n;
    if (at < 0 || at >= n) return Status::kOk;
    const size_t begin = OffsetOfChar(text, static_cast<uint64_t>(at));
    *out = TextValue(text.substr(begin, ReadValidUtf8(text.data() + begin).bytes));
    *found = true;
  } else if (object.kind == Kind::kList || object.kind == Kind::kTuple ||
             object.kind == Kind::kRange) {
    if (at < 0) at += object.list->size;
    if (at < 0 || at >= object.list->size) return Status::kOk;
    *out = object.list->items[at];
    *found = true;
  }
  return Status::kOk;
}

struct Steps {
  int64_t start, stop, step;
};

// slice.indices(n).
Status ToSteps(const Value& start, const Value& stop, const Value& step, int64_t n, Heap* heap,
               Steps* out) {
  for (const Value* part : {&start, &stop, &step}) {
    if (part->kind == Kind::kUndefined) return FailUndefined(*part, heap);
    if (part->kind != Kind::kNone && !part->IsWhole()) {
      return heap->Fail("slice bounds must be integers, not %s", TypeName(*part));
    }
  }
  const auto is_given = [](const Value& v) { return v.IsWhole(); };
  out->step = is_given(step) ? step.AsInt() : 1;
  if (out->step == 0) return heap->Fail("the step of a slice is 0");
  // Larger steps are equivalent; the clamp avoids overflow.
  out->step = Max<int64_t>(Min<int64_t>(out->step, int64_t{1} << 40), -(int64_t{1} << 40));
  const bool goes_back = out->step < 0;
  const int64_t low = goes_back ? -1 : 0, high = goes_back ? n - 1 : n;
  const auto place = [&](const Value& v, int64_t otherwise) {
    if (!is_given(v)) return otherwise;
    int64_t at = v.AsInt();
    if (at < 0) at = at < -n ? -1 - n : at;
    if (at < 0) at += n;
    return Max(low, Min(at, high));
  };
  out->start = place(start, goes_back ? high : low);
  out->stop = place(stop, goes_back ? low : high);
  return Status::kOk;
}

}  // namespace

const Value* FindText(const Dict& dict, std::string_view key) {
  for (uint32_t i = 0; i < dict.size; ++i) {
    const Entry& entry = dict.entries[i];
    if (entry.key.IsString() && entry.key.view() == key) return &entry.value;
  }
  return nullptr;
}

Status FindKey(const Dict& dict, const Value& key, Heap* heap, const Value** out) {
  *out = nullptr;
  ARN_TRY(heap->Spend(1 + dict.size / 8));
  if (key.IsString()) {
    *out = FindText(dict, key.view());
    return Status::kOk;
  }
  for (uint32_t i = 0; i < dict.size; ++i) {
    bool is_equal = false;
    ARN_TRY(Equals(dict.entries[i].key, key, heap, &is_equal));
    if (is_equal) {
      *out = &dict.entries[i].value;
      break;
    }
  }
  return Status::kOk;
}

Status SetKey(Dict* dict, const Value& key, const Value& value, Heap* heap) {
  if (key.kind == Kind::kList || key.kind == Kind::kDict) {
    return heap->Fail("a %s cannot be a key", TypeName(key));
  }
  const Value* known = nullptr;
  ARN_TRY(FindKey(*dict, key, heap, &known));
  if (known != nullptr) {
    *const_cast<Value*>(known) = value;
    return Status::kOk;
  }
  if (dict->size == dict->capacity) {
    const uint64_t capacity = dict->capacity == 0 ? 4 : uint64_t{dict->capacity} * 2;
    if (capacity > UINT32_MAX) return heap->Fail("a dict has too many keys");
    Entry* moved = nullptr;
    ARN_TRY(heap->NewArray(capacity, &moved));
    for (uint32_t i = 0; i < dict->size; ++i) moved[i] = dict->entries[i];
    dict->entries = moved;
    dict->capacity = static_cast<uint32_t>(capacity);
  }
  dict->entries[dict->size++] = {key, value};
  return Status::kOk;
}

Status GetAttr(const Value& object, std::string_view name, Heap* heap, Value* out) {
  if (object.kind == Kind::kUndefined) return FailUndefined(object, heap);
  bool found = false;
  ARN_TRY(FindAttribute(object, name, heap, out, &found));
  if (!found) ARN_TRY(FindItem(object, TextValue(name), heap, out, &found));
  if (!found) *out = UndefinedValue(UndefinedBecause::kNoField, name, object.kind);
  return Status::kOk;
}

Status GetItem(const Value& object, const Value& index, Heap* heap, Value* out) {
  if (object.kind == Kind::kUndefined) return FailUndefined(object, heap);
  bool found = false;
  ARN_TRY(FindItem(object, index, heap, out, &found));
  if (!found && index.IsString()) {
    ARN_TRY(FindAttribute(object, index.view(), heap, out, &found));
  }
  if (!found) {
    const std::string_view name = index.IsString() ? index.view() : std::string_view("[...]");
    *out = UndefinedValue(UndefinedBecause::kNoField, name, object.kind);
  }
  return Status::kOk;
}

Status GetPath(const Value& object, const Value& path, Heap* heap, Value* out,
               const Value* otherwise) {
  const bool has_default =
      otherwise != nullptr && otherwise->kind != Kind::kMissing && otherwise->kind != Kind::kNone;
  *out = object;
  if (path.kind != Kind::kInt && !path.IsString()) {
    return heap->Fail("the attribute is %s, not a string", TypeName(path));
  }
  std::string_view rest = path.IsString() ? path.view() : std::string_view();
  for (;;) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    int64_t number = 0;
    const bool is_number = IsAll(part, CharTest::kDigit) && ParseInt(part, 10, &number);
    const Value key = path.kind == Kind::kInt ? path
                      : is_number             ? IntValue(number)
                                              : TextValue(part);
    const Value before = *out;
    ARN_TRY(GetItem(before, key, heap, out));
    if (has_default && out->kind == Kind::kUndefined) *out = *otherwise;
    if (dot == std::string_view::npos) return Status::kOk;
    rest.remove_prefix(dot + 1);
  }
}

Status GetSlice(const Value& object, const Value& start, const Value& stop, const Value& step,
                Heap* heap, Value* out) {
  Steps steps = {};
  if (object.IsString()) {
    const std::string_view text = object.view();
    ARN_TRY(heap->Spend(text.size() / 16));
    const int64_t n = CountChars(text);
    ARN_TRY(ToSteps(start, stop, step, n, heap, &steps));
    if (steps.step == 1) {
      if (steps.start >= steps.stop) {
        *out = TextValue({});
        return Status::kOk;
      }
      const size_t begin = OffsetOfChar(text, static_cast<uint64_t>(steps.start));
      const std::string_view rest = text.substr(begin);
      *out = TextValue(
          rest.substr(0, OffsetOfChar(rest, static_cast<uint64_t>(steps.stop - steps.start))));
      return Status::kOk;
    }
    // Byte offset of each character.
    uint32_t* offsets = nullptr;
    ARN_TRY(heap->NewArray(static_cast<uint64_t>(n), &offsets));
    for (size_t i = 0, c = 0; i < text.size(); ++c) {
      offsets[c] = static_cast<uint32_t>(i);
      i += ReadValidUtf8(text.data() + i).bytes;
    }
    TextBuilder builder(heap);
    for (int64_t i = steps.start; steps.step > 0 ? i < steps.stop : i > steps.stop;
         i += steps.step) {
      const char* c = text.data() + offsets[i];
      ARN_TRY(builder.Append({c, ReadValidUtf8(c).bytes}));
    }
    *out = builder.ToValue();
    return Status::kOk;
  }
  if (object.kind != Kind::kList && object.kind != Kind::kTuple && object.kind != Kind::kRange) {
    if (object.kind == Kind::kUndefined) return FailUndefined(object, heap);
    return heap->Fail("a %s cannot be sliced", TypeName(object));
  }
  ARN_TRY(ToSteps(start, stop, step, object.list->size, heap, &steps));
  if (steps.step == 1) {
    List* part = nullptr;
    ARN_TRY(heap->New(&part));
    if (steps.start < steps.stop) {
      part->items = object.list->items + steps.start;
      part->size = static_cast<uint32_t>(steps.stop - steps.start);
    }
    *out = ListValue(part, object.kind);
    return Status::kOk;
  }
  ListBuilder builder(heap);
  for (int64_t i = steps.start; steps.step > 0 ? i < steps.stop : i > steps.stop; i += steps.step) {
    ARN_TRY(builder.Append(object.list->items[i]));
  }
  return builder.Finish(out, object.kind);
}

}  // namespace arn::chat

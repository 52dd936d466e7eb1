// Values of chat templates: the subset of Python's that templates use. A Value has 16 bytes and
// points into the heap of a rendering (heap.h), the program or the caller's JSON text. Strings are
// valid UTF-8. Lists and dicts are immutable once built; a namespace is mutable.
#pragma once

#include <cstdint>
#include <string_view>

namespace arn::chat {

enum class Kind : uint8_t {
  kUndefined = 0,  // text: missing name; about: see UndefinedBecause
  kMissing,        // no value: an omitted argument
  kNone,
  kBool,
  kInt,
  kBigInt,  // text: decimal digits of an integer beyond 64 bits, only printed and compared
  kFloat,
  kString,
  kList,
  kTuple,
  kRange,  // list
  kDict,
  kNamespace,  // dict
  kView,       // list: keys(), values() or items() of a dict
  kIterator,   // iterator: result of map, select and similar
  kMacro,
  kFunction,  // about: Function
  kMethod,    // about: Method; self
  kLoop,      // the `loop` of a {% for %}
};

// Origin of a kUndefined; selects the error message.
enum class UndefinedBecause : uint8_t { kNoVariable = 0, kNoField, kNoArgument, kEmptySequence };

struct List;
struct Dict;
struct Iterator;
struct Macro;
struct Loop;

struct Value {
  Kind kind = Kind::kUndefined;
  uint8_t about = 0;  // see Kind; kString: 1 if marked safe (the filter)
  uint8_t owner = 0;  // kUndefined by kNoField: Kind of the value without the field
  uint8_t zero = 0;
  uint32_t size = 0;  // bytes of text
  union {
    bool boolean;
    int64_t integer;
    double number;
    const char* text = nullptr;
    const List* list;
    Dict* dict;
    Iterator* iterator;
    const Macro* macro;
    Loop* loop;
    const Value* self;
  };

  std::string_view view() const { return {text, size}; }
  bool IsString() const { return kind == Kind::kString; }
  bool IsNumber() const {
    return kind == Kind::kInt || kind == Kind::kFloat || kind == Kind::kBool;
  }
  bool IsWhole() const { return kind == Kind::kInt || kind == Kind::kBool; }
  // REQUIRES: kInt or kBool.
  int64_t AsInt() const { return kind == Kind::kBool ? (boolean ? 1 : 0) : integer; }
  // REQUIRES: kInt, kBool or kFloat.
  double AsFloat() const { return kind == Kind::kFloat ? number : static_cast<double>(AsInt()); }
};
static_assert(sizeof(Value) == 16);

struct List {
  const Value* items = nullptr;
  uint32_t size = 0;
};

struct Entry {
  Value key;
  Value value;
};
// In insertion order, as in Python.
struct Dict {
  Entry* entries = nullptr;
  uint32_t size = 0;
  uint32_t capacity = 0;
};

// Returns each item once.
struct Iterator {
  List list;
  uint32_t at = 0;
};

struct Scope;
struct Macro {
  uint32_t node = 0;
  Scope* scope = nullptr;  // scope of the definition
};

struct Loop {
  List list;
  uint32_t index0 = 0;
  Value changed;  // last argument of loop.changed(): kMissing or a kTuple
};

inline Value NoneValue() {
  Value v;
  v.kind = Kind::kNone;
  return v;
}
inline Value MissingValue() {
  Value v;
  v.kind = Kind::kMissing;
  return v;
}
inline Value BoolValue(bool b) {
  Value v;
  v.kind = Kind::kBool;
  v.integer = 0;
  v.boolean = b;
  return v;
}
inline Value IntValue(int64_t i) {
  Value v;
  v.kind = Kind::kInt;
  v.integer = i;
  return v;
}
inline Value FloatValue(double d) {
  Value v;
  v.kind = Kind::kFloat;
  v.number = d;
  return v;
}
// REQUIRES: text is below 4 GiB.
inline Value TextValue(std::string_view text) {
  Value v;
  v.kind = Kind::kString;
  v.text = text.data();
  v.size = static_cast<uint32_t>(text.size());
  return v;
}
inline Value ListValue(const List* list, Kind kind = Kind::kList) {
  Value v;
  v.kind = kind;
  v.list = list;
  return v;
}
inline Value DictValue(Dict* dict, Kind kind = Kind::kDict) {
  Value v;
  v.kind = kind;
  v.dict = dict;
  return v;
}
inline Value UndefinedValue(UndefinedBecause because, std::string_view name,
                            Kind owner = Kind::kUndefined) {
  Value v = TextValue(name);
  v.kind = Kind::kUndefined;
  v.about = static_cast<uint8_t>(because);
  v.owner = static_cast<uint8_t>(owner);
  return v;
}

// Returns Python's name of the type: "str", "list", ...
const char* TypeName(const Value& value);

// Arguments of a call.
struct NamedValue {
  std::string_view name;
  Value value;
};
struct Arguments {
  const Value* positional = nullptr;
  uint32_t n_positional = 0;
  const NamedValue* named = nullptr;
  uint32_t n_named = 0;
};

}  // namespace arn::chat

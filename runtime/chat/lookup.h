// Access to values: keys, attributes, items, slices, attribute paths.
#pragma once

#include "runtime/chat/heap.h"

namespace arn::chat {

// Methods of strings, dicts, lists and loops.
enum class Method : uint8_t {
  kStrip = 0,
  kLStrip,
  kRStrip,
  kSplit,
  kRSplit,
  kSplitLines,
  kStartsWith,
  kEndsWith,
  kReplace,
  kLower,
  kUpper,
  kTitle,
  kCapitalize,
  kSwapCase,
  kFind,
  kRFind,
  kIndex,
  kRIndex,
  kCount,
  kJoin,
  kIsAlpha,
  kIsAlnum,
  kIsDigit,
  kIsNumeric,
  kIsSpace,
  kIsLower,
  kIsUpper,
  kIsTitle,
  kIsAscii,
  kRemovePrefix,
  kRemoveSuffix,
  kPartition,
  kRPartition,
  kCenter,
  kLJust,
  kRJust,
  kZFill,
  kListIndex,
  kListCount,
  kGet,
  kItems,
  kKeys,
  kValues,
  kCopy,
  kCycle,
  kChanged,
  kForbidden,  // append, update, ...: methods that would modify a value
};

// Returns the value of a key, or null.
Status FindKey(const Dict& dict, const Value& key, Heap* heap, const Value** out);
const Value* FindText(const Dict& dict, std::string_view key);
// Sets or adds a key. kTemplateError if the key is not hashable (a list, a dict).
Status SetKey(Dict* dict, const Value& key, const Value& value, Heap* heap);

// object.name and object[index] as in Jinja's sandbox: each falls back to the other; a missing one
// is undefined. kTemplateError if the object is undefined.
Status GetAttr(const Value& object, std::string_view name, Heap* heap, Value* out);
Status GetItem(const Value& object, const Value& index, Heap* heap, Value* out);
// object[start:stop:step]; kNone or kMissing for omitted parts.
Status GetSlice(const Value& object, const Value& start, const Value& stop, const Value& step,
                Heap* heap, Value* out);
// Follows a path "a.b.0", as in attribute= of filters, or an int. `otherwise` replaces an undefined
// step unless it is null, kMissing or kNone.
Status GetPath(const Value& object, const Value& path, Heap* heap, Value* out,
               const Value* otherwise = nullptr);

}  // namespace arn::chat

// Looking into values: keys, fields, items, slices; and walking over them.
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
  kForbidden,  // append, update, ...: what would change a value
};

// The value of a key, or null.
Status FindKey(const Dict& dict, const Value& key, Heap* heap, const Value** out);
const Value* FindText(const Dict& dict, std::string_view key);
// Sets or adds. kTemplateError when the key cannot be one (a list, a dict).
Status SetKey(Dict* dict, const Value& key, const Value& value, Heap* heap);

// object.name and object[index] as Jinja's sandbox has them: each tries the other way too, and
// what is not there is undefined. kTemplateError when the object is undefined.
Status GetAttr(const Value& object, std::string_view name, Heap* heap, Value* out);
Status GetItem(const Value& object, const Value& index, Heap* heap, Value* out);
// object[start:stop:step]; kNone or kMissing stand for what is left out.
Status GetSlice(const Value& object, const Value& start, const Value& stop, const Value& step,
                Heap* heap, Value* out);
// "a.b.0" one after the other, as the attribute= of filters has it; or an int. `otherwise` stands
// for what is undefined on the way, unless it is null, kMissing or kNone.
Status GetPath(const Value& object, const Value& path, Heap* heap, Value* out,
               const Value* otherwise = nullptr);

}  // namespace arn::chat

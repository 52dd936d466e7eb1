// Calls other than macros: methods of values, Jinja's functions.
#pragma once

#include "runtime/chat/heap.h"
#include "runtime/chat/lookup.h"
#include "runtime/chat/strftime.h"

namespace arn::chat {

enum class Function : uint8_t { kRange = 0, kDict, kNamespace, kRaiseException, kStrftimeNow };

// Returns the function of this name, or kMissing.
Value FindFunction(std::string_view name);

// Binds arguments to parameters, kMissing where absent. kTemplateError if an argument has no
// parameter, or one of the first `required` parameters has no argument. `what` names the callee.
Status Bind(const Arguments& arguments, std::string_view what, Span<const char* const> parameters,
            uint32_t required, Heap* heap, Value* out);
// True if an optional argument is present and not none.
inline bool IsGiven(const Value& value) {
  return value.kind != Kind::kMissing && value.kind != Kind::kNone;
}
// kTemplateError unless the value is a string; `what` names it.
Status NeedText(const Value& value, const char* what, Heap* heap);
// kTemplateError unless the value is an integer.
Status NeedInt(const Value& value, const char* what, Heap* heap, int64_t* out);

Status CallMethod(Method method, const Value& self, const Arguments& arguments, Heap* heap,
                  Value* out);
Status CallFunction(Function function, const Arguments& arguments, const CivilTime& now, Heap* heap,
                    Value* out);

// Parts of CallMethod.
Status CallTextMethod(Method method, std::string_view text, const Arguments& arguments, Heap* heap,
                      Value* out);
// text.replace(from, to, limit); a negative limit replaces all.
Status ReplaceText(std::string_view text, std::string_view from, std::string_view to, int64_t limit,
                   Heap* heap, Value* out);

}  // namespace arn::chat

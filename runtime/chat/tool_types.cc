#include "runtime/chat/tool_types.h"

#include "runtime/chat/json.h"

namespace arn::chat {
namespace {

// Returns the value of a key, or none.
Value Get(const Value& object, std::string_view key) {
  if (object.kind != Kind::kDict) return NoneValue();
  for (uint32_t i = 0; i < object.dict->size; ++i) {
    const Entry& entry = object.dict->entries[i];
    if (entry.key.view() == key) return entry.value;
  }
  return NoneValue();
}

// Returns the type of parameters whose schema has only an enum.
ToolTypes::Type TypeOfValues(const Value& values) {
  if (values.kind != Kind::kList || values.list->size == 0) return ToolTypes::Type::kUnknown;
  for (uint32_t i = 0; i < values.list->size; ++i) {
    if (!values.list->items[i].IsString()) return ToolTypes::Type::kUnknown;
  }
  return ToolTypes::Type::kString;
}

}  // namespace

Status ToolTypes::Read(std::string_view json, Heap* heap, Diag* diag) {
  tools_ = NoneValue();
  Value read;
  ARN_TRY(ReadJson(json, "tools", heap, diag, &read));
  if (read.kind != Kind::kList && read.kind != Kind::kNone) {
    return diag->Fail(Status::kBadArgument, "tools: expected an array");
  }
  tools_ = read;
  return Status::kOk;
}

ToolTypes::Type ToolTypes::TypeOf(std::string_view tool, std::string_view parameter) const {
  if (tools_.kind != Kind::kList) return Type::kUnknown;
  for (uint32_t i = 0; i < tools_.list->size; ++i) {
    const Value& item = tools_.list->items[i];
    const Value inner = Get(item, "function");
    const Value& function = inner.kind == Kind::kDict ? inner : item;
    const Value name = Get(function, "name");
    if (!name.IsString() || name.view() != tool) continue;
    const Value schema = Get(Get(Get(function, "parameters"), "properties"), parameter);
    const Value type = Get(schema, "type");
    if (type.kind == Kind::kNone) return TypeOfValues(Get(schema, "enum"));
    if (type.IsString()) return type.view() == "string" ? Type::kString : Type::kOther;
    if (type.kind != Kind::kList) return Type::kUnknown;
    for (uint32_t t = 0; t < type.list->size; ++t) {
      const Value& one = type.list->items[t];
      if (one.IsString() && one.view() == "string") return Type::kString;
    }
    return Type::kOther;
  }
  return Type::kUnknown;
}

}  // namespace arn::chat

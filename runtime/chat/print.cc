#include "runtime/chat/print.h"

#include <cstdio>

#include "runtime/chat/number.h"
#include "runtime/chat/text.h"
#include "runtime/text/utf8.h"

namespace arn::chat {
namespace {

Status AppendQuoted(std::string_view text, TextBuilder* out) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  ARN_TRY(out->Append(quote));
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = ReadValidUtf8(text.data() + i);
    const uint32_t u = c.code_point;
    out->MakeFrom(text.substr(i, c.bytes));
    if (u == static_cast<uint8_t>(quote) || u == '\\') {
      const char escaped[] = {'\\', static_cast<char>(u)};
      ARN_TRY(out->Append({escaped, 2}));
    } else if (u == '\n' || u == '\r' || u == '\t') {
      ARN_TRY(out->Append(u == '\n' ? "\\n" : u == '\r' ? "\\r" : "\\t"));
    } else if (IsPrintable(u)) {
      ARN_TRY(out->Append(text.substr(i, c.bytes)));
    } else {
      char escaped[16];
      const char* format = u < 0x100 ? "\\x%02x" : u < 0x10000 ? "\\u%04x" : "\\U%08x";
      const int n = std::snprintf(escaped, sizeof escaped, format, u);
      ARN_TRY(out->Append({escaped, static_cast<size_t>(n)}));
    }
    i += c.bytes;
  }
  out->set_given(false);
  return out->Append(quote);
}

Status AppendList(const Value& value, Heap* heap, TextBuilder* out) {
  const bool is_tuple = value.kind == Kind::kTuple;
  ARN_TRY(out->Append(is_tuple ? '(' : '['));
  for (uint32_t i = 0; i < value.list->size; ++i) {
    if (i > 0) ARN_TRY(out->Append(", "));
    ARN_TRY(AppendRepr(value.list->items[i], heap, out));
  }
  if (is_tuple && value.list->size == 1) ARN_TRY(out->Append(','));
  return out->Append(is_tuple ? ')' : ']');
}

Status AppendDict(const Dict& dict, Heap* heap, TextBuilder* out) {
  ARN_TRY(out->Append('{'));
  for (uint32_t i = 0; i < dict.size; ++i) {
    if (i > 0) ARN_TRY(out->Append(", "));
    ARN_TRY(AppendRepr(dict.entries[i].key, heap, out));
    ARN_TRY(out->Append(": "));
    ARN_TRY(AppendRepr(dict.entries[i].value, heap, out));
  }
  return out->Append('}');
}

}  // namespace

Status AppendRepr(const Value& value, Heap* heap, TextBuilder* out) {
  Level level(heap);
  ARN_TRY(level.Check());
  ARN_TRY(heap->Spend(1));
  if (value.kind == Kind::kString) return AppendQuoted(value.view(), out);
  if (value.kind == Kind::kUndefined) return out->Append("Undefined");
  return AppendText(value, heap, out);
}

Status AppendText(const Value& value, Heap* heap, TextBuilder* out) {
  char number[kMaxNumberBytes];
  switch (value.kind) {
    case Kind::kUndefined: return Status::kOk;
    case Kind::kNone: return out->Append("None");
    case Kind::kBool: return out->Append(value.boolean ? "True" : "False");
    case Kind::kInt: return out->Append({number, FormatInt(value.integer, number)});
    case Kind::kFloat: return out->Append({number, FormatFloat(value.number, number)});
    case Kind::kString:
    case Kind::kBigInt: return out->Append(value.view());
    case Kind::kList:
    case Kind::kTuple: return AppendList(value, heap, out);
    case Kind::kDict: return AppendDict(*value.dict, heap, out);
    case Kind::kNamespace:
      ARN_TRY(out->Append("<Namespace "));
      ARN_TRY(AppendDict(*value.dict, heap, out));
      return out->Append('>');
    case Kind::kMissing:
    case Kind::kRange:
    case Kind::kView:
    case Kind::kIterator:
    case Kind::kMacro:
    case Kind::kFunction:
    case Kind::kMethod:
    case Kind::kLoop: break;
  }
  return heap->Fail("a %s cannot be converted to a string", TypeName(value));
}

Status ToText(const Value& value, Heap* heap, Value* out) {
  if (value.IsString()) {
    *out = TextValue(value.view());
    return Status::kOk;
  }
  TextBuilder builder(heap);
  ARN_TRY(AppendText(value, heap, &builder));
  *out = builder.ToValue();
  return Status::kOk;
}

}  // namespace arn::chat

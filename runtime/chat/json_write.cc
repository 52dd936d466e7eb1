#include <cstdio>

#include "runtime/chat/compare.h"
#include "runtime/chat/json.h"
#include "runtime/chat/number.h"
#include "runtime/text/utf8.h"

namespace arn::chat {
namespace {

Status AppendUnit(uint32_t unit, TextBuilder* out) {
  char text[8];
  const int n = std::snprintf(text, sizeof text, "\\u%04x", unit);
  return out->Append({text, static_cast<size_t>(n)});
}

Status AppendQuoted(std::string_view text, bool is_ascii, TextBuilder* out) {
  static constexpr std::string_view kShort = "\"\\\b\f\n\r\t";
  static constexpr std::string_view kLetters = "\"\\bfnrt";
  ARN_TRY(out->Append('"'));
  size_t done = 0;
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = ReadValidUtf8(text.data() + i);
    const uint32_t u = c.code_point;
    const bool escapes = u < 0x20 || u == '"' || u == '\\' || (is_ascii && u >= 0x7F);
    if (escapes) {
      ARN_TRY(out->Append(text.substr(done, i - done)));
      out->MakeFrom(text.substr(i, c.bytes));
      done = i + c.bytes;
      const size_t known = u < 0x80 ? kShort.find(static_cast<char>(u)) : std::string_view::npos;
      if (known != std::string_view::npos) {
        const char pair[] = {'\\', kLetters[known]};
        ARN_TRY(out->Append({pair, 2}));
      } else if (u >= 0x10000) {
        ARN_TRY(AppendUnit(0xD800 + ((u - 0x10000) >> 10), out));
        ARN_TRY(AppendUnit(0xDC00 + ((u - 0x10000) & 0x3FF), out));
      } else {
        ARN_TRY(AppendUnit(u, out));
      }
    }
    i += c.bytes;
  }
  out->set_given(false);
  ARN_TRY(out->Append(text.substr(done)));
  return out->Append('"');
}

Status AppendScalar(const Value& value, Heap* heap, TextBuilder* out) {
  char number[kMaxNumberBytes];
  if (value.kind == Kind::kNone) return out->Append("null");
  if (value.kind == Kind::kBool) return out->Append(value.boolean ? "true" : "false");
  if (value.kind == Kind::kInt) return out->Append({number, FormatInt(value.integer, number)});
  if (value.kind == Kind::kBigInt) return out->Append(value.view());
  if (value.kind == Kind::kFloat) {
    if (value.number != value.number) return out->Append("NaN");
    const size_t n = FormatFloat(value.number, number);
    if (number[n - 1] == 'f') return out->Append(value.number < 0 ? "-Infinity" : "Infinity");
    return out->Append({number, n});
  }
  if (value.kind == Kind::kUndefined) return FailUndefined(value, heap);
  return heap->Fail("%s cannot be written as JSON", TypeName(value));
}

class Writer {
 public:
  Writer(const JsonStyle& style, Heap* heap, TextBuilder* out)
      : style_(style), heap_(heap), out_(out) {}

  Status Write(const Value& value, uint32_t depth) {
    Level level(heap_);
    ARN_TRY(level.Check());
    ARN_TRY(heap_->Spend(1));
    if (value.IsString()) return AppendQuoted(value.view(), style_.is_ascii, out_);
    if (value.kind == Kind::kDict) return WriteDict(*value.dict, depth);
    if (value.kind == Kind::kList || value.kind == Kind::kTuple) {
      return WriteList(*value.list, depth);
    }
    return AppendScalar(value, heap_, out_);
  }

 private:
  Status NewLine(uint32_t depth) {
    if (style_.indent.kind == Kind::kNone) return Status::kOk;
    ARN_TRY(out_->Append('\n'));
    for (uint32_t i = 0; i < depth; ++i) {
      if (style_.indent.IsString()) {
        ARN_TRY(out_->Append(style_.indent.view()));
      } else {
        for (int64_t n = 0; n < style_.indent.AsInt(); ++n) {
          ARN_TRY(heap_->Spend(1));
          ARN_TRY(out_->Append(' '));
        }
      }
    }
    return Status::kOk;
  }
  Status WriteList(const List& list, uint32_t depth) {
    if (list.size == 0) return out_->Append("[]");
    ARN_TRY(out_->Append('['));
    for (uint32_t i = 0; i < list.size; ++i) {
      if (i > 0) ARN_TRY(out_->Append(style_.item_separator));
      ARN_TRY(NewLine(depth + 1));
      ARN_TRY(Write(list.items[i], depth + 1));
    }
    ARN_TRY(NewLine(depth));
    return out_->Append(']');
  }
  Status WriteKey(const Value& key) {
    if (key.IsString()) return AppendQuoted(key.view(), style_.is_ascii, out_);
    if (key.kind != Kind::kNone && key.kind != Kind::kBigInt && !key.IsNumber()) {
      return heap_->Fail("a key of type %s cannot be written as JSON", TypeName(key));
    }
    ARN_TRY(out_->Append('"'));
    ARN_TRY(AppendScalar(key, heap_, out_));
    return out_->Append('"');
  }
  // Returns the order of entries sorted by key, stable.
  Status SortedOrder(const Dict& dict, uint32_t* order) {
    for (uint32_t i = 0; i < dict.size; ++i) {
      uint32_t at = i;
      for (; at > 0; --at) {
        bool is_less = false;
        ARN_TRY(Less(dict.entries[i].key, dict.entries[order[at - 1]].key, heap_, &is_less));
        if (!is_less) break;
        order[at] = order[at - 1];
      }
      order[at] = i;
    }
    return Status::kOk;
  }
  Status WriteDict(const Dict& dict, uint32_t depth) {
    if (dict.size == 0) return out_->Append("{}");
    uint32_t* order = nullptr;
    ARN_TRY(out_->Append('{'));
    if (style_.sorts_keys) {
      ARN_TRY(heap_->NewArray(dict.size, &order));
      ARN_TRY(SortedOrder(dict, order));
    }
    for (uint32_t i = 0; i < dict.size; ++i) {
      const Entry& entry = dict.entries[order == nullptr ? i : order[i]];
      if (i > 0) ARN_TRY(out_->Append(style_.item_separator));
      ARN_TRY(NewLine(depth + 1));
      ARN_TRY(WriteKey(entry.key));
      ARN_TRY(out_->Append(style_.key_separator));
      ARN_TRY(Write(entry.value, depth + 1));
    }
    ARN_TRY(NewLine(depth));
    return out_->Append('}');
  }

  const JsonStyle& style_;
  Heap* const heap_;
  TextBuilder* const out_;
};

}  // namespace

Status AppendJson(const Value& value, const JsonStyle& style, Heap* heap, TextBuilder* out) {
  return Writer(style, heap, out).Write(value, 0);
}

}  // namespace arn::chat

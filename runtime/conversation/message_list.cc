#include "runtime/conversation/message_list.h"

#include <cstring>

#include "runtime/chat/json.h"
#include "runtime/chat/lookup.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

// Splits the text of an array into its items, in order. The text must be valid JSON.
class ArrayItems {
 public:
  explicit ArrayItems(std::string_view array) : text_(array), at_(array.find('[') + 1) {}

  // REQUIRES: the array has another item.
  std::string_view Next() {
    while (IsBetween(text_[at_])) ++at_;
    const size_t begin = at_;
    size_t depth = 0;
    for (bool is_quoted = false; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (is_quoted) {
        if (c == '\\') ++at_;
        is_quoted = c != '"';
        continue;
      }
      is_quoted = c == '"';
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth == 0) {
        ++at_;
        break;
      }
    }
    return text_.substr(begin, at_ - begin);
  }

 private:
  static bool IsBetween(char c) {
    return c == ',' || c == ' ' || c == '\n' || c == '\t' || c == '\r';
  }

  std::string_view text_;
  size_t at_;
};

std::string_view WithoutSpaceAround(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Returns the text of a key, or "" if there is none.
std::string_view TextOf(const chat::Value& object, std::string_view key) {
  if (object.kind != chat::Kind::kDict) return {};
  const chat::Value* value = chat::FindText(*object.dict, key);
  return value != nullptr && value->IsString() ? value->view() : std::string_view();
}

Status CheckText(const char* what, std::string_view text, Diag* diag) {
  if (IsValidUtf8({text.data(), text.size()})) return Status::kOk;
  return diag->Fail(Status::kBadArgument, "the message's %s is not UTF-8", what);
}

}  // namespace

MessageRole RoleOf(std::string_view name) {
  if (name == "system" || name == "developer") return MessageRole::kSystem;
  if (name == "user") return MessageRole::kUser;
  if (name == "assistant") return MessageRole::kAssistant;
  if (name == "tool") return MessageRole::kTool;
  return MessageRole::kOther;
}

MessageList::MessageList(Span<char> text, Span<Record> records) : text_(text), records_(records) {
  Truncate(0);
}

void MessageList::Close() {
  text_[bytes_] = ']';
  text_[bytes_ + 1] = '\0';
}

JsonWriter MessageList::Begin() {
  const size_t begin = bytes_ + (n_ > 0 ? 1 : 0);
  const size_t end = text_.size() - 2;  // before the bracket and NUL
  return JsonWriter(begin < end ? text_.subspan(begin, end - begin) : Span<char>());
}

Status MessageList::End(const JsonWriter& writer, MessageRole role, Diag* diag) {
  const size_t begin = bytes_ + (n_ > 0 ? 1 : 0);
  if (!writer.fits()) {
    Close();
    return diag->Fail(
        Status::kOutOfMemory,
        "the messages take %zu bytes as JSON and this one %zu more, text_bytes is %zu",
        json().size(), writer.bytes() + 1, text_.size());
  }
  if (n_ > 0) text_[bytes_] = ',';
  bytes_ = begin + writer.bytes();
  records_[n_++] = {static_cast<uint32_t>(begin), static_cast<uint32_t>(bytes_), role};
  Close();
  return Status::kOk;
}

Status MessageList::Add(std::string_view role, std::string_view content, Diag* diag) {
  if (role.empty()) return diag->Fail(Status::kBadArgument, "the message's role is empty");
  ARN_TRY(CheckText("role", role, diag));
  ARN_TRY(CheckText("text", content, diag));
  JsonWriter writer = Begin();
  writer.Raw("{\"role\":");
  writer.String(role);
  writer.Raw(",\"content\":");
  writer.String(content);
  writer.Raw("}");
  return End(writer, RoleOf(role), diag);
}

Status MessageList::AddToolResult(std::string_view name, std::string_view id,
                                  std::string_view content, Diag* diag) {
  ARN_TRY(CheckText("text", content, diag));
  JsonWriter writer = Begin();
  writer.Raw("{\"role\":\"tool\",\"name\":");
  writer.String(name);
  if (!id.empty()) {
    writer.Raw(",\"tool_call_id\":");
    writer.String(id);
  }
  writer.Raw(",\"content\":");
  writer.String(content);
  writer.Raw("}");
  return End(writer, MessageRole::kTool, diag);
}

Status MessageList::AddObject(std::string_view object, MessageRole role, Diag* diag) {
  JsonWriter writer = Begin();
  writer.Raw(object);
  return End(writer, role, diag);
}

Status MessageList::AddJson(std::string_view json, chat::Heap* heap, Diag* diag) {
  chat::Value value;
  ARN_TRY(chat::ReadJson(json, "message", heap, diag, &value));
  const bool is_list = value.kind == chat::Kind::kList;
  const size_t n_items = is_list ? value.list->size : 1;
  const chat::Value* items = is_list ? value.list->items : &value;
  for (size_t i = 0; i < n_items; ++i) {
    if (!TextOf(items[i], "role").empty()) continue;
    return diag->Fail(Status::kBadArgument,
                      "message %zu is not an object with a \"role\" that is a text", i);
  }
  const size_t n_before = n_;
  ArrayItems texts(is_list ? json : std::string_view("["));
  for (size_t i = 0; i < n_items; ++i) {
    const std::string_view text = is_list ? texts.Next() : WithoutSpaceAround(json);
    const Status status = AddObject(text, RoleOf(TextOf(items[i], "role")), diag);
    if (status == Status::kOk) continue;
    Truncate(n_before);
    return status;
  }
  return Status::kOk;
}

void MessageList::Truncate(size_t n) {
  n_ = n;
  bytes_ = n > 0 ? records_[n - 1].end : 1;
  text_[0] = '[';
  Close();
}

void MessageList::Erase(size_t first, size_t last) {
  if (last == n_) return Truncate(first);
  const uint32_t to = records_[first].begin;
  const uint32_t from = records_[last].begin;
  std::memmove(text_.data() + to, text_.data() + from, bytes_ - from);
  for (size_t i = last; i < n_; ++i) {
    const Record& record = records_[i];
    records_[first + (i - last)] = {record.begin - (from - to), record.end - (from - to),
                                    record.role};
  }
  bytes_ -= from - to;
  n_ -= last - first;
  Close();
}

Status MessageList::FindCall(size_t i, uint32_t index, chat::Heap* heap, Diag* diag,
                             std::string_view* name, std::string_view* id) const {
  chat::Value read;
  ARN_TRY(chat::ReadJson(message(i), "message", heap, diag, &read));
  const chat::Value* calls = chat::FindText(*read.dict, "tool_calls");
  const uint32_t n_calls =
      calls != nullptr && calls->kind == chat::Kind::kList ? calls->list->size : 0;
  if (index >= n_calls) {
    return diag->Fail(Status::kNotFound, "call %u of the last reply: it has %u", index, n_calls);
  }
  const chat::Value& call = calls->list->items[index];
  const chat::Value* function =
      call.kind == chat::Kind::kDict ? chat::FindText(*call.dict, "function") : nullptr;
  *name = TextOf(function != nullptr ? *function : call, "name");
  *id = TextOf(call, "id");
  return Status::kOk;
}

}  // namespace arn

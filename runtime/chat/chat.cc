#include "runtime/chat/chat.h"

#include <algorithm>

#include "runtime/chat/json.h"
#include "runtime/chat/lookup.h"
#include "runtime/chat/renderer.h"

namespace arn::chat {
namespace {

constexpr std::string_view kReserved[] = {"messages", "tools", "add_generation_prompt"};

// Skips JSON's white space.
bool IsAbsent(std::string_view json) {
  return json.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

Status FailKind(const char* what, const char* expected, const Value& found, Diag* diag) {
  return diag->Fail(Status::kBadArgument, "%s: expected %s, found %s", what, expected,
                    TypeName(found));
}

// Longer words are not treated as roles.
constexpr size_t kMaxRoleBytes = 64;

bool IsWord(std::string_view text) {
  return !text.empty() && text.size() <= kMaxRoleBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           const char lower = static_cast<char>(c | 32);
           return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
         });
}

// Marks the text as the template's own.
Status Own(Value* value, Heap* heap) {
  Value copy;
  ARN_TRY(heap->Copy(value->view(), &copy));
  heap->given().Set(copy.text, copy.size, false);
  *value = copy;
  return Status::kOk;
}

// Marks roles that are words as the template's own: templates build control tokens from them ("<|"
// + role + "|>"), and a word cannot contain one.
Status OwnRoles(const Value& messages, Heap* heap) {
  for (uint32_t i = 0; i < messages.list->size; ++i) {
    const Value& message = messages.list->items[i];
    if (message.kind != Kind::kDict) continue;
    for (uint32_t k = 0; k < message.dict->size; ++k) {
      Entry& entry = message.dict->entries[k];
      if (entry.key.view() != "role" || !entry.value.IsString() || !IsWord(entry.value.view())) {
        continue;
      }
      ARN_TRY(Own(&entry.value, heap));
    }
  }
  return Status::kOk;
}

// Fills the context in the order of transformers' apply_chat_template: special tokens, then the
// values of this conversation.
Status FillContext(const Dict& variables, const RenderInput& input, Heap* heap, Diag* diag,
                   Dict* context) {
  for (const std::string_view source : {input.messages, input.tools, input.variables}) {
    heap->given().AddSource(source);
  }
  for (uint32_t i = 0; i < variables.size; ++i) {
    ARN_TRY(SetKey(context, variables.entries[i].key, variables.entries[i].value, heap));
  }
  ARN_TRY(SetKey(context, TextValue("documents"), NoneValue(), heap));
  if (!IsAbsent(input.variables)) {
    Value more;
    ARN_TRY(ReadJson(input.variables, "variables", heap, diag, &more));
    if (more.kind != Kind::kDict) return FailKind("variables", "an object", more, diag);
    for (uint32_t i = 0; i < more.dict->size; ++i) {
      Entry& entry = more.dict->entries[i];
      for (const std::string_view reserved : kReserved) {
        if (entry.key.view() != reserved) continue;
        return diag->Fail(Status::kBadArgument, "variables: '%s' is a reserved name",
                          reserved.data());
      }
      const bool is_own = FindText(variables, entry.key.view()) != nullptr;
      if (is_own && entry.value.IsString()) ARN_TRY(Own(&entry.value, heap));
      ARN_TRY(SetKey(context, entry.key, entry.value, heap));
    }
  }
  Value messages, tools = NoneValue();
  ARN_TRY(ReadJson(input.messages, "messages", heap, diag, &messages));
  if (messages.kind != Kind::kList) return FailKind("messages", "an array", messages, diag);
  ARN_TRY(OwnRoles(messages, heap));
  if (!IsAbsent(input.tools)) ARN_TRY(ReadJson(input.tools, "tools", heap, diag, &tools));
  if (tools.kind != Kind::kList && tools.kind != Kind::kNone) {
    return FailKind("tools", "an array or null", tools, diag);
  }
  ARN_TRY(SetKey(context, TextValue("messages"), messages, heap));
  ARN_TRY(SetKey(context, TextValue("tools"), tools, heap));
  return SetKey(context, TextValue("add_generation_prompt"), BoolValue(input.add_generation_prompt),
                heap);
}

}  // namespace

Status RenderProgram(const Program& program, const Dict& variables, const RenderInput& input,
                     Span<std::byte> memory, uint64_t max_steps, Span<char> out,
                     RenderedText* result, Diag* diag) {
  *result = RenderedText();
  Heap heap(memory, max_steps, diag);
  Dict* context = nullptr;
  ARN_TRY(heap.New(&context));
  ARN_TRY(FillContext(variables, input, &heap, diag, context));
  Output output;
  output.text = out.data();
  output.capacity = out.size();
  ARN_TRY(Renderer(program, *context, input.now, &heap, &output).Run());
  if (output.bytes > SIZE_MAX) return heap.Fail("the text exceeds the address space");
  std::reverse(output.spans, output.spans + output.n_spans);
  *result = {static_cast<size_t>(output.bytes), {output.spans, output.n_spans}};
  if (result->bytes > out.size()) {
    return diag->Fail(Status::kBufferTooSmall, "the text has %zu bytes, the buffer %zu",
                      result->bytes, out.size());
  }
  return Status::kOk;
}

Status Render(const Templates& templates, const RenderInput& input, Span<std::byte> memory,
              uint64_t max_steps, Span<char> out, RenderedText* result, Diag* diag) {
  *result = RenderedText();
  const Program* program = nullptr;
  if (!input.template_name.empty()) {
    program = templates.Find(input.template_name);
  } else {
    // Default: the tool template if there are tools.
    const size_t first = input.tools.find_first_not_of(" \t\r\n");
    const bool has_tools = first != std::string_view::npos && input.tools[first] == '[';
    if (has_tools) program = templates.Find("tool_use");
    if (program == nullptr) program = templates.Find("default");
  }
  if (program == nullptr) {
    return diag->Fail(
        Status::kNotFound, "the bundle has no chat template '%.*s'",
        static_cast<int>(input.template_name.empty() ? 7 : input.template_name.size()),
        input.template_name.empty() ? "default" : input.template_name.data());
  }
  return RenderProgram(*program, templates.variables(), input, memory, max_steps, out, result,
                       diag);
}

}  // namespace arn::chat

#include "runtime/chat/chat.h"

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

// What the template sees, in the order of transformers' apply_chat_template: the special tokens,
// and what is given for this conversation.
Status FillContext(const Dict& variables, const RenderInput& input, Heap* heap, Diag* diag,
                   Dict* context) {
  for (uint32_t i = 0; i < variables.size; ++i) {
    ARN_TRY(SetKey(context, variables.entries[i].key, variables.entries[i].value, heap));
  }
  ARN_TRY(SetKey(context, TextValue("documents"), NoneValue(), heap));
  if (!IsAbsent(input.variables)) {
    Value more;
    ARN_TRY(ReadJson(input.variables, "variables", heap, diag, &more));
    if (more.kind != Kind::kDict) return FailKind("variables", "an object", more, diag);
    for (uint32_t i = 0; i < more.dict->size; ++i) {
      const Entry& entry = more.dict->entries[i];
      for (const std::string_view reserved : kReserved) {
        if (entry.key.view() != reserved) continue;
        return diag->Fail(Status::kBadArgument, "variables: '%s' is given apart from them",
                          reserved.data());
      }
      ARN_TRY(SetKey(context, entry.key, entry.value, heap));
    }
  }
  Value messages, tools = NoneValue();
  ARN_TRY(ReadJson(input.messages, "messages", heap, diag, &messages));
  if (messages.kind != Kind::kList) return FailKind("messages", "an array", messages, diag);
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
                     Span<std::byte> memory, uint64_t max_steps, Span<char> out, size_t* n_bytes,
                     Diag* diag) {
  *n_bytes = 0;
  Heap heap(memory, max_steps, diag);
  Dict* context = nullptr;
  ARN_TRY(heap.New(&context));
  ARN_TRY(FillContext(variables, input, &heap, diag, context));
  Output output = {out.data(), out.size(), 0};
  ARN_TRY(Renderer(program, *context, input.now, &heap, &output).Run());
  if (output.bytes > SIZE_MAX) return heap.Fail("the text leaves the address space");
  *n_bytes = static_cast<size_t>(output.bytes);
  if (*n_bytes > out.size()) {
    return diag->Fail(Status::kBufferTooSmall, "the text has %zu bytes, the buffer %zu", *n_bytes,
                      out.size());
  }
  return Status::kOk;
}

Status Render(const Templates& templates, const RenderInput& input, Span<std::byte> memory,
              uint64_t max_steps, Span<char> out, size_t* n_bytes, Diag* diag) {
  *n_bytes = 0;
  const Program* program = nullptr;
  if (!input.template_name.empty()) {
    program = templates.Find(input.template_name);
  } else {
    // Without a name: the one for tools, when there are some.
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
  return RenderProgram(*program, templates.variables(), input, memory, max_steps, out, n_bytes,
                       diag);
}

}  // namespace arn::chat

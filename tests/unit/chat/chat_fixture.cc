#include "tests/unit/chat/chat_fixture.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>

#include "converter/chat/compile.h"
#include "runtime/chat/chat.h"

namespace arn::test {

Rendered RenderBytes(const std::vector<uint8_t>& bytes, const ChatCase& c) {
  Rendered result;
  Diag diag;
  // Aligned for the program's integers.
  std::vector<uint32_t> words(bytes.size() / 4 + 1);
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  chat::Program program;
  result.status =
      program.Open({reinterpret_cast<const std::byte*>(words.data()), bytes.size()}, &diag);
  if (result.status != Status::kOk) {
    result.error = diag.text();
    return result;
  }
  chat::Entry tokens[] = {{chat::TextValue("bos_token"), chat::TextValue("<s>")},
                          {chat::TextValue("eos_token"), chat::TextValue("</s>")},
                          {chat::TextValue("unk_token"), chat::TextValue("<unk>")},
                          {chat::TextValue("pad_token"), chat::TextValue("<pad>")}};
  const chat::Dict variables = {tokens, 4, 4};
  chat::RenderInput input;
  input.messages = c.messages;
  input.tools = c.tools;
  input.variables = c.variables;
  input.add_generation_prompt = c.add_generation_prompt;
  input.now = {2025, 3, 9, 14, 5, 6, 7};
  // Not cleared, which would take longer than most renderings.
  const std::unique_ptr<std::max_align_t[]> memory(
      new std::max_align_t[c.arena_bytes / sizeof(std::max_align_t) + 1]);
  const std::unique_ptr<char[]> out(new char[c.capacity]);
  chat::RenderedText text;
  result.status = chat::RenderProgram(
      program, variables, input,
      {reinterpret_cast<std::byte*>(memory.get()), static_cast<size_t>(c.arena_bytes)}, c.max_steps,
      {out.get(), c.capacity}, &text, &diag);
  result.n_bytes = text.bytes;
  result.error = diag.text();
  result.text.assign(out.get(), std::min(result.n_bytes, c.capacity));
  result.given.assign(text.given.begin(), text.given.end());
  return result;
}

std::optional<std::string> RenderProbe(const std::string& source, const std::string& messages,
                                       const std::string& tools, bool add_generation_prompt) {
  ChatCase c;
  c.messages = messages;
  c.tools = tools;
  c.add_generation_prompt = add_generation_prompt;
  const Rendered rendered = RenderTemplate(source, c);
  if (rendered.status != Status::kOk) return std::nullopt;
  return rendered.text;
}

std::string Marked(const Rendered& rendered) {
  std::string marked;
  size_t done = 0;
  for (const TextSpan& span : rendered.given) {
    marked += rendered.text.substr(done, span.offset - done);
    marked += "⟦" + rendered.text.substr(span.offset, span.bytes) + "⟧";
    done = span.offset + span.bytes;
  }
  return marked + rendered.text.substr(done);
}

Rendered RenderTemplate(const std::string& source, const ChatCase& c) {
  return RenderBytes(convert::CompileChatTemplate(source), c);
}

}  // namespace arn::test

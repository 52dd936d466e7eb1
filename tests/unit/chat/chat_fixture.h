// Compiles and renders chat templates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn::test {

struct ChatCase {
  std::string messages = "[]";
  std::string tools;      // JSON; empty: no tools
  std::string variables;  // JSON; empty: no variables
  bool add_generation_prompt = false;
  uint64_t arena_bytes = uint64_t{8} << 20;
  uint64_t max_steps = 50000000;
  size_t capacity = size_t{1} << 20;
};
struct Rendered {
  Status status = Status::kInternal;
  std::string text;
  std::string error;
  size_t n_bytes = 0;
  std::vector<TextSpan> given;  // spans of the text that come from the input
};

// Renders at 2025-03-09 14:05:06.000007 with the special tokens of make_chat_goldens.py. Throws
// convert::TemplateError.
Rendered RenderTemplate(const std::string& source, const ChatCase& c);
// Renders for converter/chat/probe_reply.h. Empty if the template refuses the messages.
std::optional<std::string> RenderProbe(const std::string& source, const std::string& messages,
                                       const std::string& tools, bool add_generation_prompt);
Rendered RenderBytes(const std::vector<uint8_t>& program, const ChatCase& c);
// Returns the text with brackets around spans from the input: "User: ⟦Hello⟧".
std::string Marked(const Rendered& rendered);

}  // namespace arn::test

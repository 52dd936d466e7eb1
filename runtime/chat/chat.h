// Chat: renders conversations with a bundle's templates in memory allocated once.
#pragma once

#include <string_view>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/chat/strftime.h"
#include "runtime/chat/templates.h"

namespace arn::chat {

inline constexpr uint64_t kDefaultArenaBytes = uint64_t{8} << 20;
inline constexpr uint64_t kDefaultMaxSteps = 50000000;

struct RenderInput {
  std::string_view messages;       // JSON: an array
  std::string_view tools;          // JSON: an array or null; empty: none
  std::string_view variables;      // JSON: an object of further variables; empty: none
  std::string_view template_name;  // empty: chosen as in Templates::Find
  bool add_generation_prompt = false;
  CivilTime now;
};

struct RenderedText {
  size_t bytes = 0;  // full size, even if it exceeds the output buffer
  // Spans of the full text that came from the input, ordered and not adjacent: contents of messages
  // and tools, including keys and roles that are not words, and of variables, except those that
  // replace the bundle's own. In `memory`.
  Span<const TextSpan> given;
};

// Renders into `out`. `memory` is scratch. kBufferTooSmall: the text is larger; kTemplateError: the
// template raised or failed; kBadArgument: invalid JSON; kOutOfMemory: `memory` is too small.
Status Render(const Templates& templates, const RenderInput& input, Span<std::byte> memory,
              uint64_t max_steps, Span<char> out, RenderedText* result, Diag* diag);
// Renders with a given program.
Status RenderProgram(const Program& program, const Dict& variables, const RenderInput& input,
                     Span<std::byte> memory, uint64_t max_steps, Span<char> out,
                     RenderedText* result, Diag* diag);

}  // namespace arn::chat

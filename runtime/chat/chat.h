// Chat: renders conversations by the templates of a bundle, in memory that is taken once.
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
  std::string_view template_name;  // empty: chosen, see Templates::Find
  bool add_generation_prompt = false;
  CivilTime now;
};

// Renders into out[0, capacity); *n_bytes is the whole size even when that is more, and then the
// status is kBufferTooSmall. `memory` is scratch. kTemplateError: the template raised or failed;
// kBadArgument: the JSON is none; kOutOfMemory: `memory` does not do.
Status Render(const Templates& templates, const RenderInput& input, Span<std::byte> memory,
              uint64_t max_steps, Span<char> out, size_t* n_bytes, Diag* diag);
// The same by one program.
Status RenderProgram(const Program& program, const Dict& variables, const RenderInput& input,
                     Span<std::byte> memory, uint64_t max_steps, Span<char> out, size_t* n_bytes,
                     Diag* diag);

}  // namespace arn::chat

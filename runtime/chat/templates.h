// Templates: a bundle's chat templates and their variables, checked.
#pragma once

#include <string_view>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/chat/program.h"
#include "runtime/chat/reply_format.h"
#include "runtime/chat/value.h"

namespace arn {

namespace fbs {
struct Chat;  // runtime/bundle/text.fbs
}

namespace chat {

class Templates {
 public:
  // `segments` is the bundle's segment area, whose Segment ranges are already checked. The result
  // points into `table`, `segments` and `arena`, which must outlive it.
  static Result<Templates*> Create(const fbs::Chat& table, Span<const std::byte> segments,
                                   Arena* arena, Diag* diag);
  static uint64_t ArenaBytes(const fbs::Chat& table);

  // Returns the template of this name, or null. Callers without a name use "tool_use" if there are
  // tools and such a template, else "default".
  const Program* Find(std::string_view name) const;
  // Variables such as bos_token: name -> text.
  const Dict& variables() const { return variables_; }
  // How the default template's model writes reasoning and tool calls.
  const ReplyFormat& reply() const { return reply_; }

 private:
  struct Named {
    std::string_view name;
    Program program;
  };
  Span<Named> programs_;
  Dict variables_;
  ReplyFormat reply_;
};

}  // namespace chat
}  // namespace arn

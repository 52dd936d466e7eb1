// Templates: the chat templates of a bundle and the variables that they are given, checked.
#pragma once

#include <string_view>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/chat/program.h"
#include "runtime/chat/value.h"

namespace arn {

namespace fbs {
struct Chat;  // runtime/bundle/bundle.fbs
}

namespace chat {

class Templates {
 public:
  // `segments` is the bundle's segment area, whose Segment ranges were checked to lie inside it.
  // The result points into `table`, `segments` and `arena`.
  static Result<Templates*> Create(const fbs::Chat& table, Span<const std::byte> segments,
                                   Arena* arena, Diag* diag);
  static uint64_t ArenaBytes(const fbs::Chat& table);

  // The template of this name, or null. What a caller does not name is "tool_use" when there are
  // tools and such a template, else "default".
  const Program* Find(std::string_view name) const;
  // bos_token and the like: NAME -> text.
  const Dict& variables() const { return variables_; }

 private:
  struct Named {
    std::string_view name;
    Program program;
  };
  Span<Named> programs_;
  Dict variables_;
};

}  // namespace chat
}  // namespace arn

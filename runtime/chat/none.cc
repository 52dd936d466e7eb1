// Replaces runtime/chat in libraries without chat templates (ARENITE_CHAT_TEMPLATES): bundles with
// templates still work otherwise.
#include "runtime/chat/templates.h"

namespace arn::chat {

Result<Templates*> Templates::Create(const fbs::Chat&, Span<const std::byte>, Arena*, Diag*) {
  return nullptr;
}

uint64_t Templates::ArenaBytes(const fbs::Chat&) { return 0; }

}  // namespace arn::chat

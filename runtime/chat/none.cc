// In libraries without chat templates (ARENITE_CHAT_TEMPLATES): bundles that have some can be used
// for all else.
#include "runtime/chat/templates.h"

namespace arn::chat {

Result<Templates*> Templates::Create(const fbs::Chat&, Span<const std::byte>, Arena*, Diag*) {
  return nullptr;
}

uint64_t Templates::ArenaBytes(const fbs::Chat&) { return 0; }

}  // namespace arn::chat

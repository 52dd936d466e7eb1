#include "tools/arenite/interrupt.h"

#include <signal.h>

#include <atomic>

namespace arn::tool {
namespace {

// A signal handler can be told by a variable only.
std::atomic<arn_session*> g_session{nullptr};
static_assert(std::atomic<arn_session*>::is_always_lock_free);

void OnSignal(int) { arn_session_cancel(g_session.load()); }

void Handle(void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

CancelOnSignal::CancelOnSignal(arn_session* session) {
  g_session.store(session);
  Handle(OnSignal, static_cast<int>(SA_RESETHAND));
}

CancelOnSignal::~CancelOnSignal() {
  Handle(SIG_DFL, 0);
  g_session.store(nullptr);
}

}  // namespace arn::tool

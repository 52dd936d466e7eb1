#include "tools/arenite/interrupt.h"

#include <atomic>

namespace arn::tool {
namespace {

// A signal handler can only reach a global variable.
std::atomic<arn_session*> g_session{nullptr};
static_assert(std::atomic<arn_session*>::is_always_lock_free);

void OnSignal(int) { arn_session_cancel(g_session.load()); }

void OnWake(int) {}

std::atomic<int> g_came{0};  // not every CPU has atomic bytes
static_assert(std::atomic<int>::is_always_lock_free);

void OnHeld(int) { g_came.store(1); }

void Handle(int signal, void (*handler)(int), int flags, struct sigaction* before) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, before);
}

}  // namespace

WakeOnInterrupt::WakeOnInterrupt() { Handle(SIGINT, OnWake, 0, &before_); }

WakeOnInterrupt::~WakeOnInterrupt() { sigaction(SIGINT, &before_, nullptr); }

HeldInterrupt::HeldInterrupt(bool holds) : holds_(holds) {
  g_came.store(0);
  if (!holds_) return;
  const int flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  Handle(SIGINT, OnHeld, flags, &interrupt_before_);
  Handle(SIGTERM, OnHeld, flags, &terminate_before_);
}

HeldInterrupt::~HeldInterrupt() {
  if (!holds_) return;
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &terminate_before_, nullptr);
}

bool HeldInterrupt::came() const { return g_came.load() != 0; }

CancelOnSignal::CancelOnSignal(arn_session* session, bool with_terminate)
    : with_terminate_(with_terminate) {
  arn_session_clear_cancel(session);  // drops a late cancel of the previous call
  g_session.store(session);
  // SA_RESTART: the token that is being written is written whole.
  const int flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  Handle(SIGINT, OnSignal, flags, &interrupt_before_);
  if (with_terminate_) Handle(SIGTERM, OnSignal, flags, &terminate_before_);
}

CancelOnSignal::~CancelOnSignal() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  if (with_terminate_) sigaction(SIGTERM, &terminate_before_, nullptr);
  g_session.store(nullptr);
}

}  // namespace arn::tool

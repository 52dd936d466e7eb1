#include "tools/arenite/terminal_input.h"

#include <sys/select.h>
#include <unistd.h>

#include <cstring>

namespace arn::tool {
namespace {

constexpr unsigned char kInterrupt = 3;
// ESC [ 2 0 0 ~ begins a paste, ESC [ 2 0 1 ~ ends it. The editor ignores both as unknown keys.
constexpr char kBegin[] = "\033[200~";
constexpr char kEnd[] = "\033[201~";
constexpr int kMarkBytes = sizeof kBegin - 1;

// The editor calls plain C functions; there is one terminal.
struct Input {
  std::string typed;
  size_t n_typed_read = 0;
  PasteFilter paste;
  unsigned char last = 0;
};

Input& TheInput() {
  static Input input;
  return input;
}

bool HasTyped(const Input& input) { return input.n_typed_read < input.typed.size(); }

}  // namespace

int PasteFilter::Next(unsigned char byte) {
  const char c = static_cast<char>(byte);
  const char* const mark = is_pasting_ ? kEnd : kBegin;
  matched_ = mark[matched_] == c ? matched_ + 1 : (c == mark[0] ? 1 : 0);
  if (matched_ == kMarkBytes) {
    matched_ = 0;
    is_pasting_ = !is_pasting_;
    was_return_ = false;
    return byte;
  }
  if (!is_pasting_) return byte;
  const bool ends_return = was_return_ && c == '\n';
  was_return_ = c == '\r';
  if (ends_return) return -1;
  if (c == '\r') return '\n';
  // A tab would ask for completions.
  return c == '\t' ? ' ' : byte;
}

void TypeForUser(const std::string& text) {
  Input& input = TheInput();
  input.typed = text;
  input.n_typed_read = 0;
}

bool LastWasInterrupt() { return TheInput().last == kInterrupt; }

}  // namespace arn::tool

extern "C" {

// Reads one byte: the editor asks for no more.
ssize_t arn_terminal_read(int fd, void* bytes, size_t n);
ssize_t arn_terminal_read(int fd, void* bytes, size_t n) {
  arn::tool::Input& input = arn::tool::TheInput();
  if (n == 0) return 0;
  auto* const out = static_cast<unsigned char*>(bytes);
  if (arn::tool::HasTyped(input)) {
    *out = static_cast<unsigned char>(input.typed[input.n_typed_read++]);
    return 1;
  }
  for (;;) {
    const ssize_t got = read(fd, out, 1);
    if (got != 1) return got;
    input.last = *out;
    const int passed = input.paste.Next(*out);
    if (passed < 0) continue;
    *out = static_cast<unsigned char>(passed);
    return 1;
  }
}

int arn_terminal_select(int n, fd_set* readable, fd_set* writable, fd_set* failed,
                        struct timeval* timeout);
int arn_terminal_select(int n, fd_set* readable, fd_set* writable, fd_set* failed,
                        struct timeval* timeout) {
  if (arn::tool::HasTyped(arn::tool::TheInput())) return 1;
  return select(n, readable, writable, failed, timeout);
}

}  // extern "C"

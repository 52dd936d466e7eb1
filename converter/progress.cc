#include "converter/progress.h"

#include <unistd.h>

#include <cstdio>

namespace arn::convert {
namespace {

constexpr uint64_t kTerminalSteps = 200;
constexpr uint64_t kPlainSteps = 10;
constexpr int kBarWidth = 30;

}  // namespace

Progress::Progress(bool quiet) : quiet_(quiet), is_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { Clear(); }

void Progress::Update(const std::string& label, uint64_t done, uint64_t total) {
  if (quiet_ || total == 0) return;
  const uint64_t steps = is_terminal_ ? kTerminalSteps : kPlainSteps;
  const uint64_t step = static_cast<uint64_t>(
      static_cast<double>(done) / static_cast<double>(total) * static_cast<double>(steps));
  if (step == shown_step_) return;
  shown_step_ = step;
  const int percent = static_cast<int>(100 * step / steps);
  if (!is_terminal_) {
    std::fprintf(stderr, "%3d%%  %s\n", percent, label.c_str());
    return;
  }
  char bar[kBarWidth + 1];
  for (int i = 0; i < kBarWidth; ++i) bar[i] = i * 100 < percent * kBarWidth ? '#' : '.';
  bar[kBarWidth] = '\0';
  std::fprintf(stderr, "\r\033[K[%s] %3d%%  %s", bar, percent, label.c_str());
  std::fflush(stderr);
  is_drawn_ = true;
}

void Progress::Clear() {
  if (!is_drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  is_drawn_ = false;
}

void Progress::Reset() {
  Clear();
  shown_step_ = 0;
}

}  // namespace arn::convert

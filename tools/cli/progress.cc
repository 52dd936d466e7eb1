#include "tools/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tools/cli/terminal.h"

namespace arn::cli {
namespace {

constexpr uint64_t kTerminalSteps = 200;
constexpr uint64_t kPlainSteps = 10;
constexpr int kBarWidth = 30;
// The time left is unknown before.
constexpr double kLeastSeconds = 2;
// The time left is drawn again after this many seconds, even within a step.
constexpr double kRedrawSeconds = 1;

std::string TimeLeft(double elapsed, double done, double total) {
  if (elapsed < kLeastSeconds || done <= 0 || done >= total) return "";
  return ", " + Duration(elapsed * (total - done) / done) + " left";
}

}  // namespace

std::string Duration(double seconds) {
  const auto whole = static_cast<unsigned long long>(std::max(seconds, 0.0) + 0.5);
  char text[64];
  if (whole < 60) {
    std::snprintf(text, sizeof text, "%llu s", whole);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%llu min %llu s", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%llu h %llu min", whole / 3600, whole / 60 % 60);
  }
  return text;
}

double UsualPatience() { return CanRedraw(STDERR_FILENO) ? 0.5 : 10; }

Progress::Progress(bool quiet, double patience)
    : quiet_(quiet), can_redraw_(CanRedraw(STDERR_FILENO)), patience_(patience) {}

Progress::~Progress() { Clear(); }

double Progress::SecondsSince(Clock::time_point time) const {
  return std::chrono::duration<double>(Clock::now() - time).count();
}

void Progress::Update(const std::string& label, uint64_t done, uint64_t total) {
  if (quiet_ || total == 0) return;
  const double elapsed = SecondsSince(start_);
  if (elapsed < patience_) return;
  const uint64_t steps = can_redraw_ ? kTerminalSteps : kPlainSteps;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  const auto step = static_cast<uint64_t>(share * static_cast<double>(steps));
  const bool is_old = can_redraw_ && is_drawn_ && SecondsSince(drawn_) >= kRedrawSeconds;
  if (step == shown_step_ && !is_old) return;
  shown_step_ = step;
  const int percent = static_cast<int>(100 * step / steps);
  const std::string left = TimeLeft(elapsed, static_cast<double>(done), static_cast<double>(total));
  if (!can_redraw_) {
    std::fprintf(stderr, "%3d%%  %s%s\n", percent, label.c_str(), left.c_str());
    return;
  }
  char bar[kBarWidth + 1];
  for (int i = 0; i < kBarWidth; ++i) bar[i] = i * 100 < percent * kBarWidth ? '#' : '.';
  bar[kBarWidth] = '\0';
  std::fprintf(stderr, "\r\033[K[%s] %3d%%  %s%s", bar, percent, label.c_str(), left.c_str());
  std::fflush(stderr);
  is_drawn_ = true;
  drawn_ = Clock::now();
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
  start_ = Clock::now();
}

}  // namespace arn::cli

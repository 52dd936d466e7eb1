#include "tools/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace arn::cli {

bool IsTerminal(int fd) { return isatty(fd) == 1; }

bool CanRedraw(int fd) {
  const char* const term = std::getenv("TERM");
  return IsTerminal(fd) && term != nullptr && term[0] != '\0' && std::strcmp(term, "dumb") != 0;
}

bool HasColour(int fd) {
  const char* const no_color = std::getenv("NO_COLOR");
  return CanRedraw(fd) && (no_color == nullptr || no_color[0] == '\0');
}

size_t Columns(int fd) {
  constexpr size_t kLeast = 40, kMost = 100, kUnknown = 80;
  size_t columns = 0;
  if (const char* const set = std::getenv("COLUMNS")) columns = std::strtoul(set, nullptr, 10);
  struct winsize size = {};
  if (columns == 0 && ioctl(fd, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return columns == 0 ? kUnknown : std::clamp(columns, kLeast, kMost);
}

}  // namespace arn::cli

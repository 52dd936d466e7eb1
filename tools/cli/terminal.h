// Capabilities of the terminal: width, colour.
#pragma once

#include <cstddef>

namespace arn::cli {

bool IsTerminal(int fd);
// True if `fd` is a terminal that moves its cursor: TERM is set and not "dumb".
bool CanRedraw(int fd);
// As CanRedraw, and the user has not switched colour off by NO_COLOR (https://no-color.org).
bool HasColour(int fd);
// Returns the width for text on `fd`: COLUMNS or the terminal's, at least 40, at most 100; 80 if
// unknown.
size_t Columns(int fd);

}  // namespace arn::cli

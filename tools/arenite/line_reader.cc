#include "tools/arenite/line_reader.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/arenite/error.h"

namespace arn::tool {

LineReader::Outcome LineReader::Next(std::string* line) {
  for (;;) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos || (has_ended_ && !buffer_.empty())) {
      *line = buffer_.substr(0, end);
      buffer_.erase(0, end == std::string::npos ? end : end + 1);
      if (!line->empty() && line->back() == '\r') line->pop_back();
      return Outcome::kLine;
    }
    if (has_ended_) return Outcome::kEnd;
    char bytes[4096];
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) {
      buffer_.clear();
      return Outcome::kInterrupted;
    }
    if (n < 0) throw Error(std::string("cannot read standard input: ") + std::strerror(errno));
    if (n == 0) has_ended_ = true;
    if (n > 0) buffer_.append(bytes, static_cast<size_t>(n));
  }
}

}  // namespace arn::tool

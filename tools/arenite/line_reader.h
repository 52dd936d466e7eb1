// Reads lines from standard input, a terminal or a pipe.
#pragma once

#include <string>

namespace arn::tool {

class LineReader {
 public:
  enum class Outcome { kLine, kEnd, kInterrupted };

  // Reads the next line without its end ("\n" or "\r\n"). kInterrupted: a signal arrived while
  // waiting (see WakeOnInterrupt); drops the partial line. Throws Error.
  Outcome Next(std::string* line);

 private:
  std::string buffer_;
  bool has_ended_ = false;
};

}  // namespace arn::tool

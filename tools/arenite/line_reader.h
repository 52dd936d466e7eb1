// Lines of standard input, from a terminal or a pipe.
#pragma once

#include <string>

namespace arn::tool {

class LineReader {
 public:
  enum class Outcome { kLine, kEnd, kInterrupted };

  // The next line without its end ("\n" or "\r\n"). kInterrupted: a signal came while waiting (see
  // WakeOnInterrupt); what had been read of the line is dropped. Throws Error.
  Outcome Next(std::string* line);

 private:
  std::string buffer_;
  bool has_ended_ = false;
};

}  // namespace arn::tool

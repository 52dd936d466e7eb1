// The bytes that the line editor reads from the terminal (toolchains/deps/isocline_read.h).
#pragma once

#include <string>

namespace arn::tool {

// Makes the editor read this text before the terminal's own bytes, as if it had been typed; line
// feeds stay inside the message.
void TypeForUser(const std::string& text);

// Returns true if the last byte read was Ctrl-C.
bool LastWasInterrupt();

// Makes line ends of pasted text part of the message: watches for the marks that a terminal sends
// around a paste (xterm's bracketed paste, mode 2004).
class PasteFilter {
 public:
  // Returns the byte to pass on for the next one read; -1 to drop it.
  int Next(unsigned char byte);

 private:
  int matched_ = 0;  // bytes of a mark that have been seen
  bool is_pasting_ = false;
  bool was_return_ = false;  // the last pasted byte was a carriage return
};

}  // namespace arn::tool

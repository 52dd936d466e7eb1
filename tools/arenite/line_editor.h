// Reads messages: with editing, history and several lines on a terminal, line by line elsewhere.
#pragma once

#include <string>
#include <vector>

#include "tools/arenite/line_reader.h"

namespace arn::tool {

// One instance at a time.
class LineEditor {
 public:
  using Outcome = LineReader::Outcome;

  // `history`: file of earlier messages, made with mode 0600; "": none. `commands` are completed by
  // Tab. Throws Error if the file cannot be made.
  LineEditor(const std::string& history, std::vector<std::string> commands);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // True if somebody types: standard input is a terminal.
  bool is_terminal() const { return is_terminal_; }
  // True if messages can be edited: a terminal that moves its cursor.
  bool can_edit() const { return can_edit_; }

  // Reads a message. `status` is shown before the prompt on a terminal. kInterrupted: Ctrl-C.
  Outcome Next(const std::string& status, std::string* message);
  // The next message begins with this text. REQUIRES: can_edit().
  void Offer(const std::string& text);

 private:
  Outcome Edit(const std::string& status, std::string* message);

  bool is_terminal_, can_edit_;
  LineReader reader_;
};

// Returns the default history file: arenite/history in XDG_STATE_HOME, or in ~/.local/state; "" if
// there is no home.
std::string DefaultHistory();

}  // namespace arn::tool

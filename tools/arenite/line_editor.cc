#include "tools/arenite/line_editor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "isocline.h"
#include "tools/arenite/error.h"
#include "tools/arenite/io.h"
#include "tools/arenite/terminal_input.h"
#include "tools/cli/terminal.h"

namespace arn::tool {
namespace {

namespace fs = std::filesystem;

constexpr long kMostHistory = 1000;
constexpr const char* kPasteOn = "\033[?2004h";
constexpr const char* kPasteOff = "\033[?2004l";

// For the editor's callback.
std::vector<std::string>& CommandNames() {
  static std::vector<std::string> names;
  return names;
}

void Complete(ic_completion_env_t* completions, const char* prefix) {
  for (const std::string& name : CommandNames()) {
    if (name.rfind(prefix, 0) == 0) ic_add_completion(completions, name.c_str());
  }
}

// Makes the file, for its owner alone: the editor keeps the mode of an existing one.
void MakePrivate(const std::string& path) {
  std::error_code ignored;
  fs::create_directories(fs::path(path).parent_path(), ignored);
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) throw Error(Format("--history %s: %s", path.c_str(), std::strerror(errno)));
  fchmod(fd, 0600);
  close(fd);
}

// Escapes the editor's markup.
std::string Plain(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c == '[' || c == '\\') plain += '\\';
    plain += c;
  }
  return plain;
}

}  // namespace

std::string DefaultHistory() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && state[0] == '/') return (fs::path(state) / "arenite/history").string();
  const char* const home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return "";
  return (fs::path(home) / ".local/state/arenite/history").string();
}

LineEditor::LineEditor(const std::string& history, std::vector<std::string> commands)
    : is_terminal_(cli::IsTerminal(STDIN_FILENO)),
      can_edit_(cli::CanRedraw(STDIN_FILENO) && cli::CanRedraw(STDOUT_FILENO)) {
  if (!can_edit_) return;
  CommandNames() = std::move(commands);
  if (!history.empty()) MakePrivate(history);
  ic_set_history(history.empty() ? nullptr : history.c_str(), kMostHistory);
  ic_enable_color(cli::HasColour(STDOUT_FILENO));
  ic_enable_multiline(true);
  ic_enable_multiline_indent(false);
  ic_enable_brace_insertion(false);
  ic_enable_brace_matching(false);
  ic_enable_highlight(false);
  ic_enable_hint(false);
  ic_enable_beep(false);
  ic_set_default_completer(Complete, nullptr);
  ic_set_prompt_marker("> ", "  ");
}

LineEditor::~LineEditor() { CommandNames().clear(); }

LineEditor::Outcome LineEditor::Edit(const std::string& status, std::string* message) {
  Print(kPasteOn);
  char* const line = ic_readline(Plain(status).c_str());
  Print(kPasteOff);
  if (line == nullptr) return LastWasInterrupt() ? Outcome::kInterrupted : Outcome::kEnd;
  *message = line;
  ic_free(line);
  return Outcome::kLine;
}

LineEditor::Outcome LineEditor::Next(const std::string& status, std::string* message) {
  if (can_edit_) return Edit(status, message);
  if (is_terminal_) Print(status + "> ");
  return reader_.Next(message);
}

void LineEditor::Offer(const std::string& text) { TypeForUser(text); }

}  // namespace arn::tool

#include "tools/cli/man_page.h"

#include <cctype>

#include "tools/cli/option_table.h"
#include "tools/cli/words.h"

namespace arn::cli {
namespace {

// Escapes backslashes, hyphens that must stay ASCII, and a control character at a line's start.
std::string Roff(const std::string& text) {
  std::string out;
  bool is_line_start = true;
  for (const char c : text) {
    if (is_line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    is_line_start = c == '\n';
  }
  return out;
}

std::string Upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

void AddSections(const CLI::App& app, std::string* out) {
  for (const Section& section : Describe(app)) {
    if (!section.title.empty()) *out += ".PP\n\\fI" + Roff(section.title) + "\\fR\n";
    if (!section.note.empty()) *out += ".PP\n" + Roff(section.note) + "\n";
    for (const OptionText& option : section.options) {
      *out += ".TP\n\\fB" + Roff(option.Usage()) + "\\fR\n" + Roff(option.Text()) + "\n";
    }
  }
}

// The text before the examples is a paragraph, examples keep their lines.
void AddFooter(const CLI::App& app, std::string* out) {
  bool is_code = false;
  if (!app.get_footer().empty()) *out += ".PP\n";
  for (const std::string& line : SplitAt(app.get_footer(), '\n')) {
    const bool is_example = line.rfind("  ", 0) == 0;
    if (is_example != is_code) *out += is_example ? ".PP\n.nf\n" : ".fi\n.PP\n";
    is_code = is_example;
    if (!line.empty()) *out += Roff(line) + "\n";
  }
  if (is_code) *out += ".fi\n";
}

void AddCommands(const CLI::App& app, std::string* out) {
  for (const CLI::App* command : Subcommands(app)) {
    const std::string name = FullName(*command);
    *out += ".SH " + Upper(name.substr(name.find(' ') + 1)) + "\n" +
            Roff(command->get_description()) + "\n.PP\n\\fB" + Roff(UsageLine(*command)) + "\\fR\n";
    AddSections(*command, out);
    AddFooter(*command, out);
    AddCommands(*command, out);
  }
}

}  // namespace

std::string ManPage(const CLI::App& app, const std::string& version) {
  const std::string name = app.get_name();
  std::string out = ".TH " + Upper(name) + " 1 \"\" \"" + version + "\" \"Arenite\"\n";
  std::string summary = app.get_description();
  summary = summary.substr(0, summary.find('\n'));
  out += ".SH NAME\n" + Roff(name) + " \\- " + Roff(summary) + "\n";
  out += ".SH SYNOPSIS\n\\fB" + Roff(UsageLine(app)) + "\\fR\n.SH OPTIONS\n";
  AddSections(app, &out);
  AddFooter(app, &out);
  AddCommands(app, &out);
  return out;
}

}  // namespace arn::cli

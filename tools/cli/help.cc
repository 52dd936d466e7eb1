#include "tools/cli/help.h"

#include <algorithm>

#include "tools/cli/option_table.h"
#include "tools/cli/words.h"

namespace arn::cli {
namespace {

constexpr size_t kIndent = 2;
constexpr size_t kTextColumn = 27;

// Appends "  name   text", the text wrapped in its own column.
void AddRow(const std::string& name, const std::string& text, size_t columns, std::string* out) {
  std::string line = std::string(kIndent, ' ') + name;
  if (line.size() + 2 > kTextColumn) {
    *out += line + "\n";
    line.clear();
  }
  for (const std::string& part : Wrap(text, columns - kTextColumn)) {
    line.resize(std::max(line.size(), kTextColumn), ' ');
    *out += line + part + "\n";
    line.clear();
  }
}

void AddParagraph(const std::string& text, size_t columns, std::string* out) {
  for (const std::string& line : Wrap(text, columns)) *out += line + "\n";
}

}  // namespace

std::string Help(const CLI::App& app, bool is_short, size_t columns) {
  std::string out;
  AddParagraph(app.get_description(), columns, &out);
  out += "\nUsage: " + UsageLine(app) + "\n";
  const std::vector<const CLI::App*> commands = Subcommands(app);
  if (!commands.empty()) out += "\nCommands\n";
  for (const CLI::App* command : commands) {
    AddRow(command->get_name(), command->get_description(), columns, &out);
  }
  size_t n_left_out = 0;
  for (const Section& section : Describe(app)) {
    if (is_short && section.is_advanced) {
      n_left_out += section.options.size();
      continue;
    }
    out += "\n";
    if (!section.title.empty()) out += section.title + "\n";
    if (!section.note.empty()) {
      for (const std::string& line : Wrap(section.note, columns - kIndent)) {
        out += std::string(kIndent, ' ') + line + "\n";
      }
    }
    for (const OptionText& option : section.options) {
      AddRow(option.Usage(), option.Text(), columns, &out);
    }
  }
  if (n_left_out > 0) {
    out += "\n--help shows " + std::to_string(n_left_out) + " advanced options too.\n";
  }
  if (!app.get_footer().empty()) {
    out += "\n";
    // Indented lines are to be copied: examples.
    for (const std::string& line : SplitAt(app.get_footer(), '\n')) {
      if (line.rfind("  ", 0) == 0) {
        out += line + "\n";
      } else {
        AddParagraph(line, columns, &out);
      }
    }
  }
  return out;
}

}  // namespace arn::cli

#include "tools/cli/completion.h"

#include <algorithm>

#include "tools/cli/option_table.h"
#include "tools/cli/words.h"

namespace arn::cli {
namespace {

bool TakesFile(const OptionText& option) {
  return option.value == "FILE" || option.value == "DIR" || option.is_positional;
}

// Returns "prefill" for "prefill-tokens" and so on: a name that a shell function can have.
std::string Identifier(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string Join(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// Returns the first sentence or clause of a description, without its "[default]", as text that may
// stand inside '...' of any shell.
std::string Summary(const std::string& text) {
  std::string summary;
  for (const char c : text.substr(0, std::min(text.find(". "), text.find(';')))) {
    if (c == '\'') {
      summary += "\u2019";
    } else if (c == '\n') {
      summary += ' ';
    } else if (c != '\\' && c != '`') {
      summary += c;
    }
  }
  const size_t default_text = summary.rfind(" [");
  return default_text == std::string::npos ? summary : summary.substr(0, default_text);
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : Subcommands(app)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const OptionText& option : AllOptions(app)) {
    if (!option.is_positional) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// Returns the values of the command's first positional, if it has a closed list of them.
std::vector<std::string> PositionalChoices(const CLI::App& app) {
  for (const OptionText& option : AllOptions(app)) {
    if (option.is_positional) return option.choices;
  }
  return {};
}

// ---- bash

std::string Offer(const std::string& what) {
  return "COMPREPLY=($(compgen " + what + " -- \"$cur\"))";
}

std::string OfferWords(const std::vector<std::string>& words) {
  return Offer("-W '" + Join(words, " ") + "'");
}

// `depth` is the number of words before those of the command.
std::string BashCommand(const CLI::App& app, int depth) {
  const std::string indent(static_cast<size_t>(2 * depth), ' ');
  const std::vector<std::string> options = OptionNames(app);
  const std::vector<const CLI::App*> commands = Subcommands(app);
  if (!commands.empty()) {
    const std::string at = std::to_string(depth);
    std::string text = indent + "if ((COMP_CWORD == " + at + ")); then if [[ $cur == -* ]]; then " +
                       OfferWords(options) + "; else " + OfferWords(CommandNames(app)) +
                       "; fi; return; fi\n" + indent + "case ${COMP_WORDS[" + at + "]} in\n";
    for (const CLI::App* command : commands) {
      text += indent + command->get_name() + ")\n" + BashCommand(*command, depth + 1) + indent +
              "  ;;\n";
    }
    return text + indent + "esac\n";
  }
  std::string text = indent + "case $prev in\n";
  for (const OptionText& option : AllOptions(app)) {
    if (option.is_positional || option.value.empty()) continue;
    text += indent + "  " + Join(option.names, "|") + ") ";
    if (!option.choices.empty()) {
      text += OfferWords(option.choices) + "; ";
    } else if (TakesFile(option)) {
      text += Offer("-f") + "; ";
    }
    text += "return ;;\n";
  }
  const std::vector<std::string> choices = PositionalChoices(app);
  return text + indent + "esac\n" + indent + "if [[ $cur == -* ]]; then " + OfferWords(options) +
         "; else " + (choices.empty() ? Offer("-f") : OfferWords(choices)) + "; fi\n";
}

std::string Bash(const CLI::App& app) {
  const std::string function = "_" + Identifier(app.get_name());
  return "# bash completion of " + app.get_name() + ", written by its --completion bash.\n" +
         function +
         "() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  COMPREPLY=()\n" +
         BashCommand(app, 1) + "}\ncomplete -o filenames -F " + function + " " + app.get_name() +
         "\n";
}

// ---- zsh

// Returns what may follow an option's or a positional's words: ":WORD:ACTION".
std::string ZshAction(const OptionText& option) {
  const std::string word =
      option.is_positional || option.value.empty() ? Identifier(option.names.back()) : option.value;
  if (!option.choices.empty()) {
    return ":" + Identifier(option.names.back()) + ":(" + Join(option.choices, " ") + ")";
  }
  if (TakesFile(option)) return ":" + word + ":_files";
  return option.value.empty() ? "" : ":" + word + ":";
}

std::string ZshSummary(const OptionText& option) {
  std::string escaped;
  for (const char c : Summary(option.description)) {
    if (c == '[' || c == ']') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string ZshArguments(const CLI::App& app, const std::string& indent) {
  std::string text = indent + "_arguments -s";
  for (const OptionText& option : AllOptions(app)) {
    const std::string action = ZshAction(option);
    if (option.is_positional) {
      text += " \\\n" + indent + "  '" + action + "'";
      continue;
    }
    for (const std::string& name : option.names) {
      text += " \\\n" + indent + "  '*" + name + "[" + ZshSummary(option) + "]" + action + "'";
    }
  }
  return text + "\n";
}

std::string ZshCommand(const CLI::App& app, const std::string& indent) {
  const std::vector<const CLI::App*> commands = Subcommands(app);
  if (commands.empty()) return ZshArguments(app, indent);
  std::string text = indent + "if ((CURRENT == 2)) && [[ $PREFIX == -* ]]; then\n" +
                     ZshArguments(app, indent + "  ") + indent + "  return\n" + indent + "fi\n" +
                     indent + "commands=(\n";
  for (const CLI::App* command : commands) {
    text +=
        indent + "  '" + command->get_name() + ":" + Summary(command->get_description()) + "'\n";
  }
  text += indent + ")\n" + indent +
          "if ((CURRENT == 2)); then _describe command commands; return; fi\n" + indent +
          "command=$words[2]\n" + indent + "shift words; ((CURRENT--))\n" + indent +
          "case $command in\n";
  for (const CLI::App* command : commands) {
    text += indent + "  " + command->get_name() + ")\n" + ZshCommand(*command, indent + "    ") +
            indent + "    ;;\n";
  }
  return text + indent + "esac\n";
}

std::string Zsh(const CLI::App& app) {
  const std::string function = "_" + Identifier(app.get_name());
  return "#compdef " + app.get_name() + "\n# zsh completion of " + app.get_name() +
         ", written by its --completion zsh.\n" + function + "() {\n" +
         "  local -a commands\n  local command\n" + ZshCommand(app, "  ") + "}\n" + function +
         " \"$@\"\n";
}

// ---- fish

// Returns the rows of a command that applies when fish's `condition` holds.
std::string FishCommand(const CLI::App& app, const std::string& complete,
                        const std::string& condition) {
  const std::string when = complete + (condition.empty() ? "" : " -n '" + condition + "'");
  const std::vector<const CLI::App*> commands = Subcommands(app);
  std::string text;
  if (!commands.empty()) {
    const std::string names = Join(CommandNames(app), " ");
    const std::string none = condition.empty()
                                 ? "__fish_use_subcommand"
                                 : condition + "; and not __fish_seen_subcommand_from " + names;
    text += complete + " -n '" + none + "' -f\n";
    for (const CLI::App* command : commands) {
      text += complete + " -n '" + none + "' -a " + command->get_name() + " -d '" +
              Summary(command->get_description()) + "'\n";
    }
    for (const CLI::App* command : commands) {
      text += FishCommand(*command, complete,
                          (condition.empty() ? "" : condition + "; and ") +
                              "__fish_seen_subcommand_from " + command->get_name());
    }
  }
  const std::vector<std::string> choices = PositionalChoices(app);
  if (!choices.empty()) text += when + " -f -a '" + Join(choices, " ") + "'\n";
  for (const OptionText& option : AllOptions(app)) {
    if (option.is_positional) continue;
    text += when;
    for (const std::string& name : option.names) {
      text += name[1] == '-' ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    if (!option.choices.empty()) {
      text += " -x -a '" + Join(option.choices, " ") + "'";
    } else if (!option.value.empty()) {
      text += TakesFile(option) ? " -r -F" : " -x";
    }
    text += " -d '" + Summary(option.description) + "'\n";
  }
  return text;
}

std::string Fish(const CLI::App& app) {
  return "# fish completion of " + app.get_name() + ", written by its --completion fish.\n" +
         FishCommand(app, "complete -c " + app.get_name(), "");
}

}  // namespace

const std::vector<std::string>& Shells() {
  static const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  return shells;
}

std::string Completion(const CLI::App& app, const std::string& shell) {
  return shell == "bash" ? Bash(app) : shell == "zsh" ? Zsh(app) : Fish(app);
}

}  // namespace arn::cli

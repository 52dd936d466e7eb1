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

// Returns the first sentence, without characters that are special inside '...' or [...].
std::string Summary(const std::string& text) {
  std::string summary;
  for (const char c : text.substr(0, std::min(text.find(". "), text.find(';')))) {
    if (c == '\'') {
      summary += "\u2019";
    } else if (c == ':') {
      summary += ',';
    } else if (c == '\n') {
      summary += ' ';
    } else if (c != '[' && c != ']' && c != '\\' && c != '`') {
      summary += c;
    }
  }
  return summary;
}

// All commands, or the app alone if it has none.
std::vector<const CLI::App*> Parts(const CLI::App& app) {
  std::vector<const CLI::App*> parts = Subcommands(app);
  if (parts.empty()) parts.push_back(&app);
  return parts;
}

// Returns the options of a command, and those of the commands below it.
std::vector<OptionText> OptionsBelow(const CLI::App& app) {
  std::vector<OptionText> options = AllOptions(app);
  for (const CLI::App* command : Subcommands(app)) {
    for (OptionText& option : OptionsBelow(*command)) {
      const bool is_there = std::any_of(options.begin(), options.end(), [&](const OptionText& one) {
        return one.names == option.names;
      });
      if (!is_there) options.push_back(std::move(option));
    }
  }
  return options;
}

// Returns the words that may follow a command: options, and commands below it.
std::vector<std::string> Words(const CLI::App& app, const std::vector<OptionText>& options) {
  std::vector<std::string> words;
  for (const OptionText& option : options) {
    if (!option.is_positional) words.insert(words.end(), option.names.begin(), option.names.end());
  }
  for (const CLI::App* command : Subcommands(app)) words.push_back(command->get_name());
  return words;
}

// ---- bash

std::string BashValues(const CLI::App& app, const std::string& indent) {
  std::string text = indent + "case $prev in\n";
  const std::vector<OptionText> options = OptionsBelow(app);
  for (const OptionText& option : options) {
    if (option.is_positional || option.value.empty()) continue;
    text += indent + "  " + Join(option.names, "|") + ") ";
    if (!option.choices.empty()) {
      text +=
          "COMPREPLY=($(compgen -W '" + Join(option.choices, " ") + "' -- \"$cur\")); return ;;\n";
    } else if (TakesFile(option)) {
      text += "COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n";
    } else {
      text += "return ;;\n";
    }
  }
  text += indent + "esac\n";
  std::vector<std::string> commands;
  for (const CLI::App* command : Subcommands(app)) commands.push_back(command->get_name());
  text += indent + "if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W '" +
          Join(Words(app, options), " ") + "' -- \"$cur\")); else COMPREPLY=($(compgen -f" +
          (commands.empty() ? "" : " -W '" + Join(commands, " ") + "'") + " -- \"$cur\")); fi\n";
  return text;
}

std::string Bash(const CLI::App& app) {
  const std::string function = "_" + Identifier(app.get_name());
  std::string text = "# bash completion of " + app.get_name() +
                     ", written by its --completion bash.\n" + function +
                     "() {\n"
                     "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                     "  COMPREPLY=()\n";
  const std::vector<const CLI::App*> commands = Subcommands(app);
  if (commands.empty()) {
    text += BashValues(app, "  ");
  } else {
    const std::vector<std::string> names = Words(app, AllOptions(app));
    text += "  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W '" + Join(names, " ") +
            "' -- \"$cur\")); return; fi\n  case ${COMP_WORDS[1]} in\n";
    for (const CLI::App* command : commands) {
      text += "    " + command->get_name() + ")\n" + BashValues(*command, "      ") + "      ;;\n";
    }
    text += "  esac\n";
  }
  return text + "}\ncomplete -o filenames -F " + function + " " + app.get_name() + "\n";
}

// ---- zsh

std::string ZshArguments(const CLI::App& app, const std::string& indent) {
  std::string text = indent + "_arguments -s";
  for (const OptionText& option : OptionsBelow(app)) {
    const std::string summary = Summary(option.description);
    std::string action;
    if (!option.choices.empty()) {
      action = ":" + Identifier(option.names.back()) + ":(" + Join(option.choices, " ") + ")";
    } else if (TakesFile(option)) {
      action = ":" + (option.is_positional ? option.names[0] : option.value) + ":_files";
    } else if (!option.value.empty()) {
      action = ":" + option.value + ":";
    }
    if (option.is_positional) {
      text += " \\\n" + indent + "  ':" + option.names[0] + ":_files'";
      continue;
    }
    for (const std::string& name : option.names) {
      text += " \\\n" + indent + "  '*" + name + "[" + summary + "]" + action + "'";
    }
  }
  return text + "\n";
}

std::string Zsh(const CLI::App& app) {
  const std::string function = "_" + Identifier(app.get_name());
  std::string text = "#compdef " + app.get_name() + "\n# zsh completion of " + app.get_name() +
                     ", written by its --completion zsh.\n" + function + "() {\n";
  const std::vector<const CLI::App*> commands = Subcommands(app);
  if (commands.empty()) {
    text += ZshArguments(app, "  ");
  } else {
    text += "  local -a commands=(\n";
    for (const CLI::App* command : commands) {
      text += "    '" + command->get_name() + ":" + Summary(command->get_description()) + "'\n";
    }
    text +=
        "  )\n  if ((CURRENT == 2)); then _describe command commands; return; fi\n"
        "  local command=$words[2]\n  shift words; ((CURRENT--))\n  case $command in\n";
    for (const CLI::App* command : commands) {
      text +=
          "    " + command->get_name() + ")\n" + ZshArguments(*command, "      ") + "      ;;\n";
    }
    text += "  esac\n";
  }
  return text + "}\n" + function + " \"$@\"\n";
}

// ---- fish

std::string Fish(const CLI::App& app) {
  const std::string complete = "complete -c " + app.get_name();
  std::string text =
      "# fish completion of " + app.get_name() + ", written by its --completion fish.\n";
  for (const CLI::App* command : Subcommands(app)) {
    text += complete + " -n __fish_use_subcommand -a " + command->get_name() + " -d '" +
            Summary(command->get_description()) + "'\n";
  }
  for (const CLI::App* part : Parts(app)) {
    const std::string when =
        part == &app ? "" : " -n '__fish_seen_subcommand_from " + part->get_name() + "'";
    for (const OptionText& option : OptionsBelow(*part)) {
      if (option.is_positional) continue;
      text += complete + when;
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
  }
  return text;
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

#include "tools/cli/arguments.h"

#include <algorithm>
#include <regex>

#include "tools/cli/option_table.h"
#include "tools/cli/words.h"

namespace arn::cli {
namespace {

bool IsOption(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

std::vector<std::string> LongNames(const std::vector<OptionText>& options) {
  std::vector<std::string> names;
  for (const OptionText& option : options) {
    if (!option.is_positional) names.push_back(option.names.back());
  }
  return names;
}

const OptionText* Find(const std::vector<OptionText>& options, const std::string& name) {
  for (const OptionText& option : options) {
    if (std::find(option.names.begin(), option.names.end(), name) != option.names.end()) {
      return &option;
    }
  }
  return nullptr;
}

// Adds the commands below `app` that have this option, with all their words but the program's.
void AddCommandsWith(const CLI::App& app, const std::string& before, const std::string& name,
                     std::vector<std::string>* commands) {
  for (const CLI::App* command : Subcommands(app)) {
    const std::string words = before + command->get_name();
    if (Find(AllOptions(*command), name) != nullptr) commands->push_back(words);
    AddCommandsWith(*command, words + " ", name, commands);
  }
}

const CLI::App& RootOf(const CLI::App& app) {
  return app.get_parent() == nullptr ? app : RootOf(*app.get_parent());
}

// Returns the innermost command that was parsed.
const CLI::App& ParsedCommand(const CLI::App& app) {
  for (const CLI::App* command : Subcommands(app)) {
    if (command->parsed()) return ParsedCommand(*command);
  }
  return app;
}

std::string UnknownOption(const CLI::App& app, const std::vector<OptionText>& options,
                          const std::string& name) {
  std::string text = "unknown option " + name;
  const CLI::App& root = RootOf(app);
  std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  for (char& c : bare) c = c == '_' ? '-' : c;
  const std::string long_name = "--" + bare;
  std::vector<std::string> elsewhere;
  AddCommandsWith(root, "", long_name, &elsewhere);
  if (&app == &root && !elsewhere.empty()) {
    return text + ": the command comes first: " + root.get_name() + " " + elsewhere[0] + " ... " +
           long_name;
  }
  if (!elsewhere.empty() && Find(options, long_name) == nullptr) {
    return text + " of " + FullName(app) + ": " + OneOf(elsewhere) + " has it";
  }
  const std::string nearest = Nearest(long_name, LongNames(options));
  return nearest.empty() ? text : text + ": did you mean " + nearest + "?";
}

std::string MissingValue(const OptionText& option) {
  std::string text = option.names.back() + " needs a value: " + option.Usage();
  if (!option.choices.empty() && option.value.find('|') == std::string::npos) {
    text += ", one of " + OneOf(option.choices);
  }
  return text;
}

// Looks at the words behind the command.
std::optional<std::string> FindUnknownOption(const CLI::App& app,
                                             const std::vector<std::string>& words, size_t first) {
  const std::vector<OptionText> options = AllOptions(app);
  const size_t most_positionals = static_cast<size_t>(
      std::count_if(options.begin(), options.end(),
                    [](const OptionText& option) { return option.is_positional; }));
  size_t n_positionals = 0;
  for (size_t i = first; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return std::nullopt;
    if (!IsOption(word)) {
      if (n_positionals++ < most_positionals) continue;
      return "unexpected argument '" + word + "': " + UsageLine(app) +
             " takes no more; a text with spaces needs quotes";
    }
    const std::string name = word.substr(0, word.find('='));
    // -p128 is -p 128; -prompt is no option.
    const bool is_short = word[1] != '-';
    const OptionText* const option = Find(options, is_short ? word.substr(0, 2) : name);
    const bool is_long_with_one_dash =
        is_short && word.size() > 2 && Find(options, "-" + name) != nullptr;
    if (option == nullptr || is_long_with_one_dash) return UnknownOption(app, options, name);
    if (option->value.empty() || word.find('=') != std::string::npos) continue;
    if (is_short && word.size() > 2) continue;
    if (++i == words.size()) return MissingValue(*option);
  }
  return std::nullopt;
}

// Returns the option of this name in the command that was given, or around it.
std::optional<OptionText> FindParsed(const CLI::App& app, const std::string& name) {
  for (const CLI::App* one = &ParsedCommand(app); one != nullptr; one = one->get_parent()) {
    const std::vector<OptionText> options = AllOptions(*one);
    if (const OptionText* option = Find(options, name)) return *option;
  }
  return std::nullopt;
}

std::string Expected(const CLI::App& app, const std::string& name, const std::string& value) {
  std::string text = name + " " + (value.empty() ? "''" : value) + ": expected ";
  const std::optional<OptionText> option = FindParsed(app, name);
  if (!option) return text + "another value";
  if (!option->choices.empty()) return text + OneOf(option->choices);
  if (!option->range.empty() && option->range.size() < 24) return text + option->range;
  if (option->value == "N") return text + "a whole number, 0 or more";
  return text + (option->value == "X" ? "a number like 0.7" : "a value like " + option->value);
}

// Looks at the words from `first` on, which follow the name of `app`.
std::optional<std::string> FindUnknownFrom(const CLI::App& app,
                                           const std::vector<std::string>& words, size_t first) {
  const std::vector<const CLI::App*> commands = Subcommands(app);
  if (commands.empty()) return FindUnknownOption(app, words, first);
  const std::vector<OptionText> options = AllOptions(app);
  for (size_t i = first; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (IsOption(word)) {
      const OptionText* const option = Find(options, word.substr(0, word.find('=')));
      if (option == nullptr) return UnknownOption(app, options, word.substr(0, word.find('=')));
      if (option->value.empty() || word.find('=') != std::string::npos) continue;
      if (++i == words.size()) return MissingValue(*option);
      continue;
    }
    std::vector<std::string> names;
    for (const CLI::App* command : commands) {
      if (command->get_name() == word) return FindUnknownFrom(*command, words, i + 1);
      names.push_back(command->get_name());
    }
    const std::string nearest = Nearest(word, names);
    if (!nearest.empty()) return "unknown command '" + word + "': did you mean " + nearest + "?";
    return "unknown command '" + word + "': the commands are " + OneOf(names);
  }
  return std::nullopt;
}

// Returns the options that CLI11's sentence on a group names, as "A, B or C".
std::string OptionsIn(const std::string& what) {
  std::vector<std::string> names;
  static const std::regex name("--[a-z-]+");
  for (auto at = std::sregex_iterator(what.begin(), what.end(), name); at != std::sregex_iterator();
       ++at) {
    if (std::find(names.begin(), names.end(), at->str()) == names.end()) names.push_back(at->str());
  }
  return OneOf(names);
}

}  // namespace

const CLI::App& CommandOf(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* found = &app;
  for (const std::string& word : words) {
    const std::vector<const CLI::App*> commands = Subcommands(*found);
    const auto command = std::find_if(commands.begin(), commands.end(),
                                      [&](const CLI::App* one) { return one->get_name() == word; });
    if (command != commands.end()) {
      found = *command;
    } else if (!IsOption(word)) {
      break;
    }
  }
  return *found;
}

std::optional<std::string> FindUnknown(const CLI::App& app, const std::vector<std::string>& words) {
  return FindUnknownFrom(app, words, 0);
}

std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::string what = error.what(), kind = error.get_name();
  std::smatch part;
  if (std::regex_match(what, part, std::regex(R"(Could not convert: (\S+) = ([^]*))"))) {
    return Expected(app, part[1], part[2]);
  }
  if (std::regex_match(what, part, std::regex(R"re((\S+): "([^]*)" is not a number[^]*)re"))) {
    return Expected(app, part[1], part[2]);
  }
  if (std::regex_match(what, part, std::regex(R"((\S+): ([^]*) not in \{[^]*)")) ||
      std::regex_match(what, part, std::regex(R"((\S+): Value (\S*) not in range [^]*)"))) {
    return Expected(app, part[1], part[2]);
  }
  if (kind == "ArgumentMismatch" &&
      std::regex_match(what, part, std::regex(R"((\S+): At Most 1 required but received (\d+))"))) {
    return part[1].str() + " is given " + part[2].str() + " times: give it once";
  }
  if (kind == "ExcludesError" &&
      std::regex_match(what, part, std::regex(R"((\S+) excludes (\S+))"))) {
    return part[1].str() + " and " + part[2].str() + " exclude each other: give one of them";
  }
  if (kind == "RequiresError" &&
      std::regex_match(what, part, std::regex(R"((\S+) requires (\S+))"))) {
    return part[1].str() + " needs " + part[2].str() + " too";
  }
  if (kind == "RequiredError") {
    if (what.find('[') != std::string::npos) {
      const bool is_missing = what.find("at most") == std::string::npos &&
                              what.find("is required and") == std::string::npos;
      return (is_missing ? "give one of " : "give only one of ") + OptionsIn(what);
    }
    const std::string missing = what.substr(0, what.find(" is required"));
    return missing + " is missing: " + UsageLine(ParsedCommand(app));
  }
  return what;
}

}  // namespace arn::cli

#include "tools/cli/option_table.h"

#include <algorithm>
#include <cctype>

#include "tools/cli/words.h"

namespace arn::cli {
namespace {

constexpr size_t kLongestChoice = 30;  // of a value shown as its choices

// Parses CLI11's "TEXT:{a,b}" and "UINT:INT in [1 - 64]".
void ReadType(const std::string& type, OptionText* out) {
  const size_t colon = type.find(':');
  const std::string base = type.substr(0, colon);
  const std::string check = colon == std::string::npos ? "" : type.substr(colon + 1);
  const size_t list = check.find('{'), list_end = check.find('}');
  if (list != std::string::npos && list_end != std::string::npos) {
    out->choices = SplitAt(std::string_view(check).substr(list + 1, list_end - list - 1), ',');
  }
  const size_t range = check.find(" in ["), dash = check.find(" - "), end = check.rfind(']');
  if (range != std::string::npos && dash != std::string::npos && end != std::string::npos) {
    out->range =
        check.substr(range + 5, dash - range - 5) + " to " + check.substr(dash + 3, end - dash - 3);
  }
  out->value = base == "UINT" || base == "INT" ? "N"
               : base == "FLOAT"               ? "X"
               : base == "FLOAT,FLOAT,..."     ? "X,X,..."
                                               : base;
  std::string joined;
  for (const std::string& choice : out->choices) joined += (joined.empty() ? "" : "|") + choice;
  if (!out->choices.empty() && joined.size() <= kLongestChoice) out->value = joined;
}

OptionText ToText(const CLI::Option& option) {
  OptionText text;
  text.is_positional = option.get_positional();
  if (text.is_positional) {
    text.names = {option.get_name(true)};
  } else {
    for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  }
  text.is_required = option.get_required();
  text.description = option.get_description();
  text.default_text = option.get_default_str();
  if (option.get_items_expected_max() > 0) ReadType(option.get_type_name(), &text);
  if (text.is_positional) text.value = "";
  return text;
}

std::string Capital(std::string word) {
  if (!word.empty()) word[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[0])));
  return word;
}

Section& SectionOf(const std::string& title, std::vector<Section>* sections) {
  const auto found = std::find_if(sections->begin(), sections->end(),
                                  [&](const Section& s) { return s.title == title; });
  if (found != sections->end()) return *found;
  sections->push_back({title, "", title.rfind(kAdvanced, 0) == 0, {}});
  return sections->back();
}

bool IsGroup(const CLI::App& app) { return app.get_name().empty(); }

void AddOptions(const CLI::App& app, const std::string& title, std::vector<Section>* sections) {
  for (const CLI::Option* option : app.get_options()) {
    // An option group inherits a help flag of its own, which nothing reaches.
    const bool is_inherited = IsGroup(app) && option == app.get_help_ptr();
    if (option->get_group().empty() || is_inherited) continue;
    const bool has_own = option->get_group() != "Options";
    OptionText text = ToText(*option);
    const std::string in = text.is_positional ? "" : has_own ? option->get_group() : title;
    SectionOf(in, sections).options.push_back(std::move(text));
  }
}

}  // namespace

std::string OptionText::Usage() const {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return value.empty() ? text : text + " " + value;
}

std::string OptionText::Text() const {
  std::string text = description;
  const bool is_listed = value.find('|') != std::string::npos;
  if (!choices.empty() && !is_listed) text += ". One of: " + OneOf(choices);
  if (!range.empty() && range.size() < 16) text += " (" + range + ")";
  if (!default_text.empty()) text += " [" + default_text + "]";
  return text;
}

std::vector<Section> Describe(const CLI::App& app) {
  std::vector<Section> all;
  SectionOf("", &all);
  // Groups of which one must or may be chosen, such as the prompt's, come before all other options.
  for (const bool is_choice : {true, false}) {
    for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; })) {
      if (!IsGroup(*group) || (group->get_require_option_max() != 0) != is_choice) continue;
      const std::string title = Capital(group->get_group());
      SectionOf(title, &all).note = group->get_description();
      AddOptions(*group, title, &all);
    }
    if (is_choice) AddOptions(app, "Options", &all);
  }
  std::stable_sort(all.begin(), all.end(), [](const Section& a, const Section& b) {
    return !a.is_advanced && b.is_advanced;
  });
  all.erase(
      std::remove_if(all.begin(), all.end(), [](const Section& s) { return s.options.empty(); }),
      all.end());
  return all;
}

std::vector<OptionText> AllOptions(const CLI::App& app) {
  std::vector<OptionText> options;
  for (const Section& section : Describe(app)) {
    options.insert(options.end(), section.options.begin(), section.options.end());
  }
  return options;
}

std::vector<const CLI::App*> Subcommands(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!IsGroup(*sub)) commands.push_back(sub);
  }
  return commands;
}

std::string FullName(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  return parent == nullptr ? app.get_name() : FullName(*parent) + " " + app.get_name();
}

std::string UsageLine(const CLI::App& app) {
  std::string line = FullName(app);
  if (!Subcommands(app).empty()) return line + " COMMAND [options]";
  for (const OptionText& option : AllOptions(app)) {
    if (option.is_positional) {
      line += option.is_required ? " " + option.names[0] : " [" + option.names[0] + "]";
    } else if (option.is_required) {
      line += " " + option.names.back() + " " + option.value;
    }
  }
  return line + " [options]";
}

void ApplyWords(const std::vector<OptionWords>& rows, CLI::App* app) {
  for (CLI::Option* option : app->get_options([](CLI::Option*) { return true; })) {
    for (const OptionWords& row : rows) {
      if (option->get_single_name() != std::string(row.name).substr(2)) continue;
      if (row.value[0] != '\0') option->type_name(row.value);
      if (row.group[0] != '\0') option->group(row.group);
    }
  }
  for (CLI::App* sub : app->get_subcommands([](CLI::App*) { return true; })) {
    ApplyWords(rows, sub);
  }
}

}  // namespace arn::cli

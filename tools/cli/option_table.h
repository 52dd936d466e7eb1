// A command's options as data: help, man pages, completions and error messages are made
// from it, so that none of them can differ from what the parser accepts.
#pragma once

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace arn::cli {

struct OptionText {
  std::vector<std::string> names;    // "-p", "--prefill"; a positional: its name
  std::string value;                 // "FILE", "N", "f32|int8"; "": a flag
  std::vector<std::string> choices;  // all values allowed; empty: any
  std::string range;                 // "1 to 64"; "": any
  std::string description;           // without choices and default
  std::string default_text;          // "": none
  bool is_positional = false;
  bool is_required = false;

  // Returns "-p, --prefill N".
  std::string Usage() const;
  // Returns the description with choices, range and default.
  std::string Text() const;
};

struct Section {
  std::string title;  // "": the positionals
  std::string note;   // below the title; may be ""
  bool is_advanced = false;
  std::vector<OptionText> options;
};

// Returns the sections of a command: positionals, option groups, "Options", advanced groups.
std::vector<Section> Describe(const CLI::App& app);
// Returns the options of all sections.
std::vector<OptionText> AllOptions(const CLI::App& app);
// Returns the subcommands in the order of their declaration.
std::vector<const CLI::App*> Subcommands(const CLI::App& app);
// Returns the command with its program: "arenite run".
std::string FullName(const CLI::App& app);
// Returns "arenite run BUNDLE [options]".
std::string UsageLine(const CLI::App& app);

// The word for an option's value in help, and the group it is shown in. An option that no row names
// is shown as its type in "Options".
struct OptionWords {
  const char* name;   // "--kv"
  const char* value;  // "TYPE"; "": the type's own
  const char* group;  // kAdvanced...; "": its own
};
inline constexpr const char* kAdvanced = "Advanced";  // the first word of advanced groups

// Applies the rows to the app and its subcommands.
void ApplyWords(const std::vector<OptionWords>& rows, CLI::App* app);

}  // namespace arn::cli

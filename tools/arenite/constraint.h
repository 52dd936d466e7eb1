// Constraint options of the command line.
#pragma once

#include <arenite/arenite.h>

#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/arenite/constraint_spec.h"
#include "tools/arenite/json.h"
#include "tools/arenite/model.h"

namespace arn::tool {

struct ConstraintArguments {
  std::optional<std::string> json_schema, regex, grammar, choices;  // two are files
  std::optional<std::string> tools;                                 // a file
  std::optional<std::string> tool_choice;
  bool single_call = false;
  bool any_order = false;
  std::string whitespace = "compact";
  std::string memory = "16M";
};
// `least`: number of the five kinds that must be given, 0 or 1.
CLI::Option_group* AddConstraintOptions(CLI::App* app, ConstraintArguments* arguments,
                                        size_t least);
// The same for a chat, whose --tools is an option of its own.
CLI::Option_group* AddChatConstraintOptions(CLI::App* app, ConstraintArguments* arguments);
bool HasConstraint(const ConstraintArguments& arguments);

// A constraint of the command line, with the text of its file.
class ConstraintText {
 public:
  // Reads the file. Throws Error.
  explicit ConstraintText(const ConstraintArguments& arguments);
  // Valid as long as this object and the prompt, which tool calls look at the end of.
  arn_constraint_options Options(const std::string& prompt = "") const {
    return spec_.Options(prompt);
  }
  bool is_tool_calls() const { return spec_.is_tool_calls(); }
  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  ConstraintSpec spec_;
  uint64_t memory_bytes_ = 0;
};

// Reserves memory for one constraint in a session.
void ReserveConstraint(const ConstraintText& text, arn_session_options* options);
// The same for one that a saved session may have, if the model can have constraints.
void ReserveSavedConstraint(const ConstraintArguments& arguments, const Model& model,
                            arn_session_options* options);

// Compiles the constraint for the selected sequence. Throws Error.
void SetConstraint(const ConstraintText& text, const Session& session,
                   const std::string& prompt = "");
void DropConstraint(const Session& session);
// Returns nothing without a constraint.
std::optional<arn_constraint_stats_data> ReadConstraint(const Session& session);

// Returns "constraint  12 steps, ...".
std::string ConstraintLine(const arn_constraint_stats_data& stats);
// Writes "constraint": {"steps", ..., "bytes"}.
void WriteConstraint(const arn_constraint_stats_data& stats, JsonWriter* json);

}  // namespace arn::tool

// Constraint options of the command line.
#pragma once

#include <arenite/arenite.h>

#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/arenite/json.h"
#include "tools/arenite/model.h"

namespace arn::tool {

struct ConstraintArguments {
  std::optional<std::string> json_schema, regex, grammar, choices;  // two are files
  bool any_order = false;
  std::string whitespace = "compact";
  std::string memory = "16M";
};
// `least`: number of the four that must be given, 0 or 1.
CLI::Option_group* AddConstraintOptions(CLI::App* app, ConstraintArguments* arguments,
                                        size_t least);
bool HasConstraint(const ConstraintArguments& arguments);

// A constraint of the command line, with the text of its file.
class ConstraintText {
 public:
  // Reads the file. Throws Error.
  explicit ConstraintText(const ConstraintArguments& arguments);
  // Valid as long as this object.
  arn_constraint_options Options() const;
  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  std::string text_;
  uint32_t kind_ = 0;
  bool any_order_ = false, any_whitespace_ = false;
  uint64_t memory_bytes_ = 0;
};

// Reserves memory for one constraint in a session.
void ReserveConstraint(const ConstraintText& text, arn_session_options* options);

// Compiles the constraint for the selected sequence. Throws Error.
void SetConstraint(const ConstraintText& text, const Session& session);
arn_constraint_stats_data ReadConstraint(const Session& session);

// Returns "constraint  12 steps, ...".
std::string ConstraintLine(const arn_constraint_stats_data& stats);
// Writes "constraint": {"steps", ..., "bytes"}.
void WriteConstraint(const arn_constraint_stats_data& stats, JsonWriter* json);

}  // namespace arn::tool

// ConstraintSpec: what a text must be, as arn_constraint_options takes it, with its own texts.
#pragma once

#include <arenite/arenite.h>

#include <cstdint>
#include <string>

namespace arn::tool {

struct ConstraintSpec {
  uint32_t kind = ARN_CONSTRAINT_JSON_SCHEMA;
  std::string text;
  bool any_order = false, any_whitespace = false;
  // Apply to tool calls.
  uint32_t tool_choice = ARN_TOOL_CHOICE_AUTO;
  std::string tool_name;
  bool single_call = false;

  bool is_tool_calls() const { return kind == ARN_CONSTRAINT_TOOL_CALLS; }
  // Returns the options; `prompt`: see arn_constraint_options. Both must outlive them.
  arn_constraint_options Options(const std::string& prompt) const;
};

}  // namespace arn::tool

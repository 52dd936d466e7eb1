#include "tools/arenite/constraint_spec.h"

namespace arn::tool {

arn_constraint_options ConstraintSpec::Options(const std::string& prompt) const {
  arn_constraint_options options = ARN_CONSTRAINT_OPTIONS_INIT;
  options.kind = kind;
  options.text = text.data();
  options.text_bytes = text.size();
  options.any_order = any_order ? 1 : 0;
  options.any_whitespace = any_whitespace ? 1 : 0;
  if (!is_tool_calls()) return options;
  options.tool_choice = tool_choice;
  if (tool_choice == ARN_TOOL_CHOICE_NAMED) {
    options.tool_name = tool_name.data();
    options.tool_name_bytes = tool_name.size();
  }
  options.single_call = single_call ? 1 : 0;
  options.prompt = prompt.data();
  options.prompt_bytes = prompt.size();
  return options;
}

}  // namespace arn::tool

#include "tools/arenite/constraint.h"

#include "tools/arenite/io.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

// Returns choices with NUL bytes for the commas between them. A backslash stands for the character
// after it.
std::string WithNulBytes(const std::string& choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i] == '\\' && i + 1 < choices.size()) {
      text += choices[++i];
    } else {
      text += choices[i] == ',' ? '\0' : choices[i];
    }
  }
  return text;
}

CLI::Option_group* AddKinds(CLI::App* app, ConstraintArguments* arguments, size_t least) {
  CLI::Option_group* group = app->add_option_group(
      "constraint", least == 0 ? "What the text must be: at most one of these"
                               : "What a text must be: exactly one of these is required");
  group->add_option("--json-schema", arguments->json_schema,
                    "JSON that fits the schema in this file");
  group->add_option("--regex", arguments->regex,
                    "A text that this regular expression matches as a whole");
  group->add_option("--grammar", arguments->grammar,
                    "A text of the grammar in this file, in GBNF, from its rule root");
  group->add_option("--choices", arguments->choices,
                    "One of these texts, separated by commas (\\, is a comma)");
  return group;
}

void AddDetails(CLI::App* app, ConstraintArguments* arguments) {
  app->add_flag("--single-call", arguments->single_call, "With tools: at most one call");
  app->add_flag("--any-order", arguments->any_order,
                "With --json-schema or tools: properties in any order instead of the schema's");
  app->add_option("--whitespace", arguments->whitespace,
                  "With --json-schema: white space where JSON allows it, or none")
      ->transform(CLI::IsMember(std::vector<std::string>{"compact", "any"}, CLI::ignore_case))
      ->capture_default_str();
  app->add_option("--constraint-memory", arguments->memory,
                  "Bytes for the compiled constraint; they are committed as they are used")
      ->capture_default_str();
}

constexpr char kToolChoice[] =
    "Calls that a reply may have: auto (text, calls or both), required, none, or the name of the "
    "tool that must be called";

}  // namespace

CLI::Option_group* AddConstraintOptions(CLI::App* app, ConstraintArguments* arguments,
                                        size_t least) {
  CLI::Option_group* group = AddKinds(app, arguments, least);
  CLI::Option* const tools = group->add_option(
      "--tools", arguments->tools,
      "A reply with calls of the tools in this file, a JSON array, as the chat template writes "
      "them");
  group->require_option(static_cast<int>(least), 1);
  app->add_option("--tool-choice", arguments->tool_choice, kToolChoice)->needs(tools);
  AddDetails(app, arguments);
  return group;
}

CLI::Option_group* AddChatConstraintOptions(CLI::App* app, ConstraintArguments* arguments) {
  CLI::Option_group* group = AddKinds(app, arguments, 0);
  group->add_option(
      "--tool-choice", arguments->tool_choice,
      Format("With --tools: the reply is constrained to valid calls. %s", kToolChoice));
  group->require_option(0, 1);
  AddDetails(app, arguments);
  return group;
}

bool HasConstraint(const ConstraintArguments& arguments) {
  return arguments.json_schema || arguments.regex || arguments.grammar || arguments.choices ||
         arguments.tools;
}

ConstraintText::ConstraintText(const ConstraintArguments& arguments)
    : memory_bytes_(ParseBytes(arguments.memory, "--constraint-memory")) {
  spec_.any_order = arguments.any_order;
  spec_.any_whitespace = arguments.whitespace == "any";
  if (arguments.json_schema) {
    spec_.kind = ARN_CONSTRAINT_JSON_SCHEMA;
    spec_.text = ReadFile(*arguments.json_schema);
  } else if (arguments.regex) {
    spec_.kind = ARN_CONSTRAINT_REGEX;
    spec_.text = *arguments.regex;
  } else if (arguments.grammar) {
    spec_.kind = ARN_CONSTRAINT_GRAMMAR;
    spec_.text = ReadFile(*arguments.grammar);
  } else if (arguments.choices) {
    spec_.kind = ARN_CONSTRAINT_CHOICES;
    spec_.text = WithNulBytes(*arguments.choices);
  } else if (arguments.tools) {
    spec_.kind = ARN_CONSTRAINT_TOOL_CALLS;
    spec_.text = ReadFile(*arguments.tools);
    const std::string choice = arguments.tool_choice.value_or("auto");
    if (choice == "required") {
      spec_.tool_choice = ARN_TOOL_CHOICE_REQUIRED;
    } else if (choice == "none") {
      spec_.tool_choice = ARN_TOOL_CHOICE_NONE;
    } else if (choice != "auto") {
      spec_.tool_choice = ARN_TOOL_CHOICE_NAMED;
      spec_.tool_name = choice;
    }
    spec_.single_call = arguments.single_call;
  }
  if (arguments.single_call && !is_tool_calls()) throw Error("--single-call needs tools");
  if (spec_.kind == ARN_CONSTRAINT_JSON_SCHEMA) return;
  if (spec_.any_order && !is_tool_calls()) throw Error("--any-order needs --json-schema or tools");
  if (spec_.any_whitespace) throw Error("--whitespace any needs --json-schema");
}

void ReserveConstraint(const ConstraintText& text, arn_session_options* options) {
  options->constraint_bytes = text.memory_bytes();
  options->max_constraints = 1;
}

void ReserveSavedConstraint(const ConstraintArguments& arguments, const Model& model,
                            arn_session_options* options) {
  arn_constraint_options any = ARN_CONSTRAINT_OPTIONS_INIT;
  any.kind = ARN_CONSTRAINT_REGEX;
  any.text = "a";
  any.text_bytes = 1;
  arn_constraint* constraint = nullptr;
  const uint64_t bytes = ParseBytes(arguments.memory, "--constraint-memory");
  const arn_status status =
      arn_constraint_create(model.get(), &any, nullptr, bytes, nullptr, 0, &constraint);
  arn_constraint_destroy(constraint);
  if (status != ARN_OK) return;
  options->constraint_bytes = bytes;
  options->max_constraints = 1;
}

void SetConstraint(const ConstraintText& text, const Session& session, const std::string& prompt) {
  const arn_constraint_options options = text.Options(prompt);
  session.Check(arn_session_set_constraint(session.get(), &options));
}

void DropConstraint(const Session& session) {
  session.Check(arn_session_set_constraint(session.get(), nullptr));
}

std::optional<arn_constraint_stats_data> ReadConstraint(const Session& session) {
  arn_constraint_stats_data stats = ARN_CONSTRAINT_STATS_INIT;
  const arn_status status = arn_session_constraint_stats(session.get(), &stats);
  if (status == ARN_NOT_FOUND) return std::nullopt;
  session.Check(status);
  return stats;
}

std::string ConstraintLine(const arn_constraint_stats_data& stats) {
  const auto us = [](uint64_t ns) { return static_cast<double>(ns) / 1e3; };
  return Format(
      "constraint compiled in %.0f us, %s; %llu tokens, %llu of them forced, %llu tested; a token "
      "%.1f us (p50), %.1f us (p99), %.1f us (max)",
      us(stats.compile_ns), HumanBytes(stats.bytes).c_str(),
      static_cast<unsigned long long>(stats.steps),
      static_cast<unsigned long long>(stats.forced_tokens),
      static_cast<unsigned long long>(stats.candidates_tested), us(stats.p50_ns), us(stats.p99_ns),
      us(stats.max_ns));
}

void WriteConstraint(const arn_constraint_stats_data& stats, JsonWriter* json) {
  const auto us = [](uint64_t ns) { return static_cast<double>(ns) / 1000.0; };
  json->Key("constraint").BeginObject();
  json->Key("steps").Uint(stats.steps);
  json->Key("candidates_tested").Uint(stats.candidates_tested);
  json->Key("forced_tokens").Uint(stats.forced_tokens);
  json->Key("compile_us").Number(us(stats.compile_ns));
  json->Key("p50_us").Number(us(stats.p50_ns));
  json->Key("p99_us").Number(us(stats.p99_ns));
  json->Key("max_us").Number(us(stats.max_ns));
  json->Key("bytes").Uint(stats.bytes);
  json->EndObject();
}

}  // namespace arn::tool

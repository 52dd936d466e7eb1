// arenite plan: the bytes that a session will take, before any is taken.
#include <memory>

#include "tools/arenite/commands.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"
#include "tools/arenite/memory_report.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

struct Arguments {
  ModelArguments model;
  SessionArguments session;
  bool json = false;
};

int Run(const Arguments& arguments) {
  const Model model = OpenModel(arguments.model);
  const arn_memory_plan plan = model.Plan(ToSessionOptions(arguments.session));
  if (!arguments.json) {
    Print(PlanTable(plan));
    return 0;
  }
  JsonWriter json;
  json.BeginObject();
  WriteRegions(plan, &json);
  json.Key("repacked").Uint(plan.repacked_bytes);
  json.Key("kv_per_token").Uint(plan.kv_bytes_per_token);
  json.Key("alignment").Uint(plan.alignment);
  json.Key("context").Uint(plan.context_tokens);
  json.Key("prefill_chunk").Uint(plan.prefill_chunk);
  json.Key("threads").Uint(plan.n_threads);
  json.Key("kv_page_tokens").Uint(plan.kv_page_tokens);
  Print(json.EndObject().Finish());
  return 0;
}

}  // namespace

Command AddPlan(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("plan", "Prints the bytes of each region of memory");
  const auto arguments = std::make_shared<Arguments>();
  AddModelOptions(sub, &arguments->model);
  AddSessionOptions(sub, &arguments->session, "the model's, at most 4096");
  sub->add_flag("--json", arguments->json, "One JSON object, in bytes");
  sub->footer("Example:\n  arenite plan model.arn --context 2048 --kv int8");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool

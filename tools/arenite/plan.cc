// arenite plan: prints the memory that a session will take, before it is allocated.
#include <memory>
#include <optional>

#include "CLI/CLI.hpp"
#include "tools/arenite/adapters.h"
#include "tools/arenite/commands.h"
#include "tools/arenite/draft.h"
#include "tools/arenite/error.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"
#include "tools/arenite/memory_report.h"
#include "tools/arenite/options.h"
#include "tools/arenite/plan_fit.h"
#include "tools/cli/arena_picture.h"

namespace arn::tool {
namespace {

struct PlanArguments {
  ModelArguments model;
  SessionArguments session;
  bool has_kv = false;  // --kv was given
  std::optional<std::string> fit, svg;
  std::optional<uint32_t> used;
  std::vector<std::string> adapters;
  bool json = false;
};

int RunFit(const PlanArguments& arguments, const Model& model) {
  const uint64_t bytes = ParseBytes(*arguments.fit, "--fit");
  std::vector<std::string> kv_types = KvTypeNames();
  if (arguments.has_kv) kv_types = {arguments.session.kv};
  const std::vector<Fit> fits =
      FindFits(model, ToSessionOptions(arguments.session), kv_types, bytes);
  bool fits_any = false;
  for (const Fit& fit : fits) fits_any = fits_any || fit.context != 0;
  if (!fits_any) throw Error(model.path() + ": " + NoFitSentence(fits, bytes));
  if (!arguments.json) {
    Print(FitTable(fits, bytes));
    return 0;
  }
  JsonWriter json;
  json.BeginObject();
  WriteFits(fits, bytes, &json);
  Print(json.EndObject().Finish());
  return 0;
}

void WriteSvg(const PlanArguments& arguments, const Model& model, const arn_memory_plan& plan,
              const std::vector<arn_kv_group_info>& groups) {
  cli::ArenaPicture picture;
  picture.title = Format("%s: the memory of a session, keys and values in %s",
                         model.info().source_name, KvNames(arguments.session).c_str());
  picture.plan = plan;
  picture.groups = groups;
  picture.used_tokens = arguments.used.value_or(plan.context_tokens / 2);
  if (picture.used_tokens > plan.context_tokens) {
    throw Error(
        Format("--used %u: the context has %u tokens", picture.used_tokens, plan.context_tokens));
  }
  const std::string svg = cli::DrawArena(picture);
  OutputFile file(*arguments.svg);
  file.Write(svg.data(), svg.size());
  file.Close();
}

void PrintJson(const arn_memory_plan& plan, const std::vector<arn_kv_group_info>& groups) {
  JsonWriter json;
  json.BeginObject();
  WriteRegions(plan, &json);
  json.Key("repacked").Uint(plan.repacked_bytes);
  json.Key("kv_per_token").Uint(plan.kv_bytes_per_token);
  json.Key("snapshots").Uint(plan.snapshots_bytes);
  json.Key("speculation").Uint(plan.speculation_bytes);
  json.Key("draft").Uint(plan.draft_bytes);
  json.Key("draft_weights").Uint(plan.draft_weights_bytes);
  json.Key("adapters").Uint(plan.adapters_bytes);
  json.Key("adapter_files").Uint(plan.adapter_files_bytes);
  json.Key("alignment").Uint(plan.alignment);
  json.Key("context").Uint(plan.context_tokens);
  json.Key("prefill_chunk").Uint(plan.prefill_chunk);
  json.Key("threads").Uint(plan.n_threads);
  json.Key("prefill_threads").Uint(plan.n_prefill_threads);
  json.Key("performance_cpus").Uint(plan.n_performance_cpus);
  json.Key("keeps_to_performance_cpus").Uint(plan.keeps_to_performance_cpus);
  json.Key("kv_page_tokens").Uint(plan.kv_page_tokens);
  json.Key("sequences").Uint(plan.max_sequences);
  json.Key("kv_tokens").Uint(plan.kv_tokens);
  json.Key("state_snapshots").Uint(plan.state_snapshots);
  json.Key("max_guesses").Uint(plan.max_guesses);
  json.Key("snapshot_every").Uint(plan.snapshot_every);
  WriteGroups(groups, &json);
  Print(json.EndObject().Finish());
}

int Run(const PlanArguments& arguments) {
  const Model model = OpenModel(arguments.model);
  if (arguments.fit) return RunFit(arguments, model);
  arn_session_options options = ToSessionOptions(arguments.session);
  const Adapters adapters(model, arguments.adapters);
  adapters.AddTo(&options);
  const Draft draft(arguments.session);
  draft.AddTo(&options);
  const arn_memory_plan plan = model.Plan(options);
  const std::vector<arn_kv_group_info> groups = model.PlanGroups(options);
  if (arguments.svg) WriteSvg(arguments, model, plan, groups);
  if (arguments.json) {
    PrintJson(plan, groups);
  } else {
    Print(PlanTable(plan) + "\n" + GroupTable(groups));
  }
  return 0;
}

}  // namespace

Command AddPlan(CLI::App* app) {
  CLI::App* sub =
      app->add_subcommand("plan", "Prints a session's memory plan: the bytes of each region");
  const auto arguments = std::make_shared<PlanArguments>();
  AddModelOptions(sub, &arguments->model);
  AddSessionOptions(sub, &arguments->session, "the model's, at most 4096");
  AddPoolOptions(sub, &arguments->session);
  AddOverflowOptions(sub, &arguments->session);
  AddSnapshotOptions(sub, &arguments->session);
  AddSpeculateOptions(sub, &arguments->session);
  AddNoCacheOption(sub, &arguments->session);
  AddAdapterOption(sub, &arguments->adapters);
  CLI::Option* fit =
      sub->add_option("--fit", arguments->fit,
                      "Prints instead the largest context for each KV type (or for --kv) whose "
                      "session fits in this many bytes: 300000000, 300M, 2G (powers of 1024)");
  fit->excludes(sub->get_option("--adapter"));
  fit->excludes(sub->get_option("--context"))->excludes(sub->get_option("--kv-tokens"));
  CLI::Option* svg =
      sub->add_option("--svg", arguments->svg, "Also draws the memory layout into this file (SVG)");
  svg->excludes(fit);
  sub->add_option(
         "--used", arguments->used,
         "With --svg: number of tokens whose pages are drawn as used (half of the context)")
      ->needs(svg);
  sub->add_flag("--json", arguments->json, "Prints one JSON object, in bytes");
  sub->footer(
      "Examples:\n"
      "  arenite plan model.arn --context 2048 --kv int8\n"
      "  arenite plan model.arn --sequences 4 --context 2048 --kv-tokens 4096\n"
      "  arenite plan model.arn --context 1024 --overflow shift --pinned 64\n"
      "  arenite plan model.arn --context 256 --no-cache\n"
      "  arenite plan mamba.arn --state-snapshots 8 --snapshot-every 256\n"
      "  arenite plan model.arn --fit 300M\n"
      "  arenite plan model.arn --context 2048 --svg arena.svg --used 600");
  return {sub, [arguments, sub] {
            arguments->has_kv = sub->count("--kv") != 0;
            return Run(*arguments);
          }};
}

}  // namespace arn::tool

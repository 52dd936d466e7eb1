#include "tools/arenite/run_beams.h"

#include <algorithm>
#include <cstdio>

#include "CLI/CLI.hpp"
#include "tools/arenite/interrupt.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"
#include "tools/arenite/memory_report.h"

namespace arn::tool {
namespace {

// Small pages: the tail of a beam starts and ends within a page.
constexpr uint32_t kPageTokens = 8;

struct Found {
  std::vector<int32_t> ids;
  std::string text;
  double score = 0;
  const char* finish = "length";
};

// Reserves one prompt and the beams' tails, each with an unshared page at both ends.
void MakeRoom(const BeamRun& run, arn_session_options* options) {
  options->max_sequences = run.beams.beams;
  if (options->kv_page_tokens == 0) options->kv_page_tokens = kPageTokens;
  const uint64_t page = options->kv_page_tokens;
  const uint64_t context = options->context_tokens;
  const uint64_t tail = (run.max_tokens == 0 ? context : run.max_tokens) + 2 * page;
  const uint64_t n = options->max_sequences;
  const uint64_t needed = std::min(context + page + n * tail, n * context);
  options->kv_tokens = needed > UINT32_MAX ? 0 : static_cast<uint32_t>(needed);
}

arn_beam_options ToBeamOptions(const BeamRun& run) {
  arn_beam_options options = ARN_BEAM_OPTIONS_INIT;
  options.num_beams = run.beams.beams;
  options.num_beam_groups = run.beams.groups;
  options.diversity_penalty = run.beams.diversity_penalty;
  options.length_penalty = run.beams.length_penalty;
  options.early_stopping = run.beams.early_stopping == "true"    ? ARN_EARLY_STOPPING_TRUE
                           : run.beams.early_stopping == "never" ? ARN_EARLY_STOPPING_NEVER
                                                                 : ARN_EARLY_STOPPING_FALSE;
  options.num_return_sequences = run.beams.returns;
  options.max_tokens = run.max_tokens;
  options.ignore_eos = run.ignore_eos ? 1 : 0;
  return options;
}

std::vector<Found> ReadFound(const Model& model, const Session& session, const BeamRun& run,
                             uint32_t n) {
  const arn_model_info& info = model.info();
  std::vector<Found> found(n);
  for (uint32_t i = 0; i < n; ++i) {
    size_t count = 0;
    float score = 0;
    const arn_status status = arn_session_beam(session.get(), i, nullptr, 0, &count, &score);
    if (status != ARN_BUFFER_TOO_SMALL) session.Check(status);
    Found& f = found[i];
    f.ids.resize(count);
    session.Check(arn_session_beam(session.get(), i, f.ids.data(), count, &count, &score));
    f.score = static_cast<double>(score);
    if (info.has_tokenizer != 0) f.text = model.Detokenize(f.ids, ARN_DETOKENIZE_SKIP_SPECIAL);
    const uint32_t* ends = info.eos_ids + info.n_eos_ids;
    if (!run.ignore_eos &&
        std::find(info.eos_ids, ends, static_cast<uint32_t>(f.ids.back())) != ends) {
      f.finish = "eos";
    }
  }
  return found;
}

void PrintJson(const BeamRun& run, const std::vector<Found>& found, const arn_beam_result& result,
               const arn_session_stats_data& stats, const arn_memory_plan& plan, double load_ms) {
  JsonWriter json;
  json.BeginObject();
  json.Key("prompt_ids").Ids(run.prompt);
  json.Key("sequences").BeginArray();
  for (const Found& f : found) {
    json.BeginObject();
    json.Key("ids").Ids(f.ids);
    json.Key("text").String(f.text);
    json.Key("score").Number(f.score);
    json.Key("finish").String(f.finish);
    json.EndObject();
  }
  json.EndArray();
  json.Key("steps").Uint(result.n_steps);
  json.Key("prefill_tokens").Uint(stats.prefill_tokens);
  json.Key("prefill_tokens_per_s").Number(PerSecond(stats.prefill_tokens, stats.prefill_ns));
  json.Key("decode_tokens_per_s").Number(PerSecond(stats.decode_tokens, stats.decode_ns));
  json.Key("load_ms").Number(load_ms);
  json.Key("memory").BeginObject();
  WriteRegions(plan, &json);
  json.Key("kv_used").Uint(result.kv_peak_bytes);
  json.Key("peak_rss").Uint(PeakRssBytes());
  json.EndObject().EndObject();
  Print(json.Finish());
}

void PrintText(const BeamRun& run, const std::vector<Found>& found, const arn_beam_result& result,
               const arn_session_stats_data& stats, const arn_memory_plan& plan) {
  for (const Found& f : found) {
    char score[32];
    std::snprintf(score, sizeof score, "%.4f ", f.score);
    std::string line = score;
    if (f.text.empty()) {
      for (int32_t id : f.ids) line += " " + std::to_string(id);
    } else {
      line += " " + f.text;
    }
    Print(line + "\n");
  }
  if (run.quiet) return;
  std::fprintf(stderr, "\nprompt    %zu tokens, %.1f tokens/s\n", run.prompt.size(),
               PerSecond(stats.prefill_tokens, stats.prefill_ns));
  std::fprintf(stderr, "decode    %u steps of at most %u beams, %.1f tokens/s\n", result.n_steps,
               run.beams.beams, PerSecond(stats.decode_tokens, stats.decode_ns));
  std::fprintf(stderr, "memory    %s\n", MemoryLine(plan, result.kv_peak_bytes).c_str());
  std::fprintf(stderr, "peak RSS  %s\n", HumanBytes(PeakRssBytes()).c_str());
}

}  // namespace

CLI::Option* AddBeamOptions(CLI::App* app, BeamArguments* arguments) {
  CLI::Option_group* group = app->add_option_group(
      "beams", "Beam search instead of sampling, as in transformers' generate().");
  CLI::Option* beams =
      group->add_option("--beams", arguments->beams, "Number of beams (0: no beam search)")
          ->check(CLI::Range(1u, 1024u));
  group
      ->add_option("--beam-groups", arguments->groups,
                   "Number of beam groups, searched one after the other")
      ->capture_default_str()
      ->needs(beams);
  group
      ->add_option("--diversity-penalty", arguments->diversity_penalty,
                   "Penalty of a token for each beam of an earlier group that chose it")
      ->capture_default_str()
      ->needs(beams);
  group
      ->add_option("--length-penalty", arguments->length_penalty,
                   "Exponent of the length that divides a sequence's sum of log-probabilities")
      ->capture_default_str()
      ->needs(beams);
  group
      ->add_option(
          "--early-stopping", arguments->early_stopping,
          "true: stops as soon as as many sequences as beams have ended; false, never: stops once "
          "no beam can score better, judged by the present (false) or the longest length (never)")
      ->transform(
          CLI::IsMember(std::vector<std::string>{"true", "false", "never"}, CLI::ignore_case))
      ->capture_default_str()
      ->needs(beams);
  group
      ->add_option("--return-sequences", arguments->returns,
                   "Number of sequences to print, best first")
      ->capture_default_str()
      ->needs(beams);
  return beams;
}

int RunBeams(const Model& model, const BeamRun& run, double load_ms) {
  arn_session_options options = run.session;
  MakeRoom(run, &options);
  const arn_memory_plan plan = model.Plan(options);
  const Session session(model, options);
  run.adapters->Use(session);
  load_ms += static_cast<double>(session.Stats().create_ns) / 1e6;
  const CancelOnSignal cancel(session.get());
  // Penalties and forbidden tokens apply; nothing is drawn.
  arn_sampling sampling = run.sampling;
  sampling.temperature = 0.0f;
  session.Check(arn_session_set_sampling(session.get(), &sampling));
  run.encoder_input->Encode(session);
  session.Check(arn_session_follow(session.get(), run.prompt.data(), run.prompt.size(), nullptr));
  if (run.constraint != nullptr) SetConstraint(*run.constraint, session);
  const arn_beam_options beams = ToBeamOptions(run);
  arn_beam_result result = ARN_BEAM_RESULT_INIT;
  session.Check(arn_session_beam_search(session.get(), &beams, &result));
  const std::vector<Found> found = ReadFound(model, session, run, result.n_sequences);
  if (run.json) {
    PrintJson(run, found, result, session.Stats(), plan, load_ms);
  } else {
    PrintText(run, found, result, session.Stats(), plan);
  }
  return 0;
}

}  // namespace arn::tool

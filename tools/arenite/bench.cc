// arenite bench: measures tokens per second of prefill and decoding at a context depth.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "CLI/CLI.hpp"
#include "tools/arenite/adapters.h"
#include "tools/arenite/bench_count.h"
#include "tools/arenite/bench_profile.h"
#include "tools/arenite/bench_rows.h"
#include "tools/arenite/bench_runs.h"
#include "tools/arenite/commands.h"
#include "tools/arenite/device.h"
#include "tools/arenite/device_profiles.h"
#include "tools/arenite/draft.h"
#include "tools/arenite/encoder_input.h"
#include "tools/arenite/interrupt.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"
#include "tools/arenite/options.h"

namespace arn::tool {
namespace {

constexpr uint32_t kMostSequences = 1024;

struct BenchArguments {
  ModelArguments model;
  SessionArguments session;
  DeviceArguments device;
  std::string prefill = "512", decode = "128", depth = "0", threads = "0", context = "0";
  std::string sequences = "1";
  uint32_t repeats = 5;
  std::string rows;  // empty: no runs of several rows
  std::string file;
  std::vector<std::string> adapters;
  float temperature = 0;
  double seconds = 0;
  bool profile = false;
  bool limits = false;
  bool schedules = false;
  bool counts = false;
  std::vector<std::string> profiles = {"adreno830"};
  bool json = false;
};

double GigabytesPerSecond(const Measurement& m) { return m.median * m.bytes_per_token / 1e9; }

void PrintRow(const Measurement& m) {
  const std::string gigabytes =
      m.what.kind == CaseKind::kDecode ? Format("%.2f", GigabytesPerSecond(m)) : "-";
  Print(Format("| %-7s | %6u | %6u | %7u | %9u | %7u | %10.2f | %10.2f | %10.2f | %6s |\n",
               NameOf(m.what.kind), m.what.tokens, m.what.depth, m.context, m.sequences, m.threads,
               m.median, m.lowest, m.highest, gigabytes.c_str()));
}

void PrintDevice(const Measurement& m) {
  Print(DeviceReport(m.device));
  if (m.joules_per_token() > 0) {
    Print(Format("          %.4f J per token, everything that the counter measures included\n",
                 m.joules_per_token()));
  }
}

void PrintHeader() {
  Print(
      "| test    | tokens |  depth | context | sequences | threads | tokens/s   | lowest     | "
      "highest    |   GB/s |\n"
      "|---------|-------:|-------:|--------:|----------:|--------:|-----------:|-----------:|-"
      "----------:|-------:|\n");
}

// Machine limits by number of threads, measured on first use.
class LimitsByThreads {
 public:
  const limits::Limits& Of(uint32_t n_threads) {
    const auto [at, is_new] = measured_.try_emplace(n_threads);
    if (is_new) at->second = limits::Measure(n_threads);
    return at->second;
  }
  const std::map<uint32_t, limits::Limits>& all() const { return measured_; }

 private:
  std::map<uint32_t, limits::Limits> measured_;
};

std::string NameOf(const Measurement& m) {
  return Format("%s %u @ %u", NameOf(m.what.kind), m.what.tokens, m.what.depth);
}

// Returns the profile of the same case with one thread.
const Profile* Alone(const Measurement& m, const std::vector<Measurement>& all) {
  for (const Measurement& other : all) {
    if (other.threads == 1 && other.context == m.context && other.sequences == m.sequences &&
        NameOf(other) == NameOf(m)) {
      return &*other.profile;
    }
  }
  return nullptr;
}

void PrintProfiles(const std::vector<Measurement>& measurements, LimitsByThreads* limits) {
  for (const Measurement& m : measurements) {
    if (!m.profile) continue;
    const limits::Limits& of = limits->Of(m.threads);
    Print("\n" + NameOf(m) + ", " + LimitsLine(of) +
          ProfileTable(*m.profile, of, Alone(m, measurements)));
  }
}

void WriteMeasurement(const Measurement& m, bool with_stats, LimitsByThreads* limits,
                      JsonWriter* json) {
  json->BeginObject();
  json->Key("test").String(NameOf(m.what.kind));
  json->Key("tokens").Uint(m.what.tokens);
  json->Key("depth").Uint(m.what.depth);
  json->Key("context").Uint(m.context);
  json->Key("sequences").Uint(m.sequences);
  json->Key("threads").Uint(m.threads);
  json->Key("tokens_per_s").Number(m.median);
  json->Key("lowest").Number(m.lowest);
  json->Key("highest").Number(m.highest);
  if (m.what.kind == CaseKind::kDecode) {
    json->Key("bytes_per_token").Number(m.bytes_per_token);
    json->Key("gb_per_s").Number(GigabytesPerSecond(m));
  }
  json->Key("runs").BeginArray();
  for (const TimedRun& run : m.runs) {
    json->BeginObject().Key("at_s").Number(run.at_s);
    json->Key("tokens_per_s").Number(run.tokens_per_s);
    if (with_stats) {
      WriteOptional("temperature_c", run.temperature_mc != ARN_NO_TEMPERATURE,
                    run.temperature_mc / 1000.0, json);
    }
    json->EndObject();
  }
  json->EndArray();
  if (with_stats) {
    WriteOptional("joules_per_token", m.joules_per_token() > 0, m.joules_per_token(), json);
    WriteDevice(m.device, json);
  }
  if (m.profile) WriteProfile(*m.profile, limits->Of(m.threads), json);
  json->EndObject();
}

void PrintJson(const BenchArguments& arguments, const Model& model,
               const std::vector<Measurement>& measurements, LimitsByThreads* limits) {
  JsonWriter json;
  json.BeginObject();
  json.Key("bundle").String(model.path());
  json.Key("model").String(model.info().source_name);
  json.Key("n_parameters").Uint(model.info().n_parameters);
  json.Key("weight_bytes").Uint(model.info().weight_bytes);
  json.Key("target").String(model.info().target);
  json.Key("backend").String(arguments.session.backend);
  json.Key("kv").String(KvNames(arguments.session));
  json.Key("repeats").Uint(arguments.repeats);
  json.Key("cpus").String(arguments.device.cpus);
  json.Key("peak_rss").Uint(PeakRssBytes());
  json.Key("results").BeginArray();
  for (const Measurement& m : measurements) {
    WriteMeasurement(m, arguments.device.stats, limits, &json);
  }
  json.EndArray();
  if (!limits->all().empty()) {
    json.Key("limits").BeginArray();
    for (const auto& [n_threads, of] : limits->all()) WriteLimits(of, &json);
    json.EndArray();
  }
  Print(json.EndObject().Finish());
}

std::vector<Case> Cases(const BenchArguments& arguments) {
  std::vector<Case> cases;
  for (const uint32_t depth : ParseCounts(arguments.depth, "--depth")) {
    for (const uint32_t n : ParseCounts(arguments.prefill, "--prefill")) {
      if (n > 0) cases.push_back({CaseKind::kPrefill, n, depth});
    }
    for (const uint32_t n : ParseCounts(arguments.decode, "--decode")) {
      if (n > 0) cases.push_back({CaseKind::kDecode, n, depth});
    }
  }
  if (cases.empty() && !arguments.limits) {
    throw Error("nothing to measure: --prefill and --decode are both 0");
  }
  return cases;
}

// Returns the context, in tokens, that the longest case needs.
uint32_t NeededContext(const std::vector<Case>& cases, const Model& model) {
  uint64_t needed = 0;
  for (const Case& c : cases) {
    needed = std::max(needed, uint64_t{std::max(c.depth, 1u)} + c.tokens);
  }
  if (model.info().has_weights != 0 && needed > model.info().max_context) {
    throw Error(Format("depth and tokens need a context of %llu, the model was made for %u",
                       static_cast<unsigned long long>(needed), model.info().max_context));
  }
  return static_cast<uint32_t>(needed);
}

int RunRows(const BenchArguments& arguments) {
  const Model model = OpenModel(arguments.model);
  arn_session_options options = ToSessionOptions(arguments.session);
  ApplyDeviceOptions(arguments.device, &options);
  return BenchRows(
      model, options,
      {ParseCounts(arguments.rows, "--rows"), ParseCounts(arguments.depth, "--depth"),
       ParseCounts(arguments.threads, "--threads"), arguments.repeats, arguments.json});
}

std::vector<uint32_t> SequencesOf(const BenchArguments& arguments) {
  std::vector<uint32_t> counts = ParseCounts(arguments.sequences, "--sequences");
  for (const uint32_t n : counts) {
    if (n == 0 || n > kMostSequences) {
      throw Error(Format("--sequences %u: expected 1 to %u", n, kMostSequences));
    }
  }
  return counts;
}

int RunSpeculate(const BenchArguments& arguments) {
  const std::vector<uint32_t> sequences = SequencesOf(arguments);
  if (sequences.size() != 1) {
    throw Error("--speculate: --sequences takes one number, found '" + arguments.sequences + "'");
  }
  const std::vector<uint32_t> tokens = ParseCounts(arguments.decode, "--decode");
  if (tokens.size() != 1 || tokens[0] == 0) {
    throw Error("--speculate: --decode takes one number of tokens, found '" + arguments.decode +
                "'");
  }
  const Model model = OpenModel(arguments.model);
  const Draft draft(arguments.session);
  arn_session_options options = ToSessionOptions(arguments.session);
  ApplyDeviceOptions(arguments.device, &options);
  draft.AddTo(&options);
  return BenchSpeculate(
      model, options,
      {arguments.session.speculate, arguments.file, tokens[0], arguments.temperature,
       arguments.schedules, sequences[0], ParseCounts(arguments.threads, "--threads"),
       arguments.repeats, arguments.json});
}

int RunCount(const BenchArguments& arguments) {
  if (arguments.session.backend != "vulkan") {
    throw Error("--count counts what --backend vulkan does, not " + arguments.session.backend);
  }
  const Model model = OpenModel(arguments.model);
  const std::vector<uint32_t> decodes = ParseCounts(arguments.decode, "--decode");
  const bool decodes_any =
      std::any_of(decodes.begin(), decodes.end(), [](uint32_t n) { return n != 0; });
  return BenchCount(model, ToSessionOptions(arguments.session),
                    {arguments.profiles, ParseCounts(arguments.prefill, "--prefill"),
                     ParseCounts(arguments.depth, "--depth"), decodes_any, arguments.json});
}

int Run(const BenchArguments& arguments) {
  if (arguments.counts) return RunCount(arguments);
  if (!arguments.rows.empty()) return RunRows(arguments);
  if (arguments.session.speculate != "none") return RunSpeculate(arguments);
  std::vector<Case> cases = Cases(arguments);
  const std::vector<uint32_t> thread_counts = ParseCounts(arguments.threads, "--threads");
  std::vector<uint32_t> contexts = ParseCounts(arguments.context, "--context");
  const std::vector<uint32_t> sequence_counts = SequencesOf(arguments);
  const Model model = OpenModel(arguments.model);
  const uint32_t needed = NeededContext(cases, model);
  for (uint32_t& context : contexts) {
    if (context == 0) context = needed;
    if (context < needed) {
      throw Error(Format("--context %u: depth and tokens need %u", context, needed));
    }
  }
  const EncoderInput encoder_input = EncoderInput::ForMeasuring(model);
  arn_session_options options = ToSessionOptions(arguments.session);
  ApplyDeviceOptions(arguments.device, &options);
  encoder_input.SizeSession(&options);
  if (encoder_input.rows() > 0 && !cases.empty()) {
    cases.insert(cases.begin(), {CaseKind::kEncode, encoder_input.rows(), 0});
  }
  const Adapters adapters(model, arguments.adapters);
  adapters.AddTo(&options);
  std::vector<Measurement> measurements;
  LimitsByThreads limits;
  if (arguments.limits) {
    for (const uint32_t threads : thread_counts) {
      options.n_threads = threads;
      const limits::Limits& of = limits.Of(model.Plan(options).n_threads);
      if (!arguments.json) Print(LimitsLine(of));
    }
    if (!arguments.json) Print("\n");
  }
  if (!arguments.json && !cases.empty()) PrintHeader();
  const auto measure = [&](uint32_t threads, uint32_t context, uint32_t sequences) {
    options.n_threads = threads;
    options.context_tokens = context;
    options.max_sequences = sequences;
    if (arguments.schedules) options.max_requests = sequences;
    const Session session(model, options);
    adapters.Use(session, sequences);
    const CancelOnSignal cancel(session.get());
    Bench bench(session, encoder_input, model.info().vocab, sequences, arguments.schedules);
    for (const Case& c : cases) {
      measurements.push_back(bench.Run(c, arguments.repeats, arguments.seconds, arguments.profile));
      Measurement& m = measurements.back();
      m.threads = model.Plan(options).n_threads;
      m.context = context;
      m.sequences = c.kind == CaseKind::kDecode ? sequences : 1;
      if (arguments.device.stats) m.device.residency = model.Residency();
      if (!arguments.json) PrintRow(m);
      if (!arguments.json && arguments.device.stats) PrintDevice(m);
    }
  };
  for (const uint32_t threads : thread_counts) {
    for (const uint32_t context : contexts) {
      for (const uint32_t sequences : cases.empty() ? std::vector<uint32_t>() : sequence_counts) {
        measure(threads, context, sequences);
      }
    }
  }
  if (arguments.json) {
    PrintJson(arguments, model, measurements, &limits);
  } else {
    PrintProfiles(measurements, &limits);
  }
  return 0;
}

}  // namespace

Command AddBench(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("bench", "Measures the speed of prefill and decode");
  const auto arguments = std::make_shared<BenchArguments>();
  AddModelOptions(sub, &arguments->model);
  sub->add_option("-p,--prefill", arguments->prefill,
                  "Numbers of tokens to prefill, such as 128,512 (0: none)")
      ->capture_default_str();
  sub->add_option("-n,--decode", arguments->decode, "Numbers of tokens to decode (0: none)")
      ->capture_default_str();
  sub->add_option("-d,--depth", arguments->depth,
                  "Numbers of tokens already in the sequence, such as 0,2048")
      ->capture_default_str();
  sub->add_option("-c,--context", arguments->context,
                  "Context sizes in tokens, such as 2048,32768 (0: no more than needed)")
      ->capture_default_str();
  sub->add_option("-t,--threads", arguments->threads,
                  "Numbers of threads, such as 1,2 (0: one per performance core)")
      ->capture_default_str();
  sub->add_option("-r,--repeats", arguments->repeats, "Runs of each case, after one warm-up run")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  sub->add_option("--seconds", arguments->seconds,
                  "Repeats each case for this many seconds, to show thermal throttling")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  AddEngineOptions(sub, &arguments->session);
  AddDeviceOptions(sub, &arguments->device);
  sub->add_option(
         "--sequences", arguments->sequences,
         "Numbers of sequences that decode together, such as 1,4,8; tokens/s is their total")
      ->capture_default_str();
  sub->add_flag("--scheduler", arguments->schedules,
                "Decodes them as requests of a scheduler (arn_scheduler); with --speculate every "
                "sequence answers the text");
  AddNoCacheOption(sub, &arguments->session);
  AddAdapterOption(sub, &arguments->adapters);
  CLI::Option* rows = sub->add_option(
      "--rows", arguments->rows,
      "Instead: measures runs of so many tokens of one sequence, such as 1,2,4,8,16, with the "
      "logits of each, at every --depth");
  AddSpeculateOptions(sub, &arguments->session);
  CLI::Option* speculate = sub->get_option("--speculate");
  CLI::Option* file = sub->add_option(
      "--file", arguments->file,
      "With --speculate: the text after which --decode tokens are generated, without and with "
      "guesses in turn");
  file->needs(speculate);
  speculate->needs(file);
  rows->excludes(speculate);
  sub->get_option("--adapter")->excludes(rows)->excludes(speculate);
  sub->add_option("--temperature", arguments->temperature,
                  "With --speculate: 0 is greedy; more makes texts that guesses cannot foresee")
      ->check(CLI::Range(0.0f, 100.0f))
      ->needs(speculate)
      ->capture_default_str();
  CLI::Option* counts = sub->add_flag(
      "--count", arguments->counts,
      "Instead, with --backend vulkan: counts what a GPU would do, without one: dispatches, bytes\n"
      "and operations of each kernel, and the time that the GPU's limits allow");
  sub->add_option("--device-profile", arguments->profiles, "With --count: the GPUs")
      ->check(CLI::IsMember(DeviceProfileNames()))
      ->delimiter(',')
      ->needs(counts)
      ->capture_default_str();
  counts->excludes(rows)->excludes(speculate);
  sub->add_flag("--profile", arguments->profile,
                "Also runs each case once more and prints time, bytes and operations of each\n"
                "kind of step, and the share of the machine's limits that it reaches");
  sub->add_flag("--limits", arguments->limits,
                "Measures the machine's limits: memory bandwidth, int8 and f32 arithmetic");
  sub->add_flag("--json", arguments->json, "Prints one JSON object instead of a table");
  sub->footer(
      "Options that take several numbers measure every combination. The table shows the median\n"
      "of the repeats. GB/s: the bytes of weights and KV that a decode step reads, times steps\n"
      "per second. A profile shows the calling thread's time; bytes are weights and KV, each\n"
      "read once per run; a multiply-add counts as two operations; the limit is memory bandwidth\n"
      "or arithmetic, whichever would take longer. serial: the share of the one-thread time that\n"
      "more threads do not shorten, if -t lists 1 and other numbers. Examples:\n"
      "  arenite bench model.arn -p 128,512 -n 128 -d 0,2048 -t 1,2 --kv int8\n"
      "  arenite bench model.arn -p 0 -n 128 --sequences 1,4,8,16\n"
      "  arenite bench model.arn --profile -t 1,2\n"
      "  arenite bench model.arn --rows 1,2,4,8,16 -d 0,2048\n"
      "  arenite bench model.arn --speculate ngram --file text.txt -n 256\n"
      "  arenite bench model.arn -p 0 -n 16 -d 256 --no-cache");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool

// arenite run: generates text from a prompt.
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "CLI/CLI.hpp"
#include "tools/arenite/adapters.h"
#include "tools/arenite/commands.h"
#include "tools/arenite/constraint.h"
#include "tools/arenite/device.h"
#include "tools/arenite/draft.h"
#include "tools/arenite/encoder_input.h"
#include "tools/arenite/guard.h"
#include "tools/arenite/images.h"
#include "tools/arenite/interrupt.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"
#include "tools/arenite/memory_report.h"
#include "tools/arenite/options.h"
#include "tools/arenite/prefill_progress.h"
#include "tools/arenite/run_beams.h"
#include "tools/arenite/sampling.h"
#include "tools/arenite/spill.h"

namespace arn::tool {
namespace {

struct RunArguments {
  ModelArguments model;
  SessionArguments session;
  PromptArguments prompt;
  EncoderArguments encoder_input;
  uint32_t max_tokens = 256;
  uint32_t completions = 1;
  std::optional<uint32_t> logprobs;
  SamplingArguments sampling;
  ConstraintArguments constraint;
  DeviceArguments device;
  BeamArguments beams;
  std::vector<std::string> stops, adapters, images;
  bool ignore_eos = false, json = false, quiet = false;
  std::string save, restore, kv_file;
};

// Room for the lists of a restored session's sampling.
constexpr uint32_t kRestoredSamplingWords = 4096;

struct TokenLogprobs {
  float chosen = 0;
  std::vector<arn_token_logprob> top;
};

// A generated text.
struct Completion {
  std::vector<int32_t> ids;
  std::string text;
  std::vector<TokenLogprobs> logprobs;  // per token, if asked for
  uint32_t finish = ARN_FINISH_NONE;
};

// Output so far. Filled by the token callback.
struct Output {
  const arn_session* session = nullptr;
  std::optional<uint32_t> logprobs;
  bool is_streaming = false;
  bool shows_ids = false;  // no tokenizer: shows token ids only
  bool has_failed = false;
  arn_status status = ARN_OK;
  Completion now;
  Guard guard;
};

struct Outcome {
  std::vector<int32_t> prompt_ids;
  std::vector<float> embeddings;  // of the images among them
  std::vector<Completion> completions;
  SamplingArguments sampling_arguments;       // what `sampling` refers to
  arn_sampling sampling = ARN_SAMPLING_INIT;  // greedy also if a restored session keeps its own
  uint32_t kept_tokens = 0;                   // prompt tokens reused from the bundle's prefix
  double load_ms = 0;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  DeviceState state;
  std::optional<arn_constraint_stats_data> constraint;
  std::string backend, device, kernels, quirks, why_not_device;  // of the backend at the end
  uint64_t imported_bytes = 0;                                   // likewise
};

// Returns the last text of the prompt, by which a reply may begin inside its reasoning.
std::string EndOfPrompt(const Model& model, const std::vector<int32_t>& ids) {
  constexpr ptrdiff_t kTokens = 32;
  const ptrdiff_t n = std::min<ptrdiff_t>(kTokens, static_cast<ptrdiff_t>(ids.size()));
  return model.Detokenize({ids.end() - n, ids.end()}, ARN_DETOKENIZE_DEFAULT);
}

// Returns the tokens to prefill: the prompt's or, for a restored session, the added ones, possibly
// none.
std::vector<int32_t> IdsToPrefill(const Model& model, const RunArguments& arguments) {
  const PromptArguments& prompt = arguments.prompt;
  if (arguments.restore.empty()) return PromptIds(model, prompt);
  if (!prompt.IsGiven()) return {};
  if (prompt.ids) return ParseIds(*prompt.ids, "--prompt-ids");
  // No BOS: the sequence has already begun.
  return model.Tokenize(ReadPrompt(prompt), ARN_TOKENIZE_NO_SPECIAL);
}

// Reads the images, and the prompt with their tokens. Images without a marker come first.
void ReadImages(const Model& model, const RunArguments& arguments, Outcome* outcome) {
  if (arguments.prompt.ids) throw Error("--image: give the prompt as text");
  const ImageList images =
      EncodeImages(model, arguments.images, ToSessionOptions(arguments.session));
  const std::string marker = ImageInfo(model).marker;
  PromptText prompt = {ReadPrompt(arguments.prompt), {}};
  if (prompt.text.find(marker) == std::string::npos) {
    for (size_t i = 0; i < images.size(); ++i) prompt.text.insert(0, marker);
  }
  outcome->prompt_ids =
      model.Tokenize(ExpandImages(model, prompt, images).text, ARN_TOKENIZE_DEFAULT);
  outcome->embeddings = EmbeddingsOf(images);
}

// True if a restored session keeps its sampling and its random numbers: no sampling flag is given.
bool KeepsSampling(const RunArguments& arguments) {
  return !arguments.restore.empty() && !IsGiven(arguments.sampling);
}

int32_t Take(Output* to, int32_t id, const char* text, size_t text_bytes) {
  Output& output = *to;
  if (id >= 0) output.now.ids.push_back(id);
  if (text_bytes > 0) output.now.text.append(text, text_bytes);
  if (id >= 0 && output.logprobs) {
    TokenLogprobs& token = output.now.logprobs.emplace_back();
    token.top.resize(*output.logprobs);
    output.status =
        arn_session_logprobs(output.session, id, *output.logprobs, token.top.data(), &token.chosen);
    if (output.status != ARN_OK) return 1;
  }
  if (!output.is_streaming) return 0;
  const bool shows_id = output.shows_ids && id >= 0;
  output.has_failed = output.has_failed ||
                      (shows_id && std::printf(output.now.ids.size() > 1 ? " %d" : "%d", id) < 0) ||
                      (text_bytes > 0 && std::fwrite(text, 1, text_bytes, stdout) != text_bytes) ||
                      std::fflush(stdout) != 0;
  return output.has_failed ? 1 : 0;
}

int32_t OnToken(void* user, int32_t id, const char* text, size_t text_bytes) {
  Output* const output = static_cast<Output*>(user);
  return output->guard.Run([&] { return Take(output, id, text, text_bytes); });
}

// A text under a constraint goes on unless a prompt or a constraint begins another.
bool KeepsConstraint(const RunArguments& arguments) {
  return !arguments.restore.empty() && !arguments.prompt.IsGiven() &&
         !HasConstraint(arguments.constraint);
}

void Restore(const RunArguments& arguments, const Session& session) {
  const std::string& path = arguments.restore;
  arn_restore_options options = ARN_RESTORE_OPTIONS_INIT;
  options.no_constraints = KeepsConstraint(arguments) ? 0 : 1;
  const arn_status status = arn_session_restore(session.get(), path.c_str(), &options);
  if (status == ARN_BAD_SAVE || status == ARN_HASH_MISMATCH) {
    throw Error(path + ": not a session that --save wrote, or a damaged one: " +
                arn_session_last_error(session.get()));
  }
  session.Check(status);
}

// Refuses a prompt that no session of this context takes.
void CheckRoom(const Outcome& outcome, const SessionArguments& session) {
  const size_t n = outcome.prompt_ids.size();
  const uint32_t context = outcome.plan.context_tokens;
  if (n <= context || session.overflow == "shift") return;
  throw Error(
      Format("the prompt has %zu tokens, more than the context of %u: raise --context, or "
             "drop the oldest tokens with --overflow shift",
             n, context));
}

// Texts that have ended go on without their constraint.
void Save(const RunArguments& arguments, const Outcome& outcome, const Session& session) {
  for (uint32_t i = 0; i < outcome.completions.size(); ++i) {
    if (outcome.completions[i].finish != ARN_FINISH_EOS || !outcome.constraint) continue;
    if (outcome.completions.size() > 1) session.Check(arn_session_select(session.get(), i));
    DropConstraint(session);
  }
  session.Check(arn_session_save(session.get(), arguments.save.c_str()));
}

// Generates a completion of the selected sequence.
arn_status Complete(const RunArguments& arguments, const Session& session, Output* output,
                    Outcome* outcome) {
  output->now = Completion();
  std::vector<arn_stop_string> stops;
  for (const std::string& stop : arguments.stops) stops.push_back({stop.data(), stop.size()});
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = arguments.max_tokens;
  options.ignore_eos = arguments.ignore_eos ? 1 : 0;
  options.stops = stops.data();
  options.n_stops = stops.size();
  options.callback = OnToken;
  options.user = output;
  options.with_logprobs = arguments.logprobs ? 1 : 0;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  const arn_status status = arn_session_generate(session.get(), &options, &result);
  output->guard.Rethrow();
  session.Check(output->status);
  output->now.finish = status == ARN_CANCELLED ? uint32_t{ARN_FINISH_CANCELLED} : result.finish;
  // The callback also gets a token that the run then cancelled.
  if (output->logprobs) output->now.logprobs.resize(output->now.ids.size());
  outcome->completions.push_back(output->now);
  return status;
}

// Prefills, and generates the completions, each in a fork of the prompt. A signal ends it with
// ARN_FINISH_CANCELLED.
void Generate(const RunArguments& arguments, const EncoderInput& encoder_input,
              const Session& session, Output* output, Outcome* outcome) {
  const CancelOnSignal cancel(session.get());
  PrefillProgress progress(session, arguments.quiet);
  encoder_input.Encode(session);
  arn_status status = ARN_OK;
  const std::vector<int32_t>& ids = outcome->prompt_ids;
  // A prompt longer than the context is prefilled chunk by chunk, if the session allows it.
  if (!outcome->embeddings.empty()) {
    status =
        arn_session_prefill_embeddings(session.get(), ids.data(), ids.size(),
                                       outcome->embeddings.data(), outcome->plan.embedding_rows);
  } else if (arguments.restore.empty() && ids.size() <= outcome->plan.context_tokens) {
    status = arn_session_follow(session.get(), ids.data(), ids.size(), &outcome->kept_tokens);
  } else if (!ids.empty()) {
    status = arn_session_prefill(session.get(), ids.data(), ids.size());
  }
  progress.Clear();
  for (uint32_t i = 1; i < arguments.completions && status == ARN_OK; ++i) {
    status = arn_session_fork(session.get(), 0, i);
  }
  for (uint32_t i = 0; i < arguments.completions && status == ARN_OK; ++i) {
    if (arguments.completions > 1) session.Check(arn_session_select(session.get(), i));
    if (i > 0 && output->is_streaming) Print("\n---\n");
    status = Complete(arguments, session, output, outcome);
  }
  if (status != ARN_CANCELLED) session.Check(status);
  if (outcome->completions.empty()) {
    outcome->completions.emplace_back().finish = ARN_FINISH_CANCELLED;
  }
}

void WriteCompletion(const Completion& completion, JsonWriter* json) {
  json->Key("ids").Ids(completion.ids);
  json->Key("text").String(completion.text);
  json->Key("finish").String(FinishName(completion.finish));
  if (completion.logprobs.empty()) return;
  json->Key("logprobs").BeginArray();
  for (size_t i = 0; i < completion.logprobs.size(); ++i) {
    const TokenLogprobs& token = completion.logprobs[i];
    json->BeginObject();
    json->Key("id").Int(completion.ids[i]);
    json->Key("logprob").Number(static_cast<double>(token.chosen));
    json->Key("top").BeginArray();
    for (const arn_token_logprob& top : token.top) {
      json->BeginObject();
      json->Key("id").Int(top.id);
      json->Key("logprob").Number(static_cast<double>(top.logprob));
      json->EndObject();
    }
    json->EndArray();
    json->EndObject();
  }
  json->EndArray();
}

void PrintJson(const Outcome& outcome, bool with_stats) {
  JsonWriter json;
  json.BeginObject();
  json.Key("prompt_ids").Ids(outcome.prompt_ids);
  WriteCompletion(outcome.completions[0], &json);
  if (outcome.completions.size() > 1) {
    json.Key("completions").BeginArray();
    for (const Completion& completion : outcome.completions) {
      json.BeginObject();
      WriteCompletion(completion, &json);
      json.EndObject();
    }
    json.EndArray();
  }
  if (outcome.sampling.temperature != 0.0f) json.Key("seed").Uint(outcome.sampling.seed);
  if (outcome.constraint) WriteConstraint(*outcome.constraint, &json);
  json.Key("sampling").BeginObject();
  WriteSampling(outcome.sampling, &json);
  json.EndObject();
  json.Key("prefix_tokens").Uint(outcome.kept_tokens);
  json.Key("prefill_tokens").Uint(outcome.state.stats.prefill_tokens);
  json.Key("prefill_tokens_per_s")
      .Number(PerSecond(outcome.state.stats.prefill_tokens, outcome.state.stats.prefill_ns));
  json.Key("decode_tokens_per_s")
      .Number(PerSecond(outcome.state.stats.decode_tokens, outcome.state.stats.decode_ns));
  json.Key("load_ms").Number(outcome.load_ms);
  json.Key("backend").String(outcome.backend);
  json.Key("backend_device").String(outcome.device);
  json.Key("backend_kernels").String(outcome.kernels);
  json.Key("backend_quirks").String(outcome.quirks);
  json.Key("backend_imported").Uint(outcome.imported_bytes);
  json.Key("why_not_device").String(outcome.why_not_device);
  json.Key("memory").BeginObject();
  WriteRegions(outcome.plan, &json);
  json.Key("kv_used").Uint(outcome.state.stats.kv_used_bytes);
  json.Key("peak_rss").Uint(PeakRssBytes());
  json.EndObject();
  if (with_stats) WriteDevice(outcome.state, &json);
  Print(json.EndObject().Finish());
}

void PrintReport(const Outcome& outcome, bool with_stats) {
  const std::string kept = outcome.kept_tokens == 0
                               ? ""
                               : Format(", %u of them the bundle's prefix", outcome.kept_tokens);
  // A cancelled prompt has been read in part.
  const uint64_t n_read = outcome.kept_tokens + outcome.state.stats.prefill_tokens;
  const std::string part = n_read >= outcome.prompt_ids.size()
                               ? ""
                               : Format("%llu of ", static_cast<unsigned long long>(n_read));
  std::fprintf(stderr, "\nprompt    %s%zu tokens%s, %.1f tokens/s\n", part.c_str(),
               outcome.prompt_ids.size(), kept.c_str(),
               PerSecond(outcome.state.stats.prefill_tokens, outcome.state.stats.prefill_ns));
  size_t n_tokens = 0;
  for (const Completion& completion : outcome.completions) n_tokens += completion.ids.size();
  std::fprintf(stderr, "decode    %zu tokens, %.1f tokens/s, finished by: %s\n", n_tokens,
               PerSecond(outcome.state.stats.decode_tokens, outcome.state.stats.decode_ns),
               FinishName(outcome.completions.back().finish));
  const std::string sampling = DescribeSampling(outcome.sampling);
  if (outcome.constraint) {
    std::fprintf(stderr, "%s\n", ConstraintLine(*outcome.constraint).c_str());
  }
  if (!sampling.empty()) std::fprintf(stderr, "sampling  %s\n", sampling.c_str());
  std::fprintf(stderr, "load      %.1f ms\n", outcome.load_ms);
  if (!outcome.device.empty() || !outcome.why_not_device.empty()) {
    std::fprintf(stderr, "backend   %s: %s%s\n", outcome.backend.c_str(), outcome.device.c_str(),
                 outcome.why_not_device.c_str());
  }
  if (!outcome.kernels.empty()) std::fprintf(stderr, "kernels   %s\n", outcome.kernels.c_str());
  if (!outcome.quirks.empty()) std::fprintf(stderr, "quirks    %s\n", outcome.quirks.c_str());
  if (outcome.imported_bytes != 0) {
    std::fprintf(stderr, "imported  %s of weights, read in the bundle's pages\n",
                 HumanBytes(outcome.imported_bytes).c_str());
  }
  std::fprintf(stderr, "memory    %s\n",
               MemoryLine(outcome.plan, outcome.state.stats.kv_used_bytes).c_str());
  std::fprintf(stderr, "peak RSS  %s\n", HumanBytes(PeakRssBytes()).c_str());
  if (with_stats) std::fputs(DeviceReport(outcome.state).c_str(), stderr);
}

int Run(RunArguments arguments) {
  const EncoderArguments& encoder = arguments.encoder_input;
  const bool has_encoder_input = encoder.text || encoder.ids || encoder.features;
  if (arguments.restore.empty() && !has_encoder_input && !UsePipe(&arguments.prompt)) {
    throw CLI::ValidationError(
        "no prompt: give --prompt TEXT, --prompt-file FILE, --prompt-ids IDS or --restore FILE, or "
        "a text on standard input");
  }
  if (!arguments.restore.empty() && has_encoder_input) {
    throw CLI::ValidationError("--restore has the encoder's output: leave its input out");
  }
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  Outcome outcome;
  const Clock::time_point open_start = Clock::now();
  const Model model = OpenModel(arguments.model);
  outcome.load_ms = Milliseconds(Clock::now() - open_start).count();

  // A restored session has the encoder's output.
  const EncoderInput encoder_input =
      arguments.restore.empty() ? EncoderInput(model, arguments.encoder_input) : EncoderInput();
  if (arguments.images.empty()) {
    outcome.prompt_ids = IdsToPrefill(model, arguments);
  } else {
    ReadImages(model, arguments, &outcome);
  }
  const bool is_open_ended = arguments.max_tokens == 0 || !arguments.restore.empty();
  const uint64_t most_tokens =
      is_open_ended ? MaxContext(arguments.session, model) : arguments.max_tokens;
  arn_session_options options = ToSessionOptions(arguments.session);
  ApplyDeviceOptions(arguments.device, &options);
  const Adapters adapters(model, arguments.adapters);
  adapters.AddTo(&options);
  const Draft draft(arguments.session);
  draft.AddTo(&options);
  if (!outcome.embeddings.empty()) {
    options.embedding_rows =
        static_cast<uint32_t>(outcome.embeddings.size() / ImageInfo(model).width);
  }
  // A saved state fits sessions with as many encoder rows: those of the model.
  if (arguments.save.empty() && arguments.restore.empty()) encoder_input.SizeSession(&options);
  options.context_tokens =
      ChooseContext(arguments.session, model, outcome.prompt_ids.size() + most_tokens);
  if (!arguments.restore.empty() && TakesImages(model)) {
    options.embedding_rows = options.context_tokens;  // as many as the saved one may have
  }
  std::optional<ConstraintText> constraint;
  if (HasConstraint(arguments.constraint)) {
    constraint.emplace(arguments.constraint);
    ReserveConstraint(*constraint, &options);
  }
  if (KeepsConstraint(arguments)) ReserveSavedConstraint(arguments.constraint, model, &options);
  const bool keeps_sampling = KeepsSampling(arguments);
  if (!keeps_sampling) {
    outcome.sampling_arguments = WithTexts(arguments.sampling, model);
    outcome.sampling = ChooseSampling(outcome.sampling_arguments, model.get());
    ReserveSampling(outcome.sampling, &options);
    if (arguments.completions > 1 && outcome.sampling.temperature == 0.0f) {
      throw Error("--completions: all would be the same, because the sampling is greedy");
    }
  } else {
    options.logits_processors = 1;  // in case the saved sampling has some
    options.sampling_words = kRestoredSamplingWords;
  }
  if (arguments.completions > 1) options.max_sequences = arguments.completions;
  if (arguments.beams.beams > 0) options.max_sequences = arguments.beams.beams;
  const std::string kv_file = ChooseKvFile(arguments.kv_file, model, options, arguments.quiet);
  if (!kv_file.empty()) options.kv_file = kv_file.c_str();
  if (arguments.beams.beams > 0) {
    return RunBeams(model,
                    {arguments.beams, options, outcome.prompt_ids, arguments.max_tokens,
                     arguments.ignore_eos, arguments.json, arguments.quiet, &encoder_input,
                     constraint ? &*constraint : nullptr, outcome.sampling, &adapters},
                    outcome.load_ms);
  }
  outcome.plan = model.Plan(options);
  CheckRoom(outcome, arguments.session);
  const Clock::time_point create_start = Clock::now();
  const Session session(model, options);
  adapters.Use(session, options.max_sequences);
  if (!arguments.restore.empty()) Restore(arguments, session);
  outcome.load_ms += Milliseconds(Clock::now() - create_start).count();
  if (!keeps_sampling) {
    session.Check(arn_session_set_sampling(session.get(), &outcome.sampling));
  }

  if (constraint) {
    SetConstraint(*constraint, session,
                  constraint->is_tool_calls() ? EndOfPrompt(model, outcome.prompt_ids) : "");
  }

  Output output;
  output.session = session.get();
  output.logprobs = arguments.logprobs;
  output.is_streaming = !arguments.json;
  output.shows_ids = model.info().has_tokenizer == 0;
  Generate(arguments, encoder_input, session, &output, &outcome);
  outcome.constraint = ReadConstraint(session);
  if (!arguments.save.empty()) Save(arguments, outcome, session);
  if (output.has_failed) throw Error("cannot write to standard output");
  outcome.state = ReadDevice(session);
  if (arguments.device.stats) outcome.state.residency = model.Residency();
  const arn_backend_info backend = session.Backend();
  outcome.backend = backend.name;
  outcome.device = backend.device;
  outcome.kernels = backend.kernels;
  outcome.quirks = backend.quirks;
  outcome.imported_bytes = backend.imported_bytes;
  outcome.why_not_device = backend.reason;

  if (arguments.json) {
    PrintJson(outcome, arguments.device.stats);
  } else {
    Print("\n");
  }
  if (!arguments.quiet && !arguments.json) PrintReport(outcome, arguments.device.stats);
  return outcome.completions.back().finish == ARN_FINISH_CANCELLED ? kExitInterrupted : 0;
}

}  // namespace

Command AddRun(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("run", "Generates text from a prompt");
  const auto arguments = std::make_shared<RunArguments>();
  AddModelOptions(sub, &arguments->model);
  AddPromptOptions(sub, &arguments->prompt, 0);
  AddEncoderOptions(sub, &arguments->encoder_input);
  CLI::Option* image =
      sub->add_option("--image", arguments->images,
                      "PNG or JPEG file; may be repeated. Images are where the prompt has the "
                      "model's marker (<image>), or come first");
  CLI::Option* restore =
      sub->add_option("--restore", arguments->restore,
                      "Continues the session saved in this file; a prompt is appended to it. Its "
                      "sampling continues too unless a sampling flag is given, and a text under a "
                      "constraint unless there is a prompt or a constraint");
  CLI::Option* save =
      sub->add_option("--save", arguments->save, "Saves the session to this file at the end");
  AddKvFileOption(sub, &arguments->kv_file);
  AddAdapterOption(sub, &arguments->adapters);
  sub->add_option("--max-tokens", arguments->max_tokens,
                  "Maximum number of new tokens (0: until a stop token or a full context)")
      ->capture_default_str();
  CLI::Option* completions =
      sub->add_option("-n,--completions", arguments->completions,
                      "Generates this many texts from one prompt, each with its own random numbers")
          ->check(CLI::Range(1u, 1024u))
          ->capture_default_str();
  CLI::Option* logprobs =
      sub->add_option("--logprobs", arguments->logprobs,
                      "With --json: the log-probability of each token and the N most likely ones, "
                      "in the model's own distribution")
          ->check(CLI::Range(0u, 1000u));
  CLI::Option* stop = AddStopOption(sub, &arguments->stops);
  sub->add_flag("--ignore-eos", arguments->ignore_eos, "Continues after a stop token");
  CLI::Option_group* sampling = AddSamplingOptions(sub, &arguments->sampling);
  AddConstraintOptions(sub, &arguments->constraint, 0);
  CLI::Option* beams = AddBeamOptions(sub, &arguments->beams);
  for (CLI::Option* option : {stop, save, restore, completions, logprobs, image}) {
    beams->excludes(option);
  }
  image->excludes(restore);
  for (CLI::Option* option : DrawOptions(sampling)) beams->excludes(option);
  AddSessionOptions(sub, &arguments->session, "what prompt and new tokens need");
  AddOverflowOptions(sub, &arguments->session);
  AddNoCacheOption(sub, &arguments->session);
  AddSpeculateOptions(sub, &arguments->session);
  AddDeviceOptions(sub, &arguments->device);
  logprobs->needs(sub->add_flag("--json", arguments->json,
                                "Prints one JSON object at the end instead of streaming the text"));
  sub->add_flag("--quiet", arguments->quiet, "Prints no report to stderr at the end");
  sub->footer(
      "Streams the text to stdout and prints the report to stderr. Examples:\n"
      "  arenite run story.arn --prompt \"Once upon a time\" --temperature 0.8 --seed 7\n"
      "  echo \"Once upon a time\" | arenite run story.arn\n"
      "  arenite run story.arn --prompt-file long.txt --context 512 --overflow shift --pinned 32\n"
      "  arenite run model.arn --prompt \"Paris is \" --choices \"in France,in Spain\"\n"
      "  arenite run vlm.arn --image cat.png --prompt \"<image>What is this?\"\n"
      "  arenite run t5.arn --encoder-text \"translate English to German: Good day.\"");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool

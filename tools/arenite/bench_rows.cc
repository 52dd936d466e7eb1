#include "tools/arenite/bench_rows.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "tools/arenite/interrupt.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"

namespace arn::tool {
namespace {

// Runs of one number of rows whose mean is one sample.
constexpr uint32_t kRunsPerSample = 8;
// Makes guesses, and the times that decide about them, as they are in the middle of a text.
constexpr uint32_t kWarmUps = 1;

struct Samples {
  std::vector<double> values;

  double Lowest() const { return *std::min_element(values.begin(), values.end()); }
  double Highest() const { return *std::max_element(values.begin(), values.end()); }
  double Median() const {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const size_t n = sorted.size();
    return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
  }
};

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<int32_t> SpreadIds(size_t n, uint32_t vocab) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(i * 7919 % vocab));
  return ids;
}

void WriteSamples(const char* name, const Samples& samples, JsonWriter* json) {
  json->Key(name).BeginObject();
  json->Key("median").Number(samples.Median());
  json->Key("lowest").Number(samples.Lowest());
  json->Key("highest").Number(samples.Highest());
  json->EndObject();
}

// One generation after the prompt, which is in the sequence.
struct Generated {
  std::vector<int32_t> ids;
  double tokens_per_s = 0;
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
};

Generated GenerateOnce(const Session& session, const std::vector<int32_t>& prompt,
                       const SpeculateRequest& request, bool guesses) {
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = request.temperature;
  sampling.seed = 1;
  session.Check(arn_session_set_sampling(session.get(), &sampling));
  session.Check(arn_session_follow(session.get(), prompt.data(), prompt.size(), nullptr));
  session.Check(arn_session_reset_stats(session.get()));
  Generated out;
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = request.tokens;
  options.ignore_eos = 1;
  options.no_guesses = guesses ? 0 : 1;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  session.Check(arn_session_generate(session.get(), &options, &result));
  out.stats = session.Stats();
  out.tokens_per_s = out.stats.decode_tokens_per_s;
  const int32_t* ids = nullptr;
  uint32_t n = 0;
  session.Check(arn_session_tokens(session.get(), &ids, &n));
  out.ids.assign(ids, ids + n);
  return out;
}

// Answers the text once for each sequence of a scheduler, all together.
Generated ScheduleOnce(const Session& session, const std::vector<int32_t>& prompt,
                       const SpeculateRequest& request, bool guesses) {
  arn_scheduler* created = nullptr;
  session.Check(arn_scheduler_create(session.get(), nullptr, nullptr, 0, &created));
  const std::unique_ptr<arn_scheduler, decltype(&arn_scheduler_destroy)> scheduler(
      created, arn_scheduler_destroy);
  std::vector<std::vector<int32_t>> replies(request.sequences);
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = request.temperature;
  for (uint32_t i = 0; i < request.sequences; ++i) {
    sampling.seed = 1 + i;
    arn_request asked = ARN_REQUEST_INIT;
    asked.ids = prompt.data();
    asked.n_ids = prompt.size();
    asked.sampling = &sampling;
    asked.max_tokens = request.tokens;
    asked.ignore_eos = 1;
    asked.no_guesses = guesses ? 0 : 1;
    asked.user = &replies[i];
    uint64_t number = 0;
    session.Check(arn_scheduler_submit(scheduler.get(), &asked, &number));
  }
  session.Check(arn_session_reset_stats(session.get()));
  arn_step_result step = ARN_STEP_RESULT_INIT;
  do {
    session.Check(arn_scheduler_step(scheduler.get(), &step));
    arn_scheduler_event event = ARN_SCHEDULER_EVENT_INIT;
    while (arn_scheduler_next_event(scheduler.get(), &event) == ARN_OK) {
      session.Check(event.status);
      if (event.kind != ARN_REQUEST_EVENT_TOKEN) continue;
      static_cast<std::vector<int32_t>*>(event.user)->push_back(event.id);
    }
  } while (step.n_running + step.n_waiting > 0);
  Generated out;
  out.stats = session.Stats();
  out.tokens_per_s = out.stats.decode_tokens_per_s;
  arn_scheduler_info info = ARN_SCHEDULER_INFO_INIT;
  arn_scheduler_get_info(scheduler.get(), &info);
  out.stats.guess_runs = info.guess_steps;
  for (const std::vector<int32_t>& reply : replies) {
    out.ids.insert(out.ids.end(), reply.begin(), reply.end());
  }
  return out;
}

}  // namespace

int BenchRows(const Model& model, arn_session_options options, const RowsRequest& request) {
  std::vector<uint32_t> rows = request.rows;
  if (std::find(rows.begin(), rows.end(), 1u) == rows.end()) rows.insert(rows.begin(), 1);
  const uint32_t most = *std::max_element(rows.begin(), rows.end());
  if (*std::min_element(rows.begin(), rows.end()) == 0) throw Error("--rows: 0 rows run nothing");
  const uint32_t deepest = *std::max_element(request.depths.begin(), request.depths.end());
  options.all_logits = 1;
  options.prefill_chunk = std::max(options.prefill_chunk, most);
  options.context_tokens = deepest + most;
  JsonWriter json;
  json.BeginObject().Key("results").BeginArray();
  if (!request.json) {
    Print(
        "| rows |  depth | threads | ms         | lowest     | highest    | to one row |\n"
        "|-----:|-------:|--------:|-----------:|-----------:|-----------:|-----------:|\n");
  }
  for (const uint32_t threads : request.threads) {
    options.n_threads = threads;
    const Session session(model, options);
    const CancelOnSignal cancel(session.get());
    for (const uint32_t depth : request.depths) {
      const std::vector<int32_t> ids = SpreadIds(depth + most, model.info().vocab);
      session.Check(arn_session_reset(session.get()));
      if (depth > 0) session.Check(arn_session_prefill(session.get(), ids.data(), depth));
      std::vector<Samples> samples(rows.size());
      for (uint32_t repeat = 0; repeat <= request.repeats; ++repeat) {
        for (size_t i = 0; i < rows.size(); ++i) {
          double seconds = 0;
          for (uint32_t run = 0; run < kRunsPerSample; ++run) {
            const float* logits = nullptr;
            const double start = NowSeconds();
            session.Check(
                arn_session_prefill_logits(session.get(), ids.data() + depth, rows[i], &logits));
            seconds += NowSeconds() - start;
            session.Check(arn_session_rewind(session.get(), depth));
          }
          if (repeat > 0) samples[i].values.push_back(1e3 * seconds / kRunsPerSample);
        }
      }
      const double one =
          samples[static_cast<size_t>(std::find(rows.begin(), rows.end(), 1u) - rows.begin())]
              .Median();
      for (size_t i = 0; i < rows.size(); ++i) {
        const Samples& s = samples[i];
        const uint32_t n_threads = model.Plan(options).n_threads;
        if (!request.json) {
          Print(Format("| %4u | %6u | %7u | %10.3f | %10.3f | %10.3f | %10.2f |\n", rows[i], depth,
                       n_threads, s.Median(), s.Lowest(), s.Highest(), s.Median() / one));
          continue;
        }
        json.BeginObject();
        json.Key("rows").Uint(rows[i]);
        json.Key("depth").Uint(depth);
        json.Key("threads").Uint(n_threads);
        WriteSamples("ms", s, &json);
        json.Key("to_one_row").Number(s.Median() / one);
        json.EndObject();
      }
    }
  }
  if (request.json) Print(json.EndArray().EndObject().Finish());
  return 0;
}

int BenchSpeculate(const Model& model, arn_session_options options,
                   const SpeculateRequest& request) {
  const std::vector<int32_t> prompt = model.Tokenize(ReadFile(request.file), ARN_TOKENIZE_DEFAULT);
  if (prompt.empty()) throw Error(request.file + ": the text has no tokens");
  const uint64_t needed = prompt.size() + request.tokens;
  if (needed > model.info().max_context) {
    throw Error(
        Format("%s has %zu tokens: with --decode %u they need a context of %llu, the model "
               "was made for %u",
               request.file.c_str(), prompt.size(), request.tokens,
               static_cast<unsigned long long>(needed), model.info().max_context));
  }
  options.context_tokens = static_cast<uint32_t>(needed);
  if (request.schedules) options.max_requests = options.max_sequences = request.sequences;
  const auto generate = request.schedules ? ScheduleOnce : GenerateOnce;
  JsonWriter json;
  json.BeginObject().Key("prompt_tokens").Uint(prompt.size());
  json.Key("results").BeginArray();
  if (!request.json) {
    Print(
        "| guesses | threads | tokens/s   | lowest     | highest    | proposed | accepted |   runs "
        "|\n"
        "|---------|--------:|-----------:|-----------:|-----------:|---------:|---------:|-------:"
        "|\n");
  }
  for (const uint32_t threads : request.threads) {
    options.n_threads = threads;
    const Session session(model, options);
    const CancelOnSignal cancel(session.get());
    Samples speeds[2], ratios;
    Generated last;
    for (uint32_t repeat = 0; repeat < request.repeats + kWarmUps; ++repeat) {
      const Generated plain = generate(session, prompt, request, false);
      last = generate(session, prompt, request, true);
      if (plain.ids != last.ids) {
        const auto at = std::mismatch(plain.ids.begin(), plain.ids.end(), last.ids.begin()).first;
        const size_t n_before = request.schedules ? 0 : prompt.size();
        throw Error(Format("with guesses token %td is another one than without",
                           at - plain.ids.begin() - static_cast<ptrdiff_t>(n_before)));
      }
      if (repeat < kWarmUps) continue;
      speeds[0].values.push_back(plain.tokens_per_s);
      speeds[1].values.push_back(last.tokens_per_s);
      ratios.values.push_back(last.tokens_per_s / plain.tokens_per_s);
    }
    const uint32_t n_threads = model.Plan(options).n_threads;
    if (request.json) {
      json.BeginObject();
      json.Key("threads").Uint(n_threads);
      WriteSamples("plain_tokens_per_s", speeds[0], &json);
      WriteSamples("speculative_tokens_per_s", speeds[1], &json);
      WriteSamples("ratio", ratios, &json);
      json.Key("guesses_proposed").Uint(last.stats.guesses_proposed);
      json.Key("guesses_accepted").Uint(last.stats.guesses_accepted);
      json.Key("guess_runs").Uint(last.stats.guess_runs);
      json.Key("draft_ns").Uint(last.stats.draft_ns);
      json.Key("decode_ns").Uint(last.stats.decode_ns);
      json.EndObject();
      continue;
    }
    for (const bool guesses : {false, true}) {
      const Samples& s = speeds[guesses ? 1 : 0];
      Print(Format("| %-7s | %7u | %10.2f | %10.2f | %10.2f | %8llu | %8llu | %6llu |\n",
                   guesses ? request.drafter.c_str() : "none", n_threads, s.Median(), s.Lowest(),
                   s.Highest(),
                   static_cast<unsigned long long>(guesses ? last.stats.guesses_proposed : 0),
                   static_cast<unsigned long long>(guesses ? last.stats.guesses_accepted : 0),
                   static_cast<unsigned long long>(guesses ? last.stats.guess_runs : 0)));
    }
    const double share = last.stats.guesses_proposed == 0
                             ? 0.0
                             : 100.0 * static_cast<double>(last.stats.guesses_accepted) /
                                   static_cast<double>(last.stats.guesses_proposed);
    Print(Format("%.0f %% of the guesses accepted; %.2f times as fast (%.2f to %.2f in %u pairs)\n",
                 share, ratios.Median(), ratios.Lowest(), ratios.Highest(), request.repeats));
    if (last.stats.draft_ns != 0) {
      Print(Format("the drafter took %.0f %% of the time\n",
                   100.0 * static_cast<double>(last.stats.draft_ns) /
                       static_cast<double>(last.stats.decode_ns)));
    }
  }
  if (request.json) Print(json.EndArray().EndObject().Finish());
  return 0;
}

}  // namespace arn::tool

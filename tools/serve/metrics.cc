#include "tools/serve/metrics.h"

#include <unistd.h>

#include <cstdio>

#include "tools/cli/format.h"
#include "tools/serve/scheduler.h"

namespace arn::serve {
namespace {

void Add(const char* name, const char* type, const char* help, double value, std::string* text) {
  *text += cli::Format("# HELP arenite_%s %s\n# TYPE arenite_%s %s\narenite_%s %.17g\n", name, help,
                       name, type, name, value);
}

}  // namespace

uint64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long long all = 0, resident = 0;
  const int n = std::fscanf(file, "%llu %llu", &all, &resident);
  std::fclose(file);
  return n == 2 ? resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

std::string MetricsText(const Metrics& metrics, const SchedulerStatus& status) {
  std::string text;
  const auto counter = [&text](const char* name, const char* help, uint64_t value) {
    Add(name, "counter", help, static_cast<double>(value), &text);
  };
  const auto gauge = [&text](const char* name, const char* help, uint64_t value) {
    Add(name, "gauge", help, static_cast<double>(value), &text);
  };
  counter("requests_total", "Requests answered, by any status.", metrics.requests);
  counter("requests_refused_total", "Requests refused because the queue was full.",
          metrics.refused);
  counter("requests_failed_total", "Requests that failed in the server.", metrics.failed);
  counter("requests_aborted_total", "Requests whose client went away.", metrics.aborted);
  counter("requests_timed_out_total", "Requests that took longer than the time limit.",
          metrics.timed_out);
  counter("prompt_tokens_total", "Tokens of prompts.", metrics.prompt_tokens);
  counter("prompt_tokens_cached_total", "Tokens of prompts that a sequence held already.",
          metrics.cached_tokens);
  counter("reply_tokens_total", "Tokens generated.", metrics.reply_tokens);
  counter("decode_steps_total", "Runs of the model that decoded.", metrics.steps);
  counter("guesses_proposed_total", "Tokens that ran before they were chosen.", metrics.proposed);
  counter("guesses_accepted_total", "Those that were then chosen.", metrics.accepted);
  counter("tokens_put_off_total", "Steps that replies sat out, while their constraints worked.",
          metrics.put_off);
  counter("evictions_total", "Kept sequences dropped because their pages were needed.",
          metrics.evictions);
  counter("states_saved_total", "Conversations that left the memory and were kept in a file.",
          metrics.states_saved);
  counter("states_restored_total", "Conversations that came back from a file.",
          metrics.states_restored);
  counter("states_skipped_total",
          "Conversations that were not kept, since too many waited to be written.",
          metrics.states_skipped);
  Add("model_seconds_total", "counter", "Time that the model ran.",
      static_cast<double>(metrics.busy_ns) / 1e9, &text);
  uint64_t n_busy = 0, n_kept = 0;
  for (const SequenceUse& use : status.sequences) {
    n_busy += use.is_busy ? 1 : 0;
    n_kept += !use.is_busy && use.n_tokens > 0 ? 1 : 0;
  }
  gauge("queue_length", "Requests that wait for a sequence.", status.n_waiting);
  gauge("queue_capacity", "Requests that may wait.", status.queue_capacity);
  gauge("sequences", "Sequences of the session.", status.sequences.size());
  gauge("sequences_busy", "Sequences that work.", n_busy);
  gauge("sequences_kept", "Idle sequences whose tokens are kept.", n_kept);
  gauge("kv_used_bytes", "KV pages in use.", status.kv_used_bytes);
  gauge("kv_bytes", "KV pages reserved.", status.plan.kv_bytes);
  gauge("states_kept", "Conversations in files.", metrics.states_kept);
  gauge("states_bytes", "Bytes of those files.", metrics.states_bytes);
  gauge("session_bytes", "The session's whole block.", status.plan.total_bytes);
  gauge("weights_bytes", "Weights, mapped from the bundle.", status.plan.weights_bytes);
  gauge("resident_bytes", "Resident memory of the process.", ResidentBytes());
  return text;
}

}  // namespace arn::serve

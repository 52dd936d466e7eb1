#include "tools/arenite/memory_report.h"

#include <cinttypes>

#include "tools/arenite/io.h"

namespace arn::tool {
namespace {

std::string Row(const char* name, uint64_t bytes, const std::string& note) {
  return Format("%-12s %15" PRIu64 "  %8s  %s\n", name, bytes, HumanBytes(bytes).c_str(),
                note.c_str());
}

}  // namespace

std::string PlanTable(const arn_memory_plan& plan) {
  std::string text = Format("%-12s %15s  %8s\n", "region", "bytes", "");
  text += Row("weights", plan.weights_bytes, "mapped from the bundle, shared; not in the total");
  text += Row("constants", plan.constants_bytes,
              plan.repacked_bytes == 0
                  ? "tables and the session itself"
                  : HumanBytes(plan.repacked_bytes) + " of it weights packed anew for this CPU");
  text += Row("kv", plan.kv_bytes,
              Format("%" PRIu64 " a token, taken as tokens come", plan.kv_bytes_per_token));
  text += Row("activations", plan.activations_bytes, "");
  text += Row("io", plan.io_bytes, "tokens, logits, text");
  text += Row("total", plan.total_bytes, "one block, of this size exactly");
  text += Format("\ncontext %u tokens in pages of %u, prefill chunks of %u, %u thread%s\n",
                 plan.context_tokens, plan.kv_page_tokens, plan.prefill_chunk, plan.n_threads,
                 plan.n_threads == 1 ? "" : "s");
  return text;
}

std::string MemoryLine(const arn_memory_plan& plan, uint64_t kv_used_bytes) {
  return Format(
      "weights %s mapped; session %s = constants %s + kv %s (%s used) + activations %s"
      " + io %s",
      HumanBytes(plan.weights_bytes).c_str(), HumanBytes(plan.total_bytes).c_str(),
      HumanBytes(plan.constants_bytes).c_str(), HumanBytes(plan.kv_bytes).c_str(),
      HumanBytes(kv_used_bytes).c_str(), HumanBytes(plan.activations_bytes).c_str(),
      HumanBytes(plan.io_bytes).c_str());
}

void WriteRegions(const arn_memory_plan& plan, JsonWriter* json) {
  json->Key("weights").Uint(plan.weights_bytes);
  json->Key("constants").Uint(plan.constants_bytes);
  json->Key("kv").Uint(plan.kv_bytes);
  json->Key("activations").Uint(plan.activations_bytes);
  json->Key("io").Uint(plan.io_bytes);
  json->Key("total").Uint(plan.total_bytes);
}

}  // namespace arn::tool

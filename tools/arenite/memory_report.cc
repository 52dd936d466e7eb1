#include "tools/arenite/memory_report.h"

#include <cinttypes>

#include "tools/arenite/io.h"
#include "tools/cli/arena_picture.h"

namespace arn::tool {
namespace {

std::string Row(const char* name, uint64_t bytes, const std::string& note) {
  return Format("%-12s %15" PRIu64 "  %8s  %s\n", name, bytes, HumanBytes(bytes).c_str(),
                note.c_str());
}

}  // namespace

std::string PlanTable(const arn_memory_plan& plan) {
  std::string text = Format("%-12s %15s  %8s\n", "region", "bytes", "");
  text += Row("weights", plan.weights_bytes,
              plan.copied_bytes == 0 ? "mapped from the bundle, shared; not in the total"
                                     : "part of the copy; not in the total");
  if (plan.copied_bytes != 0) {
    text +=
        Row("copy", plan.copied_bytes, "of the bundle, shared by its sessions; not in the total");
  }
  if (plan.n_adapters != 0) {
    text += Row("adapters", plan.adapter_files_bytes,
                "mapped from " + std::to_string(plan.n_adapters) +
                    (plan.n_adapters == 1 ? " bundle" : " bundles") +
                    ", shared; not in the total, with " + HumanBytes(plan.adapters_bytes) +
                    " of activations and constants");
  }
  if (plan.draft_bytes != 0) {
    text += Row("draft", plan.draft_weights_bytes,
                "its weights, mapped and shared; not in the total, with " +
                    HumanBytes(plan.draft_bytes) + " of io");
  }
  text += Row("constants", plan.constants_bytes,
              plan.repacked_bytes == 0
                  ? "tables and the session itself"
                  : HumanBytes(plan.repacked_bytes) + " of it weights repacked for this CPU");
  text += Row(
      "kv", plan.kv_bytes,
      Format("%" PRIu64 " per token, reserved now, used as tokens come", plan.kv_bytes_per_token) +
          (plan.snapshots_bytes == 0
               ? ""
               : "; " + HumanBytes(plan.snapshots_bytes) + " of it snapshots of states"));
  text += Row("activations", plan.activations_bytes, "");
  std::string io = "tokens, logits, text";
  if (plan.constraints_bytes != 0) {
    io += "; " + HumanBytes(plan.constraints_bytes) + " of it constraints";
  }
  if (plan.speculation_bytes != 0) {
    io += "; " + HumanBytes(plan.speculation_bytes) + " of it speculation";
  }
  if (plan.scheduler_bytes != 0) {
    io += "; " + HumanBytes(plan.scheduler_bytes) + " of it requests";
  }
  text += Row("io", plan.io_bytes, io);
  if (plan.device_bytes != 0) {
    text += Row("device", plan.device_bytes,
                plan.importable_bytes == 0
                    ? "buffers on the device: a copy of the weights, kv, activations, logits"
                    : "buffers on the device: kv, activations, logits, and " +
                          HumanBytes(plan.importable_bytes) +
                          " of weights, in the bundle's pages if the driver can");
  }
  text +=
      Row("total", plan.total_bytes,
          plan.device_bytes == 0 ? "one block, of this size exactly"
                                 : "one block without kv and activations, of this size exactly");
  text += Format("\ncontext %u tokens in pages of %u, prefill chunks of %u, %u thread%s\n",
                 plan.context_tokens, plan.kv_page_tokens, plan.prefill_chunk, plan.n_threads,
                 plan.n_threads == 1 ? "" : "s");
  if (plan.n_prefill_threads != plan.n_threads) {
    text += Format("%u thread%s for prompts\n", plan.n_prefill_threads,
                   plan.n_prefill_threads == 1 ? "" : "s");
  }
  if (plan.keeps_to_performance_cpus != 0) {
    text += Format("threads stay on the %u performance CPUs\n", plan.n_performance_cpus);
  }
  if (plan.max_sequences > 1) {
    text += Format("%u sequences, %u tokens together\n", plan.max_sequences, plan.kv_tokens);
  }
  if (plan.state_snapshots != 0) {
    text += Format("%u snapshot%s of the recurrent states of each sequence, every %u tokens\n",
                   plan.state_snapshots, plan.state_snapshots == 1 ? "" : "s", plan.snapshot_every);
  }
  if (plan.max_guesses != 0) {
    text += Format("up to %u guess%s of the next tokens in a run\n", plan.max_guesses,
                   plan.max_guesses == 1 ? "" : "es");
  }
  return text;
}

uint64_t PoolBytes(const arn_kv_group_info& group) { return group.n_pages * group.page_bytes; }

uint64_t QuantisedPoolBytes(const arn_kv_group_info& group) {
  return group.n_quantised_pages * group.quantised_page_bytes;
}

std::string GroupTable(const std::vector<arn_kv_group_info>& groups) {
  std::string text =
      Format("%-5s %6s %8s %8s  %-12s %6s %7s %11s %15s %9s\n", "group", "layers", "kv heads",
             "head dim", "sees", "page", "pages", "page bytes", "pool bytes", "tokens");
  for (size_t g = 0; g < groups.size(); ++g) {
    const arn_kv_group_info& group = groups[g];
    if (group.state_bytes != 0) {
      text += Format("%-5zu %6u %8s %8s  %-12s %6s %7u %11" PRIu64 " %15" PRIu64 " %9s\n", g,
                     group.n_layers, "-", "-", cli::Sees(group).c_str(), "-", group.n_pages,
                     group.page_bytes, PoolBytes(group), "any");
      continue;
    }
    text += Format("%-5zu %6u %8u %8u  %-12s %6u %7u %11" PRIu64 " %15" PRIu64 " %9" PRIu64 "\n", g,
                   group.n_layers, group.n_kv_heads, group.head_dim, cli::Sees(group).c_str(),
                   group.page_tokens, group.n_pages, group.page_bytes, PoolBytes(group),
                   uint64_t{group.n_pages} * group.page_tokens);
    if (group.n_quantised_pages == 0) continue;
    text +=
        Format("%-45s %6u %7u %11" PRIu64 " %15" PRIu64 " %9" PRIu64 "\n",
               Format("      quantised once %u tokens old", group.residual).c_str(),
               group.page_tokens, group.n_quantised_pages, group.quantised_page_bytes,
               QuantisedPoolBytes(group), uint64_t{group.n_quantised_pages} * group.page_tokens);
  }
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

std::string ResidencyLine(const arn_residency& residency) {
  return Format("%s %s, %s in memory, %s of it in huge pages",
                HumanBytes(residency.mapped_bytes + residency.copied_bytes).c_str(),
                residency.copied_bytes != 0   ? "copied"
                : residency.locked_bytes != 0 ? "mapped and locked"
                                              : "mapped",
                HumanBytes(residency.resident_bytes).c_str(),
                HumanBytes(residency.huge_bytes).c_str());
}

void WriteRegions(const arn_memory_plan& plan, JsonWriter* json) {
  json->Key("weights").Uint(plan.weights_bytes);
  json->Key("constants").Uint(plan.constants_bytes);
  json->Key("kv").Uint(plan.kv_bytes);
  json->Key("activations").Uint(plan.activations_bytes);
  json->Key("io").Uint(plan.io_bytes);
  json->Key("device").Uint(plan.device_bytes);
  json->Key("importable").Uint(plan.importable_bytes);
  json->Key("copied").Uint(plan.copied_bytes);
  json->Key("constraints").Uint(plan.constraints_bytes);
  json->Key("total").Uint(plan.total_bytes);
}

void WriteGroups(const std::vector<arn_kv_group_info>& groups, JsonWriter* json) {
  json->Key("groups").BeginArray();
  for (const arn_kv_group_info& group : groups) {
    json->BeginObject();
    json->Key("layers").Uint(group.n_layers);
    json->Key("kv_heads").Uint(group.n_kv_heads);
    json->Key("head_dim").Uint(group.head_dim);
    json->Key("window").Uint(group.window);
    json->Key("chunk").Uint(group.chunk);
    json->Key("page_tokens").Uint(group.page_tokens);
    json->Key("pages").Uint(group.n_pages);
    json->Key("sequence_pages").Uint(group.sequence_pages);
    json->Key("page_bytes").Uint(group.page_bytes);
    json->Key("pool_bytes").Uint(PoolBytes(group));
    json->Key("tokens").Uint(uint64_t{group.n_pages} * group.page_tokens);
    json->Key("offset").Uint(group.offset);
    if (group.state_bytes != 0) json->Key("state_bytes").Uint(group.state_bytes);
    if (group.n_quantised_pages != 0) {
      json->Key("quantised").BeginObject();
      json->Key("residual").Uint(group.residual);
      json->Key("pages").Uint(group.n_quantised_pages);
      json->Key("page_bytes").Uint(group.quantised_page_bytes);
      json->Key("pool_bytes").Uint(QuantisedPoolBytes(group));
      json->Key("offset").Uint(group.quantised_offset);
      json->EndObject();
    }
    json->EndObject();
  }
  json->EndArray();
}

}  // namespace arn::tool

#include "runtime/memory/session_plan.h"

#include "platform/base/arith.h"
#include "platform/os/topology.h"
#include "runtime/memory/activation_plan.h"

namespace arn {
namespace {

// The order of the regions inside a session's block. KV is last: it is the one that is committed as
// it is used.
constexpr Region kBlockOrder[] = {Region::kConstants, Region::kIo, Region::kActivations,
                                  Region::kKv};

Status ApplyDefaults(const Model& model, SessionOptions* options, Diag* diag) {
  const uint32_t model_context = model.spec.max_context;
  if (options->context_tokens == 0) {
    options->context_tokens = Min(model_context, kDefaultContextTokens);
  }
  if (options->prefill_chunk == 0) options->prefill_chunk = kDefaultPrefillChunk;
  if (options->n_threads == 0) options->n_threads = Min(PerformanceCpuCount(), kMaxThreads);
  if (options->kv_page_tokens == 0) options->kv_page_tokens = kDefaultKvPageTokens;
  if (options->context_tokens > model_context) {
    return diag->Fail(Status::kBadArgument, "context_tokens is %u, the model was made for %u",
                      options->context_tokens, model_context);
  }
  if (options->prefill_chunk > kMaxPrefillChunk) {
    return diag->Fail(Status::kBadArgument, "prefill_chunk is %u, expected at most %u",
                      options->prefill_chunk, kMaxPrefillChunk);
  }
  if (options->n_threads > kMaxThreads) {
    return diag->Fail(Status::kBadArgument, "n_threads is %u, expected at most %u",
                      options->n_threads, kMaxThreads);
  }
  if (!IsPowerOfTwo(options->kv_page_tokens) || options->kv_page_tokens < kMinKvPageTokens ||
      options->kv_page_tokens > kMaxKvPageTokens) {
    return diag->Fail(Status::kBadArgument,
                      "kv_page_tokens is %u, expected a power of two in %u..%u",
                      options->kv_page_tokens, kMinKvPageTokens, kMaxKvPageTokens);
  }
  // A chunk longer than the context would only waste activations.
  options->prefill_chunk = Min(options->prefill_chunk, options->context_tokens);
  return Status::kOk;
}

Status PlanProgram(const Model& model, SessionPlan* plan, Layout* layout, Diag* diag) {
  const SessionOptions& options = plan->options;
  Program& program = plan->program;
  program = model.program;
  program.max_rows = options.prefill_chunk;
  program.max_logit_rows = options.all_logits ? options.prefill_chunk : 1;
  program.max_context = options.context_tokens;
  if (model.program.values.size() > kMaxValues) return Status::kInternal;
  for (size_t i = 0; i < model.program.values.size(); ++i)
    plan->values[i] = model.program.values[i];
  const KvOptions kv{options.kv_dtype, options.kv_page_tokens, options.context_tokens};
  for (uint32_t g = 0; g < model.spec.n_groups; ++g) {
    const KvGroupSpec& group = model.spec.groups[g];
    ARN_TRY(PlanKvGroup(group.n_layers, group.n_kv_heads, group.head_dim, kv, layout,
                        &plan->kv_groups[g], diag));
  }
  plan->program.kv_groups = {plan->kv_groups, model.spec.n_groups};
  plan->Bind();
  ARN_TRY(PlanActivations(program.values, program.max_rows, layout));
  uint64_t logits = 0;
  if (!CheckedMul(program.max_logit_rows, program.vocab, &logits)) return Status::kOutOfMemory;
  ARN_ASSIGN(program.logits, layout->AddArray(Region::kIo, logits, sizeof(float)));
  return Status::kOk;
}

}  // namespace

void SessionPlan::Bind() {
  program.values = {values, program.values.size()};
  program.kv_groups = {kv_groups, program.kv_groups.size()};
}

uint64_t SessionPlan::TotalBytes() const {
  uint64_t total = 0;
  for (Region region : kBlockOrder) total += region_bytes[static_cast<uint32_t>(region)];
  return total;
}

uint64_t SessionPlan::KvBytesPerToken() const {
  uint64_t bytes = 0;
  for (const KvGroup& group : program.kv_groups) bytes += group.page_bytes / group.page_tokens;
  return bytes;
}

Status PlanSession(const Model& model, const Backend* backend, const SessionOptions& options,
                   uint64_t session_bytes, SessionPlan* out, Diag* diag) {
  *out = SessionPlan();
  if (!model.has_weights) {
    return diag->Fail(Status::kUnsupported, "the bundle holds only a tokenizer, no model to run");
  }
  out->options = options;
  out->backend = backend;
  ARN_TRY(ApplyDefaults(model, &out->options, diag));
  Layout layout;
  ARN_ASSIGN(out->session, layout.Add(Region::kConstants, session_bytes));
  ARN_TRY(PlanProgram(model, out, &layout, diag));
  const BackendOptions backend_options{out->options.n_threads};
  ARN_TRY(backend->plan(out->program, backend_options, &layout, &out->backend_plan, diag));
  ARN_TRY(PlanSequenceCache(out->program.kv_groups, &layout, &out->cache));
  ARN_TRY(PlanSampler(out->program.vocab, &layout, &out->sampler));
  ARN_ASSIGN(out->tokens,
             layout.AddArray(Region::kIo, out->options.prefill_chunk, sizeof(int32_t)));
  // Held-back text (at most a stop string less one byte) and the piece that is added to it.
  const uint64_t piece = model.tokenizer == nullptr ? 0 : model.tokenizer->max_piece_bytes();
  ARN_ASSIGN(out->text, layout.Add(Region::kIo, kMaxStopBytes + 2 * piece));
  for (uint32_t r = 0; r < kRegionCount; ++r) {
    out->region_bytes[r] = layout.RegionBytes(static_cast<Region>(r));
  }
  out->region_bytes[static_cast<uint32_t>(Region::kWeights)] = model.spec.weight_bytes;
  return Status::kOk;
}

Memory PartitionBlock(const SessionPlan& plan, std::byte* block) {
  Memory memory;
  uint64_t offset = 0;
  for (Region region : kBlockOrder) {
    const uint32_t r = static_cast<uint32_t>(region);
    memory.region[r] = {block + offset, static_cast<size_t>(plan.region_bytes[r])};
    offset += plan.region_bytes[r];
  }
  return memory;
}

}  // namespace arn

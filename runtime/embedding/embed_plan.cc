#include "runtime/embedding/embed_plan.h"

#include "platform/base/arith.h"
#include "platform/os/thread_pool.h"
#include "platform/os/topology.h"
#include "runtime/memory/activation_plan.h"

namespace arn {
namespace {

constexpr uint32_t kLeastBatchTokens = 512;
constexpr uint32_t kDefaultTexts = 32;
constexpr uint32_t kMostTexts = 4096;
constexpr uint32_t kMostBatchTokens = 1u << 20;
constexpr uint64_t kTextBytesPerToken = 32;
constexpr uint64_t kBaseTextBytes = 16384;
constexpr uint64_t kMostTextBytes = uint64_t{1} << 30;

constexpr Region kBlockOrder[] = {Region::kConstants, Region::kIo, Region::kActivations};

Status CheckRange(const char* name, uint64_t value, uint64_t least, uint64_t most, Diag* diag) {
  if (value >= least && value <= most) return Status::kOk;
  return diag->Fail(Status::kBadArgument, "%s is %llu, expected %llu to %llu", name,
                    static_cast<unsigned long long>(value), static_cast<unsigned long long>(least),
                    static_cast<unsigned long long>(most));
}

Status Resolve(const Model& model, EmbedOptions* options, Diag* diag) {
  const PoolingSpec& pooling = model.spec.pooling;
  if (options->max_tokens == 0) options->max_tokens = pooling.max_tokens;
  ARN_TRY(CheckRange("max_tokens", options->max_tokens, 1, pooling.max_tokens, diag));
  if (options->batch_tokens == 0) {
    options->batch_tokens = Max(options->max_tokens, kLeastBatchTokens);
  }
  ARN_TRY(CheckRange("batch_tokens", options->batch_tokens, options->max_tokens, kMostBatchTokens,
                     diag));
  if (options->max_texts == 0) options->max_texts = kDefaultTexts;
  ARN_TRY(CheckRange("max_texts", options->max_texts, 1, kMostTexts, diag));
  if (options->n_threads == 0) {
    options->n_threads = Min(Max(ReadTopology().performance.count(), 1u), kMaxThreads);
  }
  ARN_TRY(CheckRange("n_threads", options->n_threads, 1, kMaxThreads, diag));
  if (pooling.is_score && options->width != 0) {
    return diag->Fail(Status::kUnsupported, "width is %u, but the model makes scores",
                      options->width);
  }
  if (options->width == 0) options->width = pooling.width;
  ARN_TRY(CheckRange("width", options->width, 1, pooling.width, diag));
  if (options->text_bytes == 0) {
    options->text_bytes = kTextBytesPerToken * options->max_tokens + kBaseTextBytes;
  }
  return CheckRange("text_bytes", options->text_bytes, 1, kMostTextBytes, diag);
}

void CopyProgram(const Model& model, EmbedPlan* plan) {
  Program& program = plan->program;
  program = model.pooled;
  for (size_t i = 0; i < program.values.size(); ++i) plan->values[i] = program.values[i];
  for (uint32_t i = 0; i < model.spec.ropes.size(); ++i) {
    const RopeVariants& variants = model.spec.rope_variants[i];
    plan->ropes[i] = model.spec.ropes[i];
    if (variants.short_context == 0 || plan->options.max_tokens <= variants.short_context) continue;
    plan->ropes[i].inv_freq = variants.long_inv_freq;
  }
  program.max_rows = 1;
  program.max_context = plan->options.max_tokens;
  program.max_encoder_rows = plan->options.batch_tokens;
  program.max_pooled_rows = plan->options.max_texts;
  plan->Bind();
}

}  // namespace

void EmbedPlan::Bind() {
  program.values = {values, program.values.size()};
  program.ropes = {ropes, program.ropes.size()};
}

uint32_t EmbedPlan::ResultWidth(const PoolingSpec& pooling) const {
  return pooling.is_score && pooling.score == ScoreRule::kLastOfSoftmax ? 1 : options.width;
}

uint64_t EmbedPlan::TotalBytes() const {
  uint64_t total = 0;
  for (const Region region : kBlockOrder) total += region_bytes[static_cast<uint32_t>(region)];
  return total;
}

Status PlanEmbedder(const Model& model, const Backend* backend, const EmbedOptions& options,
                    uint64_t object_bytes, EmbedPlan* out, Diag* diag) {
  *out = EmbedPlan();
  if (!model.has_weights || !model.spec.pooling.exists()) {
    return diag->Fail(Status::kUnsupported,
                      "the bundle makes no vectors or scores: its checkpoint has no pooling");
  }
  if (backend == nullptr || backend->host_kv == nullptr) {
    return diag->Fail(Status::kUnsupported, "embedders run on the CPU, not on the %s backend",
                      backend == nullptr ? "missing" : backend->name);
  }
  out->options = options;
  out->backend = backend;
  ARN_TRY(Resolve(model, &out->options, diag));
  CopyProgram(model, out);
  Layout layout;
  const EmbedOptions& o = out->options;
  ARN_ASSIGN(out->object, layout.Add(Region::kConstants, object_bytes));
  ARN_ASSIGN(out->sequences,
             layout.AddArray(Region::kConstants, o.max_texts, sizeof(SequenceRows)));
  ARN_ASSIGN(out->tokens, layout.AddArray(Region::kIo, uint64_t{o.batch_tokens} + o.max_tokens,
                                          sizeof(int32_t)));
  for (Slice& ids : out->ids) {
    ARN_ASSIGN(ids, layout.AddArray(Region::kIo, o.max_tokens, sizeof(int32_t)));
  }
  if (model.tokenizer != nullptr) {
    const auto text_bytes = static_cast<size_t>(o.text_bytes);
    ARN_ASSIGN(out->text, layout.Add(Region::kIo, text_bytes));
    ARN_ASSIGN(out->scratch,
               layout.Add(Region::kIo, model.tokenizer->EncodeScratchBytes(text_bytes)));
  }
  ARN_TRY(PlanActivations(out->program, &layout));
  BackendOptions backend_options;
  backend_options.cpu.n_threads = backend_options.cpu.n_prefill_threads = o.n_threads;
  ARN_TRY(backend->plan(out->program, backend_options, &layout, &out->backend_plan, diag));
  for (uint32_t r = 0; r < kRegionCount; ++r) {
    out->region_bytes[r] = layout.RegionBytes(static_cast<Region>(r));
  }
  out->region_bytes[static_cast<uint32_t>(Region::kWeights)] = model.spec.weight_bytes;
  return Status::kOk;
}

Memory PartitionBlock(const EmbedPlan& plan, std::byte* block) {
  Memory memory;
  uint64_t offset = 0;
  for (const Region region : kBlockOrder) {
    const uint64_t bytes = plan.region_bytes[static_cast<uint32_t>(region)];
    memory.region[static_cast<uint32_t>(region)] = {block + offset, static_cast<size_t>(bytes)};
    offset += bytes;
  }
  return memory;
}

}  // namespace arn

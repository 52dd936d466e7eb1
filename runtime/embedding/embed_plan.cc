#include "runtime/embedding/embed_plan.h"

#include "platform/base/arith.h"
#include "runtime/memory/devices.h"

namespace arn {
namespace {

constexpr uint32_t kLeastBatchTokens = 512;
constexpr uint32_t kDefaultTexts = 32;
constexpr uint32_t kMostTexts = 4096;
constexpr uint32_t kMostBatchTokens = 1u << 20;
constexpr uint64_t kTextBytesPerToken = 32;
constexpr uint64_t kBaseTextBytes = 16384;
constexpr uint64_t kMostTextBytes = uint64_t{1} << 30;

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
  ARN_TRY(ResolveThreads(&options->n_threads, diag));
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
  plan->Copy(model.pooled);
  for (uint32_t i = 0; i < model.spec.ropes.size(); ++i) {
    const RopeVariants& variants = model.spec.rope_variants[i];
    if (variants.short_context == 0 || plan->options.max_tokens <= variants.short_context) continue;
    plan->ropes[i].inv_freq = variants.long_inv_freq;
  }
  plan->program.max_context = plan->options.max_tokens;
  plan->program.max_encoder_rows = plan->options.batch_tokens;
  plan->program.max_pooled_rows = plan->options.max_texts;
}

}  // namespace

bool IsEmbedderOnDevice(const EmbedPlan& plan) {
  return kHasDevices && plan.backend->host_kv == nullptr;
}

uint32_t EmbedPlan::ResultWidth(const PoolingSpec& pooling) const {
  return pooling.is_score && pooling.score == ScoreRule::kLastOfSoftmax ? 1 : options.width;
}

Status PlanEmbedder(const Model& model, const Backend* backend, const Backend* self_test,
                    const EmbedOptions& options, uint64_t object_bytes, EmbedPlan* out,
                    Diag* diag) {
  *out = EmbedPlan();
  if (!model.has_weights || !model.spec.pooling.exists()) {
    return diag->Fail(Status::kUnsupported,
                      "the bundle makes no vectors or scores: its checkpoint has no pooling");
  }
  if (!kHasDevices) ARN_TRY(CheckRunsOnHost(backend, "embedders", diag));
  out->options = options;
  out->backend = backend;
  out->self_test = self_test;
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
  if (IsEmbedderOnDevice(*out)) {
    const Value& result = out->program.values[ResultOf(out->program)];
    ARN_ASSIGN(out->results,
               layout.AddArray(Region::kIo, uint64_t{o.max_texts} * result.width, sizeof(float)));
  }
  ARN_TRY(PlanProgram(o.n_threads, &layout, out, diag));
  out->region_bytes[static_cast<uint32_t>(Region::kWeights)] = model.spec.weight_bytes;
  return Status::kOk;
}

}  // namespace arn

// Implements arn_embed_* and arn_rerank.
#include <cstddef>
#include <cstring>

#include "platform/base/arith.h"
#include "platform/os/pages.h"
#include "runtime/api/handles.h"
#include "runtime/backends.h"
#include "runtime/embedding/embedder.h"

namespace arn::api {
namespace {

static_assert(sizeof(arn_text) == sizeof(StringView) &&
              offsetof(arn_text, text) == offsetof(StringView, data) &&
              offsetof(arn_text, bytes) == offsetof(StringView, size));

Embedder* ToEmbedder(arn_embedder* embedder) { return reinterpret_cast<Embedder*>(embedder); }
const Embedder* ToEmbedder(const arn_embedder* embedder) {
  return reinterpret_cast<const Embedder*>(embedder);
}

Status Plan(const Model& model, const arn_embed_options* options, EmbedPlan* out, Diag* diag) {
  arn_embed_options read = ARN_EMBED_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_embed_options", &read, diag));
  const auto id = static_cast<BackendId>(read.backend);
  const BackendTraits traits = FindTraits(id);
  if (traits.backend == nullptr) {
    if (traits.if_missing[0] != '\0') {
      return diag->Fail(Status::kUnsupported, "%s", traits.if_missing);
    }
    return diag->Fail(Status::kUnsupported, "this library has no backend %u", read.backend);
  }
  if (traits.fallback != nullptr) {
    return diag->Fail(Status::kUnsupported,
                      "embedders run on one backend: the CPU, the reference or Vulkan");
  }
  const Backend* backend = traits.backend;
  EmbedOptions wanted;
  wanted.max_tokens = read.max_tokens;
  wanted.batch_tokens = read.batch_tokens;
  wanted.max_texts = read.max_texts;
  wanted.n_threads = read.n_threads;
  wanted.width = read.width;
  wanted.text_bytes = read.text_bytes;
  return PlanEmbedder(model, backend, SelfTestBackend(), wanted, sizeof(Embedder), out, diag);
}

Status CreateEmbedder(const Model& model, const arn_embed_options* options, void* memory,
                      uint64_t memory_bytes, Embedder** out, Diag* diag) {
  EmbedPlan plan;
  ARN_TRY(Plan(model, options, &plan, diag));
  const uint64_t needed = plan.TotalBytes();
  if (memory != nullptr) {
    if (reinterpret_cast<uintptr_t>(memory) % kRegionAlign != 0) {
      return diag->Fail(Status::kBadArgument, "memory is not aligned to %u bytes", kRegionAlign);
    }
    if (memory_bytes < needed) {
      return diag->Fail(Status::kOutOfMemory, "memory has %llu bytes, the embedder needs %llu",
                        static_cast<unsigned long long>(memory_bytes),
                        static_cast<unsigned long long>(needed));
    }
    return Embedder::Create(
        model, plan, {static_cast<std::byte*>(memory), static_cast<size_t>(needed)}, {}, out, diag);
  }
  Result<Span<std::byte>> reserved = ReservePages(needed + kRegionAlign);
  if (!reserved.ok()) {
    return diag->Fail(reserved.status(), "cannot reserve %llu bytes for the embedder",
                      static_cast<unsigned long long>(needed));
  }
  const Span<std::byte> pages = reserved.value();
  const uintptr_t base = reinterpret_cast<uintptr_t>(pages.data());
  const size_t skip = (kRegionAlign - base % kRegionAlign) % kRegionAlign;
  const Status status = Embedder::Create(
      model, plan, pages.subspan(skip, static_cast<size_t>(needed)), pages, out, diag);
  if (status != Status::kOk) ReleasePages(pages);
  return status;
}

const fbs::Pooling* PoolingOf(const arn_model* model) {
  const Model& m = *ToModel(model);
  return m.spec.pooling.exists() ? m.bundle.index->model()->pooling() : nullptr;
}

// Runs `call`, a Status(Embedder&).
template <typename Call>
arn_status OnEmbedder(arn_embedder* handle, const Call& call) {
  if (handle == nullptr) return ARN_BAD_ARGUMENT;
  Embedder& embedder = *ToEmbedder(handle);
  embedder.diag()->Clear();
  return ToC(call(embedder));
}

Status CheckTexts(const arn_text* texts, size_t n, const float* out, Diag* diag) {
  if ((texts == nullptr || out == nullptr) && n != 0) {
    return diag->Fail(Status::kBadArgument, "%s is NULL", texts == nullptr ? "the list" : "out");
  }
  for (size_t i = 0; i < n; ++i) {
    if (texts[i].text != nullptr || texts[i].bytes == 0) continue;
    return diag->Fail(Status::kBadArgument, "text %zu is NULL, of %zu bytes", i, texts[i].bytes);
  }
  return Status::kOk;
}

Span<const StringView> TextsOf(const arn_text* texts, size_t n) {
  return {reinterpret_cast<const StringView*>(texts), n};
}

StringView ViewOf(const char* text) {
  return text == nullptr ? StringView() : StringView(text, std::strlen(text));
}

// Returns the checkpoint's default prompt if `prompt` is null.
StringView PromptOf(const Model& model, const char* prompt) {
  const fbs::Pooling& pooling = *model.bundle.index->model()->pooling();
  if (prompt != nullptr || pooling.default_prompt() < 0) return ViewOf(prompt);
  const auto index = static_cast<uint32_t>(pooling.default_prompt());
  const flatbuffers::String* text = pooling.prompts()->Get(index)->text();
  return {text->data(), text->size()};
}

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_embed_get_info(const arn_model* model, arn_embed_info* out_info) {
  if (model == nullptr || out_info == nullptr) return ARN_BAD_ARGUMENT;
  const fbs::Pooling* pooling = PoolingOf(model);
  if (pooling == nullptr) return ARN_UNSUPPORTED;
  const PoolingSpec& spec = ToModel(model)->spec.pooling;
  arn_embed_info info = ARN_EMBED_INFO_INIT;
  info.width = spec.is_score && spec.score == ScoreRule::kLastOfSoftmax ? 1 : spec.width;
  info.max_tokens = spec.max_tokens;
  info.is_normalized = spec.normalizes ? 1 : 0;
  info.n_prompts = pooling->prompts() == nullptr ? 0 : pooling->prompts()->size();
  info.default_prompt = pooling->default_prompt();
  info.has_instruction = pooling->pair_template() == nullptr ? 0 : 1;
  info.instruction = pooling->instruction() == nullptr ? "" : pooling->instruction()->c_str();
  return ToC(WriteStruct(info, out_info));
}

arn_status arn_embed_prompt(const arn_model* model, uint32_t index, const char** out_name,
                            const char** out_text) {
  if (model == nullptr || out_name == nullptr || out_text == nullptr) return ARN_BAD_ARGUMENT;
  *out_name = *out_text = nullptr;
  const fbs::Pooling* pooling = PoolingOf(model);
  const auto* prompts = pooling == nullptr ? nullptr : pooling->prompts();
  if (prompts == nullptr || index >= prompts->size()) return ARN_NOT_FOUND;
  *out_name = prompts->Get(index)->name()->c_str();
  *out_text = prompts->Get(index)->text()->c_str();
  return ARN_OK;
}

arn_status arn_embed_plan(const arn_model* model, const arn_embed_options* options, char* error,
                          size_t error_bytes, arn_embed_plan_data* out_plan) {
  if (model == nullptr || out_plan == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  EmbedPlan plan;
  Status status = Plan(*ToModel(model), options, &plan, &diag);
  if (status == Status::kOk) {
    const auto bytes = [&](Region region) {
      return plan.region_bytes[static_cast<uint32_t>(region)];
    };
    arn_embed_plan_data data = ARN_EMBED_PLAN_DATA_INIT;
    data.weights_bytes = bytes(Region::kWeights);
    data.constants_bytes = bytes(Region::kConstants);
    data.repacked_bytes = plan.backend_plan.repacked_weight_bytes;
    data.activations_bytes = bytes(Region::kActivations);
    data.io_bytes = bytes(Region::kIo);
    data.total_bytes = plan.TotalBytes();
    data.alignment = kRegionAlign;
    data.max_tokens = plan.options.max_tokens;
    data.batch_tokens = plan.options.batch_tokens;
    data.max_texts = plan.options.max_texts;
    data.n_threads = plan.options.n_threads;
    data.width = plan.ResultWidth(ToModel(model)->spec.pooling);
    status = WriteStruct(data, out_plan);
  }
  return Report(status, diag, error, error_bytes);
}

arn_status arn_embedder_create(const arn_model* model, const arn_embed_options* options,
                               void* memory, uint64_t memory_bytes, char* error, size_t error_bytes,
                               arn_embedder** out_embedder) {
  if (out_embedder == nullptr) return ARN_BAD_ARGUMENT;
  *out_embedder = nullptr;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  Embedder* embedder = nullptr;
  const Status status =
      CreateEmbedder(*ToModel(model), options, memory, memory_bytes, &embedder, &diag);
  *out_embedder = reinterpret_cast<arn_embedder*>(embedder);
  return Report(status, diag, error, error_bytes);
}

void arn_embedder_destroy(arn_embedder* embedder) { Embedder::Destroy(ToEmbedder(embedder)); }

const char* arn_embedder_last_error(const arn_embedder* embedder) {
  return embedder == nullptr ? "" : ToEmbedder(embedder)->diag().text();
}

void arn_embedder_cancel(arn_embedder* embedder) {
  if (embedder != nullptr) ToEmbedder(embedder)->Cancel();
}

arn_status arn_embed(arn_embedder* embedder, const char* prompt, const arn_text* texts,
                     size_t n_texts, float* out, size_t capacity) {
  return OnEmbedder(embedder, [&](Embedder& e) {
    ARN_TRY(CheckTexts(texts, n_texts, out, e.diag()));
    return e.EmbedTexts(PromptOf(e.model(), prompt), TextsOf(texts, n_texts), {out, capacity});
  });
}

arn_status arn_embed_ids(arn_embedder* embedder, const int32_t* ids, size_t n_ids,
                         const uint32_t* lengths, const uint32_t* first_lengths, size_t n_texts,
                         float* out, size_t capacity) {
  return OnEmbedder(embedder, [&](Embedder& e) {
    if ((ids == nullptr && n_ids != 0) ||
        ((lengths == nullptr || out == nullptr) && n_texts != 0)) {
      return e.diag()->Fail(Status::kBadArgument, "ids, lengths or out is NULL");
    }
    return e.EmbedIds({ids, n_ids}, {lengths, n_texts},
                      {first_lengths, first_lengths == nullptr ? 0 : n_texts}, {out, capacity});
  });
}

arn_status arn_rerank(arn_embedder* embedder, const char* instruction, arn_text query,
                      const arn_text* documents, size_t n_documents, float* out, size_t capacity) {
  return OnEmbedder(embedder, [&](Embedder& e) {
    ARN_TRY(CheckTexts(&query, 1, out, e.diag()));
    ARN_TRY(CheckTexts(documents, n_documents, out, e.diag()));
    return e.ScorePairs(ViewOf(instruction), TextsOf(&query, 1)[0], TextsOf(documents, n_documents),
                        {out, capacity});
  });
}

arn_status arn_embedder_get_counts(const arn_embedder* embedder, arn_embed_counts* out_counts) {
  if (embedder == nullptr) return ARN_BAD_ARGUMENT;
  const EmbedCounts& counts = ToEmbedder(embedder)->counts();
  arn_embed_counts out = ARN_EMBED_COUNTS_INIT;
  out.n_tokens = counts.n_tokens;
  out.n_cut_texts = counts.n_cut_texts;
  out.ns = counts.ns;
  return ToC(WriteStruct(out, out_counts));
}

}  // extern "C"

// arn_tokenize and its way back.
#include "platform/os/pages.h"
#include "runtime/api/handles.h"

namespace arn::api {
namespace {

constexpr size_t kScratchAlign = 16;

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

size_t arn_tokenize_scratch_bytes(const arn_model* model, size_t text_bytes) {
  if (model == nullptr || ToModel(model)->tokenizer == nullptr) return 0;
  return ToModel(model)->tokenizer->EncodeScratchBytes(text_bytes);
}

arn_status arn_tokenize(const arn_model* model, const char* text, size_t text_bytes, uint32_t flags,
                        void* scratch, size_t scratch_bytes, int32_t* out_ids, size_t capacity,
                        size_t* out_count) {
  if (out_count == nullptr) return ARN_BAD_ARGUMENT;
  *out_count = 0;
  if (model == nullptr || (text == nullptr && text_bytes > 0) ||
      (out_ids == nullptr && capacity > 0) ||
      (flags & ~static_cast<uint32_t>(ARN_TOKENIZE_NO_SPECIAL)) != 0 ||
      reinterpret_cast<uintptr_t>(scratch) % kScratchAlign != 0) {
    return ARN_BAD_ARGUMENT;
  }
  const Tokenizer* tokenizer = ToModel(model)->tokenizer;
  if (tokenizer == nullptr) return ARN_UNSUPPORTED;
  const size_t needed = tokenizer->EncodeScratchBytes(text_bytes);
  if (scratch != nullptr && scratch_bytes < needed) return ARN_BUFFER_TOO_SMALL;
  Span<std::byte> own;
  Span<std::byte> space(static_cast<std::byte*>(scratch), scratch_bytes);
  if (scratch == nullptr && needed > 0) {
    Result<Span<std::byte>> pages = ReservePages(needed);
    if (!pages.ok()) return ToC(pages.status());
    space = own = pages.value();
  }
  Diag diag;
  const Status status =
      tokenizer->Encode(StringView(text, text_bytes), (flags & ARN_TOKENIZE_NO_SPECIAL) == 0, space,
                        {out_ids, capacity}, out_count, &diag);
  ReleasePages(own);
  return ToC(status);
}

arn_status arn_detokenize(const arn_model* model, const int32_t* ids, size_t n_ids, uint32_t flags,
                          char* out_text, size_t capacity, size_t* out_bytes) {
  if (out_bytes == nullptr) return ARN_BAD_ARGUMENT;
  *out_bytes = 0;
  if (model == nullptr || (ids == nullptr && n_ids > 0) || (out_text == nullptr && capacity > 0) ||
      (flags & ~static_cast<uint32_t>(ARN_DETOKENIZE_SKIP_SPECIAL)) != 0) {
    return ARN_BAD_ARGUMENT;
  }
  const Tokenizer* tokenizer = ToModel(model)->tokenizer;
  if (tokenizer == nullptr) return ARN_UNSUPPORTED;
  for (size_t i = 0; i < n_ids; ++i) {
    if (ids[i] < 0 || static_cast<uint32_t>(ids[i]) >= tokenizer->n_tokens()) return ARN_BAD_TOKEN;
  }
  const bool skip_special = (flags & ARN_DETOKENIZE_SKIP_SPECIAL) != 0;
  return ToC(tokenizer->Decode({ids, n_ids}, skip_special, {out_text, capacity}, out_bytes));
}

arn_status arn_token_text(const arn_model* model, int32_t id, const char** out_text,
                          size_t* out_bytes) {
  if (out_text == nullptr || out_bytes == nullptr) return ARN_BAD_ARGUMENT;
  *out_text = nullptr;
  *out_bytes = 0;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  const Tokenizer* tokenizer = ToModel(model)->tokenizer;
  if (tokenizer == nullptr) return ARN_UNSUPPORTED;
  if (id < 0 || static_cast<uint32_t>(id) >= tokenizer->n_tokens()) return ARN_BAD_TOKEN;
  const StringView text = tokenizer->TokenText(id);
  *out_text = text.data;
  *out_bytes = text.size;
  return ARN_OK;
}

}  // extern "C"

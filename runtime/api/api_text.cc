// Implements arn_tokenize and arn_detokenize.
#include <cstddef>
#include <cstring>

#include "platform/os/pages.h"
#include "runtime/api/handles.h"

namespace arn::api {
namespace {

constexpr size_t kScratchAlign = 16;
constexpr uint32_t kTokenizeFlags = ARN_TOKENIZE_NO_SPECIAL | ARN_TOKENIZE_PLAIN;

static_assert(sizeof(arn_text_span) == sizeof(TextSpan) &&
              offsetof(arn_text_span, offset) == offsetof(TextSpan, offset) &&
              offsetof(arn_text_span, bytes) == offsetof(TextSpan, bytes));

Status Tokenize(const arn_model* model, StringView text, const arn_tokenize_options& options,
                Span<int32_t> ids, size_t* count) {
  if (model == nullptr || (text.data == nullptr && text.size > 0) ||
      (ids.data() == nullptr && ids.size() > 0) || (options.flags & ~kTokenizeFlags) != 0 ||
      (options.plain_spans == nullptr && options.n_plain_spans > 0) ||
      reinterpret_cast<uintptr_t>(options.scratch) % kScratchAlign != 0) {
    return Status::kBadArgument;
  }
  const Tokenizer* tokenizer = ToModel(model)->tokenizer;
  if (tokenizer == nullptr) return Status::kUnsupported;
  const size_t needed = tokenizer->EncodeScratchBytes(text.size);
  if (options.scratch != nullptr && options.scratch_bytes < needed) return Status::kBufferTooSmall;
  Span<std::byte> own;
  Span<std::byte> space(static_cast<std::byte*>(options.scratch), options.scratch_bytes);
  if (options.scratch == nullptr && needed > 0) {
    ARN_ASSIGN(own, ReservePages(needed));
    space = own;
  }
  Tokenizer::EncodeOptions encode;
  encode.add_special = (options.flags & ARN_TOKENIZE_NO_SPECIAL) == 0;
  encode.is_plain = (options.flags & ARN_TOKENIZE_PLAIN) != 0;
  encode.plain_spans = {reinterpret_cast<const TextSpan*>(options.plain_spans),
                        options.n_plain_spans};
  encode.max_steps = options.max_steps;
  encode.stop = options.stop;
  encode.user = options.user;
  Diag diag;
  const Status status = tokenizer->Encode(text, encode, space, ids, count, &diag);
  ReleasePages(own);
  return status;
}

// Unpacks the stream state in arn_detokenizer. Returns false if it is invalid.
bool ReadState(const arn_detokenizer& from, Tokenizer::DecodeState* to) {
  constexpr uint32_t kFlags = 7;
  const uint32_t* const words = from.state;
  if ((words[0] & ~kFlags) != 0 || words[2] >= sizeof to->pending) return false;
  to->started = (words[0] & 1) != 0;
  to->bad_run = (words[0] & 2) != 0;
  to->space_waits = (words[0] & 4) != 0;
  to->stripped = words[1];
  to->pending_size = words[2];
  std::memcpy(to->pending, &words[3], sizeof to->pending);
  return true;
}

void WriteState(const Tokenizer::DecodeState& from, arn_detokenizer* to) {
  *to = {};
  to->state[0] = (from.started ? 1u : 0u) | (from.bad_run ? 2u : 0u) | (from.space_waits ? 4u : 0u);
  to->state[1] = from.stripped;
  to->state[2] = from.pending_size;
  std::memcpy(&to->state[3], from.pending, sizeof from.pending);
}

// Runs `decode`, which writes to the text buffer and returns the size. `decode` must leave the
// state unchanged if the buffer is too small.
template <typename Decode>
arn_status Detokenize(const arn_model* model, arn_detokenizer* state, char* out_text,
                      size_t capacity, size_t* out_bytes, const Decode& decode) {
  if (out_bytes == nullptr) return ARN_BAD_ARGUMENT;
  *out_bytes = 0;
  Tokenizer::DecodeState read;
  if (model == nullptr || state == nullptr || (out_text == nullptr && capacity > 0) ||
      !ReadState(*state, &read)) {
    return ARN_BAD_ARGUMENT;
  }
  const Tokenizer* tokenizer = ToModel(model)->tokenizer;
  if (tokenizer == nullptr) return ARN_UNSUPPORTED;
  const arn_status status = decode(*tokenizer, &read, Span<char>(out_text, capacity), out_bytes);
  if (status != ARN_OK) return status;
  if (*out_bytes > capacity) return ARN_BUFFER_TOO_SMALL;
  WriteState(read, state);
  return ARN_OK;
}

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
  arn_tokenize_options options = ARN_TOKENIZE_OPTIONS_INIT;
  options.flags = flags;
  options.scratch = scratch;
  options.scratch_bytes = scratch_bytes;
  return arn_tokenize_with(model, text, text_bytes, &options, out_ids, capacity, out_count);
}

arn_status arn_tokenize_with(const arn_model* model, const char* text, size_t text_bytes,
                             const arn_tokenize_options* options, int32_t* out_ids, size_t capacity,
                             size_t* out_count) {
  if (out_count == nullptr) return ARN_BAD_ARGUMENT;
  *out_count = 0;
  arn_tokenize_options read = ARN_TOKENIZE_OPTIONS_INIT;
  Diag diag;
  const Status status = ReadStruct(options, "arn_tokenize_options", &read, &diag);
  if (status != Status::kOk) return ToC(status);
  return ToC(Tokenize(model, {text, text_bytes}, read, {out_ids, capacity}, out_count));
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

size_t arn_detokenizer_piece_bytes(const arn_model* model) {
  if (model == nullptr || ToModel(model)->tokenizer == nullptr) return 0;
  return ToModel(model)->tokenizer->max_piece_bytes();
}

arn_status arn_detokenizer_next(const arn_model* model, arn_detokenizer* state, int32_t id,
                                uint32_t flags, char* out_text, size_t capacity,
                                size_t* out_bytes) {
  return Detokenize(model, state, out_text, capacity, out_bytes,
                    [id, flags](const Tokenizer& tokenizer, Tokenizer::DecodeState* decode,
                                Span<char> out, size_t* bytes) -> arn_status {
                      if ((flags & ~static_cast<uint32_t>(ARN_DETOKENIZE_SKIP_SPECIAL)) != 0) {
                        return ARN_BAD_ARGUMENT;
                      }
                      if (id < 0 || static_cast<uint32_t>(id) >= tokenizer.n_tokens())
                        return ARN_BAD_TOKEN;
                      *bytes = tokenizer.DecodeToken(
                          decode, id, (flags & ARN_DETOKENIZE_SKIP_SPECIAL) != 0, out);
                      return ARN_OK;
                    });
}

arn_status arn_detokenizer_end(const arn_model* model, arn_detokenizer* state, char* out_text,
                               size_t capacity, size_t* out_bytes) {
  return Detokenize(model, state, out_text, capacity, out_bytes,
                    [](const Tokenizer& tokenizer, Tokenizer::DecodeState* decode, Span<char> out,
                       size_t* bytes) -> arn_status {
                      *bytes = tokenizer.DecodeFinish(decode, out);
                      if (*bytes <= out.size()) *decode = Tokenizer::DecodeState();
                      return ARN_OK;
                    });
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

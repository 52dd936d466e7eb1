// TextIds: makes the token ids that a model sees of a text or a pair of texts.
#pragma once

#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/model/model.h"

namespace arn {

class TextIds {
 public:
  struct Buffers {
    Span<int32_t> ids[2];     // each of max_tokens
    Span<char> text;          // text_bytes
    Span<std::byte> scratch;  // Tokenizer::EncodeScratchBytes(text_bytes)
  };
  // Describes what became of a text. The tokens are pieces of `tokens`, in order.
  struct Result {
    size_t n_tokens = 0;
    uint32_t n_first_type = UINT32_MAX;  // tokens of the pair's first text and what belongs to it
    bool is_cut = false;                 // it was longer than max_tokens
  };

  // `model` must outlive this and have a tokenizer, unless nothing is encoded.
  TextIds(const Model& model, const Buffers& buffers) : model_(model), buffers_(buffers) {}

  // Writes the special tokens, and the prompt and the text between them, to `tokens` of max_tokens.
  // Cuts the text at its end. kBadArgument: the text is longer than text_bytes, or gives no token.
  Status Encode(StringView prompt, StringView text, Span<int32_t> tokens, Result* out, Diag* diag);

  // Writes a pair: the model's pair template, whose end, behind the last text put in, is encoded
  // for itself and never cut; or the two texts between the tokenizer's special tokens, cut at their
  // ends, the longer one first (longest_first of Hugging Face tokenizers). `instruction`: of the
  // template.
  Status EncodePair(StringView instruction, StringView query, StringView document,
                    Span<int32_t> tokens, Result* out, Diag* diag);

 private:
  Status Tokenize(StringView text, Span<int32_t> ids, size_t* n_ids, Diag* diag) const;
  Status EncodeTemplate(StringView form, StringView instruction, StringView query,
                        StringView document, Span<int32_t> tokens, Result* out, Diag* diag);
  // Appends to the text buffer. Returns false if it is full.
  bool Append(StringView piece);
  Status TooLong(uint64_t bytes, Diag* diag) const;

  const Model& model_;
  const Buffers buffers_;
  size_t text_size_ = 0;
};

}  // namespace arn

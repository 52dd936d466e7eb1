// Parts of a Tokenizer.
#pragma once

#include "platform/base/span.h"
#include "runtime/text/added_tokens.h"
#include "runtime/text/normalize.h"
#include "runtime/text/pre_tokenize.h"
#include "runtime/text/text_model.h"
#include "runtime/text/token_decoder.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/vocab.h"

namespace arn {

struct Tokenizer::Impl {
  // Scratch of Encode, in bytes unless noted.
  struct Sizes {
    uint64_t valid_text = 0;   // copy with U+FFFD for invalid bytes
    uint64_t normalized = 0;   // each of two buffers
    uint64_t pieces = 0;       // pre-tokenizer buffer
    TextModel::Limits limits;  // of the longest piece
    uint64_t shared = 0;       // used by the normaliser, then by the model
    uint64_t matcher = 0;
    uint64_t total = 0;
  };
  Sizes Measure(uint64_t text_bytes) const;

  Vocab vocab;
  NormalizerChain normalizer;
  PreTokenizer pre_tokenizer;
  TextModel model;
  AddedTokens added;
  TokenDecoder decoder;
  Span<const uint32_t> prefix_ids;
  Span<const uint32_t> suffix_ids;
  // Maximum symbols per byte of text and per pre-tokenizer replacement.
  uint64_t symbols_per_byte = 1;
  uint64_t symbols_per_space = 1;
};

}  // namespace arn

// Models that take a whole piece, as in Hugging Face tokenizers: WordPiece (Schuster and Nakajima
// 2012; longest token from the left) and WordLevel (the piece is a token or unknown).
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/text/id_sink.h"
#include "runtime/text/token_trie.h"
#include "runtime/text/vocab.h"

namespace arn {

class WordPieceModel {
 public:
  // `units_are_bytes`: the pre-tokenizer is byte-level.
  void Init(const fbs::Tokenizer& table, bool units_are_bytes, const Vocab* vocab,
            const TokenTrie* trie);

  // Returns the scratch bytes that Encode needs for a piece.
  static uint64_t ScratchBytes(uint64_t piece_bytes) {
    return (piece_bytes + 1) * sizeof(uint32_t);
  }

  // REQUIRES: `piece` is valid UTF-8. kBadArgument if it is unknown and there is no unknown token;
  // kInternal if `ids` has less than one entry per byte.
  Status Encode(StringView piece, Span<uint32_t> ids, IdSink* out) const;

 private:
  bool IsTooLong(StringView piece) const;

  const Vocab* vocab_ = nullptr;
  const TokenTrie* trie_ = nullptr;
  bool units_are_bytes_ = false;
  uint32_t max_word_chars_ = 0;
  uint32_t unk_id_ = kEmptySlot;
  uint32_t prefix_node_ = kEmptySlot;  // trie node after the subword prefix
};

class WordLevelModel {
 public:
  void Init(const fbs::Tokenizer& table, const Vocab* vocab);

  // kBadArgument if the piece is unknown and there is no unknown token.
  Status Encode(StringView piece, IdSink* out) const;

 private:
  const Vocab* vocab_ = nullptr;
  uint32_t unk_id_ = kEmptySlot;
};

}  // namespace arn

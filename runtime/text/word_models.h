// Models that take a piece as a whole: WordPiece (Schuster and Nakajima 2012; the longest token
// from the left on) and WordLevel (the piece is a token or unknown), as Hugging Face tokenizers
// has them.
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

  // Bytes of scratch that Encode takes for a piece of that size.
  static uint64_t ScratchBytes(uint64_t piece_bytes) {
    return (piece_bytes + 1) * sizeof(uint32_t);
  }

  // `piece` is valid UTF-8. kBadArgument when it is unknown and there is no token for that;
  // kInternal when `ids` has not room for one a byte.
  Status Encode(StringView piece, Span<uint32_t> ids, IdSink* out) const;

 private:
  bool IsTooLong(StringView piece) const;

  const Vocab* vocab_ = nullptr;
  const TokenTrie* trie_ = nullptr;
  bool units_are_bytes_ = false;
  uint32_t max_word_chars_ = 0;
  uint32_t unk_id_ = kEmptySlot;
  uint32_t prefix_node_ = kEmptySlot;  // where the tokens that do not begin a piece are
};

class WordLevelModel {
 public:
  void Init(const fbs::Tokenizer& table, const Vocab* vocab);

  // kBadArgument when the piece is unknown and there is no token for that.
  Status Encode(StringView piece, IdSink* out) const;

 private:
  const Vocab* vocab_ = nullptr;
  uint32_t unk_id_ = kEmptySlot;
};

}  // namespace arn

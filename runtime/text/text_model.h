// Model of a tokenizer, of any type: converts a piece of text to ids.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/text/bpe.h"
#include "runtime/text/id_sink.h"
#include "runtime/text/token_trie.h"
#include "runtime/text/unigram.h"
#include "runtime/text/vocab.h"
#include "runtime/text/word_models.h"

namespace arn {

namespace fbs {
enum class TokenizerModel : uint8_t;
}

class TextModel {
 public:
  // Reads all tables except the vocabulary. `units_are_bytes`: the pre-tokenizer is byte-level.
  Status Init(const fbs::Tokenizer& table, Span<const std::byte> segments, bool units_are_bytes,
              const Vocab* vocab, Diag* diag);

  // Returns an upper bound of the symbols of a text.
  size_t CountSymbols(StringView text) const;

  // Maximum size of a piece.
  struct Limits {
    uint64_t symbols = 0;
    uint64_t bytes = 0;
  };
  // Scratch for encoding; one per text.
  struct Workspace {
    BpeModel::Workspace bpe;
    UnigramModel::Workspace unigram;
    Span<uint32_t> word_pieces;
  };
  // Returns the value that must be below 2^32 - 1.
  uint64_t CountUnits(const Limits& limits) const;
  // Returns the bytes that InitWorkspace needs for the same limits.
  uint64_t WorkspaceBytes(const Limits& limits) const;
  Status InitWorkspace(Arena* scratch, const Limits& limits, Workspace* workspace) const;

  // REQUIRES: `piece` is valid UTF-8 and within the limits. kBadArgument if a part of it has no
  // token and the model has no unknown token.
  Status Encode(StringView piece, Workspace* workspace, IdSink* out) const;

 private:
  fbs::TokenizerModel kind_{};
  const Vocab* vocab_ = nullptr;
  MergeTable merges_;
  TokenTrie trie_;
  BpeModel bpe_;
  UnigramModel unigram_;
  WordPieceModel word_piece_;
  WordLevelModel word_level_;
};

}  // namespace arn

// The model of a tokenizer, whichever it is: from a piece of text to ids.
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
  // Reads all tables but the vocabulary's. `units_are_bytes`: the pre-tokenizer is byte-level.
  Status Init(const fbs::Tokenizer& table, Span<const std::byte> segments, bool units_are_bytes,
              const Vocab* vocab, Diag* diag);

  // At most this many symbols stand for the text.
  size_t CountSymbols(StringView text) const;

  // How large a piece may be.
  struct Limits {
    uint64_t symbols = 0;
    uint64_t bytes = 0;
  };
  // What encoding works in; one for each text.
  struct Workspace {
    BpeModel::Workspace bpe;
    UnigramModel::Workspace unigram;
    Span<uint32_t> word_pieces;
  };
  // What has to be below 2^32 - 1.
  uint64_t CountUnits(const Limits& limits) const;
  // Enough for InitWorkspace with the same limits.
  uint64_t WorkspaceBytes(const Limits& limits) const;
  Status InitWorkspace(Arena* scratch, const Limits& limits, Workspace* workspace) const;

  // `piece` is valid UTF-8 and within the limits. kBadArgument when a part of it has no token and
  // there is none for unknown text.
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

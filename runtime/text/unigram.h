// Unigram language model (Kudo 2018, https://aclanthology.org/P18-1007): finds the segmentation of
// a piece with the greatest sum of scores, as Hugging Face tokenizers does: sums in f64 from the
// left; ties take the longest last token; a character without a token may be unknown, and adjacent
// unknown ones are merged.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/text/id_sink.h"
#include "runtime/text/token_trie.h"
#include "runtime/text/vocab.h"
#include "runtime/text/work_budget.h"

namespace arn {

class UnigramModel {
 public:
  // `units_are_bytes`: the pre-tokenizer is byte-level.
  Status Init(const fbs::Tokenizer& table, Span<const std::byte> segments, bool units_are_bytes,
              const Vocab* vocab, const TokenTrie* trie, Diag* diag);

  // Scratch of Encode.
  class Workspace {
   public:
    // Returns the bytes that Init needs for the same limits.
    static uint64_t Bytes(uint64_t max_piece_bytes, uint64_t max_token_bytes);
    // REQUIRES: max_piece_bytes < 2^32.
    Status Init(Arena* scratch, uint64_t max_piece_bytes, uint64_t max_token_bytes);
    WorkBudget* budget = nullptr;  // asked within a piece; must be set

   private:
    friend class UnigramModel;
    Span<uint32_t> tokens_;  // best last token of the text up to each position
    Span<double> scores_;    // ring buffer: scores up to each position within a token's length
  };

  // REQUIRES: `piece` is valid UTF-8. Linear in it. kBadArgument if a character has no token and
  // there is no unknown token; kInternal if it is longer than the workspace.
  Status Encode(StringView piece, Workspace* workspace, IdSink* out) const;

 private:
  struct Job;
  Status PutBlock(Job* job, size_t begin, size_t end) const;
  Status PutUnknown(Job* job, size_t end) const;
  size_t UnitBytes(const char* p) const;
  size_t LastUnitBytes(const char* begin, const char* end) const;

  const Vocab* vocab_ = nullptr;
  const TokenTrie* trie_ = nullptr;
  const double* scores_ = nullptr;
  double unk_score_ = 0;
  bool units_are_bytes_ = false;
  bool byte_fallback_ = false;
  uint32_t unk_id_ = kEmptySlot;
  uint32_t fallback_ids_[256];
};

}  // namespace arn

// Byte pair encoding (Sennrich et al. 2016, https://aclanthology.org/P16-1162) of one piece of
// text, in the order of Hugging Face tokenizers' BPE model: lowest rank first, ties leftmost first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/arena.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/text/id_sink.h"
#include "runtime/text/vocab.h"
#include "runtime/text/work_budget.h"

namespace arn {

class BpeModel {
 public:
  // REQUIRES: vocabulary and merges. `units_are_bytes`: the pre-tokenizer is byte-level.
  Status Init(const fbs::Tokenizer& table, bool units_are_bytes, const Vocab* vocab,
              const MergeTable* merges, Diag* diag);

  // Returns an upper bound of the symbols before merging.
  size_t CountSymbols(StringView text) const;

  // Arrays for merging; one workspace per Encode.
  class Workspace {
   public:
    // Returns the bytes that Init needs for the same count.
    static uint64_t Bytes(uint64_t max_symbols);
    // REQUIRES: max_symbols < 2^32.
    Status Init(Arena* scratch, uint64_t max_symbols);
    WorkBudget* budget = nullptr;  // asked within a piece; must be set

   private:
    friend class BpeModel;
    Span<uint32_t> ids_;
    Span<uint32_t> next_;
    Span<uint32_t> previous_;
    Span<uint64_t> heap_;  // rank << 32 | position of the left symbol
  };

  // REQUIRES: `piece` is valid UTF-8. kInternal if it has more symbols than the workspace.
  Status Encode(StringView piece, Workspace* workspace, IdSink* out) const;

 private:
  // Symbols of adjacent text, up to a border that no merge can cross.
  struct Chunk;

  void EncodeBytes(StringView piece, Chunk* chunk) const;
  void EncodeAffixed(StringView piece, Chunk* chunk) const;
  void EncodeCharacters(StringView piece, Chunk* chunk) const;
  void Append(Chunk* chunk, uint32_t id, uint32_t unit, const char* begin, const char* end) const;
  void Flush(Chunk* chunk) const;
  size_t MergeSmall(uint32_t* ids, size_t count) const;
  // Returns false if the budget ends it.
  bool MergeLarge(Workspace* workspace, size_t count, IdSink* out) const;

  const Vocab* vocab_ = nullptr;
  const MergeTable* merges_ = nullptr;
  bool units_are_bytes_ = false;
  bool byte_fallback_ = false;
  bool fuse_unk_ = false;
  bool ignore_merges_ = false;
  // Affixes added to a unit for the lookup: prefix if it does not begin a piece, suffix if it ends
  // one.
  StringView subword_prefix_;
  StringView word_suffix_;
  bool has_affixes_ = false;
  uint32_t unk_id_ = kEmptySlot;
  uint32_t unit_ids_[256];      // per byte, or per ASCII character
  uint32_t fallback_ids_[256];  // "<0x00>" ... "<0xFF>"
};

}  // namespace arn

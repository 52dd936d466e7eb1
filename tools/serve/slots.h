// Slots: the sequences of a session, what they hold and reserve, and which one a prompt goes to.
//
// A sequence whose work is done keeps its tokens until another prompt takes it, or until its pages
// are needed: the least recently used one goes first.
#pragma once

#include <arenite/arenite.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/serve/served_models.h"

namespace arn::serve {

class Slots {
 public:
  // The session must outlive the slots. image_token: of arn_image_info; -1: there is none.
  Slots(arn_session* session, const arn_memory_plan& plan, int32_t image_token);

  uint32_t size() const { return static_cast<uint32_t>(slots_.size()); }
  uint32_t n_pages() const { return n_pages_; }
  // Returns the pages that a sequence of so many tokens needs at most.
  uint32_t PagesFor(uint64_t n_tokens) const;
  // Returns sequences with these adapters for n replies to the prompt, the first of which may hold
  // a part of it, and reserves `pages` for each; nullopt if they must wait.
  std::optional<std::vector<uint32_t>> Take(const std::vector<int32_t>& ids,
                                            const AdapterUses& adapters, uint32_t n,
                                            uint32_t pages);
  const AdapterUses& AdaptersOf(uint32_t sequence) const { return slots_[sequence].adapters; }
  // The sequence keeps its tokens for later prompts. `keeps` false: they are dropped.
  void Release(uint32_t sequence, bool keeps);
  // Gives a copy of a sequence to another one that Take returned with it.
  arn_status Fork(uint32_t from, uint32_t to);
  // Drops the tokens of the least recently used sequence. Returns false if all are busy or empty.
  bool DropOldest();

  struct Use {
    uint32_t n_tokens;
    bool is_busy;
  };
  std::vector<Use> Uses() const;

 private:
  struct Slot {
    bool is_busy = false;
    uint32_t pages = 0;  // reserved while busy
    uint64_t used_at = 0;
    AdapterUses adapters;  // of its tokens, and of those that come
  };

  uint32_t Length(uint32_t sequence) const;
  // Embeddings count as equal to an image's token: the session compares them.
  uint32_t CommonPrefix(uint32_t sequence, const std::vector<int32_t>& ids) const;
  uint32_t PagesInUse() const;
  std::optional<uint32_t> Oldest(std::optional<uint32_t> but) const;
  void Clear(uint32_t sequence);
  // Sets those of an empty sequence.
  void SetAdapters(uint32_t sequence, const AdapterUses& adapters);

  arn_session* session_;
  uint32_t page_tokens_, n_pages_, context_;
  int32_t image_token_;
  uint64_t clock_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace arn::serve

// SequenceLeases: which sequence a scheduler's request gets, and which pages it may count on.
//
// A sequence whose request has ended keeps its tokens, so that later prompts that begin alike go on
// from them, until another request takes it or its pages are needed: the least recently used one
// goes first, and those that waiting requests begin as go last.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/scheduler/request.h"
#include "runtime/session/sequences.h"

namespace arn {

struct SequenceLease {
  bool is_busy = false;
  bool is_wanted = false;  // free, and a waiting request goes on from it
  uint32_t pages = 0;      // reserved while busy
  uint64_t used_at = 0;    // greater: later
};

class SequenceLeases {
 public:
  // Tokens for which a copy of a sequence is worth its while.
  static constexpr uint32_t kLeastShared = 8;

  SequenceLeases(SessionCore* core, Sequences* sequences) : core_(*core), sequences_(*sequences) {}

  // Called before the tokens of a free sequence go, or most of them: others need its place or its
  // pages.
  using OnDrop = void (*)(void* user, uint32_t sequence);

  // All are free. They keep their tokens.
  void Init(OnDrop on_drop, void* user);
  // Returns the pages that a request needs at most.
  uint32_t PagesFor(const Request& request) const;
  uint32_t n_pages() const;
  // True if a sequence and its pages are free for the request.
  bool HasRoomFor(const Request& request) const;
  // Returns how many tokens of its prompt a sequence with its adapters holds, at most. *best:
  // which.
  uint32_t LongestPrefix(const Request& request, uint32_t* best);
  // Forgets which sequences are wanted; wants a free one.
  void ForgetWanted();
  void Want(uint32_t sequence) { leases_[sequence].is_wanted = true; }
  // True if a prompt with that many tokens of a sequence's beginning goes on from it, rather than
  // leave most of it: then a copy of the beginning does.
  bool GoesOnFrom(uint32_t sequence, uint32_t common) const {
    return 2 * common >= sequences_.Length(sequence);
  }
  // Takes and selects a sequence with the request's adapters, which may begin as its prompt does.
  // REQUIRES: HasRoomFor(request); best, common: of LongestPrefix().
  uint32_t Take(const Request& request, uint32_t best, uint32_t common);
  // The same for tokens that are restored.
  bool HasRoomToRestore(uint64_t n_tokens) const { return HasRoom(PagesOf(n_tokens)); }
  // Takes, selects and empties a free sequence, without adapters. REQUIRES: HasRoomToRestore().
  uint32_t TakeToRestore(uint64_t n_tokens);
  // Frees a sequence, which keeps its tokens.
  void Release(uint32_t sequence);
  // Drops the tokens of the free sequence that goes first. Returns false if there are none.
  bool DropOldest();
  bool is_busy(uint32_t sequence) const { return leases_[sequence].is_busy; }
  uint64_t n_dropped() const { return n_dropped_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Empties a sequence that may hold tokens.
  void Empty(uint32_t sequence);
  void TellDrop(uint32_t sequence);
  uint32_t PagesOf(uint64_t n_tokens) const;
  uint32_t PagesInUse() const;
  bool HasRoom(uint32_t pages) const;
  void MakeRoom();
  bool HasAdapters(uint32_t sequence, const Request& request) const;
  enum class Wanted : uint8_t { kSpared, kTaken };
  // Returns the least recently used free sequence with tokens, or kNone.
  uint32_t Oldest(Wanted wanted) const;
  uint32_t FindEmpty() const;

  SessionCore& core_;
  Sequences& sequences_;
  Span<SequenceLease> leases_;
  OnDrop on_drop_ = nullptr;
  void* user_ = nullptr;
  uint64_t clock_ = 0;
  uint64_t n_dropped_ = 0;  // sequences whose tokens went for the pages of others
};

}  // namespace arn

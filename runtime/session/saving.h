// Saving: saves the sequences, restores them, and starts a sequence from the bundle's prefix,
// which is a saved one. Functions over a view, because they own nothing.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "runtime/session/chooser.h"
#include "runtime/session/constrainer.h"
#include "runtime/session/core.h"
#include "runtime/session/executor.h"
#include "runtime/session/prefiller.h"
#include "runtime/session/recompute.h"
#include "runtime/session/runner.h"
#include "runtime/session/sequences.h"
#include "runtime/state/state_reader.h"
#include "runtime/state/state_writer.h"

namespace arn {

// The parts of a session that saving uses.
struct SavingView {
  SessionCore& core;
  Executor& executor;
  Sequences& sequences;
  Constrainer& constrainer;
  Recompute& recompute;
  Runner& runner;
  Chooser& chooser;
  Prefiller& prefiller;
  bool owns_pages = false;  // the session's block may be mapped over

  KvCache& cache() const { return sequences.cache(); }
  LogitsState& logits() const { return sequences.logits(); }
};

// Saved state to restore.
struct StateSource {
  Span<const std::byte> bytes;
  // Open file that `bytes` is a mapping of; -1: none. Its pages are mapped instead of copied where
  // possible.
  int fd = -1;
  uint64_t file_offset = 0;  // offset of `bytes` in that file
  bool verify_pages = false;
  bool has_constraints = true;  // false: saved constraints are left out
};

// Returns the size of what Save() would write now. kUnsupported without a cache.
Status SaveBytes(const SavingView& view, uint64_t* out_bytes);
// Writes a state of SaveBytes() bytes to the sink. kUnsupported as above. kDeviceLost if the device
// fails midway; saving again works if the fallback backend took over.
Status Save(const SavingView& view, const StateSink& sink);
// Replaces all sequences by those of a saved state. On failure nothing changes, unless the backend
// itself fails (a device), or a saved constraint cannot be compiled where there were constraints:
// then all sequences are empty.
Status Restore(const SavingView& view, const StateSource& source);
// The same of one sequence, as a state that has no other. kBadState if tokens of it must run again
// or it has a constraint, kUnsupported if it has embeddings or adapters.
Status SaveOneBytes(const SavingView& view, uint32_t sequence, uint64_t* out_bytes);
Status SaveOne(const SavingView& view, uint32_t sequence, const StateSink& sink);
// Checks a state of one sequence as Restore() does.
Status CheckOne(const SavingView& view, const StateSource& source, StateView* out);
// Makes the selected sequence, without adapters, the one of a state that CheckOne() accepted; its
// sampling is not restored. kContextFull, with the sequence empty, if pages are missing.
Status RestoreOne(const SavingView& view, const StateView& state);
// Makes the selected sequence the bundle's prefix, without running it. kNotFound if it has none.
Status UsePrefix(const SavingView& view);
// A part of the tokens that a sequence is to hold: those it has, and the rest.
struct KeptPrefix {
  uint32_t n_kept = 0;       // leading tokens that it holds
  Span<const int32_t> rest;  // the others, in memory of the caller or the session
  uint32_t n_again = 0;      // how many of the rest had run before
};
// The part of ReusePrefix() that runs nothing. After it the selected sequence holds the kept tokens
// only; with all of them, it has logits.
Status KeepPrefix(const SavingView& view, Span<const int32_t> ids, Span<const float> embeddings,
                  KeptPrefix* out);
// Makes the selected sequence `ids`, with logits of the last one. Keeps the tokens that it begins
// with, up to a snapshot of the recurrent states, or takes those of the bundle's prefix, and
// prefills the rest. Marks the states where the tokens begin to differ. *out_kept: tokens not run.
// embeddings: rows as in Sequences::TakeEmbeddings; empty: none.
Status ReusePrefix(const SavingView& view, Span<const int32_t> ids, Span<const float> embeddings,
                   uint32_t* out_kept);

}  // namespace arn

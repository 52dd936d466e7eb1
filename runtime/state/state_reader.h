// A saved session as a reader finds it: untrusted bytes, checked against the session that wants
// them before anything is changed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/sampling/sampler.h"
#include "runtime/state/state_format.h"

namespace arn {

// Records of a state that CheckState accepted.
class StateView {
 public:
  StateView() = default;
  StateView(Span<const std::byte> file, const StateHeader& header) : file_(file), header_(header) {}

  const StateHeader& header() const { return header_; }
  StateGroup Group(uint32_t g) const;
  StateSequence Sequence(uint32_t s) const;
  StateTable Table(uint32_t s, uint32_t g) const;
  // Where the tables' entries, the tokens and the logits begin; at any alignment.
  const std::byte* entries() const;
  const std::byte* tokens() const { return At(header_.tokens.offset); }
  const std::byte* logits() const { return At(header_.logits.offset); }
  Span<const std::byte> pages(const StatePages& pages) const {
    return {At(pages.offset), static_cast<size_t>(pages.count * pages.page_bytes)};
  }
  Span<const std::byte> section(const StateSection& section) const {
    return {At(section.offset), static_cast<size_t>(section.bytes)};
  }

 private:
  const std::byte* At(uint64_t offset) const { return file_.data() + offset; }
  uint64_t SequencesOffset() const;
  uint64_t TablesOffset() const;

  Span<const std::byte> file_;
  StateHeader header_ = {};
};

// The sampling of a saved sequence.
SamplingOptions SamplingOf(const StateSequence& sequence);

// What is to be restored into.
struct StateTarget {
  const SessionPlan* plan = nullptr;
  uint64_t model_hash = 0;
  // u32 [n_pages + n_sealed_pages] for each group, whose contents do not matter.
  uint32_t* const* scratch = nullptr;
};

// Checks all of `file` but, unless `verify_pages`, the contents of its pages, which may be any
// bytes. kBadSave: not a state, another version, cut short, or records that contradict each other;
// kHashMismatch: damaged; kSaveMismatch: of another model, KV type or page size; kContextFull: more
// than the target holds. The reason is in diag, with both values.
Status CheckState(Span<const std::byte> file, const StateTarget& target, bool verify_pages,
                  StateView* out, Diag* diag);

}  // namespace arn

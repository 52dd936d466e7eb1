// Reads a saved session from untrusted bytes; checks it against the target session before anything
// changes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/state/state_fields.h"
#include "runtime/state/state_format.h"

namespace arn {

// View of a state that CheckState accepted.
class StateView {
 public:
  StateView() = default;
  // n_field_words: of all sequences.
  StateView(Span<const std::byte> file, const StateHeader& header, uint64_t n_field_words,
            uint64_t embedding_bytes = 0)
      : file_(file),
        header_(header),
        n_field_words_(n_field_words),
        embedding_bytes_(embedding_bytes) {}

  const StateHeader& header() const { return header_; }
  StateGroup Group(uint32_t g) const;
  StateSequence Sequence(uint32_t s) const;
  // Reads the sampling of a sequence, as ReadFields. Cannot fail after CheckState.
  Status Sampling(uint32_t s, const SamplingLimits& limits, uint32_t* lists, SavedSampling* out,
                  Diag* diag) const;
  StateTable Table(uint32_t s, uint32_t g) const;
  // Start of the tables' entries, the tokens and the logits. Unaligned.
  const std::byte* entries() const;
  const std::byte* tokens() const { return At(header_.tokens.offset); }
  const std::byte* logits() const { return At(header_.logits.offset); }
  // f32 rows, unaligned.
  Span<const std::byte> embeddings() const {
    const StateSection& all = header_.tokens;
    return {At(all.offset + all.bytes - embedding_bytes_), static_cast<size_t>(embedding_bytes_)};
  }
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
  uint64_t FieldsOffset() const;

  Span<const std::byte> file_;
  StateHeader header_ = {};
  uint64_t n_field_words_ = 0;
  uint64_t embedding_bytes_ = 0;
};

// Session to restore into.
struct StateTarget {
  const SessionPlan* plan = nullptr;
  uint64_t model_hash = 0;
  // u32 [n_pages + n_quantised_pages] for each group; scratch, contents are irrelevant.
  uint32_t* const* scratch = nullptr;
  SamplingLimits sampling;
  uint32_t* list_scratch = nullptr;  // u32 [sampling.n_words]
  bool has_constraints = true;       // false: saved constraints are passed over
  // Returns the adapters that sequence `s` uses. Null: none.
  Span<const ActiveAdapter> (*adapters_of)(const void* user, uint32_t s) = nullptr;
  const void* user = nullptr;
  uint32_t embedding_floats = 0;  // of a row of embeddings
  bool has_places = false;        // a row ends with an ImagePlace
};

// Checks all of `file` except, unless `verify_pages`, the contents of its pages, which may be any
// bytes. kBadSave: not a state, another version, truncated, or inconsistent; kHashMismatch:
// damaged; kSaveMismatch: another model, KV type or page size; kContextFull: more than the target
// holds, kUnsupported: no room for its options or constraints. diag gives the reason with both
// values.
Status CheckState(Span<const std::byte> file, const StateTarget& target, bool verify_pages,
                  StateView* out, Diag* diag);

}  // namespace arn

// The bytes of a saved session: docs/state-format.md. Little endian; a reader may find them at any
// alignment, so they are copied out.
#pragma once

#include <cstdint>

#include "kernels/kv_view.h"
#include "platform/base/status.h"
#include "runtime/memory/session_plan.h"

namespace arn {

inline constexpr char kStateMagic[8] = {'A', 'R', 'N', 'S', 'T', 'A', 'T', 'E'};
inline constexpr uint32_t kStateVersion = 1;
// Pages of each group begin at a multiple of this, so that they can be mapped into a pool.
inline constexpr uint64_t kStatePageAlign = 16384;
inline constexpr uint64_t kStateSectionAlign = 64;

struct StateSection {
  uint64_t offset;  // in the file
  uint64_t bytes;
  uint64_t hash;  // XXH64, seed 0
};

struct StateHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t file_bytes;
  uint64_t model_hash;     // the bundle's index hash
  uint64_t geometry_hash;  // GeometryHash()
  uint32_t n_groups;
  uint32_t n_sequences;
  uint32_t selected;
  uint32_t k_type;  // KvType
  uint32_t v_type;
  uint32_t page_tokens;
  uint32_t group_size;
  uint32_t vocab;
  StateSection index;
  StateSection tokens;   // i32: the sequences' tokens, one sequence after another
  StateSection logits;   // f32 [vocab] of each sequence that has them
  uint64_t header_hash;  // XXH64, seed 0, of the bytes before it
};
static_assert(sizeof(StateHeader) == 152);

// The index: StateGroup [n_groups], StateSequence [n_sequences], StateTable [n_sequences,
// n_groups], then the tables' entries, u32, one table after another.
struct StatePages {
  uint64_t count;
  uint64_t page_bytes;
  uint64_t offset;  // in the file; count * page_bytes bytes
  uint64_t hash;    // XXH64, seed 0
};
struct StateGroup {
  uint32_t n_layers;
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t window;
  uint32_t chunk;
  uint32_t state_floats;  // of each layer, and the pages are slots; 0: keys and values
  StatePages pages[kPageKinds];
};
static_assert(sizeof(StateGroup) == 88);

struct StateSequence {
  uint32_t n_tokens;
  uint32_t has_logits;
  float temperature;
  uint32_t top_k;
  float top_p;
  float min_p;
  uint64_t seed;
  uint64_t random_state;
};
static_assert(sizeof(StateSequence) == 40);

// An entry is the number of a saved page of the group, with the bit kSealedPage when it is a sealed
// one. Pages of a kind are numbered as they first appear, sequence by sequence.
struct StateTable {
  uint32_t first_page;
  uint32_t n_pages;
};
static_assert(sizeof(StateTable) == 8);

// What decides where everything lies.
struct StateCounts {
  uint32_t n_groups = 0;
  uint32_t n_sequences = 0;
  uint32_t vocab = 0;
  uint64_t n_entries = 0;
  uint64_t n_tokens = 0;
  uint64_t n_logits = 0;  // sequences that have them
  uint32_t n_pages[kMaxKvGroups][kPageKinds] = {};
  uint64_t page_bytes[kMaxKvGroups][kPageKinds] = {};
};

// Offsets and sizes; hashes are 0.
struct StateLayout {
  StateSection index = {};
  StateSection tokens = {};
  StateSection logits = {};
  StateSection pages[kMaxKvGroups][kPageKinds] = {};
  uint64_t file_bytes = 0;
};
// kOutOfMemory when a size leaves 2^62.
Status PlanState(const StateCounts& counts, StateLayout* out);

// Of what two sessions must have in common for one to read the other's pages: the element types,
// the tokens a page and a range, and each group's shape and what its layers see. Not of how much
// they hold, and not of when they seal.
uint64_t GeometryHash(const SessionPlan& plan);

}  // namespace arn

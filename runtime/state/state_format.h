// Byte layout of a saved session (docs/state-format.md). Little endian. Readers must copy records
// out, because a file may lie at any alignment.
#pragma once

#include <cstdint>

#include "kernels/contract/kv_view.h"
#include "platform/base/status.h"
#include "runtime/memory/session_plan.h"

namespace arn {

inline constexpr char kStateMagic[8] = {'A', 'R', 'N', 'S', 'T', 'A', 'T', 'E'};
// The newest version, written for sequences that hold embeddings; others are written in version
// kTextStateVersion. All from kOldestStateVersion on are read.
inline constexpr uint32_t kStateVersion = 3;
inline constexpr uint32_t kTextStateVersion = 2;
inline constexpr uint32_t kOldestStateVersion = 1;
// Alignment of each group's pages in the file, so that they can be mapped into a pool.
inline constexpr uint64_t kStatePageAlign = 16384;
inline constexpr uint64_t kStateSectionAlign = 64;

struct StateSection {
  uint64_t offset;  // file offset
  uint64_t bytes;
  uint64_t hash;  // XXH64, seed 0
};

struct StateHeader {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;
  uint64_t file_bytes;
  uint64_t model_hash;     // the model's state_hash
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
  // i32: token ids of the sequences, concatenated. Version 3: then f32 rows of embeddings; -1 - i
  // is row i. Rows that no sequence holds are zeros.
  StateSection tokens;
  StateSection logits;   // f32 [vocab] per sequence that has logits
  uint64_t header_hash;  // XXH64, seed 0, of the preceding bytes
};
static_assert(sizeof(StateHeader) == 152);

// Index: StateGroup [n_groups], StateSequence [n_sequences], StateTable [n_sequences, n_groups],
// then the sampling fields of all sequences (state_fields.h) and the entries of all tables, u32.
struct StatePages {
  uint64_t count;
  uint64_t page_bytes;
  uint64_t offset;  // file offset of count * page_bytes bytes
  uint64_t hash;    // XXH64, seed 0
};
struct StateGroup {
  uint32_t n_layers;
  uint32_t n_kv_heads;
  uint32_t head_dim;
  uint32_t window;
  uint32_t chunk;
  uint32_t state_floats;  // per layer, and the pages are slots; 0: keys and values
  StatePages pages[kPageKinds];
};
static_assert(sizeof(StateGroup) == 88);

struct StateSequence {
  uint32_t n_tokens;
  uint32_t has_logits;
  uint32_t n_field_words;  // words of its sampling fields
  uint32_t encoder_rows;   // 0: no encoder output
};
static_assert(sizeof(StateSequence) == 16);

// Version 1 had no sampling fields: the options that existed stood in the record.
struct StateSequenceV1 {
  uint32_t n_tokens;
  uint32_t has_logits;
  float temperature;
  uint32_t top_k;
  float top_p;
  float min_p;
  uint64_t seed;
  uint64_t random_state;
};
static_assert(sizeof(StateSequenceV1) == 40);

inline uint64_t SequenceRecordBytes(uint32_t version) {
  return version == 1 ? sizeof(StateSequenceV1) : sizeof(StateSequence);
}

// A table entry is the number of a saved page of the group, with the bit kQuantisedPage if it is
// quantised. Pages of a type are numbered in order of first use, sequence by sequence.
struct StateTable {
  uint32_t first_page;
  uint32_t n_pages;
};
static_assert(sizeof(StateTable) == 8);

// Counts that determine the layout.
struct StateCounts {
  uint32_t version = kStateVersion;
  uint32_t n_groups = 0;
  uint32_t n_sequences = 0;
  uint32_t vocab = 0;
  uint64_t n_field_words = 0;  // of all sequences
  uint64_t n_entries = 0;
  uint64_t n_tokens = 0;
  uint64_t embedding_bytes = 0;
  uint64_t n_logits = 0;  // sequences with logits
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
// Returns the bytes of the index before the sampling fields.
uint64_t IndexRecordBytes(uint32_t version, uint32_t n_groups, uint32_t n_sequences);
// kOutOfMemory if a size exceeds 2^62.
Status PlanState(const StateCounts& counts, StateLayout* out);

// Hashes everything two sessions must share to read each other's pages: element types, page and
// quantisation group sizes, shape and attention mask of each group. Excludes capacities and the
// time of quantisation.
uint64_t GeometryHash(const SessionPlan& plan);

}  // namespace arn

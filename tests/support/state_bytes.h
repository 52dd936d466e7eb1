// Parses and edits saved states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "platform/base/hash.h"
#include "runtime/state/state_format.h"

namespace arn::test {

inline StateHeader StateHeaderOf(const std::vector<uint8_t>& state) {
  StateHeader header = {};
  std::memcpy(&header, state.data(), state.size() < sizeof header ? state.size() : sizeof header);
  return header;
}

// Recomputes the hashes of the header and of all complete sections after a test changed their
// bytes.
inline void RepairState(std::vector<uint8_t>* state) {
  if (state->size() < sizeof(StateHeader)) return;
  StateHeader header = StateHeaderOf(*state);
  for (StateSection* section : {&header.index, &header.tokens, &header.logits}) {
    if (section->offset <= state->size() && section->bytes <= state->size() - section->offset) {
      section->hash = Xxh64(state->data() + section->offset, section->bytes);
    }
  }
  header.header_hash = Xxh64(&header, offsetof(StateHeader, header_hash));
  std::memcpy(state->data(), &header, sizeof header);
}

// Rewrites a state of version 2 as version 1, whose records have the five options of that time.
// REQUIRES: the state is intact; sequence s has the options `sampling[s]`.
inline std::vector<uint8_t> AsVersion1(const std::vector<uint8_t>& state,
                                       const std::vector<StateSequenceV1>& sampling) {
  StateHeader header = StateHeaderOf(state);
  const auto at = [&](uint64_t offset) { return state.data() + offset; };
  StateCounts counts;
  counts.version = 1;
  counts.n_groups = header.n_groups;
  counts.n_sequences = header.n_sequences;
  counts.vocab = header.vocab;
  counts.n_tokens = header.tokens.bytes / sizeof(int32_t);
  counts.n_logits = header.logits.bytes / sizeof(float) / header.vocab;
  const uint64_t groups_bytes = counts.n_groups * sizeof(StateGroup);
  std::vector<StateGroup> groups(counts.n_groups);
  std::memcpy(groups.data(), at(header.index.offset), groups_bytes);
  for (uint32_t g = 0; g < counts.n_groups; ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      counts.n_pages[g][kind] = static_cast<uint32_t>(groups[g].pages[kind].count);
      counts.page_bytes[g][kind] = groups[g].pages[kind].page_bytes;
    }
  }
  std::vector<StateSequence> sequences(counts.n_sequences);
  const uint64_t sequences_bytes = counts.n_sequences * sizeof(StateSequence);
  std::memcpy(sequences.data(), at(header.index.offset + groups_bytes), sequences_bytes);
  uint64_t n_field_words = 0;
  for (const StateSequence& sequence : sequences) n_field_words += sequence.n_field_words;
  const uint64_t tables_at = header.index.offset + groups_bytes + sequences_bytes;
  const uint64_t tables_bytes = sizeof(StateTable) * counts.n_sequences * counts.n_groups;
  const uint64_t entries_at = tables_at + tables_bytes + n_field_words * sizeof(uint32_t);
  const uint64_t entries_bytes = header.index.offset + header.index.bytes - entries_at;
  counts.n_entries = entries_bytes / sizeof(uint32_t);
  StateLayout layout;
  if (PlanState(counts, &layout) != Status::kOk) return {};
  std::vector<uint8_t> out(layout.file_bytes);
  for (uint32_t g = 0; g < counts.n_groups; ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      const StateSection& to = layout.pages[g][kind];
      std::memcpy(out.data() + to.offset, at(groups[g].pages[kind].offset), to.bytes);
      groups[g].pages[kind].offset = to.offset;
    }
  }
  uint64_t end = layout.index.offset;
  const auto append = [&](const void* bytes, uint64_t n) {
    std::memcpy(out.data() + end, bytes, n);
    end += n;
  };
  append(groups.data(), groups_bytes);
  for (uint32_t s = 0; s < counts.n_sequences; ++s) {
    StateSequenceV1 record = sampling[s];
    record.n_tokens = sequences[s].n_tokens;
    record.has_logits = sequences[s].has_logits;
    append(&record, sizeof record);
  }
  append(at(tables_at), tables_bytes);
  append(at(entries_at), entries_bytes);
  std::memcpy(out.data() + layout.tokens.offset, at(header.tokens.offset), header.tokens.bytes);
  std::memcpy(out.data() + layout.logits.offset, at(header.logits.offset), header.logits.bytes);
  header.version = 1;
  header.file_bytes = out.size();
  header.index = layout.index;
  header.tokens = layout.tokens;
  header.logits = layout.logits;
  std::memcpy(out.data(), &header, sizeof header);
  RepairState(&out);
  return out;
}

}  // namespace arn::test

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

}  // namespace arn::test

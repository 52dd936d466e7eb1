// Addresses inside the slots of a group of states (layout: kernels/contract/kv_view.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/contract/program.h"

namespace arn {

// Part of one layer's state.
struct StateSlot {
  const float* from = nullptr;  // before the sequence's first row of the run; null: all zeros
  float* to = nullptr;          // after its last row; never the same slot as `from`
};

// Params: those of an op with a state.
template <typename Params>
StateSlot StateSlotOf(const Program& program, const Memory& memory, const Params& params,
                      const SequenceRows& sequence) {
  const KvGroup& group = program.kv_groups[params.group];
  const PageTable& table = sequence.tables[params.group];
  const auto at = [&](uint32_t page) {
    std::byte* slot = memory.At(group.active.pool) + group.active.At(page, params.group_layer);
    return reinterpret_cast<float*>(slot) + params.state_offset;
  };
  StateSlot out;
  if (sequence.first_position != 0) out.from = at(table.pages[0]);
  out.to = at(table.pages[table.n_pages - 1]);
  return out;
}

}  // namespace arn

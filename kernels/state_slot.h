// Addresses inside the slots of a group of states (kernels/kv_view.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/program.h"

namespace arn {

// A part of one layer's state.
struct StateSlot {
  const float* from = nullptr;  // before the run's first row of the sequence; null: all zeros
  float* to = nullptr;          // after its last row; another slot than `from`
};

inline StateSlot StateSlotOf(const Program& program, const Memory& memory, const Step& step,
                             const SequenceRows& sequence) {
  const KvGroup& group = program.kv_groups[step.group];
  const PageTable& table = sequence.tables[step.group];
  const auto at = [&](uint32_t page) {
    std::byte* slot = memory.At(group.open.pool) + page * group.open.page_bytes;
    return reinterpret_cast<float*>(slot + step.group_layer * group.open.layer_bytes) +
           step.state_offset;
  };
  StateSlot out;
  if (sequence.first_position != 0) out.from = at(table.pages[0]);
  out.to = at(table.pages[table.n_pages - 1]);
  return out;
}

}  // namespace arn

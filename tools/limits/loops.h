// The innermost loops, one set for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn::limits {

struct Loop {
  const char* instruction;
  double ops_per_turn;
  // Makes `turns` of them in registers alone.
  void (*run)(uint64_t turns);
};

struct Loops {
  Loop integer;
  Loop floating;
  // Reads n bytes, a multiple of 1024 at an address that is one of 64.
  void (*read)(const std::byte* data, size_t n);
};

// The best of this CPU.
Loops ChooseLoops();

}  // namespace arn::limits

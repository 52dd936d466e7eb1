// Innermost loops, one set per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn::limits {

struct Loop {
  const char* instruction;
  double ops_per_turn;
  // Runs `turns` iterations in registers only.
  void (*run)(uint64_t turns);
};

struct Loops {
  Loop integer;
  Loop floating;
  // Reads n bytes. REQUIRES: n is a multiple of 1024; `data` is 64-byte aligned.
  void (*read)(const std::byte* data, size_t n);
};

// Returns the best loops for this CPU.
Loops ChooseLoops();

}  // namespace arn::limits

// Measures the machine's limits, memory bandwidth and arithmetic throughput, with dedicated loops
// that use the CPU's best instructions.
#pragma once

#include <cstdint>

namespace arn::limits {

struct Limits {
  uint32_t n_threads = 0;
  double read_bytes_per_s = 0;   // plain loads over a buffer larger than any cache, all threads
  double integer_ops_per_s = 0;  // int8 multiply-adds into 32 bits; two operations each
  double float_ops_per_s = 0;    // f32 multiply-adds; two operations each
  // Instructions of the two loops: "vpdpbusd zmm", "sdot", ...
  const char* integer_instruction = "";
  const char* float_instruction = "";
};

// Takes about a second and 256 MiB per thread, 512 MiB with one thread. Returns the best of several
// rounds, to exclude disturbance by other programs. Throws std::bad_alloc.
Limits Measure(uint32_t n_threads);

}  // namespace arn::limits

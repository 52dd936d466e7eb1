// What this machine can do at most: how fast it reads memory and how fast it multiplies. Measured
// by loops that do nothing else, on the best instructions that the CPU has.
#pragma once

#include <cstdint>

namespace arn::limits {

struct Limits {
  uint32_t n_threads = 0;
  double read_bytes_per_s = 0;   // plain loads over a buffer that no cache holds, all threads
  double integer_ops_per_s = 0;  // int8 products added up in 32 bits; two operations each
  double float_ops_per_s = 0;    // f32 multiply-adds; two operations each
  // What the two loops are made of: "vpdpbusd zmm", "sdot", ...
  const char* integer_instruction = "";
  const char* float_instruction = "";
};

// Takes about a second and 256 MiB for each thread, 512 MiB with one. The best of several rounds: a
// limit is not what the machine does while it is disturbed. Throws std::bad_alloc.
Limits Measure(uint32_t n_threads);

}  // namespace arn::limits

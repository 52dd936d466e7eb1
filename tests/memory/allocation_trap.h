// Replaces the C library's allocator with a counting one, for all threads of this program. Includes
// XNNPACK's default allocator and C++ operator new, which both call malloc.
#pragma once

#include <atomic>
#include <cstdint>

namespace arn::test {

// While set, every allocation and every free is counted.
extern std::atomic<bool> g_trap;
extern std::atomic<uint64_t> g_calls;

}  // namespace arn::test

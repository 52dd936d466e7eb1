// The C library's allocator is replaced by one that counts, for this program's every thread,
// XNNPACK's default allocator and C++'s operator new included (both end in malloc).
#pragma once

#include <atomic>
#include <cstdint>

namespace arn::test {

// While it is set, calls are counted: those that allocate and those that give back.
extern std::atomic<bool> g_trap;
extern std::atomic<uint64_t> g_calls;

}  // namespace arn::test

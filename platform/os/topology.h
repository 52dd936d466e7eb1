// Which CPUs are worth using.
#pragma once

#include <cstdint>

namespace arn {

// CPUs that this process may run on and whose capacity (the kernel's cpu_capacity, where it gives
// one) is at least half of the largest: the big and middle cores of a phone, all of a desktop. At
// least 1.
uint32_t PerformanceCpuCount();

}  // namespace arn

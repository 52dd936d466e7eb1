// How much memory a process may still take.
#pragma once

#include <cstdint>
#include <string>

namespace arn::tool {

// Returns the least of what the system has available (/proc/meminfo) and what the memory limits of
// the process's control groups leave (cgroup v2: page cache counts as free). UINT64_MAX if nothing
// says how much it is. `root`: where /proc and /sys are.
uint64_t FreeMemory(const std::string& root = "");

}  // namespace arn::tool

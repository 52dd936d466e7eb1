// What a process may still do, from a point on that it chooses itself: system calls by a seccomp
// filter, files by Landlock. Linux on x86-64 and arm64.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace arn::test {

// Kills the process, with SIGSYS, at any system call that is not listed, of any of its threads.
// Returns false if the kernel has no filters.
bool AllowOnlyCalls(const std::vector<uint32_t>& numbers);

// Refuses, with EACCES, all files but those beneath the given paths. Returns 0 if the kernel has no
// Landlock, else the version of its interface.
int AllowOnlyFiles(const std::vector<std::string>& to_read,
                   const std::vector<std::string>& to_write);

// Returns the number of a system call of a profile, or -1.
int CallNumber(const std::string& name);

}  // namespace arn::test

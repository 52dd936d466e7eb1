// Reads small sysfs and procfs files: one word or number each. A file may be missing, unreadable,
// vanish later, or hold nonsense; none of this is an error, the value is just unknown.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn {

// Maximum root length, including NUL, and maximum path length below it.
inline constexpr size_t kMaxSystemRoot = 192;
inline constexpr size_t kMaxSystemPath = 128;

// Reads the first line of `root` + `path` ("" and "/sys/...") without trailing white space, cut to
// capacity - 1 bytes, into out (NUL-terminated; "" on failure). Replaces bytes that are not
// printable ASCII by '?'. Returns false if the file cannot be read or the line is empty. Does not
// allocate.
bool ReadSystemText(const char* root, const char* path, char* out, size_t capacity);

// Reads a first line that is one decimal number. Returns false otherwise, or if it does not fit.
bool ReadSystemNumber(const char* root, const char* path, int64_t* out);

// Calls see(user, name) for each entry of a directory, in no order, until it returns false.
// Allocates during the call.
void ListSystemFolder(const char* root, const char* path, bool (*see)(void* user, const char* name),
                      void* user);

}  // namespace arn

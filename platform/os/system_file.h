// Small files in which the system speaks of itself (sysfs, procfs): a word or a number each. They
// can be missing, unreadable, gone the next time, or hold nonsense; nothing here is an error, only
// something that is not known.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn {

// Longest root, its NUL included, and longest path beneath it.
inline constexpr size_t kMaxSystemRoot = 192;
inline constexpr size_t kMaxSystemPath = 128;

// Reads the first line of `root` + `path` ("" and "/sys/...") without the white space at its end,
// cut to capacity - 1 bytes, into out (NUL-terminated; "" on failure). Bytes that are not printable
// ASCII become '?'. False when the file cannot be read or its line is empty. Allocates nothing.
bool ReadSystemText(const char* root, const char* path, char* out, size_t capacity);

// The decimal number that is all of the first line. False when there is none, or it does not fit.
bool ReadSystemNumber(const char* root, const char* path, int64_t* out);

// Calls see(user, name) for each name in a folder until it returns false, in no order. Allocates
// while it runs.
void ListSystemFolder(const char* root, const char* path, bool (*see)(void* user, const char* name),
                      void* user);

}  // namespace arn

// Shared libraries that are looked for when they are needed.
#pragma once

namespace arn {

// Null when there is no such library. `name` is a file's name, looked for as the system does.
void* OpenLibrary(const char* name);
// Null when the library does not have it.
void* FindSymbol(void* library, const char* symbol);
// Null is allowed.
void CloseLibrary(void* library);

}  // namespace arn

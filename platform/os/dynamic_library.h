// Loads shared libraries at run time.
#pragma once

namespace arn {

// Opens a library by file name, searched as the system does. Null if it does not exist.
void* OpenLibrary(const char* name);
// Returns null if the library has no such symbol.
void* FindSymbol(void* library, const char* symbol);
// Null is allowed.
void CloseLibrary(void* library);

}  // namespace arn

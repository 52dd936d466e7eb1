#include <dlfcn.h>

#include "platform/os/dynamic_library.h"

namespace arn {

void* OpenLibrary(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

void* FindSymbol(void* library, const char* symbol) { return dlsym(library, symbol); }

void CloseLibrary(void* library) {
  if (library != nullptr) dlclose(library);
}

}  // namespace arn

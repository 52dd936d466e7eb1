// An archive linked next to Arenite's.
#include "standard_library.h"

std::string UseStandardLibraryInArchive(uint64_t seed) { return UseStandardLibrary(seed); }

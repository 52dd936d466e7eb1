// A C++ program that uses much of the standard library, directly and through an archive, and calls
// tools/example/story.c, whose main() is renamed to TellStory.
#include <cstdio>

#include "standard_library.h"

std::string UseStandardLibraryInArchive(uint64_t seed);
extern "C" int TellStory(int argc, char** argv);

int main(int argc, char** argv) {
  const auto seed = static_cast<uint64_t>(argc) + 1'000'000;
  const std::string here = UseStandardLibrary(seed), there = UseStandardLibraryInArchive(seed);
  if (here != there || here.find("11") == std::string::npos) {
    std::fprintf(stderr, "'%s' here, '%s' in the archive\n", here.c_str(), there.c_str());
    return 1;
  }
  return TellStory(argc, argv);
}

// Contents of small files.
#pragma once

#include <fstream>
#include <string>

namespace arn::convert {

// Appends the rest of `file` to *text. Returns false if it cannot be read: of a folder, say, which
// can be opened.
inline bool AppendRest(std::ifstream* file, std::string* text) {
  char block[16384];
  do {
    // Not by the iterators of the buffer, which throw.
    file->read(block, sizeof block);
    text->append(block, static_cast<size_t>(file->gcount()));
  } while (*file);
  return !file->bad();
}

}  // namespace arn::convert

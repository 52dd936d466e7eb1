// The directory of a zip archive whose entries are stored as they are, also in its 64-bit form
// (PKWARE's APPNOTE.TXT, 4.3 and 4.5.3). The input is untrusted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/base/source_file.h"

namespace arn::convert {

struct ZipEntry {
  std::string name;
  uint64_t offset = 0;  // of its bytes, from the start of the file
  uint64_t bytes = 0;
};

// Returns the entries, by offset. Checksums are not verified. Throws ConvertError with file and
// entry, also for entries that are compressed, encrypted, overlap or have the same name.
std::vector<ZipEntry> ReadZip(const SourceFile& file);

}  // namespace arn::convert

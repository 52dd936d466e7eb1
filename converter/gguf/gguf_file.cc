#include "converter/gguf/gguf_file.h"

#include "converter/base/error.h"
#include "converter/gguf/block_formats.h"
#include "platform/os/mapped_file.h"

namespace arn::convert {

GgufFile::GgufFile(const std::filesystem::path& path) : file_(path) {
  Diag diag;
  MappedFile mapped;
  if (MapFd(file_.fd(), 0, 0, &mapped, &diag) != Status::kOk) {
    Fail("%s: %s", path.c_str(), diag.text());
  }
  try {
    contents_ = ParseGguf(mapped.bytes, path.string());
  } catch (...) {
    UnmapFile(&mapped);
    throw;
  }
  UnmapFile(&mapped);
  readable_types_ = "F32, F16, BF16, " + JoinNames(BlockFormatNames(), SIZE_MAX);
}

}  // namespace arn::convert

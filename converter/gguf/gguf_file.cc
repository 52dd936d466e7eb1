#include "converter/gguf/gguf_file.h"

#include <cinttypes>
#include <cstring>

#include "converter/base/error.h"
#include "converter/gguf/block_formats.h"

namespace arn::convert {

GgufFile::GgufFile(const std::filesystem::path& path) : path_(path) {
  Diag diag;
  int fd = -1;
  if (OpenToMap(path.c_str(), &fd, &diag) != Status::kOk) Fail("%s", diag.text());
  const Status status = MapFd(fd, 0, 0, &file_, &diag);
  CloseMapped(fd);
  if (status != Status::kOk) Fail("%s: %s", path.c_str(), diag.text());
  try {
    contents_ = ParseGguf(file_.bytes, path.string());
  } catch (...) {
    UnmapFile(&file_);
    throw;
  }
  readable_types_ = "F32, F16, BF16, " + JoinNames(BlockFormatNames(), SIZE_MAX);
}

GgufFile::~GgufFile() { UnmapFile(&file_); }

const char* GgufFile::readable_types() const { return readable_types_.c_str(); }

void GgufFile::Read(uint64_t offset, void* out, size_t bytes) const {
  const uint64_t size = file_.bytes.size();
  if (offset > size || bytes > size - offset) {
    Fail("%s: internal error: %zu bytes at %" PRIu64 " of %" PRIu64, path_.c_str(), bytes, offset,
         size);
  }
  std::memcpy(out, file_.bytes.data() + offset, bytes);
}

}  // namespace arn::convert

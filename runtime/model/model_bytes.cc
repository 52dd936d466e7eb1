#include "runtime/model/model_bytes.h"

#include <cinttypes>

#include "platform/os/huge_pages.h"
#include "platform/os/pages.h"

namespace arn {
namespace {

Status Copy(int fd, uint64_t offset, uint64_t bytes, ModelBytes* out, Diag* diag) {
  uint64_t length = 0;
  ARN_TRY(CheckRange(fd, offset, bytes, &length, diag));
  ARN_TRY(ReserveModelBytes(length, out, diag));
  ARN_TRY(ReadFd(fd, offset, out->copy.subspan(0, static_cast<size_t>(length)), diag));
  ProtectPages(out->copy);
  return Status::kOk;
}

Status Load(int fd, uint64_t offset, uint64_t bytes, ModelBytes* out, Diag* diag) {
  if (out->residency == Residency::kCopied) return Copy(fd, offset, bytes, out, diag);
  ARN_TRY(MapFd(fd, offset, bytes, &out->file, diag));
  out->bytes = out->file.bytes;
  if (out->residency == Residency::kHuge) {
    MoveToHugePages(fd, offset, out->bytes);
    return Status::kOk;
  }
  AskForHugePages(out->bytes);
  if (out->residency != Residency::kLocked || LockPages(out->bytes) == Status::kOk) {
    return Status::kOk;
  }
  return diag->Fail(Status::kOutOfMemory,
                    "%zu bytes cannot be locked in memory: the limit of locked memory "
                    "(RLIMIT_MEMLOCK) or the memory is too small",
                    out->bytes.size());
}

}  // namespace

Status LoadModelBytes(int fd, uint64_t offset, uint64_t bytes, Residency residency, ModelBytes* out,
                      Diag* diag) {
  *out = ModelBytes();
  out->residency = residency;
  const Status status = Load(fd, offset, bytes, out, diag);
  if (status == Status::kOk) return status;
  GiveBack(*out);
  *out = ModelBytes();
  return status;
}

Status ReserveModelBytes(uint64_t bytes, ModelBytes* out, Diag* diag) {
  *out = ModelBytes();
  out->residency = Residency::kCopied;
  Result<Span<std::byte>> pages = ReserveHugePages(bytes);
  if (!pages.ok()) {
    return diag->Fail(pages.status(), "cannot reserve %" PRIu64 " bytes for the bundle", bytes);
  }
  out->copy = pages.value();
  out->bytes = out->copy.subspan(0, static_cast<size_t>(bytes));
  return Status::kOk;
}

void GiveBack(const ModelBytes& source) {
  MappedFile file = source.file;
  UnmapFile(&file);
  ReleasePages(source.copy);
}

}  // namespace arn

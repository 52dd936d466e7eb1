#include "runtime/model/model_parts.h"

#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "platform/os/pages.h"
#include "platform/os/replace_file.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/parts.h"

namespace arn {
namespace {

// Length of what kPartSuffix prints.
constexpr size_t kSuffixBytes = sizeof "-00001-of-00002.arn" - 1;

template <typename T>
bool ReadHeader(int fd, T* out, Diag* diag) {
  return ReadFd(fd, 0, {reinterpret_cast<std::byte*>(out), sizeof *out}, diag) == Status::kOk;
}

template <typename T>
bool HashFits(const T& header, uint64_t hash) {
  return Xxh64(&header, sizeof header - sizeof hash) == hash;
}

// Collects what the parts so far say.
struct Assembly {
  uint32_t n = 0;
  uint64_t bundle_hash = 0, total = 0, at = 0;
};

Status ReadFirst(int fd, Assembly* all, ModelBytes* out, Diag* diag) {
  BundleHeader header;
  if (!ReadHeader(fd, &header, diag) || std::memcmp(header.magic, "ARENITE", 8) != 0 ||
      !HashFits(header, header.header_hash) ||
      !CheckedAdd(header.index_offset, header.index_bytes, &all->total) || all->total == 0 ||
      all->total > SIZE_MAX) {
    return diag->Fail(Status::kBadBundle, "not the first part of a bundle, or damaged");
  }
  all->bundle_hash = header.header_hash;
  if (out->residency == Residency::kCopied) return ReserveModelBytes(all->total, out, diag);
  ARN_TRY(ReserveMapping(all->total, &out->file, diag));
  out->bytes = out->file.bytes;
  return Status::kOk;
}

Status CheckPart(int fd, uint32_t part, const Assembly& all, uint64_t bytes, Diag* diag) {
  PartHeader header;
  if (!ReadHeader(fd, &header, diag) || std::memcmp(header.magic, kPartMagic, 8) != 0 ||
      header.version != kPartVersion || !HashFits(header, header.hash)) {
    return diag->Fail(Status::kBadBundle, "not part %u of a bundle, or damaged", part);
  }
  if (header.bundle_hash != all.bundle_hash) {
    return diag->Fail(Status::kBadBundle, "part %u of another bundle than the first part", part);
  }
  if (header.part != part || header.n_parts != all.n || header.offset != all.at) {
    return diag->Fail(Status::kBadBundle, "part %u of %u, expected part %u of %u", header.part,
                      header.n_parts, part, all.n);
  }
  if (header.bytes == bytes) return Status::kOk;
  return diag->Fail(Status::kBundleTruncated,
                    "truncated: %" PRIu64 " bytes behind the header, expected %" PRIu64, bytes,
                    header.bytes);
}

Status LoadPart(int fd, uint32_t part, Assembly* all, ModelBytes* out, Diag* diag) {
  if (part == 1) ARN_TRY(ReadFirst(fd, all, out, diag));
  const uint64_t offset = part == 1 ? 0 : kPartHeaderBytes;
  uint64_t bytes = 0;
  ARN_TRY(CheckRange(fd, offset, 0, &bytes, diag));
  if (part > 1) ARN_TRY(CheckPart(fd, part, *all, bytes, diag));
  const bool is_last = part == all->n;
  if (bytes > all->total - all->at || (is_last && bytes != all->total - all->at) ||
      (!is_last && bytes % kPartHeaderBytes != 0)) {
    return diag->Fail(Status::kBundleTruncated,
                      "truncated, or of another size: part %u has %" PRIu64 " bytes at %" PRIu64
                      " of %" PRIu64,
                      part, bytes, all->at, all->total);
  }
  const size_t at = static_cast<size_t>(all->at), n = static_cast<size_t>(bytes);
  all->at += bytes;
  if (!out->copy.empty()) return ReadFd(fd, offset, out->copy.subspan(at, n), diag);
  return MapInto(fd, offset, out->bytes.subspan(at, n), diag);
}

Status LoadAll(const char* const* paths, const char* first, uint32_t n, ModelBytes* out,
               Diag* diag) {
  Assembly all;
  all.n = n;
  char sibling[kMaxPathBytes];
  for (uint32_t part = 1; part <= n; ++part) {
    const char* path = paths == nullptr ? sibling : paths[part - 1];
    if (paths == nullptr) {
      const int stem = static_cast<int>(std::strlen(first) - kSuffixBytes);
      int printed = std::snprintf(sibling, sizeof sibling, "%.*s", stem, first);
      if (static_cast<size_t>(printed) + kSuffixBytes >= sizeof sibling) {
        return diag->Fail(Status::kBadArgument, "the path is too long");
      }
      std::snprintf(sibling + printed, sizeof sibling - static_cast<size_t>(printed), kPartSuffix,
                    part, n);
    } else if (path == nullptr) {
      return diag->Fail(Status::kBadArgument, "the path of part %u is NULL", part);
    }
    int fd = -1;
    ARN_TRY(OpenToMap(path, &fd, diag));
    Diag inner;
    const Status status = LoadPart(fd, part, &all, out, &inner);
    CloseMapped(fd);
    if (status != Status::kOk) return diag->Fail(status, "%s: %s", path, inner.text());
  }
  if (!out->copy.empty()) {
    ProtectPages(out->copy);
    return Status::kOk;
  }
  if (out->residency != Residency::kLocked || LockPages(out->bytes) == Status::kOk) {
    return Status::kOk;
  }
  return diag->Fail(Status::kOutOfMemory, "%zu bytes cannot be locked in memory",
                    out->bytes.size());
}

}  // namespace

uint32_t CountParts(const char* path) {
  const size_t length = std::strlen(path);
  unsigned part = 0, n = 0;
  int read = 0;
  if (length < kSuffixBytes ||
      std::sscanf(path + length - kSuffixBytes, "-%5u-of-%5u.arn%n", &part, &n, &read) != 2) {
    return 0;
  }
  return part == 1 && static_cast<size_t>(read) == kSuffixBytes ? n : 0;
}

Status LoadModelParts(const char* const* paths, const char* first, uint32_t n, Residency residency,
                      ModelBytes* out, Diag* diag) {
  *out = ModelBytes();
  out->residency = residency;
  const Status status = LoadAll(paths, first, n, out, diag);
  if (status == Status::kOk) return status;
  GiveBack(*out);
  *out = ModelBytes();
  return status;
}

}  // namespace arn

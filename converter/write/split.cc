#include "converter/write/split.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <memory>

#include "converter/base/error.h"
#include "converter/base/source_file.h"
#include "converter/write/out_file.h"
#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "runtime/bundle/bundle.h"
#include "runtime/bundle/parts.h"

namespace arn::convert {
namespace {

namespace fs = std::filesystem;

uint64_t PayloadBytes(uint64_t part_bytes, bool is_first) {
  return part_bytes / kPartHeaderBytes * kPartHeaderBytes - (is_first ? 0 : kPartHeaderBytes);
}

void CopyTo(const SourceFile& from, uint64_t offset, uint64_t bytes, OutFile* to) {
  std::vector<char> block(static_cast<size_t>(std::min(bytes, uint64_t{4} << 20)));
  for (uint64_t at = 0; at < bytes; at += block.size()) {
    const auto n = static_cast<size_t>(std::min<uint64_t>(block.size(), bytes - at));
    from.Read(offset + at, block.data(), n);
    to->Append(block.data(), n);
  }
}

}  // namespace

uint64_t CountPartsOf(uint64_t bytes, uint64_t part_bytes) {
  if (bytes <= part_bytes) return 1;
  return 1 + CeilDiv(bytes - PayloadBytes(part_bytes, true), PayloadBytes(part_bytes, false));
}

std::vector<fs::path> SplitBundle(const fs::path& bundle, uint64_t part_bytes) {
  const SourceFile whole(bundle);
  const uint64_t n = CountPartsOf(whole.bytes(), part_bytes);
  if (n == 1) return {bundle};
  if (n > kMaxParts) {
    Fail("%s: would have %" PRIu64 " parts, expected at most %u", bundle.c_str(), n, kMaxParts);
  }
  BundleHeader first;
  whole.Read(0, &first, sizeof first);
  PartHeader header = {};
  std::memcpy(header.magic, kPartMagic, sizeof header.magic);
  header.version = kPartVersion;
  header.n_parts = static_cast<uint32_t>(n);
  header.bundle_hash = first.header_hash;
  std::vector<fs::path> paths;
  std::vector<std::unique_ptr<OutFile>> files;
  for (header.part = 1; header.part <= n; ++header.part) {
    char suffix[32];
    std::snprintf(suffix, sizeof suffix, kPartSuffix, header.part, header.n_parts);
    paths.push_back(bundle.parent_path() / (bundle.stem().string() + suffix));
    files.push_back(std::make_unique<OutFile>(paths.back()));
    header.bytes =
        std::min(PayloadBytes(part_bytes, header.part == 1), whole.bytes() - header.offset);
    if (header.part > 1) {
      header.hash = Xxh64(&header, offsetof(PartHeader, hash));
      files.back()->Append(&header, sizeof header);
      files.back()->PadTo(kPartHeaderBytes);
    }
    CopyTo(whole, header.offset, header.bytes, files.back().get());
    header.offset += header.bytes;
  }
  while (!files.empty()) {
    files.back()->Commit();
    files.pop_back();
  }
  std::error_code error;
  if (!fs::remove(bundle, error)) Fail("%s: cannot be removed", bundle.c_str());
  return paths;
}

}  // namespace arn::convert

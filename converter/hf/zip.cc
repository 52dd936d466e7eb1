#include "converter/hf/zip.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <set>

#include "converter/base/error.h"

namespace arn::convert {
namespace {

constexpr uint32_t kLocalMagic = 0x04034b50, kCentralMagic = 0x02014b50, kEndMagic = 0x06054b50;
constexpr uint32_t kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr size_t kMostCommentBytes = 0xffff;
// As the largest header of a safetensors file.
constexpr uint64_t kMostDirectoryBytes = 100'000'000;

// Little-endian numbers of a file that may be cut off anywhere.
template <typename T>
T NumberAt(const std::string& bytes, size_t at) {
  T value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string BytesAt(const SourceFile& file, uint64_t offset, uint64_t bytes, const char* what) {
  if (offset > file.bytes() || bytes > file.bytes() - offset) {
    Fail("%s: not a zip archive, or truncated: %s of %" PRIu64 " bytes at %" PRIu64 " of %" PRIu64,
         file.path().c_str(), what, bytes, offset, file.bytes());
  }
  std::string text(static_cast<size_t>(bytes), '\0');
  file.Read(offset, text.data(), text.size());
  return text;
}

struct ZipDirectory {
  uint64_t offset = 0, bytes = 0, entries = 0;
};

// Finds the directory by the record at the end of the file, which a comment may follow.
ZipDirectory FindDirectory(const SourceFile& file) {
  const uint64_t tail_bytes = std::min<uint64_t>(file.bytes(), kEndBytes + kMostCommentBytes);
  const uint64_t tail_begin = file.bytes() - tail_bytes;
  const std::string tail = BytesAt(file, tail_begin, tail_bytes, "the end");
  size_t at = tail.size();
  for (size_t i = tail.size() - std::min(tail.size(), kEndBytes) + 1; i-- > 0;) {
    if (tail.size() - i < kEndBytes || NumberAt<uint32_t>(tail, i) != kEndMagic) continue;
    if (NumberAt<uint16_t>(tail, i + 20) != tail.size() - i - kEndBytes) continue;
    at = i;
    break;
  }
  if (at == tail.size()) {
    Fail(
        "%s: not a zip archive, or truncated: it has no directory at its end: download it "
        "again",
        file.path().c_str());
  }
  ZipDirectory directory;
  directory.entries = NumberAt<uint16_t>(tail, at + 10);
  directory.bytes = NumberAt<uint32_t>(tail, at + 12);
  directory.offset = NumberAt<uint32_t>(tail, at + 16);
  uint64_t end = tail_begin + at;
  if (end >= kLocator64Bytes) {
    const std::string locator =
        BytesAt(file, end - kLocator64Bytes, kLocator64Bytes, "the locator of the directory");
    if (NumberAt<uint32_t>(locator, 0) == kLocator64Magic) {
      end = NumberAt<uint64_t>(locator, 8);
      const std::string record = BytesAt(file, end, kEnd64Bytes, "the end of the directory");
      if (NumberAt<uint32_t>(record, 0) != kEnd64Magic) {
        Fail("%s: the locator of the directory points to %" PRIu64 ", where there is none",
             file.path().c_str(), end);
      }
      directory.entries = NumberAt<uint64_t>(record, 32);
      directory.bytes = NumberAt<uint64_t>(record, 40);
      directory.offset = NumberAt<uint64_t>(record, 48);
    }
  }
  if (directory.bytes > kMostDirectoryBytes || directory.offset > end ||
      directory.bytes > end - directory.offset) {
    Fail("%s: the directory has %" PRIu64 " bytes at %" PRIu64 ", expected at most %" PRIu64
         " before %" PRIu64,
         file.path().c_str(), directory.bytes, directory.offset, kMostDirectoryBytes, end);
  }
  return directory;
}

// Replaces the fields that are all ones by those of the 64-bit extra field.
void ReadExtra64(const std::string& extra, uint64_t* bytes, uint64_t* stored, uint64_t* offset) {
  for (size_t at = 0; at + 4 <= extra.size();) {
    const uint16_t id = NumberAt<uint16_t>(extra, at);
    const size_t end = at + 4 + NumberAt<uint16_t>(extra, at + 2);
    at += 4;
    if (end > extra.size()) return;
    for (uint64_t* field : {bytes, stored, offset}) {
      if (id != 1 || *field != 0xffffffff || at + 8 > end) continue;
      *field = NumberAt<uint64_t>(extra, at);
      at += 8;
    }
    at = end;
  }
}

}  // namespace

std::vector<ZipEntry> ReadZip(const SourceFile& file) {
  const char* label = file.path().c_str();
  const ZipDirectory found = FindDirectory(file);
  const std::string directory = BytesAt(file, found.offset, found.bytes, "the directory");
  struct Placed {
    uint64_t begin;  // of the entry's own header
    ZipEntry entry;
  };
  std::vector<Placed> placed;
  std::set<std::string> names;
  for (size_t at = 0; at < directory.size();) {
    const size_t left = directory.size() - at;
    if (left < kCentralBytes || NumberAt<uint32_t>(directory, at) != kCentralMagic) {
      Fail("%s: the directory is damaged at byte %zu", label, at);
    }
    const size_t name_bytes = NumberAt<uint16_t>(directory, at + 28);
    const size_t extra_bytes = NumberAt<uint16_t>(directory, at + 30);
    const size_t whole =
        kCentralBytes + name_bytes + extra_bytes + NumberAt<uint16_t>(directory, at + 32);
    if (whole > left) Fail("%s: the directory is damaged at byte %zu", label, at);
    Placed next;
    next.entry.name = directory.substr(at + kCentralBytes, name_bytes);
    const char* name = next.entry.name.c_str();
    uint64_t stored = NumberAt<uint32_t>(directory, at + 20);
    next.entry.bytes = NumberAt<uint32_t>(directory, at + 24);
    next.begin = NumberAt<uint32_t>(directory, at + 42);
    ReadExtra64(directory.substr(at + kCentralBytes + name_bytes, extra_bytes), &next.entry.bytes,
                &stored, &next.begin);
    const bool is_encrypted = (NumberAt<uint16_t>(directory, at + 8) & 1) != 0;
    if (is_encrypted || NumberAt<uint16_t>(directory, at + 10) != 0 || stored != next.entry.bytes) {
      Fail("%s: entry %s is %s, expected one that is stored as it is", label, name,
           is_encrypted ? "encrypted" : "compressed");
    }
    if (!names.insert(next.entry.name).second) Fail("%s: entry %s is there twice", label, name);
    const std::string local =
        BytesAt(file, next.begin, kLocalBytes + name_bytes, ("entry " + next.entry.name).c_str());
    if (NumberAt<uint32_t>(local, 0) != kLocalMagic ||
        local.compare(kLocalBytes, name_bytes, next.entry.name) != 0 ||
        NumberAt<uint16_t>(local, 26) != name_bytes) {
      Fail("%s: entry %s is not where the directory says", label, name);
    }
    next.entry.offset = next.begin + kLocalBytes + name_bytes + NumberAt<uint16_t>(local, 28);
    if (next.entry.offset > found.offset || next.entry.bytes > found.offset - next.entry.offset) {
      Fail("%s: entry %s has %" PRIu64 " bytes at %" PRIu64
           ", which do not end before the directory at %" PRIu64,
           label, name, next.entry.bytes, next.entry.offset, found.offset);
    }
    placed.push_back(std::move(next));
    at += whole;
  }
  if (placed.size() != found.entries) {
    Fail("%s: the directory has %zu entries, expected %" PRIu64, label, placed.size(),
         found.entries);
  }
  std::sort(placed.begin(), placed.end(),
            [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  std::vector<ZipEntry> entries;
  uint64_t end = 0;
  for (Placed& next : placed) {
    if (next.begin < end) {
      Fail("%s: entries %s and %s overlap", label, entries.back().name.c_str(),
           next.entry.name.c_str());
    }
    end = next.entry.offset + next.entry.bytes;
    entries.push_back(std::move(next.entry));
  }
  return entries;
}

}  // namespace arn::convert

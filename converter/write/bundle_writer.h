// The frame of a .arn file: header, segment area, index (docs/bundle-format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "converter/write/out_file.h"
#include "converter/write/signing_key.h"
#include "flatbuffers/flatbuffers.h"
#include "platform/base/hash.h"
#include "runtime/bundle/bundle_generated.h"

namespace arn::convert {

inline constexpr uint64_t kHeaderBytes = 64;
inline constexpr uint64_t kSegmentsOffset = 16384;
// Segments of this size and more start at a page of any CPU.
inline constexpr uint64_t kLargeSegmentBytes = 65536;
inline constexpr uint64_t kLargeSegmentAlign = 16384;
inline constexpr uint64_t kSmallSegmentAlign = 64;
inline constexpr uint64_t kIndexAlign = 16;

// Segments are written one after another, in pieces, and hashed as they pass; the index comes last.
class BundleWriter {
 public:
  explicit BundleWriter(const std::filesystem::path& path);

  // `bytes` is the exact size of the segment that is appended next; it decides where it starts,
  // unless `align` asks for more.
  void BeginSegment(uint64_t bytes, uint64_t align = 0);
  void Append(const void* data, size_t bytes);
  // Zeros up to `bytes` from the start of the segment.
  void PadSegmentTo(uint64_t bytes);
  fbs::Segment EndSegment();

  // A segment in one piece. No bytes give a segment of size 0, which lies nowhere.
  fbs::Segment WriteSegment(const void* data, size_t bytes);

  // Closes the segment area and writes the index (a finished FlatBuffer) and the header: path() is
  // a whole bundle then.
  void Close(const flatbuffers::FlatBufferBuilder& index);
  // Takes both away again, so that segments can follow the last one. Nothing may have the file
  // mapped.
  void Reopen();
  // After Close(): puts a seal between the header and the segments, which says that this bundle is
  // the key's. Reads the file.
  void Sign(const SigningKey& key);
  // After Close(): syncs and renames.
  void Commit() { file_.Commit(); }

  // The file's name until Commit().
  const std::filesystem::path& path() const { return file_.temporary(); }
  uint64_t file_bytes() const { return file_.position(); }

 private:
  OutFile file_;
  uint64_t segment_begin_ = 0;  // in the file
  uint64_t segment_bytes_ = 0;
  uint64_t segments_end_ = 0;  // in the file, when closed
  Xxh64Stream hash_;
};

}  // namespace arn::convert

// Writes the frame of a .arn file: header, segment area, index (docs/bundle-format.md).
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
// Segments of at least this size start at a page boundary of any CPU.
inline constexpr uint64_t kLargeSegmentBytes = 65536;
inline constexpr uint64_t kLargeSegmentAlign = 16384;
inline constexpr uint64_t kSmallSegmentAlign = 64;
inline constexpr uint64_t kIndexAlign = 16;

// Writes segments one after another, in chunks, and hashes them on the way; writes the index last.
class BundleWriter {
 public:
  // keeps_unfinished: without Commit(), leaves the temporary file.
  explicit BundleWriter(const std::filesystem::path& path, bool keeps_unfinished = false);

  // Begins all segments from now on at multiples of this, too.
  void AlignSegments(uint64_t align) { least_align_ = align; }
  // Starts a segment of exactly `bytes` bytes; the size, or a larger `align`, decides its
  // alignment.
  void BeginSegment(uint64_t bytes, uint64_t align = 0);
  void Append(const void* data, size_t bytes);
  // Appends zeros up to `bytes` from the start of the segment.
  void PadSegmentTo(uint64_t bytes);
  fbs::Segment EndSegment();
  // Leaves a hole of `bytes` zeros in place of a segment. Its hash is that of no bytes.
  fbs::Segment SkipSegment(uint64_t bytes);

  // Writes a whole segment. bytes 0 gives a segment of size 0 without a position.
  fbs::Segment WriteSegment(const void* data, size_t bytes);

  // Closes the segment area and writes the index (a finished FlatBuffer) and the header: makes
  // path() a complete bundle.
  void Close(const flatbuffers::FlatBufferBuilder& index);
  // Removes index and header, so that more segments can follow. REQUIRES: the file is not mapped.
  void Reopen();
  // After Close(): writes the signature block between header and segments. Reads the file.
  void Sign(const SigningKey& key);
  // Flushes the file, so that path() has everything written so far.
  void Flush() { file_.Flush(); }
  // After Close(): syncs and renames the file.
  void Commit() { file_.Commit(); }

  // Temporary name of the file before Commit().
  const std::filesystem::path& path() const { return file_.temporary(); }
  uint64_t file_bytes() const { return file_.position(); }

 private:
  OutFile file_;
  uint64_t least_align_ = kSmallSegmentAlign;
  uint64_t segment_begin_ = 0;  // file offset
  uint64_t segment_bytes_ = 0;
  uint64_t segments_end_ = 0;  // file offset, once closed
  Xxh64Stream hash_;
};

}  // namespace arn::convert

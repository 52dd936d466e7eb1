#include "converter/write/bundle_writer.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "converter/base/error.h"
#include "platform/base/arith.h"
#include "platform/base/layout.h"
#include "platform/os/mapped_file.h"
#include "runtime/bundle/signature.h"

namespace arn::convert {
namespace {

constexpr char kMagic[8] = {'A', 'R', 'E', 'N', 'I', 'T', 'E', '\0'};
constexpr uint32_t kFormatVersion = 1;

void Put(uint8_t* header, size_t offset, const void* value, size_t bytes) {
  std::memcpy(header + offset, value, bytes);
}

}  // namespace

BundleWriter::BundleWriter(const std::filesystem::path& path, bool keeps_unfinished)
    : file_(path, keeps_unfinished) {
  file_.PadTo(kSegmentsOffset);
}

void BundleWriter::BeginSegment(uint64_t bytes, uint64_t align) {
  const uint64_t by_size = bytes >= kLargeSegmentBytes ? kLargeSegmentAlign : least_align_;
  file_.PadTo(AlignUp(file_.position(), std::max(align, by_size)));
  segment_begin_ = file_.position();
  segment_bytes_ = bytes;
  hash_ = Xxh64Stream();
}

void BundleWriter::Append(const void* data, size_t bytes) {
  hash_.Update(data, bytes);
  file_.Append(data, bytes);
}

void BundleWriter::PadSegmentTo(uint64_t bytes) {
  static constexpr char kZeros[64] = {};
  for (uint64_t at = file_.position() - segment_begin_; at < bytes;) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(bytes - at, sizeof kZeros));
    Append(kZeros, n);
    at += n;
  }
}

fbs::Segment BundleWriter::EndSegment() {
  const uint64_t written = file_.position() - segment_begin_;
  if (written != segment_bytes_) {
    Fail("internal error: a segment has %" PRIu64 " bytes, expected %" PRIu64, written,
         segment_bytes_);
  }
  return fbs::Segment(segment_begin_ - kSegmentsOffset, segment_bytes_, hash_.Digest());
}

fbs::Segment BundleWriter::SkipSegment(uint64_t bytes) {
  BeginSegment(bytes);
  file_.SkipTo(segment_begin_ + bytes);
  return EndSegment();
}

fbs::Segment BundleWriter::WriteSegment(const void* data, size_t bytes) {
  if (bytes == 0) return fbs::Segment(0, 0, 0);
  BeginSegment(bytes);
  Append(data, bytes);
  return EndSegment();
}

void BundleWriter::Close(const flatbuffers::FlatBufferBuilder& index) {
  segments_end_ = file_.position();
  file_.PadTo(AlignUp(file_.position() + kOverreadBytes, kIndexAlign));
  const uint64_t index_offset = file_.position();
  const uint64_t index_bytes = index.GetSize();
  const uint64_t index_hash = Xxh64(index.GetBufferPointer(), index.GetSize());
  const uint64_t segments_bytes = index_offset - kSegmentsOffset;
  file_.Append(index.GetBufferPointer(), index.GetSize());

  uint8_t header[kHeaderBytes];
  const uint32_t header_bytes = kHeaderBytes;
  Put(header, 0, kMagic, 8);
  Put(header, 8, &kFormatVersion, 4);
  Put(header, 12, &header_bytes, 4);
  Put(header, 16, &index_offset, 8);
  Put(header, 24, &index_bytes, 8);
  Put(header, 32, &index_hash, 8);
  Put(header, 40, &kSegmentsOffset, 8);
  Put(header, 48, &segments_bytes, 8);
  const uint64_t header_hash = Xxh64(header, 56);
  Put(header, 56, &header_hash, 8);
  file_.Overwrite(0, header, sizeof header);
}

void BundleWriter::Sign(const SigningKey& key) {
  static_assert(kSignatureOffset == kHeaderBytes);
  file_.Flush();
  Diag diag;
  int fd = -1;
  MappedFile file;
  Bundle bundle;
  Status status = OpenToMap(path().c_str(), &fd, &diag);
  if (status == Status::kOk) status = MapFd(fd, 0, 0, &file, &diag);
  CloseMapped(fd);
  if (status == Status::kOk) status = OpenBundle(file.bytes, &bundle, &diag);
  if (status != Status::kOk) {
    UnmapFile(&file);
    Fail("%s: cannot read it to sign it: %s", path().c_str(), diag.text());
  }
  SignatureHeader header = {};
  std::memcpy(header.magic, "ARNSEAL", sizeof header.magic);
  header.block_bytes = SignedBlockBytes(bundle.segments.size());
  std::memcpy(header.public_key, key.public_key(), sizeof header.public_key);
  std::vector<uint8_t> digests;
  for (uint64_t at = 0; at < bundle.segments.size(); at += header.block_bytes) {
    digests.resize(digests.size() + kDigestBytes);
    BlockDigest(
        bundle.segments.subspan(at, std::min(header.block_bytes, bundle.segments.size() - at)),
        digests.data() + digests.size() - kDigestBytes);
    ++header.n_blocks;
  }
  uint8_t message[kDigestBytes];
  SignedMessage(bundle, header, digests.data(), message);
  UnmapFile(&file);
  key.Sign(message, header.signature);
  file_.Overwrite(kSignatureOffset, &header, sizeof header);
  file_.Overwrite(kSignatureOffset + sizeof header, digests.data(), digests.size());
}

void BundleWriter::Reopen() {
  static constexpr uint8_t kNoHeader[kHeaderBytes] = {};
  file_.Overwrite(0, kNoHeader, sizeof kNoHeader);
  file_.Truncate(segments_end_);
}

}  // namespace arn::convert

#include "runtime/bundle/bundle.h"

#include <cinttypes>
#include <cstring>
#include <string_view>

#include "flatbuffers/flatbuffers.h"
#include "kernels/contract/adapter.h"
#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "platform/base/layout.h"
#include "runtime/bundle/signature.h"
#include "runtime/bundle/tokenizer_segments.h"

namespace arn {
namespace {

// Real indexes have a depth below 8 and at most a few thousand tables; the bounds limit the time
// that a hostile one can cost.
constexpr uint32_t kMaxIndexDepth = 16;
constexpr uint32_t kMaxIndexTables = 4u << 20;

bool RangeInside(uint64_t offset, uint64_t bytes, uint64_t limit) {
  return bytes <= limit && offset <= limit - bytes;
}

Status CheckHash(const Bundle& bundle, const fbs::Segment* segment, const char* what, Diag* diag) {
  if (segment == nullptr || segment->bytes() == 0) return Status::kOk;
  ARN_TRY(CheckSegment(bundle, *segment, what, diag));
  const uint64_t hash =
      Xxh64(bundle.segments.data() + segment->offset(), static_cast<size_t>(segment->bytes()));
  if (hash != segment->hash()) {
    return diag->Fail(Status::kHashMismatch,
                      "%s: hash is %016" PRIx64 ", the index says %016" PRIx64, what, hash,
                      static_cast<uint64_t>(segment->hash()));
  }
  return Status::kOk;
}

// Calls Status visit(segment, name) for each segment of those parts; a segment may be null.
template <typename Visit>
Status EachSegment(const Bundle& bundle, BundleParts parts, Visit visit) {
  if (parts != BundleParts::kTexts) {
    if (const fbs::Model* model = bundle.index->model(); model && model->tensors()) {
      for (const fbs::Tensor* tensor : *model->tensors()) {
        ARN_TRY(visit(tensor->segment(), tensor->name()->c_str()));
      }
    }
    const fbs::Adapter* adapter = kHasAdapters ? bundle.index->adapter() : nullptr;
    if (adapter != nullptr && adapter->changes() != nullptr) {
      for (const fbs::LowRank* change : *adapter->changes()) {
        ARN_TRY(visit(change->data(), "adapter"));
      }
    }
    if (adapter != nullptr && adapter->directions() != nullptr) {
      for (const fbs::Direction* direction : *adapter->directions()) {
        ARN_TRY(visit(direction->data(), "control vector"));
      }
    }
    if (const fbs::Prefix* prefix = bundle.index->prefix()) {
      ARN_TRY(visit(prefix->state(), "prefix state"));
    }
    if (const fbs::SelfTest* test = bundle.index->self_test()) {
      ARN_TRY(visit(test->logits(), "self-test logits"));
    }
  }
  if (parts != BundleParts::kWeights) {
    if (const fbs::Tokenizer* text = bundle.index->tokenizer()) {
      ARN_TRY(EachTokenizerSegment(*text, visit));
    }
    if (const fbs::Chat* chat = bundle.index->chat(); chat && chat->programs()) {
      for (const fbs::ChatProgram* program : *chat->programs()) {
        ARN_TRY(visit(program->program(), "chat template"));
      }
    }
  }
  return Status::kOk;
}

// Guesses the format of a file that is not a bundle from its first bytes.
const char* OtherFormat(Span<const std::byte> file) {
  const auto begins = [&](std::string_view magic, size_t at) {
    return file.size() >= at + magic.size() &&
           std::memcmp(file.data() + at, magic.data(), magic.size()) == 0;
  };
  if (begins("GGUF", 0)) return "a GGUF file";
  // The first eight bytes are the length of the JSON header.
  if (begins("{\"", 8)) return "a safetensors file";
  if (begins("PK\x03\x04", 0)) return "a ZIP archive, as checkpoints of PyTorch are";
  if (begins("ARNPART", 0)) return "a later part of one: give the first";
  if (begins("version https://git-lfs", 0)) {
    return "a Git LFS pointer, the file itself was not fetched";
  }
  return "the file does not begin with ARENITE";
}

// Checks the parts as one range, because blocks are larger than many segments. Texts lie at the
// beginning of the area; weights are nearly all of it.
Status VerifySignedParts(const Bundle& bundle, BundleParts parts,
                         const SignedDigests& signed_digests, Diag* diag) {
  if (!kHasSignatures) return Status::kInternal;  // never reached: opening refuses the key
  if (parts != BundleParts::kTexts) {
    return CheckDigests(bundle, signed_digests, 0, bundle.segments.size(), "weights", diag);
  }
  uint64_t begin = UINT64_MAX, end = 0;
  const auto widen = [&](const fbs::Segment* segment, const char* name) {
    if (segment == nullptr || segment->bytes() == 0) return Status::kOk;
    ARN_TRY(CheckSegment(bundle, *segment, name, diag));
    begin = Min<uint64_t>(begin, segment->offset());
    end = Max<uint64_t>(end, segment->offset() + segment->bytes());
    return Status::kOk;
  };
  ARN_TRY(EachSegment(bundle, parts, widen));
  if (end == 0) return Status::kOk;
  return CheckDigests(bundle, signed_digests, begin, end - begin, "tokenizer and chat templates",
                      diag);
}

}  // namespace

Status OpenBundle(Span<const std::byte> file, Bundle* out, Diag* diag) {
  *out = Bundle();
  BundleHeader header;
  constexpr char kMagic[sizeof header.magic] = "ARENITE";
  if (std::memcmp(file.data(), kMagic, Min(file.size(), sizeof kMagic)) != 0) {
    return diag->Fail(Status::kBadBundle, "not an Arenite bundle: %s", OtherFormat(file));
  }
  if (file.size() < sizeof header) {
    return diag->Fail(Status::kBundleTruncated,
                      "truncated: the file has %zu bytes, a bundle's header has %zu", file.size(),
                      sizeof header);
  }
  std::memcpy(&header, file.data(), sizeof header);
  if (header.version != kBundleVersion) {
    return diag->Fail(Status::kBundleVersion, "bundle version %u, this library reads %u",
                      header.version, kBundleVersion);
  }
  const uint64_t header_hash = Xxh64(file.data(), offsetof(BundleHeader, header_hash));
  if (header_hash != header.header_hash || header.header_bytes != sizeof header) {
    return diag->Fail(Status::kHashMismatch, "the header is damaged (its hash does not match)");
  }
  if (!RangeInside(header.index_offset, header.index_bytes, file.size()) ||
      !RangeInside(header.segments_offset, header.segments_bytes, file.size())) {
    return diag->Fail(Status::kBundleTruncated,
                      "truncated: the file has %zu bytes; the header puts the index at %" PRIu64
                      "+%" PRIu64 " and the segments at %" PRIu64 "+%" PRIu64,
                      file.size(), header.index_offset, header.index_bytes, header.segments_offset,
                      header.segments_bytes);
  }
  if (header.index_offset + header.index_bytes != file.size()) {
    return diag->Fail(Status::kBadBundle,
                      "%" PRIu64 " extra bytes after the end of the bundle at %" PRIu64,
                      file.size() - header.index_offset - header.index_bytes,
                      header.index_offset + header.index_bytes);
  }
  if (header.index_offset % 16 != 0 || header.segments_offset % kRegionAlign != 0) {
    return diag->Fail(Status::kBadBundle,
                      "index offset %" PRIu64 " or segments offset %" PRIu64 " is not aligned",
                      header.index_offset, header.segments_offset);
  }
  const std::byte* index = file.data() + header.index_offset;
  const size_t index_bytes = static_cast<size_t>(header.index_bytes);
  if (Xxh64(index, index_bytes) != header.index_hash) {
    return diag->Fail(Status::kHashMismatch, "the index is damaged (its hash does not match)");
  }
  const uint8_t* index_u8 = reinterpret_cast<const uint8_t*>(index);
  flatbuffers::Verifier verifier(index_u8, index_bytes, kMaxIndexDepth, kMaxIndexTables);
  if (index_bytes < 16 || !fbs::VerifyBundleBuffer(verifier)) {
    return diag->Fail(Status::kBadBundle, "the index is not a valid FlatBuffer of a bundle");
  }
  out->file = file;
  out->segments = file.subspan(static_cast<size_t>(header.segments_offset),
                               static_cast<size_t>(header.segments_bytes));
  out->segments_offset = header.segments_offset;
  out->index = fbs::GetBundle(index_u8);
  return Status::kOk;
}

Status CheckSegment(const Bundle& bundle, const fbs::Segment& segment, const char* what,
                    Diag* diag) {
  uint64_t padded = 0;
  if (!CheckedAdd(segment.bytes(), kOverreadBytes, &padded) ||
      !RangeInside(segment.offset(), padded, bundle.segments.size())) {
    return diag->Fail(Status::kBundleTruncated,
                      "%s: %" PRIu64 " bytes at %" PRIu64 " exceed the segment area of %zu bytes",
                      what, static_cast<uint64_t>(segment.bytes()),
                      static_cast<uint64_t>(segment.offset()), bundle.segments.size());
  }
  if (segment.offset() % kSliceAlign != 0) {
    return diag->Fail(Status::kBadBundle, "%s: offset %" PRIu64 " is not a multiple of %u", what,
                      static_cast<uint64_t>(segment.offset()), kSliceAlign);
  }
  return Status::kOk;
}

Status VerifySegments(const Bundle& bundle, BundleParts parts, const SignedDigests* signed_digests,
                      Diag* diag) {
  if (signed_digests != nullptr) return VerifySignedParts(bundle, parts, *signed_digests, diag);
  return EachSegment(bundle, parts, [&](const fbs::Segment* segment, const char* name) {
    return CheckHash(bundle, segment, name, diag);
  });
}

}  // namespace arn

#include "runtime/text/charsmap.h"
#include "platform/base/result.h"

#include <cstring>

#include "platform/base/arith.h"
#include "runtime/text/segments.h"
#include "runtime/text/unicode.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

// A cluster of this size or more is not looked up as a whole.
constexpr size_t kLongCluster = 6;

uint32_t Label(uint32_t unit) { return unit & (0x80000000u | 0xFF); }
uint32_t Offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }
bool HasValue(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t Value(uint32_t unit) { return unit & 0x7FFFFFFFu; }

bool IsContinuation(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

}  // namespace

Status Charsmap::Init(const fbs::Segment* segment, Span<const std::byte> segments, bool longest,
                      Diag* diag) {
  Span<const std::byte> bytes;
  ARN_TRY(SegmentBytes(segment, segments, "normalizers[].charsmap", &bytes, diag));
  uint32_t tree_bytes = 0;
  if (bytes.size() >= sizeof tree_bytes) std::memcpy(&tree_bytes, bytes.data(), sizeof tree_bytes);
  if (tree_bytes == 0 || tree_bytes % sizeof(uint32_t) != 0 ||
      tree_bytes > bytes.size() - sizeof tree_bytes) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.normalizers[].charsmap: a tree of %u bytes in %zu bytes",
                      tree_bytes, bytes.size());
  }
  const std::byte* const tree = bytes.data() + sizeof tree_bytes;
  units_ = reinterpret_cast<const uint32_t*>(tree);
  n_units_ = tree_bytes / sizeof(uint32_t);
  replacements_ = {reinterpret_cast<const char*>(tree + tree_bytes),
                   bytes.size() - sizeof tree_bytes - tree_bytes};
  longest_ = longest;
  if (!IsValidUtf8(replacements_)) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.normalizers[].charsmap: the replacements are not UTF-8");
  }
  const uint32_t root = Offset(units_[0]);
  for (uint32_t c = 1; c < 128; ++c) {
    const uint32_t child = root ^ c;
    begins_text_[c] = child < n_units_ && Label(units_[child]) == c;
  }
  return Status::kOk;
}

bool Charsmap::ReplacementAt(uint32_t at, StringView* replacement) const {
  if (at >= replacements_.size || IsContinuation(replacements_.data[at])) return false;
  const char* const begin = replacements_.data + at;
  const void* const end = std::memchr(begin, 0, replacements_.size - at);
  *replacement = {begin, end == nullptr
                             ? replacements_.size - at
                             : static_cast<size_t>(static_cast<const char*>(end) - begin)};
  return true;
}

bool Charsmap::Find(const char* p, const char* end, bool longest, StringView* replacement,
                    size_t* bytes) const {
  bool found = false;
  uint32_t node = Offset(units_[0]);
  for (const char* q = p; q != end && *q != 0; ++q) {
    const uint32_t byte = static_cast<uint8_t>(*q);
    node ^= byte;
    if (node >= n_units_ || Label(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= Offset(unit);
    if (!HasValue(unit) || node >= n_units_ || !ReplacementAt(Value(units_[node]), replacement)) {
      continue;
    }
    // Tables for SentencePiece contain whole characters.
    if (longest && q + 1 != end && IsContinuation(q[1])) continue;
    found = true;
    *bytes = static_cast<size_t>(q + 1 - p);
    if (!longest) return true;
  }
  return found;
}

size_t Charsmap::ReplacementBytes(bool* is_kept) const {
  StringView replacement;
  size_t bytes = 0;
  const char* const text = kReplacementText.data;
  *is_kept = !Find(text, text + kReplacementText.size, longest_, &replacement, &bytes);
  return *is_kept ? kReplacementText.size : replacement.size;
}

// True for an ASCII character that is a cluster of its own and stays unchanged.
bool Charsmap::IsPlain(const char* p, const char* end) const {
  const uint8_t c = static_cast<uint8_t>(*p);
  if (c >= 0x80 || begins_text_[c]) return false;
  return longest_ || p + 1 == end || (static_cast<uint8_t>(p[1]) < 0x80 && p[1] != '\n');
}

Status Charsmap::Run(StringView text, Span<char> buffer, StringView* out) const {
  const char* const end = text.data + text.size;
  size_t size = 0;
  bool overflow = false;
  const auto put = [&](StringView part) {
    if (part.size > buffer.size() - size) {
      overflow = true;
      return;
    }
    std::memcpy(buffer.data() + size, part.data, part.size);
    size += part.size;
  };
  const auto put_character = [&](const char* p, const char* limit) {
    StringView replacement;
    size_t bytes = 0;
    if (Find(p, limit, longest_, &replacement, &bytes)) {
      put(replacement);
      return longest_ ? bytes : static_cast<size_t>(limit - p);
    }
    bytes = Min<size_t>(ReadValidUtf8(p).bytes, static_cast<size_t>(limit - p));
    put({p, bytes});
    return bytes;
  };
  for (const char* p = text.data; p != end && !overflow;) {
    const char* plain = p;
    while (plain != end && IsPlain(plain, end)) ++plain;
    if (plain != p) {
      put({p, static_cast<size_t>(plain - p)});
      p = plain;
      continue;
    }
    if (longest_) {
      p += put_character(p, end);
      continue;
    }
    const char* const cluster_end = p + GraphemeBytes({p, static_cast<size_t>(end - p)});
    StringView replacement;
    size_t bytes = 0;
    if (static_cast<size_t>(cluster_end - p) < kLongCluster &&
        Find(p, cluster_end, false, &replacement, &bytes)) {
      put(replacement);
    } else {
      for (const char* q = p; q != cluster_end;) q += put_character(q, q + ReadValidUtf8(q).bytes);
    }
    p = cluster_end;
  }
  if (overflow) return Status::kBufferTooSmall;
  *out = {buffer.data(), size};
  return Status::kOk;
}

}  // namespace arn

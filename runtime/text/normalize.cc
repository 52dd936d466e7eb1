#include "runtime/text/normalize.h"

#include <cstdio>
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/bundle/bundle_generated.h"
#include "runtime/text/nfc.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

constexpr uint64_t kHuge = uint64_t{1} << 62;
// A pattern or a replacement longer than this is no tokenizer's.
constexpr size_t kMaxTextBytes = 65536;

StringView ViewOf(const flatbuffers::String* text) {
  return text == nullptr ? StringView() : StringView(text->c_str(), text->size());
}

// The position of `needle`, which is not empty, in `text` from `start` on, or text.size.
size_t FindLiteral(StringView text, StringView needle, size_t start) {
  while (start + needle.size <= text.size) {
    const void* hit =
        std::memchr(text.data + start, needle.data[0], text.size - needle.size - start + 1);
    if (hit == nullptr) break;
    const size_t at = static_cast<size_t>(static_cast<const char*>(hit) - text.data);
    if (std::memcmp(text.data + at, needle.data, needle.size) == 0) return at;
    start = at + 1;
  }
  return text.size;
}

// Appends to a buffer that is known to be long enough for honest steps; never writes past it.
class Writer {
 public:
  explicit Writer(Span<char> buffer) : buffer_(buffer) {}
  void Put(StringView text) {
    if (text.size > buffer_.size() - size_) {
      overflow_ = true;
      return;
    }
    if (text.size > 0) std::memcpy(buffer_.data() + size_, text.data, text.size);
    size_ += text.size;
  }
  bool overflow() const { return overflow_; }
  StringView text() const { return {buffer_.data(), size_}; }

 private:
  Span<char> buffer_;
  size_t size_ = 0;
  bool overflow_ = false;
};

void ReplaceLiteral(StringView text, StringView pattern, StringView content, Writer* writer) {
  size_t position = 0;
  while (position < text.size) {
    const size_t hit = FindLiteral(text, pattern, position);
    writer->Put({text.data + position, hit - position});
    if (hit == text.size) break;
    writer->Put(content);
    position = hit + pattern.size;
  }
}

Status ReplaceRegex(StringView text, const Regex& regex, StringView content, RegexMatcher* matcher,
                    Writer* writer, Diag* diag) {
  RegexIterator matches(regex, matcher, text);
  size_t position = 0;
  for (;;) {
    bool found = false;
    size_t begin = 0, end = 0;
    ARN_TRY(matches.Next(&found, &begin, &end, diag));
    if (!found) break;
    if (begin > position) writer->Put({text.data + position, begin - position});
    writer->Put(content);
    position = Max(position, end);
  }
  writer->Put({text.data + position, text.size - position});
  return Status::kOk;
}

Growth StepGrowth(const fbs::Normalizer& step) {
  Growth growth;
  const uint64_t content = ViewOf(step.content()).size;
  switch (step.kind()) {
    case fbs::NormalizerKind::Prepend: growth.added = content; break;
    case fbs::NormalizerKind::Nfc: growth.factor = kNfcGrowth; break;
    case fbs::NormalizerKind::Replace:
      if (step.pattern_is_regex()) {
        // A match at every border of characters, each of which may be empty.
        growth.added = 1;
        growth.factor = 1 + content;
      } else {
        growth.factor =
            Max<uint64_t>(1, CeilDiv(content, Max<uint64_t>(1, ViewOf(step.pattern()).size)));
      }
      break;
  }
  return growth;
}

Growth Chained(Growth a, Growth b) {
  Growth both;
  if (!CheckedAdd(a.added, b.added, &both.added)) both.added = kHuge;
  if (!CheckedMul(a.factor, b.factor, &both.factor)) both.factor = kHuge;
  return both;
}

}  // namespace

uint64_t Growth::Bound(uint64_t n) const {
  uint64_t sum = 0, product = 0;
  if (!CheckedAdd(n, added, &sum) || !CheckedMul(sum, factor, &product)) return kHuge;
  return Min(product, kHuge);
}

uint64_t NormalizerChain::ArenaBytes(const fbs::Tokenizer& table) {
  uint64_t bytes = 0;
  if (table.normalizers() == nullptr) return 0;
  for (const fbs::Normalizer* step : *table.normalizers()) {
    if (step->pattern_is_regex()) bytes += Regex::ArenaBytes(ViewOf(step->pattern()).size);
  }
  return bytes;
}

Growth NormalizerChain::GrowthOf(const fbs::Tokenizer& table) {
  Growth growth;
  if (table.normalizers() == nullptr) return growth;
  for (const fbs::Normalizer* step : *table.normalizers()) {
    growth = Chained(growth, StepGrowth(*step));
  }
  return growth;
}

Status NormalizerChain::Init(const fbs::Tokenizer& table, Arena* arena, Diag* diag) {
  const uint32_t count = table.normalizers() == nullptr ? 0 : table.normalizers()->size();
  if (count > kMaxSteps) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.normalizers has %u entries, expected at most %u", count,
                      kMaxSteps);
  }
  for (uint32_t i = 0; i < count; ++i) ARN_TRY(InitStep(i, table, arena, diag));
  return Status::kOk;
}

Status NormalizerChain::InitStep(uint32_t index, const fbs::Tokenizer& table, Arena* arena,
                                 Diag* diag) {
  const fbs::Normalizer* source = table.normalizers()->Get(index);
  Step& step = steps_[n_steps_++];
  step.kind = source->kind();
  step.is_regex = false;
  step.pattern = ViewOf(source->pattern());
  step.content = ViewOf(source->content());
  if (!IsValidUtf8(step.content) || step.content.size > kMaxTextBytes ||
      step.pattern.size > kMaxTextBytes) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.normalizers[%u]: the texts must be UTF-8 of at most %zu bytes",
                      index, kMaxTextBytes);
  }
  switch (step.kind) {
    case fbs::NormalizerKind::Prepend: break;
    case fbs::NormalizerKind::Nfc: has_nfc_ = true; break;
    case fbs::NormalizerKind::Replace:
      if (step.pattern.size == 0 || !IsValidUtf8(step.pattern)) {
        return diag->Fail(Status::kBadBundle,
                          "tokenizer.normalizers[%u]: the pattern is empty or not UTF-8", index);
      }
      step.is_regex = source->pattern_is_regex();
      if (step.is_regex) {
        char what[64];
        std::snprintf(what, sizeof what, "tokenizer.normalizers[%u]", index);
        ARN_TRY(step.regex.Compile(step.pattern, what, arena, diag));
        uses_regex_ = true;
      }
      break;
    default:
      return diag->Fail(Status::kBadBundle,
                        "tokenizer.normalizers[%u].kind is %u, which this version does not know",
                        index, static_cast<unsigned>(step.kind));
  }
  const Growth growth = StepGrowth(*source);
  growth_ = Chained(growth_, growth);
  if (growth.factor > 1) {
    ++n_growing_;
    growing_ = &step;
  }
  return Status::kOk;
}

void NormalizerChain::SoleReplacement(StringView* pattern, StringView* content) const {
  *pattern = *content = StringView();
  if (n_growing_ != 1 || growing_->kind != fbs::NormalizerKind::Replace || growing_->is_regex ||
      FindLiteral(growing_->pattern, kReplacementText, 0) != growing_->pattern.size) {
    return;
  }
  *pattern = growing_->pattern;
  *content = growing_->content;
}

Growth NormalizerChain::growth_of_anything() const {
  constexpr uint64_t kInvalidGrowth = 3;  // a byte becomes U+FFFD
  Growth growth = growth_;
  StringView pattern, content;
  SoleReplacement(&pattern, &content);
  const bool nfc_alone = n_growing_ == 1 && growing_->kind == fbs::NormalizerKind::Nfc;
  if (n_growing_ == 0 || nfc_alone || pattern.size > 0) {
    // U+FFFD passes these unchanged: a byte grows in the one way or in the other.
    growth.factor = Max(growth.factor, kInvalidGrowth);
  } else if (!CheckedMul(growth.factor, kInvalidGrowth, &growth.factor)) {
    growth.factor = kHuge;
  }
  return growth;
}

uint64_t NormalizerChain::ScratchBytes(uint64_t max_bytes) const {
  return has_nfc_ ? NfcScratchBytes(static_cast<size_t>(Min(max_bytes, kHuge / 64))) : 0;
}

Status NormalizerChain::Run(StringView text, Span<char> buffer_a, Span<char> buffer_b,
                            RegexMatcher* matcher, Arena* scratch, StringView* out,
                            Diag* diag) const {
  for (uint32_t i = 0; i < n_steps_ && text.size > 0; ++i) {
    const Step& step = steps_[i];
    const Span<char> target = text.data == buffer_a.data() ? buffer_b : buffer_a;
    if (step.kind == fbs::NormalizerKind::Nfc) {
      ARN_TRY(ToNfc(text, target, scratch, &text));
      continue;
    }
    Writer writer(target);
    if (step.kind == fbs::NormalizerKind::Prepend) {
      writer.Put(step.content);
      writer.Put(text);
    } else if (step.is_regex) {
      ARN_TRY(ReplaceRegex(text, step.regex, step.content, matcher, &writer, diag));
    } else {
      if (FindLiteral(text, step.pattern, 0) == text.size) continue;
      ReplaceLiteral(text, step.pattern, step.content, &writer);
    }
    if (writer.overflow()) return Status::kBufferTooSmall;
    text = writer.text();
  }
  *out = text;
  return Status::kOk;
}

}  // namespace arn

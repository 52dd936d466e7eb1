#include "runtime/text/normalize.h"

#include <cstdio>
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/text/characters.h"
#include "runtime/text/normal_form.h"
#include "runtime/text/text_writer.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

constexpr uint64_t kHuge = uint64_t{1} << 62;
// No tokenizer has a longer pattern or replacement.
constexpr size_t kMaxPatternBytes = 65536;
constexpr uint32_t kMaxCharsmapGrowth = 64;

using Kind = fbs::NormalizerKind;

bool IsNormalForm(Kind kind) {
  return kind == Kind::Nfc || kind == Kind::Nfd || kind == Kind::Nfkc || kind == Kind::Nfkd;
}

NormalForm FormOf(Kind kind) {
  if (kind == Kind::Nfd) return NormalForm::kNfd;
  if (kind == Kind::Nfkc) return NormalForm::kNfkc;
  return kind == Kind::Nfkd ? NormalForm::kNfkd : NormalForm::kNfc;
}

// Returns the position of the non-empty `needle` at or after `start`, or text.size.
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

void ReplaceLiteral(StringView text, StringView pattern, StringView content, TextWriter* writer) {
  size_t position = 0;
  while (position < text.size) {
    const size_t hit = FindLiteral(text, pattern, position);
    writer->Put({text.data + position, hit - position});
    if (hit == text.size) break;
    writer->Put(content);
    position = hit + pattern.size;
  }
}

// *taken: bytes of a match at the start of the text, else 0.
Status ReplaceRegex(StringView text, const Regex& regex, StringView content, RegexMatcher* matcher,
                    TextWriter* writer, size_t* taken, Diag* diag) {
  RegexIterator matches(regex, matcher, text);
  size_t position = 0;
  for (;;) {
    bool found = false;
    size_t begin = 0, end = 0;
    ARN_TRY(matches.Next(&found, &begin, &end, diag));
    if (!found) break;
    if (begin > position) writer->Put({text.data + position, begin - position});
    writer->Put(content);
    if (begin == 0) *taken = end;
    position = Max(position, end);
  }
  writer->Put({text.data + position, text.size - position});
  return Status::kOk;
}

Growth StepGrowth(const fbs::Normalizer& step) {
  Growth growth;
  const uint64_t content = ViewOf(step.content()).size;
  switch (step.kind()) {
    case Kind::Prepend: growth.added = content; break;
    case Kind::Nfc:
    case Kind::Nfd:
    case Kind::Nfkc:
    case Kind::Nfkd: growth.factor = NormalFormGrowth(FormOf(step.kind())); break;
    case Kind::Lowercase:
    case Kind::SpaceIdeographs: growth.factor = 2; break;
    case Kind::StripAccents:
    case Kind::StripNonspacing:
    case Kind::Strip:
    case Kind::CleanText:
    case Kind::Nmt: break;
    case Kind::Charsmap:
      growth.factor = Min(Max<uint32_t>(1, step.growth()), kMaxCharsmapGrowth);
      break;
    case Kind::Replace:
      if (step.pattern_is_regex()) {
        // A match at every character boundary, each possibly empty.
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

Status NormalizerChain::Init(const fbs::Tokenizer& table, Span<const std::byte> segments,
                             Arena* arena, Diag* diag) {
  const uint32_t count = table.normalizers() == nullptr ? 0 : table.normalizers()->size();
  if (count > kMaxSteps) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.normalizers has %u entries, expected at most %u", count,
                      kMaxSteps);
  }
  for (uint32_t i = 0; i < count; ++i) ARN_TRY(InitStep(i, table, segments, arena, diag));
  return Status::kOk;
}

Status NormalizerChain::InitStep(uint32_t index, const fbs::Tokenizer& table,
                                 Span<const std::byte> segments, Arena* arena, Diag* diag) {
  const fbs::Normalizer* source = table.normalizers()->Get(index);
  Step& step = steps_[n_steps_++];
  step.kind = source->kind();
  step.is_regex = false;
  step.pattern = ViewOf(source->pattern());
  step.content = ViewOf(source->content());
  step.left = source->left();
  step.right = source->right();
  if (!IsValidUtf8(step.content) || step.content.size > kMaxPatternBytes ||
      step.pattern.size > kMaxPatternBytes) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.normalizers[%u]: the texts must be UTF-8 of at most %zu bytes",
                      index, kMaxPatternBytes);
  }
  if (step.kind > Kind::Charsmap) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.normalizers[%u].kind is %u, which this version does not know",
                      index, static_cast<unsigned>(step.kind));
  }
  if (IsNormalForm(step.kind)) {
    has_form_ = true;
    form_input_ = growth_of_anything();
  }
  if (step.kind == Kind::Charsmap) {
    ARN_TRY(step.charsmap.Init(source->charsmap(), segments, source->longest(), diag));
  } else if (step.kind == Kind::Replace) {
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
  }
  const Growth growth = StepGrowth(*source);
  growth_ = Chained(growth_, growth);
  CountReplacement(step, growth);
  if (growth.factor > 1) {
    ++n_growing_;
    growing_ = &step;
  }
  return Status::kOk;
}

// Tracks U+FFFD, the replacement of invalid bytes, through the step.
void NormalizerChain::CountReplacement(const Step& step, const Growth& growth) {
  const bool is_replace = step.kind == Kind::Replace;
  const bool is_met = is_replace && (step.is_regex || FindLiteral(step.pattern, kReplacementText,
                                                                  0) != step.pattern.size);
  if (replacement_is_kept_ && step.kind == Kind::Charsmap) {
    replacement_bytes_ =
        Max<uint64_t>(replacement_bytes_, step.charsmap.ReplacementBytes(&replacement_is_kept_));
  } else if (replacement_is_kept_ && !is_met) {
    // Kept, removed, or replaced by a space.
    replacement_is_kept_ = step.kind != Kind::CleanText && step.kind != Kind::Nmt;
  } else {
    replacement_is_kept_ = false;
    if (!CheckedMul(replacement_bytes_, growth.factor, &replacement_bytes_)) {
      replacement_bytes_ = kHuge;
    }
  }
}

void NormalizerChain::SoleReplacement(StringView* pattern, StringView* content) const {
  *pattern = *content = StringView();
  if (n_growing_ != 1 || growing_->kind != Kind::Replace || growing_->is_regex ||
      FindLiteral(growing_->pattern, kReplacementText, 0) != growing_->pattern.size) {
    return;
  }
  *pattern = growing_->pattern;
  *content = growing_->content;
}

Growth NormalizerChain::growth_of_anything() const {
  // A byte grows by one factor or, if invalid, by the other.
  Growth growth = growth_;
  growth.factor = Max(growth.factor, replacement_bytes_);
  return growth;
}

uint64_t NormalizerChain::ScratchBytes(uint64_t text_bytes) const {
  if (!has_form_) return 0;
  const uint64_t bytes = form_input_.Bound(text_bytes);
  return NormalFormScratchBytes(static_cast<size_t>(Min(bytes, kHuge / 64)));
}

Status NormalizerChain::Run(StringView text, Span<char> buffer_a, Span<char> buffer_b,
                            RegexMatcher* matcher, Arena* scratch, StringView* out,
                            bool* keeps_start, Diag* diag) const {
  *keeps_start = true;
  for (uint32_t i = 0; i < n_steps_ && text.size > 0; ++i) {
    const bool is_in_a = text.data >= buffer_a.data() && text.data < buffer_a.end();
    ARN_TRY(RunStep(steps_[i], text, is_in_a ? buffer_b : buffer_a, matcher, scratch, &text,
                    keeps_start, diag));
  }
  *out = text;
  return Status::kOk;
}

Status NormalizerChain::RunStep(const Step& step, StringView text, Span<char> target,
                                RegexMatcher* matcher, Arena* scratch, StringView* out,
                                bool* keeps_start, Diag* diag) {
  if (IsNormalForm(step.kind)) {
    return ToNormalForm(FormOf(step.kind), text, target, scratch, out);
  }
  if (step.kind == Kind::Charsmap) return step.charsmap.Run(text, target, out);
  if (step.kind == Kind::Strip) {
    *out = StripEnds(text, step.content, step.left, step.right);
    *keeps_start &= out->data == text.data;
    return Status::kOk;
  }
  TextWriter writer(target);
  if (step.kind == Kind::Prepend) {
    writer.Put(step.content);
    writer.Put(text);
  } else if (step.kind != Kind::Replace) {
    const size_t first = ReadValidUtf8(text.data).bytes;
    MapCharacters(step.kind, {text.data, first}, &writer);
    *keeps_start &= writer.text().size > 0;
    MapCharacters(step.kind, {text.data + first, text.size - first}, &writer);
  } else if (step.is_regex) {
    size_t taken = 0;
    ARN_TRY(ReplaceRegex(text, step.regex, step.content, matcher, &writer, &taken, diag));
    *keeps_start &= taken == 0 || step.content.size > 0;
  } else {
    *out = text;
    const size_t hit = FindLiteral(text, step.pattern, 0);
    if (hit == text.size) return Status::kOk;
    *keeps_start &= hit > 0 || step.content.size > 0;
    ReplaceLiteral(text, step.pattern, step.content, &writer);
  }
  *out = writer.text();
  return writer.overflow() ? Status::kBufferTooSmall : Status::kOk;
}

}  // namespace arn

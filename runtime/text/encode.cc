// Converts text to ids: cuts out added tokens, normalises the rest, cuts out added tokens that
// match normalised text, splits into pieces and encodes each piece.
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/text/tokenizer_impl.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

constexpr uint64_t kTooLarge = uint64_t{1} << 62;
constexpr uint64_t kAlign = 16;

uint64_t Sum(uint64_t a, uint64_t b) {
  return Min(kTooLarge, Min(a, kTooLarge) + Min(b, kTooLarge));
}
uint64_t Product(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return CheckedMul(a, b, &product) ? Min(product, kTooLarge) : kTooLarge;
}

// Passes the pieces of a text to the model.
class EncodingSink : public PieceSink {
 public:
  EncodingSink(const TextModel& model, TextModel::Workspace* workspace, IdSink* out,
               WorkBudget* budget, Diag* diag)
      : model_(model), workspace_(workspace), out_(out), budget_(budget), diag_(diag) {}
  Status Put(StringView piece) override {
    if (!budget_->Pass(piece.size)) return budget_->Fail(diag_);
    const Status status = model_.Encode(piece, workspace_, out_);
    if (status == Status::kCancelled) return budget_->Fail(diag_);
    if (status != Status::kBadArgument) return status;
    return diag_->Fail(status,
                       "part of the text has no token, and the vocabulary has no unknown token");
  }

 private:
  const TextModel& model_;
  TextModel::Workspace* workspace_;
  IdSink* out_;
  WorkBudget* budget_;
  Diag* diag_;
};

// Extra steps beyond those any text needs. Benign patterns take one or two steps per character of a
// long run.
uint64_t DefaultSteps(uint64_t text_bytes) { return Sum(16 << 20, Product(64, text_bytes)); }

// Checks that the plain spans are ordered, disjoint and inside the text.
Status CheckSpans(StringView text, Span<const TextSpan> spans, Diag* diag) {
  size_t end = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    const TextSpan span = spans[i];
    if (span.offset < end || span.offset > text.size || span.bytes > text.size - span.offset) {
      return diag->Fail(Status::kBadArgument,
                        "plain_spans[%zu] has %zu bytes at %zu: out of order, or not in a text of "
                        "%zu bytes",
                        i, span.bytes, span.offset, text.size);
    }
    end = span.offset + span.bytes;
  }
  return Status::kOk;
}

// True if any of the ordered spans overlaps bytes [begin, end) of the text.
bool HasSpan(Span<const TextSpan> spans, size_t begin, size_t end) {
  for (const TextSpan& span : spans) {
    if (span.bytes > 0 && span.offset < end && span.offset + span.bytes > begin) return true;
  }
  return false;
}

Result<Span<char>> TakeBuffer(Arena* arena, uint64_t bytes) {
  ARN_ASSIGN(void* memory, arena->Allocate(bytes, kAlign));
  return Span<char>(static_cast<char*>(memory), static_cast<size_t>(bytes));
}

}  // namespace

Tokenizer::Impl::Sizes Tokenizer::Impl::Measure(uint64_t text_bytes) const {
  Sizes sizes;
  const Growth growth = normalizer.growth_of_anything();
  sizes.valid_text = Product(text_bytes, kReplacementText.size);
  const uint64_t text_bound = growth.Bound(text_bytes);
  sizes.normalized = normalizer.is_empty() ? 0 : text_bound;
  sizes.pieces = pre_tokenizer.BufferBytes(text_bound);
  const StringView space = pre_tokenizer.space_replacement();
  StringView pattern, content;
  normalizer.SoleReplacement(&pattern, &content);
  if (!pre_tokenizer.units_are_bytes() && (!normalizer.has_growing_steps() || pattern.size > 0)) {
    // Limits count characters, not bytes.
    sizes.limits.symbols = Product(Sum(text_bytes, growth.added), symbols_per_byte);
    if (space.size > 0)
      sizes.limits.symbols = Product(Sum(sizes.limits.symbols, 1), symbols_per_space);
  } else {
    sizes.limits.symbols = Max(text_bound, sizes.pieces);
  }
  sizes.limits.bytes = Max(text_bound, sizes.pieces);
  const bool is_huge = model.CountUnits(sizes.limits) >= kTooLarge / 64;
  sizes.shared = Max(is_huge ? kTooLarge : model.WorkspaceBytes(sizes.limits),
                     normalizer.ScratchBytes(text_bytes));
  sizes.matcher =
      normalizer.uses_regex() || pre_tokenizer.uses_regex() ? RegexMatcher::kScratchBytes : 0;
  for (uint64_t part : {sizes.valid_text, sizes.normalized, sizes.normalized, sizes.pieces,
                        sizes.shared, sizes.matcher}) {
    sizes.total = Sum(sizes.total, Sum(part, kAlign));
  }
  return sizes;
}

size_t Tokenizer::EncodeScratchBytes(size_t text_bytes) const {
  return static_cast<size_t>(Min<uint64_t>(impl_->Measure(text_bytes).total, SIZE_MAX));
}

Status Tokenizer::Encode(StringView text, const EncodeOptions& options, Span<std::byte> scratch,
                         Span<int32_t> ids, size_t* n_ids, Diag* diag) const {
  *n_ids = 0;
  ARN_TRY(CheckSpans(text, options.plain_spans, diag));
  const Impl& impl = *impl_;
  const Impl::Sizes sizes = impl.Measure(text.size);
  if (impl.model.CountUnits(sizes.limits) >= UINT32_MAX) {
    return diag->Fail(Status::kBadArgument, "a text of %zu bytes is too long to be tokenized",
                      text.size);
  }
  if (scratch.size() < sizes.total) {
    return diag->Fail(Status::kBufferTooSmall,
                      "tokenizing %zu bytes of text needs %llu bytes of scratch, there are %zu",
                      text.size, static_cast<unsigned long long>(sizes.total), scratch.size());
  }
  Arena arena(scratch);
  if (!IsValidUtf8(text)) {
    if (!options.plain_spans.empty()) {
      return diag->Fail(Status::kBadArgument, "plain_spans of a text that is not UTF-8");
    }
    ARN_ASSIGN(Span<char> valid, TakeBuffer(&arena, sizes.valid_text));
    text = {valid.data(), ReplaceInvalidUtf8(text, valid.data())};
  }
  ARN_ASSIGN(const Span<char> normalized_a, TakeBuffer(&arena, sizes.normalized));
  ARN_ASSIGN(const Span<char> normalized_b, TakeBuffer(&arena, sizes.normalized));
  ARN_ASSIGN(const Span<char> pieces, TakeBuffer(&arena, sizes.pieces));
  ARN_ASSIGN(const Span<char> shared, TakeBuffer(&arena, sizes.shared));
  const Span<std::byte> shared_bytes(reinterpret_cast<std::byte*>(shared.data()), shared.size());
  Arena normalizer_arena(shared_bytes);
  Arena model_arena(shared_bytes);
  RegexMatcher matcher;
  WorkBudget budget(options.max_steps != 0 ? options.max_steps : DefaultSteps(text.size),
                    options.stop, options.user);
  if (sizes.matcher > 0) ARN_TRY(matcher.Init(&arena, &budget));
  TextModel::Workspace workspace;
  ARN_TRY(impl.model.InitWorkspace(&model_arena, sizes.limits, &workspace));
  workspace.bpe.budget = workspace.unigram.budget = &budget;

  IdSink out(ids);
  EncodingSink sink(impl.model, &workspace, &out, &budget, diag);
  const TextSpan whole = {0, text.size};
  const Span<const TextSpan> plain =
      options.is_plain ? Span<const TextSpan>(&whole, 1) : options.plain_spans;
  if (options.add_special) {
    for (uint32_t id : impl.prefix_ids) out.Put(id);
  }
  TextPart raw;
  for (PartIterator raw_parts(impl.added.raw(), text, plain, 0); raw_parts.Next(&raw);) {
    if (raw.is_token) {
      out.Put(raw.id);
      continue;
    }
    StringView part_text(text.data + raw.begin, raw.end - raw.begin);
    bool keeps_start = true;
    const Status status = impl.normalizer.Run(part_text, normalized_a, normalized_b, &matcher,
                                              &normalizer_arena, &part_text, &keeps_start, diag);
    if (status == Status::kBufferTooSmall) {
      return diag->Fail(
          Status::kBadBundle,
          "tokenizer.normalizers: a text of %zu bytes grows beyond their declared limit",
          part_text.size);
    }
    ARN_TRY(status);
    // The origin of normalised bytes is unknown: a part is plain if any of its bytes is.
    const TextSpan all = {raw.begin, SIZE_MAX - raw.begin};
    Span<const TextSpan> plain_here = plain;
    if (!impl.normalizer.is_empty()) {
      plain_here = {&all, HasSpan(plain, raw.begin, raw.end) ? size_t{1} : size_t{0}};
    }
    PartIterator parts(impl.added.normalized(), part_text, plain_here, raw.begin);
    for (TextPart part; parts.Next(&part);) {
      if (part.is_token) {
        out.Put(part.id);
        continue;
      }
      const bool at_start = raw.begin == 0 && part.begin == 0 && keeps_start;
      ARN_TRY(impl.pre_tokenizer.Run({part_text.data + part.begin, part.end - part.begin}, at_start,
                                     &matcher, pieces, &sink, diag));
    }
  }
  if (options.add_special) {
    for (uint32_t id : impl.suffix_ids) out.Put(id);
  }
  *n_ids = out.count();
  if (out.count() > ids.size()) {
    return diag->Fail(Status::kBufferTooSmall, "the text has %zu tokens, there is room for %zu",
                      out.count(), ids.size());
  }
  return Status::kOk;
}

}  // namespace arn

#include "runtime/embedding/text_ids.h"

#include <cstring>
#include <string_view>

#include "platform/base/arith.h"

namespace arn {
namespace {

// Appends ids to tokens that have room for them.
class TokenSink {
 public:
  explicit TokenSink(Span<int32_t> tokens) : tokens_(tokens) {}
  template <typename Ids>
  void Put(const Ids& ids, size_t n) {
    for (size_t i = 0; i < n; ++i) tokens_[n_++] = static_cast<int32_t>(ids[i]);
  }
  size_t count() const { return n_; }

 private:
  Span<int32_t> tokens_;
  size_t n_ = 0;
};

using Ids = flatbuffers::Vector<uint32_t>;
Span<const uint32_t> SpanOf(const Ids* ids) {
  return ids == nullptr ? Span<const uint32_t>() : Span<const uint32_t>(ids->data(), ids->size());
}

// As LongestFirst of Hugging Face tokenizers (utils/truncation.rs): cuts *a and *b so that they sum
// to at most `most`.
void CutLongest(size_t most, size_t* a, size_t* b) {
  if (*a + *b <= most) return;
  size_t shorter = Min(*a, *b);
  size_t longer = shorter > most ? shorter : Max(shorter, most - shorter);
  if (shorter + longer > most) {
    shorter = most / 2;
    longer = shorter + most % 2;
  }
  const bool is_swapped = *a > *b;
  *a = is_swapped ? longer : shorter;
  *b = is_swapped ? shorter : longer;
}

constexpr std::string_view kInstruction = "{instruction}", kQuery = "{query}",
                           kDocument = "{document}";

}  // namespace

Status TextIds::Tokenize(StringView text, Span<int32_t> ids, size_t* n_ids, Diag* diag) const {
  Tokenizer::EncodeOptions options;  // special tokens are added here
  Diag own;
  const Status status = model_.tokenizer->Encode(text, options, buffers_.scratch, ids, n_ids, &own);
  // The first ids are there.
  if (status == Status::kOk || (status == Status::kBufferTooSmall && *n_ids > ids.size())) {
    return Status::kOk;
  }
  return diag->Fail(status, "%s", own.text());
}

Status TextIds::TooLong(uint64_t bytes, Diag* diag) const {
  return diag->Fail(Status::kBadArgument, "a text of %llu bytes, text_bytes is %zu",
                    static_cast<unsigned long long>(bytes), buffers_.text.size());
}

bool TextIds::Append(StringView piece) {
  if (piece.size > buffers_.text.size() - text_size_) return false;
  if (piece.size != 0) std::memcpy(buffers_.text.data() + text_size_, piece.data, piece.size);
  text_size_ += piece.size;
  return true;
}

Status TextIds::Encode(StringView prompt, StringView text, Span<int32_t> tokens, Result* out,
                       Diag* diag) {
  if (model_.tokenizer == nullptr) {
    return diag->Fail(Status::kUnsupported, "the bundle has no tokenizer: give token ids");
  }
  if (uint64_t{prompt.size} + text.size > buffers_.text.size()) {
    return TooLong(uint64_t{prompt.size} + text.size, diag);
  }
  if (prompt.size != 0) {
    text_size_ = 0;
    Append(prompt);
    Append(text);
    text = {buffers_.text.data(), text_size_};
  }
  const fbs::Tokenizer& table = *model_.bundle.index->tokenizer();
  const Span<const uint32_t> before = SpanOf(table.prefix_ids()),
                             behind = SpanOf(table.suffix_ids());
  size_t n = 0;
  ARN_TRY(Tokenize(text, buffers_.ids[0], &n, diag));
  const size_t special = before.size() + behind.size();
  if (special > tokens.size() || (special == tokens.size() && n != 0)) {
    return diag->Fail(Status::kBadArgument,
                      "max_tokens %zu leaves no room beside %zu special tokens", tokens.size(),
                      special);
  }
  out->is_cut = n > tokens.size() - special;
  TokenSink sink(tokens);
  sink.Put(before, before.size());
  sink.Put(buffers_.ids[0], Min(n, tokens.size() - special));
  sink.Put(behind, behind.size());
  out->n_tokens = sink.count();
  if (out->n_tokens == 0) return diag->Fail(Status::kBadArgument, "a text without tokens");
  return Status::kOk;
}

Status TextIds::EncodePair(StringView instruction, StringView query, StringView document,
                           Span<int32_t> tokens, Result* out, Diag* diag) {
  if (model_.tokenizer == nullptr) {
    return diag->Fail(Status::kUnsupported, "the bundle has no tokenizer");
  }
  const fbs::Pooling& pooling = *model_.bundle.index->model()->pooling();
  if (const flatbuffers::String* form = pooling.pair_template()) {
    if (instruction.size == 0 && pooling.instruction() != nullptr) {
      instruction = {pooling.instruction()->data(), pooling.instruction()->size()};
    }
    return EncodeTemplate({form->data(), form->size()}, instruction, query, document, tokens, out,
                          diag);
  }
  if (instruction.size != 0) {
    return diag->Fail(Status::kUnsupported, "an instruction: the model's pairs have none");
  }
  const uint64_t most = buffers_.text.size();
  if (query.size > most) return TooLong(query.size, diag);
  if (document.size > most) return TooLong(document.size, diag);
  const fbs::Tokenizer& table = *model_.bundle.index->tokenizer();
  const Span<const uint32_t> before = SpanOf(table.prefix_ids()),
                             between = SpanOf(table.separator_ids()),
                             behind = SpanOf(table.suffix_ids());
  size_t n[2] = {};
  ARN_TRY(Tokenize(query, buffers_.ids[0], &n[0], diag));
  ARN_TRY(Tokenize(document, buffers_.ids[1], &n[1], diag));
  const size_t special = before.size() + between.size() + behind.size();
  if (special + 2 > tokens.size()) {
    return diag->Fail(Status::kBadArgument,
                      "max_tokens %zu leaves no room for a pair beside %zu "
                      "special tokens",
                      tokens.size(), special);
  }
  const size_t whole = n[0] + n[1];
  CutLongest(tokens.size() - special, &n[0], &n[1]);
  out->is_cut = n[0] + n[1] != whole;
  TokenSink sink(tokens);
  sink.Put(before, before.size());
  sink.Put(buffers_.ids[0], n[0]);
  sink.Put(between, between.size());
  out->n_first_type = static_cast<uint32_t>(sink.count());
  sink.Put(buffers_.ids[1], n[1]);
  sink.Put(behind, behind.size());
  out->n_tokens = sink.count();
  if (out->n_tokens == 0) return diag->Fail(Status::kBadArgument, "a pair without tokens");
  return Status::kOk;
}

Status TextIds::EncodeTemplate(StringView form, StringView instruction, StringView query,
                               StringView document, Span<int32_t> tokens, Result* out, Diag* diag) {
  const struct {
    std::string_view name;
    StringView value;
  } kPlaces[] = {{kInstruction, instruction}, {kQuery, query}, {kDocument, document}};
  const std::string_view rest(form.data, form.size);
  text_size_ = 0;
  size_t at = 0;
  for (;;) {
    size_t next = std::string_view::npos, which = 0;
    for (size_t i = 0; i < 3; ++i) {
      const size_t found = rest.find(kPlaces[i].name, at);
      if (found >= next) continue;
      next = found;
      which = i;
    }
    if (next == std::string_view::npos) break;
    if (!Append({rest.data() + at, next - at}) || !Append(kPlaces[which].value)) {
      return TooLong(uint64_t{form.size} + query.size + document.size + instruction.size, diag);
    }
    at = next + kPlaces[which].name.size();
  }
  size_t n_tail = 0, n_head = 0;
  ARN_TRY(Tokenize({rest.data() + at, rest.size() - at}, buffers_.ids[1], &n_tail, diag));
  ARN_TRY(Tokenize({buffers_.text.data(), text_size_}, buffers_.ids[0], &n_head, diag));
  if (n_tail >= tokens.size() || n_tail + n_head == 0) {
    return diag->Fail(Status::kBadArgument,
                      "max_tokens %zu leaves no room beside the template's end "
                      "of %zu",
                      tokens.size(), n_tail);
  }
  const size_t kept = Min(n_head, tokens.size() - n_tail);
  out->is_cut = kept < n_head;
  TokenSink sink(tokens);
  sink.Put(buffers_.ids[0], kept);
  sink.Put(buffers_.ids[1], n_tail);
  out->n_tokens = sink.count();
  return Status::kOk;
}

}  // namespace arn

#include "runtime/text/tokenizer.h"

#include "platform/base/arith.h"
#include "runtime/bundle/bundle_generated.h"
#include "runtime/text/tokenizer_impl.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

Status CheckIds(const flatbuffers::Vector<uint32_t>* ids, const char* name, uint32_t n_tokens,
                Span<const uint32_t>* out, Diag* diag) {
  if (ids == nullptr) return Status::kOk;
  for (uint32_t id : *ids) {
    if (id >= n_tokens) {
      return diag->Fail(Status::kBadBundle, "tokenizer.%s holds %u, expected less than %u", name,
                        id, n_tokens);
    }
  }
  *out = {ids->data(), ids->size()};
  return Status::kOk;
}

}  // namespace

uint64_t Tokenizer::ArenaBytes(const fbs::Tokenizer& table) {
  return sizeof(Tokenizer) + sizeof(Impl) + alignof(Tokenizer) + alignof(Impl) +
         NormalizerChain::ArenaBytes(table) + PreTokenizer::ArenaBytes(table) +
         AddedTokens::ArenaBytes(table);
}

Result<Tokenizer*> Tokenizer::Create(const fbs::Tokenizer& table, Span<const std::byte> segments,
                                     Arena* arena, Diag* diag) {
  ARN_ASSIGN(void* place, arena->Allocate(sizeof(Tokenizer), alignof(Tokenizer)));
  Tokenizer* tokenizer = new (place) Tokenizer();
  ARN_ASSIGN(place, arena->Allocate(sizeof(Impl), alignof(Impl)));
  Impl* impl = new (place) Impl();
  tokenizer->impl_ = impl;
  ARN_TRY(impl->vocab.Init(table, segments, diag));
  ARN_TRY(impl->normalizer.Init(table, segments, arena, diag));
  ARN_TRY(impl->pre_tokenizer.Init(table, arena, diag));
  ARN_TRY(
      impl->model.Init(table, segments, impl->pre_tokenizer.units_are_bytes(), &impl->vocab, diag));
  ARN_TRY(impl->decoder.Init(table, diag));
  ARN_TRY(impl->added.Init(table, impl->normalizer, impl->pre_tokenizer.units_are_bytes(), arena,
                           diag));
  const uint32_t n = impl->vocab.n_tokens();
  ARN_TRY(CheckIds(table.prefix_ids(), "prefix_ids", n, &impl->prefix_ids, diag));
  ARN_TRY(CheckIds(table.suffix_ids(), "suffix_ids", n, &impl->suffix_ids, diag));

  StringView pattern, content;
  impl->normalizer.SoleReplacement(&pattern, &content);
  impl->symbols_per_byte = Max<uint64_t>(1, impl->model.CountSymbols(kReplacementText));
  if (pattern.size > 0) {
    impl->symbols_per_byte =
        Max(impl->symbols_per_byte, CeilDiv(impl->model.CountSymbols(content), pattern.size));
  }
  impl->symbols_per_space =
      Max<uint64_t>(1, impl->model.CountSymbols(impl->pre_tokenizer.space_replacement()));
  return tokenizer;
}

uint32_t Tokenizer::n_tokens() const { return impl_->vocab.n_tokens(); }

bool Tokenizer::IsSpecial(int32_t id) const {
  return id >= 0 && static_cast<uint32_t>(id) < n_tokens() &&
         impl_->added.IsSpecial(static_cast<uint32_t>(id));
}

StringView Tokenizer::TokenText(int32_t id) const {
  if (id < 0 || static_cast<uint32_t>(id) >= n_tokens()) return {};
  return impl_->vocab.Text(static_cast<uint32_t>(id));
}

size_t Tokenizer::max_piece_bytes() const {
  return impl_->decoder.MaxPieceBytes(
      Max(impl_->vocab.max_token_bytes(), impl_->added.max_decoded_bytes()));
}

}  // namespace arn

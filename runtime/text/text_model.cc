#include "runtime/text/text_model.h"
#include "platform/base/result.h"

#include "runtime/bundle/bundle_generated.h"

namespace arn {

Status TextModel::Init(const fbs::Tokenizer& table, Span<const std::byte> segments,
                       bool units_are_bytes, const Vocab* vocab, Diag* diag) {
  kind_ = table.model();
  vocab_ = vocab;
  const int32_t unk = table.unk_id();
  if (unk < -1 || (unk >= 0 && static_cast<uint32_t>(unk) >= vocab->n_tokens())) {
    return diag->Fail(Status::kBadBundle, "tokenizer.unk_id is %d, expected -1..%u", unk,
                      vocab->n_tokens() - 1);
  }
  switch (kind_) {
    case fbs::TokenizerModel::Bpe:
      ARN_TRY(merges_.Init(table, segments, diag));
      return bpe_.Init(table, units_are_bytes, vocab, &merges_, diag);
    case fbs::TokenizerModel::Unigram:
      ARN_TRY(trie_.Init(table, segments, diag));
      return unigram_.Init(table, segments, units_are_bytes, vocab, &trie_, diag);
    case fbs::TokenizerModel::WordPiece:
      ARN_TRY(trie_.Init(table, segments, diag));
      word_piece_.Init(table, units_are_bytes, vocab, &trie_);
      return Status::kOk;
    case fbs::TokenizerModel::WordLevel: word_level_.Init(table, vocab); return Status::kOk;
  }
  return diag->Fail(Status::kBadBundle, "tokenizer.model is %u, which this version does not know",
                    static_cast<unsigned>(kind_));
}

size_t TextModel::CountSymbols(StringView text) const {
  return kind_ == fbs::TokenizerModel::Bpe ? bpe_.CountSymbols(text) : text.size;
}

uint64_t TextModel::CountUnits(const Limits& limits) const {
  return kind_ == fbs::TokenizerModel::Bpe ? limits.symbols : limits.bytes;
}

uint64_t TextModel::WorkspaceBytes(const Limits& limits) const {
  switch (kind_) {
    case fbs::TokenizerModel::Bpe: return BpeModel::Workspace::Bytes(limits.symbols);
    case fbs::TokenizerModel::Unigram:
      return UnigramModel::Workspace::Bytes(limits.bytes, vocab_->max_token_bytes());
    case fbs::TokenizerModel::WordPiece: return WordPieceModel::ScratchBytes(limits.bytes);
    case fbs::TokenizerModel::WordLevel: break;
  }
  return 0;
}

Status TextModel::InitWorkspace(Arena* scratch, const Limits& limits, Workspace* workspace) const {
  switch (kind_) {
    case fbs::TokenizerModel::Bpe: return workspace->bpe.Init(scratch, limits.symbols);
    case fbs::TokenizerModel::Unigram:
      return workspace->unigram.Init(scratch, limits.bytes, vocab_->max_token_bytes());
    case fbs::TokenizerModel::WordPiece: {
      const uint64_t bytes = WordPieceModel::ScratchBytes(limits.bytes);
      ARN_ASSIGN(void* memory, scratch->Allocate(bytes, alignof(uint32_t)));
      workspace->word_pieces = {static_cast<uint32_t*>(memory),
                                static_cast<size_t>(bytes / sizeof(uint32_t))};
      break;
    }
    case fbs::TokenizerModel::WordLevel: break;
  }
  return Status::kOk;
}

Status TextModel::Encode(StringView piece, Workspace* workspace, IdSink* out) const {
  switch (kind_) {
    case fbs::TokenizerModel::Bpe: return bpe_.Encode(piece, &workspace->bpe, out);
    case fbs::TokenizerModel::Unigram: return unigram_.Encode(piece, &workspace->unigram, out);
    case fbs::TokenizerModel::WordPiece:
      return word_piece_.Encode(piece, workspace->word_pieces, out);
    case fbs::TokenizerModel::WordLevel: return word_level_.Encode(piece, out);
  }
  return Status::kInternal;
}

}  // namespace arn

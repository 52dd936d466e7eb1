#include "runtime/text/unigram.h"
#include "platform/base/result.h"

#include "platform/base/arith.h"
#include "runtime/bundle/bundle_generated.h"
#include "runtime/text/segments.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

// Values in Workspace::tokens_: unreachable; a single unknown unit.
constexpr uint32_t kNoWay = 0xFFFFFFFFu;
constexpr uint32_t kUnknownUnit = 0xFFFFFFFEu;
constexpr size_t kNowhere = SIZE_MAX;
constexpr size_t kMaxUnitBytes = 4;
// A whole text is one piece where nothing splits it: bytes between looks at the budget.
constexpr size_t kBytesPerLook = 1024;

// Size of the score ring: positions of all tokens that begin at one position.
uint64_t RingSize(uint64_t max_piece_bytes, uint64_t max_token_bytes) {
  const uint64_t reach = Min(max_piece_bytes, Max<uint64_t>(max_token_bytes, kMaxUnitBytes)) + 1;
  uint64_t size = 2;
  while (size < reach) size *= 2;
  return size;
}

}  // namespace

struct UnigramModel::Job {
  StringView piece;
  Workspace* workspace;
  IdSink* out;
  size_t unknown_begin = kNowhere;  // start of unknown text not yet emitted
};

Status UnigramModel::Init(const fbs::Tokenizer& table, Span<const std::byte> segments,
                          bool units_are_bytes, const Vocab* vocab, const TokenTrie* trie,
                          Diag* diag) {
  Span<const std::byte> bytes;
  ARN_TRY(SegmentBytes(table.scores(), segments, "scores", &bytes, diag));
  if (bytes.size() != uint64_t{vocab->n_tokens()} * sizeof(double)) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.scores has %zu bytes, expected %zu for each token", bytes.size(),
                      sizeof(double));
  }
  if (units_are_bytes && table.byte_fallback()) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.byte_fallback with a byte-level pre-tokenizer");
  }
  vocab_ = vocab;
  trie_ = trie;
  scores_ = reinterpret_cast<const double*>(bytes.data());
  unk_score_ = table.unk_score();
  units_are_bytes_ = units_are_bytes;
  byte_fallback_ = table.byte_fallback();
  unk_id_ = table.unk_id() < 0 ? kEmptySlot : static_cast<uint32_t>(table.unk_id());
  for (uint32_t i = 0; i < 256; ++i) {
    fallback_ids_[i] = byte_fallback_ ? vocab->FindByte(static_cast<uint8_t>(i)) : kEmptySlot;
  }
  return Status::kOk;
}

uint64_t UnigramModel::Workspace::Bytes(uint64_t max_piece_bytes, uint64_t max_token_bytes) {
  return (max_piece_bytes + 1) * sizeof(uint32_t) +
         RingSize(max_piece_bytes, max_token_bytes) * sizeof(double) + 2 * alignof(double);
}

Status UnigramModel::Workspace::Init(Arena* scratch, uint64_t max_piece_bytes,
                                     uint64_t max_token_bytes) {
  const uint64_t ring = RingSize(max_piece_bytes, max_token_bytes);
  ARN_ASSIGN(void* scores, scratch->Allocate(ring * sizeof(double), alignof(double)));
  ARN_ASSIGN(void* tokens,
             scratch->Allocate((max_piece_bytes + 1) * sizeof(uint32_t), alignof(uint32_t)));
  scores_ = {static_cast<double*>(scores), static_cast<size_t>(ring)};
  tokens_ = {static_cast<uint32_t*>(tokens), static_cast<size_t>(max_piece_bytes + 1)};
  return Status::kOk;
}

size_t UnigramModel::UnitBytes(const char* p) const {
  return units_are_bytes_ ? 1 : ReadValidUtf8(p).bytes;
}

size_t UnigramModel::LastUnitBytes(const char* begin, const char* end) const {
  if (units_are_bytes_ || end - begin == 1) return 1;
  return static_cast<size_t>(end - PreviousUtf8(end));
}

Status UnigramModel::Encode(StringView piece, Workspace* workspace, IdSink* out) const {
  if (piece.size + 1 > workspace->tokens_.size()) return Status::kInternal;
  Job job = {piece, workspace, out};
  double* const scores = workspace->scores_.data();
  const size_t mask = workspace->scores_.size() - 1;
  const size_t max_token_bytes = Min<size_t>(vocab_->max_token_bytes(), mask);
  // Where all paths meet (`block`) the best path so far is final and emitted; later tokens are at
  // tokens[place - block].
  uint32_t* const tokens = workspace->tokens_.data();
  size_t block = 0;
  size_t reached = 0;
  scores[0] = 0;
  size_t looked = 0;
  for (size_t place = 0; place < piece.size;) {
    if (place - looked >= kBytesPerLook) {
      if (!workspace->budget->Pass(place - looked)) return Status::kCancelled;
      looked = place;
    }
    if (place == reached && place > block) {
      ARN_TRY(PutBlock(&job, block, place));
      block = place;
    }
    const double score_here = scores[place & mask];
    const auto offer = [&](size_t end, double score, uint32_t token) {
      while (reached < end) tokens[++reached - block] = kNoWay;
      if (tokens[end - block] != kNoWay && !(score > scores[end & mask])) return;
      tokens[end - block] = token;
      scores[end & mask] = score;
    };
    const size_t unit_bytes = UnitBytes(piece.data + place);
    bool unit_is_token = false;
    const size_t limit = Min(piece.size, place + max_token_bytes);
    uint32_t node = TokenTrie::kRoot;
    for (size_t end = place; end < limit;) {
      node = trie_->Child(node, static_cast<uint8_t>(piece.data[end]));
      if (node == kEmptySlot) break;
      ++end;
      const uint32_t id = trie_->Id(node);
      if (id == kEmptySlot) continue;
      offer(end, scores_[id] + score_here, id);
      unit_is_token |= end - place == unit_bytes;
    }
    if (!unit_is_token) {
      if (unk_id_ == kEmptySlot) return Status::kBadArgument;
      offer(place + unit_bytes, unk_score_ + score_here, kUnknownUnit);
    }
    place += unit_bytes;
  }
  ARN_TRY(PutBlock(&job, block, piece.size));
  return PutUnknown(&job, piece.size);
}

// Emits the best path from `begin` to `end`, both points where all paths meet.
Status UnigramModel::PutBlock(Job* job, size_t begin, size_t end) const {
  uint32_t* const tokens = job->workspace->tokens_.data();
  const char* const text = job->piece.data;
  const auto length_of = [&](uint32_t token, size_t first, size_t last) {
    return token == kUnknownUnit ? LastUnitBytes(text + first, text + last)
                                 : vocab_->Text(token).size;
  };
  // Walks back and reverses the path: moves each token from its end to its beginning. If trie and
  // texts of a bundle disagree, this reaches an unreachable position or leaves the block.
  uint32_t token = tokens[end - begin];
  for (size_t place = end; place > begin;) {
    if (token == kNoWay) return Status::kInternal;
    const size_t bytes = length_of(token, begin, place);
    if (bytes == 0 || bytes > place - begin) return Status::kInternal;
    place -= bytes;
    const uint32_t before = place == begin ? kNoWay : tokens[place - begin];
    tokens[place - begin] = token;
    token = before;
  }
  for (size_t place = begin; place < end;) {
    const uint32_t next = tokens[place - begin];
    const bool is_unknown = next == kUnknownUnit || next == unk_id_;
    if (is_unknown) {
      if (job->unknown_begin == kNowhere) job->unknown_begin = place;
    } else {
      ARN_TRY(PutUnknown(job, place));
      job->out->Put(next);
    }
    place += next == kUnknownUnit ? UnitBytes(text + place) : vocab_->Text(next).size;
  }
  return Status::kOk;
}

// Emits pending unknown text that ends at `end`: as a token, as bytes, or as the unknown token.
Status UnigramModel::PutUnknown(Job* job, size_t end) const {
  if (job->unknown_begin == kNowhere) return Status::kOk;
  const StringView text(job->piece.data + job->unknown_begin, end - job->unknown_begin);
  job->unknown_begin = kNowhere;
  const uint32_t slot = text.size <= vocab_->max_token_bytes() ? vocab_->Find(text) : kEmptySlot;
  if (slot != kEmptySlot) {
    job->out->Put(slot & ~kWholeToken);
    return Status::kOk;
  }
  bool falls_back = byte_fallback_;
  for (size_t i = 0; falls_back && i < text.size; ++i) {
    falls_back = fallback_ids_[static_cast<uint8_t>(text.data[i])] != kEmptySlot;
  }
  if (!falls_back) {
    job->out->Put(unk_id_);
    return Status::kOk;
  }
  for (size_t i = 0; i < text.size; ++i) {
    job->out->Put(fallback_ids_[static_cast<uint8_t>(text.data[i])]);
  }
  return Status::kOk;
}

}  // namespace arn

#include "runtime/text/bpe.h"

#include <algorithm>
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/bundle/bundle_generated.h"
#include "runtime/text/utf8.h"

namespace arn {
namespace {

// Up to this size a rescan of all pairs is cheaper than a heap.
constexpr size_t kSmall = 32;
constexpr uint32_t kNone = 0xFFFFFFFFu;
// A whole text is one piece where nothing splits it: symbols or merges between looks at the budget.
constexpr size_t kPerLook = 1024;
constexpr size_t kMaxAffixBytes = 64;
// Neither byte nor code point: borders next to it are not looked up.
constexpr uint32_t kNoUnit = 0xFFFFFFFFu;

uint32_t IdOf(uint32_t slot) { return slot == kEmptySlot ? slot : slot & ~kWholeToken; }

}  // namespace

struct BpeModel::Chunk {
  Workspace* workspace;
  IdSink* out;
  size_t count = 0;
  uint32_t last_unit = kNoUnit;
  // Source text of the symbols, valid while each is a token spelled as in the text.
  const char* begin = nullptr;
  const char* end = nullptr;
  bool is_plain = true;
  size_t since_look = 0;        // symbols
  Status status = Status::kOk;  // else the rest of the piece is passed over
};

Status BpeModel::Init(const fbs::Tokenizer& table, bool units_are_bytes, const Vocab* vocab,
                      const MergeTable* merges, Diag* diag) {
  const auto view_of = [](const flatbuffers::String* text) {
    return text == nullptr ? StringView() : StringView(text->c_str(), text->size());
  };
  subword_prefix_ = view_of(table.subword_prefix());
  word_suffix_ = view_of(table.word_suffix());
  has_affixes_ = subword_prefix_.size > 0 || word_suffix_.size > 0;
  if (subword_prefix_.size > kMaxAffixBytes || word_suffix_.size > kMaxAffixBytes ||
      (has_affixes_ && table.byte_fallback())) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer: a prefix of %zu and a suffix of %zu bytes, expected at most %zu, "
                      "without byte_fallback",
                      subword_prefix_.size, word_suffix_.size, kMaxAffixBytes);
  }
  if (units_are_bytes && table.byte_fallback()) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.byte_fallback with a byte-level pre-tokenizer");
  }
  vocab_ = vocab;
  merges_ = merges;
  units_are_bytes_ = units_are_bytes;
  byte_fallback_ = table.byte_fallback();
  fuse_unk_ = table.fuse_unk();
  ignore_merges_ = table.ignore_merges();
  unk_id_ = table.unk_id() < 0 ? kEmptySlot : static_cast<uint32_t>(table.unk_id());
  for (uint32_t i = 0; i < 256; ++i) {
    const char unit = static_cast<char>(i);
    const bool has_unit = units_are_bytes || i < 0x80;
    unit_ids_[i] = has_unit ? IdOf(vocab->Find({&unit, 1})) : kEmptySlot;
    fallback_ids_[i] = byte_fallback_ ? vocab->FindByte(static_cast<uint8_t>(i)) : kEmptySlot;
  }
  return Status::kOk;
}

size_t BpeModel::CountSymbols(StringView text) const {
  if (units_are_bytes_) return text.size;
  size_t count = 0;
  const char* const end = text.data + text.size;
  for (const char* p = text.data; p != end;) {
    const Utf8Char c = ReadUtf8(p, end);
    const bool known = vocab_->Find({p, c.bytes}) != kEmptySlot;
    count += known || !byte_fallback_ ? 1 : c.bytes;
    p += c.bytes;
  }
  return count;
}

uint64_t BpeModel::Workspace::Bytes(uint64_t max_symbols) {
  // Merging n symbols starts with at most n - 1 pairs; each of the n - 1 merges removes one and
  // adds at most two.
  return max_symbols * (3 * sizeof(uint32_t) + 2 * sizeof(uint64_t)) + 4 * alignof(uint64_t);
}

Status BpeModel::Workspace::Init(Arena* scratch, uint64_t max_symbols) {
  // Not AllocateArray, which clears: untouched memory should stay untouched.
  ARN_ASSIGN(void* heap, scratch->Allocate(2 * max_symbols * sizeof(uint64_t), alignof(uint64_t)));
  ARN_ASSIGN(void* words, scratch->Allocate(3 * max_symbols * sizeof(uint32_t), alignof(uint32_t)));
  const size_t n = static_cast<size_t>(max_symbols);
  uint32_t* word = static_cast<uint32_t*>(words);
  heap_ = {static_cast<uint64_t*>(heap), 2 * n};
  ids_ = {word, n};
  next_ = {word + n, n};
  previous_ = {word + 2 * n, n};
  return Status::kOk;
}

Status BpeModel::Encode(StringView piece, Workspace* workspace, IdSink* out) const {
  if (piece.size == 0) return Status::kOk;
  if (piece.size <= vocab_->max_token_bytes()) {
    const uint32_t slot = vocab_->Find(piece);
    if (slot != kEmptySlot && (ignore_merges_ || (slot & kWholeToken) != 0)) {
      out->Put(slot & ~kWholeToken);
      return Status::kOk;
    }
  }
  Chunk chunk;
  chunk.workspace = workspace;
  chunk.out = out;
  if (has_affixes_) {
    EncodeAffixed(piece, &chunk);
  } else if (units_are_bytes_) {
    EncodeBytes(piece, &chunk);
  } else {
    EncodeCharacters(piece, &chunk);
  }
  Flush(&chunk);
  return chunk.status;
}

void BpeModel::EncodeBytes(StringView piece, Chunk* chunk) const {
  bool unk_waits = false;
  for (size_t i = 0; i < piece.size; ++i) {
    const char* p = piece.data + i;
    const uint8_t byte = static_cast<uint8_t>(*p);
    const uint32_t id = unit_ids_[byte];
    if (id != kEmptySlot) {
      if (unk_waits) Append(chunk, unk_id_, kNoUnit, p, p);
      unk_waits = false;
      Append(chunk, id, byte, p, p + 1);
    } else if (unk_id_ != kEmptySlot) {
      if (unk_waits && !fuse_unk_) Append(chunk, unk_id_, kNoUnit, p, p);
      unk_waits = true;
    } else {
      chunk->is_plain = false;  // the byte is dropped, and its neighbours become adjacent
    }
  }
  if (unk_waits) Append(chunk, unk_id_, kNoUnit, nullptr, nullptr);
}

void BpeModel::EncodeAffixed(StringView piece, Chunk* chunk) const {
  bool unk_waits = false;
  const char* const end = piece.data + piece.size;
  for (const char* p = piece.data; p != end;) {
    const char* const next = p + (units_are_bytes_ ? 1 : ReadValidUtf8(p).bytes);
    char unit[2 * kMaxAffixBytes + 4];
    size_t size = 0;
    const auto put = [&](StringView part) {
      if (part.size > 0) std::memcpy(unit + size, part.data, part.size);
      size += part.size;
    };
    if (p != piece.data) put(subword_prefix_);
    put({p, static_cast<size_t>(next - p)});
    if (next == end) put(word_suffix_);
    const uint32_t id = IdOf(vocab_->Find({unit, size}));
    if (id != kEmptySlot) {
      if (unk_waits) Append(chunk, unk_id_, kNoUnit, p, p);
      unk_waits = false;
      Append(chunk, id, kNoUnit, p, next);
    } else if (unk_id_ != kEmptySlot) {
      if (unk_waits && !fuse_unk_) Append(chunk, unk_id_, kNoUnit, p, p);
      unk_waits = true;
    }
    p = next;
  }
  if (unk_waits) Append(chunk, unk_id_, kNoUnit, nullptr, nullptr);
}

void BpeModel::EncodeCharacters(StringView piece, Chunk* chunk) const {
  // An unknown token is emitted only before the next known character, so that it can be fused;
  // fallback bytes in between overtake it, as in the reference.
  bool unk_waits = false;
  const char* const end = piece.data + piece.size;
  for (const char* p = piece.data; p != end;) {
    const Utf8Char c = ReadValidUtf8(p);
    const char* const next = p + c.bytes;
    const uint32_t id = c.bytes == 1 ? unit_ids_[c.code_point] : IdOf(vocab_->Find({p, c.bytes}));
    if (id != kEmptySlot) {
      if (unk_waits) Append(chunk, unk_id_, kNoUnit, p, p);
      unk_waits = false;
      Append(chunk, id, c.code_point, p, next);
      p = next;
      continue;
    }
    bool falls_back = byte_fallback_;
    for (const char* b = p; falls_back && b != next; ++b) {
      falls_back = fallback_ids_[static_cast<uint8_t>(*b)] != kEmptySlot;
    }
    if (falls_back) {
      for (const char* b = p; b != next; ++b) {
        Append(chunk, fallback_ids_[static_cast<uint8_t>(*b)], kNoUnit, p, p);
      }
    } else if (unk_id_ != kEmptySlot) {
      if (unk_waits && !fuse_unk_) Append(chunk, unk_id_, kNoUnit, p, p);
      unk_waits = true;
    } else {
      chunk->is_plain = false;
    }
    p = next;
  }
  if (unk_waits) Append(chunk, unk_id_, kNoUnit, nullptr, nullptr);
}

void BpeModel::Append(Chunk* chunk, uint32_t id, uint32_t unit, const char* begin,
                      const char* end) const {
  if (chunk->count > 0 && unit != kNoUnit && chunk->last_unit != kNoUnit &&
      !merges_->MayCross(chunk->last_unit, unit)) {
    Flush(chunk);
  }
  if (chunk->count == chunk->workspace->ids_.size()) {
    chunk->status = Status::kInternal;
    return;
  }
  if (chunk->count == 0) chunk->begin = begin;
  if (unit == kNoUnit) chunk->is_plain = false;
  chunk->end = end;
  chunk->last_unit = unit;
  chunk->workspace->ids_[chunk->count++] = id;
}

void BpeModel::Flush(Chunk* chunk) const {
  const size_t count = chunk->count;
  Workspace* const workspace = chunk->workspace;
  uint32_t* const ids = workspace->ids_.data();
  IdSink* const out = chunk->out;
  const bool is_plain = chunk->is_plain;
  chunk->count = 0;
  chunk->is_plain = true;
  if (chunk->status != Status::kOk) return;
  chunk->since_look += count;
  if (chunk->since_look >= kPerLook) {
    if (!workspace->budget->Pass(chunk->since_look)) chunk->status = Status::kCancelled;
    chunk->since_look = 0;
  }
  if (count == 1) {
    out->Put(ids[0]);
    return;
  }
  if (is_plain && count > 0) {
    const StringView text(chunk->begin, static_cast<size_t>(chunk->end - chunk->begin));
    if (text.size <= vocab_->max_token_bytes()) {
      const uint32_t slot = vocab_->Find(text);
      if (slot != kEmptySlot && (slot & kWholeToken) != 0) {
        out->Put(slot & ~kWholeToken);
        return;
      }
    }
  }
  if (count <= kSmall) {
    const size_t left = MergeSmall(ids, count);
    for (size_t i = 0; i < left; ++i) out->Put(ids[i]);
  } else if (!MergeLarge(workspace, count, out)) {
    chunk->status = Status::kCancelled;
  }
}

// Merges in place; returns the number of symbols left.
size_t BpeModel::MergeSmall(uint32_t* ids, size_t count) const {
  Merge pairs[kSmall];  // symbols i and i + 1
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = merges_->Find(ids[i], ids[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == kNoRank) break;
    ids[best] = pairs[best].id;
    --count;
    for (size_t i = best + 1; i < count; ++i) ids[i] = ids[i + 1];
    for (size_t i = best + 1; i + 1 < count; ++i) pairs[i] = pairs[i + 1];
    if (best > 0) pairs[best - 1] = merges_->Find(ids[best - 1], ids[best]);
    if (best + 1 < count) pairs[best] = merges_->Find(ids[best], ids[best + 1]);
  }
  return count;
}

bool BpeModel::MergeLarge(Workspace* workspace, size_t count, IdSink* out) const {
  uint32_t* const ids = workspace->ids_.data();
  uint32_t* const next = workspace->next_.data();
  uint32_t* const previous = workspace->previous_.data();
  uint64_t* const heap = workspace->heap_.data();
  const auto later = [](uint64_t a, uint64_t b) { return a > b; };
  size_t heap_size = 0;
  const auto pair_key = [](uint32_t rank, uint32_t position) {
    return static_cast<uint64_t>(rank) << 32 | position;
  };
  for (size_t i = 0; i < count; ++i) {
    const uint32_t position = static_cast<uint32_t>(i);
    previous[i] = i == 0 ? kNone : position - 1;
    next[i] = i + 1 == count ? kNone : position + 1;
    if (i + 1 == count) break;
    const Merge merge = merges_->Find(ids[i], ids[i + 1]);
    if (merge.rank != kNoRank) heap[heap_size++] = pair_key(merge.rank, position);
  }
  std::make_heap(heap, heap + heap_size, later);
  const auto push = [&](uint32_t position) {
    const Merge merge = merges_->Find(ids[position], ids[next[position]]);
    if (merge.rank == kNoRank) return;
    heap[heap_size++] = pair_key(merge.rank, position);
    std::push_heap(heap, heap + heap_size, later);
  };
  for (size_t n = 1; heap_size > 0; ++n) {
    if (n % kPerLook == 0 && !workspace->budget->Pass(kPerLook)) return false;
    std::pop_heap(heap, heap + heap_size, later);
    const uint64_t top = heap[--heap_size];
    const uint32_t position = static_cast<uint32_t>(top);
    // Stale entry: the symbol was merged away, or the pair has changed.
    if (ids[position] == kEmptySlot || next[position] == kNone) continue;
    const uint32_t right = next[position];
    const Merge merge = merges_->Find(ids[position], ids[right]);
    if (merge.rank != static_cast<uint32_t>(top >> 32)) continue;
    ids[position] = merge.id;
    ids[right] = kEmptySlot;
    next[position] = next[right];
    if (next[right] != kNone) previous[next[right]] = position;
    if (previous[position] != kNone) push(previous[position]);
    if (next[position] != kNone) push(position);
  }
  for (uint32_t i = 0; i != kNone; i = next[i]) out->Put(ids[i]);
  return true;
}

}  // namespace arn

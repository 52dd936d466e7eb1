// The block: cells, words, tables and scratch of terms, and which terms there are.
#include "runtime/constrain/terms.h"

#include <cstring>
#include <new>

#include "platform/base/arith.h"

namespace arn {
namespace {

// New cells between looks at the cancel flag: a millisecond where each is an intersection.
constexpr uint32_t kCellsPerLook = 256;
// Counts new words that take as long as a cell.
constexpr uint32_t kWordsPerUnit = 4;

uint32_t Mix(uint32_t hash, uint32_t word) {
  hash = (hash ^ word) * 0x9E3779B1u;
  return hash ^ (hash >> 15);
}

}  // namespace

// Shares of `block`: at most 1/64 for the cache of derivatives, 1/16 for the buckets, 1/8 for
// scratch, and the rest for words and cells. A node takes 32 bytes, so a bucket holds at most two
// on average. The cache and the buckets grow with the number of nodes, so that few terms touch
// little memory.
Terms* Terms::Create(Span<std::byte> block) {
  if (block.size() < kMinBytes) return nullptr;
  const uint64_t bytes = Min<uint64_t>(block.size(), kMaxBytes) & ~uint64_t{63};
  uint64_t entries = 1;  // the largest power of two with entries * 8 <= bytes / 64
  while (entries * 2 * sizeof(CacheEntry) <= bytes / 64) entries *= 2;
  const uint64_t n_buckets = entries * 8;

  Terms* terms = new (block.data()) Terms;
  std::byte* at = block.data() + AlignUp(sizeof(Terms), 64);
  terms->block_bytes_ = bytes;
  terms->cache_ = reinterpret_cast<CacheEntry*>(at);
  terms->cache_mask_ = static_cast<uint32_t>(Min<uint64_t>(entries, kFirstBuckets / 2) - 1);
  terms->max_cache_mask_ = static_cast<uint32_t>(entries - 1);
  at += entries * sizeof(CacheEntry);
  terms->buckets_ = reinterpret_cast<uint32_t*>(at);
  terms->bucket_mask_ = static_cast<uint32_t>(Min<uint64_t>(n_buckets, kFirstBuckets) - 1);
  terms->max_bucket_mask_ = static_cast<uint32_t>(n_buckets - 1);
  at += n_buckets * sizeof(uint32_t);
  terms->scratch_ = reinterpret_cast<uint32_t*>(at);
  terms->scratch_size_ = static_cast<uint32_t>(bytes / 8 / sizeof(uint32_t));
  at += terms->scratch_size_ * sizeof(uint32_t);
  terms->words_ = reinterpret_cast<uint32_t*>(at);
  terms->cells_end_ = reinterpret_cast<Cell*>(block.data() + bytes);
  terms->ClearTables();

  terms->n_cells_ = terms->n_nodes_ = 2;
  terms->node(kNothing) = Node();
  terms->node(kNothing).kind = kNothingKind;
  terms->node(kEmpty) = Node();
  terms->node(kEmpty).kind = kEmptyKind;
  terms->node(kEmpty).flags = kNullable | kProductive;
  terms->no_bytes_ = terms->Intern(kBytes, 0, 0, 0, {ByteSet().words, ByteSet::kWords});
  terms->any_bytes_ = terms->Repeat(terms->Bytes(ByteSet::All()), 0, kUnbounded);
  return terms;
}

uint64_t Terms::used_bytes() const {
  return AlignUp(sizeof(Terms), 64) + (uint64_t{cache_mask_} + 1) * sizeof(CacheEntry) +
         (uint64_t{bucket_mask_} + 1 + scratch_peak_ + n_words_) * sizeof(uint32_t) +
         uint64_t{n_cells_ - n_free_} * sizeof(Cell);
}

uint64_t Terms::free_bytes() const {
  const auto* words_end = reinterpret_cast<const std::byte*>(words_ + n_words_);
  const auto* lowest = reinterpret_cast<const std::byte*>(cells_end_ - n_cells_);
  return static_cast<uint64_t>(lowest - words_end) + uint64_t{n_free_} * sizeof(Cell);
}

Status TermFailureStatus(TermFailure failure) {
  if (failure == TermFailure::kCancelled) return Status::kCancelled;
  return failure == TermFailure::kBlockFull ? Status::kOutOfMemory : Status::kUnsupported;
}

const char* TermFailureText(TermFailure failure) {
  switch (failure) {
    case TermFailure::kNone: break;
    case TermFailure::kBlockFull: return "needs more memory than it was given";
    case TermFailure::kTooDeep: return "is nested too deep";
    case TermFailure::kUndecided: return "has an intersection or complement that is too large";
    case TermFailure::kTooMany: return "has too large a count";
    case TermFailure::kCancelled: return "was cancelled";
    case TermFailure::kPutOff: return "was put off";
  }
  return "is fine";
}

void Terms::GoOn() {
  failure_ = TermFailure::kNone;
  looping_rule_ = kNothing;
  scratch_used_ = 0;
}

uint32_t Terms::NewCell() {
  if (work_left_ == 0) {
    Fail(TermFailure::kPutOff);
    return 0;
  }
  Spend(1);
  if (free_cell_ != 0) {
    const uint32_t cell = free_cell_;
    free_cell_ = node(cell).chain;
    --n_free_;
    return cell;
  }
  const auto* words_end = reinterpret_cast<const std::byte*>(words_ + n_words_);
  const auto* lowest = reinterpret_cast<const std::byte*>(cells_end_ - n_cells_);
  if (n_cells_ == kMaxCells || lowest - words_end < static_cast<ptrdiff_t>(sizeof(Cell))) {
    Fail(TermFailure::kBlockFull);
    return 0;
  }
  if (n_cells_ % kCellsPerLook == 0 && cancel_ != nullptr &&
      cancel_->load(std::memory_order_relaxed) != 0) {
    Fail(TermFailure::kCancelled);
    return 0;
  }
  return n_cells_++;
}

// Returns the index of the first of `count` words, or 0. The word before them is their owner.
uint32_t Terms::NewWords(uint32_t count, Term owner) {
  const auto* words_end = reinterpret_cast<const std::byte*>(words_ + n_words_);
  const auto* lowest = reinterpret_cast<const std::byte*>(cells_end_ - n_cells_);
  const uint64_t bytes = (uint64_t{count} + 1) * sizeof(uint32_t);
  if (static_cast<uint64_t>(lowest - words_end) < bytes) {
    Fail(TermFailure::kBlockFull);
    return 0;
  }
  Spend(count / kWordsPerUnit);
  words_[n_words_] = owner;
  const uint32_t first = n_words_ + 1;
  n_words_ += count + 1;
  return first;
}

void Terms::ClearTables() {
  std::memset(buckets_, 0, (uint64_t{bucket_mask_} + 1) * sizeof(uint32_t));
  std::memset(cache_, 0, (uint64_t{cache_mask_} + 1) * sizeof(CacheEntry));
}

void Terms::AddToBucket(Term t) {
  uint32_t* bucket = &buckets_[node(t).hash & bucket_mask_];
  node(t).chain = *bucket;
  *bucket = t;
}

void Terms::GrowTables() {
  bucket_mask_ = Min(bucket_mask_ * 4 + 3, max_bucket_mask_);
  cache_mask_ = Min(cache_mask_ * 4 + 3, max_cache_mask_);
  ClearTables();
  for (Term t = kEmpty + 1; t < n_cells_; ++t) {
    if (node(t).kind > kEdgeList && node(t).kind != kRule) AddToBucket(t);
  }
}

bool Terms::Push(uint32_t word) {
  if (scratch_used_ == scratch_size_) {
    Fail(TermFailure::kBlockFull);
    return false;
  }
  scratch_[scratch_used_++] = word;
  scratch_peak_ = Max(scratch_peak_, scratch_used_);
  return true;
}

uint32_t Terms::PayloadWords(const Node& n) {
  switch (n.kind) {
    case kBytes: return ByteSet::kWords;
    case kEither:
    case kBoth: return n.b;
    case kRule: return sizeof(StringView) / sizeof(uint32_t);
    case kCustom: return (n.b & 0xFFFF) + (n.b >> 16);
    case kFree:
    case kEdgeList:
    case kNothingKind:
    case kEmptyKind:
    case kConcat:
    case kRepeat:
    case kComplement: return 0;
  }
  return 0;
}

// Computes from its parts if a term is nullable, productive and regular.
uint8_t Terms::FlagsOf(const Node& n) const {
  const auto flags = [this](Term t) { return node(t).flags; };
  const auto either = [](bool nullable, bool productive, uint8_t rules) {
    return static_cast<uint8_t>((nullable ? kNullable : 0) | (productive ? kProductive : 0) |
                                (rules & kHasRule));
  };
  switch (n.kind) {
    case kEmptyKind: return kNullable | kProductive;
    case kBytes: return kProductive;
    case kConcat: {
      const uint8_t a = flags(n.a), b = flags(n.b);
      return either((a & b & kNullable) != 0, (a & b & kProductive) != 0, a | b);
    }
    case kEither: {
      uint8_t any = 0;
      for (const Term t : args(n)) any |= flags(t);
      return any & (kNullable | kProductive | kHasRule);
    }
    case kRepeat: {
      const uint8_t a = flags(n.a);
      return either(n.b == 0 || (a & kNullable) != 0, n.b == 0 || (a & kProductive) != 0, a);
    }
    case kBoth: {
      uint8_t all = kNullable;
      for (const Term t : args(n)) all &= flags(t);
      return either(all != 0, true, 0);
    }
    case kComplement: return either((flags(n.a) & kNullable) == 0, true, 0);
    case kRule:
      return either((flags(n.a) & kNullable) != 0, (flags(n.a) & kProductive) != 0, kHasRule);
    case kCustom: {
      const CustomOps& ops = *ops_[n.c];
      const CustomArgs a = custom_args(n);
      return either(ops.is_nullable(*this, a),
                    ops.is_productive == nullptr || ops.is_productive(*this, a), kHasRule);
    }
    case kFree:
    case kEdgeList:
    case kNothingKind: break;
  }
  return 0;
}

// Returns the term with these parts, which it makes if there is none yet. `payload` are its words;
// then `a` is not used.
Term Terms::Intern(Kind kind, uint32_t a, uint32_t b, uint32_t c, Span<const uint32_t> payload) {
  if (failed()) return kNothing;
  uint32_t hash = Mix(Mix(Mix(kind, a), b), c);
  for (const uint32_t word : payload) hash = Mix(hash, word);
  for (Term t = buckets_[hash & bucket_mask_]; t != 0; t = node(t).chain) {
    const Node& n = node(t);
    if (n.hash != hash || n.kind != kind || n.b != b) continue;
    if (n.c != c && (kind == kRepeat || kind == kCustom)) continue;
    if (payload.empty()
            ? n.a == a
            : std::memcmp(words_ + n.a, payload.data(), payload.size() * sizeof(uint32_t)) == 0) {
      return t;
    }
  }
  const Term t = NewCell();
  if (t == 0) return kNothing;
  Node& n = node(t);
  n = Node();
  n.kind = kFree;  // until it is whole
  if (!payload.empty()) {
    a = NewWords(static_cast<uint32_t>(payload.size()), t);
    if (a == 0) {
      n.chain = free_cell_;
      free_cell_ = t;
      ++n_free_;
      return kNothing;
    }
    std::memcpy(words_ + a, payload.data(), payload.size() * sizeof(uint32_t));
  }
  n.kind = kind;
  n.hash = hash;
  n.a = a;
  n.b = b;
  n.c = c;
  n.flags = FlagsOf(n);
  AddToBucket(t);
  if (++n_nodes_ > 2 * bucket_mask_ && bucket_mask_ != max_bucket_mask_) GrowTables();
  return t;
}

}  // namespace arn

#include "runtime/text/vocab.h"

#include <cinttypes>

#include "platform/base/arith.h"
#include "platform/base/result.h"
#include "runtime/bundle/bundle_generated.h"
#include "runtime/text/segments.h"

namespace arn {
namespace {

// Counts used slots and the longest run of them, which may wrap around the table's end.
class SlotCounter {
 public:
  explicit SlotCounter(uint32_t mask) : n_slots_(uint64_t{mask} + 1) {}
  void Add(bool is_used) {
    n_used_ += is_used ? 1 : 0;
    run_ = is_used ? run_ + 1 : 0;
    longest_ = Max(longest_, run_);
    if (!is_used && !has_empty_) {
      has_empty_ = true;
      first_run_ = n_used_;
    }
  }
  // *longest_run: maximum slots that a lookup probes, including the empty one after a run.
  Status Finish(const char* name, uint32_t* longest_run, Diag* diag) const {
    if (n_used_ > n_slots_ * 3 / 4) {
      return diag->Fail(Status::kBadBundle,
                        "tokenizer.%s has %" PRIu64 " of %" PRIu64
                        " slots in use, expected at most 3/4",
                        name, n_used_, n_slots_);
    }
    const uint64_t longest = Max(longest_, run_ + first_run_);
    if (longest > kMaxSlotRun) {
      return diag->Fail(Status::kBadBundle,
                        "tokenizer.%s has %" PRIu64 " used slots in a row, expected at most %u",
                        name, longest, kMaxSlotRun);
    }
    *longest_run = static_cast<uint32_t>(longest) + 1;
    return Status::kOk;
  }

 private:
  const uint64_t n_slots_;
  uint64_t n_used_ = 0;
  uint64_t run_ = 0;
  uint64_t longest_ = 0;
  uint64_t first_run_ = 0;
  bool has_empty_ = false;
};

}  // namespace

Status Vocab::Init(const fbs::Tokenizer& table, Span<const std::byte> segments, Diag* diag) {
  n_tokens_ = table.n_tokens();
  if (n_tokens_ == 0 || n_tokens_ > kMaxTokens) {
    return diag->Fail(Status::kBadBundle, "tokenizer.n_tokens is %u, expected 1..%u", n_tokens_,
                      kMaxTokens);
  }
  Span<const std::byte> bytes, offsets, slots;
  ARN_TRY(SegmentBytes(table.token_bytes(), segments, "token_bytes", &bytes, diag));
  ARN_TRY(SegmentBytes(table.token_offsets(), segments, "token_offsets", &offsets, diag));
  ARN_TRY(SegmentBytes(table.token_table(), segments, "token_table", &slots, diag));
  if (offsets.size() != (uint64_t{n_tokens_} + 1) * sizeof(uint32_t)) {
    return diag->Fail(Status::kBadBundle,
                      "tokenizer.token_offsets has %zu bytes, expected %" PRIu64 " for %u tokens",
                      offsets.size(), (uint64_t{n_tokens_} + 1) * sizeof(uint32_t), n_tokens_);
  }
  bytes_ = reinterpret_cast<const char*>(bytes.data());
  offsets_ = reinterpret_cast<const uint32_t*>(offsets.data());
  slots_ = reinterpret_cast<const TokenSlot*>(slots.data());
  max_token_bytes_ = 0;
  for (uint32_t i = 0; i < n_tokens_; ++i) {
    if (offsets_[i + 1] < offsets_[i] || offsets_[i + 1] > bytes.size()) {
      return diag->Fail(Status::kBadBundle,
                        "tokenizer.token_offsets: token %u lies at %u..%u of %zu bytes", i,
                        offsets_[i], offsets_[i + 1], bytes.size());
    }
    max_token_bytes_ = Max(max_token_bytes_, offsets_[i + 1] - offsets_[i]);
  }
  ARN_TRY(SlotMask(slots.size(), sizeof(TokenSlot), "token_table", &mask_, diag));
  SlotCounter counter(mask_);
  for (uint32_t i = 0; i <= mask_; ++i) {
    const bool is_empty = slots_[i].id == kEmptySlot;
    if (!is_empty && (slots_[i].id & ~kWholeToken) >= n_tokens_) {
      return diag->Fail(Status::kBadBundle, "tokenizer.token_table: slot %u names token %u of %u",
                        i, slots_[i].id & ~kWholeToken, n_tokens_);
    }
    counter.Add(!is_empty);
  }
  return counter.Finish("token_table", &longest_run_, diag);
}

Status MergeTable::Init(const fbs::Tokenizer& table, Span<const std::byte> segments, Diag* diag) {
  Span<const std::byte> bytes;
  ARN_TRY(SegmentBytes(table.merge_table(), segments, "merge_table", &bytes, diag));
  if (bytes.size() < kBoundaryBytes) {
    return diag->Fail(Status::kBadBundle, "tokenizer.merge_table has %zu bytes, expected %u more",
                      bytes.size(), kBoundaryBytes);
  }
  boundary_ = reinterpret_cast<const uint8_t*>(bytes.data());
  slots_ = reinterpret_cast<const MergeSlot*>(bytes.data() + kBoundaryBytes);
  ARN_TRY(SlotMask(bytes.size() - kBoundaryBytes, sizeof(MergeSlot), "merge_table", &mask_, diag));
  const uint32_t n_tokens = table.n_tokens();
  SlotCounter counter(mask_);
  for (uint32_t i = 0; i <= mask_; ++i) {
    const MergeSlot& slot = slots_[i];
    const bool is_empty = slot.left == kEmptySlot;
    counter.Add(!is_empty);
    if (is_empty) continue;
    if (slot.left >= n_tokens || slot.right >= n_tokens || slot.id >= n_tokens ||
        slot.rank == kNoRank) {
      return diag->Fail(Status::kBadBundle,
                        "tokenizer.merge_table: slot %u merges %u and %u into %u (rank %u) of %u "
                        "tokens",
                        i, slot.left, slot.right, slot.id, slot.rank, n_tokens);
    }
  }
  return counter.Finish("merge_table", &longest_run_, diag);
}

}  // namespace arn

#include "runtime/state/state_format.h"

#include "platform/base/arith.h"
#include "platform/base/hash.h"

namespace arn {
namespace {

constexpr uint64_t kMaxStateBytes = uint64_t{1} << 62;

// Appends count * element_bytes at *end, aligned to `align`.
Status Place(uint64_t count, uint64_t element_bytes, uint64_t align, uint64_t* end,
             StateSection* out) {
  uint64_t bytes = 0, after = 0;
  const uint64_t offset = AlignUp(*end, align);
  if (!CheckedMul(count, element_bytes, &bytes) || !CheckedAdd(offset, bytes, &after) ||
      after > kMaxStateBytes) {
    return Status::kOutOfMemory;
  }
  *out = {offset, bytes, 0};
  *end = after;
  return Status::kOk;
}

}  // namespace

uint64_t IndexRecordBytes(uint32_t version, uint32_t n_groups, uint32_t n_sequences) {
  return n_groups * sizeof(StateGroup) + n_sequences * SequenceRecordBytes(version) +
         uint64_t{n_sequences} * n_groups * sizeof(StateTable);
}

Status PlanState(const StateCounts& counts, StateLayout* out) {
  *out = StateLayout();
  const uint64_t records = IndexRecordBytes(counts.version, counts.n_groups, counts.n_sequences);
  uint64_t words = 0, entries = 0;
  if (!CheckedAdd(counts.n_entries, counts.n_field_words, &words) ||
      !CheckedMul(words, sizeof(uint32_t), &entries) || entries > kMaxStateBytes - records) {
    return Status::kOutOfMemory;
  }
  uint64_t end = sizeof(StateHeader);
  ARN_TRY(Place(records + entries, 1, kStateSectionAlign, &end, &out->index));
  uint64_t tokens = 0;
  if (!CheckedMul(counts.n_tokens, sizeof(int32_t), &tokens) ||
      !CheckedAdd(tokens, counts.embedding_bytes, &tokens)) {
    return Status::kOutOfMemory;
  }
  ARN_TRY(Place(tokens, 1, kStateSectionAlign, &end, &out->tokens));
  uint64_t logits = 0;
  if (!CheckedMul(counts.n_logits, counts.vocab, &logits)) return Status::kOutOfMemory;
  ARN_TRY(Place(logits, sizeof(float), kStateSectionAlign, &end, &out->logits));
  for (uint32_t g = 0; g < counts.n_groups; ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      // An empty section needs no alignment.
      const uint32_t n = counts.n_pages[g][kind];
      const uint64_t align = n == 0 ? 1 : kStatePageAlign;
      ARN_TRY(Place(n, counts.page_bytes[g][kind], align, &end, &out->pages[g][kind]));
    }
  }
  out->file_bytes = end;
  return Status::kOk;
}

uint64_t GeometryHash(const SessionPlan& plan) {
  Xxh64Stream hash;
  const auto add = [&hash](uint32_t value) { hash.Update(&value, sizeof value); };
  add(static_cast<uint32_t>(plan.options.k_type));
  add(static_cast<uint32_t>(plan.options.v_type));
  add(plan.options.kv_page_tokens);
  add(plan.options.kv_group_size);
  add(plan.long_ropes);
  if (const RopeScaling& scaling = plan.options.rope_scaling; scaling.exists()) {
    add(static_cast<uint32_t>(scaling.type));
    hash.Update(&scaling.factor, sizeof scaling.factor);
  }
  if (plan.options.k_by_token || plan.options.v_by_channel) {
    add(plan.options.k_by_token ? 1 : 0);
    add(plan.options.v_by_channel ? 1 : 0);
  }
  add(plan.cache.n_groups);
  for (uint32_t g = 0; g < plan.cache.n_groups; ++g) {
    const KvGroup& group = plan.kv_groups[g];
    add(group.n_layers);
    add(group.n_kv_heads);
    add(group.head_dim);
    add(plan.cache.groups[g].window);
    add(plan.cache.groups[g].chunk);
    if (group.state_floats != 0) add(group.state_floats);
    if (group.is_encoder && plan.options.has_encoder_type) {
      add(static_cast<uint32_t>(plan.options.encoder_type));
    }
  }
  return hash.Digest();
}

}  // namespace arn

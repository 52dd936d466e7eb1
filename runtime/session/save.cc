// Session::Save: writes the sequences in the layout of docs/state-format.md.
#include <cstddef>
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/session/session.h"

namespace arn {
namespace {

StateSequence RecordOf(const Sampler& sampler, uint32_t n_tokens, bool has_logits) {
  const SamplingOptions& options = sampler.options();
  StateSequence out = {};
  out.n_tokens = n_tokens;
  out.has_logits = has_logits ? 1 : 0;
  out.temperature = options.temperature;
  out.top_k = options.top_k;
  out.top_p = options.top_p;
  out.min_p = options.min_p;
  out.seed = options.seed;
  out.random_state = sampler.random_state();
  return out;
}

// True if the sampler equals a new session's.
bool IsNew(const Sampler& sampler) {
  Sampler other;
  other.Configure(SamplingOptions());
  const StateSequence a = RecordOf(sampler, 0, false), b = RecordOf(other, 0, false);
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

Status Session::CheckHasState(const char* done) const {
  if (plan_.options.no_cache) {
    return diag_.Fail(Status::kUnsupported, "a session without a cache cannot be %s", done);
  }
  if (model_.spec.encoder.exists()) {
    return diag_.Fail(Status::kUnsupported, "a session of a model with a source cannot be %s",
                      done);
  }
  return Status::kOk;
}

uint32_t Session::SequencesToSave() const {
  auto n = static_cast<uint32_t>(sequences_.size());
  while (n > selected_ + 1 && cache_.length(n - 1) == 0 && IsNew(sequences_[n - 1].sampler)) --n;
  return n;
}

void Session::CountState(StateCounts* out) const {
  *out = StateCounts();
  out->n_groups = cache_.n_groups();
  out->n_sequences = SequencesToSave();
  out->vocab = plan_.program.vocab;
  for (uint32_t s = 0; s < out->n_sequences; ++s) {
    out->n_tokens += cache_.length(s);
    out->n_logits += sequences_[s].has_logits ? 1 : 0;
    for (uint32_t g = 0; g < out->n_groups; ++g) out->n_entries += cache_.SeenTable(s, g).n_pages;
  }
  for (uint32_t g = 0; g < out->n_groups; ++g) {
    cache_.NumberPages(g, out->n_sequences, out->n_pages[g]);
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      out->page_bytes[g][kind] = plan_.kv_groups[g].pages(kind).page_bytes;
    }
  }
}

Status Session::SaveBytes(uint64_t* out_bytes) const {
  *out_bytes = 0;
  ARN_TRY(CheckHasState("saved"));
  StateCounts counts;
  CountState(&counts);
  StateLayout layout;
  ARN_TRY(PlanState(counts, &layout));
  *out_bytes = layout.file_bytes;
  return Status::kOk;
}

Status Session::SaveIndex(const StateCounts& counts, StateGroup* groups,
                          StateWriter* writer) const {
  ARN_TRY(writer->Append(groups, counts.n_groups * sizeof *groups));
  for (uint32_t s = 0; s < counts.n_sequences; ++s) {
    const Sequence& sequence = sequences_[s];
    const StateSequence record = RecordOf(sequence.sampler, cache_.length(s), sequence.has_logits);
    ARN_TRY(writer->Append(&record, sizeof record));
  }
  for (uint32_t s = 0; s < counts.n_sequences; ++s) {
    for (uint32_t g = 0; g < counts.n_groups; ++g) {
      const PageTable table = cache_.SeenTable(s, g);
      const StateTable record = {table.first_page, table.n_pages};
      ARN_TRY(writer->Append(&record, sizeof record));
    }
  }
  for (uint32_t s = 0; s < counts.n_sequences; ++s) {
    for (uint32_t g = 0; g < counts.n_groups; ++g) {
      const PageTable table = cache_.SeenTable(s, g);
      for (uint32_t i = 0; i < table.n_pages; ++i) {
        const uint32_t number = cache_.NumberOf(g, table.pages[i]);
        ARN_TRY(writer->Append(&number, sizeof number));
      }
    }
  }
  return Status::kOk;
}

Status Session::SavePages(const StateCounts& counts, uint32_t g, uint32_t kind,
                          StateWriter* writer) const {
  const KvPages& pages = plan_.kv_groups[g].pages(kind);
  uint32_t next = 0;
  for (uint32_t s = 0; s < counts.n_sequences; ++s) {
    const PageTable table = cache_.SeenTable(s, g);
    for (uint32_t i = 0; i < table.n_pages; ++i) {
      const uint32_t page = table.pages[i];
      if (KindOfPage(page) != kind) continue;
      const uint32_t index = page & ~kQuantisedPage;
      // already written for an earlier table
      if ((cache_.NumberOf(g, page) & ~kQuantisedPage) != next) continue;
      ++next;
      kv_pager_.AskForPage(g, page);
      for (uint32_t piece = 0; piece < pages.n_pieces(); ++piece) {
        Slice from = pages.Piece(index, piece);
        for (uint64_t left = from.bytes; left > 0; left -= from.bytes) {
          const Span<std::byte> room =
              writer->Room(static_cast<size_t>(Min<uint64_t>(left, SIZE_MAX)));
          from.bytes = room.size();
          ARN_TRY(in_use_->backend->kv_read(in_use_->state, from, room));
          ARN_TRY(writer->Filled(room.size()));
          from.offset += from.bytes;
        }
      }
    }
  }
  return next == counts.n_pages[g][kind] ? Status::kOk : Status::kInternal;
}

Status Session::Save(const StateSink& sink) {
  ARN_TRY(CheckHasState("saved"));
  ARN_TRY(RunEdits());
  if (At(selected_).has_logits) ARN_TRY(FetchLogits());
  const Status status = TrySave(sink);
  if (!CanFallBack(status)) return status;
  ARN_TRY(FallBack(status));
  return diag_.Fail(Status::kDeviceLost, "%s, while the state was saved", fallback_reason_.text());
}

Status Session::TrySave(const StateSink& sink) {
  StateCounts counts;
  CountState(&counts);
  StateLayout layout;
  ARN_TRY(PlanState(counts, &layout));
  StateHeader header = {};
  std::memcpy(header.magic, kStateMagic, sizeof header.magic);
  header.version = kStateVersion;
  header.header_bytes = sizeof header;
  header.file_bytes = layout.file_bytes;
  header.model_hash = model_.state_hash;
  header.geometry_hash = GeometryHash(plan_);
  header.n_groups = counts.n_groups;
  header.n_sequences = counts.n_sequences;
  header.selected = selected_;
  header.k_type = static_cast<uint32_t>(plan_.options.k_type);
  header.v_type = static_cast<uint32_t>(plan_.options.v_type);
  header.page_tokens = plan_.options.kv_page_tokens;
  header.group_size = plan_.options.kv_group_size;
  header.vocab = counts.vocab;
  header.index = layout.index;
  header.tokens = layout.tokens;
  header.logits = layout.logits;

  // Pages first, because the index holds their hashes; the header last, because it holds all
  // hashes.
  StateGroup groups[kMaxKvGroups] = {};
  uint64_t end = layout.logits.offset + layout.logits.bytes;
  for (uint32_t g = 0; g < counts.n_groups; ++g) {
    const KvGroup& group = plan_.kv_groups[g];
    const CacheGroup& sees = plan_.cache.groups[g];
    groups[g] = {group.n_layers,
                 group.n_kv_heads,
                 group.head_dim,
                 sees.window,
                 sees.chunk,
                 group.state_floats,
                 {}};
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      const StateSection& section = layout.pages[g][kind];
      StateWriter writer(sink, end, &diag_);
      ARN_TRY(writer.Begin(section.offset));
      ARN_TRY(SavePages(counts, g, kind, &writer));
      groups[g].pages[kind] = {counts.n_pages[g][kind], counts.page_bytes[g][kind], section.offset,
                               writer.Digest()};
      ARN_TRY(writer.Flush());
      end = section.offset + section.bytes;
    }
  }
  StateWriter writer(sink, sizeof header, &diag_);
  ARN_TRY(writer.Begin(layout.index.offset));
  ARN_TRY(SaveIndex(counts, groups, &writer));
  header.index.hash = writer.Digest();
  ARN_TRY(writer.Begin(layout.tokens.offset));
  for (uint32_t s = 0; s < counts.n_sequences; ++s) {
    ARN_TRY(writer.Append(History(s), cache_.length(s) * sizeof(int32_t)));
  }
  header.tokens.hash = writer.Digest();
  ARN_TRY(writer.Begin(layout.logits.offset));
  for (uint32_t s = 0; s < counts.n_sequences; ++s) {
    if (!sequences_[s].has_logits) continue;
    ARN_TRY(writer.Append(LogitsOf(s), uint64_t{counts.vocab} * sizeof(float)));
  }
  header.logits.hash = writer.Digest();
  ARN_TRY(writer.Flush());
  header.header_hash = Xxh64(&header, offsetof(StateHeader, header_hash));
  return sink.write(sink.user, 0, {reinterpret_cast<const std::byte*>(&header), sizeof header},
                    &diag_);
}

}  // namespace arn

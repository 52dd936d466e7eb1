// Save: writes the sequences in the layout of docs/state-format.md.
#include <cstddef>
#include <cstring>

#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "runtime/session/saved_pages.h"
#include "runtime/session/saving.h"
#include "runtime/state/state_fields.h"

namespace arn {
namespace {

SavedSampling SamplingOf(const SavingView& view, uint32_t s) {
  const Sequence& sequence = view.sequences.At(s);
  return {sequence.sampler.options(), sequence.sampler.state(),     sequence.n_generated,
          view.constrainer.ToSave(s), view.sequences.AdaptersOf(s), {}};
}

// True if the sampler equals a new session's.
bool IsNew(const Sampler& sampler) {
  Sampler other;
  other.Configure(SamplingOptions());
  for (const SamplingOption& option : SamplingOptionTable()) {
    if (!option.IsOff(sampler.options())) return false;
  }
  return sampler.state() == other.state();
}

// Number of sequences that a saved state holds: up to the last one that differs from a new
// session's.
uint32_t SequencesToSave(const SavingView& view) {
  const KvCache& cache = view.cache();
  uint32_t n = view.sequences.size();
  while (n > view.sequences.selected() + 1 && cache.length(n - 1) == 0 &&
         cache.encoder_rows(n - 1) == 0 && IsNew(view.sequences.At(n - 1).sampler) &&
         !view.constrainer.Has(n - 1)) {
    --n;
  }
  return n;
}

// The sequences that a state holds: all from `first` to before `end`.
struct SavedPart {
  uint32_t first, end;
  uint32_t selected;  // of them
  bool has_embeddings;
};

SavedPart AllOf(const SavingView& view) {
  return {0, SequencesToSave(view), view.sequences.selected(), true};
}
SavedPart OneOf(uint32_t sequence) { return {sequence, sequence + 1, sequence, false}; }

void CountState(const SavingView& view, const SavedPart& part, StateCounts* out) {
  *out = StateCounts();
  out->n_groups = view.cache().n_groups();
  out->n_sequences = part.end - part.first;
  out->vocab = view.core.plan.program.vocab;
  for (uint32_t s = part.first; s < part.end; ++s) {
    out->n_tokens += view.cache().length(s);
    out->n_field_words += CountFieldWords(SamplingOf(view, s), s);
    out->n_logits += view.logits().Has(s) ? 1 : 0;
    for (uint32_t g = 0; g < out->n_groups; ++g) {
      out->n_entries += view.cache().SeenTable(s, g).n_pages;
    }
  }
  if (part.has_embeddings) {
    out->embedding_bytes = uint64_t{view.sequences.MarkEmbeddings()} *
                           EmbeddingFloats(view.core.model.spec) * sizeof(float);
  }
  for (uint32_t g = 0; g < out->n_groups; ++g) {
    view.cache().NumberPages(g, part.first, part.end, out->n_pages[g]);
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      out->page_bytes[g][kind] = view.core.plan.kv_groups[g].pages(kind).page_bytes;
    }
  }
}

Status SaveIndex(const SavingView& view, const SavedPart& part, const StateCounts& counts,
                 StateGroup* groups, StateWriter* writer) {
  ARN_TRY(writer->Append(groups, counts.n_groups * sizeof *groups));
  for (uint32_t s = part.first; s < part.end; ++s) {
    const StateSequence record = {view.cache().length(s), view.logits().Has(s) ? 1u : 0u,
                                  CountFieldWords(SamplingOf(view, s), s),
                                  view.cache().encoder_rows(s)};
    ARN_TRY(writer->Append(&record, sizeof record));
  }
  for (uint32_t s = part.first; s < part.end; ++s) {
    for (uint32_t g = 0; g < counts.n_groups; ++g) {
      const PageTable table = view.cache().SeenTable(s, g);
      const StateTable record = {table.first_page, table.n_pages};
      ARN_TRY(writer->Append(&record, sizeof record));
    }
  }
  for (uint32_t s = part.first; s < part.end; ++s) {
    ARN_TRY(WriteFields(SamplingOf(view, s), s, writer));
  }
  for (uint32_t s = part.first; s < part.end; ++s) {
    for (uint32_t g = 0; g < counts.n_groups; ++g) {
      const PageTable table = view.cache().SeenTable(s, g);
      for (uint32_t i = 0; i < table.n_pages; ++i) {
        const uint32_t number = view.cache().NumberOf(g, table.pages[i]);
        ARN_TRY(writer->Append(&number, sizeof number));
      }
    }
  }
  return Status::kOk;
}

Status SavePages(const SavingView& view, const SavedPart& part, const StateCounts& counts,
                 uint32_t g, uint32_t kind, StateWriter* writer) {
  const KvPages& pages = view.core.plan.kv_groups[g].pages(kind);
  uint32_t next = 0;
  for (uint32_t s = part.first; s < part.end; ++s) {
    const PageTable table = view.cache().SeenTable(s, g);
    for (uint32_t i = 0; i < table.n_pages; ++i) {
      const uint32_t page = table.pages[i];
      if (KindOfPage(page) != kind) continue;
      const uint32_t index = page & ~kQuantisedPage;
      // already written for an earlier table
      if ((view.cache().NumberOf(g, page) & ~kQuantisedPage) != next) continue;
      ++next;
      view.runner.pager().AskForPage(g, page);
      for (uint32_t piece = 0; piece < pages.n_pieces(); ++piece) {
        Slice from = pages.Piece(index, piece);
        for (uint64_t left = from.bytes; left > 0; left -= from.bytes) {
          const Span<std::byte> room =
              writer->Room(static_cast<size_t>(Min<uint64_t>(left, SIZE_MAX)));
          from.bytes = room.size();
          ARN_TRY(view.executor.ReadKv(from, room));
          ARN_TRY(writer->Filled(room.size()));
          from.offset += from.bytes;
        }
      }
    }
  }
  return next == counts.n_pages[g][kind] ? Status::kOk : Status::kInternal;
}

Status SaveEmbeddings(const SavingView& view, StateWriter* writer) {
  const ModelSpec& spec = view.core.model.spec;
  const uint32_t n = view.sequences.MarkEmbeddings();
  const size_t vector = VectorFloats(spec);
  for (uint32_t i = 0; i < n; ++i) {
    if (!view.sequences.IsMarked(i)) {
      ARN_TRY(writer->AppendZeros(uint64_t{EmbeddingFloats(spec)} * sizeof(float)));
      continue;
    }
    ARN_TRY(
        writer->Append(view.sequences.Embeddings().data() + i * vector, vector * sizeof(float)));
    if (!spec.vision.has_mrope) continue;
    float place[kPlaceFloats];
    WritePlace(view.sequences.PlaceOf(i), place);
    ARN_TRY(writer->Append(place, sizeof place));
  }
  return Status::kOk;
}

Status TrySave(const SavingView& view, const SavedPart& part, const StateSink& sink) {
  StateCounts counts;
  CountState(view, part, &counts);
  StateLayout layout;
  ARN_TRY(PlanState(counts, &layout));
  StateHeader header = {};
  std::memcpy(header.magic, kStateMagic, sizeof header.magic);
  header.version = counts.embedding_bytes == 0 ? kTextStateVersion : kStateVersion;
  header.header_bytes = sizeof header;
  header.file_bytes = layout.file_bytes;
  header.model_hash = view.core.model.state_hash;
  header.geometry_hash = GeometryHash(view.core.plan);
  header.n_groups = counts.n_groups;
  header.n_sequences = counts.n_sequences;
  header.selected = part.selected - part.first;
  header.k_type = static_cast<uint32_t>(view.core.plan.options.k_type);
  header.v_type = static_cast<uint32_t>(view.core.plan.options.v_type);
  header.page_tokens = view.core.plan.options.kv_page_tokens;
  header.group_size = view.core.plan.options.kv_group_size;
  header.vocab = counts.vocab;
  header.index = layout.index;
  header.tokens = layout.tokens;
  header.logits = layout.logits;

  // Pages first, because the index holds their hashes; the header last, because it holds all
  // hashes.
  StateGroup groups[kMaxKvGroups] = {};
  uint64_t end = layout.logits.offset + layout.logits.bytes;
  for (uint32_t g = 0; g < counts.n_groups; ++g) {
    const KvGroup& group = view.core.plan.kv_groups[g];
    const CacheGroup& sees = view.core.plan.cache.groups[g];
    groups[g] = {group.n_layers,
                 group.n_kv_heads,
                 group.head_dim,
                 sees.window,
                 sees.chunk,
                 group.state_floats,
                 {}};
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      const StateSection& section = layout.pages[g][kind];
      StateWriter writer(sink, end, &view.core.diag);
      ARN_TRY(writer.Begin(section.offset));
      ARN_TRY(SavePages(view, part, counts, g, kind, &writer));
      groups[g].pages[kind] = {counts.n_pages[g][kind], counts.page_bytes[g][kind], section.offset,
                               writer.Digest()};
      ARN_TRY(writer.Flush());
      end = section.offset + section.bytes;
    }
  }
  StateWriter writer(sink, sizeof header, &view.core.diag);
  ARN_TRY(writer.Begin(layout.index.offset));
  ARN_TRY(SaveIndex(view, part, counts, groups, &writer));
  header.index.hash = writer.Digest();
  ARN_TRY(writer.Begin(layout.tokens.offset));
  for (uint32_t s = part.first; s < part.end; ++s) {
    ARN_TRY(writer.Append(view.sequences.History(s), view.cache().length(s) * sizeof(int32_t)));
  }
  if (counts.embedding_bytes != 0) ARN_TRY(SaveEmbeddings(view, &writer));
  header.tokens.hash = writer.Digest();
  ARN_TRY(writer.Begin(layout.logits.offset));
  for (uint32_t s = part.first; s < part.end; ++s) {
    if (!view.logits().Has(s)) continue;
    ARN_TRY(writer.Append(view.sequences.LogitsOf(s), uint64_t{counts.vocab} * sizeof(float)));
  }
  header.logits.hash = writer.Digest();
  ARN_TRY(writer.Flush());
  header.header_hash = Xxh64(&header, offsetof(StateHeader, header_hash));
  return sink.write(sink.user, 0, {reinterpret_cast<const std::byte*>(&header), sizeof header},
                    &view.core.diag);
}

// A state has the pages of all its tokens; those that run have logits too.
Status RunAllPending(const SavingView& view) {
  for (uint32_t s = 0; s < view.sequences.size(); ++s) {
    const uint32_t n_pending = view.sequences.At(s).n_pending;
    if (n_pending != 0 && view.core.is_in_callback) {
      return view.core.diag.Fail(
          Status::kBadState,
          "sequence %u: the last %u tokens have to run again after a rewind, "
          "which a callback cannot do",
          s, n_pending);
    }
    if (n_pending != 0) ARN_TRY(view.runner.RunLastAgain(s));
  }
  return Status::kOk;
}

Status PlannedBytes(const SavingView& view, const SavedPart& part, uint64_t* out_bytes) {
  StateCounts counts;
  CountState(view, part, &counts);
  StateLayout layout;
  ARN_TRY(PlanState(counts, &layout));
  *out_bytes = layout.file_bytes;
  return Status::kOk;
}

Status CheckCanSaveAlone(const SavingView& view, uint32_t sequence) {
  ARN_TRY(CheckHasState(view, "saved"));
  Diag& diag = view.core.diag;
  const Sequences& sequences = view.sequences;
  if (sequences.At(sequence).n_pending != 0 || view.constrainer.Has(sequence)) {
    return diag.Fail(Status::kBadState, "sequence %u has tokens to run again, or a constraint",
                     sequence);
  }
  bool has_rows = false;
  for (const int32_t id : sequences.Ids(sequence)) has_rows |= id < 0;
  if (!has_rows && sequences.AdaptersOf(sequence).empty()) return Status::kOk;
  return diag.Fail(Status::kUnsupported, "sequence %u has %s: it is saved with the session only",
                   sequence, has_rows ? "embeddings" : "adapters");
}

}  // namespace

Status CheckHasState(const SavingView& view, const char* done) {
  if (view.core.plan.options.no_cache) {
    return view.core.diag.Fail(Status::kUnsupported, "a session without a cache cannot be %s",
                               done);
  }
  return Status::kOk;
}

Status SaveBytes(const SavingView& view, uint64_t* out_bytes) {
  *out_bytes = 0;
  ARN_TRY(CheckHasState(view, "saved"));
  ARN_TRY(RunAllPending(view));
  return PlannedBytes(view, AllOf(view), out_bytes);
}

Status Save(const SavingView& view, const StateSink& sink) {
  ARN_TRY(CheckHasState(view, "saved"));
  ARN_TRY(RunAllPending(view));
  ARN_TRY(view.runner.RunEdits());
  if (view.logits().Has(view.sequences.selected())) ARN_TRY(view.chooser.Fetch());
  const Status status = TrySave(view, AllOf(view), sink);
  if (!view.executor.CanFallBack(status)) return status;
  ARN_TRY(view.recompute.FallBack(status));
  return view.core.diag.Fail(Status::kDeviceLost, "%s, while the state was saved",
                             view.executor.fallback_reason());
}

Status SaveOneBytes(const SavingView& view, uint32_t sequence, uint64_t* out_bytes) {
  *out_bytes = 0;
  ARN_TRY(CheckCanSaveAlone(view, sequence));
  return PlannedBytes(view, OneOf(sequence), out_bytes);
}

Status SaveOne(const SavingView& view, uint32_t sequence, const StateSink& sink) {
  ARN_TRY(CheckCanSaveAlone(view, sequence));
  ARN_TRY(view.runner.RunEdits());
  // Needed for a single sequence only: the logits of several are on the host.
  if (view.sequences.size() == 1 && view.logits().Has(sequence)) ARN_TRY(view.chooser.Fetch());
  return TrySave(view, OneOf(sequence), sink);
}

}  // namespace arn

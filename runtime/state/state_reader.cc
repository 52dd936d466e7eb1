#include "runtime/state/state_reader.h"

#include <cinttypes>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "kernels/contract/kv_page.h"
#include "platform/base/arith.h"
#include "platform/base/hash.h"
#include "runtime/model/image_place.h"

namespace arn {
namespace {

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

Status CheckHash(Span<const std::byte> bytes, uint64_t expected, const char* what, Diag* diag) {
  const uint64_t hash = Xxh64(bytes.data(), bytes.size());
  if (hash == expected) return Status::kOk;
  return diag->Fail(Status::kHashMismatch,
                    "the saved %s are damaged: their hash is %016" PRIx64
                    ", the file says "
                    "%016" PRIx64,
                    what, hash, expected);
}

Status CheckHeader(Span<const std::byte> file, StateHeader* out, Diag* diag) {
  if (file.size() < sizeof *out) {
    return diag->Fail(Status::kBadSave, "the state has %zu bytes, its header alone has %zu",
                      file.size(), sizeof *out);
  }
  *out = Load<StateHeader>(file.data());
  if (std::memcmp(out->magic, kStateMagic, sizeof kStateMagic) != 0) {
    return diag->Fail(Status::kBadSave, "not a saved session: it does not begin with ARNSTATE");
  }
  if (out->version < kOldestStateVersion || out->version > kStateVersion) {
    return diag->Fail(Status::kBadSave, "state version %u, this library reads %u to %u",
                      out->version, kOldestStateVersion, kStateVersion);
  }
  const uint64_t hash = Xxh64(file.data(), offsetof(StateHeader, header_hash));
  if (hash != out->header_hash) {
    return diag->Fail(Status::kHashMismatch,
                      "the state's header is damaged: its hash is %016" PRIx64
                      ", the file says %016" PRIx64,
                      hash, out->header_hash);
  }
  if (out->header_bytes != sizeof *out) {
    return diag->Fail(Status::kBadSave, "header_bytes is %u, expected %zu", out->header_bytes,
                      sizeof *out);
  }
  if (out->file_bytes != file.size()) {
    return diag->Fail(Status::kBadSave, "the state has %zu bytes, its header says %" PRIu64,
                      file.size(), out->file_bytes);
  }
  return Status::kOk;
}

Status MismatchError(const char* what, uint64_t saved, uint64_t here, Diag* diag) {
  return diag->Fail(Status::kSaveMismatch, "%s: %" PRIu64 " was saved, this session has %" PRIu64,
                    what, saved, here);
}

Status CheckSameType(const char* what, uint32_t saved, KvType here, Diag* diag) {
  if (saved == static_cast<uint32_t>(here)) return Status::kOk;
  const char* name = saved < kKvTypeCount ? kKvTypes[saved].name : "unknown";
  return diag->Fail(Status::kSaveMismatch, "%s of KV type %s (%u) were saved, this session has %s",
                    what, name, saved, TraitsOf(here).name);
}

Status CheckSameModel(const StateHeader& header, const StateTarget& target, Diag* diag) {
  const SessionPlan& plan = *target.plan;
  if (header.model_hash != target.model_hash) {
    return diag->Fail(Status::kSaveMismatch,
                      "saved with another model: its index hash is %016" PRIx64
                      ", this model's is %016" PRIx64,
                      header.model_hash, target.model_hash);
  }
  ARN_TRY(CheckSameType("keys", header.k_type, plan.options.k_type, diag));
  ARN_TRY(CheckSameType("values", header.v_type, plan.options.v_type, diag));
  if (header.page_tokens != plan.options.kv_page_tokens) {
    return MismatchError("kv_page_tokens", header.page_tokens, plan.options.kv_page_tokens, diag);
  }
  if (header.group_size != plan.options.kv_group_size) {
    return MismatchError("kv_group_size", header.group_size, plan.options.kv_group_size, diag);
  }
  if (header.vocab != plan.program.vocab) {
    return MismatchError("vocabulary", header.vocab, plan.program.vocab, diag);
  }
  if (header.n_groups != plan.cache.n_groups) {
    return MismatchError("KV groups", header.n_groups, plan.cache.n_groups, diag);
  }
  const uint64_t geometry = GeometryHash(plan);
  if (header.geometry_hash != geometry) {
    return diag->Fail(Status::kSaveMismatch,
                      "saved with other KV shapes or RoPE frequencies: their hash is %016" PRIx64
                      ", this session's is %016" PRIx64,
                      header.geometry_hash, geometry);
  }
  return Status::kOk;
}

// Checks the position, size and hash of the index.
Status CheckIndex(Span<const std::byte> file, const StateHeader& header, const StateTarget& target,
                  Diag* diag) {
  const uint32_t capacity = target.plan->options.max_sequences;
  if (header.n_sequences > capacity) {
    return diag->Fail(Status::kContextFull, "%u sequences were saved, max_sequences is %u",
                      header.n_sequences, capacity);
  }
  if (header.selected >= header.n_sequences) {
    return diag->Fail(Status::kBadSave, "the selected sequence is %u of %u", header.selected,
                      header.n_sequences);
  }
  const uint64_t offset = AlignUp(sizeof(StateHeader), kStateSectionAlign);
  const uint64_t records = IndexRecordBytes(header.version, header.n_groups, header.n_sequences);
  if (header.index.offset != offset || header.index.bytes < records ||
      header.index.bytes % sizeof(uint32_t) != 0 || header.index.offset > file.size() ||
      header.index.bytes > file.size() - header.index.offset) {
    return diag->Fail(Status::kBadSave,
                      "the index has %" PRIu64 " bytes at %" PRIu64
                      " of %zu, its records take "
                      "%" PRIu64 " at %" PRIu64,
                      header.index.bytes, header.index.offset, file.size(), records, offset);
  }
  const Span<const std::byte> index = file.subspan(static_cast<size_t>(header.index.offset),
                                                   static_cast<size_t>(header.index.bytes));
  return CheckHash(index, header.index.hash, "tables", diag);
}

Status CheckPages(const StatePages& saved, uint32_t g, uint32_t kind, const KvPages& here,
                  bool is_encoder, Diag* diag) {
  const char* name = kind == 0 ? "active" : "quantised";
  if (saved.page_bytes != here.page_bytes) {
    return diag->Fail(Status::kSaveMismatch,
                      "KV group %u: %s pages of %" PRIu64
                      " bytes were saved, this session's have %" PRIu64 "%s",
                      g, name, saved.page_bytes, here.page_bytes,
                      is_encoder ? ": encoder_rows must be the same" : "");
  }
  if (saved.count > here.n_pages) {
    return diag->Fail(Status::kContextFull,
                      "KV group %u: %" PRIu64 " %s pages were saved, there are %u", g, saved.count,
                      name, here.n_pages);
  }
  return Status::kOk;
}

Status CheckGroups(const StateView& view, const SessionPlan& plan, StateCounts* counts,
                   Diag* diag) {
  for (uint32_t g = 0; g < counts->n_groups; ++g) {
    const StateGroup group = view.Group(g);
    const KvGroup& here = plan.kv_groups[g];
    const CacheGroup& cache = plan.cache.groups[g];
    if (group.n_layers != here.n_layers || group.n_kv_heads != here.n_kv_heads ||
        group.head_dim != here.head_dim || group.window != cache.window ||
        group.chunk != cache.chunk || group.state_floats != here.state_floats) {
      return diag->Fail(Status::kSaveMismatch,
                        "KV group %u: pages of %u layers, %u heads of %u, window %u, chunk %u, "
                        "state %u were saved, this session's have %u, %u of %u, %u, %u, %u",
                        g, group.n_layers, group.n_kv_heads, group.head_dim, group.window,
                        group.chunk, group.state_floats, here.n_layers, here.n_kv_heads,
                        here.head_dim, cache.window, cache.chunk, here.state_floats);
    }
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      const StatePages& pages = group.pages[kind];
      ARN_TRY(CheckPages(pages, g, kind, here.pages(kind), cache.is_encoder, diag));
      counts->n_pages[g][kind] = static_cast<uint32_t>(pages.count);
      counts->page_bytes[g][kind] = pages.page_bytes;
    }
  }
  return Status::kOk;
}

// *out: words of the sampling fields of all sequences.
Status SumFieldWords(Span<const std::byte> file, const StateHeader& header, uint64_t* out,
                     Diag* diag) {
  *out = 0;
  const uint64_t records = IndexRecordBytes(header.version, header.n_groups, header.n_sequences);
  const uint64_t room = (header.index.bytes - records) / sizeof(uint32_t);
  const StateView view(file, header, 0);
  for (uint32_t s = 0; s < header.n_sequences; ++s) *out += view.Sequence(s).n_field_words;
  if (*out <= room) return Status::kOk;
  return diag->Fail(Status::kBadSave,
                    "the sampling fields have %" PRIu64 " words, the index has room for %" PRIu64,
                    *out, room);
}

// Tokens of a model with an encoder need its output.
Status CheckEncoderRows(const StateSequence& sequence, const SessionPlan& plan, uint32_t s,
                        Diag* diag) {
  const bool has_encoder = plan.program.n_encoder_steps != 0;
  const uint32_t most = has_encoder ? plan.options.encoder_rows : 0;
  if (sequence.encoder_rows > most) {
    return diag->Fail(has_encoder ? Status::kContextFull : Status::kBadSave,
                      "sequence %u was saved with %u encoder rows, encoder_rows is %u", s,
                      sequence.encoder_rows, most);
  }
  if (has_encoder && sequence.encoder_rows == 0 && sequence.n_tokens != 0) {
    return diag->Fail(Status::kBadSave, "sequence %u has %u tokens and no encoder output", s,
                      sequence.n_tokens);
  }
  return Status::kOk;
}

Status CheckSequences(const StateView& view, const StateTarget& target, StateCounts* counts,
                      Diag* diag) {
  const SessionPlan& plan = *target.plan;
  uint32_t n_constraints = 0;
  for (uint32_t s = 0; s < counts->n_sequences; ++s) {
    const StateSequence sequence = view.Sequence(s);
    if (sequence.n_tokens > plan.options.context_tokens) {
      return diag->Fail(Status::kContextFull,
                        "sequence %u was saved with %u tokens, context_tokens is %u", s,
                        sequence.n_tokens, plan.options.context_tokens);
    }
    if (sequence.has_logits > 1 || (sequence.has_logits == 1 && sequence.n_tokens == 0)) {
      return diag->Fail(Status::kBadSave, "sequence %u: has_logits is %u with %u tokens", s,
                        sequence.has_logits, sequence.n_tokens);
    }
    ARN_TRY(CheckEncoderRows(sequence, plan, s, diag));
    Diag inner;
    SavedSampling sampling;
    const Status status = view.Sampling(s, target.sampling, target.list_scratch, &sampling, &inner);
    if (status != Status::kOk) return diag->Fail(status, "sequence %u: %s", s, inner.text());
    if (kHasAdapters && sequence.n_tokens != 0) {
      const auto here = target.adapters_of == nullptr ? Span<const ActiveAdapter>()
                                                      : target.adapters_of(target.user, s);
      const Status same = CheckAdapters(sampling.read_adapters, here, &inner);
      if (same != Status::kOk) return diag->Fail(same, "sequence %u: %s", s, inner.text());
    }
    if (sampling.n_generated > sequence.n_tokens) {
      return diag->Fail(Status::kBadSave, "sequence %u: %u of %u tokens were generated", s,
                        sampling.n_generated, sequence.n_tokens);
    }
    if (target.has_constraints) {
      ARN_TRY(CheckConstraint(sampling.constraint, s, sequence.n_tokens, plan.constraints,
                              &n_constraints, diag));
    }
    counts->n_field_words += sequence.n_field_words;
    counts->n_tokens += sequence.n_tokens;
    counts->n_logits += sequence.has_logits;
  }
  return Status::kOk;
}

// Checks one table: it ends with the page of the last token (of a group of encoder output: has one
// page if there is any) and names no page before the first that the last token attends to. New
// pages take the next number of their type; a known page must belong to an earlier sequence at the
// same position. `positions`: position of each page so far, by PageIndex.
Status CheckTable(const StateView& view, const SessionPlan& plan, uint32_t s, uint32_t g,
                  const std::byte* entries, uint32_t* positions, uint32_t* n_pages, Diag* diag) {
  const StateTable table = view.Table(s, g);
  const CacheGroup& group = plan.cache.groups[g];
  const uint32_t length = view.Sequence(s).n_tokens;
  const uint64_t end = group.is_encoder ? (view.Sequence(s).encoder_rows != 0 ? 1 : 0)
                                        : CeilDiv(length, group.page_tokens);
  const uint32_t last = length - Min(length, 1u);
  const uint32_t seen =
      group.is_encoder ? 0 : FirstVisible(last, group.window, group.chunk) / group.page_tokens;
  const bool is_whole = group.window == 0 && group.chunk == 0;
  if (uint64_t{table.first_page} + table.n_pages != end || table.n_pages > group.table_pages ||
      table.first_page < seen || (is_whole && table.first_page != 0)) {
    return diag->Fail(
        Status::kBadSave,
        "sequence %u, KV group %u: pages %u+%u for %u tokens, expected %u up to %u at "
        "most %u of them",
        s, g, table.first_page, table.n_pages, length, seen, static_cast<uint32_t>(end),
        group.table_pages);
  }
  const StateGroup saved = view.Group(g);
  const uint32_t before[kPageKinds] = {n_pages[0], n_pages[1]};
  for (uint32_t i = 0; i < table.n_pages; ++i) {
    const auto page = Load<uint32_t>(entries + uint64_t{i} * sizeof(uint32_t));
    const uint32_t kind = KindOfPage(page), number = page & ~kQuantisedPage;
    const uint32_t position = table.first_page + i;
    const bool is_new = number == n_pages[kind];
    if (number > n_pages[kind] || (is_new && number >= saved.pages[kind].count) ||
        (!is_new && (number >= before[kind] || positions[PageIndex(group, page)] != position))) {
      return diag->Fail(Status::kBadSave,
                        "sequence %u, KV group %u: entry %u names %s page %u of %" PRIu64
                        ", of which %u are known",
                        s, g, i, kind == 0 ? "active" : "quantised", number,
                        saved.pages[kind].count, n_pages[kind]);
    }
    if (!is_new) continue;
    positions[PageIndex(group, page)] = position;
    ++n_pages[kind];
  }
  return Status::kOk;
}

Status CheckTables(const StateView& view, const StateTarget& target, StateCounts* counts,
                   Diag* diag) {
  const StateHeader& header = view.header();
  const auto records = static_cast<uint64_t>(view.entries() - view.section(header.index).data());
  const uint64_t n_entries = (header.index.bytes - records) / sizeof(uint32_t);
  uint32_t n_pages[kMaxKvGroups][kPageKinds] = {};
  for (uint32_t s = 0; s < header.n_sequences; ++s) {
    for (uint32_t g = 0; g < header.n_groups; ++g) {
      const StateTable table = view.Table(s, g);
      if (table.n_pages > n_entries - counts->n_entries) {
        return diag->Fail(Status::kBadSave,
                          "sequence %u, KV group %u: %u pages, %" PRIu64 " entries are left", s, g,
                          table.n_pages, n_entries - counts->n_entries);
      }
      const std::byte* entries = view.entries() + counts->n_entries * sizeof(uint32_t);
      ARN_TRY(CheckTable(view, *target.plan, s, g, entries, target.scratch[g], n_pages[g], diag));
      counts->n_entries += table.n_pages;
    }
  }
  for (uint32_t g = 0; g < header.n_groups; ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      if (n_pages[g][kind] == counts->n_pages[g][kind]) continue;
      return diag->Fail(Status::kBadSave, "KV group %u: %u %s pages, the tables name %u", g,
                        counts->n_pages[g][kind], kind == 0 ? "active" : "quantised",
                        n_pages[g][kind]);
    }
  }
  if (counts->n_entries != n_entries) {
    return diag->Fail(Status::kBadSave, "%" PRIu64 " table entries, the tables have %" PRIu64,
                      n_entries, counts->n_entries);
  }
  return Status::kOk;
}

bool SamePlace(const StateSection& a, const StateSection& b) {
  return a.offset == b.offset && a.bytes == b.bytes;
}

// Checks that all sections lie where the writer puts them.
Status CheckPlaces(const StateView& view, const StateCounts& counts, Diag* diag) {
  const StateHeader& header = view.header();
  StateLayout layout;
  ARN_TRY(PlanState(counts, &layout));
  bool is_right = SamePlace(header.tokens, layout.tokens) &&
                  SamePlace(header.logits, layout.logits) && header.file_bytes == layout.file_bytes;
  for (uint32_t g = 0; g < counts.n_groups; ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      is_right = is_right && view.Group(g).pages[kind].offset == layout.pages[g][kind].offset;
    }
  }
  if (is_right) return Status::kOk;
  return diag->Fail(Status::kBadSave,
                    "the sections are misplaced: the state has %" PRIu64
                    " bytes, its counts give %" PRIu64,
                    header.file_bytes, layout.file_bytes);
}

// Counts the bytes behind the tokens in their section.
Status CountEmbeddings(const StateHeader& header, const StateTarget& target, StateCounts* counts,
                       Diag* diag) {
  if (header.version <= kTextStateVersion) return Status::kOk;
  const uint64_t ids = counts->n_tokens * sizeof(int32_t);
  const uint64_t row = uint64_t{target.embedding_floats} * sizeof(float);
  if (header.tokens.bytes < ids || (header.tokens.bytes - ids) % row != 0) {
    return diag->Fail(Status::kBadSave,
                      "%" PRIu64 " tokens and embeddings of %u floats were saved in %" PRIu64
                      " bytes",
                      counts->n_tokens, target.embedding_floats, header.tokens.bytes);
  }
  counts->embedding_bytes = header.tokens.bytes - ids;
  const uint64_t n = counts->embedding_bytes / row;
  if (n <= target.plan->options.embedding_rows) return Status::kOk;
  return diag->Fail(Status::kContextFull,
                    "%" PRIu64 " embeddings of images were saved, embedding_rows is %u", n,
                    target.plan->options.embedding_rows);
}

Status CheckTokens(const StateView& view, const StateCounts& counts, const StateTarget& target,
                   Diag* diag) {
  const Span<const std::byte> rows = view.embeddings();
  const size_t row = size_t{target.embedding_floats} * sizeof(float);
  for (uint64_t i = 0; i < counts.n_tokens; ++i) {
    const auto id = Load<int32_t>(view.tokens() + i * sizeof(int32_t));
    if (id >= 0 && static_cast<uint32_t>(id) < view.header().vocab) continue;
    const auto index = static_cast<size_t>(-1 - int64_t{id});
    if (id >= 0 || rows.empty() || index >= rows.size() / row) {
      return diag->Fail(Status::kBadSave,
                        "token %" PRIu64
                        " is %d, the vocabulary has %u, and %zu embeddings were "
                        "saved",
                        i, id, view.header().vocab, rows.empty() ? 0 : rows.size() / row);
    }
    if (!target.has_places) continue;
    float from[kPlaceFloats];
    std::memcpy(from, rows.data() + (index + 1) * row - sizeof from, sizeof from);
    ImagePlace place;
    if (ReadPlace(from, &place)) continue;
    return diag->Fail(Status::kBadSave, "embedding %zu does not end with a place in an image",
                      index);
  }
  return Status::kOk;
}

Status CheckContents(const StateView& view, const StateCounts& counts, const StateTarget& target,
                     bool verify_pages, Diag* diag) {
  const StateHeader& header = view.header();
  ARN_TRY(CheckHash(view.section(header.tokens), header.tokens.hash, "tokens", diag));
  ARN_TRY(CheckHash(view.section(header.logits), header.logits.hash, "logits", diag));
  ARN_TRY(CheckTokens(view, counts, target, diag));
  if (!verify_pages) return Status::kOk;
  for (uint32_t g = 0; g < header.n_groups; ++g) {
    for (const StatePages& pages : view.Group(g).pages) {
      ARN_TRY(CheckHash(view.pages(pages), pages.hash, "pages", diag));
    }
  }
  return Status::kOk;
}

}  // namespace

StateGroup StateView::Group(uint32_t g) const {
  return Load<StateGroup>(At(header_.index.offset + uint64_t{g} * sizeof(StateGroup)));
}

uint64_t StateView::SequencesOffset() const {
  return header_.index.offset + uint64_t{header_.n_groups} * sizeof(StateGroup);
}

uint64_t StateView::TablesOffset() const {
  return SequencesOffset() + header_.n_sequences * SequenceRecordBytes(header_.version);
}

uint64_t StateView::FieldsOffset() const {
  return TablesOffset() + uint64_t{header_.n_sequences} * header_.n_groups * sizeof(StateTable);
}

StateSequence StateView::Sequence(uint32_t s) const {
  const std::byte* at = At(SequencesOffset() + s * SequenceRecordBytes(header_.version));
  if (header_.version != 1) return Load<StateSequence>(at);
  const auto old = Load<StateSequenceV1>(at);
  return {old.n_tokens, old.has_logits, 0, 0};  // no version 1 has encoder output
}

Status StateView::Sampling(uint32_t s, const SamplingLimits& limits, uint32_t* lists,
                           SavedSampling* out, Diag* diag) const {
  if (header_.version == 1) {
    const auto old =
        Load<StateSequenceV1>(At(SequencesOffset() + uint64_t{s} * sizeof(StateSequenceV1)));
    *out = SavedSampling();
    out->options.temperature = old.temperature;
    out->options.top_k = old.top_k;
    out->options.top_p = old.top_p;
    out->options.min_p = old.min_p;
    out->options.seed = old.seed;
    out->state.random = old.random_state;
    Diag inner;
    if (CheckSampling(out->options, limits, &inner) == Status::kOk) return Status::kOk;
    return diag->Fail(Status::kBadSave, "%s", inner.text());
  }
  uint64_t first = 0;
  for (uint32_t i = 0; i < s; ++i) first += Sequence(i).n_field_words;
  const Span<const std::byte> fields(At(FieldsOffset() + first * sizeof(uint32_t)),
                                     Sequence(s).n_field_words * sizeof(uint32_t));
  return ReadFields(fields, s, limits, lists, out, diag);
}

StateTable StateView::Table(uint32_t s, uint32_t g) const {
  const uint64_t i = uint64_t{s} * header_.n_groups + g;
  return Load<StateTable>(At(TablesOffset() + i * sizeof(StateTable)));
}

const std::byte* StateView::entries() const {
  return At(FieldsOffset() + n_field_words_ * sizeof(uint32_t));
}

Status CheckState(Span<const std::byte> file, const StateTarget& target, bool verify_pages,
                  StateView* out, Diag* diag) {
  *out = StateView();
  StateHeader header;
  ARN_TRY(CheckHeader(file, &header, diag));
  ARN_TRY(CheckSameModel(header, target, diag));
  ARN_TRY(CheckIndex(file, header, target, diag));
  uint64_t n_field_words = 0;
  ARN_TRY(SumFieldWords(file, header, &n_field_words, diag));
  StateView view(file, header, n_field_words);
  StateCounts counts;
  counts.version = header.version;
  counts.n_groups = header.n_groups;
  counts.n_sequences = header.n_sequences;
  counts.vocab = header.vocab;
  ARN_TRY(CheckGroups(view, *target.plan, &counts, diag));
  ARN_TRY(CheckSequences(view, target, &counts, diag));
  ARN_TRY(CheckTables(view, target, &counts, diag));
  ARN_TRY(CountEmbeddings(header, target, &counts, diag));
  ARN_TRY(CheckPlaces(view, counts, diag));
  view = StateView(file, header, n_field_words, counts.embedding_bytes);
  ARN_TRY(CheckContents(view, counts, target, verify_pages, diag));
  *out = view;
  return Status::kOk;
}

}  // namespace arn

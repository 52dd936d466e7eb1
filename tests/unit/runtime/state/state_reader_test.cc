// Saved states that are made by hand, and each lie in them: refused with its status and words.
#include "runtime/state/state_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/contract/kv_page.h"
#include "platform/base/arith.h"
#include "tests/support/state_bytes.h"
#include "tests/unit/runtime/memory/planned_session.h"

namespace arn::test {
namespace {

constexpr uint64_t kModelHash = 7;
constexpr uint32_t kPage = 8, kVocab = 61;

struct SavedSequence {
  StateSequence record = {};
  std::vector<uint32_t> fields;
};

// The parts of a state. Bytes() puts them together as the writer does.
struct StateParts {
  StateHeader header = {};
  std::vector<StateGroup> groups;
  std::vector<SavedSequence> sequences;
  std::vector<StateTable> tables;
  std::vector<uint32_t> entries;
  std::vector<int32_t> tokens;
  std::vector<float> embeddings;

  std::vector<uint8_t> Bytes();
};

template <typename T>
void Put(const std::vector<T>& from, uint64_t* at, std::vector<uint8_t>* out) {
  if (!from.empty()) std::memcpy(out->data() + *at, from.data(), from.size() * sizeof(T));
  *at += from.size() * sizeof(T);
}

std::vector<uint8_t> StateParts::Bytes() {
  StateCounts counts;
  counts.version = header.version;
  counts.n_groups = static_cast<uint32_t>(groups.size());
  counts.n_sequences = static_cast<uint32_t>(sequences.size());
  counts.vocab = kVocab;
  counts.n_entries = entries.size();
  counts.n_tokens = tokens.size();
  counts.embedding_bytes = embeddings.size() * sizeof(float);
  std::vector<StateSequence> records;
  std::vector<uint32_t> fields;
  for (const SavedSequence& sequence : sequences) {
    records.push_back(sequence.record);
    fields.insert(fields.end(), sequence.fields.begin(), sequence.fields.end());
    counts.n_logits += sequence.record.has_logits == 1 ? 1 : 0;
  }
  counts.n_field_words = fields.size();
  for (uint32_t g = 0; g < counts.n_groups; ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      counts.n_pages[g][kind] = static_cast<uint32_t>(groups[g].pages[kind].count);
      counts.page_bytes[g][kind] = groups[g].pages[kind].page_bytes;
    }
  }
  StateLayout layout;
  EXPECT_EQ(Status::kOk, PlanState(counts, &layout));
  std::vector<uint8_t> out(layout.file_bytes);
  for (uint32_t g = 0; g < counts.n_groups; ++g) {
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      const StateSection& place = layout.pages[g][kind];
      groups[g].pages[kind].offset = place.offset;
      groups[g].pages[kind].hash = Xxh64(out.data() + place.offset, place.bytes);
    }
  }
  uint64_t at = layout.index.offset;
  Put(groups, &at, &out);
  Put(records, &at, &out);
  Put(tables, &at, &out);
  Put(fields, &at, &out);
  Put(entries, &at, &out);
  at = layout.tokens.offset;
  Put(tokens, &at, &out);
  Put(embeddings, &at, &out);
  header.file_bytes = layout.file_bytes;
  header.index = layout.index;
  header.tokens = layout.tokens;
  header.logits = layout.logits;
  std::memcpy(out.data(), &header, sizeof header);
  RepairState(&out);
  return out;
}

// A model with full attention and windows of 9 tokens.
TinyBundle Kinds() {
  TinyBundle bundle;
  bundle.layer_kinds = {{}, {9}};
  return bundle;
}

class StateReader : public PlannedSession {
 protected:
  StateReader() : PlannedSession(Kinds()) {
    options_.context_tokens = 64;
    options_.kv_page_tokens = kPage;
    options_.max_sequences = 2;
    options_.n_threads = 1;
    Replan();
  }

  // After a change of the session's options.
  void Replan() {
    ExpectPlanned();
    target_.plan = plan_.get();
    target_.model_hash = kModelHash;
    target_.sampling = plan_->sampling_limits();
    lists_.resize(target_.sampling.n_words + 1);
    target_.list_scratch = lists_.data();
    for (uint32_t g = 0; g < plan_->cache.n_groups; ++g) {
      const CacheGroup& group = plan_->cache.groups[g];
      numbers_[g].assign(group.n_pages + group.n_quantised_pages, 0);
      scratch_[g] = numbers_[g].data();
    }
    target_.scratch = scratch_;
  }

  // The state of sequences of so many tokens, each with pages of its own.
  StateParts Parts(const std::vector<uint32_t>& lengths) const {
    StateParts parts;
    std::memcpy(parts.header.magic, kStateMagic, sizeof kStateMagic);
    parts.header.version = kTextStateVersion;
    parts.header.header_bytes = sizeof parts.header;
    parts.header.model_hash = kModelHash;
    parts.header.geometry_hash = GeometryHash(*plan_);
    parts.header.n_groups = plan_->cache.n_groups;
    parts.header.n_sequences = static_cast<uint32_t>(lengths.size());
    parts.header.k_type = static_cast<uint32_t>(plan_->options.k_type);
    parts.header.v_type = static_cast<uint32_t>(plan_->options.v_type);
    parts.header.page_tokens = plan_->options.kv_page_tokens;
    parts.header.group_size = plan_->options.kv_group_size;
    parts.header.vocab = kVocab;
    for (uint32_t g = 0; g < plan_->cache.n_groups; ++g) {
      const KvGroup& here = plan_->kv_groups[g];
      const CacheGroup& cache = plan_->cache.groups[g];
      StateGroup group = {here.n_layers,
                          here.n_kv_heads,
                          here.head_dim,
                          cache.window,
                          cache.chunk,
                          here.state_floats,
                          {}};
      for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
        group.pages[kind].page_bytes = here.pages(kind).page_bytes;
      }
      parts.groups.push_back(group);
    }
    for (const uint32_t n : lengths) {
      const uint32_t encoder_rows = plan_->program.n_encoder_steps != 0 ? 5 : 0;
      parts.sequences.push_back({{n, n == 0 ? 0u : 1u, 0, encoder_rows}, {}});
      for (uint32_t i = 0; i < n; ++i) parts.tokens.push_back(static_cast<int32_t>(i % kVocab));
      for (uint32_t g = 0; g < plan_->cache.n_groups; ++g) {
        const CacheGroup& cache = plan_->cache.groups[g];
        const uint32_t last = n == 0 ? 0 : n - 1;
        uint32_t first = FirstVisible(last, cache.window, cache.chunk) / cache.page_tokens;
        uint32_t end = static_cast<uint32_t>(CeilDiv(n, cache.page_tokens));
        if (cache.is_encoder) {
          first = 0;
          end = encoder_rows != 0 ? 1 : 0;
        }
        parts.tables.push_back({first, end - first});
        for (uint32_t i = first; i < end; ++i) {
          parts.entries.push_back(static_cast<uint32_t>(parts.groups[g].pages[0].count++));
        }
      }
    }
    return parts;
  }

  Status Check(const std::vector<uint8_t>& bytes, bool verifies_pages = true) {
    diag_.Clear();
    // A copy of this size, so that sanitizers see what lies behind it.
    checked_ = std::vector<uint8_t>(bytes.begin(), bytes.end());
    return CheckState({reinterpret_cast<const std::byte*>(checked_.data()), checked_.size()},
                      target_, verifies_pages, &view_, &diag_);
  }
  void ExpectTaken(const std::vector<uint8_t>& bytes) {
    EXPECT_EQ(Status::kOk, Check(bytes)) << diag_.text();
  }
  // `why`: all that is said, or its beginning if it ends in an ellipsis.
  void ExpectLie(const std::vector<uint8_t>& bytes, Status status, const std::string& why) {
    EXPECT_EQ(status, Check(bytes)) << why;
    const std::string said = diag_.text();
    if (why.ends_with("...")) {
      EXPECT_EQ(why.substr(0, why.size() - 3), said.substr(0, why.size() - 3));
    } else {
      EXPECT_EQ(why, said);
    }
  }
  // After the parts were put together.
  void ExpectHeaderLie(const std::function<void(StateHeader*)>& change, Status status,
                       const std::string& why) {
    std::vector<uint8_t> bytes = Parts({13, 20}).Bytes();
    StateHeader header = StateHeaderOf(bytes);
    change(&header);
    std::memcpy(bytes.data(), &header, sizeof header);
    RepairState(&bytes);
    ExpectLie(bytes, status, why);
  }
  void ExpectPartLie(const std::function<void(StateParts*)>& change, Status status,
                     const std::string& why) {
    StateParts parts = Parts({13, 20});
    change(&parts);
    ExpectLie(parts.Bytes(), status, why);
  }

  StateTarget target_;
  StateView view_;
  std::vector<uint8_t> checked_;  // what view_ is of
  std::vector<uint32_t> lists_;
  std::vector<uint32_t> numbers_[kMaxKvGroups];
  uint32_t* scratch_[kMaxKvGroups] = {};
};

TEST_F(StateReader, WholeStates_AreTaken) {
  for (const std::vector<uint32_t>& lengths :
       std::vector<std::vector<uint32_t>>{{0}, {1}, {8}, {9}, {13, 20}, {64, 64}, {0, 7}}) {
    ExpectTaken(Parts(lengths).Bytes());
    EXPECT_EQ(lengths.size(), view_.header().n_sequences);
    for (uint32_t s = 0; s < lengths.size(); ++s) {
      EXPECT_EQ(lengths[s], view_.Sequence(s).n_tokens);
    }
  }
}

TEST_F(StateReader, Headers_SayWhatTheyAre) {
  const std::vector<uint8_t> whole = Parts({13, 20}).Bytes();
  ExpectLie(std::vector<uint8_t>(whole.begin(), whole.begin() + 151), Status::kBadSave,
            "the state has 151 bytes, its header alone has 152");
  ExpectHeaderLie([](auto* h) { h->magic[7] = 'F'; }, Status::kBadSave,
                  "not a saved session: it does not begin with ARNSTATE");
  ExpectHeaderLie([](auto* h) { h->version = 0; }, Status::kBadSave,
                  "state version 0, this library reads 1 to 3");
  ExpectHeaderLie([](auto* h) { h->version = 4; }, Status::kBadSave,
                  "state version 4, this library reads 1 to 3");
  ExpectHeaderLie([](auto* h) { h->header_bytes = 151; }, Status::kBadSave,
                  "header_bytes is 151, expected 152");
  ExpectHeaderLie([](auto* h) { h->file_bytes -= 1; }, Status::kBadSave,
                  "the state has " + std::to_string(whole.size()) + " bytes, its header says " +
                      std::to_string(whole.size() - 1));
  std::vector<uint8_t> damaged = whole;
  damaged[150] ^= 1;
  ExpectLie(damaged, Status::kHashMismatch, "the state's header is damaged: its hash is ...");
}

TEST_F(StateReader, SessionsAreOfTheSameKind) {
  const auto mismatch = [this](const std::function<void(StateHeader*)>& change,
                               const std::string& why) {
    ExpectHeaderLie(change, Status::kSaveMismatch, why);
  };
  mismatch([](auto* h) { h->model_hash = 8; },
           "saved with another model: its index hash is 0000000000000008, this model's is "
           "0000000000000007");
  mismatch([](auto* h) { h->k_type = 3; },
           "keys of KV type int4 (3) were saved, this session has int8");
  mismatch([](auto* h) { h->k_type = 5; },
           "keys of KV type unknown (5) were saved, this session has int8");
  mismatch([](auto* h) { h->v_type = 4; },
           "values of KV type int2 (4) were saved, this session has int8");
  mismatch([](auto* h) { h->page_tokens = 16; },
           "kv_page_tokens: 16 was saved, this session has 8");
  mismatch([](auto* h) { h->group_size = 9; }, "kv_group_size: 9 was saved, this session has 8");
  mismatch([](auto* h) { h->vocab = 60; }, "vocabulary: 60 was saved, this session has 61");
  mismatch([](auto* h) { h->n_groups = 3; }, "KV groups: 3 was saved, this session has 2");
  mismatch([](auto* h) { h->geometry_hash ^= 1; },
           "saved with other KV shapes or RoPE frequencies: their hash is ...");
}

TEST_F(StateReader, Indexes_AreWhereTheyBelong) {
  ExpectHeaderLie([](auto* h) { h->n_sequences = 3; }, Status::kContextFull,
                  "3 sequences were saved, max_sequences is 2");
  ExpectHeaderLie([](auto* h) { h->selected = 2; }, Status::kBadSave,
                  "the selected sequence is 2 of 2");
  ExpectHeaderLie([](auto* h) { h->n_sequences = h->selected = 0; }, Status::kBadSave,
                  "the selected sequence is 0 of 0");
  const uint64_t records =
      2 * sizeof(StateGroup) + 2 * sizeof(StateSequence) + 4 * sizeof(StateTable);
  const std::string ends = " of " + std::to_string(Parts({13, 20}).Bytes().size()) +
                           ", its records take " + std::to_string(records) + " at 192";
  const uint64_t bytes = StateHeaderOf(Parts({13, 20}).Bytes()).index.bytes;
  const auto lie = [&](uint64_t offset, uint64_t size) {
    ExpectHeaderLie(
        [&](auto* h) {
          h->index.offset = offset;
          h->index.bytes = size;
        },
        Status::kBadSave,
        "the index has " + std::to_string(size) + " bytes at " + std::to_string(offset) + ends);
  };
  lie(128, bytes);
  lie(256, bytes);
  lie(192, records - 4);
  lie(192, bytes + 1);
  lie(192, uint64_t{1} << 40);
  StateParts parts = Parts({13});
  std::vector<uint8_t> alone = parts.Bytes();
  alone.resize(sizeof(StateHeader));
  StateHeader header = StateHeaderOf(alone);
  header.file_bytes = alone.size();
  std::memcpy(alone.data(), &header, sizeof header);
  RepairState(&alone);
  ExpectLie(alone, Status::kBadSave,
            "the index has " + std::to_string(header.index.bytes) +
                " bytes at 192 of 152, its records take ...");
  std::vector<uint8_t> damaged = parts.Bytes();
  damaged[200] ^= 1;
  ExpectLie(damaged, Status::kHashMismatch, "the saved tables are damaged: their hash is ...");
}

TEST_F(StateReader, Groups_HaveTheSessionsShape) {
  using Field = uint32_t StateGroup::*;
  for (const Field field : {&StateGroup::n_layers, &StateGroup::n_kv_heads, &StateGroup::head_dim,
                            &StateGroup::window, &StateGroup::chunk, &StateGroup::state_floats}) {
    ExpectPartLie([field](auto* p) { p->groups[1].*field += 1; }, Status::kSaveMismatch,
                  "KV group 1: pages of ...");
  }
  ExpectPartLie([](auto* p) { p->groups[1].window = 10; }, Status::kSaveMismatch,
                "KV group 1: pages of 1 layers, 2 heads of 8, window 10, chunk 0, state 0 were "
                "saved, this session's have 1, 2 of 8, 9, 0, 0");
  const uint64_t page = Parts({1}).groups[0].pages[0].page_bytes;
  ExpectPartLie([](auto* p) { p->groups[0].pages[0].page_bytes += 64; }, Status::kSaveMismatch,
                "KV group 0: active pages of " + std::to_string(page + 64) +
                    " bytes were saved, this session's have " + std::to_string(page));
  ExpectPartLie([](auto* p) { p->groups[0].pages[1].page_bytes = 64; }, Status::kSaveMismatch,
                "KV group 0: quantised pages of 64 bytes were saved, this session's have 0");
  ExpectPartLie([](auto* p) { p->groups[0].pages[0].count = 17; }, Status::kContextFull,
                "KV group 0: 17 active pages were saved, there are 16");
  ExpectPartLie([](auto* p) { p->groups[0].pages[0].count = 16; }, Status::kBadSave,
                "KV group 0: 16 active pages, the tables name 5");
  ExpectPartLie([](auto* p) { p->groups[0].pages[1].count = 1; }, Status::kContextFull,
                "KV group 0: 1 quantised pages were saved, there are 0");
}

TEST_F(StateReader, Sequences_AreWithinTheSession) {
  ExpectPartLie([](auto* p) { p->sequences[1].record.n_tokens = 65; }, Status::kContextFull,
                "sequence 1 was saved with 65 tokens, context_tokens is 64");
  ExpectPartLie([](auto* p) { p->sequences[1].record.has_logits = 2; }, Status::kBadSave,
                "sequence 1: has_logits is 2 with 20 tokens");
  StateParts empty = Parts({0});
  empty.sequences[0].record.has_logits = 1;
  ExpectLie(empty.Bytes(), Status::kBadSave, "sequence 0: has_logits is 1 with 0 tokens");
  ExpectPartLie([](auto* p) { p->sequences[0].record.encoder_rows = 1; }, Status::kBadSave,
                "sequence 0 was saved with 1 encoder rows, encoder_rows is 0");
  ExpectPartLie([](auto* p) { p->sequences[0].record.n_field_words = 10; }, Status::kBadSave,
                "the sampling fields have 10 words, the index has room for 9");
}

TEST_F(StateReader, Tables_EndWithTheLastToken) {
  const auto table = [this](uint32_t i, StateTable to, const std::string& why) {
    ExpectPartLie([&](auto* p) { p->tables[i] = to; }, Status::kBadSave, why);
  };
  // 13 tokens: pages 0 and 1; of windows of 9 tokens all from 4 on. 20 tokens: 1 and 2 of 0 to 2.
  table(0, {1, 1},
        "sequence 0, KV group 0: pages 1+1 for 13 tokens, expected 0 up to 2 at most 8 "
        "of them");
  table(0, {0, 3}, "sequence 0, KV group 0: pages 0+3 for 13 tokens, ...");
  table(0, {0, 1}, "sequence 0, KV group 0: pages 0+1 for 13 tokens, ...");
  ExpectPartLie(
      [](auto* p) {
        p->tables[3] = {0, 3};
        p->entries.push_back(0);
      },
      Status::kBadSave,
      "sequence 1, KV group 1: pages 0+3 for 20 tokens, expected 1 up to 3 at most 8 of them");
  table(0, {0, 100}, "sequence 0, KV group 0: 100 pages, 9 entries are left");
  ExpectPartLie([](auto* p) { p->entries.push_back(0); }, Status::kBadSave,
                "10 table entries, the tables have 9");
  const auto entry = [this](uint32_t i, uint32_t to, const std::string& why) {
    ExpectPartLie([&](auto* p) { p->entries[i] = to; }, Status::kBadSave, why);
  };
  // Five pages of group 0: 0 and 1, and 2 to 4 of sequence 1, which begin at entry 4.
  entry(1, 0, "sequence 0, KV group 0: entry 1 names active page 0 of 5, of which 1 are known");
  entry(1, 2, "sequence 0, KV group 0: entry 1 names active page 2 of 5, of which 1 are known");
  entry(1, kQuantisedPage | 1,
        "sequence 0, KV group 0: entry 1 names quantised page 1 of 0, of which 0 are known");
  entry(1, kQuantisedPage,
        "sequence 0, KV group 0: entry 1 names quantised page 0 of 0, of which 0 are known");
  entry(4, 1, "sequence 1, KV group 0: entry 0 names active page 1 of 5, of which 2 are known");
  entry(5, 2, "sequence 1, KV group 0: entry 1 names active page 2 of 5, of which 3 are known");
  // A page that both have, in its place: the pages behind it have other numbers then.
  StateParts shared = Parts({13, 20});
  shared.entries[4] = 0;
  shared.entries[5] = 2;
  shared.entries[6] = 3;
  shared.groups[0].pages[0].count = 4;
  ExpectTaken(shared.Bytes());
}

// With chunks of 8 tokens a window of 9 has room for 3 pages.
TEST_F(StateReader, Tables_HaveTheSessionsRoom) {
  options_.prefill_chunk = 8;
  Replan();
  ASSERT_EQ(3u, plan_->cache.groups[1].table_pages);
  StateParts parts = Parts({64});
  ExpectTaken(parts.Bytes());
  parts.tables[1] = {4, 4};
  parts.entries.insert(parts.entries.end(), {0, 0});
  ExpectLie(parts.Bytes(), Status::kBadSave,
            "sequence 0, KV group 1: pages 4+4 for 64 tokens, expected 6 up to 8 at most 3 of "
            "them");
}

TEST_F(StateReader, Chunks_BeginWithinTheText) {
  TinyBundle chunks;
  chunks.layer_kinds = {{}, {0, 16}};
  Open(chunks);
  Replan();
  StateParts parts = Parts({40});  // the chunk of the last token begins at 32
  EXPECT_EQ(4u, parts.tables[1].first_page);
  ExpectTaken(parts.Bytes());
  parts.tables[1] = {3, 2};
  parts.entries.push_back(1);
  ExpectLie(parts.Bytes(), Status::kBadSave,
            "sequence 0, KV group 1: pages 3+2 for 40 tokens, expected 4 up to 5 at most 8 of "
            "them");
}

TEST_F(StateReader, QuantisedPages_AreNamed) {
  options_.k_type = KvType::kInt4;
  options_.kv_residual = 8;
  options_.prefill_chunk = 8;
  Replan();
  ASSERT_GT(plan_->cache.groups[0].n_quantised_pages, 0u);
  StateParts parts = Parts({20});
  parts.groups[0].pages[0].count = 1;
  parts.groups[0].pages[1].count = 2;
  parts.entries = {kQuantisedPage, kQuantisedPage | 1, 0, 0, 1};
  ExpectTaken(parts.Bytes());
  parts.groups[0].pages[1].count = 3;
  ExpectLie(parts.Bytes(), Status::kBadSave, "KV group 0: 3 quantised pages, the tables name 2");
  parts.groups[0].pages[1].count = 1;
  ExpectLie(parts.Bytes(), Status::kBadSave,
            "sequence 0, KV group 0: entry 1 names quantised page 1 of 1, of which 1 are known");
}

TEST_F(StateReader, Sections_LieWhereTheyAreWritten) {
  const std::string misplaced = "the sections are misplaced: the state has ...";
  ExpectHeaderLie([](auto* h) { h->tokens.offset += 64; }, Status::kBadSave, misplaced);
  ExpectHeaderLie([](auto* h) { h->tokens.bytes += 4; }, Status::kBadSave, misplaced);
  ExpectHeaderLie([](auto* h) { h->logits.offset += 64; }, Status::kBadSave, misplaced);
  ExpectHeaderLie([](auto* h) { h->logits.bytes -= 4; }, Status::kBadSave, misplaced);
  std::vector<uint8_t> longer = Parts({13, 20}).Bytes();
  longer.push_back(0);
  StateHeader header = StateHeaderOf(longer);
  header.file_bytes += 1;
  std::memcpy(longer.data(), &header, sizeof header);
  RepairState(&longer);
  ExpectLie(longer, Status::kBadSave,
            "the sections are misplaced: the state has " + std::to_string(longer.size()) +
                " bytes, its counts give " + std::to_string(longer.size() - 1));
  for (const uint32_t g : {0u, 1u}) {
    std::vector<uint8_t> moved = Parts({13, 20}).Bytes();
    const uint64_t at = 192 + g * sizeof(StateGroup) + offsetof(StateGroup, pages[0].offset);
    uint64_t offset;
    std::memcpy(&offset, moved.data() + at, sizeof offset);
    offset += 16384;
    std::memcpy(moved.data() + at, &offset, sizeof offset);
    RepairState(&moved);
    ExpectLie(moved, Status::kBadSave, misplaced);
  }
}

TEST_F(StateReader, Contents_HaveTheirHashes) {
  const std::vector<uint8_t> whole = Parts({13, 20}).Bytes();
  const StateHeader header = StateHeaderOf(whole);
  const auto damaged = [&](uint64_t at) {
    std::vector<uint8_t> bytes = whole;
    bytes[at] ^= 1;
    return bytes;
  };
  ExpectLie(damaged(header.tokens.offset), Status::kHashMismatch,
            "the saved tokens are damaged: ...");
  ExpectLie(damaged(header.logits.offset), Status::kHashMismatch,
            "the saved logits are damaged: ...");
  ExpectLie(damaged(whole.size() - 1), Status::kHashMismatch, "the saved pages are damaged: ...");
  EXPECT_EQ(Status::kOk, Check(damaged(whole.size() - 1), false)) << diag_.text();
  for (const size_t at : {0, 2, 12, 13, 32}) {  // of 33
    for (const int32_t id : {-1, 61, INT32_MIN, INT32_MAX}) {
      ExpectPartLie([at, id](auto* p) { p->tokens[at] = id; }, Status::kBadSave,
                    "token " + std::to_string(at) + " is " + std::to_string(id) +
                        ", the vocabulary has 61, and 0 embeddings were saved");
    }
  }
}

// Sampling.

TEST_F(StateReader, Sampling_IsNamedByItsSequence) {
  ExpectPartLie(
      [](auto* p) {
        p->sequences[1].fields = {4242, 0};
        p->sequences[1].record.n_field_words = 2;
      },
      Status::kBadSave,
      "sequence 1: sampling field 4242 is unknown to this version of the library");
  ExpectPartLie(
      [](auto* p) {
        p->sequences[1].fields = {kNGeneratedField, 1, 21};
        p->sequences[1].record.n_field_words = 3;
      },
      Status::kBadSave, "sequence 1: 21 of 20 tokens were generated");
}

TEST_F(StateReader, OldRecords_AreChecked) {
  std::vector<StateSequenceV1> sampling(2);
  sampling[1] = {0, 0, 0.5f, 3, 0.25f, 0.125f, 9, 11};
  const std::vector<uint8_t> whole = Parts({13, 20}).Bytes();
  sampling[0].top_p = 1.0f;
  ExpectTaken(AsVersion1(whole, sampling));
  EXPECT_EQ(0u, view_.Sequence(1).encoder_rows);
  sampling[1].temperature = -1.0f;
  ExpectLie(AsVersion1(whole, sampling), Status::kBadSave, "sequence 1: temperature is -1...");
}

// Adapters.

TEST_F(StateReader, Adapters_AreThoseOfTheSequence) {
  const Adapter adapter = [] {
    Adapter a;
    a.hash = 5;
    return a;
  }();
  static ActiveAdapter active;
  active.adapter = &adapter;
  active.scale = 0.5f;
  StateParts parts = Parts({13, 20});
  ExpectTaken(parts.Bytes());
  target_.adapters_of = [](const void*, uint32_t s) {
    return s == 1 ? Span<const ActiveAdapter>(&active, 1) : Span<const ActiveAdapter>();
  };
  ExpectLie(parts.Bytes(), Status::kSaveMismatch,
            "sequence 1: saved with 0 adapters, the session's sequence uses 1 "
            "(arn_session_set_adapters)");
  uint32_t half;
  std::memcpy(&half, &active.scale, sizeof half);
  parts.sequences[1].fields = {kAdaptersField, 3, 5, 0, half};
  parts.sequences[1].record.n_field_words = 5;
  ExpectTaken(parts.Bytes());
  parts.sequences[1].fields[2] = 6;
  ExpectLie(parts.Bytes(), Status::kSaveMismatch,
            "sequence 1: adapter 0: saved with 0000000000000006 at scale 0.5, the session's "
            "sequence uses 0000000000000005 at 0.5");
  // An empty sequence has none to agree with.
  StateParts empty = Parts({13, 0});
  ExpectTaken(empty.Bytes());
}

// Constraints.

TEST_F(StateReader, Constraints_AreCheckedUnlessPassedOver) {
  StateParts parts = Parts({13, 20});
  parts.sequences[1].fields = {kConstraintField, 8, 0, 0, 0, 0, 0, 100, 0, 0};
  parts.sequences[1].record.n_field_words = 10;
  ExpectLie(parts.Bytes(), Status::kUnsupported,
            "sequence 1 was saved with a constraint of 100 bytes, the session was created with "
            "constraint_bytes = 0");
  target_.has_constraints = false;
  ExpectTaken(parts.Bytes());
}

// Encoder output.

TEST_F(StateReader, EncoderOutput_IsThere) {
  model().spec.groups[0].is_encoder = true;
  model().spec.encoder.max_rows = 40;
  model().program.n_encoder_steps = 1;
  Replan();
  ASSERT_TRUE(plan_->cache.groups[0].is_encoder);
  ExpectTaken(Parts({13, 20}).Bytes());
  EXPECT_EQ(5u, view_.Sequence(1).encoder_rows);
  ExpectPartLie([](auto* p) { p->sequences[0].record.encoder_rows = 41; }, Status::kContextFull,
                "sequence 0 was saved with 41 encoder rows, encoder_rows is 40");
  ExpectPartLie([](auto* p) { p->sequences[0].record.encoder_rows = 0; }, Status::kBadSave,
                "sequence 0 has 13 tokens and no encoder output");
  const uint64_t page = Parts({1}).groups[0].pages[0].page_bytes;
  ExpectPartLie([](auto* p) { p->groups[0].pages[0].page_bytes += 64; }, Status::kSaveMismatch,
                "KV group 0: active pages of " + std::to_string(page + 64) +
                    " bytes were saved, this session's have " + std::to_string(page) +
                    ": encoder_rows must be the same");
  StateParts none = Parts({0});
  ExpectTaken(none.Bytes());
  none.sequences[0].record.encoder_rows = 0;
  ExpectLie(none.Bytes(), Status::kBadSave,
            "sequence 0, KV group 0: pages 0+1 for 0 tokens, expected 0 up to 0 at most 1 of them");
}

// Embeddings.

TEST_F(StateReader, Embeddings_ReplaceTokens) {
  backend_.takes_embeddings = true;
  options_.embedding_rows = 3;
  Replan();
  target_.embedding_floats = 4;
  const auto with = [this](size_t n_floats, int32_t id) {
    StateParts parts = Parts({13, 20});
    parts.header.version = kStateVersion;
    parts.embeddings.assign(n_floats, 1.0f);
    parts.tokens[2] = id;
    return parts.Bytes();
  };
  ExpectTaken(with(0, 2));
  ExpectTaken(with(12, -3));
  EXPECT_EQ(48u, view_.embeddings().size());
  ExpectLie(with(12, -4), Status::kBadSave,
            "token 2 is -4, the vocabulary has 61, and 3 embeddings were saved");
  ExpectLie(with(12, 61), Status::kBadSave,
            "token 2 is 61, the vocabulary has 61, and 3 embeddings were saved");
  ExpectLie(with(12, INT32_MIN), Status::kBadSave, "token 2 is -2147483648, ...");
  ExpectLie(with(0, -1), Status::kBadSave,
            "token 2 is -1, the vocabulary has 61, and 0 embeddings were saved");
  ExpectLie(with(5, -1), Status::kBadSave,
            "33 tokens and embeddings of 4 floats were saved in 152 bytes");
  ExpectLie(with(16, -1), Status::kContextFull,
            "4 embeddings of images were saved, embedding_rows is 3");
  std::vector<uint8_t> bytes = with(12, -1);
  StateHeader header = StateHeaderOf(bytes);
  header.tokens.bytes = 128;
  std::memcpy(bytes.data(), &header, sizeof header);
  RepairState(&bytes);
  ExpectLie(bytes, Status::kBadSave,
            "33 tokens and embeddings of 4 floats were saved in 128 bytes");

  target_.has_places = true;
  ExpectLie(with(12, -2), Status::kBadSave, "embedding 1 does not end with a place in an image");
  StateParts placed = Parts({13, 20});
  placed.header.version = kStateVersion;
  placed.embeddings = {9, 9, 9, 9, -1, 2, 3, 4, 9, 9, 9, 9};  // row 2, column 3 of 4
  placed.tokens[2] = -2;
  ExpectTaken(placed.Bytes());
  placed.tokens[3] = -1;
  ExpectLie(placed.Bytes(), Status::kBadSave, "embedding 0 does not end with a place in an image");
}

}  // namespace
}  // namespace arn::test

// Refused states, which leave the session unchanged.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/session_support.h"
#include "tests/support/state_bytes.h"
#include "tests/support/state_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;

arn_session_options Options(uint32_t kv_type = ARN_KV_INT8, uint32_t sequences = 2) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = kv_type;
  options.n_threads = 1;
  options.context_tokens = 64;
  options.kv_page_tokens = 8;
  options.max_sequences = sequences;
  return options;
}

template <typename T>
void Edit(std::vector<uint8_t>* state, uint64_t offset, const std::function<void(T*)>& change) {
  T record;
  std::memcpy(&record, state->data() + offset, sizeof record);
  change(&record);
  std::memcpy(state->data() + offset, &record, sizeof record);
  RepairState(state);
}

class SessionStateRefusals : public testing::Test {
 protected:
  SessionStateRefusals() : bytes_(MakeTinyBundle(Kinds())), model_(OpenBytes(bytes_)) {
    const SessionPtr session = NewSession(model_.get(), Options());
    const std::vector<int32_t> ids = SomeIds(40, kVocab);
    EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
    EXPECT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
    Decode(session.get(), 3);
    state_ = Save(session.get());
    header_ = StateHeaderOf(state_);
  }

  static TinyBundle Kinds(uint64_t seed = 1) {
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bundle.layer_kinds = {{}, {9}, {}};
    bundle.seed = seed;
    return bundle;
  }

  uint64_t GroupAt(uint32_t g) const { return header_.index.offset + g * sizeof(StateGroup); }
  uint64_t SequenceAt(uint32_t s) const {
    return GroupAt(header_.n_groups) + s * sizeof(StateSequence);
  }
  uint64_t TableAt(uint32_t s, uint32_t g) const {
    return SequenceAt(header_.n_sequences) + (s * header_.n_groups + g) * sizeof(StateTable);
  }
  uint64_t FieldsAt() const { return TableAt(header_.n_sequences, 0); }
  uint64_t EntriesAt() const {
    uint64_t at = FieldsAt();
    for (uint32_t s = 0; s < header_.n_sequences; ++s) {
      StateSequence record;
      std::memcpy(&record, state_.data() + SequenceAt(s), sizeof record);
      at += record.n_field_words * sizeof(uint32_t);
    }
    return at;
  }

  // Expects a refusal with this status and these words, and that the session continues unchanged.
  void ExpectRefused(const std::vector<uint8_t>& state, arn_status status,
                     const std::vector<std::string>& words, const arn_model* model = nullptr,
                     const arn_session_options& options = Options(),
                     uint32_t verify = ARN_VERIFY_DEFAULT) {
    if (model == nullptr) model = model_.get();
    const SessionPtr session = NewSession(model, options);
    const SessionPtr control = NewSession(model, options);
    const std::vector<int32_t> ids = SomeIds(11, 29);
    for (arn_session* s : {session.get(), control.get()}) {
      ASSERT_EQ(ARN_OK, arn_session_prefill(s, ids.data(), ids.size()));
    }
    EXPECT_EQ(status, Restore(session.get(), state, verify));
    const std::string said = arn_session_last_error(session.get());
    for (const std::string& word : words) {
      EXPECT_NE(std::string::npos, said.find(word)) << "'" << word << "' in: " << said;
    }
    EXPECT_EQ(Decode(control.get(), 10), Decode(session.get(), 10));
    EXPECT_EQ(TokensOf(control.get()), TokensOf(session.get()));
  }

  void ExpectEditRefused(const std::function<void(std::vector<uint8_t>*)>& edit, arn_status status,
                         const std::vector<std::string>& words) {
    std::vector<uint8_t> state = state_;
    edit(&state);
    ExpectRefused(state, status, words);
  }

  BundleBytes bytes_;
  ModelPtr model_;
  std::vector<uint8_t> state_;
  StateHeader header_;
};

TEST_F(SessionStateRefusals, OtherModel) {
  const BundleBytes other = MakeTinyBundle(Kinds(2));
  const ModelPtr model = OpenBytes(other);
  ExpectRefused(state_, ARN_SAVE_MISMATCH, {"another model"}, model.get());
}

TEST_F(SessionStateRefusals, OtherKvTypeOrPageSize) {
  ExpectRefused(state_, ARN_SAVE_MISMATCH, {"int8", "f16"}, nullptr, Options(ARN_KV_F16));
  arn_session_options pages = Options();
  pages.kv_page_tokens = 16;
  ExpectRefused(state_, ARN_SAVE_MISMATCH, {"kv_page_tokens", "8", "16"}, nullptr, pages);
}

TEST_F(SessionStateRefusals, TooSmallASession) {
  arn_session_options context = Options();
  context.context_tokens = 42;
  ExpectRefused(state_, ARN_CONTEXT_FULL, {"43", "42"}, nullptr, context);
  ExpectRefused(state_, ARN_CONTEXT_FULL, {"2", "1"}, nullptr, Options(ARN_KV_INT8, 1));
  // Five shared pages and one of sequence 0: 48 tokens suffice, fewer do not.
  arn_session_options kv = Options();
  kv.context_tokens = 43;
  kv.kv_tokens = 43;
  const SessionPtr enough = NewSession(model_.get(), kv);
  EXPECT_EQ(ARN_OK, Restore(enough.get(), state_)) << arn_session_last_error(enough.get());
  const SessionPtr both = NewSession(model_.get(), Options());
  ASSERT_EQ(ARN_OK, Restore(both.get(), state_));
  ASSERT_EQ(ARN_OK, arn_session_select(both.get(), 1));
  Decode(both.get(), 3);
  ExpectRefused(Save(both.get()), ARN_CONTEXT_FULL, {"7 active pages", "6"}, nullptr, kv);
}

TEST_F(SessionStateRefusals, NotAState) {
  ExpectRefused({}, ARN_BAD_SAVE, {"0 bytes"});
  ExpectRefused(std::vector<uint8_t>(1000, 7), ARN_BAD_SAVE, {"ARNSTATE"});
  ExpectEditRefused([](auto* s) { (*s)[8] = 9; }, ARN_BAD_SAVE, {"version 9", "1 to 3"});
  ExpectEditRefused([](auto* s) { s->push_back(0); }, ARN_BAD_SAVE,
                    {std::to_string(state_.size()), std::to_string(state_.size() + 1)});
}

TEST_F(SessionStateRefusals, DamagedBytes) {
  ExpectEditRefused([](auto* s) { (*s)[60] ^= 1; }, ARN_HASH_MISMATCH, {"header"});
  const auto flip = [](uint64_t at) { return [at](std::vector<uint8_t>* s) { (*s)[at] ^= 4; }; };
  ExpectEditRefused(flip(header_.index.offset + 3), ARN_HASH_MISMATCH, {"tables"});
  ExpectEditRefused(flip(header_.tokens.offset + 3), ARN_HASH_MISMATCH, {"tokens"});
  ExpectEditRefused(flip(header_.logits.offset + 3), ARN_HASH_MISMATCH, {"logits"});
  ExpectEditRefused(flip(state_.size() - 1), ARN_HASH_MISMATCH, {"pages"});
}

TEST_F(SessionStateRefusals, DamagedPage_IsNoticedOnlyWhenAsked) {
  std::vector<uint8_t> state = state_;
  state.back() ^= 4;
  ExpectRefused(state, ARN_HASH_MISMATCH, {"pages"}, nullptr, Options(), ARN_VERIFY_ALL);
  const SessionPtr session = NewSession(model_.get(), Options());
  EXPECT_EQ(ARN_OK, Restore(session.get(), state, ARN_VERIFY_TABLES));
  EXPECT_EQ(ARN_UNSUPPORTED, Restore(session.get(), state, 3));
}

TEST_F(SessionStateRefusals, EveryTruncation) {
  for (size_t bytes = 0; bytes < state_.size(); bytes += bytes < 1024 ? 1 : 397) {
    const std::vector<uint8_t> cut(state_.begin(), state_.begin() + static_cast<long>(bytes));
    const SessionPtr session = NewSession(model_.get(), Options());
    ASSERT_EQ(ARN_BAD_SAVE, Restore(session.get(), cut)) << bytes;
  }
}

TEST_F(SessionStateRefusals, HeadersThatLie) {
  const auto header = [this](const std::function<void(StateHeader*)>& change, arn_status status,
                             const std::vector<std::string>& words) {
    ExpectEditRefused([&](auto* s) { Edit<StateHeader>(s, 0, change); }, status, words);
  };
  header([](auto* h) { h->n_groups = 1; }, ARN_SAVE_MISMATCH, {"1", "2"});
  header([](auto* h) { h->vocab = 62; }, ARN_SAVE_MISMATCH, {"62", "61"});
  header([](auto* h) { h->geometry_hash ^= 1; }, ARN_SAVE_MISMATCH, {"shapes"});
  header([](auto* h) { h->k_type = 77; }, ARN_SAVE_MISMATCH, {"keys", "77", "int8"});
  header([](auto* h) { h->v_type = ARN_KV_INT4; }, ARN_SAVE_MISMATCH, {"values", "int4", "int8"});
  header([](auto* h) { h->group_size *= 2; }, ARN_SAVE_MISMATCH, {"kv_group_size"});
  header([](auto* h) { h->n_sequences = 3; }, ARN_CONTEXT_FULL, {"3", "2"});
  header([](auto* h) { h->n_sequences = 0; }, ARN_BAD_SAVE, {"of 0"});
  header([](auto* h) { h->selected = 2; }, ARN_BAD_SAVE, {"2"});
  header([](auto* h) { h->header_bytes = 8; }, ARN_BAD_SAVE, {"8"});
  header([](auto* h) { h->index.bytes = UINT64_MAX; }, ARN_BAD_SAVE, {"index"});
  header([](auto* h) { h->index.bytes = 12; }, ARN_BAD_SAVE, {"index"});
  header([](auto* h) { h->index.offset += 64; }, ARN_BAD_SAVE, {"index"});
  header([](auto* h) { h->tokens.bytes += 4; }, ARN_BAD_SAVE, {"sections"});
  header([](auto* h) { h->logits.offset = UINT64_MAX - 63; }, ARN_BAD_SAVE, {"sections"});
}

TEST_F(SessionStateRefusals, RecordsThatLie) {
  const auto group = [this](const std::function<void(StateGroup*)>& change, arn_status status,
                            const std::vector<std::string>& words) {
    ExpectEditRefused([&](auto* s) { Edit<StateGroup>(s, GroupAt(0), change); }, status, words);
  };
  group([](auto* g) { g->pages[0].count = 1u << 30; }, ARN_CONTEXT_FULL, {"1073741824"});
  group([](auto* g) { g->pages[0].count += 1; }, ARN_BAD_SAVE, {"pages"});
  group([](auto* g) { g->pages[0].count -= 1; }, ARN_BAD_SAVE, {"page"});
  group([](auto* g) { g->pages[0].page_bytes += 64; }, ARN_SAVE_MISMATCH, {"group 0"});
  group([](auto* g) { g->window = 5; }, ARN_SAVE_MISMATCH, {"window 5"});
  group([](auto* g) { g->pages[0].offset += 16384; }, ARN_BAD_SAVE, {"sections"});
  const auto sequence = [this](const std::function<void(StateSequence*)>& change, arn_status status,
                               const std::vector<std::string>& words) {
    ExpectEditRefused([&](auto* s) { Edit<StateSequence>(s, SequenceAt(0), change); }, status,
                      words);
  };
  sequence([](auto* s) { s->n_tokens = UINT32_MAX; }, ARN_CONTEXT_FULL, {"4294967295", "64"});
  sequence([](auto* s) { s->n_tokens = 10; }, ARN_BAD_SAVE, {"10 tokens"});
  sequence([](auto* s) { s->n_tokens -= 1; }, ARN_BAD_SAVE, {"sections"});
  sequence([](auto* s) { s->has_logits = 2; }, ARN_BAD_SAVE, {"has_logits"});
  sequence([](auto* s) { s->has_logits = 0; }, ARN_BAD_SAVE, {"sections"});
  sequence([](auto* s) { s->n_field_words += 1; }, ARN_BAD_SAVE, {"sampling"});
  sequence([](auto* s) { s->n_field_words = UINT32_MAX; }, ARN_BAD_SAVE, {"sampling"});
}

// Sequence 0 has two fields: the random state, of two words, and the number of generated tokens.
TEST_F(SessionStateRefusals, SamplingFieldsThatLie) {
  const auto word = [this](uint32_t i, uint32_t value, const std::vector<std::string>& words) {
    ExpectEditRefused(
        [&](auto* s) {
          Edit<uint32_t>(s, FieldsAt() + i * sizeof(uint32_t), [value](auto* w) { *w = value; });
        },
        ARN_BAD_SAVE, words);
  };
  word(0, 4242, {"sequence 0", "field 4242 is unknown"});
  word(1, 3, {"sequence 0"});
  word(1, UINT32_MAX, {"field 65536 has 4294967295 words"});
  word(6, 1000, {"1000 of 43 tokens were generated"});
  const auto option = [this](uint32_t id, float value, const std::vector<std::string>& words) {
    ExpectEditRefused(
        [&](auto* s) {
          Edit<uint32_t>(s, FieldsAt() + 4 * sizeof(uint32_t), [id](auto* w) { *w = id; });
          Edit<float>(s, FieldsAt() + 6 * sizeof(uint32_t), [value](auto* w) { *w = value; });
        },
        ARN_BAD_SAVE, words);
  };
  option(1, -1.0f, {"sequence 0", "temperature is -1"});
  option(3, 7.0f, {"sequence 0", "top_p is 7"});
}

TEST_F(SessionStateRefusals, TablesThatLie) {
  for (uint32_t s : {0u, 1u}) {
    for (uint32_t g : {0u, 1u}) {
      SCOPED_TRACE(testing::Message() << "sequence " << s << " group " << g);
      const auto table = [&](const std::function<void(StateTable*)>& change) {
        ExpectEditRefused([&](auto* state) { Edit<StateTable>(state, TableAt(s, g), change); },
                          ARN_BAD_SAVE, {"sequence", "group"});
      };
      table([](auto* t) { t->n_pages += 1; });
      table([](auto* t) { t->n_pages -= 1; });
      table([](auto* t) { t->n_pages = UINT32_MAX; });
      table([](auto* t) { t->first_page += 1; });
      table([](auto* t) { t->first_page = UINT32_MAX; });
      table([](auto* t) {
        t->first_page -= 1;
        t->n_pages += 1;
      });
    }
  }
  const uint64_t n_entries =
      (header_.index.offset + header_.index.bytes - EntriesAt()) / sizeof(uint32_t);
  for (uint64_t i = 0; i < n_entries; ++i) {
    for (uint32_t flip : {1u, 2u, 7u, 1u << 31}) {
      SCOPED_TRACE(testing::Message() << "entry " << i << " flip " << flip);
      ExpectEditRefused(
          [&](auto* state) {
            Edit<uint32_t>(state, EntriesAt() + i * sizeof(uint32_t),
                           [flip](uint32_t* e) { *e ^= flip; });
          },
          ARN_BAD_SAVE, {"page"});
    }
  }
}

TEST_F(SessionStateRefusals, TokenOutsideTheVocabulary) {
  for (int32_t id : {-1, 61, 1 << 30}) {
    std::vector<uint8_t> state = state_;
    std::memcpy(state.data() + header_.tokens.offset + 8, &id, sizeof id);
    RepairState(&state);
    ExpectRefused(state, ARN_BAD_SAVE, {"token 2", std::to_string(id), "61"});
  }
}

}  // namespace
}  // namespace arn::test

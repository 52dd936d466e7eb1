// Embeddings of images in a session: which are kept, shared and freed, and what is refused.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "platform/base/hash.h"
#include "runtime/state/state_format.h"
#include "tests/golden/vision_case.h"

namespace arn::test {
namespace {

class VisionSessionTest : public VisionGoldenTest {
 protected:
  void SetUp() override {
    VisionGoldenTest::SetUp();
    if (HasFatalFailure() || IsSkipped()) return;
    rows_ = Encode(ARN_BACKEND_CPU);
  }

  arn_status Follow(arn_session* session, const std::vector<int32_t>& ids,
                    const std::vector<float>& rows, uint32_t* kept) const {
    return arn_session_follow_embeddings(session, ids.data(), ids.size(), rows.data(),
                                         rows.size() / Width(), kept);
  }
  arn_status Prefill(arn_session* session) const {
    return arn_session_prefill_embeddings(session, golden_.prompt.data(), golden_.prompt.size(),
                                          rows_.data(), n_places());
  }
  std::vector<int32_t> Decode(arn_session* session) const {
    std::vector<int32_t> ids;
    for (size_t i = 0; i < golden_.greedy.size(); ++i) {
      int32_t id = -1;
      EXPECT_EQ(ARN_OK, arn_session_decode(session, &id)) << arn_session_last_error(session);
      ids.push_back(id);
    }
    return ids;
  }
  size_t Width() const { return rows_.size() / n_places(); }
  // The place of the first image's first token, and of the second's.
  size_t FirstPlace(size_t from = 0) const {
    arn_image_info info = ARN_IMAGE_INFO_INIT;
    EXPECT_EQ(ARN_OK, arn_image_get_info(model_.get(), &info));
    while (golden_.prompt[from] != info.token_id) ++from;
    return from;
  }

  std::vector<float> rows_;
};

TEST_P(VisionSessionTest, Follow_KeepsEqualImages_AndRunsWhatFollowsAChangedOne) {
  arn_session_options options = Options(ARN_BACKEND_CPU);
  options.state_snapshots = 8;  // for layers with states
  options.snapshot_every = 8;
  const SessionPtr session = NewSession(model_.get(), options);
  ASSERT_NE(nullptr, session);
  uint32_t kept = 1;
  ASSERT_EQ(ARN_OK, Follow(session.get(), golden_.prompt, rows_, &kept))
      << arn_session_last_error(session.get());
  EXPECT_EQ(0u, kept);
  ASSERT_EQ(ARN_OK, Follow(session.get(), golden_.prompt, rows_, &kept));
  EXPECT_EQ(golden_.prompt.size(), kept);
  EXPECT_EQ(golden_.greedy, Decode(session.get()));
  // The tokens that the session gives are taken again, without their rows.
  const int32_t* own = nullptr;
  uint32_t n_own = 0;
  ASSERT_EQ(ARN_OK, arn_session_tokens(session.get(), &own, &n_own));
  std::vector<int32_t> ids(own, own + n_own);
  EXPECT_LT(ids[FirstPlace()], 0);
  ids.push_back(5);
  ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), ids.data(), ids.size(), &kept))
      << arn_session_last_error(session.get());
  EXPECT_EQ(ids.size() - 1, kept);
  // Another last row: everything before it is kept, as far as the layers can go back.
  std::vector<float> changed = rows_;
  changed[changed.size() - Width()] += 1.0f;
  ASSERT_EQ(ARN_OK, Follow(session.get(), golden_.prompt, changed, &kept))
      << arn_session_last_error(session.get());
  if (SeesBothWays()) {
    EXPECT_EQ(0u, kept);  // the window no longer has what the second image needs
  } else {
    EXPECT_GT(kept, FirstPlace());
  }
  EXPECT_LT(kept, golden_.prompt.size() - 3);
  const float* logits = nullptr;
  ASSERT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
  // And back: the logits are those of the first time.
  ASSERT_EQ(ARN_OK, Follow(session.get(), golden_.prompt, rows_, &kept));
  ASSERT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
  ExpectLogits(golden_, golden_.prompt.size() - 1, logits, 3e-4);
}

// Tokens of such an image have seen its end.
TEST_P(VisionSessionTest, AChangedRow_OfAnImageSeenBothWays_RunsTheWholeImage) {
  if (!SeesBothWays()) return;
  const auto logits_of = [](arn_session* session) {
    const float* logits = nullptr;
    EXPECT_EQ(ARN_OK, arn_session_logits(session, &logits));
    return std::vector<float>(logits, logits + 509);
  };
  std::vector<float> changed = rows_;
  changed.back() += 1.0f;
  arn_session_options options = Options(ARN_BACKEND_CPU);
  options.prefill_chunk = 64;
  const SessionPtr fresh = NewSession(model_.get(), options);
  const SessionPtr session = NewSession(model_.get(), options);
  uint32_t kept = 1;
  ASSERT_EQ(ARN_OK, Follow(fresh.get(), golden_.prompt, changed, &kept));
  ASSERT_EQ(ARN_OK, Follow(session.get(), golden_.prompt, rows_, &kept));
  const std::vector<float> before = logits_of(session.get());
  ASSERT_EQ(ARN_OK, Follow(session.get(), golden_.prompt, changed, &kept));
  const size_t first_text = golden_.prompt.size() - 3;
  EXPECT_LE(kept, first_text - n_places() / 2);
  const std::vector<float> expected = logits_of(fresh.get()), found = logits_of(session.get());
  EXPECT_NE(before, found);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(expected[i], found[i], 1e-5) << i;
}

TEST_P(VisionSessionTest, Forks_ShareRows_WhichAreFreeOnceNoSequenceHasThem) {
  arn_session_options options = Options(ARN_BACKEND_CPU);
  options.max_sequences = 2;
  const SessionPtr session = NewSession(model_.get(), options);
  ASSERT_NE(nullptr, session);
  ASSERT_EQ(ARN_OK, Prefill(session.get())) << arn_session_last_error(session.get());
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
  EXPECT_EQ(golden_.greedy, Decode(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  EXPECT_EQ(ARN_CONTEXT_FULL, Prefill(session.get()));  // the fork has the rows
  EXPECT_NE(nullptr, std::strstr(arn_session_last_error(session.get()), "embedding_rows"));
  EXPECT_EQ(0u, arn_session_length(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  EXPECT_EQ(golden_.greedy, Decode(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  ASSERT_EQ(ARN_OK, Prefill(session.get()));
  EXPECT_EQ(golden_.greedy, Decode(session.get()));
}

TEST_P(VisionSessionTest, SavedSequence_GoesOnInAnotherSession) {
  arn_session_options options = Options(ARN_BACKEND_CPU);
  options.max_sequences = 2;
  options.embedding_rows = 2 * n_places();
  const SessionPtr session = NewSession(model_.get(), options);
  ASSERT_NE(nullptr, session);
  // The rows of the second sequence lie behind those of the first, which are lost.
  ASSERT_EQ(ARN_OK, Prefill(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  ASSERT_EQ(ARN_OK, Prefill(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  const std::string path = folder_ / "images.state";
  ASSERT_EQ(ARN_OK, arn_session_save(session.get(), path.c_str()))
      << arn_session_last_error(session.get());
  const SessionPtr other = NewSession(model_.get(), options);
  ASSERT_NE(nullptr, other);
  ASSERT_EQ(ARN_OK, arn_session_restore(other.get(), path.c_str(), nullptr))
      << arn_session_last_error(other.get());
  EXPECT_EQ(1u, arn_session_selected(other.get()));
  uint32_t kept = 0;
  ASSERT_EQ(ARN_OK, Follow(other.get(), golden_.prompt, rows_, &kept));
  EXPECT_EQ(golden_.prompt.size(), kept);
  EXPECT_EQ(golden_.greedy, Decode(other.get()));
  // Rows are free again where no sequence holds them.
  ASSERT_EQ(ARN_OK, arn_session_select(other.get(), 0));
  ASSERT_EQ(ARN_OK, Prefill(other.get())) << arn_session_last_error(other.get());
  EXPECT_EQ(golden_.greedy, Decode(other.get()));

  options.embedding_rows = 2 * n_places() - 1;
  const SessionPtr small = NewSession(model_.get(), options);
  ASSERT_NE(nullptr, small);
  EXPECT_EQ(ARN_CONTEXT_FULL, arn_session_restore(small.get(), path.c_str(), nullptr));
  EXPECT_NE(nullptr, std::strstr(arn_session_last_error(small.get()), "embedding_rows"));
  ASSERT_EQ(ARN_OK, Prefill(small.get()));
  EXPECT_EQ(golden_.greedy, Decode(small.get()));
}

// A state's hashes are repaired behind a change, so that its values are what is looked at.
TEST_P(VisionSessionTest, SavedSequence_WithWrongRows_IsRefused) {
  const SessionPtr session = NewSession(model_.get(), Options(ARN_BACKEND_CPU));
  ASSERT_NE(nullptr, session);
  ASSERT_EQ(ARN_OK, Prefill(session.get()));
  const std::filesystem::path path = folder_ / "wrong.state";
  ASSERT_EQ(ARN_OK, arn_session_save(session.get(), path.c_str()));
  const std::vector<uint8_t> state = ReadFile(path);
  StateHeader header;
  std::memcpy(&header, state.data(), sizeof header);
  EXPECT_EQ(kStateVersion, header.version);
  const auto restore = [&](const StateHeader& changed, std::vector<uint8_t> bytes) {
    StateHeader repaired = changed;
    repaired.tokens.hash =
        Xxh64(bytes.data() + header.tokens.offset, static_cast<size_t>(header.tokens.bytes));
    repaired.header_hash = Xxh64(&repaired, offsetof(StateHeader, header_hash));
    std::memcpy(bytes.data(), &repaired, sizeof repaired);
    WriteFile(path, bytes.data(), bytes.size());
    return arn_session_restore(session.get(), path.c_str(), nullptr);
  };
  ASSERT_EQ(ARN_OK, restore(header, state)) << arn_session_last_error(session.get());
  std::vector<uint8_t> changed = state;
  const auto id = -static_cast<int32_t>(n_places()) - 1;
  std::memcpy(changed.data() + header.tokens.offset, &id, sizeof id);
  EXPECT_EQ(ARN_BAD_SAVE, restore(header, changed));
  EXPECT_NE(nullptr, std::strstr(arn_session_last_error(session.get()), "embeddings"));
  StateHeader old = header;
  old.version = kTextStateVersion;
  EXPECT_EQ(ARN_BAD_SAVE, restore(old, state));
  if (arn_image_info info = ARN_IMAGE_INFO_INIT; std::strstr(GetParam(), "pixel_budget")) {
    ASSERT_EQ(ARN_OK, arn_image_get_info(model_.get(), &info));
    changed = state;
    const float row = 1e9f;  // of the last embedding's place
    std::memcpy(changed.data() + header.tokens.offset + header.tokens.bytes - 3 * sizeof row, &row,
                sizeof row);
    EXPECT_EQ(ARN_BAD_SAVE, restore(header, changed));
    EXPECT_NE(nullptr, std::strstr(arn_session_last_error(session.get()), "place"));
  }
  // What it had is still there.
  EXPECT_EQ(golden_.greedy, Decode(session.get()));
}

// Keys of the first layer depend on a token and its position alone. After a shift they are those of
// a session that only had the tokens that are left, in whatever place the cut fell in an image.
TEST_P(VisionSessionTest, ShiftedContext_TokensHaveThePositionsOfWhatIsLeft) {
  if (std::strcmp(GetParam(), "pixel_budget_attention") != 0) return;
  const auto layer_keys = [&](arn_session* session, uint32_t n) {
    arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
    EXPECT_EQ(ARN_OK, arn_session_kv_layer(session, 0, &info));
    std::vector<float> keys(size_t{info.n_kv_heads} * n * info.head_dim);
    EXPECT_EQ(ARN_OK, arn_session_read_kv(session, 0, 0, n, keys.data(), nullptr));
    return keys;
  };
  std::vector<size_t> cuts;
  for (const uint32_t before : {0u, 5u, 11u, 16u, 25u, 34u, 40u}) {
    SCOPED_TRACE(before);
    std::vector<int32_t> prompt(before, 9);
    prompt.insert(prompt.end(), golden_.prompt.begin(), golden_.prompt.end());
    arn_session_options options = Options(ARN_BACKEND_CPU);
    options.overflow = ARN_OVERFLOW_SHIFT;
    options.context_tokens = 96;
    options.pinned_tokens = before == 40 ? 32 : 0;
    const SessionPtr session = NewSession(model_.get(), options);
    ASSERT_NE(nullptr, session);
    ASSERT_EQ(ARN_OK, arn_session_prefill_embeddings(session.get(), prompt.data(), prompt.size(),
                                                     rows_.data(), n_places()))
        << arn_session_last_error(session.get());
    const int32_t word = 31;
    uint32_t length = 0;
    do {
      length = arn_session_length(session.get());
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), &word, 1));
    } while (arn_session_length(session.get()) > length);
    length = arn_session_length(session.get());
    const int32_t* own = nullptr;
    uint32_t n_own = 0;
    ASSERT_EQ(ARN_OK, arn_session_tokens(session.get(), &own, &n_own));
    ASSERT_EQ(length, n_own);
    std::vector<int32_t> left(own, own + n_own);
    const auto n_rows = std::count_if(left.begin(), left.end(), [](int32_t id) { return id < 0; });
    cuts.push_back(static_cast<size_t>(n_rows));
    const std::vector<float> rows(rows_.end() - n_rows * static_cast<ptrdiff_t>(Width()),
                                  rows_.end());
    const SessionPtr fresh = NewSession(model_.get(), options);
    ASSERT_EQ(ARN_OK, arn_session_prefill_embeddings(fresh.get(), left.data(), left.size(),
                                                     rows.data(), static_cast<size_t>(n_rows)));
    const std::vector<float> expected = layer_keys(fresh.get(), length);
    const std::vector<float> found = layer_keys(session.get(), length);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(expected[i], found[i], 2e-5) << i;
  }
  // Some cuts fell before the first image, in it, and behind it.
  EXPECT_NE(std::count(cuts.begin(), cuts.end(), n_places()), 0);
  EXPECT_NE(
      std::count_if(cuts.begin(), cuts.end(), [&](size_t n) { return n > 9 && n < n_places(); }),
      0);
}

TEST_P(VisionSessionTest, AnEmbeddingWithoutAPlace_IsRefused) {
  if (std::strncmp(GetParam(), "pixel_budget", 12) != 0) return;
  const SessionPtr session = NewSession(model_.get(), Options(ARN_BACKEND_CPU));
  ASSERT_NE(nullptr, session);
  for (const float bad : {-1.0f, 0.5f, 70000.0f, std::nanf(""), HUGE_VALF}) {
    for (const size_t behind : {1u, 2u, 3u}) {  // span, column and row
      std::vector<float> rows = rows_;
      rows[rows.size() - behind] = bad;
      EXPECT_EQ(ARN_BAD_ARGUMENT,
                arn_session_prefill_embeddings(session.get(), golden_.prompt.data(),
                                               golden_.prompt.size(), rows.data(), n_places()));
      EXPECT_NE(nullptr, std::strstr(arn_session_last_error(session.get()), "place in an image"));
      EXPECT_EQ(0u, arn_session_length(session.get()));
    }
  }
  ASSERT_EQ(ARN_OK, Prefill(session.get()));
}

TEST_P(VisionSessionTest, PenaltiesAndGuesses_WorkBesideImages) {
  arn_session_options options = Options(ARN_BACKEND_CPU);
  const bool has_states =
      std::strcmp(GetParam(), "token_budget") == 0 || std::strcmp(GetParam(), "pixel_budget") == 0;
  if (!has_states) {  // they take no guesses
    options.speculation = ARN_SPECULATE_NGRAM;
    options.guess_always = 1;
  }
  options.logits_processors = 1;
  const SessionPtr session = NewSession(model_.get(), options);
  ASSERT_NE(nullptr, session);
  ASSERT_EQ(ARN_OK, Prefill(session.get()));
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.max_tokens = static_cast<uint32_t>(golden_.greedy.size());
  generate.ignore_eos = 1;
  std::vector<int32_t> ids(golden_.greedy.size());
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  ASSERT_EQ(ARN_OK, arn_session_generate(session.get(), &generate, &result))
      << arn_session_last_error(session.get());
  const int32_t* own = nullptr;
  uint32_t n_own = 0;
  ASSERT_EQ(ARN_OK, arn_session_tokens(session.get(), &own, &n_own));
  EXPECT_EQ(golden_.greedy, std::vector<int32_t>(own + golden_.prompt.size(), own + n_own));
  // A penalty reads the history, in which images are their token.
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.repetition_penalty = 8.0f;
  sampling.no_repeat_ngram_size = 2;
  sampling.dry_multiplier = 0.5f;
  ASSERT_EQ(ARN_OK, arn_session_set_sampling(session.get(), &sampling))
      << arn_session_last_error(session.get());
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  ASSERT_EQ(ARN_OK, Prefill(session.get()));
  EXPECT_NE(golden_.greedy, Decode(session.get()));
}

#ifndef ARENITE_NO_SCHEDULER
// Prompts with images run by themselves, beside texts in the same steps; a second turn keeps them.
TEST_P(VisionSessionTest, Scheduler_AnswersImagesBesideTexts) {
  arn_session_options options = Options(ARN_BACKEND_CPU);
  options.max_sequences = 3;
  options.embedding_rows *= 2;
  options.max_requests = 4;
  options.state_snapshots = 8;  // for layers with states
  options.snapshot_every = 8;
  const SessionPtr session = NewSession(model_.get(), options);
  arn_scheduler* scheduler = nullptr;
  ASSERT_EQ(ARN_OK, arn_scheduler_create(session.get(), nullptr, nullptr, 0, &scheduler));
  std::vector<float> changed = rows_;
  changed[0] += 1.0f;
  const std::vector<int32_t> text = {3, 1, 4, 1, 5, 9, 2, 6};
  struct Reply {
    std::vector<int32_t> ids;
    uint32_t n_kept = 0;
  } replies[4];
  const auto submit = [&](const std::vector<int32_t>& ids, const std::vector<float>* rows,
                          Reply* reply) {
    arn_request request = ARN_REQUEST_INIT;
    request.ids = ids.data();
    request.n_ids = ids.size();
    if (rows != nullptr) request.embeddings = rows->data();
    if (rows != nullptr) request.n_embeddings = n_places();
    request.max_tokens = static_cast<uint32_t>(golden_.greedy.size());
    request.ignore_eos = 1;
    request.user = reply;
    uint64_t number = 0;
    EXPECT_EQ(ARN_OK, arn_scheduler_submit(scheduler, &request, &number))
        << arn_scheduler_last_error(scheduler);
  };
  const auto run = [&] {
    arn_step_result result = ARN_STEP_RESULT_INIT;
    do {
      ASSERT_EQ(ARN_OK, arn_scheduler_step(scheduler, &result))
          << arn_scheduler_last_error(scheduler);
      arn_scheduler_event event = ARN_SCHEDULER_EVENT_INIT;
      while (arn_scheduler_next_event(scheduler, &event) == ARN_OK) {
        auto* reply = static_cast<Reply*>(event.user);
        EXPECT_EQ(ARN_OK, event.status) << std::string(event.text, event.text_bytes);
        reply->n_kept = event.n_kept;
        if (event.kind == ARN_REQUEST_EVENT_TOKEN) reply->ids.push_back(event.id);
      }
    } while (result.n_running + result.n_waiting > 0);
  };
  submit(golden_.prompt, &rows_, &replies[0]);
  submit(text, nullptr, &replies[1]);
  submit(golden_.prompt, &changed, &replies[2]);
  run();
  EXPECT_EQ(golden_.greedy, replies[0].ids);
  const SessionPtr alone = NewSession(model_.get(), Options(ARN_BACKEND_CPU));
  ASSERT_EQ(ARN_OK, arn_session_prefill(alone.get(), text.data(), text.size()));
  EXPECT_EQ(Decode(alone.get()), replies[1].ids);
  uint32_t kept = 0;
  ASSERT_EQ(ARN_OK, Follow(alone.get(), golden_.prompt, changed, &kept));
  EXPECT_EQ(Decode(alone.get()), replies[2].ids);
  submit(golden_.prompt, &rows_, &replies[3]);
  run();
  EXPECT_EQ(golden_.greedy, replies[3].ids);
  if (!SeesBothWays()) {
    EXPECT_GT(replies[3].n_kept, 0u);
  }
  arn_scheduler_destroy(scheduler);
}
#endif

TEST_P(VisionSessionTest, Refusals_SayWhy_AndChangeNothing) {
  const SessionPtr session = NewSession(model_.get(), Options(ARN_BACKEND_CPU));
  ASSERT_NE(nullptr, session);
  const auto& prompt = golden_.prompt;
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_session_prefill_embeddings(session.get(), prompt.data(), prompt.size(),
                                           rows_.data(), n_places() - 1));
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_session_prefill_embeddings(session.get(), prompt.data(), 1, rows_.data(), 1));
  std::vector<int32_t> bad = prompt;
  bad.back() = 100000;
  EXPECT_EQ(ARN_BAD_TOKEN, arn_session_prefill_embeddings(session.get(), bad.data(), bad.size(),
                                                          rows_.data(), n_places()));
  const int32_t below = -1;
  EXPECT_EQ(ARN_BAD_TOKEN, arn_session_prefill(session.get(), &below, 1));
  EXPECT_EQ(ARN_BAD_TOKEN, arn_session_follow(session.get(), &below, 1, nullptr));
  EXPECT_EQ(0u, arn_session_length(session.get()));
  ASSERT_EQ(ARN_OK, Prefill(session.get()));
  arn_session_options options = Options(ARN_BACKEND_CPU);
  options.embedding_rows = 0;
  const SessionPtr without = NewSession(model_.get(), options);
  ASSERT_NE(nullptr, without);
  EXPECT_EQ(ARN_BAD_STATE, Prefill(without.get()));
  options.embedding_rows = UINT32_MAX;
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_plan(model_.get(), &options, nullptr, 0, &plan));
  options.embedding_rows = 7;
  ASSERT_EQ(ARN_OK, arn_session_plan(model_.get(), &options, nullptr, 0, &plan));
  EXPECT_EQ(7u, plan.embedding_rows);
  EXPECT_GE(plan.embeddings_bytes, 7 * Width() * sizeof(float));
}

TEST_P(VisionSessionTest, Encoder_TakesCallersMemory_IsCancelled_AndRefusesWhatDoesNotFit) {
  arn_image_options options = ARN_IMAGE_OPTIONS_INIT;
  options.max_side = 100;
  arn_image_plan_data plan = ARN_IMAGE_PLAN_DATA_INIT;
  ASSERT_EQ(ARN_OK, arn_image_plan(model_.get(), &options, nullptr, 0, &plan));
  EXPECT_EQ(plan.total_bytes, plan.constants_bytes + plan.activations_bytes + plan.io_bytes);
  std::vector<std::byte> memory(plan.total_bytes + plan.alignment);
  const auto base = reinterpret_cast<uintptr_t>(memory.data());
  std::byte* block = memory.data() + (plan.alignment - base % plan.alignment);
  char error[256] = "";
  arn_image_encoder* encoder = nullptr;
  EXPECT_EQ(ARN_OUT_OF_MEMORY,
            arn_image_encoder_create(model_.get(), &options, block, plan.total_bytes - 1, error,
                                     sizeof error, &encoder));
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_image_encoder_create(model_.get(), &options, block + 1, plan.total_bytes, error,
                                     sizeof error, &encoder));
  ASSERT_EQ(ARN_OK, arn_image_encoder_create(model_.get(), &options, block, plan.total_bytes, error,
                                             sizeof error, &encoder))
      << error;
  const ImageEncoderPtr owner(encoder, &arn_image_encoder_destroy);
  std::vector<float> out(rows_.size());
  uint32_t n = 0;
  arn_image view = images_[0].view();
  arn_image_encoder_cancel(encoder);
  EXPECT_EQ(ARN_CANCELLED, arn_image_encode(encoder, &view, out.data(), out.size(), &n));
  ASSERT_EQ(ARN_OK, arn_image_encode(encoder, &view, out.data(), out.size(), &n));
  EXPECT_EQ(0, std::memcmp(out.data(), rows_.data(), n * Width() * sizeof(float)));
  EXPECT_EQ(ARN_BUFFER_TOO_SMALL, arn_image_encode(encoder, &view, out.data(), 5, &n));
  view.stride = 3;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_image_encode(encoder, &view, out.data(), out.size(), &n));
  const RgbImage large = GoldenImage(101, 3, 0);
  view = large.view();
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_image_encode(encoder, &view, out.data(), out.size(), &n));
  EXPECT_NE(nullptr, std::strstr(arn_image_encoder_last_error(encoder), "max_side"));
  options.backend = 99;
  EXPECT_EQ(ARN_UNSUPPORTED, arn_image_plan(model_.get(), &options, error, sizeof error, &plan));
  EXPECT_STREQ("backend is 99, expected ARN_BACKEND_...", error);
}

TEST_P(VisionSessionTest, Expand_ReplacesMarkers_ButNotThoseOfUsers) {
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_image_get_info(model_.get(), &info));
  const std::string mark = info.marker, text = "a" + mark + "b " + mark + " c" + mark;
  const arn_text_span plain[] = {{1 + mark.size(), 1 + 1 + mark.size() + 1}};
  const arn_image_size sizes[] = {{images_[0].width, images_[0].height},
                                  {images_[1].width, images_[1].height}};
  std::string out(1 << 16, '\0');
  arn_text_span moved[1] = {};
  size_t bytes = 0;
  char error[256] = "";
  ASSERT_EQ(ARN_OK, arn_image_expand(model_.get(), sizes, 2, text.data(), text.size(), plain, 1,
                                     error, sizeof error, out.data(), out.size(), &bytes, moved))
      << error;
  const std::string first = json_.at("texts")[0], second = json_.at("texts")[1];
  EXPECT_EQ("a" + first + "b " + mark + " c" + second, out.substr(0, bytes));
  EXPECT_EQ(1 + first.size(), moved[0].offset);
  EXPECT_EQ(plain[0].bytes, moved[0].bytes);
  EXPECT_EQ(ARN_BUFFER_TOO_SMALL,
            arn_image_expand(model_.get(), sizes, 2, text.data(), text.size(), plain, 1, error,
                             sizeof error, out.data(), 3, &bytes, moved));
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_image_expand(model_.get(), sizes, 1, text.data(), text.size(), plain, 1, error,
                             sizeof error, out.data(), out.size(), &bytes, moved));
  EXPECT_NE(nullptr, std::strstr(error, "1 images for 2 markers")) << error;
}

// int8 and int4 towers stay close to the f32 one.
TEST_P(VisionSessionTest, QuantisedTowers_StayClose) {
  for (const char* weights : {"int8", "int4"}) {
    ASSERT_TRUE(Make(weights));
    const std::vector<float> rows = Encode(ARN_BACKEND_CPU);
    ASSERT_EQ(rows_.size(), rows.size());
    double dot = 0, a = 0, b = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto x = static_cast<double>(rows[i]), y = static_cast<double>(rows_[i]);
      dot += x * y;
      a += x * x;
      b += y * y;
    }
    EXPECT_GT(dot / std::sqrt(a * b), 0.995) << weights;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, VisionSessionTest,
                         testing::Values("squares_and_whole", "mean_both_ways", "token_budget",
                                         "pixel_budget", "pixel_budget_attention",
                                         "pixel_budget_deepstack", "patch_budget_both_ways"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace arn::test

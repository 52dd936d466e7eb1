// Calls of a soak that must be refused: each has one status, says why, and changes no sequence.
#include <limits>

#include "tests/trust/soak.h"

namespace arn::test {

// Tokens that do not exist, or do not fit. Returns the expected status if the call gave it.
arn_status Soak::RefusedTokens() {
  arn_session* const session = session_.get();
  std::vector<int32_t> ids = NewIds(1 + Below(20));
  switch (Below(6)) {
    case 0: {
      const int32_t wrong[] = {-1, static_cast<int32_t>(kSoakVocab), INT32_MIN, INT32_MAX};
      ids[Below(static_cast<uint32_t>(ids.size()))] = wrong[Below(4)];
      const bool follows = Below(2) == 0;
      const arn_status status = follows
                                    ? arn_session_follow(session, ids.data(), ids.size(), nullptr)
                                    : arn_session_prefill(session, ids.data(), ids.size());
      EXPECT_EQ(ARN_BAD_TOKEN, status);
      return status;
    }
    case 1: {
      const arn_status status = arn_session_prefill(session, ids.data(), 0);
      EXPECT_EQ(ARN_BAD_ARGUMENT, status);
      return status;
    }
    case 2: {
      EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_prefill(session, nullptr, ids.size()));
      return ARN_OK;  // a null pointer has no sentence
    }
    case 3: {
      ids = NewIds(kSoakContext + 1 + Below(20));
      const arn_status status = arn_session_follow(session, ids.data(), ids.size(), nullptr);
      EXPECT_EQ(ARN_CONTEXT_FULL, status);
      return status;
    }
    case 4: {
      if (kind_.overflow == ARN_OVERFLOW_SHIFT) return ARN_OK;  // makes room instead
      ids = NewIds(kSoakContext + 1 - static_cast<uint32_t>(selected().ids.size()) + Below(20));
      const arn_status status = arn_session_prefill(session, ids.data(), ids.size());
      EXPECT_EQ(ARN_CONTEXT_FULL, status);
      return status;
    }
    default: {
      const float* logits = nullptr;  // without all_logits
      const arn_status status =
          arn_session_prefill_logits(session, ids.data(), ids.size(), &logits);
      EXPECT_NE(ARN_OK, status);
      return status;
    }
  }
}

// Sequences that do not exist, are named twice, or are in use.
arn_status Soak::RefusedSequences() {
  arn_session* const session = session_.get();
  const uint32_t none = kSoakSequences + Below(2) * 1000000;
  const std::vector<int32_t> ids = NewIds(2);
  switch (Below(6)) {
    case 0: {
      const arn_status status = arn_session_select(session, none);
      EXPECT_EQ(ARN_BAD_ARGUMENT, status);
      return status;
    }
    case 1: {
      const bool is_from = Below(2) == 0;
      const arn_status status = arn_session_fork(session, is_from ? none : 0, is_from ? 0 : none);
      EXPECT_EQ(ARN_BAD_ARGUMENT, status);
      return status;
    }
    case 2: {
      const uint32_t to = Below(kSoakSequences);
      if (sequences_[to].ids.empty() || to == selected_) return ARN_OK;
      const arn_status status = arn_session_fork(session, selected_, to);
      EXPECT_NE(ARN_OK, status);
      return status;
    }
    case 3: {
      const uint32_t twice[] = {selected_, selected_};
      const arn_status status = arn_session_step(session, twice, ids.data(), 2);
      EXPECT_EQ(ARN_BAD_ARGUMENT, status);
      return status;
    }
    case 4: {
      const uint32_t some[] = {selected_, none};
      const arn_status status = arn_session_step(session, some, ids.data(), 2);
      EXPECT_EQ(ARN_BAD_ARGUMENT, status);
      return status;
    }
    default: {
      const arn_status status = arn_session_rewind(
          session, static_cast<uint32_t>(selected().ids.size()) + 1 + Below(2) * 1000);
      EXPECT_EQ(ARN_BAD_ARGUMENT, status);
      return status;
    }
  }
}

// States that are damaged, and calls that need what the sequence has not.
arn_status Soak::RefusedState() {
  arn_session* const session = session_.get();
  switch (Below(5)) {
    case 0: {
      std::vector<uint8_t> bytes(Below(400));
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(Below(256));
      const arn_status status =
          arn_session_restore_memory(session, bytes.data(), bytes.size(), nullptr);
      EXPECT_EQ(ARN_BAD_SAVE, status);
      return status;
    }
    case 1: {
      if (saved_.empty()) return ARN_OK;
      const arn_status status = arn_session_restore_memory(
          session, saved_.data(), Below(static_cast<uint32_t>(saved_.size())), nullptr);
      EXPECT_EQ(ARN_BAD_SAVE, status);
      return status;
    }
    case 2: {
      uint8_t byte = 0;
      uint64_t bytes = 0;
      const arn_status status = arn_session_save_memory(session, &byte, 1, &bytes);
      EXPECT_EQ(ARN_BUFFER_TOO_SMALL, status);
      return status;
    }
    case 3: {
      const bool saves = Below(2) == 0;
      const std::string path = state_path_ + ".no/folder";
      const arn_status status = saves ? arn_session_save(session, path.c_str())
                                      : arn_session_restore(session, path.c_str(), nullptr);
      EXPECT_NE(ARN_OK, status);
      return status;
    }
    default: {
      if (!selected().ids.empty()) return ARN_OK;
      int32_t id = 0;
      const float* logits = nullptr;
      const arn_status status =
          Below(2) == 0 ? arn_session_decode(session, &id) : arn_session_logits(session, &logits);
      EXPECT_EQ(ARN_BAD_STATE, status);
      return status;
    }
  }
}

// Options out of their range.
arn_status Soak::RefusedOptions() {
  arn_session* const session = session_.get();
  arn_sampling sampling = ARN_SAMPLING_INIT;
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  switch (Below(5)) {
    case 0: {
      const float wrong[] = {-1, std::numeric_limits<float>::quiet_NaN(),
                             std::numeric_limits<float>::infinity()};
      sampling.temperature = wrong[Below(3)];
      const arn_status status = arn_session_set_sampling(session, &sampling);
      EXPECT_EQ(ARN_BAD_ARGUMENT, status);
      return status;
    }
    case 1: {
      sampling.struct_size = Below(4);
      const arn_status status = arn_session_set_sampling(session, &sampling);
      EXPECT_EQ(ARN_BAD_ARGUMENT, status);
      return status;
    }
    case 2: {
      generate.ignore_eos = 2;
      const arn_status status = arn_session_generate(session, &generate, nullptr);
      EXPECT_NE(ARN_OK, status);
      return status;
    }
    case 3: {
      const arn_stop_string stop = {"", 0};
      generate.stops = &stop;
      generate.n_stops = 1 + Below(2) * 16;
      const arn_status status = arn_session_generate(session, &generate, nullptr);
      EXPECT_NE(ARN_OK, status);
      return status;
    }
    default: {
      const arn_status status = arn_session_use_prefix(session);  // there is none
      EXPECT_EQ(ARN_NOT_FOUND, status);
      return status;
    }
  }
}

void Soak::Refused() {
  const uint32_t kind = Below(4);
  const arn_status status = kind == 0   ? RefusedTokens()
                            : kind == 1 ? RefusedSequences()
                            : kind == 2 ? RefusedState()
                                        : RefusedOptions();
  if (status != ARN_OK && arn_session_last_error(session_.get())[0] == '\0') {
    ADD_FAILURE() << "a refusal without a reason";
  }
  Holds(ARN_OK, "refused");
  if (testing::Test::HasFailure()) {
    ADD_FAILURE() << kind_.name << ", step " << n_steps_ << ", refusal of kind " << kind << ": "
                  << arn_status_name(status) << History();
  }
  EXPECT_EQ(selected_, arn_session_selected(session_.get()));
  for (uint32_t s = 0; s < kSoakSequences; ++s) {
    arn_session_select(session_.get(), s);
    const int32_t* ids = nullptr;
    uint32_t count = 0;
    arn_session_tokens(session_.get(), &ids, &count);
    EXPECT_EQ(sequences_[s].ids, std::vector<int32_t>(ids, ids + count))
        << kind_.name << ", step " << n_steps_ << ", sequence " << s;
  }
  arn_session_select(session_.get(), selected_);
}

}  // namespace arn::test

// Tokens sampled and run on the device ahead of the host. They equal the host's choices from the
// device's logits, and wherever a generation ends, the session is in the state of one-at-a-time
// decoding.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/state_support.h"
#include "tests/support/vulkan_session.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;
constexpr uint32_t kPrompt = 19, kMost = 29;  // whole pages in total

struct Kind {
  const char* name;
  uint32_t kv_type;
  std::vector<TinyLayer> layers;
  DType weights = DType::kF32;
};

const Kind kKinds[] = {
    {"full", ARN_KV_F32, {{}, {}}},
    {"window", ARN_KV_INT8, {{12}, {}, {12}}},
    {"quantised", ARN_KV_INT4, {{}, {20}}},
    // One step per call: a state cannot be rewound.
    {"states", ARN_KV_F32, {{0, 0, -1, TinyMixer::kScan}, {}, {0, 0, -1, TinyMixer::kScan}}},
    // Attention ends another dispatch in a short context.
    {"integers", ARN_KV_INT8, {{}, {}}, DType::kInt8},
};
constexpr uint32_t kStates = 3;

arn_sampling Sampling(float temperature, uint64_t seed) {
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = temperature;
  sampling.seed = seed;
  if (seed % 3 == 1) sampling.top_k = 20;
  if (seed % 3 == 2) sampling.top_p = 0.9f;
  return sampling;
}

// Records callback calls and controls the callback.
struct Caller {
  std::vector<int32_t> ids;
  arn_session* session = nullptr;
  size_t stop_after = SIZE_MAX, cancel_after = SIZE_MAX;
  std::vector<float> logits;  // of the last call
  std::vector<uint32_t> lengths;
};

int32_t Seen(void* user, int32_t id, const char*, size_t) {
  auto& caller = *static_cast<Caller*>(user);
  caller.ids.push_back(id);
  const float* logits = nullptr;
  EXPECT_EQ(ARN_OK, arn_session_logits(caller.session, &logits));
  if (logits != nullptr) caller.logits.assign(logits, logits + kVocab);
  caller.lengths.push_back(arn_session_length(caller.session));
  if (caller.ids.size() == caller.cancel_after) arn_session_cancel(caller.session);
  return caller.ids.size() == caller.stop_after ? 1 : 0;
}

// All observable state of a session; a saved state holds the logits and the random state.
struct Left {
  arn_status status = ARN_OK;
  uint32_t n_tokens = 0, finish = 0;
  std::vector<int32_t> ids, tokens, next;
  std::vector<uint32_t> lengths;
  std::vector<float> seen_logits, logits;
  uint64_t kv_bytes = 0;
  uint64_t decoded = 0, kv_read = 0, weights_read = 0;
};

void ExpectEqual(const Left& a, const Left& b) {
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.n_tokens, b.n_tokens);
  EXPECT_EQ(a.finish, b.finish);
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.lengths, b.lengths);
  EXPECT_EQ(a.seen_logits, b.seen_logits);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.logits, b.logits);
  EXPECT_EQ(a.kv_bytes, b.kv_bytes);
  EXPECT_EQ(a.next, b.next);
  EXPECT_EQ(a.decoded, b.decoded);
  EXPECT_EQ(a.kv_read, b.kv_read);
  EXPECT_EQ(a.weights_read, b.weights_read);
}

TinyBundle Bundle(const Kind& kind) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.max_context = 512;
  bundle.layer_kinds = kind.layers;
  bundle.weights = kind.weights;
  bundle.layers = static_cast<uint32_t>(bundle.layer_kinds.size());
  return bundle;
}

class AheadTest : public OnVulkan<testing::TestWithParam<uint32_t>> {
 protected:
  AheadTest() : OnVulkan(Bundle(kKinds[GetParam()])) {}

  // prefill_chunk limits the steps per submission; 1 is one at a time.
  arn_session_options Options(uint32_t at_once) const {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.backend = ARN_BACKEND_VULKAN;
    options.kv_type = kKinds[GetParam()].kv_type;
    options.n_threads = 1;
    options.context_tokens = 64;
    options.kv_page_tokens = 8;
    options.prefill_chunk = at_once;
    options.trust_device = 1;
    if (options.kv_type == ARN_KV_INT4) options.kv_residual = 16;
    return options;
  }

  SessionPtr New(uint32_t at_once) { return NewSession(model_.get(), Options(at_once)); }

  static void Begin(arn_session* session, const arn_sampling& sampling) {
    EXPECT_EQ(ARN_OK, arn_session_reset(session));
    // Token by token for any chunk size: runs of several rows sum in another order.
    for (const int32_t id : SomeIds(kPrompt, kVocab)) {
      EXPECT_EQ(ARN_OK, arn_session_prefill(session, &id, 1));
    }
    EXPECT_EQ(ARN_OK, arn_session_set_sampling(session, &sampling));
    EXPECT_EQ(ARN_OK, arn_session_reset_stats(session));
  }

  static Left Generate(arn_session* session, const arn_generate_options& wanted, Caller caller) {
    Left left;
    caller.session = session;
    arn_generate_options options = wanted;
    options.callback = Seen;
    options.user = &caller;
    arn_generate_result result = ARN_GENERATE_RESULT_INIT;
    left.status = arn_session_generate(session, &options, &result);
    left.n_tokens = result.n_tokens;
    left.finish = result.finish;
    left.ids = caller.ids;
    left.lengths = caller.lengths;
    left.seen_logits = caller.logits;
    left.tokens = TokensOf(session);
    arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
    EXPECT_EQ(ARN_OK, arn_session_stats(session, &stats));
    left.kv_bytes = stats.kv_used_bytes;
    left.decoded = stats.decode_tokens;
    left.kv_read = stats.kv_bytes_read;
    left.weights_read = stats.weight_bytes_read;
    const float* logits = nullptr;
    if (arn_session_logits(session, &logits) == ARN_OK) {
      left.logits.assign(logits, logits + kVocab);
      const uint32_t room = 64 - arn_session_length(session);
      left.next = Decode(session, std::min(room, 5u));
    }
    return left;
  }
};

arn_generate_options AtMost(uint32_t n) {
  arn_generate_options options = ARN_GENERATE_OPTIONS_INIT;
  options.max_tokens = n;
  options.ignore_eos = 1;
  return options;
}

std::vector<float> LogitsOf(arn_session* session) {
  const float* logits = nullptr;
  EXPECT_EQ(ARN_OK, arn_session_logits(session, &logits)) << arn_session_last_error(session);
  return std::vector<float>(logits, logits + kVocab);
}

TEST_P(AheadTest, Generated_AreWhatTheHostChooses) {
  const SessionPtr ahead = New(32), single = New(32), host = New(32);
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const arn_sampling sampling = Sampling(seed == 0 ? 0.0f : 1.0f, seed);
    for (const SessionPtr* session : {&ahead, &single, &host}) Begin(session->get(), sampling);
    const Left left = Generate(ahead.get(), AtMost(kMost), {});
    EXPECT_EQ(kMost, left.n_tokens);
    EXPECT_EQ(Decode(single.get(), kMost), left.ids);
    std::vector<int32_t> ids(kMost);
    for (int32_t& id : ids) {
      ASSERT_EQ(ARN_OK, arn_session_sample(host.get(), &id));
      ASSERT_EQ(ARN_OK, arn_session_prefill(host.get(), &id, 1));
    }
    EXPECT_EQ(ids, left.ids);
    // Of one session the tokens count as generated, of the other as prefilled: all are a prompt
    // now.
    for (const SessionPtr* session : {&single, &host}) {
      const int32_t* tokens = nullptr;
      uint32_t n = 0;
      ASSERT_EQ(ARN_OK, arn_session_tokens(session->get(), &tokens, &n));
      const std::vector<int32_t> all(tokens, tokens + n);
      ASSERT_EQ(ARN_OK, arn_session_follow(session->get(), all.data(), all.size(), nullptr));
    }
    // A saved state includes the logits and the random state. Slots of recurrent states may differ
    // in bytes but must give the same tokens.
    EXPECT_TRUE(GetParam() == kStates || Save(single.get()) == Save(host.get()));
    EXPECT_EQ(Decode(single.get(), 5), Decode(host.get(), 5));
    EXPECT_EQ(LogitsOf(single.get()), LogitsOf(host.get()));
  }
}

TEST_P(AheadTest, StoppedAnywhere_TheSessionIsAsOneAtATime) {
  const SessionPtr ahead = New(32), single = New(1);
  for (const uint64_t seed : {0u, 1u, 2u}) {
    const arn_sampling sampling = Sampling(seed == 0 ? 0.0f : 1.0f, seed);
    const auto compare = [&](const char* how, const arn_generate_options& options,
                             const Caller& caller) {
      SCOPED_TRACE(testing::Message() << how << ", seed " << seed);
      Begin(ahead.get(), sampling);
      Begin(single.get(), sampling);
      const Left one = Generate(single.get(), options, caller);
      ExpectEqual(one, Generate(ahead.get(), options, caller));
      return one;
    };
    const Left whole = compare("full context", AtMost(0), {});
    EXPECT_EQ(uint32_t{ARN_FINISH_CONTEXT}, whole.finish);
    EXPECT_EQ(64 - kPrompt + 1, whole.n_tokens);
    for (const uint32_t n : {1u, 2u, 3u, 5u, 14u}) {
      compare("max_tokens", AtMost(n), {});
      Caller caller;
      caller.stop_after = n;
      EXPECT_EQ(n, compare("callback", AtMost(0), caller).n_tokens);
      caller.stop_after = SIZE_MAX;
      caller.cancel_after = n;
      const Left cut = compare("cancel", AtMost(0), caller);
      EXPECT_EQ(ARN_CANCELLED, cut.status);
      // The logits and the random state are those before the token that did not run.
      const auto first = whole.ids.begin() + static_cast<ptrdiff_t>(cut.n_tokens);
      EXPECT_EQ(std::vector<int32_t>(first, first + 5), cut.next);
      arn_generate_options options = AtMost(0);
      options.ignore_eos = 0;
      options.extra_eos_ids = &whole.ids[n];
      options.n_extra_eos_ids = 1;
      const Left ended = compare("end token", options, {});
      EXPECT_EQ(uint32_t{ARN_FINISH_EOS}, ended.finish);
      EXPECT_GE(n, ended.n_tokens);
    }
  }
}

TEST_P(AheadTest, ContextThatShifts_TheSessionIsAsOneAtATime) {
  if (GetParam() == kStates) GTEST_SKIP() << "states cannot be shifted";
  const arn_sampling sampling = Sampling(1.0f, 5);
  Left left[2];
  for (const uint32_t i : {0u, 1u}) {
    arn_session_options options = Options(i == 0 ? 1 : 32);
    options.overflow = ARN_OVERFLOW_SHIFT;
    options.pinned_tokens = 8;
    const SessionPtr session = NewSession(model_.get(), options);
    Begin(session.get(), sampling);
    left[i] = Generate(session.get(), AtMost(90), {});
    EXPECT_EQ(90u, left[i].n_tokens);
  }
  ExpectEqual(left[0], left[1]);
}

// Attention over more than 256 positions is split into segments, and the number of segments changes
// during the steps in flight.
TEST_P(AheadTest, LongerThanASegment_AreWhatOneAtATimeGives) {
  arn_session_options options = Options(32);
  options.context_tokens = 320;
  const SessionPtr ahead = NewSession(model_.get(), options);
  const SessionPtr single = NewSession(model_.get(), options);
  const std::vector<int32_t> prompt = SomeIds(245, kVocab);
  for (arn_session* session : {ahead.get(), single.get()}) {
    ASSERT_EQ(ARN_OK, arn_session_prefill(session, prompt.data(), prompt.size()));
  }
  const Left left = Generate(ahead.get(), AtMost(29), {});
  EXPECT_EQ(Decode(single.get(), 29), left.ids);
  EXPECT_EQ(LogitsOf(single.get()), left.logits);
}

// Cancelled before the start, with the first token already sampled.
TEST_P(AheadTest, CancelledBefore_TheSessionIsAsOneAtATime) {
  const arn_sampling sampling = Sampling(1.0f, 4);
  Left left[2];
  for (const uint32_t i : {0u, 1u}) {
    const SessionPtr session = New(i == 0 ? 1 : 32);
    Begin(session.get(), sampling);
    arn_session_cancel(session.get());
    left[i] = Generate(session.get(), AtMost(9), {});
    EXPECT_EQ(ARN_CANCELLED, left[i].status);
  }
  ExpectEqual(left[0], left[1]);
}

// Stops a generation with steps in flight, then calls everything that reads or replaces logits.
TEST_P(AheadTest, AfterAStop_LogitsAreFoundWhereverTheyAre) {
  const arn_sampling sampling = Sampling(1.0f, 3);
  Caller caller;
  caller.stop_after = 5;
  std::vector<std::vector<uint8_t>> states;
  std::vector<int32_t> ids[2];
  for (const uint32_t i : {0u, 1u}) {
    const SessionPtr session = New(i == 0 ? 1 : 32);
    Begin(session.get(), sampling);
    Caller same = caller;
    same.session = session.get();
    arn_generate_options options = AtMost(0);
    options.callback = Seen;
    options.user = &same;
    ASSERT_EQ(ARN_OK, arn_session_generate(session.get(), &options, nullptr));
    states.push_back(Save(session.get()));
    ASSERT_EQ(ARN_OK, Restore(session.get(), states[0]));  // logits in host memory
    ids[i] = Decode(session.get(), 5);
    arn_beam_options beams = ARN_BEAM_OPTIONS_INIT;
    beams.num_beams = 1;
    beams.max_tokens = 4;
    ASSERT_EQ(ARN_OK, arn_session_beam_search(session.get(), &beams, nullptr));
    std::vector<int32_t> found(4);
    size_t n = found.size();
    ASSERT_EQ(ARN_OK, arn_session_beam(session.get(), 0, found.data(), found.size(), &n, nullptr));
    ids[i].insert(ids[i].end(), found.begin(), found.begin() + static_cast<ptrdiff_t>(n));
  }
  EXPECT_EQ(ids[0], ids[1]);
}

INSTANTIATE_TEST_SUITE_P(VulkanKinds, AheadTest, testing::Values(0u, 1u, 2u, kStates, 4u),
                         [](const auto& p) { return std::string(kKinds[p.param].name); });

}  // namespace
}  // namespace arn::test

// Checks that nothing allocates after a session is created.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "converter/chat/compile.h"
#include "tests/memory/allocation_trap.h"
#include "tests/support/prefix_support.h"
#include "tests/support/print_params.h"
#include "tests/support/session_support.h"
#include "tests/support/tiny_adapter.h"

namespace arn::test {
namespace {

// Checks that the trap catches every kind of call.
TEST(NoAllocation_Trap, CatchesEachKind) {
  g_calls = 0;
  g_trap = true;
  void* volatile p = malloc(10);
  p = realloc(p, 20);
  free(p);
  int* volatile q = new int(3);
  delete q;
  void* aligned = nullptr;
  const int error = posix_memalign(&aligned, 64, 64);
  free(aligned);
  g_trap = false;
  EXPECT_EQ(0, error);
  EXPECT_EQ(7u, g_calls.load());
}

struct Case {
  DType weights;
  const char* target;
  uint32_t kv;
  uint32_t backend;
  uint32_t kv_values = ARN_KV_AS_KEYS;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << (c.backend == ARN_BACKEND_CPU ? "cpu_" : "reference_") << DTypeName(c.weights) << '_'
       << c.target << "_kv_" << KvTypeName(c.kv) << '_' << KvTypeName(c.kv_values);
}

bool QuantisesPages(const Case& c) {
  return c.kv >= ARN_KV_INT4 || (c.kv_values != ARN_KV_AS_KEYS && c.kv_values >= ARN_KV_INT4);
}

void SetKv(const Case& c, uint32_t residual, arn_session_options* options) {
  options->kv_type = c.kv;
  options->kv_value_type = c.kv_values;
  if (QuantisesPages(c)) options->kv_residual = residual;
}

// Returns the bytes of n tokens in the first group without quantised pages.
uint64_t ActiveBytes(const arn_model* model, const arn_session_options& options,
                     uint32_t n_tokens) {
  arn_kv_group_info group = ARN_KV_GROUP_INFO_INIT;
  EXPECT_EQ(ARN_OK, arn_session_plan_group(model, &options, 0, nullptr, 0, &group));
  return uint64_t{(n_tokens + group.page_tokens - 1) / group.page_tokens} * group.page_bytes;
}

class NoAllocationTest : public testing::TestWithParam<Case> {};

TEST_P(NoAllocationTest, PrefillAnd200Decodes_AllocateNothing) {
  TinyBundle bundle;
  bundle.weights = GetParam().weights;
  bundle.target = GetParam().target;
  bundle.max_context = 512;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = GetParam().backend;
  SetKv(GetParam(), 64, &options);
  options.n_threads = 2;
  options.prefill_chunk = 32;
  const std::string kv_file =
      testing::TempDir() + "/no_allocation_" + std::to_string(getpid()) + ".kv";
#ifndef ARENITE_NO_KV_FILE
  // In a file as well as in memory.
  if (GetParam().backend == ARN_BACKEND_REFERENCE || GetParam().weights == DType::kInt8) {
    options.kv_file = kv_file.c_str();
  }
#endif
  const SessionPtr session = NewSession(model.get(), options);
  const std::vector<int32_t> prompt = SomeIds(150, bundle.vocab);
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = 0.8f;
  sampling.top_k = 20;
  sampling.top_p = 0.9f;
  std::vector<uint8_t> state(8u << 20);
  // A unique path: other cases may run at the same time.
  const std::string path =
      testing::TempDir() + "/no_allocation_" + std::to_string(getpid()) + ".state";

  g_calls = 0;
  g_trap = true;
  arn_status status = arn_session_prefill(session.get(), prompt.data(), prompt.size());
  for (int i = 0; i < 200 && status == ARN_OK; ++i) {
    int32_t id = 0;
    status = arn_session_decode(session.get(), &id);
    if (i == 100) status = arn_session_set_sampling(session.get(), &sampling);
  }
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  const arn_status counted = arn_session_stats(session.get(), &stats);
  uint64_t state_bytes = 0;
  const arn_status saved =
      arn_session_save_memory(session.get(), state.data(), state.size(), &state_bytes);
  arn_session_reset(session.get());
  const arn_status restored =
      arn_session_restore_memory(session.get(), state.data(), state_bytes, nullptr);
  const arn_status to_file = arn_session_save(session.get(), path.c_str());
  const arn_status from_file = arn_session_restore(session.get(), path.c_str(), nullptr);
  arn_session_reset(session.get());
  const arn_status again = arn_session_prefill(session.get(), prompt.data(), 1);
  const arn_status followed =
      arn_session_follow(session.get(), prompt.data(), prompt.size(), nullptr);
  const arn_status back = arn_session_follow(session.get(), prompt.data(), 90, nullptr);
  g_trap = false;

  EXPECT_EQ(ARN_OK, status) << arn_session_last_error(session.get());
  EXPECT_EQ(ARN_OK, again);
  EXPECT_EQ(ARN_OK, followed);
  EXPECT_EQ(ARN_OK, back);
  EXPECT_EQ(ARN_OK, saved);
  EXPECT_EQ(ARN_OK, restored);
  EXPECT_EQ(ARN_OK, to_file);
  EXPECT_EQ(ARN_OK, from_file);
  EXPECT_EQ(ARN_OK, counted);
  EXPECT_EQ(QuantisesPages(GetParam()),
            stats.kv_used_bytes < ActiveBytes(model.get(), options, 350));
  std::remove(path.c_str());
  EXPECT_EQ(0u, g_calls.load());
}

// Operations on whole sequences: fork, copy-on-write of shared pages, batches, rewind, shift, trim,
// returning pages of a window, save and restore.
TEST_P(NoAllocationTest, ForksBatchesRewindShiftSaveAndTrim_AllocateNothing) {
  TinyBundle bundle;
  bundle.weights = GetParam().weights;
  bundle.target = GetParam().target;
  bundle.layer_kinds = {{}, {20}, {0, 32}, {20, 0, 1}};
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = GetParam().backend;
  SetKv(GetParam(), 16, &options);
  options.n_threads = 2;
  options.context_tokens = 96;
  options.prefill_chunk = 16;
  options.kv_page_tokens = 8;
  options.max_sequences = 3;
  options.overflow = ARN_OVERFLOW_SHIFT;
  const SessionPtr session = NewSession(model.get(), options);
  const std::vector<int32_t> prompt = SomeIds(50, bundle.vocab);
  const uint32_t all[] = {0, 1, 2};
  int32_t ids[3];
  std::vector<uint8_t> state(1u << 20);
  float keys[2 * 8], values[2 * 8];

  g_calls = 0;
  g_trap = true;
  arn_status status = arn_session_prefill(session.get(), prompt.data(), prompt.size());
  for (uint32_t to : {1u, 2u}) {
    if (status == ARN_OK) status = arn_session_fork(session.get(), 0, to);
  }
  for (int i = 0; i < 120 && status == ARN_OK; ++i) {
    status = arn_session_decode_batch(session.get(), all, 3, ids);
    if (i == 10 && status == ARN_OK) {
      status = arn_session_rewind(session.get(), arn_session_length(session.get()) - 1);
      if (status == ARN_OK) status = arn_session_prefill(session.get(), prompt.data(), 1);
    }
    if (i % 40 == 30 && status == ARN_OK) {
      uint64_t used = 0;
      status = arn_session_save_memory(session.get(), state.data(), state.size(), &used);
      if (status != ARN_OK) break;
      status = arn_session_restore_memory(session.get(), state.data(), used, nullptr);
    }
  }
  if (status == ARN_OK) status = arn_session_select(session.get(), 1);
  const uint32_t last = arn_session_length(session.get()) - 1;
  if (status == ARN_OK) status = arn_session_read_kv(session.get(), 3, last, 1, keys, values);
  if (status == ARN_OK) status = arn_session_reset(session.get());
  if (status == ARN_OK) status = arn_session_trim(session.get(), nullptr);
  g_trap = false;

  EXPECT_EQ(ARN_OK, status) << arn_session_last_error(session.get());
  EXPECT_EQ(0u, g_calls.load());
}

TEST_P(NoAllocationTest, StoredPrefix_AllocatesNothing) {
  TinyBundle bundle;
  bundle.weights = GetParam().weights;
  bundle.target = GetParam().target;
  bundle.layer_kinds = {{}, {20}};
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = GetParam().backend;
  options.kv_type = GetParam().kv;
  options.n_threads = 2;
  options.kv_page_tokens = 8;
  options.max_sequences = 2;
  std::vector<int32_t> ids = SomeIds(50, bundle.vocab);
  const BundleBytes bytes = MakeTinyBundle(WithPrefix(bundle, options, ids));
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr session = NewSession(model.get(), options);
  ids.resize(60, 3);

  g_calls = 0;
  g_trap = true;
  arn_status status = arn_session_use_prefix(session.get());
  if (status == ARN_OK) status = arn_session_select(session.get(), 1);
  if (status == ARN_OK) status = arn_session_use_prefix(session.get());
  if (status == ARN_OK) status = arn_session_reset(session.get());
  uint32_t kept = 0;
  if (status == ARN_OK) status = arn_session_follow(session.get(), ids.data(), ids.size(), &kept);
  g_trap = false;

  EXPECT_EQ(ARN_OK, status) << arn_session_last_error(session.get());
  EXPECT_EQ(50u, kept);
  EXPECT_EQ(0u, g_calls.load());
}

TEST_P(NoAllocationTest, BeamSearch_AllocatesNothing) {
  TinyBundle bundle;
  bundle.weights = GetParam().weights;
  bundle.target = GetParam().target;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = GetParam().backend;
  SetKv(GetParam(), 16, &options);
  options.n_threads = 2;
  options.kv_page_tokens = 8;
  options.max_sequences = 6;
  const SessionPtr session = NewSession(model.get(), options);
  const std::vector<int32_t> prompt = SomeIds(41, bundle.vocab);
  arn_beam_options beams = ARN_BEAM_OPTIONS_INIT;
  beams.num_beams = 6;
  beams.num_beam_groups = 2;
  beams.diversity_penalty = 0.5f;
  beams.num_return_sequences = 6;
  beams.max_tokens = 20;
  beams.early_stopping = ARN_EARLY_STOPPING_NEVER;
  arn_beam_result result = ARN_BEAM_RESULT_INIT;
  int32_t ids[20];
  size_t n = 0;
  float score = 0;

  g_calls = 0;
  g_trap = true;
  arn_status status = arn_session_prefill(session.get(), prompt.data(), prompt.size());
  if (status == ARN_OK) status = arn_session_beam_search(session.get(), &beams, &result);
  const arn_status read = arn_session_beam(session.get(), 5, ids, 20, &n, &score);
  g_trap = false;

  EXPECT_EQ(ARN_OK, status) << arn_session_last_error(session.get());
  EXPECT_EQ(ARN_OK, read);
  EXPECT_EQ(6u, result.n_sequences);
  EXPECT_EQ(0u, g_calls.load());
}

// Adapters: switched between prompts, several at once, in a batch of different ones.
TEST_P(NoAllocationTest, Adapters_AllocateNothing) {
  TinyBundle bundle;
  bundle.weights = GetParam().weights;
  bundle.target = GetParam().target;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  const AdapterFile file(MakeTinyAdapter(bytes));
  const AdapterPtr first = file.Open(model.get()), second = file.Open(model.get());
  const arn_adapter* adapters[] = {first.get(), second.get()};
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = GetParam().backend;
  SetKv(GetParam(), 16, &options);
  options.n_threads = 2;
  options.kv_page_tokens = 8;
  options.max_sequences = 3;
  options.adapters = adapters;
  options.n_adapters = 2;
  const SessionPtr session = NewSession(model.get(), options);
  const std::vector<int32_t> prompt = SomeIds(41, bundle.vocab);
  const uint32_t all[] = {0, 1, 2}, both[] = {0, 1};
  const float scales[] = {1.0f, 0.5f};
  int32_t ids[3];

  g_calls = 0;
  g_trap = true;
  arn_status status = ARN_OK;
  for (uint32_t i = 0; i < 6 && status == ARN_OK; ++i) {
    status = arn_session_select(session.get(), i % 3);
    if (status == ARN_OK) status = arn_session_reset(session.get());
    if (status == ARN_OK) status = arn_session_set_adapters(session.get(), both, scales, i % 3);
    if (status == ARN_OK) {
      status = arn_session_prefill(session.get(), prompt.data(), prompt.size());
    }
  }
  for (int i = 0; i < 10 && status == ARN_OK; ++i) {
    status = arn_session_decode_batch(session.get(), all, 3, ids);
  }
  g_trap = false;

  EXPECT_EQ(ARN_OK, status) << arn_session_last_error(session.get());
  EXPECT_EQ(0u, g_calls.load());
}

// Recurrent layers: runs, diverging forks, a batch, save and restore.
TEST(NoAllocation_States, RunsForksBatchAndSave_AllocateNothing) {
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    const TinyLayer scan = {0, 0, -1, TinyMixer::kScan};
    TinyBundle bundle;
    bundle.layer_kinds = {scan, {20}, scan};
    const BundleBytes bytes = MakeTinyBundle(bundle);
    const ModelPtr model = OpenBytes(bytes);
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.backend = backend;
    options.n_threads = 2;
    options.context_tokens = 96;
    options.prefill_chunk = 16;
    options.max_sequences = 3;
    const SessionPtr session = NewSession(model.get(), options);
    const std::vector<int32_t> prompt = SomeIds(50, bundle.vocab);
    const uint32_t all[] = {0, 1, 2};
    int32_t ids[3];
    std::vector<uint8_t> state(1u << 20);
    uint64_t state_bytes = 0;

    g_calls = 0;
    g_trap = true;
    bool ok = arn_session_prefill(session.get(), prompt.data(), prompt.size()) == ARN_OK;
    for (const uint32_t to : {1u, 2u}) ok = ok && arn_session_fork(session.get(), 0, to) == ARN_OK;
    for (int i = 0; i < 20; ++i) {
      ok = ok && arn_session_decode_batch(session.get(), all, 3, ids) == ARN_OK;
    }
    ok = ok &&
         arn_session_save_memory(session.get(), state.data(), state.size(), &state_bytes) == ARN_OK;
    ok = ok && arn_session_rewind(session.get(), 1) == ARN_BAD_STATE;
    ok = ok && arn_session_follow(session.get(), prompt.data(), 30, nullptr) == ARN_OK;
    ok = ok &&
         arn_session_restore_memory(session.get(), state.data(), state_bytes, nullptr) == ARN_OK;
    ok = ok && arn_session_decode_batch(session.get(), all, 3, ids) == ARN_OK;
    g_trap = false;

    EXPECT_TRUE(ok) << arn_session_last_error(session.get());
    EXPECT_EQ(0u, g_calls.load());
  }
}

// Snapshots of recurrent states: marks, rewinds, what runs again, forks, and a changed last turn.
TEST(NoAllocation_States, Snapshots_AllocateNothing) {
  const TinyLayer scan = {0, 0, -1, TinyMixer::kScan}, conv = {0, 0, -1, TinyMixer::kConv};
  TinyBundle bundle;
  bundle.layer_kinds = {scan, {}, conv};
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.n_threads = 2;
  options.context_tokens = 96;
  options.prefill_chunk = 16;
  options.max_sequences = 2;
  options.state_snapshots = 3;
  options.snapshot_every = 6;
  const SessionPtr session = NewSession(model.get(), options);
  const std::vector<int32_t> prompt = SomeIds(50, bundle.vocab);
  const uint32_t all[] = {0, 1};
  int32_t ids[2];

  g_calls = 0;
  g_trap = true;
  arn_status status = arn_session_prefill(session.get(), prompt.data(), prompt.size());
  if (status == ARN_OK) status = arn_session_mark(session.get());
  for (uint32_t i = 0; i < 8 && status == ARN_OK; ++i) {
    status = arn_session_decode(session.get(), ids);
    if (status == ARN_OK) status = arn_session_rewind(session.get(), 50 - 4 * i);
    if (status == ARN_OK) status = arn_session_decode(session.get(), ids);
    if (status == ARN_OK) status = arn_session_mark(session.get());
  }
  if (status == ARN_OK) status = arn_session_fork(session.get(), 0, 1);
  if (status == ARN_OK) status = arn_session_rewind(session.get(), 11);
  if (status == ARN_OK) status = arn_session_decode_batch(session.get(), all, 2, ids);
  if (status == ARN_OK) status = arn_session_follow(session.get(), prompt.data(), 40, nullptr);
  const arn_status counted =
      status == ARN_OK ? arn_session_follow(session.get(), prompt.data(), 30, nullptr) : status;
  g_trap = false;

  EXPECT_EQ(ARN_OK, counted) << arn_session_last_error(session.get());
  EXPECT_EQ(0u, g_calls.load());
}

// draft: null: the model's own head guesses.
void ExpectGuessingAllocatesNothing(const arn_model* model, const arn_model* draft) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.n_threads = 2;
  options.max_sequences = 2;
  options.kv_type = ARN_KV_INT4;
  options.speculation = ARN_SPECULATE_AUTO;
  options.draft = draft;
  options.guess_always = 1;
  const SessionPtr session = NewSession(model, options);
  std::vector<int32_t> prompt = SomeIds(30, 11);
  prompt.resize(60, 3);
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = 0.4f;
  arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
  generate.max_tokens = 70;
  generate.ignore_eos = 1;

  g_calls = 0;
  g_trap = true;
  arn_status status = arn_session_prefill(session.get(), prompt.data(), prompt.size());
  if (status == ARN_OK) status = arn_session_generate(session.get(), &generate, nullptr);
  if (status == ARN_OK) status = arn_session_fork(session.get(), 0, 1);
  if (status == ARN_OK) status = arn_session_set_sampling(session.get(), &sampling);
  if (status == ARN_OK) status = arn_session_generate(session.get(), &generate, nullptr);
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  const arn_status counted = arn_session_stats(session.get(), &stats);
  g_trap = false;

  EXPECT_EQ(ARN_OK, status) << arn_session_last_error(session.get());
  EXPECT_EQ(ARN_OK, counted);
  EXPECT_EQ(0u, g_calls.load());
  EXPECT_GT(stats.guesses_accepted, 0u);
  EXPECT_GT(stats.draft_ns, 0u);
  EXPECT_GT(stats.guesses_proposed, stats.guesses_accepted);
}

TEST(NoAllocation_Speculation, GuessesRightAndWrong_AllocateNothing) {
  TinyBundle bundle;
  bundle.layer_kinds = {{}};
  const BundleBytes draft_bytes = MakeTinyBundle(bundle);
  const ModelPtr draft = OpenBytes(draft_bytes);
  bundle.layer_kinds = {{}, {9}, {}};
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  ExpectGuessingAllocatesNothing(model.get(), draft.get());
  bundle.mtp = TinyMtp::kRandom;
  for (const bool is_assistant : {false, true}) {
    bundle.is_assistant = is_assistant;
    const BundleBytes with_head_bytes = MakeTinyBundle(bundle);
    const ModelPtr with_head = OpenBytes(with_head_bytes);
    ExpectGuessingAllocatesNothing(with_head.get(), nullptr);
  }
}

// Every sampling option, with lists and log-probabilities.
TEST(NoAllocation_Sampling, EveryOption_AllocatesNothing) {
  const TinyBundle bundle;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.n_threads = 2;
  options.max_sequences = 2;
  options.logits_processors = 1;
  options.sampling_words = 32;
  const SessionPtr session = NewSession(model.get(), options);
  const int32_t ids[] = {4, 5, -1, 6};
  const float values[] = {2.0f, -1.0f};
  arn_sampling sampling = ARN_SAMPLING_INIT;
  sampling.temperature = 0.9f;
  sampling.repetition_penalty = 1.1f;
  sampling.frequency_penalty = sampling.presence_penalty = 0.1f;
  sampling.no_repeat_ngram_size = 4;
  sampling.min_new_tokens = 3;
  sampling.typical_p = 0.95f;
  sampling.top_n_sigma = 3.0f;
  sampling.xtc_probability = 0.5f;
  sampling.dry_multiplier = 0.5f;
  sampling.mirostat_tau = 4.0f;
  sampling.forced_first = 3;
  sampling.bias_ids = sampling.bad_words = sampling.dry_breaker_sequences = ids;
  sampling.n_bias_ids = sampling.n_bad_words = sampling.n_dry_breaker_sequences = 4;
  sampling.bias_values = values;
  sampling.n_bias_values = 2;
  sampling.suppress_tokens = sampling.begin_suppress_tokens = sampling.dry_breakers = ids;
  sampling.n_suppress_tokens = sampling.n_begin_suppress_tokens = sampling.n_dry_breakers = 1;
  const std::vector<int32_t> prompt = SomeIds(50, bundle.vocab);
  std::vector<uint8_t> state(1u << 20);
  uint64_t state_bytes = 0;
  arn_token_logprob top[5];
  int32_t id = 0;

  g_calls = 0;
  g_trap = true;
  arn_status status = arn_session_set_sampling(session.get(), &sampling);
  bool ok = arn_session_prefill(session.get(), prompt.data(), prompt.size()) == ARN_OK;
  for (int i = 0; i < 50; ++i) {
    ok = ok && arn_session_logprobs(session.get(), -1, 5, top, nullptr) == ARN_OK;
    ok = ok && arn_session_decode(session.get(), &id) == ARN_OK;
  }
  ok = ok && arn_session_fork(session.get(), 0, 1) == ARN_OK;
  ok = ok &&
       arn_session_save_memory(session.get(), state.data(), state.size(), &state_bytes) == ARN_OK;
  ok =
      ok && arn_session_restore_memory(session.get(), state.data(), state_bytes, nullptr) == ARN_OK;
  ok = ok && arn_session_decode(session.get(), &id) == ARN_OK;
  g_trap = false;

  EXPECT_EQ(ARN_OK, status);
  EXPECT_TRUE(ok) << arn_session_last_error(session.get());
  EXPECT_EQ(0u, g_calls.load());
}

// Chat template rendering, with the system clock and with an error message.
TEST(NoAllocation_Chat, Render_AllocatesNothing) {
  TinyBundle bundle;
  bundle.chat_program = convert::CompileChatTemplate(
      "{{ bos_token }}{{ strftime_now('%Y') }}{% macro f(x) %}<{{ x | upper }}>{% endmacro %}"
      "{% for m in messages %}{{ f(m.role) }}{{ m | tojson(indent=2) }}{{ m.content.split() }}"
      "{% set ns = namespace(t='') %}{% set ns.t = ns.t ~ m.content %}{{ ns.t | trim }}{% endfor %}"
      "{{ messages | map(attribute='role') | sort | join(',') }}{{ 2.5 | round }}"
      "{% if tools %}{{ raise_exception('no tools') }}{% endif %}");
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  arn_chat* chat = nullptr;
  ASSERT_EQ(ARN_OK, arn_chat_create(model.get(), nullptr, nullptr, 0, nullptr, 0, &chat));
  const std::string messages = R"([{"role": "user", "content": "a \u00e9 b", "n": 1.25}])";
  arn_chat_input input = ARN_CHAT_INPUT_INIT;
  input.messages = messages.data();
  input.messages_bytes = messages.size();
  arn_chat_input with_tools = input;
  with_tools.tools = "[1]";
  with_tools.tools_bytes = 3;
  char text[1024];
  size_t n = 0, failed = 0;

  g_calls = 0;
  g_trap = true;
  const arn_status status = arn_chat_render(chat, &input, text, sizeof text, &n);
  const arn_status refused = arn_chat_render(chat, &with_tools, text + n, sizeof text - n, &failed);
  g_trap = false;

  EXPECT_EQ(ARN_OK, status) << arn_chat_last_error(chat);
  EXPECT_EQ(ARN_TEMPLATE_ERROR, refused);
  EXPECT_STREQ("no tools", arn_chat_last_error(chat));
  EXPECT_EQ("<s>2", std::string(text, 4));
  EXPECT_EQ(0u, g_calls.load());
  arn_chat_destroy(chat);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, NoAllocationTest,
    testing::Values(Case{DType::kF32, "portable", ARN_KV_F32, ARN_BACKEND_CPU},
                    Case{DType::kF16, "portable", ARN_KV_F16, ARN_BACKEND_CPU},
                    Case{DType::kBf16, "portable", ARN_KV_INT8, ARN_BACKEND_CPU},
                    Case{DType::kInt8, "portable", ARN_KV_INT8, ARN_BACKEND_CPU},
                    Case{DType::kInt8, "x86-avx2", ARN_KV_INT8, ARN_BACKEND_CPU},
                    Case{DType::kInt8, "arm64-dotprod", ARN_KV_INT8, ARN_BACKEND_CPU},
                    Case{DType::kInt4, "portable", ARN_KV_INT8, ARN_BACKEND_CPU},
                    Case{DType::kInt8, "portable", ARN_KV_INT4, ARN_BACKEND_CPU},
                    Case{DType::kInt8, "portable", ARN_KV_INT4, ARN_BACKEND_CPU, ARN_KV_INT2},
                    Case{DType::kInt8, "portable", ARN_KV_F16, ARN_BACKEND_CPU, ARN_KV_INT4},
                    Case{DType::kInt8, "portable", ARN_KV_INT8, ARN_BACKEND_REFERENCE},
                    Case{DType::kInt8, "portable", ARN_KV_INT2, ARN_BACKEND_REFERENCE},
                    Case{DType::kF32, "x86-avx512vnni", ARN_KV_F32, ARN_BACKEND_REFERENCE}));

}  // namespace
}  // namespace arn::test

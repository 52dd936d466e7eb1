// Sessions on a device with the CPU as fallback: whenever and however the device fails, the failing
// call succeeds with the CPU's tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/backend_cpu.h"
#include "kernels/cpu/cpu_plan.h"
#include "runtime/session/session.h"
#include "tests/support/faulty_backends.h"
#include "tests/support/session_support.h"
#include "tests/support/state_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;

struct Device {
  KvType kv;
  const Backend* (*backend)();
  uint32_t n_calls;  // calls of Play() that run on the device
  const char* name;
};
void PrintTo(const Device& device, std::ostream* out) { *out << device.name; }

SessionOptions Options(const Device& device) {
  const KvType kv = device.kv;
  SessionOptions options;
  options.k_type = options.v_type = kv;
  options.n_threads = 1;
  options.context_tokens = 64;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 13;
  options.max_sequences = 4;
  options.overflow = Overflow::kShift;
  options.pinned_tokens = 8;
  options.trusts_device = true;
  if (kv == KvType::kInt4) options.kv_residual = 16;
  return options;
}

// The error of LoadMistaken's next state.
struct Mistake {
  uint32_t good_runs = UINT32_MAX;  // runs before it
  float added = 0.0f;               // added to logit kWrong
  Program program;
  Memory memory;
};
constexpr uint32_t kWrong = 5;
Mistake mistake;

Status LoadMistaken(const Program& program, const BackendOptions& options, const BackendPlan& plan,
                    const Memory& memory, void** state, Diag* diag) {
  mistake.program = program;
  mistake.memory = memory;
  return LoadFaulty(program, options, plan, memory, state, diag);
}

Status RunMistaken(void* state, const RunArgs& args, Diag* diag) {
  const Status status = VulkanBackend()->run(state, args, diag);
  if (mistake.good_runs != 0) {
    --mistake.good_runs;
  } else {
    mistake.memory.As<float>(mistake.program.logits)[kWrong] += mistake.added;
  }
  return status;
}

const Backend* MistakenBackend() {
  static const Backend backend = [] {
    Backend b = *FaultyBackend();
    b.load = LoadMistaken;
    b.run = RunMistaken;
    return b;
  }();
  return &backend;
}

// Returns a token the logits do not support.
Status DecodeMistaken(void*, const DecodeArgs& args, DecodeResult* out, Diag*) {
  *out = DecodeResult();
  if (args.on_token != nullptr) args.on_token(args.user, kWrong);
  out->n_tokens = 1;
  return Status::kOk;
}

constexpr TokenOps kMistakenTokens = {DecodeMistaken};

const Backend* MistakenChooser() {
  static const Backend backend = [] {
    Backend b = *FaultyBackend();
    b.tokens = &kMistakenTokens;
    return b;
  }();
  return &backend;
}

// The results of a session, call by call.
struct Seen {
  std::vector<std::vector<int32_t>> tokens;
  std::vector<float> keys;
  std::vector<bool> on_cpu;         // after each call
  std::vector<uint32_t> n_submits;  // total after each call
};

class FallBackTest : public testing::TestWithParam<Device> {
 protected:
  FallBackTest() {
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bundle.max_context = 512;
    bundle.qk_norm = true;
    bundle.layer_kinds = {{12}, {}, {12}};
    bytes_ = std::make_unique<BundleBytes>(MakeTinyBundle(bundle));
    model_ = OpenBytes(*bytes_);
  }
  void SetUp() override {
    const std::string problem = NoVulkan();
    if (!problem.empty()) GTEST_SKIP() << problem;
  }

  Status Create(const Backend* backend, const SessionOptions& options, SessionPtr* out,
                std::string* message) {
    SessionPlan plan;
    Diag diag;
    const auto& model = *reinterpret_cast<const Model*>(model_.get());
    EXPECT_EQ(Status::kOk, PlanSession(model, backend, options, Session::Objects(), &plan, &diag))
        << diag.text();
    block_.assign(plan.TotalBytes() + kRegionAlign, std::byte{0xA5});
    void* at = block_.data();
    size_t room = block_.size();
    std::align(kRegionAlign, plan.TotalBytes(), at, room);
    Session* session = nullptr;
    const Status status = Session::Create(
        model, plan, {static_cast<std::byte*>(at), plan.TotalBytes()}, {}, &session, &diag);
    out->reset(reinterpret_cast<arn_session*>(session));
    *message = diag.text();
    return status;
  }

  // Creates a session on the failing device with the CPU as fallback, or on the CPU.
  SessionPtr New(bool on_device, const SessionOptions& wanted) {
    SessionOptions options = wanted;
    if (on_device) options.fallback = CpuBackend();
    SessionPtr session;
    std::string message;
    EXPECT_EQ(Status::kOk,
              Create(on_device ? GetParam().backend() : CpuBackend(), options, &session, &message))
        << message;
    return session;
  }

  static bool IsOnCpu(arn_session* session) {
    arn_backend_info info = ARN_BACKEND_INFO_INIT;
    EXPECT_EQ(ARN_OK, arn_session_backend(session, &info));
    return std::string(info.name) == "cpu";
  }

  // Makes every type of backend call except shifting.
  Seen Play(arn_session* session) {
    Seen seen;
    const auto done = [&] {
      seen.on_cpu.push_back(IsOnCpu(session));
      seen.n_submits.push_back(fault_plan.n_submits);
    };
    const auto keep = [&](std::vector<int32_t> ids) {
      seen.tokens.push_back(std::move(ids));
      done();
    };
    const auto ok = [&](arn_status status) {
      EXPECT_EQ(ARN_OK, status) << arn_session_last_error(session);
      done();
    };
    keep(Greedy(session, SomeIds(19, kVocab), 2));
    ok(arn_session_fork(session, 0, 1));
    ok(arn_session_select(session, 1));
    keep(Greedy(session, SomeIds(3, kVocab), 1));
    // Diverges from its parent inside the part that the parent shares with sequence 0.
    ok(arn_session_fork(session, 1, 3));
    const uint32_t both[2] = {0, 1};
    int32_t ids[2];
    ok(arn_session_decode_batch(session, both, 2, ids));
    keep({ids, ids + 2});
    ok(arn_session_select(session, 3));
    keep(Greedy(session, SomeIds(2, kVocab), 1));
    seen.keys.resize(size_t{2} * 4 * 8);
    ok(arn_session_read_kv(session, 1, 17, 4, seen.keys.data(), nullptr));
    const std::vector<uint8_t> state = Save(session);
    done();
    ok(arn_session_reset(session));
    ok(Restore(session, state));
    ok(arn_session_select(session, 0));
    keep(Decode(session, 1));
    std::vector<int32_t> other = TokensOf(session);
    other.back() ^= 1;
    other.push_back(7);
    ok(arn_session_follow(session, other.data(), other.size(), nullptr));
    keep(Decode(session, 2));
    keep(TokensOf(session));
    return seen;
  }

  std::unique_ptr<BundleBytes> bytes_;
  ModelPtr model_;
  std::vector<std::byte> block_;
};

TEST_P(FallBackTest, DeviceThatFailsInAnyCall_ItSucceedsWithTheCpusTokens) {
  fault_plan = FaultPlan();
  const Seen expected = Play(New(false, Options(GetParam())).get());
  const Seen whole = Play(New(true, Options(GetParam())).get());
  ASSERT_EQ(expected.tokens, whole.tokens);
  ASSERT_FALSE(whole.on_cpu.back());
  uint32_t n_hit = 0;
  for (size_t call = 0; call < whole.n_submits.size(); ++call) {
    // Fails half-way through the submissions of the call.
    const uint32_t before = call == 0 ? 0 : whole.n_submits[call - 1];
    if (whole.n_submits[call] == before) continue;
    if (kIsSanitized && n_hit % 3 != 0) {  // each takes several times as long
      ++n_hit;
      continue;
    }
    fault_plan = FaultPlan();
    fault_plan.FailAt(static_cast<Fault>(n_hit++ % kFaultCount),
                      before + (whole.n_submits[call] - before - 1) / 2);
    SCOPED_TRACE(testing::Message() << "call " << call << ", fault " << (n_hit - 1) % kFaultCount);
    const SessionPtr session = New(true, Options(GetParam()));
    const Seen found = Play(session.get());
    EXPECT_EQ(expected.tokens, found.tokens);
    for (size_t i = 0; i < found.keys.size(); ++i) {
      ASSERT_NEAR(expected.keys[i], found.keys[i], 0.05f);
    }
    for (size_t i = 0; i < found.on_cpu.size(); ++i) EXPECT_EQ(i >= call, found.on_cpu[i]) << i;
    arn_backend_info info = ARN_BACKEND_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_session_backend(session.get(), &info));
    EXPECT_NE(std::string(), info.reason);
  }
  // With memory of its own, a device takes part in more calls: pages are copied.
  EXPECT_LE(GetParam().n_calls, n_hit);
}

// Runs of one token per sequence; the split backend runs these on the CPU only.
using DeviceAloneTest = FallBackTest;

// The ids dropped by a shift are unknown, so the CPU recomputes from the remaining tokens.
TEST_P(DeviceAloneTest, DeviceThatFailsInAShift_TheTokensAreThoseOfWhatIsLeft) {
  std::vector<std::byte> block;  // memory of the session, outlives it
  fault_plan = FaultPlan();
  const SessionPtr session = New(true, Options(GetParam()));
  const std::vector<int32_t> ids = SomeIds(64, kVocab);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
  fault_plan.FailAt(Fault::kSubmitLost, 0);
  const std::vector<int32_t> first = Decode(session.get(), 1);
  EXPECT_TRUE(IsOnCpu(session.get()));
  const std::vector<int32_t> left = TokensOf(session.get());
  ASSERT_EQ(57u, left.size());  // 64 minus a page, plus one
  const std::vector<int32_t> found = Decode(session.get(), 6);
  block = std::move(block_);
  const SessionPtr fresh = New(false, Options(GetParam()));
  EXPECT_EQ(Greedy(fresh.get(), left, 6), found);
}

// A rewind has returned to a snapshot on the device: the CPU computes all tokens again, those that
// had to run again included, and keeps snapshots of its own.
TEST_P(DeviceAloneTest, DeviceThatFailsAfterARewind_TheTokensAreThoseOfTheCpu) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.layer_kinds = {{.mixer = TinyMixer::kScan}, {}, {.mixer = TinyMixer::kConv}};
  bytes_ = std::make_unique<BundleBytes>(MakeTinyBundle(bundle));
  model_ = OpenBytes(*bytes_);
  SessionOptions options = Options(GetParam());
  options.overflow = Overflow::kStop;
  options.pinned_tokens = 0;
  options.state_snapshots = 4;
  options.snapshot_every = 6;
  for (const uint32_t n_submits : {0u, 1u}) {
    fault_plan = FaultPlan();
    std::vector<std::byte> block;  // memory of the session, outlives it
    const SessionPtr session = New(true, options);
    block = std::move(block_);
    const std::vector<int32_t> ids = SomeIds(30, kVocab);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 23));
    EXPECT_EQ(18u, arn_session_resume_position(session.get(), 23));
    fault_plan.FailAt(Fault::kSubmitLost, n_submits);
    const std::vector<int32_t> found = Greedy(session.get(), SomeIds(12, 17), 4);
    EXPECT_TRUE(IsOnCpu(session.get()));
    EXPECT_EQ(36u, arn_session_resume_position(session.get(), 38));
    const SessionPtr fresh = New(false, options);
    std::vector<int32_t> left(ids.begin(), ids.begin() + 23);
    for (const int32_t id : SomeIds(12, 17)) left.push_back(id);
    EXPECT_EQ(Greedy(fresh.get(), left, 4), found);
  }
}

TEST_P(DeviceAloneTest, DeviceThatFailsInABeamSearch_ItEndsAsOnTheCpu) {
  std::vector<int32_t> expected;
  for (const uint32_t n : {0u, 2u, 4u}) {
    fault_plan = FaultPlan();
    const SessionPtr session = New(n != 0, Options(GetParam()));
    if (n != 0) fault_plan.FailAt(static_cast<Fault>(n % kFaultCount), n);
    const std::vector<int32_t> ids = SomeIds(11, kVocab);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
    arn_beam_options options = ARN_BEAM_OPTIONS_INIT;
    options.num_beams = 3;
    options.max_tokens = 5;
    arn_beam_result result = ARN_BEAM_RESULT_INIT;
    ASSERT_EQ(ARN_OK, arn_session_beam_search(session.get(), &options, &result))
        << arn_session_last_error(session.get());
    std::vector<int32_t> best(64);
    size_t count = best.size();
    ASSERT_EQ(ARN_OK,
              arn_session_beam(session.get(), 0, best.data(), best.size(), &count, nullptr));
    best.resize(count);
    if (n == 0) expected = best;
    EXPECT_EQ(expected, best);
    EXPECT_TRUE(IsOnCpu(session.get()));
  }
}

// The result of a generation.
struct Generated {
  arn_status status = ARN_OK;
  uint32_t n_tokens = 0, finish = 0;
  std::vector<int32_t> ids, tokens, next;
};

int32_t Collect(void* user, int32_t id, const char*, size_t) {
  static_cast<std::vector<int32_t>*>(user)->push_back(id);
  return 0;
}

Generated Generate(arn_session* session, const arn_generate_options& wanted) {
  Generated out;
  arn_generate_options options = wanted;
  options.callback = Collect;
  options.user = &out.ids;
  arn_generate_result result = ARN_GENERATE_RESULT_INIT;
  out.status = arn_session_generate(session, &options, &result);
  out.n_tokens = result.n_tokens;
  out.finish = result.finish;
  out.tokens = TokensOf(session);
  out.next = Decode(session, 4);
  return out;
}

// Fails at each submission of a single sequence's generation that runs ahead, including the first.
// The tokens already passed to the callback stay, and the CPU generates the rest from the same
// random numbers.
TEST_P(DeviceAloneTest, DeviceThatFailsInAGeneration_TheCpuGoesOnWhereItWas) {
  SessionOptions options = Options(GetParam());
  options.max_sequences = 1;
  options.prefill_chunk = 32;
  const std::vector<int32_t> ids = SomeIds(11, kVocab);
  for (const float temperature : {0.0f, 1.0f}) {
    arn_sampling sampling = ARN_SAMPLING_INIT;
    sampling.temperature = temperature;
    sampling.seed = 3;
    arn_generate_options wanted = ARN_GENERATE_OPTIONS_INIT;
    wanted.max_tokens = 9;
    wanted.ignore_eos = 1;
    const auto begin = [&](arn_session* session) {
      EXPECT_EQ(ARN_OK, arn_session_prefill(session, ids.data(), ids.size()));
      EXPECT_EQ(ARN_OK, arn_session_set_sampling(session, &sampling));
    };
    fault_plan = FaultPlan();
    const SessionPtr cpu = New(false, options);
    begin(cpu.get());
    const Generated expected = Generate(cpu.get(), wanted);
    std::vector<std::byte> block = std::move(block_);  // memory of the session, outlives it
    // One sample and nine steps; one of them ends the first chunk of a quantised cache.
    for (uint32_t n = 0; n < 12; ++n) {
      if (kIsSanitized && n % 4 != 1) continue;
      SCOPED_TRACE(testing::Message() << "submission " << n << ", temperature " << temperature);
      fault_plan = FaultPlan();
      const SessionPtr session = New(true, options);
      begin(session.get());
      fault_plan.FailAt(static_cast<Fault>(n % kFaultCount), n);
      const Generated found = Generate(session.get(), wanted);
      EXPECT_EQ(ARN_OK, found.status) << arn_session_last_error(session.get());
      EXPECT_EQ(expected.ids, found.ids);
      EXPECT_EQ(expected.n_tokens, found.n_tokens);
      EXPECT_EQ(expected.finish, found.finish);
      EXPECT_EQ(expected.tokens, found.tokens);
      EXPECT_EQ(expected.next, found.next);
      EXPECT_TRUE(IsOnCpu(session.get()));
    }
    block_ = std::move(block);
  }
}

// If the logits are lost with the device, the CPU recomputes them on request.
TEST_P(DeviceAloneTest, DeviceThatFailsWhenLogitsAreAskedFor_TheyAreTheCpus) {
  SessionOptions options = Options(GetParam());
  options.max_sequences = 1;
  const std::vector<int32_t> ids = SomeIds(11, kVocab);
  std::vector<float> logits[2];
  std::vector<int32_t> tokens[2];
  for (const uint32_t on_device : {0u, 1u}) {
    fault_plan = FaultPlan();
    const SessionPtr session = New(on_device == 1, options);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
    if (on_device == 1) fault_plan.FailAt(Fault::kSubmitLost, 0);
    const float* row = nullptr;
    ASSERT_EQ(ARN_OK, arn_session_logits(session.get(), &row));
    logits[on_device].assign(row, row + kVocab);
    EXPECT_TRUE(IsOnCpu(session.get()));
    tokens[on_device] = Decode(session.get(), 5);
  }
  EXPECT_EQ(logits[0], logits[1]);
  EXPECT_EQ(tokens[0], tokens[1]);
}

// A CPU in reserve neither takes memory for the weights that it would repack nor spends time on
// them.
TEST_P(DeviceAloneTest, WeightsForAnotherCpu_AreRepackedOnlyWhenTheDeviceHasFailed) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.weights = DType::kInt8;
  bundle.target = "vulkan";
  bytes_ = std::make_unique<BundleBytes>(MakeTinyBundle(bundle));
  model_ = OpenBytes(*bytes_);
  SessionOptions options = Options(GetParam());
  options.fallback = CpuBackend();
  SessionPlan plan;
  Diag diag;
  ASSERT_EQ(Status::kOk,
            PlanSession(*reinterpret_cast<const Model*>(model_.get()), GetParam().backend(),
                        options, Session::Objects(), &plan, &diag));
  const Slice repacked = plan.fallback_plan.slices[cpu::kRepackedSlice];
  ASSERT_LT(0u, repacked.bytes);
  ASSERT_EQ(repacked.bytes, plan.fallback_plan.repacked_weight_bytes);
  const auto is_untouched = [&] {
    void* block = block_.data();
    size_t room = block_.size();
    std::align(kRegionAlign, plan.TotalBytes(), block, room);
    const std::byte* at = PartitionBlock(plan, static_cast<std::byte*>(block)).At(repacked);
    return std::all_of(at, at + repacked.bytes, [](std::byte b) { return b == std::byte{0xA5}; });
  };
  fault_plan = FaultPlan();
  const SessionPtr session = New(true, options);
  const std::vector<int32_t> ids = SomeIds(11, kVocab);
  ASSERT_EQ(2u, Greedy(session.get(), ids, 2).size());
  ASSERT_FALSE(IsOnCpu(session.get()));
  EXPECT_TRUE(is_untouched());
  fault_plan.FailAt(Fault::kSubmitLost, 0);
  const std::vector<int32_t> found = Decode(session.get(), 5);
  ASSERT_TRUE(IsOnCpu(session.get()));
  EXPECT_FALSE(is_untouched());
  const std::vector<int32_t> all = TokensOf(session.get());
  const std::vector<std::byte> block = std::move(block_);  // memory of the session, outlives it
  const SessionPtr fresh = New(false, Options(GetParam()));
  EXPECT_EQ(Greedy(fresh.get(), {all.begin(), all.end() - 5}, 5), found);
}

// Tests that do not depend on the page type.
using DeviceTestTest = FallBackTest;

TEST_P(DeviceTestTest, WithoutOneInReserve_EveryCallFailsFromThenOn) {
  fault_plan = FaultPlan();
  SessionPtr session;
  std::string message;
  ASSERT_EQ(Status::kOk, Create(FaultyBackend(), Options(GetParam()), &session, &message));
  ASSERT_EQ(3u, Greedy(session.get(), SomeIds(9, kVocab), 3).size());
  fault_plan.FailAt(Fault::kSubmitLost, 0);
  int32_t id = 0;
  EXPECT_EQ(ARN_DEVICE_LOST, arn_session_decode(session.get(), &id));
  fault_plan.submits_left = UINT32_MAX;  // the device must not be used again
  EXPECT_EQ(ARN_DEVICE_LOST, arn_session_prefill(session.get(), &id, 1));
  EXPECT_NE(std::string(), arn_session_last_error(session.get()));
}

TEST_P(DeviceTestTest, DeviceThatComputesWrongly_IsRefusedOrReplacedByTheCpu) {
  SessionOptions options = Options(GetParam());
  options.trusts_device = false;
  struct Case {
    uint32_t good_runs;
    float added;
    const char* says;
  };
  // Wrong in the first run, wrong in the last repetition's last run, and a small deviation between
  // repetitions.
  for (const Case& c : {Case{0, 1e3f, "failed the self-test"},
                        Case{8, 1e3f, "different results for the same input"},
                        Case{4, 1e-3f, "different results for the same input"},
                        Case{0, NAN, "failed the self-test"}}) {
    fault_plan = FaultPlan();
    mistake.good_runs = c.good_runs;
    mistake.added = c.added;
    options.fallback = nullptr;
    SessionPtr session;
    std::string message;
    EXPECT_EQ(Status::kDevice, Create(MistakenBackend(), options, &session, &message));
    EXPECT_EQ(nullptr, session);
    EXPECT_NE(std::string::npos, message.find(c.says)) << message;
    options.fallback = CpuBackend();
    mistake.good_runs = c.good_runs;
    ASSERT_EQ(Status::kOk, Create(MistakenBackend(), options, &session, &message)) << message;
    arn_backend_info info = ARN_BACKEND_INFO_INIT;
    ASSERT_EQ(ARN_OK, arn_session_backend(session.get(), &info));
    EXPECT_EQ(std::string("cpu"), info.name);
    EXPECT_NE(std::string::npos, std::string(info.reason).find(c.says)) << info.reason;
    EXPECT_EQ(0u, arn_session_length(session.get()));
  }
}

TEST_P(DeviceTestTest, DeviceThatChoosesWrongly_IsRefusedOrReplacedByTheCpu) {
  fault_plan = FaultPlan();
  SessionOptions options = Options(GetParam());
  options.trusts_device = false;
  options.max_sequences = 1;
  options.fallback = nullptr;
  SessionPtr session;
  std::string message;
  EXPECT_EQ(Status::kDevice, Create(MistakenChooser(), options, &session, &message));
  EXPECT_NE(std::string::npos, message.find("it chooses token 5, the best is ")) << message;
  options.fallback = CpuBackend();
  ASSERT_EQ(Status::kOk, Create(MistakenChooser(), options, &session, &message)) << message;
  EXPECT_TRUE(IsOnCpu(session.get()));
  EXPECT_EQ(0u, arn_session_length(session.get()));
}

TEST_P(DeviceTestTest, DeviceThatComputesRightly_IsKept) {
  fault_plan = FaultPlan();
  mistake.good_runs = UINT32_MAX;
  SessionOptions options = Options(GetParam());
  options.trusts_device = false;
  for (const Backend* fallback : {static_cast<const Backend*>(nullptr), CpuBackend()}) {
    options.fallback = fallback;
    SessionPtr session;
    std::string message;
    ASSERT_EQ(Status::kOk, Create(MistakenBackend(), options, &session, &message)) << message;
    EXPECT_FALSE(IsOnCpu(session.get()));
    EXPECT_EQ(0u, arn_session_length(session.get()));
    const float* logits = nullptr;
    EXPECT_EQ(ARN_BAD_STATE, arn_session_logits(session.get(), &logits));
  }
}

// Fails at several submissions of the self-test.
TEST_P(DeviceTestTest, DeviceThatFailsWhileItIsTested_IsReplacedByTheCpu) {
  SessionOptions options = Options(GetParam());
  options.trusts_device = false;
  for (uint32_t n : {0u, 1u, 5u}) {
    fault_plan = FaultPlan();
    fault_plan.FailAt(static_cast<Fault>(n % kFaultCount), n);
    const SessionPtr session = New(true, options);
    ASSERT_NE(nullptr, session);
    EXPECT_TRUE(IsOnCpu(session.get()));
    EXPECT_EQ(0u, arn_session_length(session.get()));
    EXPECT_EQ(2u, Greedy(session.get(), SomeIds(9, kVocab), 2).size());
  }
}

// Backend calls of Play(): three prefills and decodes, a batch, read, save, restore, decode,
// follow, decode. The split backend runs only multi-token calls on the device: three prefills and
// follow.
constexpr Device kDevices[] = {
    {KvType::kF32, FaultyBackend, 10, "f32"},
    {KvType::kInt4, FaultyBackend, 10, "int4"},
    {KvType::kF32, FaultySplitBackend<false>, 4, "SplitF32"},
    {KvType::kInt4, FaultySplitBackend<false>, 4, "SplitInt4"},
    {KvType::kInt4, FaultySplitBackend<true>, 4, "SplitCopiedInt4"},
};
constexpr Device kOfTest[] = {{KvType::kInt8, FaultyBackend, 10, "int8"}};

INSTANTIATE_TEST_SUITE_P(VulkanDevices, FallBackTest, testing::ValuesIn(kDevices),
                         [](const auto& p) { return p.param.name; });

INSTANTIATE_TEST_SUITE_P(VulkanDevices, DeviceAloneTest, testing::Values(kDevices[0], kDevices[1]),
                         [](const auto& p) { return p.param.name; });

INSTANTIATE_TEST_SUITE_P(VulkanDevices, DeviceTestTest, testing::ValuesIn(kOfTest),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace arn::test

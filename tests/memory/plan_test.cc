// The plan is exact: a session works in a block of exactly the planned size, touches nothing
// outside, and refuses a smaller block.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/session_support.h"

namespace arn::test {
namespace {

constexpr uint64_t kAlignment = 16384;

// A block of exact size followed by an unreadable page.
class FencedBlock {
 public:
  explicit FencedBlock(uint64_t bytes) : bytes_(bytes) {
    const uint64_t total = bytes + 3 * kAlignment;
    base_ =
        static_cast<uint8_t*>(mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mapped_ = total;
    const uintptr_t address = reinterpret_cast<uintptr_t>(base_) + kAlignment;
    block_ = base_ + kAlignment + (kAlignment - address % kAlignment) % kAlignment;
    EXPECT_EQ(0, mprotect(block_, bytes, PROT_READ | PROT_WRITE));
    std::memset(block_, 0xA5, bytes);  // creation must not rely on zeros
  }
  ~FencedBlock() { munmap(base_, mapped_); }
  void* data() { return block_; }
  uint64_t size() const { return bytes_; }

 private:
  uint64_t bytes_;
  uint64_t mapped_ = 0;
  uint8_t* base_ = nullptr;
  uint8_t* block_ = nullptr;
};

struct Case {
  TinyBundle bundle;
  arn_session_options options;
};

arn_session_options Options(uint32_t backend, uint32_t kv, uint32_t context, uint32_t chunk,
                            uint32_t threads, uint32_t page, uint32_t all_logits) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = kv;
  options.context_tokens = context;
  options.prefill_chunk = chunk;
  options.n_threads = threads;
  options.kv_page_tokens = page;
  options.all_logits = all_logits;
  return options;
}

std::vector<Case> Cases() {
  TinyBundle small;
  TinyBundle odd;
  odd.hidden = 172;
  odd.heads = 7;
  odd.kv_heads = 1;
  odd.head_dim = 80;
  odd.ffn = 100;
  odd.vocab = 1021;
  odd.window = 9;
  TinyBundle int8 = small;
  int8.weights = DType::kInt8;
  TinyBundle int4 = odd;
  int4.weights = DType::kInt4;
  TinyBundle half = small;
  half.weights = DType::kF16;
  half.qk_norm = true;
  TinyBundle packed = int8;
  packed.target = "arm64-neon";  // repacked on most machines
  TinyBundle mixed = small;
  mixed.layer_kinds = {{}, {20}, {0, 16}, {20, 0, 1}};
  TinyBundle wide = mixed;
  wide.head_dim = 32;
  const TinyLayer scan = {0, 0, -1, TinyMixer::kScan}, conv = {0, 0, -1, TinyMixer::kConv};
  TinyBundle scans = int8;
  scans.layer_kinds = {scan, scan};
  TinyBundle hybrid = int4;
  hybrid.layer_kinds = {conv, {9}, conv, {}};
  constexpr uint32_t kCpu = ARN_BACKEND_CPU, kReference = ARN_BACKEND_REFERENCE;
  arn_session_options several = Options(kCpu, ARN_KV_INT8, 64, 16, 1, 8, 0);
  several.max_sequences = 3;
  arn_session_options shared = several;
  shared.kv_tokens = 100;
  arn_session_options shifting = Options(kCpu, ARN_KV_F16, 64, 16, 2, 8, 0);
  shifting.overflow = ARN_OVERFLOW_SHIFT;
  shifting.pinned_tokens = 5;
  arn_session_options anew = Options(kReference, ARN_KV_F32, 64, 16, 1, 8, 0);
  anew.no_cache = 1;
  const auto snapshots = [](arn_session_options options, uint32_t n) {
    options.state_snapshots = n;
    options.snapshot_every = 3;
    return options;
  };
  const auto guessing = [](arn_session_options options) {
    options.speculation = ARN_SPECULATE_NGRAM;
    options.guess_always = 1;
    return options;
  };
  // Two pools per group: active and quantised pages. A group has one pool if its window is within
  // the residual.
  const auto quantised = [](arn_session_options options, uint32_t keys, uint32_t values,
                            uint32_t residual) {
    options.kv_type = keys;
    options.kv_value_type = values;
    options.kv_residual = residual;
    return options;
  };
  arn_session_options ranges =
      quantised(Options(kCpu, ARN_KV_INT4, 96, 16, 1, 16, 0), ARN_KV_INT4, ARN_KV_INT4, 16);
  ranges.kv_group_size = 4;
  return {
      {mixed, quantised(several, ARN_KV_INT4, ARN_KV_AS_KEYS, 8)},
      {mixed, quantised(several, ARN_KV_INT2, ARN_KV_INT4, 16)},
      {wide, quantised(shared, ARN_KV_INT4, ARN_KV_INT2, 8)},
      {wide, quantised(shifting, ARN_KV_INT2, ARN_KV_AS_KEYS, 8)},
      {wide, ranges},
      {wide,
       quantised(Options(kReference, ARN_KV_INT4, 64, 16, 1, 8, 0), ARN_KV_F16, ARN_KV_INT4, 8)},
      {odd, quantised(Options(kCpu, ARN_KV_INT4, 50, 7, 2, 8, 1), ARN_KV_INT4, ARN_KV_INT8, 8)},
      {small,
       quantised(Options(kCpu, ARN_KV_INT2, 256, 128, 2, 32, 0), ARN_KV_INT2, ARN_KV_INT2, 0)},
      {mixed, several},
      {mixed, shared},
      {mixed, shifting},
      {mixed, anew},
      {small, Options(kCpu, ARN_KV_F32, 64, 16, 1, 8, 0)},
      {small, Options(kReference, ARN_KV_F32, 64, 16, 1, 8, 0)},
      {small, Options(kCpu, ARN_KV_INT8, 256, 128, 2, 32, 1)},
      {odd, Options(kCpu, ARN_KV_F16, 50, 7, 2, 8, 0)},
      {odd, Options(kReference, ARN_KV_INT8, 33, 64, 1, 16, 1)},
      {int8, Options(kCpu, ARN_KV_INT8, 64, 1, 1, 64, 0)},
      {int8, Options(kReference, ARN_KV_F16, 100, 5, 1, 8, 0)},
      {int4, Options(kCpu, ARN_KV_INT8, 40, 13, 2, 8, 0)},
      {half, Options(kCpu, ARN_KV_F32, 64, 0, 0, 0, 0)},
      {packed, Options(kCpu, ARN_KV_INT8, 64, 32, 2, 16, 0)},
      {packed, Options(kReference, ARN_KV_INT8, 64, 32, 1, 16, 1)},
      {scans, several},
      {scans, Options(kReference, ARN_KV_INT4, 64, 16, 1, 8, 1)},
      {scans, anew},
      {hybrid, shared},
      {scans, snapshots(several, 4)},
      {hybrid, snapshots(shared, 1)},
      {hybrid, quantised(several, ARN_KV_INT4, ARN_KV_INT2, 8)},
      {mixed, guessing(several)},
      {odd, guessing(Options(kReference, ARN_KV_INT8, 33, 64, 1, 16, 0))},
      {wide, guessing(quantised(shifting, ARN_KV_INT2, ARN_KV_AS_KEYS, 8))},
  };
}

arn_memory_plan Plan(const arn_model* model, const arn_session_options& options) {
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  char error[512];
  EXPECT_EQ(ARN_OK, arn_session_plan(model, &options, error, sizeof error, &plan)) << error;
  return plan;
}

// Returns the bytes of all pools in order, each aligned, plus the 128 bytes that kernels may read
// past the last one.
uint64_t PoolBytes(const arn_model* model, const arn_session_options& options, uint32_t n_groups) {
  const auto padded = [](uint64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; };
  uint64_t end = 0;
  for (uint32_t g = 0; g < n_groups; ++g) {
    arn_kv_group_info group = ARN_KV_GROUP_INFO_INIT;
    EXPECT_EQ(ARN_OK, arn_session_plan_group(model, &options, g, nullptr, 0, &group));
    EXPECT_EQ(padded(end), group.offset);
    end = group.offset + group.n_pages * group.page_bytes;
    if (group.n_quantised_pages == 0) continue;
    EXPECT_EQ(padded(end), group.quantised_offset);
    end = group.quantised_offset + group.n_quantised_pages * group.quantised_page_bytes;
  }
  return padded(end + 128);
}

TEST(Plan_ExactBlock, EveryOptionSet_WorksInsideIt) {
  int number = 0;
  for (const Case& c : Cases()) {
    SCOPED_TRACE(number++);
    const BundleBytes bytes = MakeTinyBundle(c.bundle);
    const ModelPtr model = OpenBytes(bytes);
    ASSERT_NE(nullptr, model);
    const arn_memory_plan plan = Plan(model.get(), c.options);
    ASSERT_EQ(plan.total_bytes,
              plan.constants_bytes + plan.kv_bytes + plan.activations_bytes + plan.io_bytes);
    ASSERT_EQ(kAlignment, plan.alignment);
    EXPECT_EQ(plan.kv_bytes, PoolBytes(model.get(), c.options, plan.n_kv_groups));
    FencedBlock block(plan.total_bytes);
    const SessionPtr session = NewSession(model.get(), c.options, block.data(), block.size());
    ASSERT_NE(nullptr, session);
    const uint32_t context = plan.context_tokens;
    const std::vector<int32_t> prompt = SomeIds(context / 2, c.bundle.vocab);
    const std::vector<int32_t> ids = Greedy(session.get(), prompt, context - prompt.size());

    arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
    ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
    EXPECT_EQ(plan.constants_bytes, stats.constants_used_bytes);
    EXPECT_EQ(plan.activations_bytes, stats.activations_used_bytes);
    EXPECT_EQ(plan.io_bytes, stats.io_used_bytes);
    EXPECT_EQ(plan.kv_bytes, stats.kv_capacity_bytes);
    EXPECT_LE(stats.kv_used_bytes, plan.kv_bytes);
    if (c.options.max_sequences <= 1 && c.bundle.layer_kinds.empty() && c.bundle.window == 0) {
      // A full context uses every page, and each region has at most one alignment of padding.
      EXPECT_GT(stats.kv_used_bytes + 2 * kAlignment, plan.kv_bytes);
    }

    // The other sequences fill the pools to the last page.
    for (uint32_t s = 1; s < c.options.max_sequences; ++s) {
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
      const std::vector<int32_t> whole = SomeIds(context, c.bundle.vocab);
      const arn_status status = arn_session_prefill(session.get(), whole.data(), whole.size());
      EXPECT_TRUE(status == ARN_OK || (c.options.kv_tokens != 0 && status == ARN_CONTEXT_FULL))
          << arn_session_last_error(session.get());
    }
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));

    // Library-allocated memory gives the same tokens.
    const SessionPtr other = NewSession(model.get(), c.options);
    EXPECT_EQ(ids, Greedy(other.get(), prompt, ids.size()));
    if (c.options.overflow == ARN_OVERFLOW_SHIFT) continue;
    // The context is full: one more token is sampled, then nothing changes.
    int32_t id = 0;
    EXPECT_EQ(ARN_OK, arn_session_decode(session.get(), &id));
    EXPECT_EQ(ARN_CONTEXT_FULL, arn_session_decode(session.get(), &id));
    EXPECT_EQ(context, arn_session_length(session.get()));
  }
}

// Grows the block from zero: every size below the plan's is refused, whichever region does not fit.
TEST(Plan_Growth, EveryBlockBelowThePlan_IsOutOfMemory) {
  for (const Case& c : Cases()) {
    const BundleBytes bytes = MakeTinyBundle(c.bundle);
    const ModelPtr model = OpenBytes(bytes);
    const arn_memory_plan plan = Plan(model.get(), c.options);
    FencedBlock block(plan.total_bytes);
    for (uint64_t size = 0; size < plan.total_bytes; size += 4096) {
      arn_session* session = nullptr;
      char error[256];
      ASSERT_EQ(ARN_OUT_OF_MEMORY, arn_session_create(model.get(), &c.options, block.data(), size,
                                                      error, sizeof error, &session))
          << size;
      ASSERT_EQ(nullptr, session);
      ASSERT_NE(std::string::npos, std::string(error).find(std::to_string(plan.total_bytes)));
    }
    arn_session* session = nullptr;
    ASSERT_EQ(ARN_OUT_OF_MEMORY, arn_session_create(model.get(), &c.options, block.data(),
                                                    plan.total_bytes - 1, nullptr, 0, &session));
    const SessionPtr whole = NewSession(model.get(), c.options, block.data(), plan.total_bytes);
    EXPECT_NE(nullptr, whole);
  }
}

// Generates to the end of the context with guesses of a model, in a block of the planned size.
void ExpectGuessesInsideTheBlock(const TinyBundle& target, const arn_model* draft) {
  const BundleBytes bytes = MakeTinyBundle(target);
  const ModelPtr model = OpenBytes(bytes);
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    arn_session_options options = Options(backend, ARN_KV_INT4, 96, 16, 2, 8, 0);
    options.max_sequences = 2;
    options.speculation = ARN_SPECULATE_AUTO;
    options.guess_always = 1;
    options.draft = draft;
    const arn_memory_plan plan = Plan(model.get(), options);
    EXPECT_GT(plan.draft_bytes, 0u);
    FencedBlock block(plan.total_bytes);
    const SessionPtr session = NewSession(model.get(), options, block.data(), block.size());
    const std::vector<int32_t> prompt = SomeIds(40, target.vocab);
    ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
    arn_generate_options generate = ARN_GENERATE_OPTIONS_INIT;
    generate.ignore_eos = 1;
    arn_generate_result result = ARN_GENERATE_RESULT_INIT;
    ASSERT_EQ(ARN_OK, arn_session_generate(session.get(), &generate, &result));
    EXPECT_EQ(ARN_FINISH_CONTEXT, result.finish);
    arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
    ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
    EXPECT_GT(stats.draft_ns, 0u);
  }
}

// The session of the draft model, or of the model's own head, lies in the same block, and allocates
// nothing beside it.
TEST(Plan_Draft, FullContext_WorksInsideTheBlock) {
  TinyBundle target, smaller;
  target.layer_kinds = {{}, {20}, {0, 16}};
  smaller.layer_kinds = {{9}, {}};
  const BundleBytes draft_bytes = MakeTinyBundle(smaller);
  const ModelPtr draft = OpenBytes(draft_bytes);
  ExpectGuessesInsideTheBlock(target, draft.get());
}

TEST(Plan_Mtp, FullContext_WorksInsideTheBlock) {
  TinyBundle target;
  target.layer_kinds = {{}, {20}, {0, 16}};
  target.mtp = TinyMtp::kRandom;
  ExpectGuessesInsideTheBlock(target, nullptr);
}

TEST(Plan_Assistant, FullContext_WorksInsideTheBlock) {
  TinyBundle target;
  target.layer_kinds = {{}, {20}, {0, 16}};
  target.mtp = TinyMtp::kRandom;
  target.is_assistant = true;
  ExpectGuessesInsideTheBlock(target, nullptr);
}

TEST(Plan_MisalignedBlock, IsRefused) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  const ModelPtr model = OpenBytes(bytes);
  const arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  const arn_memory_plan plan = Plan(model.get(), options);
  FencedBlock block(plan.total_bytes + kAlignment);
  arn_session* session = nullptr;
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_session_create(model.get(), &options, static_cast<uint8_t*>(block.data()) + 64,
                               plan.total_bytes, nullptr, 0, &session));
}

uint64_t ResidentBytes(const void* data, uint64_t bytes) {
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  EXPECT_EQ(0, mincore(const_cast<void*>(data), bytes, pages.data()));
  uint64_t resident = 0;
  for (unsigned char p : pages) resident += (p & 1) * page;
  return resident;
}

// KV memory is committed on use: a large context costs only the tokens in it.
TEST(Plan_LargeContext, FewTokens_TouchFewPages) {
  TinyBundle bundle;
  bundle.layers = 4;
  bundle.kv_heads = 4;
  bundle.head_dim = 64;
  bundle.max_context = 32768;
  const BundleBytes bytes = MakeTinyBundle(bundle);
  const ModelPtr model = OpenBytes(bytes);
  const arn_session_options options = Options(ARN_BACKEND_CPU, ARN_KV_INT8, 32768, 32, 1, 32, 0);
  const arn_memory_plan plan = Plan(model.get(), options);
  const uint64_t mapped = plan.total_bytes + kAlignment;
  uint8_t* base = static_cast<uint8_t*>(mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(MAP_FAILED, static_cast<void*>(base));
  uint8_t* block =
      base + (kAlignment - reinterpret_cast<uintptr_t>(base) % kAlignment) % kAlignment;
  {
    const SessionPtr session = NewSession(model.get(), options, block, plan.total_bytes);
    Greedy(session.get(), SomeIds(90, bundle.vocab), 10);
    arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
    ASSERT_EQ(ARN_OK, arn_session_stats(session.get(), &stats));
    const uint64_t page_group = plan.kv_bytes_per_token * plan.kv_page_tokens;
    EXPECT_EQ(4 * page_group, stats.kv_used_bytes);  // ceil(100 / 32)
    const uint64_t rest = plan.total_bytes - plan.kv_bytes;
    const uint64_t resident = ResidentBytes(block, plan.total_bytes);
    EXPECT_LE(resident, rest + stats.kv_used_bytes + page_group);
    EXPECT_GT(plan.kv_bytes, 100 * stats.kv_used_bytes);
  }
  munmap(base, mapped);
}

}  // namespace
}  // namespace arn::test

// Checks that the CPU backend and XNNPACK allocate nothing after load(). Replaces malloc and its
// relatives with counting versions.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "kernels/contract/code_type.h"
#include "kernels/cpu/backend_cpu.h"
#include "program_builder.h"

namespace {
std::atomic<bool> counting{false};
std::atomic<int> allocations{0};
void Count() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1);
}
}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t n) { return Count(), __libc_malloc(n); }
void* calloc(size_t n, size_t m) { return Count(), __libc_calloc(n, m); }
void* realloc(void* p, size_t n) { return Count(), __libc_realloc(p, n); }
void* memalign(size_t a, size_t n) { return Count(), __libc_memalign(a, n); }
void* aligned_alloc(size_t a, size_t n) { return Count(), __libc_memalign(a, n); }
int posix_memalign(void** out, size_t a, size_t n) {
  Count();
  *out = __libc_memalign(a, n);
  return *out == nullptr ? 12 : 0;
}
}

namespace arn::conformance {
namespace {

TEST(NoAllocationTest, Trap_MallocWhileCounting_IsSeen) {
  allocations = 0;
  counting = true;
  void* volatile p = std::malloc(10);
  counting = false;
  std::free(p);
  EXPECT_EQ(allocations.load(), 1);
}

TEST(NoAllocationTest, Run_EveryWeightTypePrefillAndDecode_AllocatesNothing) {
  std::mt19937 rng(41);
  for (DType dtype :
       {DType::kF32, DType::kF16, DType::kBf16, DType::kInt8, DType::kInt4, DType::kTernary,
        DType::kTernaryRows, DType::kInt3, DType::kInt4K, DType::kInt6K, DType::kInt8K, DType::kFp4,
        DType::kIq4K, DType::kIq4, DType::kInt8K256}) {
    if (!kHasLowBits && FindCodeType(dtype) != nullptr) continue;
    constexpr uint32_t kWidth = 576, kVocab = 1021;
    ProgramBuilder b(kVocab, 32, 256);
    AttentionKind kind;
    kind.n_heads = 6;
    kind.n_kv_heads = 3;
    kind.head_dim = 48;
    kind.attention_scale = 0.1f;
    kind.rope = b.AddRope(48, 10000.0f);
    const auto kind_id = static_cast<uint16_t>(b.AddAttention(kind, DType::kInt8, 1, 32, 8));
    const ValueId x = b.AddValue(kWidth), y = b.AddValue(kWidth), angles = b.AddValue(48);
    const ValueId attended = b.AddValue(288);
    const auto vector = [&] { return b.AddVector(RandomFloats(kWidth, 1.0f, &rng)); };
    const WeightId head = b.AddMatrix(RandomMatrix(dtype, kVocab, kWidth, false, &rng), {});
    const WeightId matrix = b.AddMatrix(RandomMatrix(dtype, kWidth, kWidth, false, &rng), {});
    b.AddStep(EmbedParams{.weight = head}, kNoValue, x);
    b.AddStep(RopeAnglesParams(), kNoValue, angles);
    b.AddStep(NormParams{.weight = vector()}, x, y);
    b.AddStep(LinearParams{.weight = matrix}, y, x);
    b.AddStep(QkvRopeParams{.kind = kind_id, .angles = angles}, x, kNoValue);
    b.AddStep(AttentionParams{.kind = kind_id}, x, attended);
    b.AddStep(GatedActParams(), x, attended);
    constexpr uint16_t kExperts = 5, kChosen = 2;
    constexpr uint32_t kFfn = 64;
    ExpertsParams experts;
    experts.n_experts = kExperts;
    experts.n_chosen = kChosen;
    experts.topk = b.AddValue(2 * kChosen);
    experts.gathered = b.AddValue(kWidth);
    experts.gate_up = b.AddValue(2 * kFfn);
    experts.activated = b.AddValue(kFfn);
    experts.expert_out = b.AddValue(kWidth);
    for (uint32_t e = 0; e < kExperts; ++e) {
      const WeightId up = b.AddMatrix(RandomMatrix(dtype, 2 * kFfn, kWidth, false, &rng), {});
      b.AddMatrix(RandomMatrix(dtype, kWidth, kFfn, false, &rng), {});
      if (e == 0) experts.weight = up;
    }
    const ValueId routes = b.AddValue(kExperts);
    const WeightId router =
        b.AddMatrix(RandomMatrix(DType::kF32, kExperts, kWidth, false, &rng), {});
    b.AddStep(LinearParams{.weight = router}, x, routes);
    b.AddStep(RouteParams{.n_experts = kExperts, .n_chosen = kChosen}, routes, experts.topk);
    b.AddStep(experts, y, x);
    b.AddStep(LogitsParams{.norm = vector(), .weight = head}, x, kNoValue);
    for (uint32_t n_threads : {1u, 3u}) {
      Session session(CpuBackend(), &b, n_threads);
      Batch batch(session.program(), {{0, 32}}, &rng);
      for (int i = 0; i < 50; ++i) {
        if (i != 0) batch.Advance({i % 10 == 0 ? 17u : 1u});
        const RunArgs args = batch.Args();
        allocations = 0;
        counting = true;
        const Status status = session.Run(args);
        counting = false;
        ASSERT_EQ(status, Status::kOk) << session.message();
        ASSERT_EQ(allocations.load(), 0) << DTypeName(dtype) << " run " << i;
      }
    }
  }
}

}  // namespace
}  // namespace arn::conformance

// Behaviour specific to the Vulkan backend: refusals and messages, what it requests from the
// driver, and leaks.
#include "kernels/vulkan/backend_vulkan.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "backends.h"
#include "cases.h"
#include "dispatch_collector.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/lower.h"
#include "kernels/vulkan/lower/matmul_variants.h"
#include "kernels/vulkan/lower/segments.h"
#include "kernels/vulkan/pipelines/pipelines.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

class VulkanTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* problem = NoDevice(VulkanBackend())) GTEST_SKIP() << problem;
  }
};

// One layer with matmuls, pages and logits.
struct OneLayer {
  explicit OneLayer(std::mt19937* rng) : builder(kVocab, kRows, 256) {
    AttentionKind kind;
    kind.n_heads = 4;
    kind.n_kv_heads = 2;
    kind.head_dim = 16;
    kind.attention_scale = 0.25f;
    kind.rope = builder.AddRope(16, 10000.0f);
    const auto kind_id = static_cast<uint16_t>(builder.AddAttention(kind, DType::kInt8, 1, 8, 64));
    const ValueId x = builder.AddValue(64), qkv = builder.AddValue(128);
    const ValueId angles = builder.AddValue(16);
    const WeightId head = builder.AddMatrix(RandomMatrix(DType::kInt8, kVocab, 64, false, rng), {});
    const WeightId to_qkv =
        builder.AddMatrix(RandomMatrix(DType::kInt4, 128, 64, true, rng), WeightLayout());
    builder.AddStep(EmbedParams{.weight = head}, kNoValue, x);
    builder.AddStep(RopeAnglesParams(), kNoValue, angles);
    builder.AddStep(LinearParams{.weight = to_qkv}, x, qkv);
    builder.AddStep(QkvRopeParams{.kind = kind_id, .angles = angles}, qkv, kNoValue);
    builder.AddStep(AttentionParams{.kind = kind_id}, qkv, x);
    const WeightId norm = builder.AddVector(RandomFloats(64, 1.0f, rng));
    builder.AddStep(LogitsParams{.norm = norm, .weight = head}, x, kNoValue);
  }
  static constexpr uint32_t kVocab = 101, kRows = 40;
  ProgramBuilder builder;
};

// Returns the driver's live allocations. Waits up to 2 s for `expected`, because the driver may
// free the memory of a submission shortly after the fence.
int64_t LiveAfter(void* state, int64_t expected) {
  int64_t live = vulkan::DriverMemoryOf(state).n_live;
  for (int i = 0; live != expected && i < 2000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    live = vulkan::DriverMemoryOf(state).n_live;
  }
  return live;
}

// Returns the driver's live allocations at rest: the minimum over 200 ms.
int64_t LiveAtRest(void* state) {
  int64_t least = vulkan::DriverMemoryOf(state).n_live;
  for (int i = 0; i < 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    least = std::min(least, vulkan::DriverMemoryOf(state).n_live);
  }
  return least;
}

// The driver may allocate during a submission but must free it afterwards.
TEST_F(VulkanTest, RunAndDecode_PrefillStepsAndEdits_TheDriverKeepsNothing) {
  std::mt19937 rng(61);
  OneLayer layer(&rng);
  Session session(VulkanBackend(), &layer.builder, 1);
  Batch batch(session.program(), {{0, OneLayer::kRows}}, &rng);
  ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
  ASSERT_GT(vulkan::DriverMemoryOf(session.state()).n_calls, 0u);
  const int64_t before = LiveAtRest(session.state());
  ASSERT_GT(before, 0);
  for (uint32_t i = 0; i < 20; ++i) {
    batch.Advance({i % 5 == 0 ? 17u : i % 3 == 0 ? 4u : 1u});
    KvEdit edit;
    edit.from = batch.pages[0][0];
    edit.to = batch.pages[0].back();
    edit.n_tokens = 8;
    edit.unrotated_by = i % 2;
    RunArgs args = batch.Args();
    args.edits = {&edit, 1};
    ASSERT_EQ(session.Run(args), Status::kOk) << session.message();
    EXPECT_EQ(LiveAfter(session.state(), before), before);
  }
  for (uint32_t i = 0; i < 5; ++i) {
    batch.Advance({1});
    DecodeArgs args;
    args.sequence = batch.sequences[0];
    args.n_steps = 1;
    DecodeResult result;
    Diag diag;
    ASSERT_EQ(VulkanBackend()->tokens->decode(session.state(), args, &result, &diag), Status::kOk)
        << diag.text();
    EXPECT_EQ(LiveAfter(session.state(), before), before);
  }
}

// The validation layer reports objects that outlive their device. Every session has all object
// types; most have few pipelines, because pipelines take the time.
TEST_F(VulkanTest, CreateAndDestroy_200Times_Works) {
  std::mt19937 rng(62);
  OneLayer layer(&rng);
  ProgramBuilder small(2, 1, 8);
  Step step{ActParams()};
  step.in = small.AddValue(1);
  small.AddStep(step);
  for (uint32_t i = 0; i < 200; ++i) {
    Session session(VulkanBackend(), i % 10 == 0 ? &layer.builder : &small, 1);
    ASSERT_NE(session.state(), nullptr);
  }
}

TEST_F(VulkanTest, KvReadAndWrite_AnyBytes_AreThoseOfTheRegion) {
  for (const vulkan::Restriction restriction :
       {vulkan::Restriction::kNone, vulkan::Restriction::kStaged}) {
    const Backend* backend = vulkan::RestrictedBackend(restriction);
    std::mt19937 rng(63);
    OneLayer layer(&rng);
    Session session(backend, &layer.builder, 1);
    const uint64_t size = session.program().kv_groups[0].active.pool.bytes;
    std::vector<std::byte> expected(size);
    for (size_t i = 0; i < size; ++i) expected[i] = static_cast<std::byte>(i * 7 + i / 251);
    ASSERT_EQ(backend->kv_write(session.state(), {Region::kKv, 0, size},
                                {expected.data(), expected.size()}),
              Status::kOk);
    for (const auto& [offset, n] : {std::pair<size_t, size_t>{0, 1}, {3, 7}, {61, 1000}}) {
      for (size_t i = 0; i < n; ++i) expected[offset + i] = static_cast<std::byte>(i + 1);
      ASSERT_EQ(backend->kv_write(session.state(), {Region::kKv, offset, n},
                                  {expected.data() + offset, n}),
                Status::kOk);
    }
    std::vector<std::byte> found(size);
    ASSERT_EQ(
        backend->kv_read(session.state(), {Region::kKv, 0, size}, {found.data(), found.size()}),
        Status::kOk);
    EXPECT_TRUE(found == expected);
    std::byte few[9];
    ASSERT_EQ(backend->kv_read(session.state(), {Region::kKv, 59, 9}, {few, 9}), Status::kOk);
    EXPECT_EQ(std::memcmp(few, expected.data() + 59, 9), 0);
    EXPECT_EQ(backend->kv_read(session.state(), {Region::kKv, 0, 8}, {few, 9}),
              Status::kBadArgument);
    EXPECT_EQ(backend->kv_read(session.state(), {Region::kIo, 0, 9}, {few, 9}),
              Status::kBadArgument);
  }
}

// Works without a driver too.
TEST(VulkanPlanTest, WhatItDoesNotRun_IsRefusedWithAReason) {
  const auto expect_refused = [](ProgramBuilder* builder, const char* reason) {
    Layout layout;
    const Program program = builder->Build(&layout);
    BackendPlan plan;
    Diag diag;
    EXPECT_EQ(VulkanBackend()->plan(program, BackendOptions(), &layout, &plan, &diag),
              Status::kUnsupported);
    EXPECT_NE(std::string(diag.text()).find(reason), std::string::npos) << diag.text();
  };
  {
    ProgramBuilder builder(2, 4, 1u << 20);
    Step step{RopeAnglesParams()};
    step.Get<RopeAnglesParams>().rope = static_cast<uint16_t>(builder.AddRope(4, 1e-3f));
    step.out = builder.AddValue(4);
    builder.AddStep(step);
    expect_refused(&builder, "a rope angle of 2^24 or more");
  }
  {
    ProgramBuilder builder(2, 8, 8);
    AttentionKind kind;
    kind.n_heads = kind.n_kv_heads = 1;
    kind.head_dim = 8;
    kind.rope = kNoRope;
    const uint32_t id = builder.AddAttention(kind, DType::kInt8, 1, 8, 1);
    builder.AddQuantisedPages(id, 4, 4, 8, 1, /*k_by_token=*/true);
    QkvRopeParams params;
    params.kind = static_cast<uint16_t>(id);
    builder.AddStep(params, builder.AddValue(24), kNoValue);
    expect_refused(&builder, "kv_key_axis");
  }
  {
    ProgramBuilder builder(2, 1u << 14, 1u << 14);
    Step step{ActParams()};
    step.in = builder.AddValue(2048);
    builder.AddStep(step);
    expect_refused(&builder, "does not fit a binding of 128 MiB");
  }
  {
    std::mt19937 rng(64);
    ProgramBuilder builder(2, 1u << 14, 1u << 14);
    Step step{ExpertsParams()};
    auto& params = step.Get<ExpertsParams>();
    params.n_experts = params.n_chosen = 4;
    step.in = builder.AddValue(2);
    step.out = builder.AddValue(2);
    params.topk = builder.AddValue(8);
    params.gathered = builder.AddValue(2);
    params.gate_up = builder.AddValue(4);
    params.activated = builder.AddValue(2);
    params.expert_out = builder.AddValue(2);
    for (uint32_t e = 0; e < 4; ++e) {
      const WeightId id = builder.AddMatrix(RandomMatrix(DType::kF32, 4, 2, false, &rng), {});
      builder.AddMatrix(RandomMatrix(DType::kF32, 2, 2, false, &rng), {});
      if (e == 0) params.weight = id;
    }
    builder.AddStep(step);
    expect_refused(&builder, "more than 65535 rows");
  }
  {  // a pool of all rows of a sequence
    ProgramBuilder builder(2, 1, 1u << 16);
    builder.SetEncoderRows(1u << 16);
    const ValueId x = builder.AddEncoderValue(8, 1), pooled = builder.AddPooledValue(8, 1);
    builder.AddEncoderStep(Step(FeaturesParams(), kNoValue, x));
    builder.AddEncoderStep(Step(PoolParams(), x, pooled));
    expect_refused(&builder, "step pool: more rows than a grid or a binding of 128 MiB has");
  }
}

// Those of a decoder, beside a program that is its vision tower.
TEST(VulkanPlanTest, WeightsThatNoStepNames_TakeNoMemory) {
  const auto device_bytes = [](bool has_others) {
    std::mt19937 rng(65);
    ProgramBuilder builder(2, 4, 8);
    const Matrix other = RandomMatrix(DType::kF32, 500, 70, false, &rng);
    const Matrix own = RandomMatrix(DType::kF32, 12, 40, false, &rng);
    if (has_others) builder.AddMatrix(other, {});
    const WeightId first = builder.AddMatrix(own, {}), second = builder.AddMatrix(own, {});
    if (has_others) builder.AddMatrix(other, {});
    const ValueId x = builder.AddValue(40), y = builder.AddValue(12);
    builder.AddStep(LinearParams{.weight = first}, x, y);
    builder.AddStep(LinearParams{.weight = second}, x, y);
    Layout layout;
    const Program program = builder.Build(&layout);
    BackendPlan plan;
    Diag diag;
    EXPECT_EQ(Status::kOk, VulkanBackend()->plan(program, BackendOptions(), &layout, &plan, &diag))
        << diag.text();
    return plan.device_bytes;
  };
  EXPECT_EQ(device_bytes(false), device_bytes(true));
}

// What a pipeline is made of.
using PipelineKey = std::tuple<vulkan::Shader, uint32_t, std::vector<uint32_t>>;

// Two groups with quantised pages: their places depend on the number of pages.
std::set<PipelineKey> PipelinesOf(uint32_t context) {
  ProgramBuilder builder(/*vocab=*/101, /*max_rows=*/40, context);
  const ValueId x = builder.AddValue(64), qkv = builder.AddValue(128);
  for (const uint32_t window : {0u, 100u}) {
    AttentionKind kind;
    kind.n_heads = 4;
    kind.n_kv_heads = 2;
    kind.head_dim = 16;
    kind.window = window;
    kind.attention_scale = 0.25f;
    kind.rope = kNoRope;
    const uint32_t pages = context / 8;
    const uint32_t id = builder.AddAttention(kind, DType::kInt8, 1, 8, pages);
    builder.AddQuantisedPages(id, 4, 4, 8, pages);
    const auto kind_id = static_cast<uint16_t>(id);
    builder.AddStep(QkvRopeParams{.kind = kind_id}, qkv, kNoValue);
    builder.AddStep(AttentionParams{.kind = kind_id}, qkv, x);
  }
  Layout layout;
  const Program program = builder.Build(&layout);
  DispatchCollector collector;
  Diag diag;
  const vulkan::Workspace workspace;
  vulkan::Lowering lowering(program, {}, workspace, {});
  EXPECT_EQ(Status::kOk, lowering.Run(&collector, &diag)) << diag.text();
  std::set<PipelineKey> pipelines;
  for (const vulkan::Dispatch& d : collector.dispatches) {
    pipelines.insert({d.shader, d.avoid, {std::begin(d.constants), std::end(d.constants)}});
  }
  return pipelines;
}

TEST(VulkanPlanTest, LongerContext_ItsPipelinesAreTheSame) {
  const auto expected = PipelinesOf(1024);
  EXPECT_GE(expected.size(), 4u);
  EXPECT_EQ(expected, PipelinesOf(4096));
}

// Positions 0 to 767 are in segments 0 to 2 of 256.
TEST(VulkanSegmentsTest, CountSegments_WhatRowsSee_IsTheMostOfThem) {
  ProgramBuilder builder(2, 64, 2000);
  AttentionKind kind;
  kind.n_heads = 2;
  kind.n_kv_heads = 1;
  kind.head_dim = 16;
  Step step{AttentionParams()};
  auto& params = step.Get<AttentionParams>();
  const auto add = [&](uint32_t window, uint32_t chunk) {
    kind.window = window;
    kind.chunk = chunk;
    return static_cast<uint16_t>(builder.AddAttention(kind, DType::kF32, 1, 8, 1));
  };
  const uint16_t all = add(0, 0), window = add(258, 0), chunk = add(0, 300), short_one = add(1, 0);
  Layout layout;
  const Program program = builder.Build(&layout);
  struct {
    uint16_t kind;
    std::vector<SequenceShape> rows;
    uint32_t expected;
  } const cases[] = {
      {all, {{1, 255}}, 1},    {all, {{1, 256}}, 2},         {all, {{2, 510}}, 2},
      {all, {{3, 510}}, 3},    {all, {{1, 3}, {1, 700}}, 3}, {all, {{8, 700}}, 3},
      {all, {{9, 700}}, 1},    {all, {{64, 700}}, 1},        {window, {{1, 513}}, 2},
      {window, {{1, 767}}, 2}, {window, {{1, 768}}, 3},      {chunk, {{1, 299}}, 2},
      {chunk, {{1, 300}}, 1},  {chunk, {{1, 599}}, 2},       {short_one, {{1, 1024}}, 1},
  };
  for (const auto& c : cases) {
    params.kind = c.kind;
    const vulkan::Segments segments = vulkan::SegmentsOf(program, step, 256);
    std::vector<SequenceRows> sequences;
    uint32_t n_rows = 0;
    for (const SequenceShape& rows : c.rows) {
      SequenceRows s;
      s.first_row = n_rows;
      s.n_rows = rows.n_rows;
      s.first_position = rows.n_before;
      n_rows += rows.n_rows;
      sequences.push_back(s);
    }
    EXPECT_EQ(c.expected,
              vulkan::CountSegments(segments, {sequences.data(), sequences.size()}, n_rows))
        << "kind " << c.kind << ", rows after " << c.rows[0].n_before;
    EXPECT_LE(c.expected, segments.most);
  }
  // Consecutive single-row steps: the row at 768 sees the most segments, neither the first nor the
  // last row.
  params.kind = window;
  SequenceRows steps;
  steps.n_rows = 64;
  steps.first_position = 710;
  EXPECT_EQ(3u, vulkan::CountSegments(vulkan::SegmentsOf(program, step, 256), {&steps, 1}, 1));
  params.kind = short_one;
  EXPECT_FALSE(vulkan::SegmentsOf(program, step, 256).may_share());
  EXPECT_EQ(0u, vulkan::PartialBytes(program, step, 256));
}

// Partial results of eight rows would need too much memory, so fewer rows are split.
TEST(VulkanSegmentsTest, SegmentsOf_AVeryLongContext_FewerRowsAreSharedOut) {
  ProgramBuilder builder(2, 64, 1u << 18);
  AttentionKind kind;
  kind.n_heads = 24;
  kind.n_kv_heads = 8;
  kind.head_dim = 128;
  Step step{AttentionParams()};
  step.Get<AttentionParams>().kind =
      static_cast<uint16_t>(builder.AddAttention(kind, DType::kInt8, 1, 32, 1));
  Layout layout;
  const Program program = builder.Build(&layout);
  const vulkan::Segments segments = vulkan::SegmentsOf(program, step, 256);
  EXPECT_TRUE(segments.may_share());
  EXPECT_EQ(1024u, segments.most);
  EXPECT_EQ(2u, segments.max_rows);
  // 24 heads, 1,024 segments, 65 quads of channels.
  EXPECT_EQ(2u * 24 * 1024 * 65 * 16, vulkan::PartialBytes(program, step, 256));
}

// Records the request for the last pipeline.
struct AskedPipeline {
  static inline PFN_vkCreateComputePipelines create = nullptr;
  static inline bool is_full = false;
  static inline uint32_t size = 0;

  static VkResult VKAPI_PTR Create(VkDevice device, VkPipelineCache cache, uint32_t n,
                                   const VkComputePipelineCreateInfo* info,
                                   const VkAllocationCallbacks* callbacks, VkPipeline* out) {
    is_full = (info->stage.flags & VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT) != 0;
    const auto* sized =
        static_cast<const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo*>(info->stage.pNext);
    size = sized == nullptr ? 0 : sized->requiredSubgroupSize;
    return create(device, cache, n, info, callbacks, out);
  }
};

// A shader that assumes one subgroup per workgroup must request that size. Without the feature no
// such shader is used.
TEST_F(VulkanTest, Pipelines_OfOneSubgroup_AskForItsSize) {
  for (const uint32_t avoid : {0u, uint32_t{vulkan::kAvoidFullSubgroups}}) {
    vulkan::DeviceChoice choice;
    choice.avoid = avoid;
    Diag diag;
    vulkan::Device device;
    ASSERT_EQ(Status::kOk, device.Open(choice, &diag)) << diag.text();
    EXPECT_TRUE(device.uses_subgroups());
    EXPECT_EQ(avoid == 0, device.has_full_subgroups());
    EXPECT_EQ(avoid == 0, device.has_sized_subgroups());
    vulkan::MatmulTraits traits;
    traits.subgroup_size = device.subgroup_size();
    traits.has_full_subgroups = device.has_full_subgroups();
    EXPECT_EQ(avoid == 0 ? device.subgroup_size() : 0, vulkan::OneSubgroup(traits));
    AskedPipeline::create = device.api().CreateComputePipelines;
    device.mutable_api()->CreateComputePipelines = AskedPipeline::Create;
    vulkan::Pipelines pipelines;
    EXPECT_EQ(Status::kOk, pipelines.Open(device, {}, &diag)) << diag.text();
    for (const bool is_one : {true, false}) {
      if (is_one && avoid != 0) continue;
      vulkan::Dispatch dispatch;
      dispatch.shader = vulkan::Shader::kNorm;
      dispatch.constants[vulkan::kWidthId] = device.subgroup_size();
      dispatch.constants[vulkan::kOneSubgroupId] = is_one ? 1 : 0;
      VkPipeline made = VK_NULL_HANDLE;
      ASSERT_EQ(Status::kOk, pipelines.Make(device, dispatch, false, &made, &diag)) << diag.text();
      EXPECT_EQ(is_one, AskedPipeline::is_full);
      EXPECT_EQ(is_one ? device.subgroup_size() : 0, AskedPipeline::size);
      device.api().DestroyPipeline(device.handle(), made, device.callbacks());
    }
    pipelines.Close(device);
    device.Close();
  }
}

TEST_F(VulkanTest, Device_OfNoSuchName_IsRefused) {
  std::mt19937 rng(65);
  OneLayer layer(&rng);
  Layout layout;
  const Program program = layer.builder.Build(&layout);
  for (const char* device : {"no such GPU", "15"}) {
    BackendOptions options;
    options.gpu.device = device;
    Layout again = layout;
    BackendPlan plan;
    Diag diag;
    const Backend& backend = *VulkanBackend();
    ASSERT_EQ(backend.plan(program, options, &again, &plan, &diag), Status::kOk);
    EXPECT_GT(plan.device_bytes, again.RegionBytes(Region::kKv));
    AlignedBytes regions[kRegionCount];
    Memory memory;
    for (uint32_t r = 0; r < kRegionCount; ++r) {
      regions[r] = AlignedBytes(again.RegionBytes(static_cast<Region>(r)));
      memory.region[r] = {regions[r].data(), regions[r].size()};
    }
    void* state = &diag;
    EXPECT_EQ(backend.load(program, options, plan, memory, &state, &diag), Status::kUnsupported);
    EXPECT_EQ(state, nullptr);
    EXPECT_NE(std::string(diag.text()).find(device), std::string::npos) << diag.text();
  }
}

}  // namespace
}  // namespace arn::conformance

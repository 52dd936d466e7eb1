// Selects matmul variants by measurement and stores the result, with fake times and a fake clock.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <vector>

#include "kernels/vulkan/pipelines/pipeline_cache.h"
#include "kernels/vulkan/tune/tune_matmuls.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

using vulkan::Dispatch;
using vulkan::Mode;
using vulkan::Tuning;

constexpr auto kInt8 = static_cast<uint32_t>(DType::kInt8);
constexpr auto kF32 = static_cast<uint32_t>(DType::kF32);
constexpr auto kF16 = static_cast<uint32_t>(DType::kF16);

// Variants with products in f16.
uint32_t CountHalf() {
  uint32_t n = 0;
  for (uint32_t i = 0; i < vulkan::kGemmVariants; ++i) n += vulkan::GemmVariantOf(i).is_half;
  return n;
}

// Returns the times of `time` and counts calls.
class FakeMeter final : public vulkan::MatmulMeter {
 public:
  Status Measure(Span<const Dispatch> dispatches, uint32_t rows, uint64_t* ns, Diag*) override {
    ++n_measured;
    now += cost;
    for (const Dispatch& d : dispatches) {
      EXPECT_EQ(0, std::memcmp(d.constants, dispatches[0].constants, sizeof d.constants));
    }
    most_at_once = std::max(most_at_once, dispatches.size());
    last_rows = rows;
    most_rows = std::max(most_rows, rows);
    *ns = 1000;
    return time ? time(dispatches[0], ns) : Status::kOk;
  }
  uint64_t NowNs() override { return now; }

  std::function<Status(const Dispatch&, uint64_t*)> time;
  uint64_t now = 5, cost = 0;
  uint32_t n_measured = 0, last_rows = 0, most_rows = 0;
  size_t most_at_once = 0;
};

// Matmuls of two shapes; 64 x 96 has the more work.
struct TwoShapes {
  explicit TwoShapes(DType dtype, uint32_t max_rows = 300) : builder(2, max_rows, 512) {
    std::mt19937 rng(93);
    for (const auto& [rows, cols] : {std::pair{100u, 64u}, {64u, 96u}, {64u, 96u}}) {
      Step step{LinearParams()};
      step.in = builder.AddValue(cols);
      step.out = builder.AddValue(rows);
      step.Get<LinearParams>().weight =
          builder.AddMatrix(RandomMatrix(dtype, rows, cols, false, &rng), {});
      builder.AddStep(step);
    }
    program = builder.Build(&layout);
    traits.matmuls.subgroup_size = 32;
    traits.matmuls.has_full_subgroups = true;
    traits.matmuls.max_lanes = 1024;
    traits.matmuls.has_dot = true;
    traits.matmuls.coop = {16, 16, 16};
    traits.matmuls.shared_memory = 49152;
  }

  Status Tune(FakeMeter* meter, Diag* diag) {
    const vulkan::Workspace workspace;
    return vulkan::TuneMatmuls(program, {}, workspace, meter, &record, &traits, &tuning, diag);
  }
  void Tune(FakeMeter* meter) {
    Diag diag;
    ASSERT_EQ(Status::kOk, Tune(meter, &diag)) << diag.text();
  }
  uint32_t Choice(Mode mode, uint32_t dtype) const {
    return traits.choices.of[static_cast<uint32_t>(mode)][dtype];
  }

  ProgramBuilder builder;
  Layout layout;
  Program program;
  vulkan::Traits traits;
  vulkan::TuningRecord record;
  Tuning tuning = Tuning::kFixed;
};

TEST(VulkanTuningTest, Tune_TheFastestOfEachKindOfRun_IsTakenAndRemembered) {
  TwoShapes matmuls(DType::kInt8);
  FakeMeter meter;
  meter.time = [](const Dispatch& d, uint64_t* ns) {
    const bool is_tiled = d.row_tile >= 32;
    if (is_tiled) {
      *ns = d.shader == vulkan::Shader::kGemmCoop && d.row_tile == 64 ? 500 : 1000;
    } else {
      // gemv-8 is fastest for one row, shared memory for few rows.
      *ns = d.row_tile == 1 ? (d.constants[vulkan::kMatmulOutsId] == 8 ? 700 : 900)
                            : ((d.avoid & vulkan::kAvoidSubgroups) != 0 ? 600 : 800);
    }
    return Status::kOk;
  };
  matmuls.Tune(&meter);
  EXPECT_EQ(Tuning::kMeasured, matmuls.tuning);
  // Measures each variant once per run mode.
  EXPECT_EQ(2 * vulkan::kGemvVariants + vulkan::kGemmVariants - CountHalf(), meter.n_measured);
  EXPECT_EQ(2u, meter.most_at_once);
  EXPECT_STREQ("gemv-8", vulkan::VariantName(Mode::kOne, matmuls.Choice(Mode::kOne, kInt8)));
  EXPECT_STREQ("gemv-shared-64x4",
               vulkan::VariantName(Mode::kFew, matmuls.Choice(Mode::kFew, kInt8)));
  EXPECT_STREQ("gemm-coop-64x64",
               vulkan::VariantName(Mode::kMany, matmuls.Choice(Mode::kMany, kInt8)));
  ASSERT_EQ(3u, matmuls.record.n);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(64u, matmuls.record.matmuls[i].rows);
    EXPECT_EQ(96u, matmuls.record.matmuls[i].cols);
  }
  char text[256];
  vulkan::DescribeMatmuls(matmuls.program, matmuls.traits, matmuls.tuning, text, sizeof text);
  EXPECT_STREQ("int8 gemv-8 gemv-shared-64x4 gemm-coop-64x64; measured", text);

  // A later session reads the stored bytes.
  TwoShapes later(DType::kInt8);
  later.record.Read(matmuls.record.Bytes());
  FakeMeter none;
  later.Tune(&none);
  EXPECT_EQ(Tuning::kRemembered, later.tuning);
  EXPECT_EQ(0u, none.n_measured);
  EXPECT_EQ(
      0, std::memcmp(&later.traits.choices, &matmuls.traits.choices, sizeof later.traits.choices));
}

TEST(VulkanTuningTest, Tune_ManyRows_AreAsManyAsTheDeviceMayRun) {
  for (const uint32_t rows : {128u, 32u}) {
    TwoShapes matmuls(DType::kInt8);
    matmuls.traits.timed_rows = rows;
    FakeMeter meter;
    matmuls.Tune(&meter);
    EXPECT_EQ(rows, meter.most_rows);
  }
}

TEST(VulkanTuningTest, Tune_WhatIsHardlyFaster_IsNotTaken) {
  TwoShapes matmuls(DType::kInt8);
  FakeMeter meter;
  uint64_t next = 100000;
  meter.time = [&](const Dispatch&, uint64_t* ns) {
    *ns = next;
    next -= next / 100;
    return Status::kOk;
  };
  matmuls.Tune(&meter);
  // Each variant is 1 % faster than the one before. A variant replaces the best only if it is 5 %
  // faster.
  EXPECT_EQ(6u, matmuls.Choice(Mode::kOne, kInt8));
}

TEST(VulkanTuningTest, Tune_VariantsThatTheDeviceOrTheWeightsHaveNoUseFor_AreNotMeasured) {
  TwoShapes floats(DType::kF32);
  FakeMeter meter;
  meter.time = [](const Dispatch& d, uint64_t* ns) {
    EXPECT_NE(vulkan::Shader::kGemmCoop, d.shader);
    EXPECT_EQ(0u, d.avoid & vulkan::kAvoidDot);
    *ns = 1000;
    return Status::kOk;
  };
  floats.Tune(&meter);
  // Skips the variants that avoid dot products and those with cooperative matrices.
  const uint32_t n_usable = vulkan::kGemmVariants - 5 - CountHalf();
  EXPECT_EQ(2 * (vulkan::kGemvVariants - 1) + n_usable, meter.n_measured);
  EXPECT_EQ(0u, floats.Choice(Mode::kMany, kF32));

  TwoShapes small(DType::kInt8);
  small.traits.matmuls = {};
  FakeMeter least;
  least.time = [](const Dispatch& d, uint64_t* ns) {
    EXPECT_EQ(0u, d.avoid);
    EXPECT_LE(d.constants[vulkan::kWidthId], 128u);
    *ns = 1000;
    return Status::kOk;
  };
  small.Tune(&least);
  // gemv: 4, 2 and 8 outputs and 128 lanes; gemm: those with at most 128 lanes.
  EXPECT_EQ(2u * 4 + 3, least.n_measured);
  // A program of one row only needs the one-row variants.
  TwoShapes single(DType::kInt8, 1);
  FakeMeter one;
  single.Tune(&one);
  EXPECT_EQ(vulkan::kGemvVariants, one.n_measured);
  EXPECT_EQ(1u, one.last_rows);
}

TEST(VulkanTuningTest, Tune_ProductsInF16_AreMeasuredWhereTheDeviceHasThemAndTakenIfFaster) {
  for (const bool has_half : {false, true}) {
    TwoShapes matmuls(DType::kF16);
    matmuls.traits.matmuls.has_half = has_half;
    uint32_t n_half = 0;
    FakeMeter meter;
    meter.time = [&](const Dispatch& d, uint64_t* ns) {
      const bool is_half = d.shader == vulkan::Shader::kGemmHalf;
      n_half += is_half;
      *ns = is_half && d.row_tile == 64 ? 500 : 1000;
      return Status::kOk;
    };
    matmuls.Tune(&meter);
    EXPECT_EQ(has_half ? CountHalf() : 0, n_half);
    EXPECT_STREQ(has_half ? "gemm-half-64x64" : "gemm-32x32",
                 vulkan::VariantName(Mode::kMany, matmuls.Choice(Mode::kMany, kF16)));
  }
}

TEST(VulkanTuningTest, Tune_BudgetEnds_TheRestIsMeasuredByLaterSessions) {
  FakeMeter meter;
  meter.cost = vulkan::kTuningBudgetNs / 4;
  meter.time = [](const Dispatch& d, uint64_t* ns) {
    *ns = d.constants[vulkan::kMatmulOutsId] == 8 ? 100 : 1000;
    return Status::kOk;
  };
  vulkan::TuningRecord record;
  uint32_t n_sessions = 0;
  for (Tuning tuning = Tuning::kUnfinished; tuning == Tuning::kUnfinished; ++n_sessions) {
    TwoShapes matmuls(DType::kInt8);
    matmuls.record = record;
    meter.n_measured = 0;
    matmuls.Tune(&meter);
    // Four measurements use up the time budget.
    EXPECT_LE(meter.n_measured, 4u);
    EXPECT_GE(meter.n_measured, 1u);
    tuning = matmuls.tuning;
    record = matmuls.record;
    // Known results apply at once.
    EXPECT_EQ(2u, matmuls.Choice(Mode::kOne, kInt8));
    ASSERT_LT(n_sessions, 10u);
  }
  EXPECT_EQ(6u, n_sessions);  // for 21 variants
}

TEST(VulkanTuningTest, Tune_OtherShapes_AreMeasuredAnewBesideTheOld) {
  TwoShapes matmuls(DType::kInt8);
  FakeMeter meter;
  matmuls.Tune(&meter);
  vulkan::TuningRecord record = matmuls.record;
  for (vulkan::TunedMatmul& p : record.matmuls) p.rows += 1;
  TwoShapes later(DType::kInt8);
  later.record = record;
  FakeMeter again;
  later.Tune(&again);
  EXPECT_EQ(meter.n_measured, again.n_measured);
  EXPECT_EQ(6u, later.record.n);
  EXPECT_EQ(64u, later.record.matmuls[0].rows);
  EXPECT_EQ(65u, later.record.matmuls[5].rows);

  // When the record is full, the oldest entries are dropped.
  later.record.n = vulkan::TuningRecord::kMost;
  later.record.matmuls[0].rows = later.record.matmuls[1].rows = later.record.matmuls[2].rows = 66;
  later.Tune(&again);
  EXPECT_EQ(vulkan::TuningRecord::kMost, later.record.n);
  EXPECT_EQ(64u, later.record.matmuls[0].rows);
  EXPECT_EQ(66u, later.record.matmuls[3].rows);
}

TEST(VulkanTuningTest, Tune_VariantThatDoesNotCompile_IsPassedOver_DeviceThatFails_Fails) {
  TwoShapes matmuls(DType::kInt8);
  FakeMeter meter;
  meter.time = [](const Dispatch& d, uint64_t* ns) {
    *ns = d.row_tile == 64 ? 1 : 1000;
    return d.row_tile == 64 ? Status::kUnsupported : Status::kOk;
  };
  matmuls.Tune(&meter);
  EXPECT_EQ(0u, matmuls.Choice(Mode::kMany, kInt8));
  TwoShapes other(DType::kInt8);
  meter.time = [](const Dispatch&, uint64_t*) { return Status::kDeviceLost; };
  Diag diag;
  EXPECT_EQ(Status::kDeviceLost, other.Tune(&meter, &diag));
}

TEST(VulkanTuningTest, Read_WhatMakesNoSense_IsNothing) {
  vulkan::TuningRecord record, read;
  record.n = 2;
  record.matmuls[0] = {0, kInt8, 8, 8, 3, 2, 10};
  record.matmuls[1] = {2, kInt8, 8, 8, 3, 2, 10};
  read.Read(record.Bytes());
  EXPECT_EQ(2u, read.n);
  using Change = void (*)(vulkan::TunedMatmul*);
  const Change changes[] = {[](vulkan::TunedMatmul* p) { p->mode = 3; },
                            [](vulkan::TunedMatmul* p) { p->dtype = kDTypeCount; },
                            [](vulkan::TunedMatmul* p) { p->best = vulkan::kGemmVariants; },
                            [](vulkan::TunedMatmul* p) { p->n_tried = 100; }};
  for (const Change change : changes) {
    vulkan::TuningRecord bad = record;
    change(&bad.matmuls[1]);
    read.Read(bad.Bytes());
    EXPECT_EQ(0u, read.n);
  }
  read.Read(record.Bytes().subspan(0, record.Bytes().size() - 1));
  EXPECT_EQ(0u, read.n);
}

TEST(VulkanTuningTest, CoopShape_IsTheLargestThatTheShaderCanUse) {
  using Properties = VkCooperativeMatrixPropertiesKHR;
  const auto ints = [](uint32_t m, uint32_t n, uint32_t k) {
    Properties p = {};
    p.MSize = m;
    p.NSize = n;
    p.KSize = k;
    p.AType = p.BType = VK_COMPONENT_TYPE_SINT8_KHR;
    p.CType = p.ResultType = VK_COMPONENT_TYPE_SINT32_KHR;
    p.scope = VK_SCOPE_SUBGROUP_KHR;
    return p;
  };
  const auto floats = [&](uint32_t m, uint32_t n) {
    Properties p = ints(m, n, 16);
    p.AType = p.BType = VK_COMPONENT_TYPE_FLOAT16_KHR;
    p.CType = p.ResultType = VK_COMPONENT_TYPE_FLOAT32_KHR;
    return p;
  };
  std::vector<Properties> list = {ints(8, 8, 32), ints(16, 16, 32), ints(32, 8, 32), floats(8, 8)};
  const auto choose = [&] {
    return vulkan::ChooseCoopShape(list.data(), static_cast<uint32_t>(list.size()));
  };
  // Only 8 x 8 also has an f32 accumulator.
  EXPECT_EQ(8u, choose().m);
  list.push_back(floats(16, 16));
  EXPECT_EQ(16u, choose().m);
  list[1].saturatingAccumulation = VK_TRUE;
  EXPECT_EQ(8u, choose().m);
  list[0].scope = VK_SCOPE_WORKGROUP_KHR;
  EXPECT_EQ(0u, choose().m);
}

class VulkanPipelineCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / "vulkan_pipeline_cache";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Returns the bytes of tuning results stored for a device.
  size_t StoredBytes(uint32_t device) {
    vulkan::PipelineCache cache;
    Diag diag;
    EXPECT_EQ(Status::kOk, cache.Open(folder_.c_str(), Key(device), &diag));
    const size_t n = cache.contents(vulkan::CachedFile::kTuning).size();
    cache.Close();
    return n;
  }
  void Store(uint32_t device, size_t n) {
    const std::vector<std::byte> bytes(n, std::byte{7});
    vulkan::PipelineCache cache;
    Diag diag;
    ASSERT_EQ(Status::kOk, cache.Open(folder_.c_str(), Key(device), &diag));
    cache.Store(vulkan::CachedFile::kTuning, {bytes.data(), bytes.size()});
    cache.Close();
  }
  static vulkan::DeviceKey Key(uint32_t device) {
    vulkan::DeviceKey key;
    key.vendor = 1;
    key.device = device;
    return key;
  }
  std::filesystem::path folder_;
};

TEST_F(VulkanPipelineCacheTest, Tuning_IsOfOneDevice_AndWhatIsBrokenIsReplaced) {
  Store(1, 80);
  EXPECT_EQ(80u, StoredBytes(1));
  EXPECT_EQ(0u, StoredBytes(2));
  const std::filesystem::path file = std::filesystem::directory_iterator(folder_)->path();
  EXPECT_EQ(".tuning", file.extension());
  Store(2, 40);
  EXPECT_EQ(40u, StoredBytes(2));
  EXPECT_EQ(80u, StoredBytes(1));
  std::filesystem::resize_file(file, 151);
  EXPECT_EQ(0u, StoredBytes(1));
  Store(1, 80);
  EXPECT_EQ(80u, StoredBytes(1));
  {
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(100);
    out.put('x');
  }
  EXPECT_EQ(0u, StoredBytes(1));
}

}  // namespace
}  // namespace arn::conformance

// Weights in the device's layout: where they are placed, and that a device reads them in the pages
// of their file.
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "backends.h"
#include "cases.h"
#include "kernels/pack/device_rows.h"
#include "kernels/vulkan/backend_vulkan.h"
#include "kernels/vulkan/device/buffer.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/device/device_weight.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

using vulkan::DeviceWeight;

constexpr uint64_t kFileBytes = uint64_t{6} << 30;
constexpr WeightLayout kDevice = {WeightOrder::kDeviceRows};

// Weights at addresses of a made-up file, which nothing reads.
class Placement : public testing::Test {
 protected:
  void SetUp() override {
    if constexpr (sizeof(void*) < 8) GTEST_SKIP() << "addresses of 64 bits";
  }

  // A matrix of 16 x 1,024 int8 at an offset from the file's start.
  void AddMatrix(int64_t offset, WeightLayout layout = kDevice, uint32_t rows = 16) {
    Weight weight;
    weight.dtype = DType::kInt8;
    weight.layout = layout;
    weight.rows = rows;
    weight.cols = 1024;
    ASSERT_TRUE(PackedBytes(weight.dtype, layout, rows, weight.cols, &weight.bytes));
    weight.data = At(offset);
    weights_.push_back(weight);
  }
  void AddVector(int64_t offset) {
    Weight weight;
    weight.is_vector = true;
    weight.rows = 1;
    weight.cols = 100;
    weight.bytes = 400;
    weight.data = At(offset);
    weights_.push_back(weight);
  }

  // Places all weights. The steps name the first and the last, so all are in use.
  void Place() {
    steps_ = {Step(LinearParams{.weight = 0}, 0, 1),
              Step(LinearParams{.weight = static_cast<WeightId>(weights_.size() - 1)}, 0, 1)};
    Program program;
    program.steps = {steps_.data(), steps_.size()};
    program.weights = {weights_.data(), weights_.size()};
    program.file = {At(0), kFileBytes};
    vulkan::WeightPlacer placer(program);
    PlaceAll(program, &placer, [&](uint32_t, const DeviceWeight& at) {
      placed_.push_back(at);
      blocks_.resize(placer.n_blocks());
      blocks_[at.block] = placer.block();
    });
    uint64_t total = 0, in_file = 0;
    for (const vulkan::WeightBlock& block : blocks_) {
      total += block.bytes;
      if (block.pages != nullptr) in_file += block.bytes;
    }
    EXPECT_EQ(total, placer.total());
    EXPECT_EQ(in_file, placer.in_file());
  }

  // Expects weight `i` in the block that begins at `first` of the file.
  void ExpectInFile(uint32_t i, int64_t first) const {
    SCOPED_TRACE(i);
    EXPECT_EQ(At(first), blocks_[placed_[i].block].pages);
    EXPECT_EQ(weights_[i].data, At(first) + placed_[i].values);
    EXPECT_LE(placed_[i].values + weights_[i].bytes, blocks_[placed_[i].block].bytes);
  }
  void ExpectConverted(uint32_t i) const {
    EXPECT_EQ(nullptr, blocks_[placed_[i].block].pages) << i;
  }

  static const std::byte* At(int64_t offset) {
    return reinterpret_cast<const std::byte*>((uint64_t{1} << 32) + static_cast<uint64_t>(offset));
  }

  std::vector<Step> steps_;
  std::vector<Weight> weights_;
  std::vector<DeviceWeight> placed_;
  std::vector<vulkan::WeightBlock> blocks_;
};

TEST_F(Placement, WeightsOfADevice_StayWhereTheyAre) {
  AddMatrix(16384 + 256);
  AddVector(16384 + 17408);
  AddMatrix(16384 + 17408 + 512);
  AddMatrix(16384 + 256);  // again, as a tied head
  Place();
  ASSERT_EQ(1u, blocks_.size());
  for (uint32_t i = 0; i < 4; ++i) ExpectInFile(i, 16384);
  EXPECT_EQ(256u, placed_[0].values);
  EXPECT_EQ(256u + 16384, placed_[0].heads);
  EXPECT_EQ(16u * 16, placed_[0].heads_bytes);
  EXPECT_EQ(0u, blocks_[0].bytes % kDeviceAlign);
}

TEST_F(Placement, OtherWeights_AreConverted) {
  AddMatrix(1 << 20);
  AddMatrix(2 << 20, {});                             // in rows
  AddMatrix((3 << 20) + 64);                          // not at 256 bytes
  AddVector((3 << 20) + 64 * 1024 + 64);              // nor this one
  AddMatrix(-(1 << 20));                              // not in the file
  AddMatrix(static_cast<int64_t>(kFileBytes) - 256);  // not whole in it
  Place();
  ASSERT_EQ(2u, blocks_.size());
  ExpectInFile(0, 1 << 20);
  for (uint32_t i = 1; i < 6; ++i) ExpectConverted(i);
}

TEST_F(Placement, VectorsOfABundleForACpu_AreConverted) {
  AddMatrix(16384, {});
  AddVector(65536);
  AddMatrix(98304, {WeightOrder::kPanels, 16, 8, 1, 0});
  Place();
  ASSERT_EQ(1u, blocks_.size());
  for (uint32_t i = 0; i < 3; ++i) ExpectConverted(i);
}

TEST_F(Placement, Blocks_EndBeforeLargeGaps_GoingBack_AndAGigabyte) {
  constexpr int64_t kMatrix = 16384 + 256;
  AddMatrix(1 << 20);
  AddMatrix((1 << 20) + kMatrix + 65536);  // the largest gap
  AddMatrix((1 << 20) + 2 * kMatrix + 2 * 65536 + 256);
  AddMatrix(1 << 19);
  AddMatrix((1 << 19) + 16 * 1024 + 256, kDevice, 1000000);
  AddMatrix((1 << 19) + 2 * 16 * 1024 + 1040000000, kDevice, 100000);
  Place();
  ASSERT_EQ(4u, blocks_.size());
  ExpectInFile(0, 1 << 20);
  ExpectInFile(1, 1 << 20);
  ExpectInFile(2, ((1 << 20) + 2 * kMatrix + 2 * 65536 + 256) / 16384 * 16384);
  ExpectInFile(3, 1 << 19);
  ExpectInFile(4, 1 << 19);
  ExpectInFile(5, ((1 << 19) + 2 * 16 * 1024 + 1040000000) / 16384 * 16384);
}

// Experts at equal distances share a dispatch, in the file as elsewhere.
TEST_F(Placement, EqualMatrices_AreEquallySpaced) {
  for (int64_t i = 0; i < 9; ++i) AddMatrix(16384 + i * 16896);
  Place();
  for (uint32_t i = 1; i < 9; ++i) {
    EXPECT_EQ(16896u, placed_[i].values - placed_[i - 1].values);
    EXPECT_EQ(placed_[0].block, placed_[i].block);
  }
}

class VulkanWeightsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* problem = NoDevice(VulkanBackend())) GTEST_SKIP() << problem;
  }
};

struct Shape {
  uint32_t rows, cols;
};

// A table, a matmul, a norm, f32 rows that stay rows, and a head.
ProgramBuilder ProgramOf(DType dtype, Shape shape, bool in_file) {
  std::mt19937 rng(7);
  ProgramBuilder b(shape.rows, 40, 64);
  const WeightLayout layout = in_file ? kDevice : WeightLayout{};
  const WeightId table =
      b.AddMatrix(RandomMatrix(dtype, shape.rows, shape.cols, false, &rng), layout);
  const WeightId positions =
      b.AddMatrix(RandomMatrix(DType::kF32, 64, shape.cols, false, &rng), WeightLayout());
  const WeightId square =
      b.AddMatrix(RandomMatrix(dtype, shape.cols, shape.cols, true, &rng), layout);
  const WeightId norm = b.AddVector(RandomFloats(shape.cols, 1.0f, &rng));
  const WeightId head =
      b.AddMatrix(RandomMatrix(dtype, shape.rows, shape.cols, true, &rng), layout);
  const ValueId x = b.AddValue(shape.cols), y = b.AddValue(shape.cols);
  b.AddStep(EmbedParams{.weight = table, .positions = positions}, kNoValue, x);
  b.AddStep(LinearParams{.weight = square}, x, y);
  b.AddStep(LogitsParams{.norm = norm, .weight = head}, y, kNoValue);
  if (in_file) b.KeepInFile();
  return b;
}

struct Result {
  std::vector<float> logits;
  uint64_t importable = 0, imported = 0, device_bytes = 0, allocated = 0;
};

// Runs one row, a few and many.
Result RunOn(const Backend* backend, ProgramBuilder builder) {
  Session session(backend, &builder, 2);
  std::mt19937 rng(8);
  Result out;
  for (const uint32_t n_rows : {1u, 5u, 40u}) {
    Batch batch(session.program(), {{0, n_rows}}, &rng);
    RunArgs args = batch.Args();
    args.logit_rows = LogitRows::kAll;
    EXPECT_EQ(session.Run(args), Status::kOk) << session.message();
    const float* logits = session.Logits();
    out.logits.insert(out.logits.end(), logits, logits + n_rows * session.program().vocab);
  }
  out.importable = session.plan().importable_bytes;
  out.device_bytes = session.plan().device_bytes;
  out.imported = backend->device->imported_bytes(session.state());
  out.allocated = vulkan::AllocatedBytesOf(session.state());
  return out;
}

bool Same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

uint64_t ImportAlign() {
  vulkan::Device device;
  Diag diag;
  EXPECT_EQ(Status::kOk, device.Open({}, &diag)) << diag.text();
  const uint64_t align = device.import_align();
  device.Close();
  return align;
}

// The plan counts the weights once, and what is allocated is what is planned, less what is
// imported.
TEST_F(VulkanWeightsTest, EachType_InItsFileOrConverted_SameBits) {
  const bool imports = ImportAlign() != 0;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBf16, DType::kInt8, DType::kInt4}) {
    for (const Shape shape : {Shape{101, 72}, Shape{197, 233}}) {
      for (const vulkan::Restriction restriction :
           {vulkan::Restriction::kNone, vulkan::Restriction::kCopied,
            vulkan::Restriction::kStaged}) {
        if (shape.rows == 101 && restriction != vulkan::Restriction::kNone) continue;
        SCOPED_TRACE(testing::Message() << DTypeName(dtype) << " " << shape.rows << " x "
                                        << shape.cols << " " << vulkan::NameOf(restriction));
        const Backend* backend = vulkan::RestrictedBackend(restriction);
        const Result expected = RunOn(backend, ProgramOf(dtype, shape, false));
        const Result found = RunOn(backend, ProgramOf(dtype, shape, true));
        EXPECT_TRUE(Same(expected.logits, found.logits));
        EXPECT_EQ(0u, expected.importable);
        EXPECT_EQ(0u, expected.imported);
        EXPECT_EQ(expected.device_bytes, expected.allocated);
        EXPECT_GT(found.importable, 0u);
        const bool is_usual = restriction == vulkan::Restriction::kNone;
        EXPECT_EQ(is_usual && imports ? found.importable : 0, found.imported);
        EXPECT_EQ(found.device_bytes - found.imported, found.allocated);
      }
    }
  }
}

// Pages of 16 KiB, and the device.
class VulkanPagesTest : public VulkanWeightsTest {
 protected:
  void SetUp() override {
    VulkanWeightsTest::SetUp();
    if (IsSkipped()) return;
    Diag diag;
    ASSERT_EQ(Status::kOk, device_.Open({}, &diag)) << diag.text();
    if (device_.import_align() == 0) GTEST_SKIP() << device_.name() << " imports no memory";
    storage_.resize(6 * kPage);
    pages_ = storage_.data() + (kPage - reinterpret_cast<uintptr_t>(storage_.data()) % kPage);
  }
  void TearDown() override { device_.Close(); }

  bool Import(const std::byte* pages, uint64_t bytes, uint64_t readable) {
    vulkan::Buffer buffer;
    const bool imported = vulkan::ImportBuffer(device_, pages, bytes, readable, &buffer);
    EXPECT_EQ(imported, buffer.handle != VK_NULL_HANDLE);
    EXPECT_EQ(imported, buffer.memory != VK_NULL_HANDLE);
    EXPECT_EQ(imported, buffer.is_imported);
    vulkan::DestroyBuffer(device_, &buffer);
    return imported;
  }

  static constexpr uint64_t kPage = 16384;
  vulkan::Device device_;
  std::vector<std::byte> storage_;
  std::byte* pages_ = nullptr;
};

TEST_F(VulkanPagesTest, WholePages_AreImported) {
  EXPECT_TRUE(Import(pages_, 4 * kPage, 4 * kPage));
  EXPECT_TRUE(Import(pages_, 3 * kPage + 256, 3 * kPage + 300));
}

TEST_F(VulkanPagesTest, BetweenPages_OrBehindTheFile_NothingIs) {
  EXPECT_FALSE(Import(pages_ + 256, kPage, kPage));
  EXPECT_FALSE(Import(pages_, 3 * kPage, 2 * kPage));
}

// What drivers say to a mapping that may not be written.
TEST_F(VulkanPagesTest, ADriverThatRefuses_LeavesNothingBehind) {
  vulkan::Api* api = device_.mutable_api();
  const vulkan::Api whole = *api;
  const int64_t live = device_.allocations()->n_live;
  api->GetMemoryHostPointerPropertiesEXT = [](VkDevice, VkExternalMemoryHandleTypeFlagBits,
                                              const void*, VkMemoryHostPointerPropertiesEXT*) {
    return VK_ERROR_INVALID_EXTERNAL_HANDLE;
  };
  EXPECT_FALSE(Import(pages_, kPage, kPage));
  *api = whole;
  api->GetMemoryHostPointerPropertiesEXT = [](VkDevice, VkExternalMemoryHandleTypeFlagBits,
                                              const void*, VkMemoryHostPointerPropertiesEXT* out) {
    out->memoryTypeBits = 0;
    return VK_SUCCESS;
  };
  EXPECT_FALSE(Import(pages_, kPage, kPage));
  *api = whole;
  api->AllocateMemory = [](VkDevice, const VkMemoryAllocateInfo*, const VkAllocationCallbacks*,
                           VkDeviceMemory*) { return VK_ERROR_INVALID_EXTERNAL_HANDLE; };
  EXPECT_FALSE(Import(pages_, kPage, kPage));
  *api = whole;
  api->CreateBuffer = [](VkDevice, const VkBufferCreateInfo*, const VkAllocationCallbacks*,
                         VkBuffer*) { return VK_ERROR_OUT_OF_DEVICE_MEMORY; };
  EXPECT_FALSE(Import(pages_, kPage, kPage));
  *api = whole;
  api->GetBufferMemoryRequirements = [](VkDevice, VkBuffer, VkMemoryRequirements* out) {
    *out = {2 * kPage, 256, 1};  // more than there is
  };
  EXPECT_FALSE(Import(pages_, kPage, kPage));
  *api = whole;
  EXPECT_EQ(live, device_.allocations()->n_live);
  EXPECT_TRUE(Import(pages_, kPage, kPage));
}

// Devices with memory of their own, drivers without the extension and those with a quirk copy.
TEST(VulkanImportTest, OnlyDevicesThatShareTheHostsMemory_Import) {
  vulkan::DeviceReport report;
  report.import_align = 4096;
  report.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  EXPECT_EQ(4096u, vulkan::UseOf(report, 0).import_align);
  EXPECT_EQ(0u, vulkan::UseOf(report, vulkan::kAvoidImport).import_align);
  EXPECT_EQ(0u, vulkan::UseOf(report, vulkan::kAvoidMapping).import_align);
  report.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  EXPECT_EQ(0u, vulkan::UseOf(report, 0).import_align);
  report.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_CPU;
  report.import_align = 0;
  EXPECT_EQ(0u, vulkan::UseOf(report, 0).import_align);
}

}  // namespace
}  // namespace arn::conformance

// What the backend uses on devices that are only described: the table of drivers' bugs, and the
// features that remain.
#include <cstdio>
#include <string>
#include <vector>

#include "backends.h"
#include "kernels/vulkan/backend_vulkan.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/device/quirks.h"
#include "kernels/vulkan/pipelines/pipeline_cache.h"

namespace arn::conformance {
namespace {

using vulkan::DeviceReport;
using vulkan::DeviceUse;
using vulkan::Quirk;

constexpr auto kDiscrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
constexpr auto kIntegrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
constexpr auto kSoftware = VK_PHYSICAL_DEVICE_TYPE_CPU;

constexpr uint32_t kAmd = 0x1002, kNvidia = 0x10de, kArm = 0x13b5, kBroadcom = 0x14e4,
                   kSamsung = 0x144d, kQualcomm = 0x5143, kIntel = 0x8086, kApple = 0x106b,
                   kImagination = 0x1010, kMesa = 0x10005, kGoogle = 0x1ae0;

constexpr uint32_t NvidiaVersion(uint32_t major, uint32_t minor) {
  return major << 22 | minor << 14;
}

// A device that has every feature.
DeviceReport Report(uint32_t vendor, uint32_t driver, const char* name, VkPhysicalDeviceType type,
                    uint32_t version = 1) {
  DeviceReport report;
  report.properties.vendorID = vendor;
  report.properties.deviceType = type;
  report.properties.driverVersion = version;
  std::snprintf(report.properties.deviceName, sizeof report.properties.deviceName, "%s", name);
  report.driver = driver;
  report.subgroup_size = 64;
  report.has_subgroups = report.has_full_subgroups = report.has_sized_subgroups = true;
  report.has_dot = report.has_half = report.has_coop = true;
  report.import_align = 4096;
  return report;
}

struct Described {
  DeviceReport report;
  uint32_t avoid;
};

const std::vector<Described>& Devices() {
  using namespace vulkan;  // the flags
  static const std::vector<Described> devices = {
      {Report(kQualcomm, VK_DRIVER_ID_QUALCOMM_PROPRIETARY, "Adreno (TM) 830", kIntegrated),
       kAvoidSubgroups | kAvoidCoop},
      {Report(kQualcomm, VK_DRIVER_ID_MESA_TURNIP, "Turnip Adreno (TM) 740", kIntegrated),
       kAvoidFullSubgroups},
      {Report(kImagination, VK_DRIVER_ID_IMAGINATION_PROPRIETARY,
              "PowerVR C-Series CXTP-48-1536 MC1", kIntegrated),
       kAvoidDevice | kAvoidFullSubgroups},
      {Report(kImagination, VK_DRIVER_ID_IMAGINATION_PROPRIETARY, "PowerVR D-Series DXT-48-1536",
              kIntegrated),
       kAvoidFullSubgroups},
      {Report(kImagination, VK_DRIVER_ID_IMAGINATION_OPEN_SOURCE_MESA,
              "PowerVR C-Series CXTP-48-1536", kIntegrated),
       0},
      {Report(kAmd, VK_DRIVER_ID_AMD_PROPRIETARY, "AMD Radeon 860M Graphics", kIntegrated),
       kAvoidCoop},
      {Report(kAmd, VK_DRIVER_ID_AMD_OPEN_SOURCE, "AMD Radeon 860M Graphics", kIntegrated),
       kAvoidCoop},
      {Report(kAmd, VK_DRIVER_ID_AMD_PROPRIETARY, "AMD Radeon RX 6900 XT", kDiscrete), kAvoidCoop},
      {Report(kAmd, VK_DRIVER_ID_AMD_OPEN_SOURCE, "AMD Radeon RX 6900 XT", kDiscrete), kAvoidCoop},
      {Report(kAmd, VK_DRIVER_ID_AMD_PROPRIETARY, "AMD Radeon RX 7900 XTX", kDiscrete), 0},
      {Report(kAmd, VK_DRIVER_ID_MESA_RADV, "AMD Radeon RX 6900 XT (RADV NAVI21)", kDiscrete), 0},
      {Report(kAmd, VK_DRIVER_ID_MESA_RADV, "AMD Radeon 780M (RADV PHOENIX)", kIntegrated), 0},
      {Report(kAmd, VK_DRIVER_ID_MOLTENVK, "AMD Radeon Pro 5500M", kDiscrete), kAvoidSubgroups},
      {Report(kApple, VK_DRIVER_ID_MOLTENVK, "Apple M2", kIntegrated), 0},
      {Report(kApple, VK_DRIVER_ID_MESA_HONEYKRISP, "Apple M2 (G14G B1)", kIntegrated), 0},
      {Report(kIntel, VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS, "Intel(R) Arc(TM) Pro B70 Graphics",
              kDiscrete),
       kAvoidCoop},
      {Report(kIntel, VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS, "Intel(R) Arc(TM) B580 Graphics",
              kDiscrete),
       0},
      {Report(kIntel, VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, "Intel(R) Arc(TM) Pro B70 (BMG G31)",
              kDiscrete),
       0},
      {Report(kNvidia, VK_DRIVER_ID_NVIDIA_PROPRIETARY, "NVIDIA GeForce RTX 5080", kDiscrete,
              NvidiaVersion(595, 58) + (3u << 6)),
       kAvoidCoop},
      {Report(kNvidia, VK_DRIVER_ID_NVIDIA_PROPRIETARY, "NVIDIA GeForce RTX 5080", kDiscrete,
              NvidiaVersion(595, 57) + (255u << 6)),
       0},
      {Report(kNvidia, VK_DRIVER_ID_NVIDIA_PROPRIETARY, "NVIDIA GeForce RTX 5080", kDiscrete,
              NvidiaVersion(595, 59)),
       0},
      {Report(kNvidia, VK_DRIVER_ID_NVIDIA_PROPRIETARY, "NVIDIA H200", kDiscrete,
              NvidiaVersion(580, 159)),
       0},
      {Report(kBroadcom, VK_DRIVER_ID_MESA_V3DV, "V3D 7.1.7.0", kIntegrated), kAvoidLongRuns},
      {Report(kArm, VK_DRIVER_ID_ARM_PROPRIETARY, "Mali-G720-Immortalis", kIntegrated), 0},
      {Report(kArm, VK_DRIVER_ID_MESA_PANVK, "Mali-G610 (Panfrost)", kIntegrated), 0},
      {Report(kSamsung, VK_DRIVER_ID_SAMSUNG_PROPRIETARY, "Samsung Xclipse 940", kIntegrated), 0},
      {Report(kMesa, VK_DRIVER_ID_MESA_LLVMPIPE, "llvmpipe (LLVM 15.0.6, 256 bits)", kSoftware), 0},
      {Report(kGoogle, VK_DRIVER_ID_GOOGLE_SWIFTSHADER, "SwiftShader Device (LLVM 16.0.0)",
              kSoftware),
       0},
      // Without VK_KHR_driver_properties the driver is that of the vendor.
      {Report(kQualcomm, 0, "Adreno (TM) 540", kIntegrated),
       kAvoidSubgroups | kAvoidCoop | kAvoidFullSubgroups},
      {Report(kArm, 0, "Mali-G72", kIntegrated), 0},
  };
  return devices;
}

TEST(VulkanQuirksTest, EachDevice_AvoidsWhatItsRowsSay) {
  for (const Described& d : Devices()) {
    const char* why = nullptr;
    EXPECT_EQ(d.avoid, vulkan::AvoidedOn(vulkan::KnownQuirks(), d.report, &why))
        << d.report.properties.deviceName << ", driver " << d.report.driver << ", version "
        << d.report.properties.driverVersion;
    EXPECT_EQ((d.avoid & vulkan::kAvoidDevice) != 0, why != nullptr);
  }
}

TEST(VulkanQuirksTest, EachRow_IsOfSomeDevice_AndNamesItsSource) {
  for (const Quirk& quirk : vulkan::KnownQuirks()) {
    size_t n = 0;
    for (const Described& d : Devices()) n += vulkan::Matches(quirk, d.report) ? 1 : 0;
    EXPECT_GT(n, 0u) << quirk.why;
    EXPECT_LT(n, Devices().size()) << quirk.why;
    EXPECT_NE(0u, quirk.avoid) << quirk.why;
    EXPECT_STRNE("", quirk.why);
    EXPECT_STRNE("", quirk.source) << quirk.why;
  }
}

TEST(VulkanQuirksTest, EachFieldOfARow_MustMatch) {
  Quirk quirk;
  quirk.vendor = 7;
  quirk.driver = 3;
  quirk.device = "GPU 5";
  quirk.type = kIntegrated;
  quirk.first_version = 100;
  quirk.last_version = 200;
  const DeviceReport device = Report(7, 3, "A GPU 5x", kIntegrated, 100);
  EXPECT_TRUE(vulkan::Matches(quirk, device));
  EXPECT_TRUE(vulkan::Matches(quirk, Report(7, 3, "GPU 5", kIntegrated, 200)));
  EXPECT_TRUE(vulkan::Matches(quirk, Report(7, 0, "GPU 5", kIntegrated, 150)));
  EXPECT_FALSE(vulkan::Matches(quirk, Report(8, 3, "GPU 5", kIntegrated, 150)));
  EXPECT_FALSE(vulkan::Matches(quirk, Report(8, 0, "GPU 5", kIntegrated, 150)));
  EXPECT_FALSE(vulkan::Matches(quirk, Report(7, 4, "GPU 5", kIntegrated, 150)));
  EXPECT_FALSE(vulkan::Matches(quirk, Report(7, 3, "GPU 6", kIntegrated, 150)));
  EXPECT_FALSE(vulkan::Matches(quirk, Report(7, 3, "GPU 5", kDiscrete, 150)));
  EXPECT_FALSE(vulkan::Matches(quirk, Report(7, 3, "GPU 5", kIntegrated, 99)));
  EXPECT_FALSE(vulkan::Matches(quirk, Report(7, 3, "GPU 5", kIntegrated, 201)));
  EXPECT_TRUE(vulkan::Matches(Quirk(), device));
  // A row of any vendor needs the driver's id.
  quirk.vendor = 0;
  EXPECT_FALSE(vulkan::Matches(quirk, Report(7, 0, "GPU 5", kIntegrated, 150)));
}

DeviceUse Use(const DeviceReport& report) {
  const char* why = nullptr;
  return vulkan::UseOf(report, vulkan::AvoidedOn(vulkan::KnownQuirks(), report, &why));
}

TEST(VulkanUseTest, EachDevice_UsesWhatIsLeft) {
  const DeviceUse adreno =
      Use(Report(kQualcomm, VK_DRIVER_ID_QUALCOMM_PROPRIETARY, "Adreno (TM) 830", kIntegrated));
  EXPECT_FALSE(adreno.subgroups || adreno.full_subgroups || adreno.sized_subgroups || adreno.coop);
  EXPECT_TRUE(adreno.dot && adreno.unified);
  EXPECT_EQ(512u, adreno.chunk_rows);

  const DeviceUse turnip =
      Use(Report(kQualcomm, VK_DRIVER_ID_MESA_TURNIP, "Turnip Adreno (TM) 740", kIntegrated));
  EXPECT_TRUE(turnip.subgroups && turnip.dot && turnip.unified);
  EXPECT_FALSE(turnip.full_subgroups || turnip.sized_subgroups || turnip.coop);

  const DeviceUse card =
      Use(Report(kNvidia, VK_DRIVER_ID_NVIDIA_PROPRIETARY, "NVIDIA H200", kDiscrete));
  EXPECT_TRUE(card.subgroups && card.full_subgroups && card.sized_subgroups && card.coop);
  EXPECT_TRUE(card.dot && !card.unified);
  EXPECT_EQ(512u, card.chunk_rows);

  const DeviceUse radeon =
      Use(Report(kAmd, VK_DRIVER_ID_AMD_PROPRIETARY, "AMD Radeon RX 6900 XT", kDiscrete));
  EXPECT_TRUE(radeon.subgroups && radeon.full_subgroups && radeon.sized_subgroups && radeon.dot);
  EXPECT_FALSE(radeon.coop);

  const DeviceUse small = Use(Report(kBroadcom, VK_DRIVER_ID_MESA_V3DV, "V3D 7.1.7", kIntegrated));
  EXPECT_EQ(32u, small.chunk_rows);
  EXPECT_TRUE(small.subgroups);

  const DeviceUse software = Use(Report(kMesa, VK_DRIVER_ID_MESA_LLVMPIPE, "llvmpipe", kSoftware));
  EXPECT_EQ(128u, software.chunk_rows);
  EXPECT_TRUE(software.subgroups && software.dot && software.unified);
}

TEST(VulkanUseTest, EachAvoidFlag_TurnsOffItsFeatureAndThoseThatNeedIt) {
  const DeviceReport all =
      Report(kArm, VK_DRIVER_ID_ARM_PROPRIETARY, "Mali-G720-Immortalis", kIntegrated);
  const auto use = [&](uint32_t avoid) { return vulkan::UseOf(all, avoid); };
  const DeviceUse none = use(0);
  EXPECT_TRUE(none.subgroups && none.full_subgroups && none.sized_subgroups && none.dot &&
              none.coop && none.unified);
  const DeviceUse no_subgroups = use(vulkan::kAvoidSubgroups);
  EXPECT_FALSE(no_subgroups.subgroups || no_subgroups.full_subgroups ||
               no_subgroups.sized_subgroups || no_subgroups.coop);
  EXPECT_TRUE(no_subgroups.dot);
  const DeviceUse no_full = use(vulkan::kAvoidFullSubgroups);
  EXPECT_FALSE(no_full.full_subgroups || no_full.sized_subgroups || no_full.coop);
  EXPECT_TRUE(no_full.subgroups);
  EXPECT_FALSE(use(vulkan::kAvoidDot).dot);
  EXPECT_TRUE(none.half && use(vulkan::kAvoidDot).half);
  EXPECT_FALSE(use(vulkan::kAvoidHalf).half);
  EXPECT_FALSE(use(vulkan::kAvoidMapping).unified);
  EXPECT_FALSE(use(vulkan::kAvoidCoop).coop);
  EXPECT_EQ(32u, use(vulkan::kAvoidLongRuns).chunk_rows);
}

TEST(VulkanUseTest, WhatADeviceDoesNotReport_IsNotUsed) {
  const DeviceReport all = Report(kArm, VK_DRIVER_ID_ARM_PROPRIETARY, "Mali-G610", kIntegrated);
  DeviceReport less = all;
  less.subgroup_size = 2;
  EXPECT_FALSE(vulkan::UseOf(less, 0).subgroups);
  less = all;
  less.has_subgroups = false;
  EXPECT_FALSE(vulkan::UseOf(less, 0).subgroups || vulkan::UseOf(less, 0).coop);
  less = all;
  less.has_full_subgroups = false;
  EXPECT_FALSE(vulkan::UseOf(less, 0).full_subgroups || vulkan::UseOf(less, 0).coop);
  less = all;
  less.has_sized_subgroups = false;
  EXPECT_TRUE(vulkan::UseOf(less, 0).full_subgroups);
  EXPECT_FALSE(vulkan::UseOf(less, 0).sized_subgroups);
  less = all;
  less.has_dot = less.has_half = less.has_coop = false;
  const DeviceUse least = vulkan::UseOf(less, 0);
  EXPECT_FALSE(least.dot || least.half || least.coop);
}

TEST(VulkanQuirksTest, Description_NamesEachRowOfTheDevice) {
  const auto described = [](const DeviceReport& report, size_t bytes) {
    std::string text(bytes, 'x');
    vulkan::DescribeQuirks(vulkan::KnownQuirks(), report, text.data(), bytes);
    return std::string(text.c_str());
  };
  const DeviceReport adreno =
      Report(kQualcomm, VK_DRIVER_ID_QUALCOMM_PROPRIETARY, "Adreno (TM) 830", kIntegrated);
  const std::string text = described(adreno, 512);
  EXPECT_EQ(0u, text.find("no subgroup operations: ")) << text;
  EXPECT_NE(std::string::npos, text.find("; no cooperative matrices: ")) << text;
  EXPECT_NE(std::string::npos, text.find("issue 28635")) << text;
  EXPECT_EQ(')', text.back());
  EXPECT_EQ(text.substr(0, 39), described(adreno, 40));
  EXPECT_EQ("", described(Report(kNvidia, VK_DRIVER_ID_NVIDIA_PROPRIETARY, "x", kDiscrete), 512));
}

class VulkanQuirksOnDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* problem = NoDevice(VulkanBackend())) GTEST_SKIP() << problem;
  }
};

TEST_F(VulkanQuirksOnDeviceTest, Device_WithQuirks_DoesWithoutOrIsRefused) {
  Quirk quirk;
  quirk.why = "it is only a test";
  quirk.source = "no issue";
  quirk.device = "no such name";
  vulkan::DeviceChoice choice;
  choice.quirks = {&quirk, 1};
  Diag diag;
  const auto open = [&](vulkan::Device* device) {
    const Status status = device->Open(choice, &diag);
    device->Close();
    return status;
  };
  vulkan::Device usual, less, refused;
  quirk.avoid = vulkan::kAvoidDevice;
  ASSERT_EQ(Status::kOk, open(&usual)) << diag.text();
  EXPECT_STREQ("", usual.quirks());
  quirk.device = usual.name();
  quirk.vendor = usual.properties().vendorID;
  quirk.avoid = vulkan::kAvoidSubgroups | vulkan::kAvoidDot | vulkan::kAvoidMapping;
  ASSERT_EQ(Status::kOk, open(&less)) << diag.text();
  EXPECT_TRUE(usual.uses_subgroups() || usual.uses_dot() || usual.is_unified());
  EXPECT_FALSE(less.uses_subgroups() || less.uses_dot() || less.is_unified());
  EXPECT_STREQ(
      "no subgroup operations, no integer dot products, no mapped device memory: it is only a test "
      "(no issue)",
      less.quirks());
  // What is avoided has files of its own.
  EXPECT_NE(vulkan::KeyOf(usual).shaders, vulkan::KeyOf(less).shaders);
  quirk.avoid = vulkan::kAvoidDevice;
  EXPECT_EQ(Status::kUnsupported, open(&refused));
  EXPECT_NE(std::string(diag.text()).find(quirk.why), std::string::npos) << diag.text();
}

// Lavapipe is the driver of these tests; other drivers may have rows.
TEST_F(VulkanQuirksOnDeviceTest, Software_HasNoRow_AndChunksOf128) {
  vulkan::Device device;
  Diag diag;
  ASSERT_EQ(Status::kOk, device.Open({}, &diag)) << diag.text();
  device.Close();
  if (device.properties().deviceType != kSoftware) GTEST_SKIP() << device.name();
  EXPECT_STREQ("", device.quirks());
  EXPECT_EQ(0u, device.avoided());
  EXPECT_NE(0u, device.report().driver);
  EXPECT_EQ(128u, device.chunk_rows());
}

}  // namespace
}  // namespace arn::conformance

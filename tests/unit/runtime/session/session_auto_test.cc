// ARN_BACKEND_AUTO, and the files in a device folder.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "platform/base/hash.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kVocab = 61;

arn_session_options Options(uint32_t backend) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.n_threads = 1;
  options.context_tokens = 64;
  options.device = "0";  // a software driver must be named explicitly
  return options;
}

std::string Bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void Write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

class VulkanAutoTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        (std::string("auto_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bytes_ = std::make_unique<BundleBytes>(MakeTinyBundle(bundle));
    model_ = OpenBytes(*bytes_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Creates a session on Vulkan. Returns null and sets *reason if that fails.
  SessionPtr OnVulkan(const char* folder, std::string* reason) {
    arn_session_options options = Options(ARN_BACKEND_VULKAN);
    options.device_folder = folder;
    arn_session* session = nullptr;
    char error[512] = "";
    status_ = arn_session_create(model_.get(), &options, nullptr, 0, error, sizeof error, &session);
    *reason = error;
    return SessionPtr(session);
  }

  // Creates sessions until all matmul variants are measured.
  SessionPtr Measured(std::string* reason) {
    SessionPtr session;
    for (int i = 0; i < 40; ++i) {
      session = OnVulkan(folder_.c_str(), reason);
      if (session == nullptr || Kernels(session.get()).ends_with("; remembered")) break;
    }
    return session;
  }
  static std::string Kernels(arn_session* session) {
    arn_backend_info info = ARN_BACKEND_INFO_INIT;
    EXPECT_EQ(ARN_OK, arn_session_backend(session, &info));
    return info.kernels;
  }
  // Returns the only file with this suffix.
  fs::path CachedFile(const char* suffix) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == suffix) files.push_back(entry.path());
    }
    EXPECT_EQ(1u, files.size()) << suffix;
    return files.empty() ? fs::path() : files[0];
  }
  size_t CountCachedFiles() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
  std::unique_ptr<BundleBytes> bytes_;
  ModelPtr model_;
  arn_status status_ = ARN_OK;
};

arn_backend_info Info(arn_session* session) {
  arn_backend_info info = ARN_BACKEND_INFO_INIT;
  EXPECT_EQ(ARN_OK, arn_session_backend(session, &info));
  return info;
}

TEST_F(VulkanAutoTest, Auto_IsVulkanWhereItCanBeHad) {
  std::string reason;
  const SessionPtr vulkan = OnVulkan(nullptr, &reason);
  const SessionPtr session = NewSession(model_.get(), Options(ARN_BACKEND_AUTO));
  const arn_backend_info info = Info(session.get());
  if (vulkan == nullptr) {
    EXPECT_EQ(static_cast<uint32_t>(ARN_BACKEND_CPU), info.backend);
    EXPECT_EQ(reason, info.reason);
    GTEST_SKIP() << reason;
  }
  EXPECT_EQ(static_cast<uint32_t>(ARN_BACKEND_VULKAN), info.backend);
  EXPECT_EQ(std::string("vulkan"), info.name);
  EXPECT_EQ(std::string(Info(vulkan.get()).device), info.device);
  EXPECT_NE(std::string(), info.device);
  EXPECT_EQ(std::string(), info.reason);
  const SessionPtr cpu = NewSession(model_.get(), Options(ARN_BACKEND_CPU));
  EXPECT_EQ(Greedy(cpu.get(), SomeIds(9, kVocab), 5), Greedy(session.get(), SomeIds(9, kVocab), 5));
}

TEST_F(VulkanAutoTest, Auto_DriverInSoftware_IsPassedOverUnlessNamed) {
  std::string reason;
  const SessionPtr vulkan = OnVulkan(nullptr, &reason);
  if (vulkan == nullptr) GTEST_SKIP() << reason;
  if (std::strstr(Info(vulkan.get()).device, "llvmpipe") == nullptr) {
    GTEST_SKIP() << "device 0 is " << Info(vulkan.get()).device << ", no driver in software";
  }
  arn_session_options options = Options(ARN_BACKEND_AUTO);
  options.device = "llvmpipe";
  const SessionPtr named = NewSession(model_.get(), options);
  EXPECT_EQ(static_cast<uint32_t>(ARN_BACKEND_VULKAN), Info(named.get()).backend);
  options.device = nullptr;
  const SessionPtr session = NewSession(model_.get(), options);
  const arn_backend_info info = Info(session.get());
  if (info.backend == ARN_BACKEND_VULKAN) {
    EXPECT_EQ(nullptr, std::strstr(info.device, "llvmpipe")) << "a GPU goes first";
    return;
  }
  EXPECT_NE(nullptr, std::strstr(info.reason, "is a software device")) << info.reason;
}

TEST_F(VulkanAutoTest, AutoPlan_HasRoomForTheCpuAndTheDevice) {
  arn_memory_plan plans[3];
  const uint32_t backends[3] = {ARN_BACKEND_CPU, ARN_BACKEND_VULKAN, ARN_BACKEND_AUTO};
  for (uint32_t i = 0; i < 3; ++i) {
    const arn_session_options options = Options(backends[i]);
    plans[i] = ARN_MEMORY_PLAN_INIT;
    ASSERT_EQ(ARN_OK, arn_session_plan(model_.get(), &options, nullptr, 0, &plans[i]));
  }
  EXPECT_EQ(plans[1].device_bytes, plans[2].device_bytes);
  EXPECT_GT(plans[2].total_bytes, plans[0].total_bytes);
  EXPECT_EQ(plans[2].total_bytes, plans[2].constants_bytes + plans[2].io_bytes + plans[2].kv_bytes +
                                      plans[2].activations_bytes);
}

// The planned block suits either backend.
TEST_F(VulkanAutoTest, Auto_NoSuchDevice_IsTheCpuWithTheReason) {
  arn_session_options options = Options(ARN_BACKEND_AUTO);
  options.device = "no such GPU";
  const SessionPtr session = NewSession(model_.get(), options);
  const arn_backend_info info = Info(session.get());
  EXPECT_EQ(static_cast<uint32_t>(ARN_BACKEND_CPU), info.backend);
  EXPECT_EQ(std::string(), info.device);
  EXPECT_EQ(0u, std::string(info.reason).find("Vulkan: ")) << info.reason;
  EXPECT_EQ(3u, Greedy(session.get(), SomeIds(9, kVocab), 3).size());
}

TEST_F(VulkanAutoTest, Auto_WhatVulkanDoesNotDo_IsTheCpuWithTheReason) {
  const std::string file = (folder_ / "pages").string();
  arn_session_options options = Options(ARN_BACKEND_AUTO);
  options.kv_file = file.c_str();
  const SessionPtr session = NewSession(model_.get(), options);
  const arn_backend_info info = Info(session.get());
  EXPECT_EQ(static_cast<uint32_t>(ARN_BACKEND_CPU), info.backend);
  EXPECT_NE(std::string::npos, std::string(info.reason).find("kv_file")) << info.reason;
}

TEST_F(VulkanAutoTest, DeviceFolder_PipelinesAreKeptAndWhatIsDamagedOrForeignIsReplaced) {
  std::string reason;
  if (Measured(&reason) == nullptr) GTEST_SKIP() << reason;
  // Keeps only the pipelines of the final variants.
  fs::remove(CachedFile(".pipelines"));
  ASSERT_NE(nullptr, OnVulkan(folder_.c_str(), &reason)) << reason;
  EXPECT_EQ(2u, CountCachedFiles());
  const fs::path file = CachedFile(".pipelines");
  const std::string whole = Bytes(file);
  ASSERT_GT(whole.size(), 72u);
  const fs::file_time_type long_ago = fs::last_write_time(file) - std::chrono::hours(5);

  // An unchanged cache is not written again.
  fs::last_write_time(file, long_ago);
  ASSERT_NE(nullptr, OnVulkan(folder_.c_str(), &reason)) << reason;
  EXPECT_EQ(long_ago, fs::last_write_time(file));

  std::vector<std::string> bad(5, whole);
  bad[0].resize(whole.size() - 1);
  bad[1].resize(40);
  bad[2].clear();
  bad[3].back() = static_cast<char>(bad[3].back() ^ 1);
  // A valid file of another driver.
  bad[4][16] = static_cast<char>(bad[4][16] ^ 1);
  const uint64_t hash = Xxh64(bad[4].data(), 64);
  std::memcpy(bad[4].data() + 64, &hash, sizeof hash);
  for (const std::string& bytes : bad) {
    Write(file, bytes);
    ASSERT_NE(nullptr, OnVulkan(folder_.c_str(), &reason)) << reason;
    EXPECT_EQ(whole, Bytes(file));
  }
  EXPECT_EQ(2u, CountCachedFiles());
}

// Changes a byte after the header and repairs the hashes.
std::string Forged(std::string bytes, size_t at, char value) {
  constexpr size_t kHeader = 72;
  bytes[kHeader + at] = value;
  uint64_t hash = Xxh64(bytes.data() + kHeader, bytes.size() - kHeader);
  std::memcpy(bytes.data() + 56, &hash, sizeof hash);
  hash = Xxh64(bytes.data(), 64);
  std::memcpy(bytes.data() + 64, &hash, sizeof hash);
  return bytes;
}

TEST_F(VulkanAutoTest, DeviceFolder_MatmulsAreMeasuredOnce_AndWhatIsRememberedIsUsed) {
  std::string reason;
  const SessionPtr usual = OnVulkan(nullptr, &reason);
  if (usual == nullptr) GTEST_SKIP() << reason;
  EXPECT_TRUE(Kernels(usual.get()).ends_with("; fixed")) << Kernels(usual.get());
  const SessionPtr first = OnVulkan(folder_.c_str(), &reason);
  ASSERT_NE(nullptr, first) << reason;
  EXPECT_NE(std::string::npos, Kernels(first.get()).find("; measured")) << Kernels(first.get());
  const SessionPtr second = Measured(&reason);
  ASSERT_NE(nullptr, second) << reason;
  ASSERT_TRUE(Kernels(second.get()).ends_with("; remembered")) << Kernels(second.get());
  const std::vector<int32_t> tokens = Greedy(usual.get(), SomeIds(9, kVocab), 5);
  EXPECT_EQ(tokens, Greedy(second.get(), SomeIds(9, kVocab), 5));

  // Stores another choice: for one-row matmuls the third variant, which computes 8 outputs.
  const fs::path file = CachedFile(".tuning");
  const std::string whole = Bytes(file);
  constexpr size_t kRecord = 32, kBest = 20;
  std::string forged = whole;
  for (size_t at = 0; at + kRecord <= whole.size() - 72; at += kRecord) {
    if (whole[72 + at] == 0) forged = Forged(forged, at + kBest, 2);
  }
  Write(file, forged);
  const SessionPtr other = OnVulkan(folder_.c_str(), &reason);
  ASSERT_NE(nullptr, other) << reason;
  EXPECT_NE(std::string::npos, Kernels(other.get()).find(" gemv-8 ")) << Kernels(other.get());
  EXPECT_TRUE(Kernels(other.get()).ends_with("; remembered"));
  EXPECT_EQ(tokens, Greedy(other.get(), SomeIds(9, kVocab), 5));
  EXPECT_EQ(forged, Bytes(file));

  // A damaged file, or a valid one with an unknown variant, is measured again.
  std::string broken = whole;
  broken.back() = static_cast<char>(broken.back() ^ 1);
  for (const std::string& bad : {broken, Forged(whole, kBest, 99)}) {
    Write(file, bad);
    const SessionPtr again = OnVulkan(folder_.c_str(), &reason);
    ASSERT_NE(nullptr, again) << reason;
    EXPECT_NE(std::string::npos, Kernels(again.get()).find("; measured")) << Kernels(again.get());
    EXPECT_NE(bad, Bytes(file));
  }
}

TEST_F(VulkanAutoTest, DeviceFolderThatIsNotThere_IsAsNone) {
  std::string reason;
  const SessionPtr session = OnVulkan((folder_ / "none").c_str(), &reason);
  if (session == nullptr && status_ == ARN_UNSUPPORTED) GTEST_SKIP() << reason;
  EXPECT_NE(nullptr, session) << reason;
}

TEST_F(VulkanAutoTest, DeviceFolder_DriverThatEndedAProcess_IsRefusedUntilTheMarkIsRemoved) {
  std::string reason;
  if (OnVulkan(folder_.c_str(), &reason) == nullptr) GTEST_SKIP() << reason;
  fs::path mark = CachedFile(".pipelines");
  mark.replace_extension(".testing");
  Write(mark, "!");
  EXPECT_EQ(nullptr, OnVulkan(folder_.c_str(), &reason));
  EXPECT_EQ(ARN_UNSUPPORTED, status_);
  EXPECT_NE(std::string::npos, reason.find(mark.string())) << reason;
  EXPECT_TRUE(fs::exists(mark));
  arn_session_options options = Options(ARN_BACKEND_AUTO);
  options.device_folder = folder_.c_str();
  EXPECT_EQ(reason, Info(NewSession(model_.get(), options).get()).reason);
  fs::remove(mark);
  EXPECT_NE(nullptr, OnVulkan(folder_.c_str(), &reason)) << reason;
  EXPECT_FALSE(fs::exists(mark));
}

TEST_F(VulkanAutoTest, DeviceFolder_WhatCannotBeWritten_IsNoFailure) {
  std::string reason;
  if (OnVulkan(folder_.c_str(), &reason) == nullptr) GTEST_SKIP() << reason;
  for (const char* suffix : {".pipelines", ".tuning"}) {
    const fs::path file = CachedFile(suffix);
    fs::remove(file);
    fs::create_directory(file);
  }
  EXPECT_NE(nullptr, OnVulkan(folder_.c_str(), &reason)) << reason;
  EXPECT_EQ(2u, CountCachedFiles());
}

}  // namespace
}  // namespace arn::test

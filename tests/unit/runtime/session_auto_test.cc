// ARN_BACKEND_AUTO, and what a device folder keeps.
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
  options.device = "0";  // a driver in software has to be named
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
    Open(bundle);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Open(const TinyBundle& bundle) {
    model_.reset();
    bytes_ = std::make_unique<BundleBytes>(MakeTinyBundle(bundle));
    model_ = OpenBytes(*bytes_);
  }

  // On Vulkan; null, and the reason, when there is none.
  SessionPtr OnVulkan(const char* folder, std::string* reason) {
    arn_session_options options = Options(ARN_BACKEND_VULKAN);
    options.device_folder = folder;
    arn_session* session = nullptr;
    char error[512] = "";
    status_ = arn_session_create(model_.get(), &options, nullptr, 0, error, sizeof error, &session);
    *reason = error;
    return SessionPtr(session);
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
  EXPECT_NE(nullptr, std::strstr(info.reason, "computes on the CPU")) << info.reason;
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

// The block of the plan is enough for whichever it becomes.
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

TEST_F(VulkanAutoTest, Auto_ModelThatVulkanDoesNotRun_IsTheCpuWithTheReason) {
  TinyBundle wide;
  wide.vocab = kVocab;
  wide.layers = 1;
  wide.ffn = 8300;
  wide.max_context = 2048;
  Open(wide);
  arn_session_options options = Options(ARN_BACKEND_AUTO);
  options.context_tokens = options.prefill_chunk = 2048;
  const SessionPtr session = NewSession(model_.get(), options);
  ASSERT_NE(nullptr, session);
  const arn_backend_info info = Info(session.get());
  EXPECT_EQ(static_cast<uint32_t>(ARN_BACKEND_CPU), info.backend);
  EXPECT_NE(std::string::npos, std::string(info.reason).find("a binding of 128 MiB"))
      << info.reason;
}

TEST_F(VulkanAutoTest, DeviceFolder_PipelinesAreKeptAndWhatIsDamagedOrForeignIsReplaced) {
  std::string reason;
  if (OnVulkan(folder_.c_str(), &reason) == nullptr) GTEST_SKIP() << reason;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder_)) files.push_back(entry.path());
  ASSERT_EQ(1u, files.size());
  const fs::path file = files[0];
  ASSERT_EQ(".pipelines", file.extension());
  const std::string whole = Bytes(file);
  ASSERT_GT(whole.size(), 72u);
  const fs::file_time_type long_ago = fs::last_write_time(file) - std::chrono::hours(5);

  // The same once more: it is not written again.
  fs::last_write_time(file, long_ago);
  ASSERT_NE(nullptr, OnVulkan(folder_.c_str(), &reason)) << reason;
  EXPECT_EQ(long_ago, fs::last_write_time(file));

  std::vector<std::string> bad(5, whole);
  bad[0].resize(whole.size() - 1);
  bad[1].resize(40);
  bad[2].clear();
  bad[3].back() = static_cast<char>(bad[3].back() ^ 1);
  // Of another driver, and whole.
  bad[4][16] = static_cast<char>(bad[4][16] ^ 1);
  const uint64_t hash = Xxh64(bad[4].data(), 64);
  std::memcpy(bad[4].data() + 64, &hash, sizeof hash);
  for (const std::string& bytes : bad) {
    Write(file, bytes);
    ASSERT_NE(nullptr, OnVulkan(folder_.c_str(), &reason)) << reason;
    EXPECT_EQ(whole, Bytes(file));
  }
  EXPECT_EQ(1, std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
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
  fs::path mark = fs::directory_iterator(folder_)->path();
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

TEST_F(VulkanAutoTest, DeviceFolder_PipelinesThatCannotBeWritten_AreNoFailure) {
  std::string reason;
  if (OnVulkan(folder_.c_str(), &reason) == nullptr) GTEST_SKIP() << reason;
  const fs::path file = fs::directory_iterator(folder_)->path();
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_NE(nullptr, OnVulkan(folder_.c_str(), &reason)) << reason;
  EXPECT_EQ(1, std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
}

}  // namespace
}  // namespace arn::test

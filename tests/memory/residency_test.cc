// Residency of bundle bytes: every mode gives the same tokens, a copy takes the planned bytes and
// no longer needs the file, and huge pages are counted as the system reports them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "platform/os/huge_pages.h"
#include "platform/os/pages.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

constexpr uint64_t kPage = 4096;

// Larger than several huge pages.
TinyBundle LargeTinyBundle() {
  TinyBundle options;
  options.hidden = 256;
  options.heads = 8;
  options.kv_heads = 4;
  options.head_dim = 32;
  options.ffn = 1024;
  options.layers = 4;
  return options;
}

class BundleFile {
 public:
  explicit BundleFile(const BundleBytes& bytes) {
    char name[] = "/tmp/arn_residency_XXXXXX";
    const int fd = mkstemp(name);
    EXPECT_GE(fd, 0);
    close(fd);
    path_ = name;
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  ~BundleFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

arn_status Open(const std::string& path, uint32_t residency, ModelPtr* out,
                std::string* error = nullptr) {
  arn_model_options options = ARN_MODEL_OPTIONS_INIT;
  options.residency = residency;
  arn_model* model = nullptr;
  char text[512] = "";
  const arn_status status = arn_model_open(path.c_str(), &options, text, sizeof text, &model);
  out->reset(model);
  if (error != nullptr) *error = text;
  return status;
}

std::vector<int32_t> Tokens(const arn_model* model) {
  const arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  const SessionPtr session = NewSession(model, options);
  return Greedy(session.get(), SomeIds(5, 61), 12);
}

uint64_t CopiedBytes(const arn_model* model) {
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  EXPECT_EQ(ARN_OK, arn_session_plan(model, nullptr, nullptr, 0, &plan));
  return plan.copied_bytes;
}

arn_residency Residency(const arn_model* model) {
  arn_residency residency = ARN_RESIDENCY_INIT;
  EXPECT_EQ(ARN_OK, arn_model_get_residency(model, &residency));
  return residency;
}

// True if a request for anonymous huge pages is granted here.
bool HasHugePages() {
  const uint64_t huge = HugePageBytes();
  if (huge == 0) return false;
  Result<Span<std::byte>> pages = ReserveHugePages(huge);
  if (!pages.ok()) return false;
  pages.value()[0] = std::byte{1};
  PageCounts counts;
  const bool has = CountPages({pages.value().data(), pages.value().size()}, &counts) &&
                   counts.huge_bytes == huge;
  ReleasePages(pages.value());
  return has;
}

TEST(Residency, OfEachKind_GivesTheSameTokens) {
  const BundleBytes bytes = MakeTinyBundle(LargeTinyBundle());
  const BundleFile file(bytes);
  const std::vector<int32_t> expected = Tokens(OpenBytes(bytes).get());
  for (const uint32_t residency :
       {ARN_RESIDENCY_MAPPED, ARN_RESIDENCY_COPIED, ARN_RESIDENCY_HUGE, ARN_RESIDENCY_LOCKED}) {
    ModelPtr model;
    std::string error;
    const arn_status status = Open(file.path(), residency, &model, &error);
    if (residency == ARN_RESIDENCY_LOCKED && status == ARN_OUT_OF_MEMORY) {
      EXPECT_NE(std::string::npos, error.find("RLIMIT_MEMLOCK")) << error;
      continue;
    }
    ASSERT_EQ(ARN_OK, status) << error;
    EXPECT_EQ(expected, Tokens(model.get())) << residency;
    const arn_residency found = Residency(model.get());
    EXPECT_EQ(residency, found.residency);
    const bool is_copy = residency == ARN_RESIDENCY_COPIED;
    EXPECT_EQ(is_copy ? 0 : bytes.size(), found.mapped_bytes);
    EXPECT_EQ(found.copied_bytes, CopiedBytes(model.get()));
    EXPECT_LE(found.huge_bytes, found.resident_bytes);
    EXPECT_LE(found.resident_bytes, bytes.size() + kPage);
    EXPECT_EQ(residency == ARN_RESIDENCY_LOCKED ? bytes.size() : 0, found.locked_bytes);
  }
}

TEST(Residency, Copy_TakesWhatThePlanNamesAndLiesInHugePages) {
  const BundleBytes bytes = MakeTinyBundle(LargeTinyBundle());
  const BundleFile file(bytes);
  ModelPtr model;
  ASSERT_EQ(ARN_OK, Open(file.path(), ARN_RESIDENCY_COPIED, &model));
  const uint64_t planned = CopiedBytes(model.get());
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ((bytes.size() + page - 1) / page * page, planned);
  const arn_residency found = Residency(model.get());
  EXPECT_EQ(planned, found.copied_bytes);
  // The count is limited to the bundle's bytes: all of them are resident.
  EXPECT_EQ(bytes.size(), found.resident_bytes);
  if (!HasHugePages()) GTEST_SKIP() << "no huge page is to be had here";
  const uint64_t huge = HugePageBytes();
  EXPECT_EQ(planned / huge * huge, found.huge_bytes);
}

TEST(Residency, Copy_DoesNotNeedTheFile) {
  const BundleBytes bytes = MakeTinyBundle(LargeTinyBundle());
  const BundleFile file(bytes);
  const std::vector<int32_t> expected = Tokens(OpenBytes(bytes).get());
  ModelPtr model;
  ASSERT_EQ(ARN_OK, Open(file.path(), ARN_RESIDENCY_COPIED, &model));
  ASSERT_EQ(0, truncate(file.path().c_str(), 0));
  EXPECT_EQ(expected, Tokens(model.get()));
}

// tmpfs converts to huge pages regardless of its settings; the mapping must then report it.
TEST(Residency, Huge_MovesWhatIsInMemory) {
  const BundleBytes bytes = MakeTinyBundle(LargeTinyBundle());
  const int fd = memfd_create("arn_residency", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(static_cast<ssize_t>(bytes.size()), write(fd, bytes.data(), bytes.size()));
  arn_model_options options = ARN_MODEL_OPTIONS_INIT;
  options.residency = ARN_RESIDENCY_HUGE;
  arn_model* opened = nullptr;
  ASSERT_EQ(ARN_OK, arn_model_open_fd(fd, 0, 0, &options, nullptr, 0, &opened));
  close(fd);
  const ModelPtr model(opened);
  EXPECT_EQ(Tokens(OpenBytes(bytes).get()), Tokens(model.get()));
  const arn_residency found = Residency(model.get());
  if (found.huge_bytes == 0) GTEST_SKIP() << "this system does not move them";
  EXPECT_EQ(bytes.size() / HugePageBytes() * HugePageBytes(), found.huge_bytes);
}

TEST(Residency, LockedBeyondTheLimit_IsOutOfMemoryAndSaysSo) {
  const BundleBytes bytes = MakeTinyBundle(LargeTinyBundle());
  const BundleFile file(bytes);
  rlimit before;
  ASSERT_EQ(0, getrlimit(RLIMIT_MEMLOCK, &before));
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &none));
  ModelPtr model;
  std::string error;
  const arn_status status = Open(file.path(), ARN_RESIDENCY_LOCKED, &model, &error);
  ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &before));
  if (status == ARN_OK) GTEST_SKIP() << "this process may lock whatever the limit is";
  EXPECT_EQ(ARN_OUT_OF_MEMORY, status);
  EXPECT_NE(std::string::npos, error.find(file.path())) << error;
  EXPECT_NE(std::string::npos, error.find(std::to_string(bytes.size()))) << error;
}

TEST(Residency, NotKnownOrNotPossible_IsRefused) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  const BundleFile file(bytes);
  ModelPtr model;
  std::string error;
  EXPECT_EQ(ARN_BAD_ARGUMENT, Open(file.path(), 4, &model, &error));
  EXPECT_NE(std::string::npos, error.find("residency is 4")) << error;
  arn_model_options options = ARN_MODEL_OPTIONS_INIT;
  options.residency = ARN_RESIDENCY_COPIED;
  arn_model* opened = nullptr;
  EXPECT_EQ(ARN_UNSUPPORTED,
            arn_model_open_memory(bytes.data(), bytes.size(), &options, nullptr, 0, &opened));
  EXPECT_EQ(nullptr, opened);
  // Smaller than a huge page: still copied.
  ASSERT_EQ(ARN_OK, Open(file.path(), ARN_RESIDENCY_COPIED, &model, &error)) << error;
  EXPECT_EQ(0u, Residency(model.get()).huge_bytes);
}

}  // namespace
}  // namespace arn::test

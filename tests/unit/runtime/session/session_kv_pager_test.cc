// What does not fit the memory of a session's KV file is read a layer ahead, and only that.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "kv_file_mapping.h"
#include "tests/support/session_support.h"
#include "tests/support/state_support.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kLayers = 8, kPageTokens = 32, kContext = 2048;
// f32 keys and values of four heads of 64.
constexpr uint64_t kTokenBytes = kLayers * 2 * 4 * 64 * sizeof(float);
constexpr uint64_t kPageBytes = kPageTokens * kTokenBytes;

class SessionKvPager : public testing::Test {
 protected:
  SessionKvPager() : bytes_(MakeTinyBundle(Large())), model_(OpenBytes(bytes_)) {
    char name[] = "/var/tmp/arn_kv_pager_XXXXXX";
    folder_ = mkdtemp(name);
    path_ = (folder_ / "kv").string();
    options_.n_threads = 1;
    options_.kv_type = ARN_KV_F32;
    options_.context_tokens = kContext;
    options_.kv_file = path_.c_str();
  }
  ~SessionKvPager() override { fs::remove_all(folder_); }
  static TinyBundle Large() {
    TinyBundle bundle;
    bundle.layers = kLayers;
    bundle.kv_heads = 4;
    bundle.head_dim = 64;
    bundle.max_context = kContext;
    return bundle;
  }
  // A session with so many tokens, and nothing counted.
  SessionPtr Filled(const arn_session_options& options, uint32_t n_tokens) {
    SessionPtr session = NewSession(model_.get(), options);
    const std::vector<int32_t> prompt = SomeIds(n_tokens, 61);
    EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
    return session;
  }
  static arn_session_stats_data Stats(const arn_session* session) {
    arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
    EXPECT_EQ(ARN_OK, arn_session_stats(session, &stats));
    return stats;
  }
  Mapping File() const {
    const std::vector<Mapping> mappings = MappingsOf(path_);
    EXPECT_EQ(1u, mappings.size());
    return mappings.empty() ? Mapping() : mappings[0];
  }

  BundleBytes bytes_;
  ModelPtr model_;
  fs::path folder_;
  std::string path_;
  arn_session_options options_ = ARN_SESSION_OPTIONS_INIT;
};

TEST_F(SessionKvPager, NothingIsMissing_NothingIsReadOrWritten) {
  const SessionPtr session = Filled(options_, 1000);
  Decode(session.get(), 40);
  const arn_session_stats_data stats = Stats(session.get());
  EXPECT_EQ(0u, stats.kv_file_bytes_read);
  EXPECT_EQ(0u, stats.kv_file_bytes_written);
  EXPECT_EQ(0u, stats.kv_file_wait_ns);
}

TEST_F(SessionKvPager, AllIsMissing_ATokenReadsItOnceAndLetsItGo_UntilItStays) {
  const SessionPtr session = Filled(options_, 1000);
  const SessionPtr plain = [&] {
    arn_session_options options = options_;
    options.kv_file = nullptr;
    return Filled(options, 1000);
  }();
  const uint64_t full = 1000 / kPageTokens * kPageBytes, left = 64 << 10;
  const Mapping file = File();
  if (!PageOut(file, left)) GTEST_SKIP() << "this kernel does not page out " << path_;
  EXPECT_EQ(Decode(plain.get(), 1), Decode(session.get(), 1));
  const uint64_t read = Stats(session.get()).kv_file_bytes_read;
  EXPECT_LE(read, full);
  EXPECT_GE(read, full - left);
  // The layer that the next token begins with, the pages that are written to, and what is kept to
  // see whether there is room.
  EXPECT_LE(ResidentBytes(file), full / kLayers + kPageBytes + (256 << 10));
  // Nothing pushes them out here, so that each token keeps some more.
  EXPECT_EQ(Decode(plain.get(), 100), Decode(session.get(), 100));
  const uint64_t read_until_it_stayed = Stats(session.get()).kv_file_bytes_read;
  // What became full meanwhile was written.
  EXPECT_GE(Stats(session.get()).kv_file_bytes_written, kPageBytes);
  EXPECT_LT(read_until_it_stayed, 40 * full);
  EXPECT_EQ(Decode(plain.get(), 20), Decode(session.get(), 20));
  EXPECT_EQ(read_until_it_stayed, Stats(session.get()).kv_file_bytes_read);
  EXPECT_GE(ResidentBytes(file), full);
  EXPECT_EQ(ARN_OK, arn_session_reset_stats(session.get()));
  EXPECT_EQ(0u, Stats(session.get()).kv_file_bytes_read);
}

TEST_F(SessionKvPager, SharedPages_AreReadOnceForAllSequences) {
  options_.max_sequences = 3;
  options_.kv_tokens = kContext;
  const SessionPtr session = Filled(options_, 1000);
  for (uint32_t s : {1u, 2u}) ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, s));
  if (!PageOut(File(), 64 << 10)) GTEST_SKIP() << "this kernel does not page out " << path_;
  const uint32_t sequences[3] = {0, 1, 2};
  int32_t ids[3];
  ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), sequences, 3, ids));
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_LE(Stats(session.get()).kv_file_bytes_read, 1000 / kPageTokens * kPageBytes);
}

// A group of processes that may use little memory, this one's child among them.
class MemoryGroup {
 public:
  explicit MemoryGroup(uint64_t bytes) {
    const std::string name = "/arn_kv_" + std::to_string(getpid());
    const std::pair<const char*, const char*> kinds[] = {
        {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes"}, {"/sys/fs/cgroup", "/memory.max"}};
    for (const auto& [root, limit] : kinds) {
      const std::string path = root + name;
      if (mkdir(path.c_str(), 0700) != 0) continue;
      if (Write(path + limit, std::to_string(bytes))) {
        Write(path + "/memory.swap.max", "0");
        path_ = path;
        return;
      }
      rmdir(path.c_str());
    }
  }
  ~MemoryGroup() {
    if (!path_.empty()) rmdir(path_.c_str());
  }
  bool exists() const { return !path_.empty(); }
  bool Enter() const { return Write(path_ + "/cgroup.procs", "0"); }

 private:
  static bool Write(const std::string& path, const std::string& text) {
    std::FILE* file = std::fopen(path.c_str(), "r+");
    if (file == nullptr) return false;
    const bool is_written = std::fputs(text.c_str(), file) >= 0;
    return std::fclose(file) == 0 && is_written;
  }
  std::string path_;
};

// What a child tells of tokens that it decoded.
struct Told {
  static constexpr uint32_t kTokens = 30;
  int32_t ids[kTokens];
  uint64_t bytes_read;
  int64_t major_faults;
};

TEST_F(SessionKvPager, TwiceTheMemory_IsReadAheadAndNotByFaults) {
#if defined(ARN_SANITIZE_ADDRESS) || defined(ARN_SANITIZE_THREAD)
  GTEST_SKIP() << "a sanitizer's own memory does not fit the limit";
#endif
  const MemoryGroup group(12 << 20);
  if (!group.exists()) GTEST_SKIP() << "no cgroup with a memory limit can be made here";
  constexpr uint32_t kTokens = 1500;
  static_assert(kTokens * kTokenBytes > 2 * (12 << 20) - (1 << 20));
  int ends[2];
  ASSERT_EQ(0, pipe(ends));
  const pid_t child = fork();
  if (child == 0) {
    if (!group.Enter()) _exit(2);
    const SessionPtr session = Filled(options_, kTokens);
    arn_session_reset_stats(session.get());
    Told told = {};
    rusage before = {}, after = {};
    getrusage(RUSAGE_SELF, &before);
    for (int32_t& id : told.ids) {
      if (arn_session_decode(session.get(), &id) != ARN_OK) _exit(3);
    }
    getrusage(RUSAGE_SELF, &after);
    told.bytes_read = Stats(session.get()).kv_file_bytes_read;
    told.major_faults = after.ru_majflt - before.ru_majflt;
    _exit(write(ends[1], &told, sizeof told) == sizeof told ? 0 : 4);
  }
  close(ends[1]);
  Told told = {};
  const ssize_t n = read(ends[0], &told, sizeof told);
  close(ends[0]);
  int ended = -1;
  ASSERT_EQ(child, waitpid(child, &ended, 0));
  ASSERT_EQ(0, ended);
  ASSERT_EQ(static_cast<ssize_t>(sizeof told), n);
  std::printf("%llu bytes read ahead, %lld major faults\n",
              static_cast<unsigned long long>(told.bytes_read),
              static_cast<long long>(told.major_faults));
  options_.kv_file = nullptr;
  EXPECT_EQ(Decode(Filled(options_, kTokens).get(), Told::kTokens),
            std::vector<int32_t>(told.ids, told.ids + Told::kTokens));
  // Half of it does not fit; and no more is read than there is.
  EXPECT_GT(told.bytes_read, Told::kTokens * kTokens * kTokenBytes / 4);
  EXPECT_LT(told.bytes_read, 3 * Told::kTokens * kTokens * kTokenBytes / 2);
  EXPECT_LT(static_cast<uint64_t>(told.major_faults) * 4096, told.bytes_read / 4);
}

}  // namespace
}  // namespace arn::test

// A session whose KV pages lie in a file goes on after the OS has dropped all of them.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/session_support.h"
#include "tests/support/state_support.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;

struct Mapping {
  uint8_t* begin = nullptr;
  size_t bytes = 0;
  uint64_t resident_kb = 0;
};

// The mappings of a file by this name, removed or not.
std::vector<Mapping> MappingsOf(const std::string& path) {
  std::vector<Mapping> out;
  std::ifstream smaps("/proc/self/smaps");
  bool is_ours = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long begin = 0, end = 0;
    unsigned long long kb = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      is_ours = line.find(path) != std::string::npos;
      if (is_ours) out.push_back({reinterpret_cast<uint8_t*>(begin), end - begin, 0});
    } else if (is_ours && std::sscanf(line.c_str(), "Rss: %llu kB", &kb) == 1) {
      out.back().resident_kb = kb;
    }
  }
  return out;
}

class SessionKvFile : public testing::Test {
 protected:
  SessionKvFile() : bytes_(MakeTinyBundle(Kinds())), model_(OpenBytes(bytes_)) {
    char name[] = "/var/tmp/arn_kv_XXXXXX";
    folder_ = mkdtemp(name);
    path_ = (folder_ / "kv").string();
    options_.n_threads = 1;
    options_.context_tokens = 2000;
  }
  ~SessionKvFile() override { fs::remove_all(folder_); }
  static TinyBundle Kinds() {
    TinyBundle bundle;
    bundle.layer_kinds = {{}, {100}, {}, {0, 64}};
    bundle.max_context = 2048;
    return bundle;
  }
  SessionPtr New(const char* kv_file) {
    arn_session_options options = options_;
    options.kv_file = kv_file;
    return NewSession(model_.get(), options);
  }
  arn_status Create(const char* kv_file, void* memory, uint64_t bytes, std::string* said) {
    arn_session_options options = options_;
    options.kv_file = kv_file;
    arn_session* session = nullptr;
    char error[512] = "";
    const arn_status status =
        arn_session_create(model_.get(), &options, memory, bytes, error, sizeof error, &session);
    EXPECT_EQ(nullptr, session);
    *said = error;
    return status;
  }

  BundleBytes bytes_;
  ModelPtr model_;
  fs::path folder_;
  std::string path_;
  arn_session_options options_ = ARN_SESSION_OPTIONS_INIT;
};

TEST_F(SessionKvFile, DroppedInTheMiddle_TheSameTokensFollow) {
  const SessionPtr plain = New(nullptr);
  const SessionPtr session = New(path_.c_str());
  EXPECT_FALSE(fs::exists(path_));
  const std::vector<int32_t> prompt = SomeIds(1200, 61);
  for (arn_session* s : {plain.get(), session.get()}) {
    ASSERT_EQ(ARN_OK, arn_session_prefill(s, prompt.data(), prompt.size()));
  }
  for (int round = 0; round < 5; ++round) {
    const std::vector<Mapping> before = MappingsOf(path_);
    ASSERT_EQ(1u, before.size());  // the two layers that see all tokens are one group
    EXPECT_GT(before[0].resident_kb, 0u);
    ASSERT_EQ(0, msync(before[0].begin, before[0].bytes, MS_SYNC));
    // Where the kernel has it: out of the page cache too.
    madvise(before[0].begin, before[0].bytes, 21 /* MADV_PAGEOUT */);
    ASSERT_EQ(0, madvise(before[0].begin, before[0].bytes, MADV_DONTNEED));
    EXPECT_EQ(0u, MappingsOf(path_)[0].resident_kb);
    EXPECT_EQ(Decode(plain.get(), 50), Decode(session.get(), 50));
  }
}

TEST_F(SessionKvFile, TrimAndRestore_Work) {
  const SessionPtr session = New(path_.c_str());
  const std::vector<int32_t> prompt = SomeIds(1200, 61);
  ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), prompt.data(), prompt.size()));
  const std::string saved = (folder_ / "state").string();
  ASSERT_EQ(ARN_OK, arn_session_save(session.get(), saved.c_str()));
  const std::vector<int32_t> expected = Decode(session.get(), 100);
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  uint64_t trimmed = 0;
  ASSERT_EQ(ARN_OK, arn_session_trim(session.get(), &trimmed))
      << arn_session_last_error(session.get());
  EXPECT_GT(trimmed, 0u);
  EXPECT_EQ(0u, MappingsOf(path_)[0].resident_kb);
  // The file that holds the pages stays in its place: the state is copied into it.
  ASSERT_EQ(ARN_OK, arn_session_restore(session.get(), saved.c_str(), nullptr));
  EXPECT_GT(MappingsOf(path_)[0].resident_kb, 0u);
  EXPECT_EQ(expected, Decode(session.get(), 100));
}

TEST_F(SessionKvFile, WhatCannotBe_IsRefusedAndLeavesNothing) {
  std::string said;
  alignas(64) static uint8_t memory[64];
  void* aligned = reinterpret_cast<void*>(uintptr_t{16384});
  EXPECT_EQ(ARN_UNSUPPORTED, Create(path_.c_str(), aligned, UINT64_MAX, &said));
  EXPECT_NE(std::string::npos, said.find("kv_file")) << said;
  EXPECT_EQ(ARN_UNSUPPORTED, Create(path_.c_str(), memory, sizeof memory, &said));
  EXPECT_EQ(ARN_NOT_FOUND, Create((folder_ / "no/kv").c_str(), nullptr, 0, &said));
  EXPECT_EQ(ARN_IO, Create(folder_.c_str(), nullptr, 0, &said));
  std::ofstream(path_) << "something of the user's";
  EXPECT_EQ(ARN_IO, Create(path_.c_str(), nullptr, 0, &said));
  EXPECT_NE(std::string::npos, said.find(path_)) << said;
  EXPECT_EQ(23u, fs::file_size(path_));
  // Empty: left by a process that was killed.
  std::ofstream(path_, std::ios::trunc).close();
  Greedy(New(path_.c_str()).get(), SomeIds(10, 61), 3);
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_TRUE(MappingsOf(path_).empty());
}

}  // namespace
}  // namespace arn::test

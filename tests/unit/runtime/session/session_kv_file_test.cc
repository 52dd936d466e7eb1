// Sessions with KV pages in a file survive the OS dropping all of them, between and during runs.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "kv_file_mapping.h"
#include "tests/support/prefix_support.h"
#include "tests/support/session_support.h"
#include "tests/support/state_support.h"

namespace arn::test {
namespace {

namespace fs = std::filesystem;

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
    ASSERT_EQ(1u, before.size());  // the two full-attention layers are one group
    EXPECT_GT(before[0].resident_kb, 0u);
    ASSERT_EQ(0, msync(before[0].begin, before[0].bytes, MS_SYNC));
    // Drops it from the page cache too, if the kernel supports this.
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
  // The file with the pages is not replaced: the state is copied into it.
  ASSERT_EQ(ARN_OK, arn_session_restore(session.get(), saved.c_str(), nullptr));
  EXPECT_GT(MappingsOf(path_)[0].resident_kb, 0u);
  EXPECT_EQ(expected, Decode(session.get(), 100));
}

// Pages are ordered by layer in a file, but not in states and prefixes.
TEST_F(SessionKvFile, StatesAndPrefixes_AreThoseOfSessionsWithout) {
  const std::vector<int32_t> prefix = SomeIds(300, 61), prompt = SomeIds(500, 59);
  const BundleBytes bytes = MakeTinyBundle(WithPrefix(Kinds(), options_, prefix));
  const ModelPtr model = OpenBytes(bytes);
  const SessionPtr plain = NewSession(model.get(), options_);
  options_.kv_file = path_.c_str();
  const SessionPtr session = NewSession(model.get(), options_);
  for (arn_session* s : {plain.get(), session.get()}) {
    ASSERT_EQ(ARN_OK, arn_session_prefill(s, prompt.data(), prompt.size()));
  }
  const std::vector<uint8_t> saved = Save(plain.get());
  EXPECT_EQ(saved, Save(session.get()));
  const std::vector<int32_t> expected = Decode(plain.get(), 50);
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_restore_memory(session.get(), saved.data(), saved.size(), nullptr));
  EXPECT_EQ(expected, Decode(session.get(), 50));
  for (arn_session* s : {plain.get(), session.get()}) {
    ASSERT_EQ(ARN_OK, arn_session_use_prefix(s)) << arn_session_last_error(s);
  }
  EXPECT_EQ(Decode(plain.get(), 50), Decode(session.get(), 50));
}

// Unquantised pages, and quantised ones, which use two pools.
class SessionKvFileSpill : public SessionKvFile, public testing::WithParamInterface<uint32_t> {
 protected:
  static constexpr uint32_t kPromptTokens = 1800, kChunkTokens = 100, kDecodes = 40;

  SessionKvFileSpill() : spill_bytes_(MakeTinyBundle(Larger())), spill_(OpenBytes(spill_bytes_)) {
    options_.kv_type = GetParam();
    if (GetParam() == ARN_KV_INT4) options_.kv_residual = 64;
    options_.kv_file = path_.c_str();
  }
  static TinyBundle Larger() {
    TinyBundle bundle = Kinds();
    bundle.head_dim = 32;
    return bundle;
  }
  // Creates the session, finds its file, and sets the limit of resident bytes to a third of the
  // final KV size or less.
  void Start() {
    session_ = NewSession(spill_.get(), options_);
    const std::vector<Mapping> mappings = MappingsOf(path_);
    ASSERT_EQ(1u, mappings.size());
    file_ = mappings[0];
    arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
    ASSERT_EQ(ARN_OK, arn_session_plan(spill_.get(), &options_, nullptr, 0, &plan));
    const auto padded = [&](uint64_t n) {
      return (n + plan.alignment - 1) / plan.alignment * plan.alignment;
    };
    uint64_t in_file = 0, used = 0;
    for (uint32_t g = 0; g < plan.n_kv_groups; ++g) {
      arn_kv_group_info group = ARN_KV_GROUP_INFO_INIT;
      ASSERT_EQ(ARN_OK, arn_session_plan_group(spill_.get(), &options_, g, nullptr, 0, &group));
      if (group.window != 0 || group.chunk != 0) continue;
      // Each layer's part of a pool is whole OS pages.
      in_file += group.n_layers *
                 (padded(group.n_pages * group.page_bytes / group.n_layers) +
                  padded(group.n_quantised_pages * group.quantised_page_bytes / group.n_layers));
      used += group.n_quantised_pages == 0 ? kPromptTokens / group.page_tokens * group.page_bytes
                                           : (kPromptTokens - group.residual - plan.prefill_chunk) /
                                                 group.page_tokens * group.quantised_page_bytes;
    }
    EXPECT_EQ(in_file, file_.bytes);  // without the windowed and chunked layers
    limit_ = used / 3;
    ASSERT_GE(limit_, 64u << 10);
  }
  // Prefills and decodes; calls `between` before each call.
  template <typename Between>
  std::vector<int32_t> Run(arn_session* session, const Between& between) {
    const std::vector<int32_t> prompt = SomeIds(kPromptTokens, 61);
    for (uint32_t i = 0; i < kPromptTokens; i += kChunkTokens) {
      between();
      EXPECT_EQ(ARN_OK, arn_session_prefill(session, prompt.data() + i, kChunkTokens));
    }
    std::vector<int32_t> ids;
    for (uint32_t i = 0; i < kDecodes; ++i) {
      between();
      ids.push_back(Decode(session, 1)[0]);
    }
    return ids;
  }
  std::vector<int32_t> InMemory() {
    arn_session_options options = options_;
    options.kv_file = nullptr;
    return Run(NewSession(spill_.get(), options).get(), [] {});
  }

  BundleBytes spill_bytes_;
  ModelPtr spill_;
  SessionPtr session_;
  Mapping file_;
  uint64_t limit_ = 0;
};

TEST_P(SessionKvFileSpill, AThirdMayStayBetweenSteps_TheSameTokens) {
  ASSERT_NO_FATAL_FAILURE(Start());
  std::fill_n(file_.begin, file_.bytes, uint8_t{0xA5});  // old page contents must not matter
  if (!PageOut(file_, limit_)) GTEST_SKIP() << "this kernel does not page out " << path_;
  uint64_t most = 0;
  const std::vector<int32_t> found = Run(session_.get(), [&] {
    ASSERT_TRUE(PageOut(file_, limit_));
    most = std::max(most, ResidentBytes(file_));
  });
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  ASSERT_EQ(ARN_OK, arn_session_stats(session_.get(), &stats));
  std::printf("%zu bytes in the file, at most %llu between steps, %llu read in all\n", file_.bytes,
              static_cast<unsigned long long>(most),
              static_cast<unsigned long long>(stats.kv_file_bytes_read));
  EXPECT_LE(most, limit_);
  EXPECT_GE(stats.kv_file_bytes_read, kDecodes * 2 * limit_);
  EXPECT_EQ(InMemory(), found);
}

// The OS may drop pages at any time, even those a step is about to read or write.
TEST_P(SessionKvFileSpill, DroppedWhileStepsRun_TheSameTokens) {
  ASSERT_NO_FATAL_FAILURE(Start());
  std::fill_n(file_.begin, file_.bytes, uint8_t{0xA5});
  if (!PageOut(file_, limit_)) GTEST_SKIP() << "this kernel does not page out " << path_;
  std::atomic<bool> is_over{false};
  std::atomic<uint32_t> n_drops{0};
  std::thread other([&] {
    while (!is_over) n_drops += PageOut(file_, limit_) ? 1 : 0;
  });
  uint32_t before = 0;
  const std::vector<int32_t> found = Run(session_.get(), [&] {
    // Waits for a drop, so that the run does not end before the first one.
    for (int i = 0; i < 1000 && n_drops == before; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    before = n_drops;
  });
  is_over = true;
  other.join();
  EXPECT_GT(n_drops, 10u);
  EXPECT_EQ(InMemory(), found);
}

std::string TypeName(const testing::TestParamInfo<uint32_t>& type) {
  return type.param == ARN_KV_F32 ? "f32" : type.param == ARN_KV_INT8 ? "int8" : "int4";
}

INSTANTIATE_TEST_SUITE_P(Types, SessionKvFileSpill,
                         testing::Values(ARN_KV_F32, ARN_KV_INT8, ARN_KV_INT4), TypeName);

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
  // An empty file is left over from a killed process.
  std::ofstream(path_, std::ios::trunc).close();
  Greedy(New(path_.c_str()).get(), SomeIds(10, 61), 3);
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_TRUE(MappingsOf(path_).empty());
}

}  // namespace
}  // namespace arn::test

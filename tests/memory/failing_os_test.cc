// Fails each OS request once. Each failure returns ARN_OUT_OF_MEMORY and leaks nothing, and the
// next attempt works.
#include "failing_os.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "platform/base/arena.h"
#include "runtime/model/decoder_program.h"
#include "runtime/model/model_spec.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

// The program's first case: the first session of a process detects the CPU's features, for which
// ARM Linux reads files.
TEST(FailingOs_FirstSession, WithoutADescriptorLeft_WorksOrSaysSoAndLaterWorks) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  const ModelPtr model = OpenBytes(bytes);
  const arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  rlimit before;
  ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
  rlimit none = before;
  none.rlim_cur = 0;
  testing::internal::CaptureStderr();
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
  arn_session* session = nullptr;
  char error[256] = "";
  const arn_status first =
      arn_session_create(model.get(), &options, nullptr, 0, error, sizeof error, &session);
  arn_session_destroy(session);
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
  EXPECT_EQ("", testing::internal::GetCapturedStderr());
#if defined(__arm__) || defined(__aarch64__)
  EXPECT_EQ(ARN_IO, first);
  EXPECT_NE(nullptr, strstr(error, "descriptor")) << error;
#else
  EXPECT_EQ(ARN_OK, first) << error;
#endif
  const SessionPtr second = NewSession(model.get(), options);
  Greedy(second.get(), SomeIds(3, 61), 2);
}

TEST(FailingOs_Open, EachRequestFailsOnce_ThenItWorks) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  int64_t failures = 0;
  for (;; ++failures) {
    FailAfter(failures);
    arn_model* model = nullptr;
    char error[256] = "";
    const arn_status status =
        arn_model_open_memory(bytes.data(), bytes.size(), nullptr, error, sizeof error, &model);
    FailAfter(-1);
    if (status == ARN_OK) {
      arn_model_close(model);
      break;
    }
    ASSERT_EQ(ARN_OUT_OF_MEMORY, status);
    ASSERT_EQ(nullptr, model);
    ASSERT_STRNE("", error);
    ASSERT_EQ(0, LiveReservations());
  }
  EXPECT_GE(failures, 1);
  EXPECT_EQ(0, LiveReservations());
}

TEST(FailingOs_OpenCopiedOrLocked, EachRequestFailsOnce_ThenItWorks) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  const int fd = memfd_create("bundle", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(static_cast<ssize_t>(bytes.size()), write(fd, bytes.data(), bytes.size()));
  for (const uint32_t residency : {ARN_RESIDENCY_COPIED, ARN_RESIDENCY_LOCKED}) {
    arn_model_options options = ARN_MODEL_OPTIONS_INIT;
    options.residency = residency;
    int64_t failures = 0;
    for (;; ++failures) {
      FailAfter(failures);
      arn_model* model = nullptr;
      char error[256] = "";
      const arn_status status = arn_model_open_fd(fd, 0, 0, &options, error, sizeof error, &model);
      FailAfter(-1);
      if (status == ARN_OK) {
        arn_model_close(model);
        break;
      }
      ASSERT_EQ(ARN_OUT_OF_MEMORY, status) << error;
      ASSERT_EQ(nullptr, model);
      ASSERT_EQ(0, LiveReservations());
    }
    EXPECT_EQ(2, failures) << "the bundle's, then the tables'";
    EXPECT_EQ(0, LiveReservations());
  }
  close(fd);
}

TEST(FailingOs_CreateSession, EachRequestFailsOnce_ThenItWorks) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  const ModelPtr model = OpenBytes(bytes);
  const int64_t live = LiveReservations();
  const arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  int64_t failures = 0;
  for (;; ++failures) {
    FailAfter(failures);
    arn_session* session = nullptr;
    const arn_status status =
        arn_session_create(model.get(), &options, nullptr, 0, nullptr, 0, &session);
    FailAfter(-1);
    if (status == ARN_OK) {
      Greedy(session, SomeIds(3, 61), 2);
      arn_session_destroy(session);
      break;
    }
    ASSERT_EQ(ARN_OUT_OF_MEMORY, status);
    ASSERT_EQ(nullptr, session);
    ASSERT_EQ(live, LiveReservations());
  }
  EXPECT_GE(failures, 1);
  EXPECT_EQ(live, LiveReservations());
}

// Grows the model's arena by 8 bytes at a time: each of its allocations fails once, and the
// requested size is sufficient.
TEST(FailingOs_ModelArena, GrowthFromZero_FailsUntilTheAskedSize) {
  const BundleBytes bytes = MakeTinyBundle(TinyBundle());
  Bundle bundle;
  Diag diag;
  ASSERT_EQ(
      Status::kOk,
      OpenBundle({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, &bundle, &diag));
  const uint64_t asked =
      ModelSpecBytes(*bundle.index->model()) + DecoderProgramBytes(*bundle.index->model());
  std::vector<uint64_t> storage(asked / 8 + 8);
  uint64_t successes = 0;
  for (uint64_t size = 0; size <= asked; size += 8) {
    Arena arena({reinterpret_cast<std::byte*>(storage.data()), static_cast<size_t>(size)});
    ModelSpec spec;
    Program program;
    Status status = ReadModelSpec(bundle, &arena, &spec, &diag);
    if (status == Status::kOk) status = BuildDecoderProgram(spec, &arena, &program, nullptr, &diag);
    if (status == Status::kOk) {
      ++successes;
    } else {
      ASSERT_EQ(Status::kOutOfMemory, status) << size;
      ASSERT_EQ(0u, successes) << size;
    }
  }
  EXPECT_GE(successes, 1u);
}

}  // namespace
}  // namespace arn::test

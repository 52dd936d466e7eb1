// Every request to the OS fails once: each gives ARN_OUT_OF_MEMORY and leaks nothing, and the next
// attempt works.
#include "failing_os.h"

#include <gtest/gtest.h>

#include "platform/base/arena.h"
#include "runtime/model/decoder_program.h"
#include "runtime/model/model_spec.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

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

// The model's own arena, grown byte by byte: each of its allocations fails once, and the size that
// is asked for suffices.
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
    if (status == Status::kOk) status = BuildDecoderProgram(spec, &arena, &program, &diag);
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

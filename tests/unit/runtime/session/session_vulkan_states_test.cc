// Sessions of models with recurrent layers and their slots on a device: forks, saves, restores and
// cancels give the same results as in host memory.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/logits_support.h"
#include "tests/support/state_support.h"
#include "tests/support/vulkan_session.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;
constexpr uint32_t kBackends[] = {ARN_BACKEND_CPU, ARN_BACKEND_VULKAN, ARN_BACKEND_VULKAN_CPU};

TinyBundle Bundle(const Shape& shape) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.layer_kinds = shape.layers;
  return bundle;
}

class VulkanStatesTest : public OnVulkan<testing::TestWithParam<Shape>> {
 protected:
  VulkanStatesTest() : OnVulkan(Bundle(GetParam())) {}
  SessionPtr New(uint32_t backend, uint32_t sequences = 1, uint32_t snapshots = 0) {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.backend = backend;
    options.kv_type = ARN_KV_F32;
    options.n_threads = 1;
    options.context_tokens = 96;
    options.kv_page_tokens = 8;
    options.prefill_chunk = 13;
    options.max_sequences = sequences;
    options.trust_device = 1;
    options.state_snapshots = snapshots;
    return NewSession(model_.get(), options);
  }
};

TEST_P(VulkanStatesTest, SavedOnOneBackend_RestoredOnTheOthers_GoesOn) {
  for (const uint32_t backend : kBackends) {
    SCOPED_TRACE(backend);
    const SessionPtr saved = New(backend);
    Prefill(saved.get(), 37);
    Decode(saved.get(), 3);
    const std::vector<uint8_t> state = Save(saved.get());
    const std::vector<int32_t> expected = Decode(saved.get(), 10);
    for (const uint32_t other : kBackends) {
      if (other == backend) continue;
      SCOPED_TRACE(other);
      const SessionPtr restored = New(other);
      Prefill(restored.get(), 9);
      ASSERT_EQ(ARN_OK, Restore(restored.get(), state)) << arn_session_last_error(restored.get());
      EXPECT_EQ(state, Save(restored.get()));
      EXPECT_EQ(expected, Decode(restored.get(), 10));
    }
  }
}

// Forks that share a slot diverge with prompts of several lengths, are decoded as a batch and
// continue alone.
TEST_P(VulkanStatesTest, ForkedAndBatched_EachGoesOnAsOnTheCpu) {
  std::vector<std::vector<int32_t>> tokens[3];
  for (uint32_t b = 0; b < 3; ++b) {
    const SessionPtr session = New(kBackends[b], 3);
    Prefill(session.get(), 27);
    for (const uint32_t to : {1u, 2u}) {
      ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, to));
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), to));
      Prefill(session.get(), to + 2);
    }
    const uint32_t all[3] = {0, 1, 2};
    for (uint32_t i = 0; i < 4; ++i) {
      std::vector<int32_t> ids(3);
      ASSERT_EQ(ARN_OK, arn_session_decode_batch(session.get(), all, 3, ids.data()))
          << arn_session_last_error(session.get());
      tokens[b].push_back(ids);
    }
    for (const uint32_t s : all) {
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
      tokens[b].push_back(Decode(session.get(), 5));
    }
  }
  EXPECT_EQ(tokens[0], tokens[1]);
  EXPECT_EQ(tokens[0], tokens[2]);
}

// A cancelled run may have written the next state's slot, but not the current one's.
TEST_P(VulkanStatesTest, CancelledRun_LeavesTheState) {
  for (const uint32_t backend : {ARN_BACKEND_VULKAN, ARN_BACKEND_VULKAN_CPU}) {
    const SessionPtr session = New(backend), truth = New(backend);
    Prefill(session.get(), 21);
    Prefill(truth.get(), 21);
    const std::vector<int32_t> others = SomeIds(5, 17);
    arn_session_cancel(session.get());
    ASSERT_EQ(ARN_CANCELLED, arn_session_prefill(session.get(), others.data(), others.size()));
    Prefill(session.get(), 2);
    Prefill(truth.get(), 2);
    EXPECT_EQ(0.0, LogitDifference(session.get(), truth.get(), kVocab));
    EXPECT_EQ(Decode(truth.get(), 5), Decode(session.get(), 5));
  }
}

// Snapshots are slots of the device: returning to one, and what runs again, gives the same logits.
TEST_P(VulkanStatesTest, RewoundToSnapshots_GoesOnAsFromTheStart) {
  if (!HasState(GetParam())) return;
  for (const uint32_t backend : {ARN_BACKEND_VULKAN, ARN_BACKEND_VULKAN_CPU}) {
    SCOPED_TRACE(backend);
    const SessionPtr session = New(backend, 1, 4);
    Prefill(session.get(), 31);
    ASSERT_EQ(ARN_OK, arn_session_mark(session.get()));
    Decode(session.get(), 9);
    for (const uint32_t position : {38u, 31u, 28u, 7u}) {
      if (position < arn_session_first_rewind_position(session.get())) continue;
      ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), position));
      Prefill(session.get(), 5);
      const SessionPtr truth = New(ARN_BACKEND_CPU);
      const std::vector<int32_t> ids = TokensOf(session.get());
      ASSERT_EQ(position + 5, ids.size());
      ASSERT_EQ(ARN_OK, arn_session_prefill(truth.get(), ids.data(), ids.size()));
      EXPECT_LE(LogitDifference(session.get(), truth.get(), kVocab), 1e-4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(States, VulkanStatesTest, testing::ValuesIn(StateShapes()), ShapeName);
INSTANTIATE_TEST_SUITE_P(Linear, VulkanStatesTest, testing::ValuesIn(LinearShapes()), ShapeName);
INSTANTIATE_TEST_SUITE_P(Widths, VulkanStatesTest, testing::ValuesIn(WidthShapes()), ShapeName);
INSTANTIATE_TEST_SUITE_P(StateWidths, VulkanStatesTest, testing::ValuesIn(StateWidthShapes()),
                         ShapeName);

}  // namespace
}  // namespace arn::test

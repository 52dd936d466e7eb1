// Models whose layers differ in head count, head size and feed-forward width, on a device: the same
// tokens as on the CPU, for every KV type.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/logits_support.h"
#include "tests/support/state_support.h"
#include "tests/support/vulkan_session.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;
constexpr uint32_t kBackends[] = {ARN_BACKEND_REFERENCE, ARN_BACKEND_CPU, ARN_BACKEND_VULKAN,
                                  ARN_BACKEND_VULKAN_CPU};

TinyBundle Bundle(const Shape& shape) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.layer_kinds = shape.layers;
  bundle.qk_norm = true;
  return bundle;
}

using Case = std::tuple<Shape, uint32_t>;

class VulkanWidthsTest : public OnVulkan<testing::TestWithParam<Case>> {
 protected:
  VulkanWidthsTest() : OnVulkan(Bundle(std::get<Shape>(GetParam()))) {}
  SessionPtr New(uint32_t backend, uint32_t sequences = 1) {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.backend = backend;
    options.kv_type = std::get<uint32_t>(GetParam());
    options.n_threads = 1;
    options.context_tokens = 96;
    options.kv_page_tokens = 8;
    options.prefill_chunk = 13;
    options.max_sequences = sequences;
    options.trust_device = 1;
    if (options.kv_type >= ARN_KV_INT4) options.kv_residual = 16;
    return NewSession(model_.get(), options);
  }
};

TEST_P(VulkanWidthsTest, Logits_AgreeWithTheReference) {
  const SessionPtr expected = New(ARN_BACKEND_REFERENCE);
  Prefill(expected.get(), 70);
  // A key on the border of two steps may round either way.
  constexpr double kBounds[] = {3e-6, 1e-3, 0.02, 0.1, 0.2};  // by arn_kv_type
  for (const uint32_t backend : kBackends) {
    const SessionPtr found = New(backend);
    Prefill(found.get(), 70);
    EXPECT_LT(LogitDifference(expected.get(), found.get(), kVocab),
              kBounds[std::get<uint32_t>(GetParam())])
        << backend;
  }
}

class VulkanWidthsSequencesTest : public VulkanWidthsTest {};

TEST_P(VulkanWidthsSequencesTest, ForkedSavedAndRestored_EachGoesOnAsOnTheCpu) {
  std::vector<std::vector<int32_t>> tokens[4];
  for (uint32_t b = 1; b < 4; ++b) {
    const SessionPtr session = New(kBackends[b], 2);
    Prefill(session.get(), 27);
    ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
    Prefill(session.get(), 3);
    tokens[b].push_back(Decode(session.get(), 10));
    ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
    const std::vector<uint8_t> state = Save(session.get());
    tokens[b].push_back(Decode(session.get(), 10));
    const SessionPtr restored = New(kBackends[b], 2);
    ASSERT_EQ(ARN_OK, Restore(restored.get(), state)) << arn_session_last_error(restored.get());
    EXPECT_EQ(tokens[b].back(), Decode(restored.get(), 10));
  }
  EXPECT_EQ(tokens[1], tokens[2]);
  EXPECT_EQ(tokens[1], tokens[3]);
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  constexpr const char* kNames[] = {"f32", "f16", "int8", "int4", "int2"};
  return std::string(std::get<Shape>(info.param).name) + "_" +
         kNames[std::get<uint32_t>(info.param)];
}

constexpr uint32_t kTypes[] = {ARN_KV_F32, ARN_KV_F16, ARN_KV_INT8, ARN_KV_INT4, ARN_KV_INT2};

// Returns each type with one of the shapes, in turn: all pairs differ in their kernels alone, which
// the logits show.
std::vector<Case> EachTypeOnce() {
  const std::vector<Shape> shapes = WidthShapes();
  std::vector<Case> cases;
  for (const uint32_t type : kTypes) cases.emplace_back(shapes[cases.size() % shapes.size()], type);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Widths, VulkanWidthsTest,
                         testing::Combine(testing::ValuesIn(WidthShapes()),
                                          testing::ValuesIn(kTypes)),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(Widths, VulkanWidthsSequencesTest, testing::ValuesIn(EachTypeOnce()),
                         NameOf);

}  // namespace
}  // namespace arn::test

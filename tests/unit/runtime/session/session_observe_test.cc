// arn_session_observe_matmuls: the callbacks during a run.
#include <arenite/observe.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/session_support.h"

namespace arn::test {
namespace {

struct Matmul {
  std::string tensor;
  size_t n_rows = 0, width = 0;
  std::vector<float> rows, sums;
};

void Observe(void* user, const char* tensor, const float* rows, size_t n_rows, size_t width,
             const float* sums, size_t out_width) {
  Matmul matmul = {tensor, n_rows, width, {rows, rows + n_rows * width}, {}};
  if (sums != nullptr) matmul.sums.assign(sums, sums + n_rows * out_width);
  static_cast<std::vector<Matmul>*>(user)->push_back(std::move(matmul));
}

// Returns the matmuls of a prefill of 5 tokens. The reference backend reports row by row;
// consecutive rows of one tensor are merged.
std::vector<Matmul> Matmuls(const arn_model* model, uint32_t backend) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = ARN_KV_F32;
  options.all_logits = 1;
  options.n_threads = 2;
  const SessionPtr session = NewSession(model, options);
  std::vector<Matmul> seen;
  EXPECT_EQ(ARN_OK, arn_session_observe_matmuls(session.get(), Observe, &seen));
  const std::vector<int32_t> ids = SomeIds(5, 61);
  const float* logits = nullptr;
  EXPECT_EQ(ARN_OK, arn_session_prefill_logits(session.get(), ids.data(), ids.size(), &logits));
  std::vector<Matmul> merged;
  for (Matmul& matmul : seen) {
    if (merged.empty() || merged.back().tensor != matmul.tensor) {
      merged.push_back(std::move(matmul));
      continue;
    }
    merged.back().n_rows += matmul.n_rows;
    merged.back().rows.insert(merged.back().rows.end(), matmul.rows.begin(), matmul.rows.end());
  }
  seen.clear();
  EXPECT_EQ(ARN_OK, arn_session_observe_matmuls(session.get(), nullptr, nullptr));
  EXPECT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
  EXPECT_TRUE(seen.empty());
  return merged;
}

TEST(SessionObserve, EveryBackend_TheSameMatmulsInOrder) {
  TinyBundle tiny;
  tiny.vocab = 61;
  const BundleBytes bytes = MakeTinyBundle(tiny);
  const ModelPtr model = OpenBytes(bytes);
  const std::vector<Matmul> cpu = Matmuls(model.get(), ARN_BACKEND_CPU);
  const std::vector<Matmul> reference = Matmuls(model.get(), ARN_BACKEND_REFERENCE);
  ASSERT_EQ(reference.size(), cpu.size());
  ASSERT_GT(cpu.size(), 4u);
  for (size_t i = 0; i < cpu.size(); ++i) {
    SCOPED_TRACE(cpu[i].tensor);
    EXPECT_EQ(reference[i].tensor, cpu[i].tensor);
    EXPECT_EQ(5u, cpu[i].n_rows);
    EXPECT_EQ(reference[i].n_rows, cpu[i].n_rows);
    ASSERT_EQ(reference[i].rows.size(), cpu[i].rows.size());
    for (size_t k = 0; k < cpu[i].rows.size(); ++k) {
      ASSERT_NEAR(reference[i].rows[k], cpu[i].rows[k], 1e-4) << k;
    }
    const bool is_added = cpu[i].tensor.find("attention_out") != std::string::npos ||
                          cpu[i].tensor.find("down") != std::string::npos;
    EXPECT_EQ(is_added ? 5u * tiny.hidden : 0u, cpu[i].sums.size());
    ASSERT_EQ(reference[i].sums.size(), cpu[i].sums.size());
    for (size_t k = 0; k < cpu[i].sums.size(); ++k) {
      ASSERT_NEAR(reference[i].sums[k], cpu[i].sums[k], 1e-4) << k;
    }
  }
}

TEST(SessionObserve, NoSession_IsRefused) {
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_session_observe_matmuls(nullptr, Observe, nullptr));
}

}  // namespace
}  // namespace arn::test

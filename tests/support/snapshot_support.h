// Sessions with snapshots of recurrent states, for every kind of layer that has some.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/logits_support.h"
#include "tests/support/session_support.h"
#include "tests/support/state_support.h"

namespace arn::test::snapshots {

inline constexpr uint32_t kVocab = 61;
inline constexpr uint32_t kEvery = 7;

inline arn_session_options Options(uint32_t snapshots, uint32_t sequences = 1,
                                   uint32_t backend = ARN_BACKEND_REFERENCE) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = ARN_KV_F32;
  options.n_threads = 1;
  options.context_tokens = 96;
  options.kv_page_tokens = 8;
  options.prefill_chunk = 16;
  options.max_sequences = sequences;
  options.state_snapshots = snapshots;
  options.snapshot_every = snapshots == 0 ? 0 : kEvery;
  return options;
}

inline arn_memory_plan PlanOf(const arn_model* model, const arn_session_options& options) {
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  EXPECT_EQ(ARN_OK, arn_session_plan(model, &options, nullptr, 0, &plan));
  return plan;
}

inline arn_session_stats_data Stats(const arn_session* session) {
  arn_session_stats_data stats = ARN_SESSION_STATS_INIT;
  EXPECT_EQ(ARN_OK, arn_session_stats(session, &stats));
  return stats;
}

inline arn_status Prefill(arn_session* session, const std::vector<int32_t>& ids) {
  return arn_session_prefill(session, ids.data(), ids.size());
}

inline std::vector<Shape> AllStateShapes() {
  std::vector<Shape> all = StateShapes();
  for (const Shape& shape : StateWidthShapes()) all.push_back(shape);
  return all;
}

class SnapshotsTest : public testing::TestWithParam<Shape> {
 protected:
  SnapshotsTest() {
    TinyBundle bundle;
    bundle.vocab = kVocab;
    bundle.layer_kinds = GetParam().layers;
    bytes_ = std::make_unique<BundleBytes>(MakeTinyBundle(bundle));
    model_ = OpenBytes(*bytes_);
  }
  bool has_window() const {
    for (const TinyLayer& layer : GetParam().layers) {
      if (layer.window != 0) return true;
    }
    return false;
  }
  // The logits after `ids`, all of them computed in a new session.
  SessionPtr Computed(const std::vector<int32_t>& ids, uint32_t backend = ARN_BACKEND_REFERENCE) {
    SessionPtr session = NewSession(model_.get(), Options(0, 1, backend));
    EXPECT_EQ(ARN_OK, Prefill(session.get(), ids));
    return session;
  }
  double ErrorOf(arn_session* session, uint32_t backend = ARN_BACKEND_REFERENCE) {
    return LogitDifference(session, Computed(TokensOf(session), backend).get(), kVocab);
  }

  std::unique_ptr<BundleBytes> bytes_;
  ModelPtr model_;
};

}  // namespace arn::test::snapshots

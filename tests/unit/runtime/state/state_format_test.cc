// Places of a state's sections, and what its pages depend on.
#include "runtime/state/state_format.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/unit/runtime/memory/planned_session.h"

namespace arn::test {
namespace {

// A model with full attention and windows of 9 tokens.
TinyBundle Kinds() {
  TinyBundle bundle;
  bundle.layer_kinds = {{}, {9}};
  return bundle;
}

TEST(StateLayout, SizesThatWrap_AreOutOfMemory) {
  const auto plan = [](const std::function<void(StateCounts*)>& change) {
    StateCounts counts;
    counts.n_groups = counts.n_sequences = counts.vocab = 1;
    change(&counts);
    StateLayout layout;
    return PlanState(counts, &layout);
  };
  EXPECT_EQ(Status::kOk, plan([](StateCounts*) {}));
  using Change = void (*)(StateCounts*);
  const Change changes[] = {
      [](StateCounts* c) { c->n_entries = c->n_field_words = uint64_t{1} << 63; },
      [](StateCounts* c) { c->n_entries = uint64_t{1} << 62; },
      [](StateCounts* c) { c->n_entries = uint64_t{1} << 60; },
      [](StateCounts* c) { c->n_entries = ((uint64_t{1} << 62) - 112) / 4; },
      [](StateCounts* c) { c->n_tokens = uint64_t{1} << 62; },
      [](StateCounts* c) {
        c->n_tokens = (uint64_t{1} << 62) - 1;
        c->embedding_bytes = 100;
      },
      [](StateCounts* c) { c->n_tokens = uint64_t{1} << 60; },
      [](StateCounts* c) {
        c->n_logits = uint64_t{1} << 40;
        c->vocab = 1u << 31;
      },
      [](StateCounts* c) { c->n_logits = uint64_t{1} << 62; },
      [](StateCounts* c) { c->n_logits = uint64_t{1} << 60; },
      [](StateCounts* c) {
        c->n_pages[0][1] = 4;
        c->page_bytes[0][1] = uint64_t{1} << 62;
      },
      [](StateCounts* c) {
        c->n_pages[0][0] = 1;
        c->page_bytes[0][0] = (uint64_t{1} << 62) - 100;
      },
      [](StateCounts* c) {
        c->n_pages[0][0] = 1;
        c->page_bytes[0][0] = UINT64_MAX - 100;
      },
  };
  for (const Change& change : changes) {
    EXPECT_EQ(Status::kOutOfMemory, plan(change)) << &change - changes;
  }
}

class StateGeometry : public PlannedSession {
 protected:
  StateGeometry() : PlannedSession(Kinds()) {
    options_.context_tokens = 64;
    options_.kv_page_tokens = 8;
    options_.max_sequences = 2;
    options_.n_threads = 1;
    ExpectPlanned();
  }
};

TEST_F(StateGeometry, IsAllThatPagesDependOn) {
  const uint64_t plain = GeometryHash(*plan_);
  std::vector<uint64_t> hashes = {plain};
  const auto add = [&] {
    ExpectPlanned();
    hashes.push_back(GeometryHash(*plan_));
  };
  const SessionOptions options = options_;
  for (const auto type : {KvType::kF16, KvType::kInt4}) {
    options_.k_type = type;
    add();
    options_ = options;
    options_.v_type = type;
    add();
    options_ = options;
  }
  options_.kv_page_tokens = 16;
  add();
  options_ = options;
  options_.k_type = KvType::kInt4;
  options_.kv_group_size = 4;
  add();
  options_ = options;
  options_.k_by_token = true;
  add();
  options_.v_by_channel = true;
  add();
  options_.k_by_token = false;
  add();
  options_ = options;
  TinyBundle bundle = Kinds();
  for (const TinyLayer& layer :
       {TinyLayer{10}, TinyLayer{0, 16}, TinyLayer{0, 0, -1, TinyMixer::kScan},
        TinyLayer{0, 0, -1, TinyMixer::kConv}}) {
    bundle.layer_kinds[1] = layer;
    Open(bundle);
    add();
  }
  TinyBundle shorter;
  shorter.short_context = 50;
  Open(shorter);
  add();
  options_.context_tokens = 50;
  add();
  options_ = options;
  Open(TinyBundle());
  for (const auto type : {RopeScalingType::kLinear, RopeScalingType::kYarn}) {
    for (const float factor : {2.0f, 3.0f}) {
      const_cast<RopeVariants&>(model().spec.rope_variants[0]).theta = 10000.0f;
      options_.rope_scaling = {type, factor};
      add();
    }
  }
  options_ = options;
  Open(Kinds());
  model().spec.groups[0].is_encoder = true;
  model().spec.encoder.max_rows = 40;
  options_.has_encoder_type = true;
  for (const auto type : {KvType::kF32, KvType::kF16}) {
    options_.encoder_type = type;
    add();
  }
  for (size_t i = 0; i < hashes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(hashes[i], hashes[j]) << i << " and " << j;
  }
  // Each number of each group alone, which no option changes alone.
  options_ = options;
  Open(Kinds());
  ExpectPlanned();
  const uint64_t whole = GeometryHash(*plan_);
  const auto expect_seen = [&](auto* field) {
    const auto before = *field;
    *field += 1;
    EXPECT_NE(whole, GeometryHash(*plan_));
    *field = before;
  };
  for (uint32_t g = 0; g < plan_->cache.n_groups; ++g) {
    expect_seen(&plan_->kv_groups[g].n_layers);
    expect_seen(&plan_->kv_groups[g].n_kv_heads);
    expect_seen(&plan_->kv_groups[g].head_dim);
    expect_seen(&plan_->kv_groups[g].state_floats);
    expect_seen(&plan_->cache.groups[g].window);
    expect_seen(&plan_->cache.groups[g].chunk);
  }
  EXPECT_EQ(whole, GeometryHash(*plan_));
  // What may differ between two sessions with the same pages.
  options_ = options;
  Open(Kinds());
  options_.max_sequences = 5;
  options_.context_tokens = 128;
  options_.kv_residual = 0;
  ExpectPlanned();
  EXPECT_EQ(plain, GeometryHash(*plan_));
}

}  // namespace
}  // namespace arn::test

// What a session's plan holds, by option: the size of each slice, and what is refused.
#include "runtime/memory/session_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/memory/devices.h"
#include "runtime/model/image_place.h"
#include "tests/unit/runtime/memory/planned_session.h"

namespace arn::test {
namespace {

constexpr uint32_t kHidden = 32, kVocab = 61, kContext = 256;

TinyBundle Mixed() {
  TinyBundle bundle;
  bundle.layer_kinds = {{}, {20}, {0, 16}, {0, 0, -1, TinyMixer::kScan}};
  return bundle;
}

class SessionPlanTest : public PlannedSession {
 protected:
  SessionPlanTest() { options_.n_threads = 1; }
};

TEST_F(SessionPlanTest, ModelsWithoutText_AreNotRun) {
  model().spec.makes_text = false;
  ExpectRefused(Status::kUnsupported,
                "the model makes vectors or scores of texts, not text: an embedder runs it "
                "(arenite embed, arenite rerank)");
  model().has_weights = false;
  ExpectRefused(Status::kUnsupported, "the bundle holds only a tokenizer, no model to run");
}

TEST_F(SessionPlanTest, Sequences_HaveTheirRows) {
  ExpectPlanned();
  EXPECT_EQ(100u, plan_->session.bytes);
  EXPECT_EQ(50u, plan_->sequences.bytes);
  EXPECT_EQ(sizeof(SequenceRows), plan_->rows.bytes);
  EXPECT_EQ(sizeof(Growth), plan_->growths.bytes);
  EXPECT_EQ(sizeof(SessionPart), plan_->parts.bytes);
  EXPECT_EQ(128 * sizeof(int32_t), plan_->tokens.bytes);
  EXPECT_EQ(kContext * sizeof(int32_t), plan_->history.bytes);
  EXPECT_EQ(0u, plan_->scratch_history.bytes);
  EXPECT_EQ(0u, plan_->sequence_logits.bytes);
  EXPECT_EQ(kVocab * sizeof(float), plan_->program.logits.bytes);
  EXPECT_EQ(kMaxStopBytes, plan_->text.bytes);
  EXPECT_EQ(1u, plan_->program.max_logit_rows);

  options_.max_sequences = 3;
  ExpectPlanned();
  EXPECT_EQ(3 * 50u, plan_->sequences.bytes);
  EXPECT_EQ(3 * kContext * sizeof(int32_t), plan_->history.bytes);
  EXPECT_EQ(kContext * sizeof(int32_t), plan_->scratch_history.bytes);
  EXPECT_EQ(3 * kVocab * sizeof(float), plan_->sequence_logits.bytes);
  EXPECT_EQ(3 * sizeof(uint32_t), plan_->beam_sequences.bytes);
  EXPECT_EQ(3 * sizeof(const float*), plan_->beam_logits.bytes);
  EXPECT_EQ(3u, plan_->program.max_logit_rows);
}

TEST_F(SessionPlanTest, Rows_AreOfAChunkOrASequence) {
  options_.prefill_chunk = 16;
  ExpectPlanned();
  EXPECT_EQ(16u, plan_->program.max_rows);
  options_.max_sequences = 17;
  ExpectPlanned();
  EXPECT_EQ(17u, plan_->program.max_rows);
  options_.no_cache = true;
  ExpectPlanned();
  EXPECT_EQ(kContext, plan_->program.max_rows);
  options_.all_logits = true;
  ExpectPlanned();
  EXPECT_EQ(kContext, plan_->program.max_logit_rows);
  EXPECT_EQ(kContext * kVocab * sizeof(float), plan_->program.logits.bytes);
}

TEST_F(SessionPlanTest, EncoderInput_MayBeLongerThanAChunk) {
  model().spec.encoder.max_rows = 300;
  ExpectPlanned();
  EXPECT_EQ(300u, plan_->program.max_encoder_rows);
  EXPECT_EQ(300 * sizeof(int32_t), plan_->tokens.bytes);
}

TEST_F(SessionPlanTest, Programs_HaveValuesWithinTheirLimit) {
  std::vector<Value> values(kMaxValues + 1);
  model().program.values = {values.data(), values.size()};
  EXPECT_EQ(Status::kInternal, Plan());
}

// Group 0 is full, 1 has a window, 2 a chunk, and 3 states.
TEST_F(SessionPlanTest, OnlyFullGroups_LieInTheFile) {
  Open(Mixed());
  ExpectPlanned();
  EXPECT_EQ(0u, plan_->kv_marks.bytes);
  uint32_t in_file = 0;
  for (uint32_t g = 0; g < plan_->cache.n_groups; ++g) in_file += plan_->IsInFile(g) ? 1 : 0;
  EXPECT_EQ(0u, in_file);

  options_.kv_in_file = true;
  ExpectPlanned();
  ASSERT_EQ(4u, plan_->cache.n_groups);
  for (uint32_t g = 0; g < 4; ++g) {
    const CacheGroup& group = plan_->cache.groups[g];
    const bool is_full = group.window == 0 && group.chunk == 0 && !group.is_state;
    EXPECT_EQ(is_full, plan_->IsInFile(g)) << g;
    // In a file each layer's parts of all pages lie together.
    const KvPages& pages = plan_->kv_groups[g].active;
    EXPECT_EQ(is_full ? pages.layer_bytes : pages.page_bytes, pages.page_stride) << g;
    EXPECT_GE(pages.layer_stride, is_full ? pages.n_pages * pages.layer_bytes : pages.layer_bytes);
    in_file += plan_->IsInFile(g) ? 1 : 0;
  }
  EXPECT_EQ(1u, in_file);
  // Chunks of 16 pages of 4096 bytes.
  uint64_t chunks = 0;
  for (uint32_t g = 0; g < 4; ++g) {
    if (!plan_->IsInFile(g)) continue;
    chunks = (plan_->kv_groups[g].active.layer_stride + 65535) / 65536;
  }
  EXPECT_GT(chunks, 0u);
  EXPECT_EQ(2 * 4 * chunks, plan_->kv_marks.bytes);

  TinyBundle windows;
  windows.window = 20;
  Open(windows);
  ExpectPlanned();
  EXPECT_EQ(0u, plan_->kv_marks.bytes);
}

TEST_F(SessionPlanTest, MarksCountPagesOfBothTypes) {
  options_.kv_in_file = true;
  options_.k_type = options_.v_type = KvType::kInt4;
  options_.kv_residual = 8;
  model().spec.max_context = options_.context_tokens = 1 << 20;
  ExpectPlanned();
  const KvGroup& group = plan_->kv_groups[0];
  ASSERT_GT(group.quantised.n_pages, 0u);
  const auto chunks = [](const KvPages& pages) { return (pages.layer_stride + 65535) / 65536; };
  EXPECT_EQ(2 * 4 * (chunks(group.active) + chunks(group.quantised)), plan_->kv_marks.bytes);
}

TEST_F(SessionPlanTest, KvFiles_AreOfTheHost) {
  backend_ = DescribedDevice();
  options_.kv_in_file = true;
  ExpectRefused(Status::kUnsupported, "kv_file: the KV pages are on the device");
  options_.kv_in_file = false;
  ExpectPlanned();
}

TEST_F(SessionPlanTest, SharedPages_AreAsManyAsTheTokensNeed) {
  options_.max_sequences = 4;
  options_.kv_page_tokens = 8;
  ExpectPlanned();
  EXPECT_EQ(4 * 32u, plan_->cache.groups[0].n_pages);
  options_.kv_tokens = 300;
  ExpectPlanned();
  EXPECT_EQ(38u, plan_->cache.groups[0].n_pages);
  EXPECT_EQ(0u, plan_->cache.groups[0].n_quantised_pages);
  options_.k_type = KvType::kInt4;
  options_.kv_residual = 8;
  options_.prefill_chunk = 8;
  ExpectPlanned();
  EXPECT_EQ(38u, plan_->cache.groups[0].n_quantised_pages);
  EXPECT_EQ(8u, plan_->cache.groups[0].residual);
  EXPECT_LT(plan_->cache.groups[0].n_pages, 38u);
  // Keys without values are never quantised.
  model().spec.groups[0].keys_only = true;
  ExpectPlanned();
  EXPECT_EQ(0u, plan_->cache.groups[0].n_quantised_pages);
  EXPECT_TRUE(plan_->kv_groups[0].keys_only);
}

TEST_F(SessionPlanTest, Pages_AreAsAsked) {
  options_.k_type = KvType::kF16;
  options_.v_type = KvType::kF32;
  options_.kv_page_tokens = 16;
  ExpectPlanned();
  const KvGroup* group = &plan_->kv_groups[0];
  EXPECT_EQ(DType::kF16, group->k_type);
  EXPECT_EQ(DType::kF32, group->v_type);
  EXPECT_EQ(16u, group->page_tokens);
  EXPECT_EQ(0u, group->quantised.n_pages);
  options_.k_type = KvType::kInt4;
  options_.v_type = KvType::kInt2;
  options_.kv_residual = 8;
  options_.kv_group_size = 4;
  ExpectPlanned();
  group = &plan_->kv_groups[0];
  EXPECT_EQ(4u, group->quantised_k_bits);
  EXPECT_EQ(2u, group->quantised_v_bits);
  EXPECT_EQ(4u, group->group_size);
  EXPECT_FALSE(group->k_by_token);
  EXPECT_FALSE(group->v_by_channel);
  options_.k_by_token = true;
  ExpectPlanned();
  EXPECT_TRUE(plan_->kv_groups[0].k_by_token);
  EXPECT_FALSE(plan_->kv_groups[0].v_by_channel);
  options_.v_by_channel = true;
  ExpectPlanned();
  EXPECT_TRUE(plan_->kv_groups[0].v_by_channel);
}

BackendOptions told;
Status PlanAsTold(const Program&, const BackendOptions& options, Layout*, BackendPlan*, Diag*) {
  told = options;
  return Status::kOk;
}

TEST_F(SessionPlanTest, Backends_AreTold) {
  backend_.plan = PlanAsTold;
  options_.n_threads = 3;
  options_.n_prefill_threads = 2;
  options_.device = "some device";
  options_.splits_rows = true;
  ExpectPlanned();
  EXPECT_EQ(3u, told.cpu.n_threads);
  EXPECT_EQ(2u, told.cpu.n_prefill_threads);
  EXPECT_STREQ("some device", told.gpu.device);
  EXPECT_TRUE(plan_->program.splits_rows);
  EXPECT_EQ(kContext, plan_->program.max_context);
  EXPECT_EQ(&backend_, plan_->backend);
}

TEST_F(SessionPlanTest, BytesOfAToken_AreOfItsLastPage) {
  Open(Mixed());
  options_.kv_residual = 8;
  options_.k_type = options_.v_type = KvType::kInt2;
  ExpectPlanned();
  uint64_t expected = 0;
  for (const KvGroup& group : plan_->program.kv_groups) {
    if (group.state_floats != 0) continue;
    expected += (group.quantised.n_pages != 0 ? group.quantised : group.active).page_bytes / 32;
  }
  EXPECT_EQ(expected, plan_->KvBytesPerToken());
  model().spec.groups[0].is_encoder = true;
  model().spec.encoder.max_rows = 40;
  ExpectPlanned();
  EXPECT_TRUE(plan_->kv_groups[0].is_encoder);
  const KvPages& of_first = plan_->kv_groups[0].active;
  EXPECT_GT(of_first.page_bytes, 0u);
  EXPECT_LT(plan_->KvBytesPerToken(), expected);
}

TEST_F(SessionPlanTest, EncoderPages_HaveTheirType) {
  Open(Mixed());
  model().spec.groups[0].is_encoder = true;
  model().spec.encoder.max_rows = 41;
  options_.max_sequences = 2;
  options_.kv_in_file = true;
  ExpectPlanned();
  const KvGroup& group = plan_->kv_groups[0];
  EXPECT_TRUE(group.is_encoder);
  EXPECT_EQ(48u, group.page_tokens);
  EXPECT_EQ(2u, group.active.n_pages);
  EXPECT_EQ(DType::kInt8, group.k_type);
  EXPECT_FALSE(plan_->IsInFile(0));
  options_.has_encoder_type = true;
  options_.encoder_type = KvType::kF32;
  ExpectPlanned();
  EXPECT_EQ(DType::kF32, plan_->kv_groups[0].k_type);
  EXPECT_EQ(DType::kF32, plan_->kv_groups[0].v_type);
  options_.overflow = Overflow::kShift;  // states cannot
  EXPECT_EQ(Status::kUnsupported, Plan());
}

// Sizes beyond 2^56 bytes.

TEST_F(SessionPlanTest, PagesBeyondTheAddressSpace_AreRefused) {
  Open(Mixed());
  KvGroupSpec* const group = &model().spec.groups[0];
  const KvGroupSpec plain = *group;
  group->n_layers = group->n_kv_heads = group->head_dim = 1 << 12;
  model().spec.max_context = options_.context_tokens = 1 << 24;
  EXPECT_EQ(Status::kOutOfMemory, Plan());
  EXPECT_NE(std::string::npos, std::string(diag_.text()).find("524288 KV pages of "));
  EXPECT_NE(std::string::npos,
            std::string(diag_.text()).find(" bytes do not fit the address space"));
  group->is_encoder = true;
  options_.context_tokens = 64;
  model().spec.encoder.max_rows = 1 << 20;
  options_.encoder_rows = 1 << 20;
  EXPECT_EQ(Status::kOutOfMemory, Plan());
  EXPECT_NE(std::string::npos, std::string(diag_.text()).find("1 KV pages of "));
  *group = plain;
  model().spec.encoder.max_rows = options_.encoder_rows = 0;
  ExpectPlanned();
  uint32_t g = 0;
  while (model().spec.groups[g].state_floats == 0) ++g;
  model().spec.groups[g].n_layers = 1 << 24;
  model().spec.groups[g].state_floats = UINT32_MAX;
  EXPECT_EQ(Status::kOutOfMemory, Plan());
  EXPECT_NE(std::string::npos, std::string(diag_.text()).find("2 KV pages of "));
}

constexpr uint64_t kMostBytes = uint64_t{1} << 56;

TEST_F(SessionPlanTest, LogitsBeyondTheAddressSpace_AreRefused) {
  model().program.vocab = UINT32_MAX;
  options_.no_cache = options_.all_logits = true;
  model().spec.max_context = options_.context_tokens = 1 << 20;
  ExpectPlanned();
  model().spec.max_context = options_.context_tokens = 1 << 23;
  EXPECT_EQ(Status::kOutOfMemory, Plan());
}

// Each slice in turn is the one that does not fit: what is before it takes all bytes but a few.
TEST_F(SessionPlanTest, EverySliceBeyondTheRegion_IsOutOfMemory) {
  TinyBundle bundle = Mixed();
  bundle.mtp = TinyMtp::kRandom;
  Open(bundle);
  AdapterBundle adapter;
  const AdapterBundle* const adapters[] = {&adapter};
  options_.max_sequences = 3;
  options_.max_requests = 4;
  options_.kv_in_file = true;
  options_.state_snapshots = 2;
  options_.logits_processors = true;
  options_.sampling_words = 100;
  // n: elements of `bytes` that the plan has.
  const auto sweep = [this](uint64_t SessionObjects::*bytes, uint64_t n, Region region) {
    const SessionObjects plain = objects_;
    ExpectPlanned();
    const uint64_t needed = plan_->RegionBytes(region);
    Status status = Status::kOutOfMemory;
    for (uint64_t room = 0; status != Status::kOk; room += 64) {
      ASSERT_LT(room, 2 * needed);
      objects_.*bytes = (kMostBytes - room) / n;
      status = Plan();
      ASSERT_TRUE(status == Status::kOk || status == Status::kOutOfMemory) << diag_.text();
    }
    EXPECT_LE(plan_->RegionBytes(region), kMostBytes + kRegionAlign);
    objects_ = plain;
  };
  options_.speculation = Speculation::kMtp;
  sweep(&SessionObjects::session_bytes, 1, Region::kConstants);
  sweep(&SessionObjects::guesses_bytes, 3, Region::kIo);
  options_.speculation = Speculation::kNgram;
  sweep(&SessionObjects::guesses_bytes, 3, Region::kIo);
  Open(TinyBundle());
  const_cast<RopeVariants&>(model().spec.rope_variants[0]).theta = 10000.0f;
  adapter.base = &model();
  adapter.steps = model().program.steps;
  options_.adapters = adapters;
  options_.rope_scaling = {RopeScalingType::kLinear, 2.0f};
  sweep(&SessionObjects::session_bytes, 1, Region::kConstants);
}

TEST_F(SessionPlanTest, DraftsBeyondTheAddressSpace_AreRefused) {
  OpenedModel draft{TinyBundle()};
  options_.speculation = Speculation::kDraft;
  options_.draft = &*draft;
  objects_.draft_bytes = kMostBytes + 1;
  EXPECT_EQ(Status::kOutOfMemory, Plan());
  EXPECT_STREQ("the draft model: ", diag_.text());
  objects_.draft_bytes = kMostBytes;
  EXPECT_EQ(Status::kOutOfMemory, Plan());
  options_ = SessionOptions();
  TinyBundle bundle;
  bundle.mtp = TinyMtp::kRandom;
  Open(bundle);
  options_.speculation = Speculation::kMtp;
  objects_.mtp_bytes = kMostBytes + 1;
  EXPECT_EQ(Status::kOutOfMemory, Plan());
  EXPECT_STREQ("the multi-token prediction head: ", diag_.text());
}

// RoPE.

TEST_F(SessionPlanTest, LongContexts_HaveTheirAngles) {
  TinyBundle bundle;
  bundle.short_context = 100;
  Open(bundle);
  options_.context_tokens = 100;
  ExpectPlanned();
  EXPECT_EQ(0u, plan_->long_ropes);
  EXPECT_EQ(model().spec.ropes[0].inv_freq.data(), plan_->ropes[0].inv_freq.data());
  options_.context_tokens = 101;
  ExpectPlanned();
  EXPECT_EQ(1u, plan_->long_ropes);
  EXPECT_EQ(model().spec.rope_variants[0].long_inv_freq.data(), plan_->ropes[0].inv_freq.data());
}

TEST_F(SessionPlanTest, ScaledRope_HasItsTable) {
  ExpectPlanned();
  EXPECT_EQ(0u, plan_->scaled_rope.bytes);
  const_cast<RopeVariants&>(model().spec.rope_variants[0]).theta = 10000.0f;
  options_.rope_scaling = {RopeScalingType::kYarn, 2.0f};
  ExpectPlanned();
  EXPECT_EQ(model().spec.ropes[0].inv_freq.size() * sizeof(float), plan_->scaled_rope.bytes);
  options_.context_tokens = 512;
  ExpectPlanned();
  options_.context_tokens = 513;
  ExpectRefused(Status::kBadArgument, "context_tokens is 513, the model was made for 512");
}

// Adapters.

TEST_F(SessionPlanTest, Adapters_AreOfTheModel) {
  AdapterBundle ours, other;
  ours.base = &model();
  ours.steps = model().program.steps;
  const AdapterBundle* one[] = {&ours, &ours, &ours};
  options_.adapters = one;
  options_.max_sequences = 2;
  ExpectPlanned();
  EXPECT_EQ(3 * sizeof(void*), plan_->adapters.bytes);
  EXPECT_EQ(6 * sizeof(ActiveAdapter), plan_->active_adapters.bytes);
  EXPECT_EQ(plan_->adapters.bytes + plan_->active_adapters.bytes, plan_->AdapterBytes());
  one[1] = &other;
  ExpectRefused(Status::kBadArgument, "adapters[1] is not an adapter of this model");
  one[1] = nullptr;
  ExpectRefused(Status::kBadArgument, "adapters[1] is NULL");
  std::vector<const AdapterBundle*> many(1024, &ours);
  options_.adapters = {many.data(), many.size()};
  ExpectPlanned();
  many.push_back(&ours);
  options_.adapters = {many.data(), many.size()};
  ExpectRefused(Status::kBadArgument, "n_adapters is 1025, expected at most 1024");
}

// Embeddings.

TEST_F(SessionPlanTest, Embeddings_TakeABackend) {
  options_.embedding_rows = 4;
  ExpectRefused(Status::kUnsupported,
                "embedding_rows is 4: the backend described takes no embeddings (images)");
  backend_.takes_embeddings = true;
  ExpectPlanned();
  EXPECT_EQ(4 * kHidden * sizeof(float), plan_->embeddings.bytes);
  EXPECT_EQ(4u, plan_->embedding_marks.bytes);
  EXPECT_EQ(kContext * sizeof(int32_t), plan_->mixed_ids.bytes);
  EXPECT_EQ(kContext * sizeof(int32_t), plan_->plain_ids.bytes);
  EXPECT_EQ(0u, plan_->image_places.bytes);
  EXPECT_EQ(0u, plan_->axis_positions.bytes);
  EXPECT_EQ(0u, plan_->image_mask.bytes);
  model().spec.vision.has_mrope = true;
  ExpectPlanned();
  EXPECT_EQ(4 * sizeof(ImagePlace), plan_->image_places.bytes);
  EXPECT_EQ(128 * kRopeAxes * sizeof(uint32_t), plan_->axis_positions.bytes);
  options_.embedding_rows = kMaxEmbeddingRows;
  ExpectPlanned();
}

TEST_F(SessionPlanTest, ImagesSeenBothWays_TakeMasks) {
  model().spec.vision.sees_both_ways = true;
  options_.embedding_rows = 4;
  options_.prefill_chunk = 20;
  backend_.takes_embeddings = true;
  const std::string ends = ": their tokens attend to each other in both directions";
  ExpectRefused(Status::kUnsupported, "images need a backend with masks" + ends);
  options_.no_cache = true;
  ExpectRefused(Status::kUnsupported, "images need a cache" + ends);
  backend_.takes_masks = true;
  ExpectRefused(Status::kUnsupported, "images need a cache" + ends);
  options_.no_cache = false;
  ExpectPlanned();
  EXPECT_EQ(400u, plan_->image_mask.bytes);
  backend_.takes_masks = false;
  backend_.takes_prefix_masks = true;
  ExpectPlanned();
  EXPECT_EQ(400u, plan_->image_mask.bytes);
}

// Guesses.

TEST_F(SessionPlanTest, Guesses_HaveTheirMemory) {
  ExpectPlanned();
  EXPECT_EQ(0u, plan_->guesses.bytes);
  EXPECT_EQ(0u, plan_->speculation_bytes);
  options_.speculation = Speculation::kNgram;
  options_.max_guesses = 5;
  ExpectPlanned();
  EXPECT_EQ(6u, plan_->program.max_logit_rows);
  EXPECT_EQ(40u, plan_->guesses.bytes);
  EXPECT_GT(plan_->ngrams.slots.bytes, 0u);
  EXPECT_EQ(plan_->ngrams.slots.bytes + 40 + 5 * kVocab * sizeof(float), plan_->speculation_bytes);
  options_.max_sequences = 3;
  ExpectPlanned();
  EXPECT_EQ(6u, plan_->program.max_logit_rows);
  EXPECT_EQ(40u, plan_->guesses.bytes);
  options_.max_requests = 2;  // guesses of all sequences together
  ExpectPlanned();
  EXPECT_EQ(8u, plan_->program.max_logit_rows);
  EXPECT_EQ(120u, plan_->guesses.bytes);
}

TEST_F(SessionPlanTest, Head_HasItsMemory) {
  TinyBundle bundle;
  bundle.mtp = TinyMtp::kRandom;
  Open(bundle);
  options_.speculation = Speculation::kMtp;
  options_.max_guesses = 5;
  options_.prefill_chunk = 16;
  ExpectPlanned();
  EXPECT_EQ(16u + 5 + 1, plan_->mtp.n_rows);
  EXPECT_EQ((16u + 5 + 2) * kHidden * sizeof(float), plan_->mtp.rows.bytes);
  EXPECT_EQ(kContext * sizeof(int32_t), plan_->mtp.text.bytes);
  EXPECT_EQ(0u, plan_->ngrams.slots.bytes);
  EXPECT_EQ(plan_->guesses.bytes + 5 * kVocab * sizeof(float) + plan_->mtp.TotalBytes(),
            plan_->speculation_bytes);
  bundle.is_assistant = true;
  Open(bundle);
  ExpectPlanned();
  EXPECT_EQ(6u, plan_->mtp.n_rows);
  EXPECT_EQ(7 * kHidden * sizeof(float), plan_->mtp.rows.bytes);
  EXPECT_EQ(6 * sizeof(int32_t), plan_->mtp.text.bytes);
}

TEST_F(SessionPlanTest, Head_IsPlannedBesideTheModel) {
  TinyBundle bundle;
  bundle.mtp = TinyMtp::kRandom;
  for (const bool is_assistant : {false, true}) {
    bundle.is_assistant = is_assistant;
    Open(bundle);
    options_.speculation = Speculation::kMtp;
    options_.prefill_chunk = 16;
    options_.n_threads = 3;
    options_.context_tokens = 99;
    ExpectPlanned();
    SessionPlan head;
    ASSERT_EQ(Status::kOk, PlanMtp(model(), *plan_, objects_, &head, &diag_)) << diag_.text();
    EXPECT_EQ(is_assistant ? 1u : 16u, head.options.prefill_chunk);
    EXPECT_EQ(99u, head.options.context_tokens);
    EXPECT_EQ(3u, head.options.n_threads);
    EXPECT_EQ(30u, head.session.bytes);
    EXPECT_EQ(50u, head.sequences.bytes);
    EXPECT_TRUE(head.options.keeps_unseen);
    EXPECT_EQ(is_assistant ? 0u : 1u, head.cache.n_groups);
    if (is_assistant) {
      EXPECT_EQ(plan_->kv_groups[0].active.pool.offset, head.kv_groups[0].active.pool.offset);
    }
    plan_->options.context_tokens = 1000;
    EXPECT_EQ(Status::kBadArgument, PlanMtp(model(), *plan_, objects_, &head, &diag_));
    EXPECT_STREQ(
        "the multi-token prediction head: context_tokens is 1000, the model was made "
        "for 256",
        diag_.text());
  }
}

// Backends.

TEST_F(SessionPlanTest, WhatABackendRefuses_IsItsWord) {
  backend_.plan = RefuseToPlan;
  ExpectRefused(Status::kUnsupported, "the backend of the test refuses");
  backend_ = DescribedCpu();
  options_.fallback = &backend_;
  ExpectPlanned();
  Backend fallback = DescribedCpu();
  fallback.plan = RefuseToPlan;
  options_.fallback = &fallback;
  ExpectRefused(Status::kUnsupported, "the backend of the test refuses");
}

TEST_F(SessionPlanTest, Device_HoldsWhatNoFallbackNeeds) {
  const auto in_block = [this](Region region) { return plan_->BlockBytes(region); };
  for (const bool is_device : {false, true}) {
    backend_ = is_device ? DescribedDevice() : DescribedCpu();
    options_.fallback = nullptr;
    ExpectPlanned();
    for (const Region region : {Region::kKv, Region::kActivations}) {
      EXPECT_GT(plan_->RegionBytes(region), 0u);
      EXPECT_EQ(is_device ? 0 : plan_->RegionBytes(region), in_block(region));
    }
    EXPECT_EQ(plan_->RegionBytes(Region::kIo), in_block(Region::kIo));
    EXPECT_EQ(in_block(Region::kKv) + in_block(Region::kActivations) + in_block(Region::kIo) +
                  in_block(Region::kConstants),
              plan_->TotalBytes());
    const Backend cpu = DescribedCpu();
    options_.fallback = &cpu;
    ExpectPlanned();
    EXPECT_EQ(plan_->RegionBytes(Region::kKv), in_block(Region::kKv));
    EXPECT_EQ(plan_->RegionBytes(Region::kActivations), in_block(Region::kActivations));
  }
  EXPECT_EQ(model().spec.weight_bytes, plan_->RegionBytes(Region::kWeights));
}

TEST_F(SessionPlanTest, Block_IsCutInOrder) {
  ExpectPlanned();
  std::vector<std::byte> block(1);
  const Memory memory = PartitionBlock(*plan_, block.data());
  const std::byte* at = block.data();
  for (const Region region : {Region::kConstants, Region::kIo, Region::kActivations, Region::kKv}) {
    const Span<std::byte> part = memory.region[static_cast<uint32_t>(region)];
    EXPECT_EQ(at, part.data());
    EXPECT_EQ(plan_->BlockBytes(region), part.size());
    at += part.size();
  }
}

Status PlanUpTo256(const Program& program, const BackendOptions&, Layout*, BackendPlan*,
                   Diag* diag) {
  if (program.max_rows <= 256) return Status::kOk;
  return diag->Fail(Status::kUnsupported, "%u rows are too many", program.max_rows);
}

TEST_F(SessionPlanTest, Devices_ChooseTheirChunks) {
  model().spec.max_context = options_.context_tokens = 2048;
  backend_ = DescribedDevice();
  ExpectPlanned();
  if (!kHasDevices && !plan_->device_chooses_chunk) GTEST_SKIP() << "a build without devices";
  EXPECT_TRUE(plan_->device_chooses_chunk);
  EXPECT_EQ(512u, plan_->options.prefill_chunk);
  const auto expect_default = [this] {
    ExpectPlanned();
    EXPECT_FALSE(plan_->device_chooses_chunk);
    EXPECT_EQ(128u, plan_->options.prefill_chunk);
  };
  backend_.plan = PlanUpTo256;
  expect_default();
  EXPECT_STREQ("", diag_.text());
  backend_.plan = PlanNothing;
  options_.all_logits = true;
  expect_default();
  options_.all_logits = false;
  const Backend cpu = DescribedCpu();
  options_.fallback = &cpu;
  options_.speculation = Speculation::kNgram;
  expect_default();
  options_.speculation = Speculation::kNone;
  model().spec.vision.sees_both_ways = true;
  ExpectPlanned();  // no images
  EXPECT_TRUE(plan_->device_chooses_chunk);
  backend_.takes_embeddings = backend_.takes_masks = true;
  options_.embedding_rows = 2;
  expect_default();
  options_.embedding_rows = 0;
  options_.prefill_chunk = 16;
  ExpectPlanned();
  EXPECT_FALSE(plan_->device_chooses_chunk);
  options_.prefill_chunk = 0;
  options_.n_threads = 257;
  ExpectRefused(Status::kBadArgument, "n_threads is 257, expected at most 256");
  EXPECT_FALSE(plan_->device_chooses_chunk);
}

// Constraints and processors.

TEST_F(SessionPlanTest, Constraints_NeedATokenizer) {
  options_.max_constraints = 2;
  ExpectRefused(Status::kBadArgument, "max_constraints is 2, but constraint_bytes is 0");
  options_.constraint_bytes = 1 << 20;
  ExpectRefused(Status::kUnsupported, "constraints need a tokenizer, the bundle has none");
}

TEST_F(SessionPlanTest, Processors_AreAskedFor) {
  ExpectPlanned();
  EXPECT_EQ(0u, plan_->processors.row.bytes);
  EXPECT_EQ(0u, plan_->sampling_lists.bytes);
  options_.logits_processors = true;
  ExpectPlanned();
  EXPECT_EQ(kVocab * sizeof(float), plan_->processors.row.bytes);
  EXPECT_EQ(kVocab * sizeof(uint32_t), plan_->processors.marks.bytes);
}

}  // namespace
}  // namespace arn::test

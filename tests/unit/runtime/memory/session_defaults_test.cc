// What a session's options may be: each bound with the status and the words of its refusal, and
// what fills in the ones that are left out.
#include "runtime/memory/session_defaults.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/runtime/memory/planned_session.h"

namespace arn::test {
namespace {

using Change = void (*)(SessionOptions*);
struct Bound {
  Change change;
  const char* why;  // null: it is within
};

class SessionDefaults : public PlannedSession {
 protected:
  // Applies each change to the options alone.
  template <size_t kCount>
  void ExpectBounds(Status status, const Bound (&bounds)[kCount]) {
    const SessionOptions plain = options_;
    for (const Bound& bound : bounds) {
      options_ = plain;
      bound.change(&options_);
      if (bound.why == nullptr) {
        SCOPED_TRACE(&bound - bounds);
        ExpectPlanned();
      } else {
        ExpectRefused(status, bound.why);
      }
    }
    options_ = plain;
  }
};

TinyBundle WithStates() {
  TinyBundle bundle;
  const TinyLayer scan = {0, 0, -1, TinyMixer::kScan};
  bundle.layer_kinds = {scan, {}};
  return bundle;
}

TEST_F(SessionDefaults, LeftOut_AreFilledIn) {
  const SessionOptions& applied = Applied();
  EXPECT_EQ(256u, applied.context_tokens);
  EXPECT_EQ(128u, applied.prefill_chunk);
  EXPECT_EQ(32u, applied.kv_page_tokens);
  EXPECT_EQ(128u, applied.kv_residual);
  EXPECT_EQ(32u, applied.kv_group_size);
  EXPECT_EQ(1u, applied.max_sequences);
  EXPECT_EQ(256u, applied.kv_tokens);
  EXPECT_EQ(0u, applied.max_guesses);
  EXPECT_EQ(0u, applied.encoder_rows);
  EXPECT_EQ(0u, applied.sampling_words);
  EXPECT_FALSE(applied.logits_processors);
  EXPECT_EQ(50u, applied.pace.thermal_duty_percent);
}

TEST_F(SessionDefaults, LongContexts_AreAskedFor) {
  model().spec.max_context = 5000;
  EXPECT_EQ(4096u, Applied().context_tokens);
  options_.context_tokens = 5000;
  EXPECT_EQ(5000u, Applied().context_tokens);
}

TEST_F(SessionDefaults, ChunkIsWithinTheContext) {
  options_.context_tokens = 100;
  EXPECT_EQ(100u, Applied().prefill_chunk);
  options_.prefill_chunk = 99;
  EXPECT_EQ(99u, Applied().prefill_chunk);
}

TEST_F(SessionDefaults, Counts_HaveBounds) {
  ExpectBounds(
      Status::kBadArgument,
      {{[](auto* o) { o->context_tokens = 256; }, nullptr},
       {[](auto* o) { o->context_tokens = 257; },
        "context_tokens is 257, the model was made for 256"},
       {[](auto* o) { o->prefill_chunk = 4096; }, nullptr},
       {[](auto* o) { o->prefill_chunk = 4097; }, "prefill_chunk is 4097, expected at most 4096"},
       {[](auto* o) { o->n_threads = 256; }, nullptr},
       {[](auto* o) { o->n_threads = 257; }, "n_threads is 257, expected at most 256"},
       {[](auto* o) { o->n_prefill_threads = 256; }, nullptr},
       {[](auto* o) { o->n_prefill_threads = 257; },
        "n_prefill_threads is 257, expected at most 256"},
       {[](auto* o) { o->sampling_words = 1 << 20; }, nullptr},
       {[](auto* o) { o->sampling_words = (1 << 20) + 1; },
        "sampling_words is 1048577, expected at most 1048576"},
       {[](auto* o) { o->max_sequences = 1024; }, nullptr},
       {[](auto* o) { o->max_sequences = 1025; }, "max_sequences is 1025, expected at most 1024"},
       {[](auto* o) { o->encoder_rows = 1; },
        "encoder_rows is 1, the model's encoder takes at most 0"},
       {[](auto* o) { o->embedding_rows = (1 << 20) + 1; },
        "embedding_rows is 1048577, expected at most 1048576"},
       {[](auto* o) { o->rope_scaling.factor = 2; },
        "rope_factor is 2, but rope_scaling is not set"}});
}

TEST_F(SessionDefaults, Pages_ArePowersOfTwo) {
  ExpectBounds(Status::kBadArgument,
               {{[](auto* o) { o->kv_page_tokens = 8; }, nullptr},
                {[](auto* o) { o->kv_page_tokens = 1024; }, nullptr},
                {[](auto* o) { o->kv_page_tokens = 4; },
                 "kv_page_tokens is 4, expected a power of two in 8..1024"},
                {[](auto* o) { o->kv_page_tokens = 12; },
                 "kv_page_tokens is 12, expected a power of two in 8..1024"},
                {[](auto* o) { o->kv_page_tokens = 2048; },
                 "kv_page_tokens is 2048, expected a power of two in 8..1024"}});
}

TEST_F(SessionDefaults, OptionsOfQuantisedPages_NeedThem) {
  ExpectBounds(Status::kBadArgument, {{[](auto* o) { o->kv_residual = 5; },
                                       "kv_residual 5 and kv_group_size 0 need int4 or int2 KV"},
                                      {[](auto* o) { o->kv_group_size = 8; },
                                       "kv_residual 0 and kv_group_size 8 need int4 or int2 KV"}});
  for (KvType SessionOptions::*type : {&SessionOptions::k_type, &SessionOptions::v_type}) {
    options_ = SessionOptions();
    options_.*type = KvType::kInt4;
    options_.kv_page_tokens = 16;
    EXPECT_TRUE(QuantisesPages(options_));
    EXPECT_EQ(16u, Applied().kv_group_size);
    EXPECT_EQ(128u, Applied().kv_residual);
    options_.kv_residual = 5;
    options_.kv_group_size = 8;
    EXPECT_EQ(8u, Applied().kv_group_size);
    EXPECT_EQ(5u, Applied().kv_residual);
    options_.kv_group_size = 5;
    ExpectRefused(Status::kBadArgument, "kv_group_size is 5, expected a divisor of 16 tokens");
  }
  EXPECT_FALSE(QuantisesPages(SessionOptions()));
}

TEST_F(SessionDefaults, TokensOfAllSequences_FitTheirCount) {
  model().spec.max_context = 1 << 22;
  options_.context_tokens = 1 << 22;
  options_.max_sequences = 1024;
  ExpectRefused(Status::kBadArgument, "1024 sequences of 4194304 tokens are too many");
  options_.max_sequences = 1023;
  EXPECT_EQ(1023u << 22, Applied().kv_tokens);
  options_.context_tokens = 256;
  options_.max_sequences = 2;
  ExpectBounds(Status::kBadArgument,
               {{[](auto* o) { o->kv_tokens = 255; },
                 "kv_tokens is 255, expected 256 (one sequence) to 512 (all of them)"},
                {[](auto* o) { o->kv_tokens = 256; }, nullptr},
                {[](auto* o) { o->kv_tokens = 512; }, nullptr},
                {[](auto* o) { o->kv_tokens = 513; },
                 "kv_tokens is 513, expected 256 (one sequence) to 512 (all of them)"}});
}

TEST_F(SessionDefaults, PinnedTokens_AreThoseOfAShift) {
  options_.pinned_tokens = 1;
  ExpectRefused(Status::kBadArgument, "pinned_tokens is 1, but overflow is not shift");
  options_.overflow = Overflow::kError;
  ExpectRefused(Status::kBadArgument, "pinned_tokens is 1, but overflow is not shift");
  options_.overflow = Overflow::kShift;
  options_.pinned_tokens = 192;
  ExpectPlanned();
  options_.pinned_tokens = 193;
  ExpectRefused(Status::kBadArgument,
                "a context shift drops 32 tokens at a time: pinned_tokens 193 leave too few of a "
                "context of 256");
  options_.overflow = Overflow::kError;
  options_.pinned_tokens = 0;
  ExpectPlanned();
}

TEST_F(SessionDefaults, Shift_DropsFromNoState) {
  Open(WithStates());
  options_.overflow = Overflow::kShift;
  ExpectRefused(Status::kUnsupported,
                "overflow shift: the model has layers with a recurrent state, from which no token "
                "can be dropped");
}

TEST_F(SessionDefaults, Speculation_AsksForWhatItNeeds) {
  ExpectBounds(Status::kBadArgument,
               {{[](auto* o) { o->speculation = Speculation::kDraft; },
                 "speculation is 2, but draft is NULL"},
                {[](auto* o) { o->max_guesses = 3; }, "max_guesses is 3, but speculation is 0"},
                {[](auto* o) {
                   o->speculation = Speculation::kNgram;
                   o->max_guesses = 63;
                 },
                 nullptr},
                {[](auto* o) {
                   o->speculation = Speculation::kNgram;
                   o->max_guesses = 64;
                 },
                 "max_guesses is 64, expected at most 63"}});
  options_.draft = &model();
  ExpectRefused(Status::kBadArgument, "a draft model is given, but speculation is 0");
  options_.speculation = Speculation::kNgram;
  ExpectRefused(Status::kBadArgument, "a draft model is given, but speculation is 1");
  options_.draft = nullptr;
  options_.no_cache = true;
  ExpectRefused(Status::kUnsupported, "speculation: no_cache is 1, every run takes all rows");
}

TEST_F(SessionDefaults, Guesses_AreOneLessThanAChunk) {
  options_.speculation = Speculation::kNgram;
  EXPECT_EQ(15u, Applied().max_guesses);
  options_.prefill_chunk = 4;
  EXPECT_EQ(3u, Applied().max_guesses);
  options_.max_guesses = 2;
  EXPECT_EQ(2u, Applied().max_guesses);
  options_.speculation = Speculation::kAuto;  // without a draft or a head: texts alone
  EXPECT_EQ(Speculation::kAuto, Applied().speculation);
}

TEST_F(SessionDefaults, DevicesVerifyNoGuesses) {
  backend_ = DescribedDevice();
  options_.speculation = Speculation::kNgram;
  ExpectRefused(Status::kUnsupported,
                "speculation: the device backend does not verify guesses, only CPUs do");
  const Backend cpu = DescribedCpu();
  options_.fallback = &cpu;
  ExpectPlanned();
}

TEST_F(SessionDefaults, StatesBesideQuantisedPages_TakeNoGuesses) {
  options_.speculation = Speculation::kNgram;
  options_.k_type = KvType::kInt4;
  ExpectPlanned();
  Open(WithStates());
  ExpectRefused(Status::kUnsupported,
                "speculation: not with int4 or int2 KV beside layers with a recurrent state");
  options_.k_type = KvType::kInt8;
  ExpectPlanned();
}

TEST_F(SessionDefaults, Mtp_IsRefusedForItsReason) {
  options_.speculation = Speculation::kMtp;
  ExpectRefused(Status::kUnsupported,
                "speculation is 4: the bundle has no multi-token prediction head (arenite-convert "
                "keeps it for some families, and --assistant adds one)");
  TinyBundle bundle;
  bundle.mtp = TinyMtp::kRandom;
  Open(bundle);
  ExpectPlanned();
  AdapterBundle adapter;
  adapter.base = &model();
  adapter.steps = model().program.steps;
  const AdapterBundle* const adapters[] = {&adapter};
  options_.adapters = adapters;
  ExpectRefused(Status::kUnsupported,
                "speculation is 4: the multi-token prediction head does not know the session's "
                "adapters");
  options_.adapters = {};
  const std::string elsewhere =
      "speculation is 4: the multi-token prediction head reads rows in the host's memory, not "
      "those of the described backend";
  backend_.takes_features = false;
  ExpectRefused(Status::kUnsupported, elsewhere);
  backend_.takes_features = true;
  backend_.device = &kSomeDevice;
  options_.prefill_chunk = 16;
  ExpectRefused(Status::kUnsupported, elsewhere);
  backend_.device = nullptr;
  backend_.host_kv = nullptr;
  const Backend cpu = DescribedCpu();
  options_.fallback = &cpu;
  ExpectRefused(Status::kUnsupported, elsewhere);
  // What is not asked for by name is left out.
  options_.speculation = Speculation::kAuto;
  EXPECT_EQ(Speculation::kAuto, Applied().speculation);
}

TEST_F(SessionDefaults, Auto_TakesTheHeadUnlessThereIsADraft) {
  TinyBundle bundle;
  bundle.mtp = TinyMtp::kRandom;
  Open(bundle);
  options_.speculation = Speculation::kAuto;
  EXPECT_EQ(5u, static_cast<uint32_t>(Applied().speculation));
  EXPECT_TRUE(plan_->mtp.exists());
  EXPECT_EQ(0u, plan_->draft.bytes);
  OpenedModel draft{TinyBundle()};
  options_.draft = &*draft;
  EXPECT_EQ(Speculation::kAuto, Applied().speculation);
  EXPECT_FALSE(plan_->mtp.exists());
  EXPECT_GT(plan_->draft.bytes, 0u);
}

TEST_F(SessionDefaults, Assistants_ReadNoFile) {
  TinyBundle bundle;
  bundle.mtp = TinyMtp::kRandom;
  options_.kv_in_file = true;
  options_.speculation = Speculation::kMtp;
  Open(bundle);
  ExpectPlanned();
  backend_.takes_features = false;
  ExpectRefused(Status::kUnsupported,
                "speculation is 4: the multi-token prediction head reads rows in the host's "
                "memory, not those of the described backend");
  backend_.takes_features = true;
  bundle.is_assistant = true;
  Open(bundle);
  ExpectRefused(Status::kUnsupported,
                "speculation is 4: the assistant reads the model's KV pages, which are in kv_file");
  options_.kv_in_file = false;
  ExpectPlanned();
}

TEST_F(SessionDefaults, Snapshots_AreOfStates) {
  options_.state_snapshots = 1025;
  ExpectRefused(Status::kBadArgument, "state_snapshots is 1025, expected at most 1024");
  options_.state_snapshots = 0;
  options_.snapshot_every = 3;
  ExpectRefused(Status::kBadArgument, "snapshot_every is 3, but state_snapshots is 0");
  options_.state_snapshots = 1024;
  EXPECT_EQ(0u, Applied().state_snapshots);
  EXPECT_EQ(0u, plan_->options.snapshot_every);
  EXPECT_EQ(0u, plan_->SnapshotBytes());

  Open(WithStates());
  options_.max_sequences = 2;
  options_.state_snapshots = 3;
  EXPECT_EQ(3u, Applied().state_snapshots);
  EXPECT_EQ(3u, plan_->options.snapshot_every);
  uint64_t of_states = 0;
  for (const KvGroup& group : plan_->program.kv_groups) {
    if (group.state_floats != 0) of_states += group.active.page_bytes;
  }
  EXPECT_GT(of_states, 0u);
  EXPECT_EQ(6 * of_states, plan_->SnapshotBytes());
  options_.snapshot_every = 0;
  options_.prefill_chunk = 17;
  EXPECT_EQ(17u, Applied().snapshot_every);
  options_.no_cache = true;
  EXPECT_EQ(0u, Applied().state_snapshots);
  EXPECT_EQ(0u, plan_->options.snapshot_every);
  options_.state_snapshots = options_.snapshot_every = 0;
  options_.no_cache = false;
  EXPECT_EQ(0u, Applied().snapshot_every);
}

TEST_F(SessionDefaults, EncoderRows_AreThoseOfTheModel) {
  EncoderSpec& encoder = model().spec.encoder;
  encoder.max_rows = 40;
  EXPECT_EQ(40u, Applied().encoder_rows);
  encoder.max_rows = 4000;
  EXPECT_EQ(512u, Applied().encoder_rows);
  encoder.feature_width = 80;  // features, and with learned positions: all of them
  EXPECT_EQ(4000u, Applied().encoder_rows);
  encoder.feature_width = 0;
  encoder.positions = 0;
  EXPECT_EQ(4000u, Applied().encoder_rows);
  options_.encoder_rows = 4000;
  EXPECT_EQ(4000u, Applied().encoder_rows);
  options_.encoder_rows = 4001;
  ExpectRefused(Status::kBadArgument,
                "encoder_rows is 4001, the model's encoder takes at most 4000");
}

TEST_F(SessionDefaults, EncoderPages_AreNotQuantised) {
  options_.has_encoder_type = true;
  options_.encoder_type = KvType::kInt4;
  ExpectPlanned();  // no encoder, no such pages
  model().spec.encoder.max_rows = 40;
  ExpectRefused(Status::kUnsupported, "encoder_kv_type is int4, expected f32, f16 or int8");
  options_.encoder_type = KvType::kInt2;
  ExpectRefused(Status::kUnsupported, "encoder_kv_type is int2, expected f32, f16 or int8");
  options_.encoder_type = KvType::kF16;
  ExpectPlanned();
}

TEST_F(SessionDefaults, ImagesSeenBothWays_FitAChunk) {
  VisionSpec& vision = model().spec.vision;
  vision.sees_both_ways = true;
  vision.max_patches = 600;
  vision.merge_side = 2;
  backend_.takes_embeddings = backend_.takes_masks = true;
  EXPECT_EQ(128u, Applied().prefill_chunk);
  options_.embedding_rows = 8;
  EXPECT_EQ(150u, Applied().prefill_chunk);
  vision.max_patches = 400;
  EXPECT_EQ(128u, Applied().prefill_chunk);
  options_.prefill_chunk = 7;
  EXPECT_EQ(7u, Applied().prefill_chunk);
  options_.prefill_chunk = 0;
  vision.max_patches = 600;
  vision.sees_both_ways = false;
  EXPECT_EQ(128u, Applied().prefill_chunk);
}

TEST_F(SessionDefaults, SamplingOfTheCheckpoint_Fits) {
  const float penalty = 1.5f;
  TinyBundle bundle;
  uint32_t word;
  std::memcpy(&word, &penalty, sizeof word);
  bundle.sampling = {{6, {word}}};
  Open(bundle);
  EXPECT_TRUE(Applied().logits_processors);
  const int32_t ids[] = {1, 2, 3};
  model().sampling.bias_ids = ids;
  options_.sampling_words = 2;
  EXPECT_EQ(3u, Applied().sampling_words);
  options_.sampling_words = 4;
  EXPECT_EQ(4u, Applied().sampling_words);
  EXPECT_EQ(2 * 4 * sizeof(uint32_t), plan_->sampling_lists.bytes);
}

// Pace.

TEST_F(SessionDefaults, Pace_HasBounds) {
  const std::string duty_alone = "thermal_duty_percent is 20, but no thermal limit is set";
  ExpectBounds(
      Status::kBadArgument,
      {{[](auto* o) { o->pace.max_tokens_per_s = 0.001f; }, nullptr},
       {[](auto* o) { o->pace.max_tokens_per_s = 1e6f; }, nullptr},
       {[](auto* o) { o->pace.max_tokens_per_s = 0.0009f; },
        "max_tokens_per_s is 0.0009, expected 0, or 0.001 to 1e+06"},
       {[](auto* o) { o->pace.max_tokens_per_s = 2e6f; },
        "max_tokens_per_s is 2e+06, expected 0, or 0.001 to 1e+06"},
       {[](auto* o) { o->pace.max_tokens_per_s = -1; },
        "max_tokens_per_s is -1, expected 0, or 0.001 to 1e+06"},
       {[](auto* o) { o->pace.thermal_headroom = 10; }, nullptr},
       {[](auto* o) { o->pace.thermal_headroom = 11; }, "thermal_headroom is 11, expected 0 to 10"},
       {[](auto* o) { o->pace.thermal_headroom = -1; }, "thermal_headroom is -1, expected 0 to 10"},
       {[](auto* o) { o->pace.thermal_limit_mc = 20000; }, nullptr},
       {[](auto* o) { o->pace.thermal_limit_mc = 150000; }, nullptr},
       {[](auto* o) { o->pace.thermal_limit_mc = 19999; },
        "thermal_limit_mc is 19999, expected 0, or 20000 to 150000 thousandths of a degree"},
       {[](auto* o) { o->pace.thermal_limit_mc = 150001; },
        "thermal_limit_mc is 150001, expected 0, or 20000 to 150000 thousandths of a degree"},
       {[](auto* o) {
          o->pace.thermal_limit_mc = 50000;
          o->pace.thermal_duty_percent = 99;
        },
        nullptr},
       {[](auto* o) {
          o->pace.thermal_headroom = 1;
          o->pace.thermal_duty_percent = 1;
        },
        nullptr},
       {[](auto* o) { o->pace.thermal_duty_percent = 100; },
        "thermal_duty_percent is 100, expected 0, or 1 to 99"},
       {[](auto* o) { o->pace.thermal_duty_percent = 20; }, duty_alone.c_str()}});
  options_.pace.thermal_limit_mc = 50000;
  options_.pace.thermal_duty_percent = 20;
  EXPECT_EQ(20u, Applied().pace.thermal_duty_percent);
}

}  // namespace
}  // namespace arn::test

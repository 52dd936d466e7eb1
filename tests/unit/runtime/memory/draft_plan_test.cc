// Which draft models a session takes, and what it plans for them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/constrain/token_constraint.h"
#include "tests/unit/runtime/memory/planned_session.h"
#include "tests/unit/text/tokenizer_fixture.h"

namespace arn::test {
namespace {

// A tokenizer of these tokens; the last n_special are special.
LoadedTokenizer TokenizerOf(const std::vector<std::string>& tokens, size_t n_special = 0) {
  std::string vocab, added;
  for (size_t i = 0; i < tokens.size(); ++i) {
    vocab += (i == 0 ? "\"" : ",\"") + tokens[i] + "\":" + std::to_string(i);
    if (i + n_special < tokens.size()) continue;
    added += (added.empty() ? "" : ",") + ("{\"id\":" + std::to_string(i)) + ",\"content\":\"" +
             tokens[i] +
             "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
             "\"special\":true}";
  }
  const std::string json =
      R"({"version":"1.0","added_tokens":[)" + added +
      R"(],"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,)"
      R"("trim_offsets":true,"use_regex":true},"post_processor":null,)"
      R"("decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,)"
      R"("use_regex":true},"model":{"type":"BPE","dropout":null,"unk_token":null,)"
      R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,)"
      R"("byte_fallback":false,"vocab":{)" +
      vocab + R"(},"merges":[]}})";
  convert::TokenizerTables tables;
  std::string error;
  EXPECT_TRUE(convert::ConvertTokenizerJson(json, &tables, &error)) << error;
  LoadedTokenizer loaded = LoadedTokenizer::FromImage(MakeImage(tables));
  EXPECT_TRUE(loaded.ok()) << loaded.error();
  return loaded;
}

class DraftPlan : public PlannedSession {
 protected:
  DraftPlan() {
    OpenDraft(TinyBundle());
    options_.speculation = Speculation::kDraft;
    options_.n_threads = 1;
  }
  void OpenDraft(const TinyBundle& bundle) {
    draft_ = std::make_unique<OpenedModel>(bundle);
    options_.draft = &**draft_;
  }
  Model& draft() { return **draft_; }

  std::unique_ptr<OpenedModel> draft_;
};

TEST_F(DraftPlan, OptionsOfTheSession_AreTheDrafts) {
  draft().spec.max_context = 100;
  options_.prefill_chunk = 16;
  options_.n_threads = 3;
  options_.n_prefill_threads = 2;
  options_.kv_page_tokens = 8;
  options_.cpus = CpuChoice::kAll;
  options_.max_sequences = 2;
  options_.all_logits = true;
  ExpectPlanned();
  SessionPlan plan;
  ASSERT_EQ(Status::kOk, PlanDraft(model(), *plan_, objects_, &plan, &diag_)) << diag_.text();
  EXPECT_EQ(100u, plan.options.context_tokens);
  EXPECT_EQ(16u, plan.options.prefill_chunk);
  EXPECT_EQ(3u, plan.options.n_threads);
  EXPECT_EQ(2u, plan.options.n_prefill_threads);
  EXPECT_EQ(8u, plan.options.kv_page_tokens);
  EXPECT_EQ(CpuChoice::kAll, plan.options.cpus);
  EXPECT_EQ(1u, plan.options.max_sequences);
  EXPECT_FALSE(plan.options.all_logits);
  EXPECT_TRUE(plan.options.keeps_unseen);
  EXPECT_EQ(20u, plan.session.bytes);
  EXPECT_EQ(50u, plan.sequences.bytes);
  EXPECT_EQ(plan.TotalBytes(), plan_->draft.bytes);
  // A row of logits for each of 16 rows leaves none that only guesses need.
  EXPECT_EQ(plan_->guesses.bytes + plan_->draft.bytes, plan_->speculation_bytes);
}

TEST_F(DraftPlan, ContextIsTheShorterOne) {
  options_.context_tokens = 50;
  ExpectPlanned();
  SessionPlan plan;
  ASSERT_EQ(Status::kOk, PlanDraft(model(), *plan_, objects_, &plan, &diag_)) << diag_.text();
  EXPECT_EQ(50u, plan.options.context_tokens);
}

TEST_F(DraftPlan, ThreadsLieWhereTheSessionsDo) {
  const CpuMask allowed = ReadTopology().allowed;
  const uint64_t lowest = allowed.word(0) & (~allowed.word(0) + 1);
  if (lowest == 0) GTEST_SKIP() << "none of the first 64 CPUs is ours";
  options_.cpus = CpuChoice::kMask;
  options_.cpu_mask = lowest;
  options_.system_root = "";
  ExpectPlanned();
  SessionPlan plan;
  ASSERT_EQ(Status::kOk, PlanDraft(model(), *plan_, objects_, &plan, &diag_)) << diag_.text();
  EXPECT_EQ(CpuChoice::kMask, plan.options.cpus);
  EXPECT_EQ(lowest, plan.options.cpu_mask);
  EXPECT_EQ(options_.system_root, plan.options.system_root);
}

TEST_F(DraftPlan, WindowsOfADraft_KeepWhatTheyDoNotSee) {
  TinyBundle windows;
  windows.window = 20;
  OpenDraft(windows);
  ExpectPlanned();
  SessionPlan plan;
  ASSERT_EQ(Status::kOk, PlanDraft(model(), *plan_, objects_, &plan, &diag_));
  EXPECT_EQ(0u, plan.cache.groups[0].window);
}

TEST_F(DraftPlan, WhatCannotForget_IsNoDraft) {
  TinyBundle states;
  const TinyLayer scan = {0, 0, -1, TinyMixer::kScan};
  states.layer_kinds = {{}, scan};
  OpenDraft(states);
  ExpectRefused(Status::kUnsupported,
                "the draft model has layers with a recurrent state, from which wrong guesses "
                "cannot be dropped");
  OpenDraft(TinyBundle());
  draft().spec.encoder.max_rows = 40;
  ExpectRefused(Status::kUnsupported, "the draft model has an encoder");
  draft().has_weights = false;
  ExpectRefused(Status::kUnsupported, "the draft model holds only a tokenizer");
}

TEST_F(DraftPlan, WhatThePlanOfTheDraftSays_IsPassedOn) {
  draft().spec.makes_text = false;
  ExpectRefused(Status::kUnsupported,
                "the draft model: the model makes vectors or scores of texts, not text: an "
                "embedder runs it (arenite embed, arenite rerank)");
}

// Backends on which drafts run: the session's CPU, else the fallback.
TEST_F(DraftPlan, DraftsRunOnTheCpu) {
  const auto backend_of_draft = [this] {
    ExpectPlanned();
    SessionPlan plan;
    EXPECT_EQ(Status::kOk, PlanDraft(model(), *plan_, objects_, &plan, &diag_)) << diag_.text();
    return plan.backend;
  };
  EXPECT_EQ(&backend_, backend_of_draft());
  const Backend cpu = DescribedCpu();
  options_.fallback = &cpu;
  EXPECT_EQ(&backend_, backend_of_draft());
  backend_ = DescribedDevice();
  EXPECT_EQ(&cpu, backend_of_draft());
  backend_.host_kv = &kSomeHostKv;  // shared memory
  EXPECT_EQ(&cpu, backend_of_draft());
}

// Vocabularies.

TEST_F(DraftPlan, WithoutTokenizers_TheNumbersDecide) {
  TinyBundle other;
  other.vocab = 62;
  OpenDraft(other);
  const std::string why = "the draft model has another vocabulary: 62 tokens, the model has 61";
  ExpectRefused(Status::kBadArgument, why);
  const LoadedTokenizer some = TokenizerOf({"a", "b"});
  model().tokenizer = &*some;
  ExpectRefused(Status::kBadArgument, why);
  model().tokenizer = nullptr;
  draft().tokenizer = &*some;
  ExpectRefused(Status::kBadArgument, why);
  model().tokenizer = &*some;  // matrices of different heights have the same tokens
  ExpectPlanned();
  draft().tokenizer = model().tokenizer = nullptr;
}

TEST_F(DraftPlan, WithTokenizers_EachTokenIsTheSame) {
  const std::string begins = "the draft model has another vocabulary: ";
  const LoadedTokenizer ours = TokenizerOf({"a", "b", "c"}),
                        more = TokenizerOf({"a", "b", "c", "d"}),
                        other = TokenizerOf({"a", "x", "c"}),
                        special = TokenizerOf({"a", "b", "c"}, 1);
  model().tokenizer = &*ours;
  draft().tokenizer = &*more;
  ExpectRefused(Status::kBadArgument, begins + "4 tokens, the model has 3");
  draft().tokenizer = &*other;
  ExpectRefused(Status::kBadArgument, begins + "its token 1 is 'x', that of the model 'b'");
  draft().tokenizer = &*special;
  ExpectRefused(Status::kBadArgument,
                begins + "its token 2 is 'c' (special), that of the model 'c'");
  model().tokenizer = &*special;
  ExpectPlanned();
  draft().tokenizer = &*ours;
  ExpectRefused(Status::kBadArgument,
                begins + "its token 2 is 'c', that of the model 'c' (special)");
  const std::string longer(100, 'y');
  const LoadedTokenizer long_one = TokenizerOf({"a", "b", longer});
  draft().tokenizer = &*long_one;
  ExpectRefused(Status::kBadArgument, begins + "its token 2 is '" + longer.substr(0, 64) +
                                          "', that of the model 'c' (special)");
  draft().tokenizer = model().tokenizer = nullptr;
}

// What else depends on a tokenizer.

TEST_F(PlannedSession, Constraints_HaveTheirMemory) {
  const LoadedTokenizer tokenizer = TokenizerOf({"a", "b", "c"});
  model().tokenizer = &*tokenizer;
  options_.constraint_bytes = kMinConstraintBytes - 1;
  ExpectRefused(Status::kBadArgument, "constraint_bytes is 16383, expected 16384 to 2147483648");
  options_.constraint_bytes = kMaxConstraintBytes + 1;
  ExpectRefused(Status::kBadArgument,
                "constraint_bytes is 2147483649, expected 16384 to 2147483648");
  options_.constraint_bytes = kMaxConstraintBytes;
  ExpectPlanned();
  options_.constraint_bytes = kMinConstraintBytes;
  options_.max_sequences = 3;
  ExpectPlanned();
  EXPECT_EQ(3u, plan_->constraints.n);
  options_.constraint_bytes = 20001;
  options_.max_constraints = 2;
  ExpectPlanned();
  const ConstraintsPlan& plan = plan_->constraints;
  EXPECT_EQ(2u, plan.n);
  EXPECT_EQ(20032u, plan.bytes_each);
  EXPECT_EQ(2 * 20032u, plan.blocks.bytes);
  EXPECT_EQ(2 * 3 * 10u, plan.uses.bytes);
  EXPECT_EQ(61 * sizeof(float), plan.masked.bytes);
  EXPECT_EQ(kConstraintBlock * sizeof(uint32_t), plan.found.bytes);
  EXPECT_EQ(tokenizer->EncodeScratchBytes(kMaxForcedBytes), plan.encode.bytes);
  options_.max_constraints = 4;
  ExpectRefused(Status::kBadArgument, "max_constraints is 4, expected at most max_sequences 3");
  options_.max_constraints = 0;
  for (const uint64_t room : {0, 100, 49152, 60100, 60500, 70000}) {
    objects_.constraint_use_bytes = ((uint64_t{1} << 56) - room) / 6;
    EXPECT_EQ(Status::kOutOfMemory, Plan()) << room;
  }
  model().tokenizer = nullptr;
}

TEST_F(PlannedSession, Texts_HoldPiecesOfTheTokenizer) {
  const LoadedTokenizer tokenizer = TokenizerOf({"a", "bcdefg"});
  model().tokenizer = &*tokenizer;
  options_.max_requests = 2;
  options_.max_sequences = 3;
  ExpectPlanned();
  const uint64_t piece = tokenizer->max_piece_bytes();
  EXPECT_GT(piece, 0u);
  EXPECT_EQ(kMaxStopBytes + 2 * piece, plan_->text.bytes);
  EXPECT_EQ(3 * (2 * plan_->text.bytes + 16 * piece), plan_->scheduler.shown.bytes);
  model().tokenizer = nullptr;
}

}  // namespace
}  // namespace arn::test

// BeamSearch: which continuations a search keeps, from the logits of its running beams to finished
// sequences with scores. It knows scores and ids only; whoever runs the model follows parents() and
// ids(). The rules are those of transformers' generate() (5.12): the score of a finished sequence
// is its sum of log-probabilities / length ^ length_penalty, the end token counted; a step looks at
// the best max(2, 1 + end tokens) * beams candidates, of which those that end count if they are
// among the best `beams`, and the best others run on. Groups (Vijayakumar et al. 2016, "Diverse
// Beam Search") are searches of their own that go one after the other in a step: a token costs
// diversity_penalty for each beam of an earlier group that has gone on with it in this step.
//
// transformers fills up beams that do not exist (fewer continuations than beams) with scores of
// -1e9. Here such beams are not there: fewer run, and fewer sequences may come out.
#pragma once

#include <cstdint>

#include "kernels/logits_ops.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

// When a group of b beams that has b finished sequences is done.
enum class EarlyStopping : uint32_t {
  kFalse = 0,  // once its best beam, judged at its present length, is no better than the worst one
  kTrue = 1,   // at once
  kNever = 2,  // the same as kFalse, but judged at max_tokens where a greater length scores better
};

// End tokens that a search can have.
inline constexpr uint32_t kMaxBeamEnds = 16;

struct BeamOptions {
  uint32_t num_beams = 1;
  uint32_t num_beam_groups = 1;    // divides num_beams
  float diversity_penalty = 0.0f;  // >= 0
  float length_penalty = 1.0f;     // above 0 favours long sequences
  EarlyStopping early_stopping = EarlyStopping::kFalse;
  uint32_t num_return_sequences = 1;  // <= num_beams
  uint32_t max_tokens = 0;            // > 0; tokens of a sequence, an end token counted
  uint32_t n_ends = 0;
  int32_t ends[kMaxBeamEnds] = {};  // all different
};

struct BeamSearchPlan {
  uint32_t max_beams = 0;
  uint32_t max_tokens = 0;
  Slice groups;      // of each group
  Slice beams;       // of each running beam, twice: before and after a step
  Slice finished;    // of each sequence that has ended
  Slice candidates;  // of one group's step
  Slice nodes;       // of each token of each beam that ran on
  Slice parents;     // u32 [max_beams]
  Slice ids;         // i32 [max_beams]
  Slice chosen;      // u32 [vocab] when there can be several groups, else empty
  Slice block;       // logits that are summed up at once, and the indices found among them
};
// Scratch for searches of at most so many beams and tokens a sequence.
Status PlanBeamSearch(uint32_t max_beams, uint32_t max_tokens, uint32_t vocab, Layout* layout,
                      BeamSearchPlan* out);
// kBadArgument names the field and the value.
Status CheckBeams(const BeamOptions& options, const BeamSearchPlan& plan, Diag* diag);

class BeamSearch {
 public:
  void Init(const LogitsOps* ops, const BeamSearchPlan& plan, const Memory& memory, uint32_t vocab);

  // Begins a search with checked options. One beam without a token runs in each group.
  void Start(const BeamOptions& options);
  // Nothing runs and nothing was found.
  void Forget() { n_running_ = n_results_ = 0; }
  // Beams that need logits: the first ones of the groups' are the best. 0: the search is done.
  uint32_t n_running() const { return n_running_; }
  // One step. logits[i]: f32 [vocab] after the last token of running beam i, unchanged.
  // n_running() > 0.
  void Step(Span<const float* const> logits);
  // Of the beams that run now: the running beam of before the step that each goes on from, and its
  // new token.
  Span<const uint32_t> parents() const { return {parents_, n_running_}; }
  Span<const int32_t> ids() const { return {ids_, n_running_}; }
  uint32_t n_steps() const { return n_steps_; }

  // The best finished sequences, best first. 0 until the search is done.
  uint32_t n_results() const { return n_results_; }
  float score(uint32_t index) const { return finished_[index].score; }
  uint32_t length(uint32_t index) const { return finished_[index].n_tokens; }
  // Writes length(index) ids, the end token included.
  void CopyIds(uint32_t index, int32_t* out) const;

 private:
  // A token of a beam, and the node of the one before it.
  struct Node {
    uint32_t parent;
    int32_t id;
  };
  struct Beam {
    float score;    // sum of log-probabilities
    uint32_t node;  // of its last token
  };
  struct Candidate {
    float score;
    uint32_t beam;  // among the running ones
    int32_t id;
  };
  struct Finished {
    float score;
    uint32_t parent;  // node of the token before the last
    int32_t id;       // the last
    uint32_t n_tokens;
  };
  struct Group {
    uint32_t first;  // of its running beams
    uint32_t n_running;
    uint32_t n_finished;
    bool is_done;
  };
  static bool Before(const Candidate& a, const Candidate& b);
  friend Status PlanBeamSearch(uint32_t, uint32_t, uint32_t, Layout*, BeamSearchPlan*);

  uint32_t group_size() const { return options_.num_beams / options_.num_beam_groups; }
  Finished* FinishedOf(uint32_t group) { return finished_ + group * group_size(); }
  bool IsEnd(int32_t id) const;
  double LogSumExp(const float* logits);
  // The best candidates of a group, best first; returns how many.
  uint32_t Collect(const Group& group, Span<const float* const> logits);
  void CollectFrom(uint32_t beam, const float* logits, uint32_t capacity, uint32_t* n);
  void StepGroup(uint32_t g, Span<const float* const> logits, uint32_t* n_next);
  void Finish(uint32_t g, const Candidate& candidate);
  bool CanImprove(const Group& group, const Finished* finished, float best) const;
  void Conclude();

  const LogitsOps* ops_ = nullptr;
  uint32_t vocab_ = 0;
  BeamOptions options_;
  uint32_t n_steps_ = 0;
  uint32_t n_running_ = 0;
  uint32_t n_nodes_ = 0;
  uint32_t n_results_ = 0;
  Group* groups_ = nullptr;
  Beam* beams_ = nullptr;
  Beam* next_ = nullptr;
  Finished* finished_ = nullptr;
  Candidate* candidates_ = nullptr;
  Node* nodes_ = nullptr;
  uint32_t* parents_ = nullptr;
  int32_t* ids_ = nullptr;
  uint32_t* chosen_ = nullptr;  // how often each token was chosen in this step; zero between steps
  float* block_ = nullptr;
  uint32_t* found_ = nullptr;
};

}  // namespace arn

// BeamSearch: selects beams and finished sequences from the logits of the running beams. It handles
// only scores and ids; the caller runs the model according to parents() and ids(). Follows
// transformers' generate() (5.12): the score of a finished sequence is its sum of log-probabilities
// / length ^ length_penalty, where the length includes the end token. A step takes the best max(2,
// 1 + end tokens) * beams candidates; of those, end tokens count only among the best `beams`, and
// the best others run on. Groups (Vijayakumar et al. 2016, "Diverse Beam Search") are separate
// searches that go one after the other in a step: a token costs diversity_penalty for each beam of
// an earlier group that chose it in this step.
//
// transformers fills missing beams (fewer continuations than beams) with scores of -1e9. Here they
// do not exist: fewer beams run, and fewer sequences may result.
#pragma once

#include <cstdint>

#include "kernels/contract/logits_ops.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

// Decides when a group of b beams with b finished sequences is done.
enum class EarlyStopping : uint32_t {
  kFalse = 0,  // once its best beam, scored at its current length, is no better than the worst
               // finished one
  kTrue = 1,   // at once
  kNever = 2,  // as kFalse, but scored at max_tokens if a greater length improves the score
};

// Maximum number of stop token ids.
inline constexpr uint32_t kMaxBeamStopIds = 16;

struct BeamOptions {
  uint32_t num_beams = 1;
  uint32_t num_beam_groups = 1;    // divides num_beams
  float diversity_penalty = 0.0f;  // >= 0
  float length_penalty = 1.0f;     // > 0 favours long sequences
  EarlyStopping early_stopping = EarlyStopping::kFalse;
  uint32_t num_return_sequences = 1;  // <= num_beams
  uint32_t max_tokens = 0;            // > 0; tokens per sequence, including an end token
  uint32_t n_stop_ids = 0;
  int32_t stop_ids[kMaxBeamStopIds] = {};  // distinct stop token ids
};

struct BeamSearchPlan {
  uint32_t max_beams = 0;
  uint32_t max_tokens = 0;
  Slice groups;      // Group [max_beams]
  Slice beams;       // Beam [2, max_beams]: running beams before and after a step
  Slice finished;    // Finished [max_beams]
  Slice candidates;  // Candidates of one group's step
  Slice nodes;       // Nodes: each token of each beam that ran on
  Slice parents;     // u32 [max_beams]
  Slice ids;         // i32 [max_beams]
  Slice chosen;      // u32 [vocab] if several groups are possible, else empty
  Slice block;       // block of logits that is summed up at once, and the indices found in it
};
// Plans the scratch for searches of at most max_beams beams and max_tokens tokens per sequence.
Status PlanBeamSearch(uint32_t max_beams, uint32_t max_tokens, uint32_t vocab, Layout* layout,
                      BeamSearchPlan* out);
// kBadArgument names the field and the value.
Status CheckBeams(const BeamOptions& options, const BeamSearchPlan& plan, Diag* diag);

class BeamSearch {
 public:
  void Init(const LogitsOps* ops, const BeamSearchPlan& plan, const Memory& memory, uint32_t vocab);

  // Starts a search with one empty beam per group. REQUIRES: options passed CheckBeams.
  void Start(const BeamOptions& options);
  // Drops running beams and results.
  void Forget() { n_running_ = n_results_ = 0; }
  // Number of beams that need logits, each group's best first. 0: the search is done.
  uint32_t n_running() const { return n_running_; }
  // Performs one step. logits[i]: f32 [vocab] after the last token of running beam i, not modified.
  // are_scores: they are added to the beams' scores as they are, instead of their log-softmax.
  // REQUIRES: n_running() > 0.
  void Step(Span<const float* const> logits, bool are_scores = false);
  // For each running beam: its parent (index before the step) and its new token.
  Span<const uint32_t> parents() const { return {parents_, n_running_}; }
  Span<const int32_t> ids() const { return {ids_, n_running_}; }
  uint32_t n_steps() const { return n_steps_; }

  // Number of results, best first. 0 until the search is done.
  uint32_t n_results() const { return n_results_; }
  float score(uint32_t index) const { return finished_[index].score; }
  uint32_t length(uint32_t index) const { return finished_[index].n_tokens; }
  // Writes length(index) ids, including the end token.
  void CopyIds(uint32_t index, int32_t* out) const;

 private:
  // Token of a beam, linked to the previous token's node.
  struct Node {
    uint32_t parent;
    int32_t id;
  };
  struct Beam {
    float score;    // sum of log-probabilities
    uint32_t node;  // node of its last token
  };
  struct Candidate {
    float score;
    uint32_t beam;  // index of the running beam
    int32_t id;
  };
  struct Finished {
    float score;
    uint32_t parent;  // node of the token before the last
    int32_t id;       // last token
    uint32_t n_tokens;
  };
  struct Group {
    uint32_t first;  // index of its first running beam
    uint32_t n_running;
    uint32_t n_finished;
    bool is_done;
  };
  static bool Before(const Candidate& a, const Candidate& b);
  friend Status PlanBeamSearch(uint32_t, uint32_t, uint32_t, Layout*, BeamSearchPlan*);

  uint32_t group_size() const { return options_.num_beams / options_.num_beam_groups; }
  Finished* FinishedOf(uint32_t group) { return finished_ + group * group_size(); }
  bool IsStopId(int32_t id) const;
  double LogSumExp(const float* logits);
  // Collects the best candidates of a group, best first; returns their number.
  uint32_t Collect(const Group& group, Span<const float* const> logits);
  void CollectFrom(uint32_t beam, const float* logits, uint32_t capacity, uint32_t* n);
  void StepGroup(uint32_t g, Span<const float* const> logits, uint32_t* n_next);
  void Finish(uint32_t g, const Candidate& candidate);
  bool CanImprove(const Group& group, const Finished* finished, float best) const;
  void Conclude();

  const LogitsOps* ops_ = nullptr;
  uint32_t vocab_ = 0;
  BeamOptions options_;
  bool are_scores_ = false;  // of this step
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
  uint32_t* chosen_ = nullptr;  // count of each token chosen in this step; zero between steps
  float* block_ = nullptr;
  uint32_t* found_ = nullptr;
};

}  // namespace arn

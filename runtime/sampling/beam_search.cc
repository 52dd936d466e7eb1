#include "runtime/sampling/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr uint32_t kNoNode = UINT32_MAX;
// Logits scanned between updates of the threshold.
constexpr uint32_t kBlock = 2048;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

}  // namespace

Status PlanBeamSearch(uint32_t max_beams, uint32_t max_tokens, uint32_t vocab, Layout* layout,
                      BeamSearchPlan* out) {
  *out = BeamSearchPlan();
  out->max_beams = max_beams;
  out->max_tokens = max_tokens;
  const uint64_t n = max_beams;
  const auto add = [&](uint64_t count, uint64_t bytes, Slice* slice) {
    ARN_ASSIGN(*slice, layout->AddArray(Region::kIo, count, bytes));
    return Status::kOk;
  };
  // Node indices have 32 bits.
  if (n * max_tokens >= kNoNode) return Status::kOutOfMemory;
  ARN_TRY(add(n, sizeof(BeamSearch::Group), &out->groups));
  ARN_TRY(add(2 * n, sizeof(BeamSearch::Beam), &out->beams));
  ARN_TRY(add(n, sizeof(BeamSearch::Finished), &out->finished));
  ARN_TRY(add((1 + kMaxBeamStopIds) * n, sizeof(BeamSearch::Candidate), &out->candidates));
  ARN_TRY(add(n * max_tokens, sizeof(BeamSearch::Node), &out->nodes));
  ARN_TRY(add(n, sizeof(uint32_t), &out->parents));
  ARN_TRY(add(n, sizeof(int32_t), &out->ids));
  ARN_TRY(add(n > 1 ? vocab : 0, sizeof(uint32_t), &out->chosen));
  return add(2 * kBlock, sizeof(float), &out->block);
}

Status CheckBeams(const BeamOptions& options, const BeamSearchPlan& plan, Diag* diag) {
  if (options.num_beams == 0 || options.num_beams > plan.max_beams) {
    return diag->Fail(Status::kBadArgument, "num_beams is %u, expected 1 to max_sequences %u",
                      options.num_beams, plan.max_beams);
  }
  if (options.num_beam_groups == 0 || options.num_beams % options.num_beam_groups != 0) {
    return diag->Fail(Status::kBadArgument, "num_beam_groups is %u, expected a divisor of %u beams",
                      options.num_beam_groups, options.num_beams);
  }
  if (!(options.diversity_penalty >= 0.0f) || !std::isfinite(options.diversity_penalty)) {
    return diag->Fail(Status::kBadArgument, "diversity_penalty is %g, expected 0 or more",
                      static_cast<double>(options.diversity_penalty));
  }
  if (options.diversity_penalty != 0.0f && options.num_beam_groups == 1) {
    return diag->Fail(Status::kBadArgument, "diversity_penalty is %g, but there is one group only",
                      static_cast<double>(options.diversity_penalty));
  }
  if (!std::isfinite(options.length_penalty)) {
    return diag->Fail(Status::kBadArgument, "length_penalty is %g, expected a finite number",
                      static_cast<double>(options.length_penalty));
  }
  if (options.num_return_sequences == 0 || options.num_return_sequences > options.num_beams) {
    return diag->Fail(Status::kBadArgument,
                      "num_return_sequences is %u, expected 1 to num_beams %u",
                      options.num_return_sequences, options.num_beams);
  }
  if (options.max_tokens == 0 || options.max_tokens > plan.max_tokens) {
    return diag->Fail(Status::kBadArgument, "max_tokens is %u, expected 1 to %u",
                      options.max_tokens, plan.max_tokens);
  }
  return Status::kOk;
}

void BeamSearch::Init(const LogitsOps* ops, const BeamSearchPlan& plan, const Memory& memory,
                      uint32_t vocab) {
  ops_ = ops;
  vocab_ = vocab;
  groups_ = memory.As<Group>(plan.groups);
  beams_ = memory.As<Beam>(plan.beams);
  next_ = beams_ + plan.max_beams;
  finished_ = memory.As<Finished>(plan.finished);
  candidates_ = memory.As<Candidate>(plan.candidates);
  nodes_ = memory.As<Node>(plan.nodes);
  parents_ = memory.As<uint32_t>(plan.parents);
  ids_ = memory.As<int32_t>(plan.ids);
  chosen_ = memory.As<uint32_t>(plan.chosen);
  block_ = memory.As<float>(plan.block);
  found_ = reinterpret_cast<uint32_t*>(block_ + kBlock);
}

void BeamSearch::Start(const BeamOptions& options) {
  options_ = options;
  n_steps_ = n_nodes_ = n_results_ = 0;
  n_running_ = options.num_beam_groups;
  for (uint32_t g = 0; g < n_running_; ++g) {
    groups_[g] = {g, 1, 0, false};
    beams_[g] = {0.0f, kNoNode};
  }
  // Cleared in full only here: each step resets the counts it set.
  if (n_running_ > 1) std::fill(chosen_, chosen_ + vocab_, 0u);
}

// Higher score first; ties: lower beam, then lower id.
bool BeamSearch::Before(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.beam != b.beam) return a.beam < b.beam;
  return a.id < b.id;
}

bool BeamSearch::IsStopId(int32_t id) const {
  return std::find(options_.stop_ids, options_.stop_ids + options_.n_stop_ids, id) !=
         options_.stop_ids + options_.n_stop_ids;
}

double BeamSearch::LogSumExp(const float* logits) {
  const float max = logits[ops_->argmax(logits, vocab_)];
  double sum = 0.0;
  for (uint32_t first = 0; first < vocab_; first += kBlock) {
    const uint32_t n = Min(kBlock, vocab_ - first);
    std::copy(logits + first, logits + first + n, block_);
    sum += ops_->exp_sum(block_, n, max, 1.0f);
  }
  return static_cast<double>(max) + std::log(sum);
}

// Adds one beam's candidates to the heap of the best so far, whose top is the worst.
void BeamSearch::CollectFrom(uint32_t beam, const float* logits, uint32_t capacity, uint32_t* n) {
  const double sum = are_scores_ ? 0.0 : LogSumExp(logits);
  if (!std::isfinite(sum)) return;  // not a distribution
  const float before = beams_[beam].score;
  float threshold = kLowest;
  for (uint32_t first = 0; first < vocab_; first += kBlock) {
    if (*n == capacity) {
      // Smallest logit that can still reach the worst score, minus a bound of the rounding error.
      const double worst = static_cast<double>(candidates_[0].score);
      const double least = worst - static_cast<double>(before) + sum;
      const double slack =
          1e-6 * (1.0 + std::fabs(worst) + std::fabs(sum) + std::fabs(static_cast<double>(before)));
      threshold = static_cast<float>(least - slack);
    }
    const uint32_t size = Min(kBlock, vocab_ - first);
    const size_t found = ops_->collect_at_least(logits + first, size, threshold, found_, size);
    for (size_t i = 0; i < found; ++i) {
      const uint32_t id = first + found_[i];
      float log_probability = static_cast<float>(static_cast<double>(logits[id]) - sum);
      if (options_.num_beam_groups > 1) {
        log_probability -= options_.diversity_penalty * static_cast<float>(chosen_[id]);
      }
      const Candidate candidate{before + log_probability, beam, static_cast<int32_t>(id)};
      if (!(candidate.score > kLowest)) continue;
      if (*n < capacity) {
        candidates_[(*n)++] = candidate;
        std::push_heap(candidates_, candidates_ + *n, Before);
      } else if (Before(candidate, candidates_[0])) {
        std::pop_heap(candidates_, candidates_ + *n, Before);
        candidates_[*n - 1] = candidate;
        std::push_heap(candidates_, candidates_ + *n, Before);
      }
    }
  }
}

uint32_t BeamSearch::Collect(const Group& group, Span<const float* const> logits) {
  const uint32_t capacity = Max(2u, 1 + options_.n_stop_ids) * group_size();
  uint32_t n = 0;
  for (uint32_t beam = group.first; beam < group.first + group.n_running; ++beam) {
    CollectFrom(beam, logits[beam], capacity, &n);
  }
  std::sort_heap(candidates_, candidates_ + n, Before);
  return n;
}

// Keeps the best group_size() finished sequences of the group, sorted; ties keep the earlier first.
void BeamSearch::Finish(uint32_t g, const Candidate& candidate) {
  Group& group = groups_[g];
  Finished* finished = FinishedOf(g);
  const double divisor = std::pow(n_steps_, static_cast<double>(options_.length_penalty));
  const Finished added{candidate.score / static_cast<float>(divisor), beams_[candidate.beam].node,
                       candidate.id, n_steps_};
  uint32_t place = group.n_finished;
  while (place > 0 && finished[place - 1].score < added.score) --place;
  if (place == group_size()) return;
  group.n_finished = Min(group.n_finished + 1, group_size());
  for (uint32_t i = group.n_finished - 1; i > place; --i) finished[i] = finished[i - 1];
  finished[place] = added;
}

// True if the best running beam can still beat a finished sequence.
bool BeamSearch::CanImprove(const Group& group, const Finished* finished, float best) const {
  if (group.n_finished < group_size()) return true;
  const bool at_the_end =
      options_.early_stopping == EarlyStopping::kNever && options_.length_penalty > 0.0f;
  const double divisor = std::pow(at_the_end ? options_.max_tokens : n_steps_,
                                  static_cast<double>(options_.length_penalty));
  return best / static_cast<float>(divisor) > finished[group.n_finished - 1].score;
}

// Steps one group. Appends the beams that run on to next_, parents_ and ids_.
void BeamSearch::StepGroup(uint32_t g, Span<const float* const> logits, uint32_t* n_next) {
  Group& group = groups_[g];
  const uint32_t n = Collect(group, logits);
  const uint32_t first = *n_next;
  const bool is_last = n_steps_ == options_.max_tokens;
  for (uint32_t rank = 0; rank < n; ++rank) {
    const Candidate& candidate = candidates_[rank];
    if (is_last || IsStopId(candidate.id)) {
      if (rank < group_size()) Finish(g, candidate);
    } else if (*n_next - first < group_size()) {
      nodes_[n_nodes_] = {beams_[candidate.beam].node, candidate.id};
      next_[*n_next] = {candidate.score, n_nodes_++};
      parents_[*n_next] = candidate.beam;
      ids_[*n_next] = candidate.id;
      ++*n_next;
    }
  }
  group.first = first;
  group.n_running = *n_next - first;
  const bool is_full = group.n_finished == group_size();
  group.is_done = group.n_running == 0 ||
                  (is_full && options_.early_stopping == EarlyStopping::kTrue) ||
                  !CanImprove(group, FinishedOf(g), next_[first].score);
  if (options_.num_beam_groups > 1) {
    for (uint32_t i = first; i < *n_next; ++i) ++chosen_[ids_[i]];
  }
}

void BeamSearch::Step(Span<const float* const> logits, bool are_scores) {
  are_scores_ = are_scores;
  ++n_steps_;
  uint32_t n_next = 0;
  for (uint32_t g = 0; g < options_.num_beam_groups; ++g) {
    if (!groups_[g].is_done) StepGroup(g, logits, &n_next);
  }
  // Removes groups that are done only after the step, because their tokens count in it.
  n_running_ = 0;
  for (uint32_t g = 0; g < options_.num_beam_groups; ++g) {
    Group& group = groups_[g];
    const uint32_t first = group.first, n = group.n_running;
    group.first = n_running_;
    group.n_running = group.is_done ? 0 : n;
    for (uint32_t i = first; i < first + n; ++i) {
      if (options_.num_beam_groups > 1) chosen_[ids_[i]] = 0;
      if (group.is_done) continue;
      next_[n_running_] = next_[i];
      parents_[n_running_] = parents_[i];
      ids_[n_running_++] = ids_[i];
    }
  }
  std::swap(beams_, next_);
  if (n_running_ == 0) Conclude();
}

// Merges the finished sequences of all groups; ties: earlier group first.
void BeamSearch::Conclude() {
  uint32_t n = 0;
  for (uint32_t g = 0; g < options_.num_beam_groups; ++g) {
    for (uint32_t i = 0; i < groups_[g].n_finished; ++i) {
      const Finished added = FinishedOf(g)[i];
      uint32_t place = n++;  // never beyond the index just read
      for (; place > 0 && finished_[place - 1].score < added.score; --place) {
        finished_[place] = finished_[place - 1];
      }
      finished_[place] = added;
    }
  }
  n_results_ = Min(n, options_.num_return_sequences);
}

void BeamSearch::CopyIds(uint32_t index, int32_t* out) const {
  const Finished& finished = finished_[index];
  uint32_t i = finished.n_tokens;
  out[--i] = finished.id;
  for (uint32_t node = finished.parent; node != kNoNode; node = nodes_[node].parent) {
    out[--i] = nodes_[node].id;
  }
}

}  // namespace arn

#include <algorithm>

#include "tools/serve/scheduler.h"

namespace arn::serve {

std::optional<int32_t> Scheduler::Choose(Running* running, size_t index) {
  Choice* choice = running->choices[index].get();
  const uint32_t sequence = running->sequences[index];
  arn_session_select(session_.get(), sequence);
  const bool is_last = arn_session_length(session_.get()) >= running->most_tokens;
  std::optional<int32_t> id = choice->Forced();
  if (!id) {
    int32_t chosen = 0;
    if (arn_session_sample(session_.get(), &chosen) != ARN_OK) {
      throw SessionError("no token can be chosen");
    }
    id = chosen;
  }
  const bool was_in_reasoning = running->constrains_later && choice->IsInReasoning();
  uint32_t finish = choice->Take(session_.get(), *id);
  if (finish != ARN_FINISH_EOS) ++metrics_.reply_tokens;
  if (finish == ARN_FINISH_NONE && is_last) finish = ARN_FINISH_CONTEXT;
  if (finish != ARN_FINISH_NONE) {
    EndChoice(running, index, finish);
    return std::nullopt;
  }
  if (was_in_reasoning && !choice->IsInReasoning()) SetConstraint(running->work, sequence);
  return id;
}

void Scheduler::RunReplies() {
  std::vector<uint32_t> sequences;
  std::vector<int32_t> ids;
  const BusyTime timer(&metrics_);
  for (const auto& running : running_) {
    if (running->phase != Phase::kReply || running->work.mailbox->IsFull()) continue;
    try {
      for (size_t i = 0; i < running->choices.size(); ++i) {
        if (running->choices[i] == nullptr) continue;
        const std::optional<int32_t> id = Choose(running.get(), i);
        if (!id) continue;
        sequences.push_back(running->sequences[i]);
        ids.push_back(*id);
      }
    } catch (const ApiError& error) {
      // Takes back what was chosen for its other replies.
      for (const uint32_t sequence : running->sequences) {
        for (size_t i = sequences.size(); i-- > 0;) {
          if (sequences[i] != sequence) continue;
          sequences.erase(sequences.begin() + static_cast<ptrdiff_t>(i));
          ids.erase(ids.begin() + static_cast<ptrdiff_t>(i));
        }
      }
      Fail(running.get(), error);
    }
  }
  if (sequences.empty()) {
    const bool is_paused = std::all_of(running_.begin(), running_.end(), [](const auto& running) {
      return running->work.mailbox->IsFull();
    });
    if (is_paused) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return;
  }
  ++metrics_.steps;
  const arn_status status = Step(sequences, ids);
  if (status == ARN_OK || stops_.load()) return;
  const ApiError error = SessionError("a step of the replies failed");
  for (const auto& running : running_) {
    if (running->phase == Phase::kReply) Fail(running.get(), error);
  }
}

arn_status Scheduler::Step(const std::vector<uint32_t>& sequences,
                           const std::vector<int32_t>& ids) {
  for (;;) {
    const arn_status status =
        arn_session_step(session_.get(), sequences.data(), ids.data(), ids.size());
    if (status != ARN_CONTEXT_FULL || !slots_.DropOldest()) return status;
    ++metrics_.evictions;
  }
}

void Scheduler::EndChoice(Running* running, size_t index, uint32_t finish) {
  running->choices[index]->End(finish, static_cast<uint32_t>(running->work.ids.size()),
                               running->n_cached);
  running->choices[index] = nullptr;
  slots_.Release(running->sequences[index], true);
}

void Scheduler::Break(Running* running) {
  for (size_t i = 0; i < running->sequences.size(); ++i) {
    if (i < running->choices.size() && running->choices[i] == nullptr) continue;
    slots_.Release(running->sequences[i], true);
  }
  running->work.mailbox->Break();
}

void Scheduler::Fail(Running* running, const ApiError& error) {
  if (running->work.mailbox->IsClosed()) ++metrics_.aborted;
  // Sequences of choices that have ended may belong to another prompt by now.
  for (size_t i = 0; i < running->sequences.size(); ++i) {
    if (i < running->choices.size() && running->choices[i] == nullptr) continue;
    slots_.Release(running->sequences[i], true);
  }
  running->choices.clear();
  running->sequences.clear();
  Report(running->work, error);
}

}  // namespace arn::serve

// Scheduler: requests of the library, and what comes of them.
#include <algorithm>
#include <string>

#include "tools/serve/scheduler.h"

namespace arn::serve {

bool Scheduler::Running::HasEnded() const {
  return std::all_of(replies.begin(), replies.end(),
                     [](const Reply& reply) { return reply.choice == nullptr; });
}

uint32_t Scheduler::MostTokens(const Work& work) const {
  if (work.settings->max_tokens != 0 || work.n == 1) return work.settings->max_tokens;
  // Without a limit the replies may fill what pages there are.
  const uint32_t each = plan_.kv_tokens / plan_.kv_page_tokens / work.n * plan_.kv_page_tokens;
  const auto n_prompt = static_cast<uint32_t>(work.ids.size());
  // The last token does not run.
  return 1 + std::min(each, plan_.context_tokens) - std::min(each, n_prompt);
}

void Scheduler::Begin(Running* running) {
  const Work& w = running->work;
  for (const AdapterUse& use : w.settings->adapters) {
    running->adapters.push_back(use.index);
    running->scales.push_back(use.scale);
  }
  running->replies.resize(w.n);
  try {
    for (uint32_t i = 0; i < w.n; ++i) {
      Reply& reply = running->replies[i];
      reply.running = running;
      reply.index = i;
      reply.block = free_blocks_.back();
      reply.choice =
          std::make_unique<Choice>(model_.get(), w, w.first_choice + i, reply.block, kReplyBytes);
      free_blocks_.pop_back();
      const bool is_schema =
          w.settings->constraint && w.settings->constraint->kind != ARN_CONSTRAINT_TOOL_CALLS;
      reply.constraint_waits = is_schema && reply.choice->IsInReasoning();
    }
    metrics_.prompt_tokens += w.ids.size();
    running->waits_to_compile = w.settings->constraint.has_value();
    if (!running->waits_to_compile) SubmitAll(running);
  } catch (const ApiError& error) {
    Fail(running, error);
  }
}

void Scheduler::SubmitAll(Running* running) {
  if (kept_ && running->work.embeddings.empty()) Recall(running->work.ids);
  for (Reply& reply : running->replies) Submit(&reply);
}

void Scheduler::TakeCompiled() {
  for (const auto& running : running_) {
    if (!running->waits_to_compile || running->HasEnded()) continue;
    try {
      if (!HasCompiled(running.get())) continue;
      running->waits_to_compile = false;
      SubmitAll(running.get());
    } catch (const ApiError& error) {
      Fail(running.get(), error);
    }
  }
}

bool Scheduler::HasCompiled(Running* running) {
  const RequestConstraint& asked = *running->work.settings->constraint;
  if (session_options_.constraint_bytes == 0) {
    throw BadField(asked.param, "cannot be enforced: the bundle has not what constraints need");
  }
  if (running->constraint == nullptr) running->constraint = compiler_.Add(running->work);
  if (running->constraint == nullptr || !running->constraint->is_done()) return false;
  const arn_status status = running->constraint->status();
  if (status == ARN_OK) return true;
  // Models whose calls are not known may still be offered tools: the reply is then a text.
  const bool is_free = status == ARN_UNSUPPORTED && asked.kind == ARN_CONSTRAINT_TOOL_CALLS &&
                       asked.tool_choice == ARN_TOOL_CHOICE_AUTO && !asked.single_call;
  if (!is_free) {
    throw BadField(asked.param, std::string("cannot be enforced: ") + running->constraint->error());
  }
  running->constraint = nullptr;
  return true;
}

void Scheduler::Constrain(Reply* reply) {
  reply->constraint_waits = false;
  const auto status = arn_scheduler_set_constraint(scheduler_.get(), reply->request,
                                                   reply->running->constraint->constraint());
  if (status != ARN_OK) throw SessionError("the reply cannot be constrained");
}

void Scheduler::Submit(Reply* reply) {
  const Running& running = *reply->running;
  const Work& w = running.work;
  const Settings& settings = *w.settings;
  arn_sampling sampling = settings.sampling;
  sampling.seed += reply->index;
  arn_request request = ARN_REQUEST_INIT;
  request.ids = w.ids.data();
  request.n_ids = w.ids.size();
  if (!w.embeddings.empty()) {
    request.embeddings = w.embeddings.data();
    request.n_embeddings = w.embeddings.size() / image_.width;
  }
  request.sampling = &sampling;
  request.max_tokens = MostTokens(w);
  request.ignore_eos = settings.ignore_eos ? 1 : 0;
  // Logits are read, tokens forced or a constraint begun behind single tokens.
  const bool is_steered =
      settings.wants_logprobs || settings.reasoning_budget || reply->constraint_waits;
  request.one_by_one = is_steered ? 1 : 0;
  request.adapters = running.adapters.data();
  request.adapter_scales = running.scales.data();
  request.n_adapters = running.adapters.size();
  request.user = reply;
  const arn_status status = arn_scheduler_submit(scheduler_.get(), &request, &reply->request);
  if (status == ARN_OK) {
    if (running.constraint != nullptr && !reply->constraint_waits) Constrain(reply);
    const std::vector<int32_t>* forced = reply->choice->Forced();
    if (forced == nullptr) return;
    arn_scheduler_force(scheduler_.get(), reply->request, forced->data(), forced->size());
    return;
  }
  // A sentence about sampling begins with the name of the option.
  const std::string why = arn_scheduler_last_error(scheduler_.get());
  if (status != ARN_BAD_ARGUMENT && status != ARN_UNSUPPORTED) {
    throw SessionError("the request cannot begin");
  }
  throw ApiError(400, "invalid_request_error", why, why.substr(0, why.find(' ')), "invalid_value");
}

void Scheduler::PauseFull() {
  for (const auto& running : running_) {
    const bool is_full = running->work.mailbox->IsFull();
    for (Reply& reply : running->replies) {
      if (reply.choice == nullptr || reply.is_paused == is_full) continue;
      reply.is_paused = is_full;
      arn_scheduler_pause(scheduler_.get(), reply.request, is_full ? 1 : 0);
    }
  }
}

void Scheduler::Step() {
  arn_step_result result = ARN_STEP_RESULT_INIT;
  arn_status status = ARN_OK;
  {
    const BusyTime timer(&metrics_);
    status = arn_scheduler_step(scheduler_.get(), &result);
  }
  if (result.n_rows > result.n_prompt_rows) ++metrics_.steps;
  metrics_.put_off += result.n_put_off;
  TakeEvents();
  // All wait for their readers, or for the pages of those.
  if (result.n_rows + result.n_chosen + result.n_put_off == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (status == ARN_OK || stops_.load()) return;
  const ApiError error = SessionError("a step failed");
  for (const auto& running : running_) {
    if (!running->HasEnded()) Fail(running.get(), error);
  }
}

void Scheduler::TakeEvents() {
  arn_scheduler_event event = ARN_SCHEDULER_EVENT_INIT;
  while (arn_scheduler_next_event(scheduler_.get(), &event) == ARN_OK) TakeEvent(event);
}

void Scheduler::TakeEvent(const arn_scheduler_event& event) {
  Reply* const reply = static_cast<Reply*>(event.user);
  if (reply == nullptr || reply->choice == nullptr) return;
  Running* const running = reply->running;
  try {
    if (event.kind == ARN_REQUEST_EVENT_TOKEN) {
      TakeToken(reply, event.id);
    } else if (event.kind == ARN_REQUEST_EVENT_ENDED) {
      TakeEnd(reply, event);
    } else if (!running->has_begun) {
      running->has_begun = true;
      running->n_cached = event.n_kept;
      metrics_.cached_tokens += event.n_kept;
      Event started;
      started.choice = running->work.first_choice;
      running->work.mailbox->Put(std::move(started));
    }
  } catch (const ApiError& error) {
    Fail(running, error);
  }
}

void Scheduler::TakeToken(Reply* reply, int32_t id) {
  arn_request_info info = ARN_REQUEST_INFO_INIT;
  arn_scheduler_get_request(scheduler_.get(), reply->request, &info);
  arn_session_select(session_.get(), info.sequence);
  ++metrics_.reply_tokens;
  Choice* const choice = reply->choice.get();
  if (!choice->Take(session_.get(), id)) {
    arn_scheduler_cancel(scheduler_.get(), reply->request);
    EndReply(reply, ARN_FINISH_STOP);
    return;
  }
  if (info.state == ARN_REQUEST_STATE_ENDED) return;
  if (reply->constraint_waits && !choice->IsInReasoning()) Constrain(reply);
  if (const std::vector<int32_t>* forced = choice->Forced()) {
    arn_scheduler_force(scheduler_.get(), reply->request, forced->data(), forced->size());
  }
}

void Scheduler::TakeEnd(Reply* reply, const arn_scheduler_event& event) {
  if (event.status != ARN_OK) throw FailureOf(event);
  const bool is_room =
      event.finish == ARN_FINISH_LENGTH && reply->running->work.settings->max_tokens == 0;
  EndReply(reply, is_room ? uint32_t{ARN_FINISH_CONTEXT} : event.finish);
}

ApiError Scheduler::FailureOf(const arn_scheduler_event& event) {
  if (event.status == ARN_CONTEXT_FULL) {
    return Unavailable("no KV pages are free for the prompt", "kv_exhausted");
  }
  return ApiError(500, "server_error",
                  "the reply cannot be computed: " + std::string(event.text, event.text_bytes), "",
                  "session_error");
}

ApiError Scheduler::SessionError(const std::string& what) const {
  return ApiError(500, "server_error", what + ": " + arn_session_last_error(session_.get()), "",
                  "session_error");
}

void Scheduler::EndReply(Reply* reply, uint32_t finish) {
  const Running& running = *reply->running;
  reply->choice->End(finish, static_cast<uint32_t>(running.work.ids.size()), running.n_cached);
  Release(reply);
}

void Scheduler::Release(Reply* reply) {
  reply->choice = nullptr;
  free_blocks_.push_back(reply->block);
}

void Scheduler::Cancel(Running* running) {
  if (running->constraint != nullptr) running->constraint->Drop();
  for (Reply& reply : running->replies) {
    if (reply.choice == nullptr) continue;
    if (reply.request != 0) arn_scheduler_cancel(scheduler_.get(), reply.request);
    Release(&reply);
  }
}

void Scheduler::Fail(Running* running, const ApiError& error) {
  if (running->work.mailbox->IsClosed()) ++metrics_.aborted;
  Cancel(running);
  Report(running->work, error);
}

}  // namespace arn::serve

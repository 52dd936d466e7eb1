#include "tools/serve/scheduler.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <new>
#include <utility>

#include "tools/cli/format.h"

namespace arn::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kBlockAlign = 64;

// All 0, and no token, if the model takes no images.
arn_image_info ImageInfoOf(const tool::Model& model) {
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  if (arn_image_get_info(model.get(), &info) != ARN_OK) info.token_id = -1;
  return info;
}

ApiError Ending() { return Unavailable("the server is ending", "shutting_down"); }

}  // namespace

void Scheduler::FreeBlock::operator()(void* block) const {
  ::operator delete (block, std::align_val_t{kBlockAlign});
}

Scheduler::Scheduler(const tool::Model& model, const arn_session_options& session_options,
                     SchedulerOptions options, Metrics* metrics)
    : model_(model),
      metrics_(*metrics),
      plan_(model.Plan(session_options)),
      options_(std::move(options)),
      session_(model, session_options),
      image_(ImageInfoOf(model)),
      slots_(session_.get(), plan_, image_.token_id) {
  for (uint32_t s = 0; s < plan_.max_sequences; ++s) {
    blocks_.emplace_back(::operator new (kReplyBytes, std::align_val_t{kBlockAlign}));
  }
  // Ends each call behind its first chunk.
  arn_session_set_prefill_callback(
      session_.get(), [](void*, uint64_t, uint64_t) { return int32_t{1}; }, nullptr);
  Restore();
  Publish();
  thread_ = std::thread([this] { Loop(); });
}

Scheduler::~Scheduler() {
  Stop();
  thread_.join();
}

void Scheduler::Stop() {
  stops_.store(true);
  arn_session_cancel(session_.get());
  const std::lock_guard<std::mutex> lock(mutex_);
  wake_.notify_all();
}

void Scheduler::Submit(std::vector<Work> parts) {
  for (const Work& work : parts) {
    const size_t n_prompt = work.ids.size();
    if (n_prompt >= plan_.context_tokens) {
      throw TooLong(work.param,
                    cli::Format("%s has %zu tokens; with a reply, the context of %u tokens holds "
                                "at most %u",
                                work.param.c_str(), n_prompt, plan_.context_tokens,
                                plan_.context_tokens - 1));
    }
    const uint32_t pages = slots_.PagesFor(n_prompt + work.settings->max_tokens);
    if (uint64_t{work.n} * pages > slots_.n_pages()) {
      throw TooLong("max_tokens",
                    cli::Format("%u repl%s of up to %u tokens to %zu tokens need%s %u pages of %u "
                                "tokens, the server has %u (--kv-tokens)",
                                work.n, work.n == 1 ? "y" : "ies", work.settings->max_tokens,
                                n_prompt, work.n == 1 ? "s" : "", work.n * pages,
                                plan_.kv_page_tokens, slots_.n_pages()));
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stops_.load()) throw Ending();
  if (waiting_.size() + parts.size() > options_.queue_capacity) {
    ++metrics_.refused;
    throw ApiError(429, "rate_limit_error",
                   cli::Format("all %u sequences are busy and %zu of %u places in the queue are "
                               "taken: try again later",
                               plan_.max_sequences, waiting_.size(), options_.queue_capacity),
                   "", "queue_full");
  }
  for (Work& work : parts) waiting_.push_back(std::move(work));
  status_.n_waiting = static_cast<uint32_t>(waiting_.size());
  wake_.notify_all();
}

SchedulerStatus Scheduler::Status() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

void Scheduler::Publish() {
  std::vector<Slots::Use> uses = slots_.Uses();
  const uint64_t used = session_.Stats().kv_used_bytes;
  const std::lock_guard<std::mutex> lock(mutex_);
  status_.plan = plan_;
  status_.n_waiting = static_cast<uint32_t>(waiting_.size());
  status_.queue_capacity = options_.queue_capacity;
  status_.kv_used_bytes = used;
  status_.sequences = std::move(uses);
}

void Scheduler::Loop() {
  while (!stops_.load()) {
    try {
      RunOnce();
    } catch (const std::bad_alloc&) {
      BreakAll();
    }
  }
  try {
    EndAll();
  } catch (const std::bad_alloc&) {
    BreakAll();
  }
}

void Scheduler::RunOnce() {
  DropClosed();
  Admit();
  Publish();
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (running_.empty()) {
      // A waiting prompt that no sequence runs for is a deadline's or a closed box's business.
      if (!waiting_.empty() || WaitForWork(&lock)) return;
      lock.unlock();
      Save();
      return;
    }
  }
  is_saved_ = false;
  RunChunk();
  RunReplies();
  const auto has_ended = [](const std::unique_ptr<Running>& running) {
    return std::all_of(running->choices.begin(), running->choices.end(),
                       [](const auto& choice) { return choice == nullptr; });
  };
  running_.erase(std::remove_if(running_.begin(), running_.end(), has_ended), running_.end());
}

void Scheduler::EndAll() {
  for (const auto& running : running_) Fail(running.get(), Ending());
  running_.clear();
  if (!is_saved_) Save();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Work& work : waiting_) Report(work, Ending());
  waiting_.clear();
}

void Scheduler::BreakAll() {
  for (const auto& running : running_) Break(running.get());
  running_.clear();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Work& work : waiting_) work.mailbox->Break();
  waiting_.clear();
}

bool Scheduler::WaitForWork(std::unique_lock<std::mutex>* lock) {
  const auto is_needed = [this] { return stops_.load() || !waiting_.empty(); };
  if (options_.state_file.empty() || is_saved_) {
    wake_.wait(*lock, is_needed);
    return true;
  }
  return wake_.wait_for(*lock, options_.save_after, is_needed);
}

void Scheduler::Restore() {
  if (options_.state_file.empty() || !std::filesystem::exists(options_.state_file)) return;
  arn_restore_options restore = ARN_RESTORE_OPTIONS_INIT;
  restore.no_constraints = 1;
  restore.verify = ARN_VERIFY_ALL;
  if (arn_session_restore(session_.get(), options_.state_file.c_str(), &restore) != ARN_OK) {
    state_problem_ = options_.state_file + ": " + arn_session_last_error(session_.get());
  }
}

void Scheduler::Save() {
  is_saved_ = true;  // a disk that is full is not written to again until something changes
  if (options_.state_file.empty()) return;
  arn_session_clear_cancel(session_.get());
  if (arn_session_save(session_.get(), options_.state_file.c_str()) != ARN_OK) {
    std::fprintf(stderr, "arenite: warning: %s: %s\n", options_.state_file.c_str(),
                 arn_session_last_error(session_.get()));
  }
}

void Scheduler::Report(const Work& work, const ApiError& error) {
  Event event;
  event.kind = Event::Kind::kError;
  event.error = error;
  work.mailbox->Put(std::move(event));
}

void Scheduler::DropClosed() {
  const Clock::time_point now = Clock::now();
  const auto late = [](const char* where) {
    return ApiError(504, "server_error", std::string("the time limit of a request passed ") + where,
                    "", "timeout");
  };
  for (const auto& running : running_) {
    if (running->work.mailbox->IsClosed()) {
      Fail(running.get(), Ending());  // nobody reads it
    } else if (now >= running->work.deadline) {
      ++metrics_.timed_out;
      Fail(running.get(), late("while it was answered"));
    }
  }
  running_.erase(std::remove_if(running_.begin(), running_.end(),
                                [](const auto& running) { return running->choices.empty(); }),
                 running_.end());
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto work = waiting_.begin(); work != waiting_.end();) {
    if (work->mailbox->IsClosed()) {
      ++metrics_.aborted;
      work = waiting_.erase(work);
    } else if (now >= work->deadline) {
      ++metrics_.timed_out;
      Report(*work, late("while it waited for a sequence"));
      work = waiting_.erase(work);
    } else {
      ++work;
    }
  }
}

void Scheduler::Admit() {
  for (;;) {
    auto running = std::make_unique<Running>();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (waiting_.empty()) return;
      const Work& first = waiting_.front();
      const uint64_t n_reply =
          first.settings->max_tokens == 0 ? plan_.context_tokens : first.settings->max_tokens;
      // Without a limit a reply may fill the context, or what pages there are.
      const uint32_t pages =
          std::min(slots_.PagesFor(first.ids.size() + n_reply), slots_.n_pages() / first.n);
      auto taken = slots_.Take(first.ids, first.settings->adapters, first.n, pages);
      if (!taken) return;
      running->sequences = std::move(*taken);
      running->most_tokens = std::min(plan_.context_tokens, pages * plan_.kv_page_tokens);
      running->work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    Running* const begun = running.get();
    try {
      running_.push_back(std::move(running));
      Begin(begun);
    } catch (const std::bad_alloc&) {
      if (running) Break(begun);
      throw;
    }
  }
}

void Scheduler::Begin(Running* running) {
  const Work& w = running->work;
  try {
    if (slots_.AdaptersOf(running->sequences[0]) != w.settings->adapters) {
      throw SessionError("the adapters cannot be used");
    }
    for (uint32_t i = 0; i < w.n; ++i) {
      running->choices.push_back(std::make_unique<Choice>(
          model_.get(), w, w.first_choice + i, blocks_[running->sequences[i]].get(), kReplyBytes));
    }
    SetConstraint(w, running->sequences[0]);
    const bool is_schema =
        w.settings->constraint && w.settings->constraint->kind != ARN_CONSTRAINT_TOOL_CALLS;
    running->constrains_later = is_schema && running->choices[0]->IsInReasoning();
    SetSampling(w, running->sequences[0], 0);
  } catch (const ApiError& error) {
    Fail(running, error);
    return;
  }
  metrics_.prompt_tokens += w.ids.size();
  Event started;
  started.choice = w.first_choice;
  w.mailbox->Put(std::move(started));
}

ApiError Scheduler::SessionError(const std::string& what) const {
  return ApiError(500, "server_error", what + ": " + arn_session_last_error(session_.get()), "",
                  "session_error");
}

void Scheduler::SetConstraint(const Work& work, uint32_t sequence) {
  arn_session_select(session_.get(), sequence);
  if (!work.settings->constraint) {
    arn_session_set_constraint(session_.get(), nullptr);
    return;
  }
  const RequestConstraint& spec = *work.settings->constraint;
  const arn_constraint_options options = spec.Options(work.prompt_tail);
  const arn_status status = arn_session_set_constraint(session_.get(), &options);
  if (status == ARN_OK) return;
  // Models whose calls are not known may still be offered tools: the reply is then a text.
  if (spec.kind == ARN_CONSTRAINT_TOOL_CALLS && spec.tool_choice == ARN_TOOL_CHOICE_AUTO &&
      status == ARN_UNSUPPORTED && !spec.single_call) {
    return;
  }
  throw BadField(spec.param,
                 std::string("cannot be enforced: ") + arn_session_last_error(session_.get()));
}

void Scheduler::SetSampling(const Work& work, uint32_t sequence, uint32_t choice) {
  arn_sampling sampling = work.settings->sampling;
  sampling.seed += choice;
  arn_session_select(session_.get(), sequence);
  if (arn_session_set_sampling(session_.get(), &sampling) != ARN_OK) {
    // The sentence begins with the name of the option.
    const std::string why = arn_session_last_error(session_.get());
    throw ApiError(400, "invalid_request_error", why, why.substr(0, why.find(' ')),
                   "invalid_value");
  }
}

void Scheduler::RunChunk() {
  const size_t n = running_.size();
  size_t at = n;
  for (size_t i = 0; i < n && at == n; ++i) {
    const size_t next = (turn_ + i) % n;
    if (running_[next]->phase == Phase::kPrompt && !running_[next]->choices.empty()) at = next;
  }
  if (at == n) return;
  turn_ = at + 1;
  Running* running = running_[at].get();
  const BusyTime timer(&metrics_);
  arn_session_select(session_.get(), running->sequences[0]);
  uint32_t kept = 0;
  const std::vector<int32_t>& ids = running->work.ids;
  const std::vector<float>& rows = running->work.embeddings;
  const arn_status status =
      rows.empty() ? arn_session_follow(session_.get(), ids.data(), ids.size(), &kept)
                   : arn_session_follow_embeddings(session_.get(), ids.data(), ids.size(),
                                                   rows.data(), rows.size() / image_.width, &kept);
  if (!running->has_begun) {
    running->has_begun = true;
    running->n_cached = kept;
    metrics_.cached_tokens += kept;
  }
  if (status == ARN_OK) {
    BeginReplies(running);
  } else if (status == ARN_CONTEXT_FULL) {
    if (slots_.DropOldest()) {
      ++metrics_.evictions;
    } else {
      Fail(running, Unavailable("no KV pages are free for the prompt", "kv_exhausted"));
    }
  } else if (status != ARN_CANCELLED) {
    Fail(running, SessionError("the prompt cannot be computed"));
  }
}

void Scheduler::BeginReplies(Running* running) {
  running->phase = Phase::kReply;
  const Work& work = running->work;
  try {
    for (uint32_t i = 1; i < work.n; ++i) {
      if (slots_.Fork(running->sequences[0], running->sequences[i]) != ARN_OK) {
        throw SessionError("the prompt cannot be copied for another reply");
      }
      SetSampling(work, running->sequences[i], i);
    }
    if (!running->constrains_later) return;
    // It was compiled to find its mistakes; the reasoning is free.
    for (const uint32_t sequence : running->sequences) {
      arn_session_select(session_.get(), sequence);
      arn_session_set_constraint(session_.get(), nullptr);
    }
  } catch (const ApiError& error) {
    Fail(running, error);
  }
}

}  // namespace arn::serve

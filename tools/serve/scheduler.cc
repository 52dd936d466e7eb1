#include "tools/serve/scheduler.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

#include "tools/arenite/error.h"
#include "tools/cli/format.h"

namespace arn::serve {
namespace {

using Clock = std::chrono::steady_clock;

// All 0, and no token, if the model takes no images.
arn_image_info ImageInfoOf(const tool::Model& model) {
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  if (arn_image_get_info(model.get(), &info) != ARN_OK) info.token_id = -1;
  return info;
}

// The library has no more requests than sequences: the others wait here. Constraints are compiled
// in memory of the compiler.
arn_session_options WithRequests(arn_session_options options) {
  options.max_requests = std::max(options.max_sequences, 1u);
  options.max_constraints = options.constraint_bytes == 0 ? 0 : 1;
  return options;
}

// Pages of the library's scheduler, for messages: it refuses what does not fit, too.
uint32_t PagesOf(const arn_memory_plan& plan, uint64_t n_tokens) {
  const uint64_t most = std::min<uint64_t>(n_tokens, plan.kv_tokens);
  return static_cast<uint32_t>((most + plan.kv_page_tokens - 1) / plan.kv_page_tokens);
}

ApiError Ending() { return Unavailable("the server is ending", "shutting_down"); }

}  // namespace

Scheduler::Scheduler(const tool::Model& model, const arn_session_options& session_options,
                     SchedulerOptions options, Metrics* metrics)
    : model_(model),
      metrics_(*metrics),
      session_options_(WithRequests(session_options)),
      plan_(model.Plan(session_options_)),
      options_(std::move(options)),
      session_(model, session_options_),
      image_(ImageInfoOf(model)),
      compiler_(session_options_.constraint_bytes == 0 ? 0 : plan_.max_sequences + 1,
                session_options_.constraint_bytes, model.info().vocab) {
  for (uint32_t s = 0; s < plan_.max_sequences; ++s) {
    blocks_.push_back(MakeBlock(kReplyBytes));
    free_blocks_.push_back(blocks_.back().get());
  }
  if (options_.kept_bytes != 0) {
    const KeptLimits limits = {options_.kept_bytes, plan_.kv_bytes, plan_.context_tokens};
    kept_ = std::make_unique<KeptStates>(options_.kept_folder, limits, &metrics_);
  }
  Restore();
  char error[512] = "";
  arn_scheduler* scheduler = nullptr;
  arn_scheduler_options made = ARN_SCHEDULER_OPTIONS_INIT;
  if (kept_) made.on_drop = OnDrop;
  made.user = this;
  if (arn_scheduler_create(session_.get(), &made, error, sizeof error, &scheduler) != ARN_OK) {
    throw tool::Error(error);
  }
  scheduler_.reset(scheduler);
  compiler_.Start(scheduler);
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
    const uint64_t most = uint64_t{work.settings->max_tokens} + n_prompt;
    const uint32_t pages = PagesOf(plan_, most), n_pages = PagesOf(plan_, plan_.kv_tokens);
    if (uint64_t{work.n} * pages > n_pages) {
      throw TooLong(
          "max_tokens",
          cli::Format("%u repl%s of up to %u tokens to %zu tokens need%s %u pages of %u "
                      "tokens, the server has %u (--kv-tokens)",
                      work.n, work.n == 1 ? "y" : "ies", work.settings->max_tokens, n_prompt,
                      work.n == 1 ? "s" : "", work.n * pages, plan_.kv_page_tokens, n_pages));
    }
  }
  // On this thread, so that the scheduler's does not wait for the disk.
  if (kept_) {
    for (const Work& work : parts) kept_->Warm(work.ids);
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
  std::vector<SequenceUse> uses;
  for (uint32_t s = 0; s < plan_.max_sequences; ++s) {
    arn_session_select(session_.get(), s);
    uses.push_back(
        {arn_session_length(session_.get()), arn_scheduler_request_of(scheduler_.get(), s) != 0});
  }
  const uint64_t used = session_.Stats().kv_used_bytes;
  arn_scheduler_info info = ARN_SCHEDULER_INFO_INIT;
  arn_scheduler_get_info(scheduler_.get(), &info);
  metrics_.evictions = info.n_dropped;
  metrics_.proposed = info.guesses_proposed;
  metrics_.accepted = info.guesses_accepted;
  const auto n_waiting = std::count_if(running_.begin(), running_.end(),
                                       [](const auto& running) { return !running->has_begun; });
  const std::lock_guard<std::mutex> lock(mutex_);
  status_.plan = plan_;
  status_.n_waiting = static_cast<uint32_t>(waiting_.size() + n_waiting);
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
  arn_session_cancel(session_.get());  // a compilation: there are no steps any more
  compiler_.Stop();
}

void Scheduler::RunOnce() {
  DropClosed();
  Admit();
  TakeCompiled();
  if (running_.empty()) {
    Publish();
    std::unique_lock<std::mutex> lock(mutex_);
    // A waiting prompt that no sequence runs for is a deadline's or a closed box's business.
    if (!waiting_.empty() || WaitForWork(&lock)) return;
    lock.unlock();
    Save();
    return;
  }
  is_saved_ = false;
  PauseFull();
  Step();
  RemoveEnded();
  Publish();
}

void Scheduler::RemoveEnded() {
  TakeEvents();  // those left name what is removed
  running_.erase(std::remove_if(running_.begin(), running_.end(),
                                [](const auto& running) { return running->HasEnded(); }),
                 running_.end());
}

void Scheduler::EndAll() {
  for (const auto& running : running_) Fail(running.get(), Ending());
  RemoveEnded();
  if (!is_saved_) Save();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Work& work : waiting_) Report(work, Ending());
  waiting_.clear();
}

void Scheduler::BreakAll() {
  for (const auto& running : running_) {
    Cancel(running.get());
    running->work.mailbox->Break();
  }
  RemoveEnded();
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
  RemoveEnded();
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
      if (waiting_.empty() || waiting_.front().n > free_blocks_.size()) return;
      running->work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    Running* const begun = running.get();
    try {
      running_.push_back(std::move(running));
    } catch (const std::bad_alloc&) {
      begun->work.mailbox->Break();
      throw;
    }
    Begin(begun);
  }
}

}  // namespace arn::serve

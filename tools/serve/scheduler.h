// Scheduler: one thread that answers all requests with one session, by the library's scheduler
// (arn_scheduler): it hands over what may run, and what comes of it to the mailboxes. Replies never
// wait for each other's clients.
#pragma once

#include <arenite/arenite.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tools/arenite/model.h"
#include "tools/serve/choice.h"
#include "tools/serve/constraint_compiler.h"
#include "tools/serve/kept_states.h"
#include "tools/serve/metrics.h"
#include "tools/serve/work.h"

namespace arn::serve {

struct SequenceUse {
  uint32_t n_tokens;
  bool is_busy;
};

struct SchedulerStatus {
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  uint32_t n_waiting = 0, queue_capacity = 0;
  uint64_t kv_used_bytes = 0;
  std::vector<SequenceUse> sequences;
};

struct SchedulerOptions {
  uint32_t queue_capacity = 32;
  // File that the sequences' tokens and pages are kept in; "": none. It is written when the server
  // ends, and once it has had nothing to do for save_after.
  std::string state_file;
  std::chrono::seconds save_after{5};
  // Folder of the conversations that have to leave the memory, and the bytes of its files; 0: they
  // are not kept.
  std::string kept_folder;
  uint64_t kept_bytes = 0;
};

class Scheduler {
 public:
  // Bytes for the parser of each sequence's reply and its tools; pages that are not used are not
  // committed.
  static constexpr uint64_t kReplyBytes = uint64_t{4} << 20;

  // `model` and `metrics` must outlive the scheduler. Goes on from the state file, if it is there
  // and fits. Throws tool::Error.
  Scheduler(const tool::Model& model, const arn_session_options& session_options,
            SchedulerOptions options, Metrics* metrics);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  const arn_memory_plan& plan() const { return plan_; }
  // Returns the bytes of parsers of replies and of constraints.
  uint64_t reply_bytes() const { return kReplyBytes * plan_.max_sequences + compiler_.bytes(); }
  // Returns the bytes of what it holds of conversations that are not in the session.
  uint64_t kept_bytes() const { return kept_ ? kept_->bytes() : 0; }
  // Queues the parts of one request. Throws ApiError: 413 if a part can never fit, 429 if the queue
  // is full, 503 if the server ends.
  void Submit(std::vector<Work> parts);
  SchedulerStatus Status() const;
  // Returns why the state file could not be used; "" if it was, or is not there.
  const std::string& state_problem() const { return state_problem_; }
  // Ends all work with an error. Callable from any thread, once or more.
  void Stop();

 private:
  struct Running;
  // A reply that the library's scheduler has as a request.
  struct Reply {
    Running* running = nullptr;
    uint32_t index = 0;
    uint64_t request = 0;
    std::unique_ptr<Choice> choice;  // null: it has ended
    void* block = nullptr;           // of the choice
    bool constraint_waits = false;   // until the reasoning has ended
    bool is_paused = false;
  };
  struct Running {
    Work work;
    std::vector<uint32_t> adapters;  // as the request names them
    std::vector<float> scales;
    std::vector<Reply> replies;  // as many as the work asks for
    // Shared by the replies; null: there is none, or the model cannot enforce what was asked.
    std::shared_ptr<ConstraintCompiler::Job> constraint;
    bool waits_to_compile = false;  // its replies are not the library's yet
    bool has_begun = false;         // a part of the prompt has run: n_cached is known
    uint32_t n_cached = 0;
    bool HasEnded() const;
  };
  struct DestroyScheduler {
    void operator()(arn_scheduler* scheduler) const { arn_scheduler_destroy(scheduler); }
  };

  void Loop();
  // Admits what waits, and runs a step. Waits if there is nothing to do.
  void RunOnce();
  void EndAll();
  // Ends all requests where there is no memory for an error.
  void BreakAll();
  // Waits for work. Returns false if the state is to be saved first.
  bool WaitForWork(std::unique_lock<std::mutex>* lock);
  void Restore();
  void Save();
  // Keeps the tokens of a sequence, which are about to go.
  static void OnDrop(void* user, uint32_t sequence);
  void Keep(uint32_t sequence);
  // Takes back a conversation that the prompt goes on from, if the session has less of it.
  void Recall(const std::vector<int32_t>& prompt);
  // Returns how many leading tokens of the prompt a sequence has, at most.
  size_t LongestHeld(const std::vector<int32_t>& prompt);
  void DropClosed();
  void RemoveEnded();
  void Admit();
  void Begin(Running* running);
  // Begins compilations, and hands over the replies whose constraint is compiled.
  void TakeCompiled();
  // Returns false while it is not known whether the constraint can be enforced. Throws ApiError.
  bool HasCompiled(Running* running);
  void SubmitAll(Running* running);
  void Constrain(Reply* reply);
  // Hands a reply to the library. Throws ApiError.
  void Submit(Reply* reply);
  // Returns the most tokens of each reply, so that all of one work may run together; 0: no limit.
  uint32_t MostTokens(const Work& work) const;
  void PauseFull();
  void Step();
  void TakeEvents();
  void TakeEvent(const arn_scheduler_event& event);
  void TakeToken(Reply* reply, int32_t id);
  void TakeEnd(Reply* reply, const arn_scheduler_event& event);
  // Ends the reply of a request that has ended.
  void EndReply(Reply* reply, uint32_t finish);
  void Release(Reply* reply);
  // Ends all of it, with an error.
  void Fail(Running* running, const ApiError& error);
  void Cancel(Running* running);
  static ApiError FailureOf(const arn_scheduler_event& event);
  ApiError SessionError(const std::string& what) const;
  void Publish();
  void Report(const Work& work, const ApiError& error);

  const tool::Model& model_;
  Metrics& metrics_;
  const arn_session_options session_options_;
  arn_memory_plan plan_;
  const SchedulerOptions options_;
  const tool::Session session_;
  const arn_image_info image_;
  std::string state_problem_;
  std::unique_ptr<KeptStates> kept_;  // null: nothing is kept
  std::unique_ptr<arn_scheduler, DestroyScheduler> scheduler_;
  ConstraintCompiler compiler_;
  std::vector<Block> blocks_;  // one for each sequence
  std::vector<void*> free_blocks_;
  std::vector<std::unique_ptr<Running>> running_;
  bool is_saved_ = true;  // the state file holds what the sequences hold

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work> waiting_;
  SchedulerStatus status_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace arn::serve

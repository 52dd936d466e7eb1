// Scheduler: one thread that runs one session for all requests.
//
// Each round computes one chunk of one prompt, then one token of each reply, in one run. Prompts
// take turns. So a long prompt delays the replies by a chunk at a time, and replies never wait for
// each other's clients.
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
#include "tools/serve/metrics.h"
#include "tools/serve/slots.h"
#include "tools/serve/work.h"

namespace arn::serve {

struct SchedulerStatus {
  arn_memory_plan plan = ARN_MEMORY_PLAN_INIT;
  uint32_t n_waiting = 0, queue_capacity = 0;
  uint64_t kv_used_bytes = 0;
  std::vector<Slots::Use> sequences;
};

struct SchedulerOptions {
  uint32_t queue_capacity = 32;
  // File that the sequences' tokens and pages are kept in; "": none. It is written when the server
  // ends, and once it has had nothing to do for save_after.
  std::string state_file;
  std::chrono::seconds save_after{5};
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
  uint64_t reply_bytes() const { return kReplyBytes * plan_.max_sequences; }
  // Queues the parts of one request. Throws ApiError: 413 if a part can never fit, 429 if the queue
  // is full, 503 if the server ends.
  void Submit(std::vector<Work> parts);
  SchedulerStatus Status() const;
  // Returns why the state file could not be used; "" if it was, or is not there.
  const std::string& state_problem() const { return state_problem_; }
  // Ends all work with an error. Callable from any thread, once or more.
  void Stop();

 private:
  enum class Phase : uint8_t { kPrompt, kReply };
  struct Running {
    Work work;
    std::vector<uint32_t> sequences;  // [0] has the prompt
    std::vector<std::unique_ptr<Choice>> choices;
    Phase phase = Phase::kPrompt;
    bool has_begun = false;         // a part of the prompt has run: n_cached is known
    bool constrains_later = false;  // once the reasoning has ended
    uint32_t n_cached = 0;
    uint32_t most_tokens = 0;  // of each sequence: what its pages hold
  };
  struct FreeBlock {
    void operator()(void* block) const;
  };

  void Loop();
  // Admits what waits, and runs a part of each request. Waits if there is nothing to do.
  void RunOnce();
  void EndAll();
  // Ends all requests where there is no memory for an error.
  void BreakAll();
  void Break(Running* running);
  // Waits for work. Returns false if the state is to be saved first.
  bool WaitForWork(std::unique_lock<std::mutex>* lock);
  void Restore();
  void Save();
  void DropClosed();
  void Admit();
  void Begin(Running* running);
  void RunChunk();
  void BeginReplies(Running* running);
  void RunReplies();
  // Returns the token that comes next for a choice; nullopt if it has ended.
  std::optional<int32_t> Choose(Running* running, size_t index);
  arn_status Step(const std::vector<uint32_t>& sequences, const std::vector<int32_t>& ids);
  void EndChoice(Running* running, size_t index, uint32_t finish);
  // Ends all of it with an error.
  void Fail(Running* running, const ApiError& error);
  void SetConstraint(const Work& work, uint32_t sequence);
  void SetSampling(const Work& work, uint32_t sequence, uint32_t choice);
  ApiError SessionError(const std::string& what) const;
  void Publish();
  void Report(const Work& work, const ApiError& error);

  const tool::Model& model_;
  Metrics& metrics_;
  arn_memory_plan plan_;
  const SchedulerOptions options_;
  const tool::Session session_;
  const arn_image_info image_;
  Slots slots_;
  std::vector<std::unique_ptr<void, FreeBlock>> blocks_;  // one for each sequence's reply
  std::vector<std::unique_ptr<Running>> running_;
  size_t turn_ = 0;  // of the prompts
  std::string state_problem_;
  bool is_saved_ = true;  // the state file holds what the sequences hold

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work> waiting_;
  SchedulerStatus status_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

}  // namespace arn::serve

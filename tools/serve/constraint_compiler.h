// ConstraintCompiler: compiles the constraints of requests on a thread of its own, in memory that
// is reserved before: a schema that takes long holds no reply up.
#pragma once

#include <arenite/arenite.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tools/serve/work.h"

namespace arn::serve {

// Aligned memory that lives as long as its owner.
struct FreeBlock {
  void operator()(void* block) const;
};
using Block = std::unique_ptr<void, FreeBlock>;
Block MakeBlock(uint64_t bytes);

class ConstraintCompiler {
 public:
  // A constraint that is compiled or will be. Its memory is free again once nobody has it.
  class Job {
   public:
    Job(ConstraintCompiler* owner, Block block, std::shared_ptr<const Settings> settings,
        std::string prompt_tail);
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    // True if what follows is known.
    bool is_done() const { return is_done_; }
    arn_status status() const { return status_; }
    const char* error() const { return error_; }
    arn_constraint* constraint() const { return constraint_; }
    // Nobody wants it any more: it is not begun.
    void Drop() { is_dropped_ = true; }

   private:
    friend class ConstraintCompiler;
    ConstraintCompiler& owner_;
    Block block_;
    const std::shared_ptr<const Settings> settings_;
    const std::string prompt_tail_;
    arn_constraint* constraint_ = nullptr;
    arn_status status_ = ARN_OK;
    char error_[512] = "";
    std::atomic<bool> is_done_{false}, is_dropped_{false};
  };

  ConstraintCompiler(uint32_t n_blocks, uint64_t block_bytes, uint32_t n_vocab);
  ~ConstraintCompiler() { Stop(); }
  ConstraintCompiler(const ConstraintCompiler&) = delete;
  ConstraintCompiler& operator=(const ConstraintCompiler&) = delete;

  uint64_t bytes() const { return n_blocks_ * block_bytes_; }
  // Compiles for the requests of a scheduler from now on; it must be there until Stop().
  void Start(const arn_scheduler* scheduler);
  // Returns null if all blocks are in use.
  std::shared_ptr<Job> Add(const Work& work);
  // Ends the thread. Jobs that were not begun stay as they are.
  void Stop();

 private:
  void Run();
  void Compile(Job* job) const;
  void Return(Block block);

  const uint64_t n_blocks_, block_bytes_;
  const uint32_t n_vocab_;
  const arn_scheduler* scheduler_ = nullptr;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Block> free_;
  std::deque<std::shared_ptr<Job>> waiting_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace arn::serve

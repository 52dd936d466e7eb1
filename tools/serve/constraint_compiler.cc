#include "tools/serve/constraint_compiler.h"

#include <new>
#include <utility>

namespace arn::serve {
namespace {

constexpr std::align_val_t kBlockAlign{64};

}  // namespace

void FreeBlock::operator()(void* block) const { ::operator delete(block, kBlockAlign); }

Block MakeBlock(uint64_t bytes) { return Block(::operator new(bytes, kBlockAlign)); }

ConstraintCompiler::Job::Job(ConstraintCompiler* owner, Block block,
                             std::shared_ptr<const Settings> settings, std::string prompt_tail)
    : owner_(*owner),
      block_(std::move(block)),
      settings_(std::move(settings)),
      prompt_tail_(std::move(prompt_tail)) {}

ConstraintCompiler::Job::~Job() {
  arn_constraint_destroy(constraint_);
  owner_.Return(std::move(block_));
}

ConstraintCompiler::ConstraintCompiler(uint32_t n_blocks, uint64_t block_bytes, uint32_t n_vocab)
    : n_blocks_(n_blocks), block_bytes_(block_bytes), n_vocab_(n_vocab) {
  free_.reserve(n_blocks);
  for (uint32_t i = 0; i < n_blocks; ++i) free_.push_back(MakeBlock(block_bytes));
}

void ConstraintCompiler::Start(const arn_scheduler* scheduler) {
  scheduler_ = scheduler;
  thread_ = std::thread([this] { Run(); });
}

std::shared_ptr<ConstraintCompiler::Job> ConstraintCompiler::Add(const Work& work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (free_.empty()) return nullptr;
  auto job = std::make_shared<Job>(this, std::move(free_.back()), work.settings, work.prompt_tail);
  free_.pop_back();
  waiting_.push_back(job);
  came_.notify_one();
  return job;
}

void ConstraintCompiler::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_stopping_ = true;
    came_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  waiting_.clear();
}

void ConstraintCompiler::Run() {
  for (;;) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      came_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
      if (is_stopping_) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    if (!job->is_dropped_) Compile(job.get());
    job->is_done_ = true;
  }
}

void ConstraintCompiler::Compile(Job* job) const {
  const arn_constraint_options options = job->settings_->constraint->Options(job->prompt_tail_);
  job->status_ =
      arn_scheduler_compile_constraint(scheduler_, &options, job->block_.get(), block_bytes_,
                                       job->error_, sizeof job->error_, &job->constraint_);
  if (job->status_ != ARN_OK) return;
  // Computes what the first token needs. A failure comes again with it.
  std::vector<uint32_t> words((n_vocab_ + 31) / 32);
  arn_constraint_mask(job->constraint_, words.data(), words.size());
}

// Cannot fail: there is room for all blocks.
void ConstraintCompiler::Return(Block block) {
  if (block == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(std::move(block));
}

}  // namespace arn::serve

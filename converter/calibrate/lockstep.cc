#include "converter/calibrate/lockstep.h"

#include <arenite/observe.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "converter/base/error.h"
#include "converter/run/scratch_memory.h"
#include "platform/base/arith.h"
#include "platform/os/pages.h"

namespace arn::convert {
namespace {

class Lockstep;

// Runs one window of one bundle on its own thread. All fields but `memory` and `runner` are guarded
// by the mutex of `all`.
struct Worker {
  Worker(Lockstep* owner, const Runner& bundle, Span<std::byte> block)
      : all(owner), memory(block), runner(bundle.Another()) {}
  void Forget() const {
    if (!memory.empty()) ForgetPages({memory.data(), memory.size()});
  }

  Lockstep* all;
  const Span<std::byte> memory;  // of the session in the file; empty: it has memory of its own
  Runner runner;
  std::thread thread;
  std::condition_variable turn;
  bool may_run = false, is_done = false;
  std::exception_ptr error;
  // The matmul that it waits at; "" if none.
  std::string tensor;
  MatmulRows matmul;
  size_t width = 0, out_width = 0;
};

class Lockstep {
 public:
  Lockstep(const std::vector<const Runner*>& bundles, const CalibrationText& text,
           const std::vector<std::string>& experts, const LockstepMemory& memory,
           uint32_t n_threads)
      : text_(text), n_threads_(n_threads) {
    for (size_t i = 0; i < experts.size(); ++i) experts_.emplace(experts[i], i);
    std::vector<uint64_t> bytes;  // of a session, by bundle
    uint64_t of_window = 0;
    for (const Runner* bundle : bundles) {
      bytes.push_back(
          AlignUp(bundle->Plan(LockstepSession(text)).total_bytes, ScratchMemory::kAlign));
      of_window += bytes.back();
    }
    const uint64_t n_kept = std::min<uint64_t>(memory.most_bytes / of_window, text.n_windows());
    const uint64_t in_file = (text.n_windows() - n_kept) * of_window;
    if (in_file != 0) scratch_.emplace(memory.path, in_file);
    uint64_t at = 0;
    workers_.resize(bundles.size());
    for (size_t b = 0; b < bundles.size(); ++b) {
      for (size_t w = 0; w < text.n_windows(); ++w) {
        Span<std::byte> block;
        if (w >= n_kept) {
          block = scratch_->bytes().subspan(static_cast<size_t>(at), static_cast<size_t>(bytes[b]));
          at += bytes[b];
        }
        workers_[b].push_back(std::make_unique<Worker>(this, *bundles[b], block));
        Worker& worker = *workers_[b].back();
        worker.runner.Start(LockstepSession(text), block);
        worker.runner.Check(arn_session_observe_matmuls(worker.runner.session(), Observe, &worker));
        worker.Forget();
      }
    }
  }

  ~Lockstep() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_ending_ = true;
      ForEach([&](Worker& worker, size_t) {
        arn_session_cancel(worker.runner.session());
        if (!worker.tensor.empty()) Release(&worker);
      });
      Schedule();
    }
    ForEach([](Worker& worker, size_t) {
      if (worker.thread.joinable()) worker.thread.join();
    });
  }
  Lockstep(const Lockstep&) = delete;
  Lockstep& operator=(const Lockstep&) = delete;

  void Run(const OnMatmul& on_matmul) {
    std::unique_lock<std::mutex> lock(mutex_);
    ForEach([&](Worker& worker, size_t w) {
      worker.thread = std::thread([this, &worker, w] { RunWindow(&worker, w); });
      ready_.push_back(&worker);
    });
    Schedule();
    for (;;) {
      all_wait_.wait(lock, [&] { return n_running_ == 0 && ready_.empty(); });
      ForEach([](Worker& worker, size_t) {
        if (worker.error != nullptr) std::rethrow_exception(worker.error);
      });
      const Matmul matmul = Next();
      if (matmul.tensor.empty()) return;
      on_matmul(matmul);  // all workers are blocked
      ForEach([&](Worker& worker, size_t) {
        if (worker.tensor == matmul.tensor) Release(&worker);
      });
      Schedule();
    }
  }

 private:
  static void Observe(void* user, const char* tensor, const float* rows, size_t n_rows,
                      size_t width, const float* sums, size_t out_width) {
    auto* worker = static_cast<Worker*>(user);
    worker->Forget();
    worker->all->Wait(worker, tensor, {rows, n_rows, sums}, width, out_width);
  }

  template <typename Visit>
  void ForEach(const Visit& visit) {
    for (auto& windows : workers_) {
      for (size_t w = 0; w < windows.size(); ++w) visit(*windows[w], w);
    }
  }

  void RunWindow(Worker* worker, size_t w) {
    std::unique_lock<std::mutex> lock(mutex_);
    TakeTurn(worker, &lock);
    lock.unlock();
    std::exception_ptr error;
    try {
      if (!is_ending_) {
        worker->runner.Check(arn_session_prefill(
            worker->runner.session(), text_.ids.data() + w * text_.window, text_.TokensOf(w)));
      }
    } catch (...) {
      error = std::current_exception();
    }
    worker->Forget();
    lock.lock();
    worker->error = error;
    worker->is_done = true;
    GiveTurnBack();
  }

  void Wait(Worker* worker, const char* tensor, MatmulRows matmul, size_t width, size_t out_width) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (is_ending_) return;
    worker->tensor = MatmulName(tensor);
    worker->matmul = matmul;
    worker->width = width;
    worker->out_width = out_width;
    GiveTurnBack();
    TakeTurn(worker, &lock);
  }

  // REQUIRES for all methods below: mutex_ is held.

  void Release(Worker* worker) {
    worker->tensor.clear();
    ready_.push_back(worker);
  }

  // Starts ready workers, up to the number of threads.
  void Schedule() {
    while (n_running_ < n_threads_ && !ready_.empty()) {
      Worker* next = ready_.front();
      ready_.pop_front();
      ++n_running_;
      next->may_run = true;
      next->turn.notify_one();
    }
  }

  void TakeTurn(Worker* worker, std::unique_lock<std::mutex>* lock) {
    worker->turn.wait(*lock, [&] { return worker->may_run; });
    worker->may_run = false;
  }

  void GiveTurnBack() {
    --n_running_;
    Schedule();
    if (n_running_ == 0) all_wait_.notify_one();
  }

  // Returns the first pending matmul in model order. Pending matmuls differ only where a window has
  // no rows for an expert and skips it.
  Matmul Next() {
    const Worker* first = nullptr;
    ForEach([&](Worker& worker, size_t) {
      if (worker.is_done || (first != nullptr && worker.tensor == first->tensor)) return;
      if (first == nullptr) {
        first = &worker;
        return;
      }
      const auto expert = experts_.find(worker.tensor), before = experts_.find(first->tensor);
      if (expert == experts_.end() && before == experts_.end()) {
        Fail("internal error: %s and %s are multiplied at once", worker.tensor.c_str(),
             first->tensor.c_str());
      }
      if (expert == experts_.end()) return;
      if (before == experts_.end() || expert->second < before->second) first = &worker;
    });
    Matmul matmul;
    if (first == nullptr) return matmul;
    matmul.tensor = first->tensor;
    matmul.width = first->width;
    matmul.out_width = first->out_width;
    for (const auto& windows : workers_) {
      matmul.rows.emplace_back();
      for (const auto& worker : windows) {
        const bool is_there = worker->tensor == matmul.tensor;
        matmul.rows.back().push_back(is_there ? worker->matmul : MatmulRows());
      }
    }
    matmul.forget = [this](size_t w) {
      for (const auto& windows : workers_) windows[w]->Forget();
    };
    return matmul;
  }

  const CalibrationText& text_;
  const uint32_t n_threads_;
  std::map<std::string, size_t> experts_;
  std::optional<ScratchMemory> scratch_;
  std::vector<std::vector<std::unique_ptr<Worker>>> workers_;  // by bundle, by window

  std::mutex mutex_;
  std::condition_variable all_wait_;
  std::deque<Worker*> ready_;
  uint32_t n_running_ = 0;
  std::atomic<bool> is_ending_{false};
};

}  // namespace

std::string MatmulName(const char* tensor) {
  return std::string_view(tensor) == "embedding" ? kHeadMatmul : tensor;
}

arn_session_options LockstepSession(const CalibrationText& text) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.context_tokens = text.window;
  options.prefill_chunk = text.window;
  options.n_threads = 1;
  return options;
}

void RunInLockstep(const std::vector<const Runner*>& bundles, const CalibrationText& text,
                   const std::vector<std::string>& experts, const LockstepMemory& memory,
                   uint32_t n_threads, const OnMatmul& on_matmul) {
  Lockstep(bundles, text, experts, memory, n_threads).Run(on_matmul);
}

}  // namespace arn::convert

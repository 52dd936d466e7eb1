// KvPager: brings the KV pages that lie in a file (arn_session_options.kv_file) to memory before
// attention reads them, and lets them go.
//
// Attention reads the pages of one layer after another, round and round: where they do not all fit,
// the OS has always just dropped what comes next. So the pager asks for what is missing of the next
// layer while one computes, and drops just that once it has been read: what was in memory stays,
// and a run reads no more than there is no room for. Where nothing is missing, nothing is dropped.
// While something is, a page is written when it is full, so that it can be dropped later without
// delay.
//
// None of it changes a byte of what the memory holds, and all of it may fail: then the OS reads
// page by page. Allocates nothing.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"
#include "runtime/memory/session_plan.h"

namespace arn {

struct KvFileStats {
  uint64_t bytes_read = 0;  // asked for because they were missing
  uint64_t bytes_written =
      0;                   // of pages that became full or were quantised while others were missing
  uint64_t waited_ns = 0;  // for what was asked for
};

#ifndef ARENITE_NO_KV_FILE
class KvPager {
 public:
  // Makes the file and lays it under the pools that are to lie in one. Without a path there is
  // nothing to do, and *out_fd is -1.
  static Status MakeFile(const SessionPlan& plan, const char* path, std::byte* block, int* out_fd,
                         Diag* diag);
  static void CloseFile(int fd);
  // Gives the memory and the blocks of unused pages back.
  static Status Discard(Span<std::byte> unused);

  KvPager() = default;
  KvPager(const KvPager&) = delete;
  KvPager& operator=(const KvPager&) = delete;
  ~KvPager();
  // `plan` outlives the pager, which closes the file. Without one (-1) it does nothing.
  void Init(const SessionPlan& plan, const Memory& memory, int fd);

  // For RunArgs; null: nothing is paged.
  const AttentionObserver* attention_observer() const {
    return fd_ < 0 ? nullptr : &attention_observer_;
  }
  // All layers of a page of the group are about to be read outside attention, or the edits carried
  // out.
  void AskForPage(uint32_t group, uint32_t page) const;
  void BeforeEdits(Span<const KvEdit> edits) const;
  // A run has succeeded.
  void EndRun(const RunArgs& args);

  const KvFileStats& stats() const { return stats_; }
  void ResetStats() { stats_ = {}; }

 private:
  // kChunkPages OS pages of one layer's part of a pool, a bit for each.
  struct Chunk {
    uint16_t asked = 0;    // was missing
    uint16_t written = 0;  // the run writes to it
  };
  static_assert(sizeof(Chunk) == kKvChunkMarkBytes && kKvChunkPages == 16);
  // Bookkeeping of a layer from its prefetch until it is dropped.
  struct Layer {
    const Step* step = nullptr;  // null: it is of none
    Chunk* chunks = nullptr;     // of the active pool, then of the quantised one
  };
  // One layer's part of a pool: whole OS pages.
  struct Part {
    Slice slice;
    Chunk* chunks = nullptr;
    uint64_t n_chunks = 0;
  };

  void BeforeAttention(const RunArgs& args, Span<const Step> steps);
  bool IsInFile(const Step& step) const;
  bool IsSameLayer(const Step& a, const Step& b) const;
  // The first step of another layer than `now`; null: there is none.
  const Step* FindNext(Span<const Step> steps, const Step* now) const;
  Part PartOf(const Layer& layer, uint32_t kind) const;
  // Asks for what the step will read and is not there.
  void Ask(const RunArgs& args, const Step& step, Layer* layer);
  // Bytes [begin, end) of the part.
  void AskFor(const Part& part, uint64_t begin, uint64_t end);
  void Await(const Layer& layer);
  void Drop(Layer* layer);
  void Adapt();
  void WriteFull(const SequenceRows& sequence);
  void WritePages(uint32_t group, uint32_t page, uint32_t n);
  // The OS pages that a layer's parts of n pages lie in.
  Slice WholeOf(const KvPages& pages, uint32_t page, uint32_t n, uint32_t layer) const;

  const SessionPlan* plan_ = nullptr;
  Memory memory_;
  int fd_ = -1;
  uint64_t os_page_ = 0;
  AttentionObserver attention_observer_;
  Layer layers_[kKvLayersNoted];
  uint32_t now_ = 0;             // which of them is at work, or will be next
  bool is_of_last_run_ = false;  // layers_[now_] was asked for when the last run ended
  // How much more may stay in memory: chunks of those that were missing are kept, some more with
  // each run, until something is pushed out for them.
  uint64_t missing_ = 0, dropped_ = 0, dropped_before_ = 0;  // bytes of a run
  uint64_t chunks_to_keep_ = 0, chunks_kept_ = 0;            // of a run
  uint32_t pause_ = 0, runs_to_wait_ = 0;
  KvFileStats stats_;
};
#else
// In a library without KV files kv_file is refused, so that there is nothing to page.
class KvPager {
 public:
  static Status MakeFile(const SessionPlan&, const char* path, std::byte*, int* out_fd,
                         Diag* diag) {
    *out_fd = -1;
    if (path == nullptr) return Status::kOk;
    return diag->Fail(Status::kUnsupported, "kv_file: this library is built without KV files");
  }
  static void CloseFile(int) {}
  static Status Discard(Span<std::byte>) { return Status::kUnsupported; }
  void Init(const SessionPlan&, const Memory&, int) {}
  const AttentionObserver* attention_observer() const { return nullptr; }
  void AskForPage(uint32_t, uint32_t) const {}
  void BeforeEdits(Span<const KvEdit>) const {}
  void EndRun(const RunArgs&) {}
  KvFileStats stats() const { return {}; }
  void ResetStats() {}
};
#endif

}  // namespace arn

// A backend: six functions that run a Program. All six exist in every backend; what a backend
// cannot do is refused in plan() with kUnsupported and its reason, never later. What fails later is
// a device: kDevice, kDeviceLost or kOutOfMemory, and then every call but unload() fails. Two more
// are for backends that leave logits where they are, or keep none
// (docs/decisions/0011-choosing-on-the-device.md, 0007-threads-that-claim.md).
#pragma once

#include <atomic>
#include <cstdint>

#include "kernels/program.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"
#include "platform/os/topology.h"

namespace arn {

struct BackendOptions {
  // Including the calling thread; of runs with one token of each sequence, and of all others.
  uint32_t n_threads = 1;
  uint32_t n_prefill_threads = 1;
  // Of backends with devices to choose from: a number, or a part of a name; null: the best one.
  const char* device = nullptr;
  // Of such a backend: a driver that computes on the CPU is no device, unless `device` names it.
  bool passes_over_software = false;
  // What the threads stay on, the calling one while it is in a run; null: the system places them.
  // Read by load().
  const CpuMask* cpus = nullptr;
  // load() fails with kUnsupported when the system does not keep them there.
  bool needs_cpus = false;
  // A folder in which such a backend keeps what makes the next load faster; null: none. Read by
  // load() alone.
  const char* device_folder = nullptr;
  // Of a backend that is made of a device's and the CPU's: the state of the CPU's, which the caller
  // has loaded for the same program and unloads after this one. Read by load() alone.
  void* cpu_state = nullptr;
  // Of such a backend: pages are copied even where the host sees the device's. For tests.
  bool copies_kv = false;
  // Of a backend with a device: the host computes on Region::kKv too, if it sees it.
  bool shares_kv = false;
  uint32_t max_threads() const {
    return n_threads > n_prefill_threads ? n_threads : n_prefill_threads;
  }
};

// What a backend's plan() placed. Made by plan(), handed back unchanged to load(); only the backend
// knows what each slice is.
struct BackendPlan {
  // A backend that is made of two others places a part of theirs and some of its own.
  static constexpr uint32_t kMaxPartSlices = 12, kMaxSlices = kMaxPartSlices + 2;
  Slice slices[kMaxSlices];
  uint64_t repacked_weight_bytes = 0;  // weights whose stored layout is not this CPU's
  uint64_t device_bytes = 0;  // buffers on a device, none of which lie in the session's block
};

// Rows [first_row, first_row + n_rows) of a run: consecutive tokens of one sequence.
struct SequenceRows {
  uint32_t first_row = 0;
  uint32_t n_rows = 0;
  uint32_t first_position = 0;
  // One table per Program::kv_groups entry. They already hold the pages for these rows' positions.
  const PageTable* tables = nullptr;
  uint32_t source_rows = 0;  // of the sequence's source, which kinds with sees_source see
};

enum class LogitRows : uint8_t { kNone, kLastOfEach, kAll };

// Is told of every matrix product before it is made. `rows`: [n_rows, cols of the weight], what the
// matrix multiplies; `sums`: [n_rows, rows of the weight], what the products are added to, or null
// when they are not. Valid during the call, which comes from the thread that called run().
struct ProductObserver {
  void (*see)(void* user, WeightId weight, const float* rows, uint32_t n_rows,
              const float* sums) = nullptr;
  void* user = nullptr;
};

struct RunArgs {
  // Done first of all, in this order. A run may consist of edits alone.
  Span<const KvEdit> edits;
  Span<const int32_t> tokens;          // [n_rows], each in [0, vocab); empty: edits alone
  Span<const SequenceRows> sequences;  // cover all rows, in order
  LogitRows logit_rows = LogitRows::kLastOfEach;
  // The steps of the source run instead, on the one sequence's rows, which are its whole source:
  // tokens, or features [n_rows * row_factor, width] as the kFeatures step's value has them.
  bool is_source = false;
  // Of a backend with read_logits, one sequence and kLastOfEach: the logits stay where they are.
  bool leaves_logits = false;
  // Of a backend with finds_best, and with leaves_logits: where the id of the largest logit goes,
  // the lowest among equals. Null: it is not wanted.
  int32_t* best_id = nullptr;
  Span<const float> features;
  // Null but when a model is measured; a backend whose steps keep no such rows refuses it.
  const ProductObserver* observer = nullptr;
  // Checked before every step; non-zero ends the run with kCancelled. May be null.
  const std::atomic<uint32_t>* cancel = nullptr;
  // Null, or one number for each of StepsOf(program, is_source): a run adds the nanoseconds that
  // the step took. A backend that does several steps as one adds their time to the first of them.
  uint64_t* step_ns = nullptr;
};

inline void Observe(const RunArgs& args, WeightId weight, const float* rows, uint32_t n_rows,
                    const float* sums = nullptr) {
  if (args.observer != nullptr) args.observer->see(args.observer->user, weight, rows, n_rows, sums);
}

// How a token is chosen from logits, in this order (runtime/sampling/sampler.h).
struct ChoiceRule {
  float temperature = 0.0f;  // 0: the best one, the lowest id among equals
  uint32_t top_k = 0;        // 0: off
  float top_p = 1.0f;        // 1: off
  float min_p = 0.0f;        // 0: off
};

// Steps of one sequence, each of which chooses a token from the logits of the one before, the first
// from those of the last run or decode, and runs it.
struct DecodeArgs {
  static constexpr uint32_t kMaxSteps = 64, kMaxEnds = 16;

  Span<const KvEdit> edits;  // done first of all
  SequenceRows sequence;     // the first step's one row; the tables hold the pages of all steps
  uint32_t n_steps = 0;      // 1 to kMaxSteps
  ChoiceRule rule;
  Span<const uint32_t> draws;  // [n_steps], uniform: of a step's draw the first 32 bits behind the
                               // point; not read at temperature 0
  Span<const int32_t> ends;    // a step that chooses one of these is the last, and does not run it
  // Told of each token, in their order, as soon as it is known; steps behind it may be under way
  // already. False: it is the last one, those behind it never were. Null: all of them are wanted.
  bool (*see)(void* user, int32_t id) = nullptr;
  void* user = nullptr;
  // Looked at after each token that was seen and between submissions; non-zero ends the steps with
  // kCancelled. May be null.
  const std::atomic<uint32_t>* cancel = nullptr;
};

struct DecodeResult {
  uint32_t n_seen = 0;  // tokens that `see` was told of, or would have been
  bool ended = false;   // an end was chosen after them
};

struct Backend {
  const char* name;
  // Adds the backend's own needs (state, repacked weights, workspace) to the layout. Pure: no
  // allocation, same slices for the same input. Weight::data may be read (headers only), never
  // required to be resident.
  Status (*plan)(const Program& program, const BackendOptions& options, Layout* layout,
                 BackendPlan* plan, Diag* diag);
  // Builds the state inside `memory` (zero-filled or not). `program` outlives the state.
  // *state is null on failure.
  Status (*load)(const Program& program, const BackendOptions& options, const BackendPlan& plan,
                 const Memory& memory, void** state, Diag* diag);
  // Runs all steps. Logits land in Program::logits: row i of the selected rows at i * vocab.
  // Allocates nothing. After an error the KV pages of these rows are undefined, all else is
  // unchanged.
  Status (*run)(void* state, const RunArgs& args, Diag* diag);
  // Copies between host memory and a slice of Region::kKv.
  Status (*kv_read)(void* state, Slice from, Span<std::byte> to);
  Status (*kv_write)(void* state, Slice to, Span<const std::byte> from);
  // Ends threads and releases what is not in `memory`. Null is allowed.
  void (*unload)(void* state);
  // The pages are used where Region::kKv lies in `memory`, and nowhere else: its contents may be
  // exchanged between two runs. False: Region::kKv and Region::kActivations lie on a device, and
  // `memory` need not have anything behind them.
  bool kv_in_memory = false;
  // The name of the device that a state is on; it lives as long as the state. Null: there is none.
  const char* (*device_name)(const void* state) = nullptr;
  // Says once of a state that its device computes as it should, so that what was made for it may be
  // kept in BackendOptions::device_folder. Null: there is nothing to keep.
  void (*trust)(void* state) = nullptr;
  // Reads back what the threads may run on now, the calling one as it was in the last run. Null:
  // the backend starts no threads and places none.
  void (*read_cpus)(const void* state, ThreadCpus* out) = nullptr;
  // Chooses and runs tokens where the logits are. kOk: the tokens that were seen have run, and the
  // logits are those of the last one (of none: those of before). kCancelled, or any other failure:
  // those before the last one that was seen have. Null: only what is in host memory can be chosen
  // from.
  Status (*decode)(void* state, const DecodeArgs& args, DecodeResult* out, Diag* diag) = nullptr;
  // run() finds RunArgs::best_id while it computes the logits, and may then not keep them:
  // read_logits() computes them again.
  bool finds_best = false;
  // Copies f32 [vocab] to the host: the logits of a run that left them, or of decode(); inside
  // DecodeArgs::see those that the token was chosen from. Null: run() has them all in
  // Program::logits.
  Status (*read_logits)(void* state, Span<float> to, Diag* diag) = nullptr;
  // Where the host sees the device's Region::kKv between two runs, cached and without flushing, as
  // long as the state lives. Empty: nowhere, or options.shares_kv was not set. Null: the same.
  Span<std::byte> (*kv_mapping)(const void* state) = nullptr;
  // From the next run on Region::kKv lies there, 64-byte aligned and as large as in the layout.
  // Null: it stays where load() was told.
  void (*place_kv)(void* state, Span<std::byte> kv) = nullptr;
  // Which of several kernels for the same work a state runs, and how they were chosen, as text for
  // people; it lives as long as the state. Null: there is nothing to choose.
  const char* (*kernel_names)(const void* state) = nullptr;
};

}  // namespace arn

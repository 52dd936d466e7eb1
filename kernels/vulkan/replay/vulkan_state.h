// State of the Vulkan backend between load and unload. Placed in Region::kConstants.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/vulkan/device/buffer.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/device/device_weight.h"
#include "kernels/vulkan/device/transfer.h"
#include "kernels/vulkan/lower/choice_words.h"
#include "kernels/vulkan/lower/dispatch.h"
#include "kernels/vulkan/lower/grid.h"
#include "kernels/vulkan/lower/lower.h"
#include "kernels/vulkan/lower/run_words.h"
#include "kernels/vulkan/pipelines/pipeline_cache.h"
#include "kernels/vulkan/pipelines/pipelines.h"
#include "kernels/vulkan/tune/tune_matmuls.h"

namespace arn::vulkan {

// Counts derived from the program alone.
struct Counts {
  uint32_t n_dispatches = 0;
  uint32_t n_short = 0;     // of them those of Context::kShort
  uint32_t n_sets = 0;      // descriptor sets
  uint32_t n_segments = 0;  // parts of the program with their own command buffers, plus one per
                            // group for its edits
  uint32_t n_blocks = 0;    // weight buffers
  uint64_t weight_bytes = 0;
  uint64_t file_bytes = 0;  // of them those in pages of the file (WeightPlacer)
};

// Consecutive steps whose commands are in one buffer per kind of run.
struct Segment {
  uint32_t first_step = 0;
  uint32_t first_dispatch = 0, n_dispatches = 0;
  uint64_t work[kModeCount] = {};  // multiplications per row
  bool is_encoder = false;
  bool is_edit = false;    // the edits of a group, not steps
  bool is_choice = false;  // the sampling of a token, not steps
  VkCommandBuffer commands[kRunKinds] = {};
};

// Buffers of Region::kActivations: every device allocates 1 GiB at once, many not much more than 2.
constexpr uint32_t kActivationBuffers = 16;

constexpr uint32_t kFlights = kStepsAhead + 1;  // maximum submissions in flight

struct State {
  const Program* program = nullptr;
  Memory memory;
  Counts counts;
  RunWords words;
  Workspace workspace;
  Device device;
  Pipelines pipelines;
  PipelineCache pipeline_cache;
  Transfer transfer;
  Span<DeviceWeight> weights;
  Span<GridOf> grids;
  Span<Segment> segments;
  Span<Buffer> blocks;  // weight buffers
  Buffer activations[kActivationBuffers];
  uint64_t activations_at[kActivationBuffers] = {};  // offset of each in the region
  Buffer kv, logits, run, grid_words, choice;
  Buffer arrivals;  // counters of workgroups that have ended, 0 between dispatches
  Traits traits;
  TuningRecord tuned;
  char matmuls[256] = "";  // output of DescribeMatmuls()
  VkCommandPool pool = VK_NULL_HANDLE;
  VkDescriptorPool descriptors = VK_NULL_HANDLE;
  VkFence fences[kFlights] = {};
  // Row of the logits buffer with the logits of the last token: 0, or one of the rows kept by
  // decode.
  uint32_t logits_row = 0;
  uint64_t imported_bytes = 0;        // of weights that the device reads in the file's pages
  bool has_forced_matmuls = false;    // set by a test: nothing is measured
  bool has_forced_attention = false;  // likewise
  bool shares_kv = false;
  bool is_lost = false;  // the device failed during a run: it is not used any more

  // Returns the buffer of activations that has a slice or binding at *offset, and makes that one of
  // the buffer.
  const Buffer& ActivationsAt(uint64_t* offset) const {
    uint32_t i = kActivationBuffers - 1;
    while (i != 0 && (activations[i].bytes == 0 || *offset < activations_at[i])) --i;
    *offset -= activations_at[i];
    return activations[i];
  }
  // Positions of a short context; 0: the program has no commands of its own for it.
  uint32_t short_positions() const { return counts.n_short == 0 ? 0 : traits.segment_positions; }
  uint32_t* run_words() const { return reinterpret_cast<uint32_t*>(run.mapped); }
  ChoiceWords* choice_words() const { return reinterpret_cast<ChoiceWords*>(choice.mapped); }
};

// True at each layer, and at the end of the encoder steps.
bool BeginsSegment(const Program& program, uint32_t step);

// Creates pipelines, descriptor sets and command buffers of the program for the traits.
Status Record(State* state, Diag* diag);
// Writes the bindings of a dispatch to a descriptor set.
void WriteSet(const State& state, const Dispatch& dispatch, VkDescriptorSet set);
// Copies the weights to the device. n_threads: including the calling thread; the others end before
// it returns.
Status Upload(State* state, uint32_t n_threads, Diag* diag);

// Applies the edits in order. Returns kInternal, with nothing applied, if an edit names a group or
// page that does not exist.
Status ApplyEdits(State* state, Span<const KvEdit> edits, Diag* diag);
// Runs a batch of edits of one group, whose words are already written.
Status ExecuteEdits(State* state, uint32_t group, uint32_t n_edits, Diag* diag);
// Runs the steps. REQUIRES: args have passed CheckRun, and the run's words are written.
Status Execute(State* state, const RunArgs& args, uint32_t n_logit_rows, Diag* diag);
// Implements Backend::decode.
Status Decode(void* state, const DecodeArgs& args, DecodeResult* out, Diag* diag);

}  // namespace arn::vulkan

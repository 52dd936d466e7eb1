// What the backend keeps between load and unload; it lies in Region::kConstants.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/vulkan/buffer.h"
#include "kernels/vulkan/choice_words.h"
#include "kernels/vulkan/device.h"
#include "kernels/vulkan/device_weight.h"
#include "kernels/vulkan/dispatch.h"
#include "kernels/vulkan/kept_files.h"
#include "kernels/vulkan/lower.h"
#include "kernels/vulkan/pipelines.h"
#include "kernels/vulkan/run_words.h"
#include "kernels/vulkan/transfer.h"
#include "kernels/vulkan/tune_products.h"

namespace arn::vulkan {

// Everything that can be known from the program: how much there is of what.
struct Counts {
  uint32_t n_dispatches = 0;
  uint32_t n_sets = 0;      // of descriptors
  uint32_t n_segments = 0;  // parts of the program with command buffers of their own, and a group's
                            // edits each
  uint32_t n_blocks = 0;    // of weights
  uint64_t weight_bytes = 0;
};

// What a run has to know of a dispatch: its grid.
struct GridOf {
  GridRows rows = GridRows::kRun;
  uint8_t modes = 0;
  uint32_t row_tile = 1, row_factor = 1, first_row = 0, most_rows = 0;
  uint32_t groups_x = 0, groups_z = 0;
  Segments segments;
};

// Steps whose commands lie in one buffer for each mode.
struct Segment {
  uint32_t first_step = 0;
  uint32_t first_dispatch = 0, n_dispatches = 0;
  uint64_t work[kModeCount] = {};  // multiplications for each row
  bool is_source = false;
  bool is_edit = false;    // not a part of the program, but the edits of a group
  bool is_choice = false;  // nor is this one, which chooses a token
  VkCommandBuffer commands[kModeCount] = {};
};

constexpr uint32_t kFlights = kStepsAhead + 1;  // submissions that may be under way

struct State {
  const Program* program = nullptr;
  Memory memory;
  Counts counts;
  RunWords words;
  Workspace workspace;
  Device device;
  Pipelines pipelines;
  KeptFiles kept;
  Transfer transfer;
  Span<DeviceWeight> weights;
  Span<GridOf> grids;
  Span<Segment> segments;
  Span<Buffer> blocks;  // of weights
  Buffer activations, kv, logits, run, grid_words, choice;
  Traits traits;
  TuningRecord tuned;
  char products[256] = "";  // DescribeProducts()
  VkCommandPool pool = VK_NULL_HANDLE;
  VkDescriptorPool descriptors = VK_NULL_HANDLE;
  VkFence fences[kFlights] = {};
  // Where the logits of the last token are, among the rows of the buffer: the first one, or one of
  // those that were kept.
  uint32_t logits_row = 0;
  bool has_forced_products = false;  // by a test: nothing is measured
  bool shares_kv = false;
  bool is_lost = false;  // the device failed while it ran: nothing more is asked of it

  uint32_t* run_words() const { return reinterpret_cast<uint32_t*>(run.mapped); }
  ChoiceWords* choice_words() const { return reinterpret_cast<ChoiceWords*>(choice.mapped); }
};

// A new segment begins with each layer, and where the source's steps end.
bool BeginsSegment(const Program& program, uint32_t step);

// Makes pipelines, descriptor sets and command buffers of the program, as the traits have it.
Status Record(State* state, Diag* diag);
// What a dispatch shows goes into a set of the pipelines' layout.
void WriteSet(const State& state, const Dispatch& dispatch, VkDescriptorSet set);
// Brings the weights to the device.
Status Upload(State* state, Diag* diag);

// Carries the edits out, in their order. kInternal, with nothing done, when one names a group or a
// page that does not exist.
Status ApplyEdits(State* state, Span<const KvEdit> edits, Diag* diag);
// Executes a batch of edits of one group, whose words are written.
Status ExecuteEdits(State* state, uint32_t group, uint32_t n_edits, Diag* diag);
// Executes the steps; args have passed CheckRun and the run's words are written.
Status Execute(State* state, const RunArgs& args, uint32_t n_logit_rows, Diag* diag);
// As Backend::decode.
Status Decode(void* state, const DecodeArgs& args, DecodeResult* out, Diag* diag);

}  // namespace arn::vulkan

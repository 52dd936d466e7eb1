// A dispatch: one shader over a grid. The steps of a program are lowered into a list of dispatches
// (kernels/vulkan/lower/lower.h). The list depends only on the program, so it can be counted
// without a device, and recorded on one.
#pragma once

#include <cstdint>

#include "kernels/vulkan/lower/segments.h"
#include "kernels/vulkan/shaders/shaders.h"
#include "platform/base/diag.h"
#include "platform/base/status.h"

namespace arn::vulkan {

// Specialisation constants 0 to 31 belong to the shader; those from 32 on describe KV pages
// (shaders/kv.glsl).
inline constexpr uint32_t kConstantCount = 54;
inline constexpr uint32_t kOneSubgroup = 31;  // as in shaders/common.glsl
inline constexpr uint32_t kFirstKvConstant = 32;
inline constexpr uint32_t kMaxPushWords = 32;  // 128 bytes, supported by every device
inline constexpr uint32_t kBindings = 10;      // as in shaders/common.glsl
inline constexpr uint32_t kKvWindows = 4;
// Words at the start of every push constant block: the word at which the data of each of the
// bindings 1 to 5 starts after its offset, row_factor and of_logits (shaders/push.glsl).
inline constexpr uint32_t kPushHeadWords = 7;

// The number of rows of a run selects the kernels: one row, up to kFewRows, or more.
inline constexpr uint32_t kFewRows = 8;
enum class Mode : uint8_t { kOne, kFew, kMany };
inline constexpr uint32_t kModeCount = 3;
constexpr uint8_t BitOf(Mode mode) {
  return static_cast<uint8_t>(1u << static_cast<uint32_t>(mode));
}
inline constexpr uint8_t kAllModes = 7;

// Decode steps in flight ahead of the last token seen by the host, and logit rows kept to roll any
// of them back: one per step in flight, and the row from which the last seen token was sampled.
inline constexpr uint32_t kStepsAhead = 3, kKeptRows = kStepsAhead + 1;

enum class Home : uint8_t { kNone, kActivations, kWeights, kLogits, kRun, kGrids, kChoice };
// Bytes of a buffer shown by a binding.
struct Place {
  Home home = Home::kNone;
  uint32_t block = 0;  // for kWeights
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
constexpr bool operator==(const Place& a, const Place& b) {
  return a.home == b.home && a.block == b.block && a.offset == b.offset && a.bytes == b.bytes;
}

// Determines the rows of a grid.
enum class GridRows : uint8_t {
  kRun,         // rows of the run times row_factor
  kLogits,      // selected logit rows from first_row on, at most most_rows
  kFewLogits,   // kLogits if there are at most kFewRows, else none
  kManyLogits,  // kLogits if there are more, else none
  kEdits,       // edits of a batch
  kShared,      // kRun if attention is split into segments, else none
};

struct Dispatch {
  Shader shader = Shader::kEmbed;
  uint8_t modes = kAllModes;
  uint32_t avoid = 0;           // Avoid: subgroups and dot products the shader does without
  bool joins_previous = false;  // does not read what the previous dispatch writes: no barrier
  GridRows rows = GridRows::kRun;
  uint32_t row_tile = 1;
  uint32_t row_factor = 1;
  uint32_t first_row = 0, most_rows = UINT32_MAX;
  uint32_t groups_x = 1;
  uint32_t groups_z = 1;  // attention: the segments
  Segments segments;      // attention only
  Place places[5];        // bindings 1 to 5
  uint32_t constants[kConstantCount] = {};
  uint32_t n_push = 0;
  uint32_t push[kMaxPushWords] = {};
  uint64_t work = 0;  // multiplications per row
};

// Receives the dispatches of a program, in order.
class DispatchSink {
 public:
  // Called before the dispatches of a step, and before those of a group's edits.
  virtual Status BeginStep(uint32_t step) = 0;
  virtual Status BeginEdits(uint32_t group) = 0;
  // Called before the dispatch that samples a token, which follows those of all steps. n_dispatches
  // receives their number.
  virtual Status BeginChoice(uint32_t* n_dispatches) = 0;
  virtual Status Add(const Dispatch& dispatch, Diag* diag) = 0;

 protected:
  ~DispatchSink() = default;
};

}  // namespace arn::vulkan

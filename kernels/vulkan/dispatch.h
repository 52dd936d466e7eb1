// A dispatch: one shader over a grid. A program's steps are lowered into a list of them
// (kernels/vulkan/lower.h), which depends on the program alone, so that it can be counted before
// there is a device, and recorded when there is one.
#pragma once

#include <cstdint>

#include "kernels/vulkan/segments.h"
#include "kernels/vulkan/shaders.h"
#include "platform/base/diag.h"
#include "platform/base/status.h"

namespace arn::vulkan {

// Constants 0 to 31 are a shader's own, those from 32 on describe KV pages (shaders/kv.glsl).
inline constexpr uint32_t kConstantCount = 54;
inline constexpr uint32_t kOneSubgroup = 31;  // shaders/common.glsl
inline constexpr uint32_t kFirstKvConstant = 32;
inline constexpr uint32_t kMaxPushWords = 32;  // 128 bytes, which every device has
inline constexpr uint32_t kBindings = 10;      // shaders/common.glsl
inline constexpr uint32_t kKvWindows = 4;
// What a push constant block begins with: the word at which each of the bindings 1 to 5 begins
// behind its offset, row_factor and of_logits (shaders/push.glsl).
inline constexpr uint32_t kPushHeadWords = 7;

// How many rows a run has decides which kernels run: one row, up to kFewRows, or more.
inline constexpr uint32_t kFewRows = 8;
enum class Mode : uint8_t { kOne, kFew, kMany };
inline constexpr uint32_t kModeCount = 3;
constexpr uint8_t BitOf(Mode mode) {
  return static_cast<uint8_t>(1u << static_cast<uint32_t>(mode));
}
inline constexpr uint8_t kAllModes = 7;

// Steps of one token that may be under way while the host has not seen which token the first of
// them runs, and the rows of logits that are kept so that any of them can be taken back: theirs,
// and the one that the last token seen was chosen from.
inline constexpr uint32_t kStepsAhead = 3, kKeptRows = kStepsAhead + 1;

enum class Home : uint8_t { kNone, kActivations, kWeights, kLogits, kRun, kGrids, kChoice };
// Bytes that a binding shows.
struct Place {
  Home home = Home::kNone;
  uint32_t block = 0;  // of kWeights
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
constexpr bool operator==(const Place& a, const Place& b) {
  return a.home == b.home && a.block == b.block && a.offset == b.offset && a.bytes == b.bytes;
}

// What the rows of a grid are.
enum class GridRows : uint8_t {
  kRun,         // the run's rows times row_factor
  kLogits,      // those that logits are asked for, from first_row on, at most most_rows
  kFewLogits,   // the same when they are at most kFewRows, else none
  kManyLogits,  // the same when they are more, else none
  kEdits,       // the edits of a batch
  kShared,      // those of kRun when its attention is shared out in segments, else none
};

struct Dispatch {
  Shader shader = Shader::kEmbed;
  uint8_t modes = kAllModes;
  uint32_t avoid = 0;  // Avoid: of subgroups and dot products, which the shader does without
  bool joins_previous = false;  // does not read what the dispatch before it writes
  GridRows rows = GridRows::kRun;
  uint32_t row_tile = 1;
  uint32_t row_factor = 1;
  uint32_t first_row = 0, most_rows = UINT32_MAX;
  uint32_t groups_x = 1;
  uint32_t groups_z = 1;  // of attention: the segments
  Segments segments;      // of attention
  Place places[5];        // bindings 1 to 5
  uint32_t constants[kConstantCount] = {};
  uint32_t n_push = 0;
  uint32_t push[kMaxPushWords] = {};
  uint64_t work = 0;  // multiplications for each row
};

// Takes the dispatches of a program, in their order.
class DispatchSink {
 public:
  // The following dispatches are of this step, or of the edits of this group.
  virtual Status BeginStep(uint32_t step) = 0;
  virtual Status BeginEdits(uint32_t group) = 0;
  // The following dispatch chooses a token. It comes behind those of all steps, which are so many.
  virtual Status BeginChoice(uint32_t* n_dispatches) = 0;
  virtual Status Add(const Dispatch& dispatch, Diag* diag) = 0;

 protected:
  ~DispatchSink() = default;
};

}  // namespace arn::vulkan

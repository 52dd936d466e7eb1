// A dispatch: one shader over a grid. The steps of a program are lowered into a list of dispatches
// (kernels/vulkan/lower/lower.h). The list depends only on the program, so it can be counted
// without a device, and recorded on one.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/vulkan/lower/segments.h"
#include "kernels/vulkan/shaders/shaders.h"
#include "kernels/vulkan/shaders/shared.h"
#include "platform/base/diag.h"
#include "platform/base/status.h"

namespace arn::vulkan {

inline constexpr uint32_t kMaxPushWords = 32;  // 128 bytes, supported by every device
inline constexpr uint32_t kBindings = 11;      // as in shaders/common.glsl
inline constexpr uint32_t kPlaces = 9;         // bindings 1 to 9
inline constexpr uint32_t kKvWindows = 4;      // bindings 6 to 9, of shaders with pages
inline constexpr uint32_t kPushHeadWords = sizeof(PushHead) / sizeof(uint32_t);

// The number of rows of a run selects the kernels: one row, up to kFewRows, or more.
inline constexpr uint32_t kFewRows = 8;
enum class Mode : uint8_t { kOne, kFew, kMany };
inline constexpr uint32_t kModeCount = 3;
static_assert(kFewRows <= kArrivalRows);
constexpr uint8_t BitOf(Mode mode) {
  return static_cast<uint8_t>(1u << static_cast<uint32_t>(mode));
}
inline constexpr uint8_t kAllModes = 7;

// Positions that a run of one row sees: at most a segment of attention (segments.h), or more. It
// selects among the dispatches of kOne.
enum class Context : uint8_t { kAny, kShort, kLong };
// Kinds of runs, which have commands of their own: a mode, or one row in a short context.
inline constexpr uint32_t kShortRun = kModeCount, kRunKinds = kModeCount + 1;
constexpr uint32_t ModeOfKind(uint32_t kind) {
  return kind == kShortRun ? static_cast<uint32_t>(Mode::kOne) : kind;
}

// Decode steps in flight ahead of the last token seen by the host, and logit rows kept to roll any
// of them back: one per step in flight, and the row from which the last seen token was sampled.
inline constexpr uint32_t kStepsAhead = 3, kKeptRows = kStepsAhead + 1;

enum class Home : uint8_t {
  kNone,
  kActivations,
  kWeights,
  kLogits,
  kRun,
  kGrids,
  kChoice,
  kArrivals
};
// Bytes of a buffer shown by a binding.
struct Place {
  Home home = Home::kNone;
  uint32_t block = 0;  // for kWeights
  uint64_t offset = 0;
  uint64_t bytes = 0;
  // From the rows of a range to those of the next (row_ranges.h); 0: not a place of rows.
  uint64_t range_bytes = 0;
};
constexpr bool operator==(const Place& a, const Place& b) {
  return a.home == b.home && a.block == b.block && a.offset == b.offset && a.bytes == b.bytes;
}

// Determines the rows of a grid: of those it has from first_row on, at most most_rows.
enum class GridRows : uint8_t {
  kRun,         // rows of the run times row_factor
  kLogits,      // selected logit rows
  kFewLogits,   // kLogits if there are at most kFewRows, else none
  kManyLogits,  // kLogits if there are more, else none
  kEdits,       // edits of a batch
  kPooled,      // pooled rows of the run
  kShared,      // kRun if attention is split into segments, else none
  kSequences,   // sequences of the run
};

struct Dispatch {
  Shader shader = Shader::kEmbed;
  uint8_t modes = kAllModes;
  Context context = Context::kAny;
  uint32_t avoid = 0;           // Avoid: subgroups and dot products the shader does without
  bool joins_previous = false;  // does not read what the previous dispatch writes: no barrier
  bool begins_segment = false;  // may be submitted apart from those before it
  GridRows rows = GridRows::kRun;
  uint32_t row_tile = 1;
  uint32_t row_factor = 1;
  uint32_t first_row = 0, most_rows = UINT32_MAX;
  uint32_t groups_x = 1;
  uint32_t groups_z = 1;                    // attention: the segments
  Segments segments;                        // attention only
  Place places[kPlaces];                    // 6 to 9: pages, if none
  uint32_t constants[kConstantCount] = {};  // by the ids of shaders/shared.h
  PushHead head = {};                       // of the push constants
  uint32_t n_push = kPushHeadWords;         // words of the push constants, with the head
  uint32_t push_tail[kMaxPushWords - kPushHeadWords] = {};
  uint64_t work = 0;  // multiplications per row of a run

  // True if runs of the kind have the dispatch.
  bool IsIn(uint32_t kind) const {
    const uint32_t mode = ModeOfKind(kind);
    const bool has_context = mode != static_cast<uint32_t>(Mode::kOne) ||
                             context == Context::kAny ||
                             (context == Context::kShort) == (kind == kShortRun);
    return (modes >> mode & 1) != 0 && has_context;
  }

  // Sets the push constants after the head. The head of `words` is ignored: Bind() fills it.
  template <typename Words>
  void SetPush(const Words& words) {
    static_assert(sizeof(Words) <= kMaxPushWords * sizeof(uint32_t));
    const auto* bytes = reinterpret_cast<const unsigned char*>(&words);
    std::memcpy(push_tail, bytes + sizeof(PushHead), sizeof(Words) - sizeof(PushHead));
    n_push = sizeof(Words) / sizeof(uint32_t);
  }
  // Returns the push constants, with the head. Words must be the type that was set.
  template <typename Words>
  Words Push() const {
    Words words = {};
    auto* bytes = reinterpret_cast<unsigned char*>(&words);
    std::memcpy(bytes, &head, sizeof head);
    std::memcpy(bytes + sizeof head, push_tail, sizeof(Words) - sizeof head);
    return words;
  }
  // Copies the n_push words that a shader reads.
  void CopyPush(uint32_t* words) const {
    std::memcpy(words, &head, sizeof head);
    std::memcpy(words + kPushHeadWords, push_tail, sizeof push_tail);
  }
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

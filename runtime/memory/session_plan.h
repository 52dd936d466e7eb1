// SessionPlan: everything that a session will take, decided before a byte is allocated. Planning
// and loading share it: the slices that were measured are the slices that are used.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "platform/base/diag.h"
#include "platform/base/dtype.h"
#include "platform/base/layout.h"
#include "platform/os/team.h"
#include "platform/os/topology.h"
#include "runtime/cache/kv_cache.h"
#include "runtime/cache/kv_layout.h"
#include "runtime/model/model.h"
#include "runtime/sampling/beam_search.h"
#include "runtime/sampling/sampler.h"

namespace arn {

// What happens when a sequence has reached the context.
enum class Overflow : uint32_t {
  kStop = 0,   // generate ends with Finish::kContext; other calls say kContextFull
  kError = 1,  // every call says kContextFull
  kShift = 2,  // the oldest tokens behind the pinned ones make room
};

// How keys or values are kept. The last two: int8 first, and sealed into fewer bits once old.
enum class KvType : uint32_t { kF32 = 0, kF16 = 1, kInt8 = 2, kInt4 = 3, kInt2 = 4 };
inline constexpr uint32_t kKvTypeCount = 5;
const char* KvTypeName(KvType type);

// Which CPUs the threads stay on.
enum class CpuChoice : uint32_t {
  kAuto = 0,         // as Topology::keeps() says
  kPerformance = 1,  // the performance CPUs, however many threads there are
  kAll = 2,          // the system places them
  kMask = 3,         // those of SessionOptions::cpu_mask
};

// How a session holds itself back; all zero: not at all.
struct PaceOptions {
  float max_tokens_per_s = 0;      // decoded, of all sequences together
  int32_t heat_limit_mc = 0;       // a thermal zone's thousandths of a degree
  float heat_headroom = 0;         // of Android's thermal headroom
  uint32_t heat_duty_percent = 0;  // of the time that it runs while it is hot; 0: kDefaultHeatDuty
};
inline constexpr uint32_t kDefaultHeatDuty = 50;

struct SessionOptions {
  KvType k_type = KvType::kInt8;
  KvType v_type = KvType::kInt8;
  uint32_t kv_residual = 0;  // the most recent tokens that are never sealed; 0: kDefaultKvResidual
  uint32_t kv_group_size = 0;  // tokens (K), channels (V) of a sealed range; 0: kDefaultKvGroupSize
  uint32_t context_tokens = 0;     // 0: the model's, at most kDefaultContextTokens
  uint32_t prefill_chunk = 0;      // 0: kDefaultPrefillChunk
  uint32_t n_threads = 0;          // 0: as many as there are performance CPUs
  uint32_t n_prefill_threads = 0;  // 0: n_threads
  uint32_t kv_page_tokens = 0;     // 0: kDefaultKvPageTokens
  uint32_t source_rows = 0;        // 0: the model's; tokens at most kDefaultSourceTokens
  bool all_logits = false;
  uint32_t max_sequences = 0;  // 0: 1
  uint32_t kv_tokens = 0;      // all sequences together; 0: as many as they can have
  Overflow overflow = Overflow::kStop;
  uint32_t pinned_tokens = 0;           // kShift: first tokens that stay, rounded up to whole pages
  bool no_cache = false;                // every run computes all tokens of its sequences anew
  bool kv_in_file = false;              // pages of layers that see everything lie in a file
  const char* device = nullptr;         // of backends with devices (BackendOptions); read until the
                                        // session is created
  const char* device_folder = nullptr;  // likewise
  bool passes_over_software = false;    // as in BackendOptions
  bool trusts_device = false;  // the device's results are not compared with the CPU's beforehand
  // Of a backend with a device: one without, which is loaded too and takes over when the device
  // fails. All that it needs lies in the session's block. Null: none.
  const Backend* spare = nullptr;
  CpuChoice cpus = CpuChoice::kAuto;
  uint64_t cpu_mask = 0;  // kMask: bit i is CPU i
  PaceOptions pace;
  bool sensors = false;               // look for heat and energy; also when a heat limit is set
  const char* heat_zone = nullptr;    // part of a zone's type; null: all. Read as `device` is
  const char* system_root = nullptr;  // before /sys; null: "". Read as `device` is
};

inline constexpr uint32_t kDefaultContextTokens = 4096;
inline constexpr uint32_t kDefaultSourceTokens = 512;
inline constexpr uint32_t kDefaultPrefillChunk = 128;
inline constexpr uint32_t kDefaultKvPageTokens = 32;
inline constexpr uint32_t kDefaultKvResidual = 128;
inline constexpr uint32_t kDefaultKvGroupSize = 32;
inline constexpr uint32_t kMaxPrefillChunk = 4096;
inline constexpr uint32_t kMinKvPageTokens = 8;
static_assert(kMinKvPageTokens % kKvStrip == 0);
inline constexpr uint32_t kMaxKvPageTokens = 1024;
inline constexpr uint32_t kMaxSequences = 1024;
// Bytes of stop strings that a session can hold back.
inline constexpr uint32_t kMaxStopBytes = 256;

struct SessionPlan {
  SessionOptions options;  // as applied: no zeros left
  const Backend* backend = nullptr;
  // The model's program with this session's sizes. Its values, ropes and kv_groups point into this
  // struct: Bind() after a copy.
  Program program;
  Value values[kMaxValues];
  RopeKind ropes[kMaxRopeKinds];
  uint32_t long_ropes = 0;  // bit i: rope i is the one of long contexts
  KvGroup kv_groups[kMaxKvGroups];
  BackendPlan backend_plan;
  BackendPlan spare_plan;  // of options.spare
  Diag refused;            // why it is not the backend that was preferred; "": it is
  KvCachePlan cache;
  SamplerPlan sampler;
  BeamSearchPlan beams;   // as many as there are sequences
  Slice session;          // the Session object itself
  Slice sequences;        // Sequence [max_sequences]
  Slice rows;             // SequenceRows [max_sequences]
  Slice growths;          // Growth [max_sequences]
  Slice parts;            // SessionPart [max_sequences]
  Slice tokens;           // i32 [max_rows]: ids of the run
  Slice history;          // i32 [max_sequences, context]: ids of the sequences
  Slice spare_history;    // i32 [context] when there are several sequences, else empty
  Slice beam_sequences;   // u32 [max_sequences]
  Slice beam_logits;      // const float* [max_sequences]
  Slice sequence_logits;  // f32 [max_sequences, vocab] when there are several, else empty
  Slice text;  // char: text that a stop string may still claim, and the piece being written
  uint64_t region_bytes[kRegionCount] = {};  // kWeights: the mapped bytes
  Topology topology;
  CpuMask cpus;             // what the threads stay on
  bool keeps_cpus = false;  // false: the system places them

  void Bind();
  uint64_t RegionBytes(Region region) const { return region_bytes[static_cast<uint32_t>(region)]; }
  // Bytes of a region inside a session's block: none when the region lies on a device, and no
  // backend is in reserve that would need it.
  uint64_t BlockBytes(Region region) const;
  // Bytes of a session's block: the sum of its regions.
  uint64_t TotalBytes() const;
  // Whether the group's pool lies in the KV file. A window's and a state's do not: all of them is
  // read for every token.
  bool IsInFile(uint32_t g) const {
    const CacheGroup& group = cache.groups[g];
    return options.kv_in_file && group.window == 0 && group.chunk == 0 && !group.is_state &&
           !group.is_source;
  }
  // What one more token costs in the long run, before windows apply.
  uint64_t KvBytesPerToken() const;
};

// Tokens that one sequence gets in a run.
struct SessionPart {
  uint32_t sequence = 0;
  Span<const int32_t> ids;
};

// Sizes of the objects that a session keeps for itself and for each of its sequences.
struct SessionObjects {
  uint64_t session_bytes = 0;
  uint64_t sequence_bytes = 0;
};

// Checks the options against the model and lays everything out.
Status PlanSession(const Model& model, const Backend* backend, const SessionOptions& options,
                   const SessionObjects& objects, SessionPlan* out, Diag* diag);

// The regions of a block of TotalBytes(), aligned to kRegionAlign.
Memory PartitionBlock(const SessionPlan& plan, std::byte* block);

}  // namespace arn

#include "kernels/vulkan/backend_vulkan.h"

#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "kernels/contract/check.h"
#include "kernels/vulkan/count/count.h"
#include "kernels/vulkan/device/commands.h"
#include "kernels/vulkan/lower/traits.h"
#include "kernels/vulkan/replay/matmul_meter.h"
#include "kernels/vulkan/replay/vulkan_plan.h"
#include "kernels/vulkan/replay/vulkan_state.h"
#include "platform/base/arith.h"
#include "platform/os/pages.h"

namespace arn::vulkan {
namespace {

// Default-constructs an array in a slice of the state's memory.
template <typename T>
Span<T> Array(const Memory& memory, Slice slice) {
  const size_t n = slice.bytes / sizeof(T);
  T* first = memory.As<T>(slice);
  for (size_t i = 0; i < n; ++i) new (first + i) T();
  return {first, n};
}

void PlaceWeights(const Program& program, Span<DeviceWeight> weights, Span<Buffer> blocks) {
  WeightPlacer placer(program);
  PlaceAll(program, &placer, [&](uint32_t i, const DeviceWeight& weight) {
    weights[i] = weight;
    if (weight.values_bytes == 0) return;
    const WeightBlock block = placer.block();
    blocks[weight.block].bytes = block.bytes;
    blocks[weight.block].pages = block.pages;
  });
}

// Weights in the file's pages stay there if the device can read them.
Status CreateWeightBuffer(State* state, Buffer* block, Diag* diag) {
  State& s = *state;
  const uint64_t bytes = block->bytes;
  const std::byte* const pages = block->pages;
  if (pages != nullptr) {
    const Span<const std::byte> file = s.program->file;
    const auto readable = static_cast<uint64_t>(file.data() + file.size() - pages);
    if (ImportBuffer(s.device, pages, bytes, readable, block)) {
      s.imported_bytes += bytes;
      return Status::kOk;
    }
  }
  ARN_TRY(CreateBuffer(s.device, BufferUse::kDevice, bytes, block, diag));
  block->pages = pages;
  return Status::kOk;
}

// Uses as few windows as the device's binding size allows.
Status PlanWindows(uint64_t kv_bytes, const Device& device, Traits* out, Diag* diag) {
  if (kv_bytes <= device.max_binding_bytes()) return Status::kOk;
  for (out->window_shift = 31;
       uint64_t{sizeof(uint32_t)} << out->window_shift > device.max_binding_bytes();) {
    --out->window_shift;
  }
  out->n_windows =
      static_cast<uint32_t>(CeilDiv(kv_bytes, uint64_t{sizeof(uint32_t)} << out->window_shift));
  if (out->n_windows <= kKvWindows) return Status::kOk;
  return diag->Fail(Status::kUnsupported,
                    "Vulkan: %s binds at most %llu bytes of a buffer, the KV pages take %llu",
                    device.name(), static_cast<unsigned long long>(device.max_binding_bytes()),
                    static_cast<unsigned long long>(kv_bytes));
}

Status CreateBuffers(State* state, BufferUse kv_use, const BackendPlan& plan, Diag* diag) {
  State& s = *state;
  BufferBytes bytes;
  FillBufferBytes(*s.program, s.counts, s.words, &bytes);
  const auto create = [&](BufferUse use, uint64_t size, Buffer* out) {
    return CreateBuffer(s.device, use, size, out, diag);
  };
  for (Buffer& block : s.blocks) ARN_TRY(CreateWeightBuffer(state, &block, diag));
  uint64_t start = 0;
  for (uint32_t i = 0; i == 0 || start < plan.slices[kActivationsSlice].bytes; ++i) {
    uint64_t end = plan.slices[kActivationsSlice].bytes;
    if (i + 1 < kActivationBuffers) {
      end = EndOfActivations(*s.program, plan, start, s.traits.buffer_bytes);
    }
    s.activations_at[i] = start;
    ARN_TRY(create(BufferUse::kDevice, end - start, &s.activations[i]));
    start = end;
  }
  ARN_TRY(create(kv_use, plan.slices[kKvSlice].bytes, &s.kv));
  ARN_TRY(create(BufferUse::kShared, bytes.logits, &s.logits));
  ARN_TRY(create(BufferUse::kFromHost, bytes.run, &s.run));
  ARN_TRY(create(BufferUse::kFromHost, bytes.grids, &s.grid_words));
  ARN_TRY(create(BufferUse::kToHost, bytes.choice, &s.choice));
  ARN_TRY(create(BufferUse::kDevice, bytes.arrivals, &s.arrivals));
  SetTraits(GpuTraitsOf(s.device), &s.traits);
  s.traits.timed_rows = Min(s.traits.timed_rows, s.device.chunk_rows());
  if (s.has_forced_attention) s.traits.row_attention_bytes = 0;
  return PlanWindows(s.kv.bytes, s.device, &s.traits, diag);
}

Status CreateCommands(State* state, Diag* diag) {
  State& s = *state;
  const Api& api = s.device.api();
  ARN_TRY(CreateCommandPool(s.device, &s.pool, diag));
  VkFenceCreateInfo fence = {};
  fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  for (VkFence& f : s.fences) {
    ARN_VK(api, CreateFence(s.device.handle(), &fence, s.device.callbacks(), &f), diag);
  }
  return s.transfer.Open(s.device, s.pool, diag);
}

Status ClearArrivals(State* state, Diag* diag) {
  State& s = *state;
  const std::byte zeros[4096] = {};
  for (uint64_t at = 0; at < s.arrivals.bytes; at += sizeof zeros) {
    const auto n = static_cast<size_t>(Min<uint64_t>(sizeof zeros, s.arrivals.bytes - at));
    ARN_TRY(s.transfer.Write(s.device, s.arrivals, at, {zeros, n}, diag));
  }
  return Status::kOk;
}

// Returns the buffers that are not of weights or of transfers.
std::array<Buffer*, 6 + kActivationBuffers> OtherBuffers(State* s) {
  std::array<Buffer*, 6 + kActivationBuffers> buffers = {&s->kv,         &s->logits, &s->run,
                                                         &s->grid_words, &s->choice, &s->arrivals};
  for (uint32_t i = 0; i < kActivationBuffers; ++i) buffers[6 + i] = &s->activations[i];
  return buffers;
}

void Unload(void* state) {
  if (state == nullptr) return;
  State& s = *static_cast<State*>(state);
  const Api& api = s.device.api();
  const VkDevice device = s.device.handle();
  const VkAllocationCallbacks* callbacks = s.device.callbacks();
  if (device != VK_NULL_HANDLE && api.DestroyDevice != nullptr && api.QueueSubmit != nullptr) {
    // Every run waits for its submissions; only a failed device may still be running.
    if (s.is_lost) (void)api.DeviceWaitIdle(device);
    s.transfer.Close(s.device);
    for (const VkFence fence : s.fences) {
      if (fence != VK_NULL_HANDLE) api.DestroyFence(device, fence, callbacks);
    }
    if (s.pool != VK_NULL_HANDLE) api.DestroyCommandPool(device, s.pool, callbacks);
    if (s.descriptors != VK_NULL_HANDLE) {
      api.DestroyDescriptorPool(device, s.descriptors, callbacks);
    }
    s.pipelines.Close(s.device);
    for (Buffer& block : s.blocks) DestroyBuffer(s.device, &block);
    for (Buffer* buffer : OtherBuffers(&s)) DestroyBuffer(s.device, buffer);
  }
  s.device.Close();
  s.pipeline_cache.Close();
  s.~State();
}

// Measures only if the result can be stored; otherwise every session would pay for it.
Status ChooseMatmuls(State* state, Diag* diag) {
  State& s = *state;
  Tuning tuning = Tuning::kFixed;
  if (s.pipeline_cache.is_open() && !s.has_forced_matmuls) {
    s.tuned.Read(s.pipeline_cache.contents(CachedFile::kTuning));
    DeviceMeter meter(state);
    ARN_TRY(meter.Open(diag));
    ARN_TRY(TuneMatmuls(*s.program, s.weights, s.workspace, &meter, &s.tuned, &s.traits, &tuning,
                        diag));
  }
  DescribeMatmuls(*s.program, s.traits, tuning, s.matmuls, sizeof s.matmuls);
  return Status::kOk;
}

Status Build(State* state, const DeviceChoice& choice, const BackendOptions& options,
             const BackendPlan& plan, Diag* diag) {
  State& s = *state;
  s.weights = Array<DeviceWeight>(s.memory, plan.slices[kWeightsSlice]);
  s.grids = Array<GridOf>(s.memory, plan.slices[kGridsSlice]);
  s.segments = Array<Segment>(s.memory, plan.slices[kSegmentsSlice]);
  s.blocks = Array<Buffer>(s.memory, plan.slices[kBlocksSlice]);
  const QuantizedParts quantized = QuantizedPartsOf(*s.program, s.traits);
  const Slice& rows = plan.slices[kQuantizedSlice];
  s.workspace = {{rows.region, rows.offset, quantized.bytes},
                 plan.slices[kNormedSlice],
                 plan.slices[kExpertsSlice],
                 plan.slices[kPartialsSlice],
                 plan.slices[kEmbeddingsSlice],
                 plan.slices[kFeaturesSlice],
                 {rows.region, rows.offset + quantized.few_at(), quantized.few_bytes}};
  ARN_TRY(CountProgram(*s.program, s.traits, &s.counts, diag));
  ARN_TRY(s.words.Plan(*s.program, diag));
  PlaceWeights(*s.program, s.weights, s.blocks);
  ARN_TRY(s.device.Open(choice, diag));
  ARN_TRY(s.pipeline_cache.Open(options.gpu.folder, KeyOf(s.device), diag));
  s.shares_kv = options.gpu.shares_kv;
  ARN_TRY(CreateBuffers(state, s.shares_kv ? BufferUse::kShared : BufferUse::kDevice, plan, diag));
  ARN_TRY(CreateCommands(state, diag));
  ARN_TRY(ClearArrivals(state, diag));
  s.words.WriteHeading(*s.program, s.run_words());
  ARN_TRY(Upload(state, options.cpu.max_threads(), diag));
  const auto entries = Array<PipelineEntry>(s.memory, plan.slices[kPipelinesSlice]);
  ARN_TRY(s.pipelines.Open(s.device, entries, diag));
  if (s.pipeline_cache.is_open()) {
    ARN_TRY(
        s.pipelines.StartFrom(s.device, s.pipeline_cache.contents(CachedFile::kPipelines), diag));
  }
  ARN_TRY(ChooseMatmuls(state, diag));
  ARN_TRY(Record(state, diag));
  s.pipelines.DropModules(s.device);
  return Status::kOk;
}

constexpr uint32_t kChosen = UINT32_MAX;

// Short, so that tests with short contexts have several segments.
constexpr uint32_t kShortSegment = 32;
// Small, so that tests with few rows have several ranges of them.
constexpr uint64_t kSmallBinding = 128 << 10;

template <Restriction restriction>
Traits TraitsOf() {
  Traits traits;
  if (restriction == Restriction::kSharedMemory) {
    traits.segment_positions = kShortSegment;
    traits.attention = kAttentionOfRows;
    traits.fuses = false;
  }
  if (restriction == Restriction::kTeams) {
    traits.segment_positions = kShortSegment;
    traits.most_teams = 4;
    traits.least_team_groups = 1;
  }
  if (restriction == Restriction::kRanges) {
    traits.binding_bytes = kSmallBinding;
    traits.buffer_bytes = 2 * kSmallBinding;
  }
  return traits;
}

template <Restriction restriction>
Status Planned(const Program& program, const BackendOptions&, Layout* layout, BackendPlan* plan,
               Diag* diag) {
  return Plan(program, TraitsOf<restriction>(), layout, plan, diag);
}

// variant: forced for all modes and weight types; kChosen: the tuned ones. attention: likewise.
template <Restriction restriction, uint32_t variant = kChosen, uint32_t attention = kChosen>
Status Load(const Program& program, const BackendOptions& options, const BackendPlan& plan,
            const Memory& memory, void** state, Diag* diag) {
  *state = nullptr;
  auto* s = new (memory.At(plan.slices[kStateSlice])) State();
  s->program = &program;
  s->memory = memory;
  s->traits = TraitsOf<restriction>();
  s->has_forced_matmuls = variant != kChosen;
  s->has_forced_attention = attention != kChosen;
  if (s->has_forced_attention) s->traits.attention = attention;
  for (auto& of_mode : s->traits.choices.of) {
    for (uint8_t& choice : of_mode) choice = variant == kChosen ? 0 : variant;
  }
  DeviceChoice choice;
  choice.name = options.gpu.device;
  choice.hardware_only = options.gpu.hardware_only;
  if (!options.gpu.half_products && variant == kChosen) choice.avoid = kAvoidHalf;
  if (restriction == Restriction::kSharedMemory) choice.avoid |= kAvoidSubgroups | kAvoidDot;
  if (restriction == Restriction::kCopied) choice.avoid |= kAvoidImport;
  if (restriction == Restriction::kStaged) choice.avoid |= kAvoidMapping | kAvoidFullSubgroups;
  const Status status = Build(s, choice, options, plan, diag);
  if (status != Status::kOk) {
    Unload(s);
    return status;
  }
  *state = s;
  return Status::kOk;
}

// Writes the encoder features to where their steps read them, or directly to the value of their
// only step.
Status PutFeatures(State* state, Span<const float> features, Diag* diag) {
  if (features.empty()) return Status::kOk;
  State& s = *state;
  const Slice at = s.workspace.features.bytes != 0
                       ? s.workspace.features
                       : s.program->values[s.program->steps[0].out].slice;
  const Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(features.data()),
                                    features.size() * sizeof(float));
  uint64_t offset = at.offset;
  const Buffer& to = s.ActivationsAt(&offset);
  const Status status = s.transfer.Write(s.device, to, offset, bytes, diag);
  s.is_lost = status != Status::kOk;
  return status;
}

// Writes the embeddings of the run's rows, in their order (RunWords::Write). Those that follow one
// another in `embeddings` are copied at once: images.
Status PutEmbeddings(State* state, const RunArgs& args, Diag* diag) {
  State& s = *state;
  const uint64_t row_bytes = EmbeddingStride(*s.program) * sizeof(float);
  uint64_t to = s.workspace.embeddings.offset;
  const Buffer& buffer = s.ActivationsAt(&to);
  for (size_t i = 0, next; i < args.tokens.size(); i = next) {
    next = i + 1;
    if (args.tokens[i] >= 0) continue;
    const auto first = static_cast<uint64_t>(-1 - int64_t{args.tokens[i]});
    while (next < args.tokens.size() && args.tokens[next] == args.tokens[next - 1] - 1) ++next;
    const Span<const std::byte> rows(
        reinterpret_cast<const std::byte*>(args.embeddings.data()) + first * row_bytes,
        static_cast<size_t>((next - i) * row_bytes));
    const Status status = s.transfer.Write(s.device, buffer, to, rows, diag);
    s.is_lost = status != Status::kOk;
    ARN_TRY(status);
    to += rows.size();
  }
  return Status::kOk;
}

// Reads rows of logits, starting at `row`.
Status ReadRows(State* s, uint32_t row, Span<float> to, Diag* diag) {
  if (s->is_lost) {
    return diag->Fail(Status::kDeviceLost, "Vulkan: %s failed in an earlier run", s->device.name());
  }
  const uint64_t at = uint64_t{row} * s->program->vocab * sizeof(float);
  const Status status =
      s->transfer.Read(s->device, s->logits, at,
                       {reinterpret_cast<std::byte*>(to.data()), to.size() * sizeof(float)}, diag);
  s->is_lost = status != Status::kOk;
  return status;
}

Status Run(void* state, const RunArgs& args, Diag* diag) {
  State& s = *static_cast<State*>(state);
  if (s.is_lost) {
    return diag->Fail(Status::kDeviceLost, "Vulkan: %s failed in an earlier run", s.device.name());
  }
  if (args.observer != nullptr) {
    return diag->Fail(Status::kUnsupported, "Vulkan: matmul observers are not supported");
  }
  ARN_TRY(ApplyEdits(&s, args.edits, diag));
  uint32_t n_logit_rows;
  ARN_TRY(CheckRun(*s.program, args, &n_logit_rows, diag));
  if (RunRows(args) == 0) return Status::kOk;
  if (args.is_encoder) ARN_TRY(PutFeatures(&s, args.features, diag));
  if (!args.embeddings.empty()) ARN_TRY(PutEmbeddings(&s, args, diag));
  ARN_TRY(s.words.Write(*s.program, args, n_logit_rows, 0, s.run_words(), diag));
  ARN_TRY(Execute(&s, args, n_logit_rows, diag));
  if (n_logit_rows != 0) s.logits_row = 0;
  if (args.leaves_logits || n_logit_rows == 0) return Status::kOk;
  return ReadRows(&s, 0,
                  {s.memory.As<float>(s.program->logits), size_t{n_logit_rows} * s.program->vocab},
                  diag);
}

Status ReadLogits(void* state, Span<float> to, const std::atomic<uint32_t>* /*cancel*/,
                  Diag* diag) {
  State& s = *static_cast<State*>(state);
  if (to.size() != s.program->vocab || s.program->max_logit_rows == 0) {
    return diag->Fail(Status::kBadArgument, "Vulkan: %zu logits asked for, the vocabulary has %u",
                      to.size(), s.program->vocab);
  }
  return ReadRows(&s, s.logits_row, to, diag);
}

// Once the device has failed, not even mapped memory is read.
template <typename Copy>
Status Copied(State* s, const Copy& copy) {
  if (s->is_lost) return Status::kDeviceLost;
  Diag diag;
  const Status status = copy(&diag);
  s->is_lost = status != Status::kOk;
  return status;
}

Status KvRead(void* state, Slice from, Span<std::byte> to) {
  State& s = *static_cast<State*>(state);
  if (from.region != Region::kKv || from.bytes != to.size()) return Status::kBadArgument;
  return Copied(&s,
                [&](Diag* diag) { return s.transfer.Read(s.device, s.kv, from.offset, to, diag); });
}

Status KvWrite(void* state, Slice to, Span<const std::byte> from) {
  State& s = *static_cast<State*>(state);
  if (to.region != Region::kKv || to.bytes != from.size()) return Status::kBadArgument;
  return Copied(
      &s, [&](Diag* diag) { return s.transfer.Write(s.device, s.kv, to.offset, from, diag); });
}

Status ReadValues(void* state, Slice from, Span<std::byte> to, Diag* diag) {
  State& s = *static_cast<State*>(state);
  if (from.region != Region::kActivations || from.bytes < to.size()) return Status::kBadArgument;
  if (s.is_lost) {
    return diag->Fail(Status::kDeviceLost, "Vulkan: %s failed in an earlier run", s.device.name());
  }
  uint64_t offset = from.offset;
  const Buffer& buffer = s.ActivationsAt(&offset);
  const Status status = s.transfer.Read(s.device, buffer, offset, to, diag);
  s.is_lost = status != Status::kOk;
  return status;
}

void Trust(void* state) {
  State& s = *static_cast<State*>(state);
  s.pipeline_cache.EndTest();
  if (!s.pipeline_cache.is_open()) return;
  size_t bytes = 0;
  const Span<std::byte> pages = s.pipelines.Compiled(s.device, &bytes);
  s.pipeline_cache.Store(CachedFile::kPipelines, {pages.data(), bytes});
  ReleasePages(pages);
  s.pipeline_cache.Store(CachedFile::kTuning, s.tuned.Bytes());
}

const char* DeviceName(const void* state) {
  return static_cast<const State*>(state)->device.name();
}

const char* KernelNames(const void* state) { return static_cast<const State*>(state)->matmuls; }

const char* QuirksOf(const void* state) {
  return static_cast<const State*>(state)->device.quirks();
}

uint32_t ChunkRows(const void* state) {
  return static_cast<const State*>(state)->device.chunk_rows();
}

Span<std::byte> KvMapping(const void* state) {
  const State& s = *static_cast<const State*>(state);
  if (!s.shares_kv || !s.kv.is_cached) return {};
  return {s.kv.mapped, static_cast<size_t>(s.kv.bytes)};
}

uint64_t ImportedBytes(const void* state) {
  return static_cast<const State*>(state)->imported_bytes;
}

// Pipelines of a restricted device are not worth caching.
void TrustNothing(void*) {}

constexpr LogitsAccess kLogits = {/*finds_best=*/false, /*copies_rows=*/false, ReadLogits};
constexpr TokenOps kTokens = {Decode};
#ifdef ARENITE_NO_COUNTS
constexpr const CostOps* kCost = nullptr;
#else
constexpr CostOps kCostOps = {CountRun};
constexpr const CostOps* kCost = &kCostOps;
#endif
constexpr DeviceOps kDevice = {DeviceName, KernelNames, QuirksOf,      ChunkRows,
                               Trust,      KvMapping,   ImportedBytes, ReadValues};
constexpr DeviceOps kUncachedDevice = {DeviceName,   KernelNames, QuirksOf,      ChunkRows,
                                       TrustNothing, KvMapping,   ImportedBytes, ReadValues};

template <Restriction restriction, uint32_t variant = kChosen, uint32_t attention = kChosen>
constexpr Backend MakeBackend() {
  return {
      .name = "vulkan",
      .plan = Planned<restriction>,
      .load = Load<restriction, variant, attention>,
      .run = Run,
      .kv_read = KvRead,
      .kv_write = KvWrite,
      .unload = Unload,
      .takes_prefix_masks = true,
      .takes_embeddings = true,
      .device = restriction == Restriction::kSharedMemory ? &kUncachedDevice : &kDevice,
      .logits = &kLogits,
      .tokens = &kTokens,
      .cost = kCost,
  };
}
constexpr Backend kBackends[] = {
    MakeBackend<Restriction::kNone>(),   MakeBackend<Restriction::kSharedMemory>(),
    MakeBackend<Restriction::kStaged>(), MakeBackend<Restriction::kTeams>(),
    MakeBackend<Restriction::kCopied>(), MakeBackend<Restriction::kRanges>(),
};

constexpr Backend kOfAttention[] = {
    MakeBackend<Restriction::kNone, kChosen, kAttentionOfRows>(),
    MakeBackend<Restriction::kNone, kChosen, kAttentionOfTiles>(),
    MakeBackend<Restriction::kNone, kChosen, kAttentionOfLargeTiles>(),
    MakeBackend<Restriction::kNone, kChosen, kAttentionOfMatrices>(),
};
static_assert(sizeof kOfAttention / sizeof kOfAttention[0] == kAttentionVariants);

static_assert(kMostVariants == Max(kGemvVariants, kGemmVariants));

template <uint32_t... variant>
const Backend* Forced(uint32_t index, std::integer_sequence<uint32_t, variant...>) {
  static constexpr Backend kForced[] = {MakeBackend<Restriction::kNone, variant>()...};
  return &kForced[index];
}

}  // namespace

const Backend* RestrictedBackend(Restriction restriction) {
  return &kBackends[static_cast<uint32_t>(restriction)];
}

const Backend* VariantBackend(uint32_t index) {
  return Forced(index, std::make_integer_sequence<uint32_t, kMostVariants>());
}

const Backend* AttentionBackend(uint32_t index) { return &kOfAttention[index]; }

namespace {

// Returns what buffer i has of all activations.
template <typename Bytes>
Bytes PartOf(const State& s, uint32_t i, Bytes all) {
  const auto first = static_cast<size_t>(Min<uint64_t>(s.activations_at[i], all.size()));
  return all.subspan(first, Min<size_t>(all.size() - first, s.activations[i].bytes));
}

}  // namespace

Status ReadActivations(void* state, Span<std::byte> to) {
  State& s = *static_cast<State*>(state);
  Diag diag;
  for (uint32_t i = 0; i < kActivationBuffers && s.activations[i].bytes != 0; ++i) {
    ARN_TRY(s.transfer.Read(s.device, s.activations[i], 0, PartOf(s, i, to), &diag));
  }
  return Status::kOk;
}

Status WriteActivations(void* state, Span<const std::byte> from) {
  State& s = *static_cast<State*>(state);
  Diag diag;
  for (uint32_t i = 0; i < kActivationBuffers && s.activations[i].bytes != 0; ++i) {
    ARN_TRY(s.transfer.Write(s.device, s.activations[i], 0, PartOf(s, i, from), &diag));
  }
  return Status::kOk;
}

Status WriteLogits(void* state, Span<const float> row) {
  State& s = *static_cast<State*>(state);
  Diag diag;
  s.logits_row = 0;
  const Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(row.data()),
                                    row.size() * sizeof(float));
  return s.transfer.Write(s.device, s.logits, 0, bytes, &diag);
}

uint64_t AllocatedBytesOf(void* state) {
  State& s = *static_cast<State*>(state);
  uint64_t bytes = Transfer::kStagingBytes;
  for (const Buffer& block : s.blocks) bytes += block.is_imported ? 0 : block.bytes;
  for (const Buffer* buffer : OtherBuffers(&s)) bytes += buffer->bytes;
  return bytes;
}

DriverMemory DriverMemoryOf(void* state) {
  const DriverAllocations& counts = *static_cast<State*>(state)->device.allocations();
  return {counts.n_calls.load(), counts.n_live.load()};
}

Api* ApiOf(void* state) { return static_cast<State*>(state)->device.mutable_api(); }

}  // namespace arn::vulkan

namespace arn {

const Backend* VulkanBackend() { return vulkan::RestrictedBackend(vulkan::Restriction::kNone); }

}  // namespace arn

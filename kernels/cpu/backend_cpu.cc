#include "kernels/cpu/backend_cpu.h"

#include <new>

#include "kernels/contract/check.h"
#include "kernels/contract/step_clock.h"
#include "kernels/cpu/cpu_plan.h"
#include "kernels/cpu/cpu_state.h"
#include "kernels/cpu/repack.h"
#include "kernels/kv/kv_host.h"
#include "platform/base/arith.h"
#include "platform/os/topology.h"

namespace arn {
namespace {

using cpu::State;

// Fills State::matrices and to_repack.
void PlaceMatrices(const Program& program, const BackendPlan& plan, State* state) {
  state->matrices = state->memory.As<const std::byte*>(plan.slices[cpu::kWeightsSlice]);
  std::byte* repacked = state->memory.At(plan.slices[cpu::kRepackedSlice]);
  if (plan.repacked_weight_bytes != 0) state->to_repack = repacked;
  for (uint32_t i = 0; i < program.weights.size(); ++i) {
    const Weight& weight = program.weights[i];
    state->matrices[i] = weight.data;
    if (weight.is_vector || !cpu::UsedInMatmul(program, i) ||
        !cpu::NeedsRepack(weight, state->gemm)) {
      continue;
    }
    state->matrices[i] = repacked;
    repacked += AlignUp(cpu::RepackedBytes(weight, state->gemm), kSliceAlign);
  }
}

// Repacks the matrices in layouts that this CPU's kernels do not read, on all threads whose scratch
// has room in kQuantizedSlice.
void RepackMatrices(State* state) {
  for (uint32_t i = 0; i < state->program->weights.size(); ++i) {
    const Weight& weight = state->program->weights[i];
    if (state->matrices[i] == weight.data) continue;
    std::byte* out = state->to_repack + (state->matrices[i] - state->to_repack);
    const WeightLayout& layout = state->gemm.For(weight)->layout;
    const uint64_t scratch_bytes = cpu::RepackScratchBytes(weight, layout);
    const uint64_t n_parts =
        Min<uint64_t>(state->threads.count(), state->quantized_bytes / scratch_bytes);
    const uint64_t n_slabs = CeilDiv(weight.rows, layout.nr);
    state->threads.ForEach(n_parts, [&](size_t, size_t part) {
      cpu::RepackSlabs(weight, layout, static_cast<uint32_t>(n_slabs * part / n_parts),
                       static_cast<uint32_t>(n_slabs * (part + 1) / n_parts),
                       state->quantized + part * scratch_bytes, out);
    });
  }
  state->to_repack = nullptr;
}

Status Load(const Program& program, const BackendOptions& all_options, const BackendPlan& plan,
            const Memory& memory, void** out, Diag* diag) {
  const CpuOptions& options = all_options.cpu;
  *out = nullptr;
  auto* state = new (memory.At(plan.slices[cpu::kStateSlice])) State();
  state->program = &program;
  state->memory = memory;
  state->quantized = memory.At(plan.slices[cpu::kQuantizedSlice]);
  state->quantized_bytes = plan.slices[cpu::kQuantizedSlice].bytes;
  state->normed = memory.As<float>(plan.slices[cpu::kNormedSlice]);
  state->scratch = memory.At(plan.slices[cpu::kScratchSlice]);
  state->thread_scratch_bytes = cpu::ThreadScratchBytes(program);
  state->partials = memory.As<float>(plan.slices[cpu::kPartialsSlice]);
  state->partial_floats = cpu::PartialFloats(program, options.max_threads());
  if (kHasAdapters) state->low_rank = memory.As<float>(plan.slices[cpu::kLowRankSlice]);
  state->routes = memory.As<uint32_t>(plan.slices[cpu::kRoutesSlice]);
  ARN_TRY(cpu::InitGemmKernels(cpu::ReadsDeviceRows(program, options), &state->gemm, diag));
  cpu::ChooseSimdKernels(&state->simd);
  state->options = options;
  state->options.cpus = nullptr;
  if (!state->threads.Start(options.max_threads(), options.cpus)) {
    return diag->Fail(Status::kOutOfMemory, "the system could not create %u threads",
                      options.max_threads());
  }
  if (options.needs_cpus && !state->threads.AreKept()) {
    state->threads.Stop();
    return diag->Fail(Status::kUnsupported,
                      "the system could not set the CPU affinity of the threads");
  }
  PlaceMatrices(program, plan, state);
  if (!options.repacks_late && state->to_repack != nullptr) RepackMatrices(state);
  *out = state;
  return Status::kOk;
}

Status Run(void* state, const RunArgs& args, Diag* diag) {
  State& s = *static_cast<State*>(state);
  const bool decodes = RunRows(args) <= args.sequences.size();
  s.threads.Use(decodes ? s.options.n_threads : s.options.n_prefill_threads);
  const cpu::Threads::Placed placed(s.threads);
  if (s.to_repack != nullptr) RepackMatrices(&s);
  ARN_TRY(ApplyKvEdits(*s.program, s.memory, args.edits, diag));
  uint32_t n_logit_rows;
  ARN_TRY(CheckRun(*s.program, args, &n_logit_rows, diag));
  if (RunRows(args) == 0) return Status::kOk;
  StepClock clock(args.step_ns);
  const Span<const Step> steps = StepsOf(*s.program, args.is_encoder);
  s.cancel = args.cancel;
  s.is_cut.store(false, std::memory_order_relaxed);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (IsCut(s) || s.is_cut.load(std::memory_order_relaxed)) return Status::kCancelled;
    // The logits are written over those of the last token, which a cancelled run must leave.
    if (steps[i].op() == Op::kLogits && !cpu::KeepsNormed(args)) s.cancel = nullptr;
    NotifyAttentionObserver(args, steps.subspan(i, steps.size() - i));
    // Decode only: in prefill, a matrix's arithmetic takes longer than reading the next one.
    const auto next = [&](size_t first) {
      return decodes && first < steps.size() ? steps.subspan(first, steps.size() - first)
                                             : Span<const Step>();
    };
    if (kHasAdapters && i + 1 < steps.size() && steps[i + 1].op() == Op::kAdapt &&
        cpu::RunAdapted(s, steps[i], steps[i + 1], args, next(i + 2))) {
      clock.Next();
      ++i;
    } else {
      if (decodes) cpu::RequestPrefetch(s, next(i + 1));
      cpu::RunStep(s, steps[i], args);
    }
    clock.Next();
    // They are written: a step behind must not end as a cancelled run.
    if (steps[i].op() == Op::kLogits) s.cancel = nullptr;
  }
  return s.is_cut.load(std::memory_order_relaxed) ? Status::kCancelled : Status::kOk;
}

Status ReadLogits(void* state, Span<float> to, const std::atomic<uint32_t>* cancel, Diag* diag) {
  State& s = *static_cast<State*>(state);
  if (to.size() != s.program->vocab) {
    return diag->Fail(Status::kBadArgument, "room for %zu logits, there are %u", to.size(),
                      s.program->vocab);
  }
  s.threads.Use(s.options.n_threads);
  const cpu::Threads::Placed placed(s.threads);
  s.cancel = cancel;
  s.is_cut.store(false, std::memory_order_relaxed);
  cpu::ReadLogits(s, to.data());
  return s.is_cut.load(std::memory_order_relaxed) ? Status::kCancelled : Status::kOk;
}

Status KvRead(void* state, Slice from, Span<std::byte> to) {
  return KvReadHost(static_cast<const State*>(state)->memory, from, to);
}

Status KvWrite(void* state, Slice to, Span<const std::byte> from) {
  return KvWriteHost(static_cast<const State*>(state)->memory, to, from);
}

void Unload(void* state) {
  if (state != nullptr) static_cast<State*>(state)->threads.Stop();
}

void ReadCpus(const void* state, ThreadCpus* out) {
  *out = static_cast<const State*>(state)->threads.ReadCpus();
}

void PlaceKv(void* state, Span<std::byte> kv) {
  static_cast<State*>(state)->memory.region[static_cast<uint32_t>(Region::kKv)] = kv;
}

constexpr HostKvOps kHostKv = {PlaceKv};
constexpr ThreadOps kThreads = {ReadCpus};
constexpr LogitsAccess kLogits = {/*finds_best=*/true, /*copies_rows=*/true, ReadLogits};
constexpr Backend kBackend = {
    .name = "cpu",
    .plan = cpu::PlanCpu,
    .load = Load,
    .run = Run,
    .kv_read = KvRead,
    .kv_write = KvWrite,
    .unload = Unload,
    .takes_masks = true,
    .takes_embeddings = true,
    .takes_features = true,
    .host_kv = &kHostKv,
    .threads = &kThreads,
    .logits = &kLogits,
};

}  // namespace

const Backend* CpuBackend() { return &kBackend; }

}  // namespace arn

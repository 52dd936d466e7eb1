#include "runtime/session/session.h"

#include <new>

#include "platform/base/arith.h"
#include "platform/os/clock.h"
#include "platform/os/pages.h"
#include "runtime/backends.h"
#include "runtime/session/kv_trim.h"

namespace arn {
namespace {

// Options of a CPU session that computes what a session of `options` does, for one sequence.
SessionOptions OnCpu(SessionOptions options) {
  options.max_sequences = 1;
  options.kv_tokens = 0;
  options.overflow = Overflow::kStop;
  options.pinned_tokens = 0;
  options.all_logits = false;
  options.pace = PaceOptions();
  options.sensors = false;
  options.constraint_bytes = 0;
  options.max_constraints = 0;
  options.state_snapshots = options.snapshot_every = 0;
  options.speculation = Speculation::kNone;
  options.max_guesses = 0;
  options.draft = nullptr;
  options.max_requests = 0;
  if (!IsQuantised(options.k_type) && !IsQuantised(options.v_type)) {
    options.kv_residual = options.kv_group_size = 0;
  }
  return options;
}

}  // namespace

Session::Session(const Model& model, const SessionPlan& plan, Span<std::byte> block,
                 Span<std::byte> owned)
    : core_(model, plan, PartitionBlock(plan, block.data())),
      owned_(owned),
      executor_(&core_),
      sequences_(&core_),
      constrainer_(&core_, &sequences_),
      recompute_(&core_, &executor_, &sequences_),
      runner_(&core_, &executor_, &sequences_, &throttle_, &recompute_),
      chooser_(&core_, &executor_, &sequences_, &constrainer_, &recompute_, &runner_),
      encoder_(&core_, &executor_, &sequences_, &recompute_, &runner_),
      prefiller_(&core_, &executor_, &sequences_, &runner_),
      decoder_(&core_, &executor_, &sequences_, &constrainer_, &throttle_, &recompute_, &runner_,
               &chooser_),
      speculator_(&core_, &executor_, &sequences_, &constrainer_, &throttle_, &runner_, &chooser_,
                  &decoder_),
      generator_(&core_, &sequences_, &constrainer_, &runner_, &chooser_, &decoder_, &speculator_),
      beams_(&core_, &sequences_, &constrainer_, &chooser_, &decoder_),
      kv_reader_(&core_, &executor_, &sequences_, &recompute_, &runner_),
      kv_writer_(&core_, &executor_, &sequences_, &runner_, &kv_reader_),
      scheduler_(Saving(), &speculator_) {}

Status Session::Create(const Model& model, const SessionPlan& plan, Span<std::byte> block,
                       const Owned& owned, Session** out, Diag* diag) {
  *out = nullptr;
  const uint64_t start = MonotonicNs();
  ARN_TRY(CheckWeights(model, diag));
  const Memory memory = PartitionBlock(plan, block.data());
  Session* session = new (memory.At(plan.session)) Session(model, plan, block, owned.pages);
  Status status = session->executor_.Load(plan, diag);
  if (status == Status::kOk) {
    const LogitsOps* ops = FindLogitsOps(*plan.backend);
    session->sequences_.Init(ops);
    session->beams_.Init(ops);
    session->chooser_.Init();
    status = session->speculator_.Init(plan, diag);
    if (status == Status::kOk) status = session->constrainer_.Init(ops, diag);
    if (status == Status::kOk) status = TestDevice(session->SelfTest(), diag);
  }
  // Starts pacing only after the self-test.
  if (status == Status::kOk) status = session->throttle_.Open(plan.options, diag);
  if (status != Status::kOk) {
    session->throttle_.Close();
    session->executor_.Unload();
    session->~Session();
    return status;
  }
  session->runner_.pager().Init(session->core_.plan, memory, owned.kv_file);
  session->create_ns_ = MonotonicNs() - start;
  *out = session;
  return Status::kOk;
}

void Session::Destroy(Session* session) {
  if (session == nullptr) return;
  session->executor_.Unload();
  session->throttle_.Close();
  const Span<std::byte> owned = session->owned_;
  session->~Session();
  ReleasePages(owned);
}

SavingView Session::Saving() {
  return {core_,   executor_, sequences_, constrainer_,   recompute_,
          runner_, chooser_,  prefiller_, !owned_.empty()};
}

SelfTestView Session::SelfTest() {
  const auto with_cpu_session = [](const SessionCore& core, void* user,
                                   Status (*use)(void* user, const SelfTestView& cpu), Diag* diag) {
    SessionPlan plan;
    ARN_TRY(PlanSession(core.model, SelfTestBackend(), OnCpu(core.plan.options), Objects(), &plan,
                        diag));
    const Result<Span<std::byte>> pages = ReservePages(plan.TotalBytes() + kRegionAlign);
    if (!pages.ok())
      return diag->Fail(pages.status(), "not enough memory for the device self-test");
    const uint64_t skip =
        AlignUp(reinterpret_cast<uintptr_t>(pages.value().data()), uint64_t{kRegionAlign}) -
        reinterpret_cast<uintptr_t>(pages.value().data());
    Session* cpu = nullptr;
    Status status = Create(core.model, plan, pages.value().subspan(skip, plan.TotalBytes()),
                           {pages.value(), -1}, &cpu, diag);
    if (status != Status::kOk) {
      ReleasePages(pages.value());
      return status;
    }
    status = use(user, cpu->SelfTest());
    *diag = cpu->core_.diag;
    Destroy(cpu);
    return status;
  };
  return {core_, executor_, sequences_, encoder_, prefiller_, chooser_, decoder_, with_cpu_session};
}

Status Session::Logits(const float** out_logits) {
  *out_logits = nullptr;
  const uint32_t selected = sequences_.selected();
  if (core_.is_behind_logits) {
    return core_.diag.Fail(Status::kBadState,
                           "a token forced behind others has no logits: set with_logprobs");
  }
  ARN_TRY(chooser_.Need(selected));
  ARN_TRY(chooser_.Fetch());
  *out_logits = sequences_.LogitsOf(selected);
  return Status::kOk;
}

Status Session::PrefillEmbeddings(Span<const int32_t> ids, Span<const float> embeddings) {
  ARN_TRY(sequences_.CheckMixed(ids, embeddings));
  if (ids.size() > core_.plan.options.context_tokens) {
    return core_.diag.Fail(Status::kContextFull, "%zu tokens do not fit a context of %u",
                           ids.size(), core_.plan.options.context_tokens);
  }
  ARN_TRY(sequences_.TakeEmbeddings(ids, embeddings, 0, sequences_.length(), &ids));
  return prefiller_.PrefillMixed(ids);
}

Status Session::SetSampling(const SamplingOptions& options) {
  ARN_TRY(CheckSampling(options, sequences_.sampling_limits(), &core_.diag));
  sequences_.At(sequences_.selected()).sampler.Configure(options);
  return Status::kOk;
}

Status Session::SetConstraint(const TokenConstraintOptions* options, uint32_t first) {
  if (options != nullptr) return constrainer_.Set(sequences_.selected(), *options, first);
  constrainer_.Drop(sequences_.selected());
  return Status::kOk;
}

Status Session::Fork(uint32_t from, uint32_t to) {
  ARN_TRY(sequences_.Fork(from, to));
  constrainer_.Fork(from, to);
  return Status::kOk;
}

Status Session::Mark() {
  ARN_TRY(runner_.RunPending(sequences_.selected(), 0));
  return sequences_.Mark();
}

Status Session::Sample(int32_t* out_id) {
  ARN_TRY(chooser_.Need(sequences_.selected()));
  return chooser_.Choose(sequences_.selected(), out_id);
}

Status Session::Select(uint32_t sequence) {
  ARN_TRY(sequences_.CheckSequences(Span<const uint32_t>(&sequence, 1)));
  sequences_.Select(sequence);
  return Status::kOk;
}

Status Session::ObserveAttention(decltype(AttentionObserver::before) before, void* user) {
  if (before != nullptr && executor_.backend().host_kv == nullptr) {
    return core_.diag.Fail(Status::kUnsupported,
                           "backend %s keeps what attention reads on a device",
                           executor_.backend().name);
  }
  runner_.ObserveAttention(before, user);
  return Status::kOk;
}

Status Session::Trim(uint64_t* out_bytes) {
  *out_bytes = 0;
  if (owned_.empty()) {
    return core_.diag.Fail(Status::kUnsupported,
                           "the caller provides the memory: only the caller can trim it");
  }
  if (executor_.backend().host_kv == nullptr) {
    return core_.diag.Fail(Status::kUnsupported, "the KV pages are on the device: nothing to trim");
  }
  ARN_TRY(runner_.RunEdits());
  const Status status = TrimUnusedPages(core_, sequences_.cache(), out_bytes);
  if (status == Status::kOk) return status;
  return core_.diag.Fail(status, "the system takes no unused KV pages back");
}

void Session::ResetStats() {
  core_.stats = SessionStats();
  runner_.pager().ResetStats();
  throttle_.ResetStats();
}

}  // namespace arn

// Implements arenite/profile.h.
#include "arenite/profile.h"

#include "runtime/api/count_dispatches.h"
#include "runtime/api/handles.h"
#include "runtime/api/options.h"

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

namespace arn::api {
namespace {

// Passes costs on to a callback of C.
struct DispatchVisitor {
  arn_dispatch_callback callback;
  void* user;

  static void Visit(void* self, const DispatchCost& cost) {
    const auto& visitor = *static_cast<const DispatchVisitor*>(self);
    arn_dispatch_cost out = ARN_DISPATCH_COST_INIT;
    out.kernel = cost.kernel;
    out.dtype = cost.dtype;
    out.rows = cost.rows;
    out.cols = cost.cols;
    out.waits = cost.waits ? 1 : 0;
    out.groups = cost.work.groups;
    out.loaded = cost.work.loaded;
    out.stored = cost.work.stored;
    out.least = cost.work.least;
    out.far_loaded = cost.work.far_loaded;
    out.far_bytes = cost.work.far_bytes;
    out.int_products = cost.work.int_products;
    out.float_products = cost.work.float_products;
    out.half_products = cost.work.half_products;
    out.half_matrix_products = cost.work.half_matrix_products;
    out.reductions = cost.work.reductions;
    visitor.callback(visitor.user, &out);
  }
};

Status ReadGpuTraits(const arn_gpu_traits* given, GpuTraits* out, Diag* diag) {
  arn_gpu_traits read = ARN_GPU_TRAITS_INIT;
  ARN_TRY(ReadStruct(given, "arn_gpu_traits", &read, diag));
  ARN_TRY(CheckFlag("has_full_subgroups", read.has_full_subgroups, diag));
  ARN_TRY(CheckFlag("has_dot", read.has_dot, diag));
  ARN_TRY(CheckFlag("has_half", read.has_half, diag));
  ARN_TRY(CheckFlag("is_unified", read.is_unified, diag));
  if (read.max_lanes < 128 || read.shared_memory < 16384) {
    return diag->Fail(Status::kBadArgument,
                      "max_lanes %u, shared_memory %u: every GPU that runs has 128 and 16384",
                      read.max_lanes, read.shared_memory);
  }
  out->subgroup_size = read.subgroup_size;
  out->has_full_subgroups = read.has_full_subgroups == 1;
  out->has_dot = read.has_dot == 1;
  out->has_half = read.has_half == 1;
  out->is_unified = read.is_unified == 1;
  out->max_lanes = read.max_lanes;
  out->shared_memory = read.shared_memory;
  out->coop_m = read.coop_m;
  out->coop_n = read.coop_n;
  out->coop_k = read.coop_k;
  out->half_coop_m = read.half_coop_m;
  out->half_coop_n = read.half_coop_n;
  out->half_coop_k = read.half_coop_k;
  out->matmul_variant = read.matmul_variant;
  return Status::kOk;
}

// A run of the decoder, or of the encoder.
Status Count(const Model& model, const arn_session_options* options, const arn_gpu_traits* gpu,
             CountedRun run, arn_dispatch_callback callback, void* user, uint32_t* encoder_rows,
             Diag* diag) {
  if (!kHasCounts) return RefuseCounts(diag);
  SessionPlan plan;
  ARN_TRY(PlanFromC(model, options, &plan, diag));
  run.encoder_rows = *encoder_rows = plan.program.max_encoder_rows;
  if (run.is_encoder) {
    if (plan.program.n_encoder_steps == 0) {
      return diag->Fail(Status::kUnsupported, "the model has no encoder");
    }
    run.n_rows = plan.program.max_encoder_rows;
  } else if (run.n_rows == 0 || run.n_rows > plan.options.prefill_chunk ||
             uint64_t{run.n_before} + run.n_rows > plan.options.context_tokens) {
    return diag->Fail(Status::kBadArgument,
                      "%u tokens after %u: a run has 1 to %u (prefill_chunk) in a context of %u",
                      run.n_rows, run.n_before, plan.options.prefill_chunk,
                      plan.options.context_tokens);
  }
  return CountDispatches(*plan.backend, plan.program, gpu, plan.options.half_products, run,
                         callback, user, diag);
}

}  // namespace

Status RefuseCounts(Diag* diag) {
  return diag->Fail(Status::kUnsupported, "this library is built without counts (ARENITE_COUNTS)");
}

Status CountDispatches(const Backend& backend, const Program& program, const arn_gpu_traits* gpu,
                       bool has_half, const CountedRun& run, arn_dispatch_callback callback,
                       void* user, Diag* diag) {
  GpuTraits traits;
  ARN_TRY(ReadGpuTraits(gpu, &traits, diag));
  if (backend.cost == nullptr) {
    return diag->Fail(Status::kUnsupported, "runs of backend %s are not counted", backend.name);
  }
  traits.has_half = traits.has_half && has_half;
  DispatchVisitor visitor = {callback, user};
  return backend.cost->count(program, traits, run, DispatchVisitor::Visit, &visitor, diag);
}

}  // namespace arn::api

extern "C" {

uint32_t arn_session_step_count(const arn_session* session) {
  if (session == nullptr) return 0;
  return static_cast<uint32_t>(ToSession(session)->plan().program.steps.size());
}

uint64_t arn_session_profile_bytes(const arn_session* session) {
  return session == nullptr ? 0 : StepProfile::Bytes(ToSession(session)->plan().program);
}

arn_status arn_session_profile_start(arn_session* session, void* memory, uint64_t bytes) {
  if (session == nullptr || memory == nullptr) return ARN_BAD_ARGUMENT;
  return BesideScheduler(session, [&](Session& s) {
    const uint64_t needed = arn_session_profile_bytes(session);
    if (bytes < needed || reinterpret_cast<uintptr_t>(memory) % alignof(uint64_t) != 0) {
      return s.diag()->Fail(Status::kBadArgument,
                            "a profile takes %llu bytes aligned to %zu, not %llu at %p",
                            static_cast<unsigned long long>(needed), alignof(uint64_t),
                            static_cast<unsigned long long>(bytes), memory);
    }
    s.executor().profile().Start(s.plan().program, memory);
    return Status::kOk;
  });
}

arn_status arn_session_profile_stop(arn_session* session) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return BesideScheduler(session, [](Session& s) {
    s.executor().profile().Stop();
    return Status::kOk;
  });
}

arn_status arn_session_profile_step(const arn_session* session, uint32_t index,
                                    arn_step_profile* out_step) {
  if (session == nullptr || out_step == nullptr) return ARN_BAD_ARGUMENT;
  const Session& s = *ToSession(session);
  const Program& program = s.plan().program;
  if (index >= program.steps.size()) return ARN_BAD_ARGUMENT;
  if (!s.executor().profile().is_on()) return ARN_BAD_STATE;
  const Step& step = program.steps[index];
  const StepProfile::Total& total = s.executor().profile().at(index);
  arn_step_profile out = ARN_STEP_PROFILE_INIT;
  out.op = OpName(step.op());
  out.dtype = "";
  const StepOperands operands = OperandsOf(step);
  if (operands.n_matrices != 0) {
    const Weight& weight = program.weights[operands.first_matrix];
    out.dtype = DTypeName(weight.dtype);
    out.rows = weight.rows;
    out.cols = weight.cols;
  }
  out.layer = step.layer;
  out.is_encoder = index < program.n_encoder_steps ? 1 : 0;
  out.runs = total.runs;
  out.ns = total.ns;
  out.weight_bytes = total.work.weight_bytes;
  out.kv_bytes = total.work.kv_bytes;
  out.integer_ops = total.work.integer_ops;
  out.float_ops = total.work.float_ops;
  return ToC(WriteStruct(out, out_step));
}

arn_status arn_session_count(const arn_model* model, const arn_session_options* options,
                             const arn_gpu_traits* gpu, uint32_t n_tokens, uint32_t n_before,
                             arn_dispatch_callback callback, void* user, char* error,
                             size_t error_bytes) {
  if (model == nullptr || gpu == nullptr || callback == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  uint32_t encoder_rows = 0;
  const Status status = Count(*ToModel(model), options, gpu, {n_tokens, n_before}, callback, user,
                              &encoder_rows, &diag);
  return Report(status, diag, error, error_bytes);
}

arn_status arn_session_count_encoder(const arn_model* model, const arn_session_options* options,
                                     const arn_gpu_traits* gpu, arn_dispatch_callback callback,
                                     void* user, char* error, size_t error_bytes,
                                     uint32_t* out_rows) {
  if (model == nullptr || gpu == nullptr || callback == nullptr || out_rows == nullptr) {
    return ARN_BAD_ARGUMENT;
  }
  Diag diag;
  CountedRun run;
  run.is_encoder = true;
  const Status status = Count(*ToModel(model), options, gpu, run, callback, user, out_rows, &diag);
  return Report(status, diag, error, error_bytes);
}

}  // extern "C"

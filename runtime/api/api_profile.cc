// Implements arenite/profile.h.
#include "arenite/profile.h"

#include "runtime/api/handles.h"

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

namespace arn::api {
namespace {}  // namespace
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

}  // extern "C"

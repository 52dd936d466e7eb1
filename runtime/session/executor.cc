#include "runtime/session/executor.h"

#include "platform/base/arith.h"
#include "runtime/memory/devices.h"

namespace arn {

Executor::Executor(SessionCore* core) : core_(*core), fallback_reason_(core->plan.refused) {}

// Loads the fallback first: it is needed if the device fails.
Status Executor::Load(const SessionPlan& wanted, Diag* diag) {
  const SessionOptions& asked = wanted.options;
  BackendOptions options;
  options.cpu.n_threads = asked.n_threads;
  options.cpu.n_prefill_threads = asked.n_prefill_threads;
  if (wanted.keeps_cpus) options.cpu.cpus = &wanted.cpus;
  options.cpu.needs_cpus = wanted.keeps_cpus && asked.cpus != CpuChoice::kAuto;
  options.gpu.device = asked.device;
  options.gpu.hardware_only = asked.hardware_only;
  options.gpu.folder = asked.device_folder;
  options.gpu.half_products = asked.half_products;
  const SessionPlan& plan = core_.plan;
  const auto load = [&](const BackendPlan& slices, Loaded* out) {
    return out->backend->load(plan.program, options, slices, core_.memory, &out->state, diag);
  };
  planned_.backend = plan.backend;
  fallback_.backend = plan.options.fallback;
  // A fallback that is no partner runs only if the device fails.
  options.cpu.repacks_late = plan.backend->partner == nullptr;
  options.cpu.reads_device_rows = !options.cpu.repacks_late;
  if (has_fallback()) ARN_TRY(load(plan.fallback_plan, &fallback_));
  options.cpu.repacks_late = false;
  Status status = load(plan.backend_plan, &planned_);
  if (status == Status::kOk && planned_.backend->partner != nullptr) {
    status = planned_.backend->partner->join(planned_.state, fallback_.state, diag);
  }
  if (status == Status::kOk) ChooseChunk();
  if (status == Status::kOk || !has_fallback()) return status;
  SwitchToFallback(*diag);
  diag->Clear();
  return Status::kOk;
}

void Executor::Unload() {
  for (const Loaded* loaded : {&planned_, &fallback_}) {
    if (loaded->state != nullptr) loaded->backend->unload(loaded->state);
  }
}

const char* Executor::device_name() const {
  const DeviceOps* device = backend().device;
  return device == nullptr ? "" : device->name(in_use_->state);
}

const char* Executor::kernel_names() const {
  const DeviceOps* device = backend().device;
  return device == nullptr ? "" : device->kernel_names(in_use_->state);
}

const char* Executor::quirks() const {
  const DeviceOps* device = backend().device;
  return !kHasDevices || device == nullptr ? "" : device->quirks(in_use_->state);
}

uint64_t Executor::imported_bytes() const {
  const DeviceOps* device = backend().device;
  return !kHasDevices || device == nullptr ? 0 : device->imported_bytes(in_use_->state);
}

ThreadCpus Executor::ReadCpus() const {
  ThreadCpus out;
  if (backend().threads != nullptr) backend().threads->read_cpus(in_use_->state, &out);
  return out;
}

void Executor::TrustDevice() {
  if (backend().device != nullptr) backend().device->trust(in_use_->state);
}

void Executor::Observe(RunArgs* args) {
  args->step_ns = profile_.BeginRun();
  if (on_matmul_ != nullptr) args->observer = &observer_;
}

void Executor::Count(const RunArgs& args) {
  profile_.EndRun(core_.plan.program, args);
  CountStep(args);
}

void Executor::CountStep(const RunArgs& args) {
  SessionStats& stats = core_.stats;
  meter_.Count(core_.plan.program, args, &stats.weight_bytes_read, &stats.kv_bytes_read);
}

void Executor::ObserveMatmuls(OnMatmul on_matmul, void* user) {
  on_matmul_ = on_matmul;
  on_matmul_user_ = user;
  observer_.user = this;
  observer_.on_matmul = [](void* self, WeightId weight, const float* rows, uint32_t n_rows,
                           const float* sums) {
    auto& e = *static_cast<Executor*>(self);
    const InCallback in_callback(&e.core_);
    const Weight& matrix = e.core_.plan.program.weights[weight];
    e.on_matmul_(e.on_matmul_user_, TensorName(e.core_.model, weight), rows, n_rows, matrix.cols,
                 sums, matrix.rows);
  };
}

bool Executor::CanFallBack(Status status) const {
  const bool is_device =
      status == Status::kDevice || status == Status::kDeviceLost || status == Status::kOutOfMemory;
  return is_device && in_use_ != &fallback_ && has_fallback();
}

void Executor::SwitchToFallback(Status failure) {
  Diag reason = core_.diag;
  if (reason.text()[0] == '\0') {
    (void)reason.Fail(failure, "%s: %s", planned_.backend->name, StatusName(failure));
  }
  core_.diag.Clear();
  SwitchToFallback(reason);
}

void Executor::SwitchToFallback(const Diag& reason) {
  fallback_reason_ = reason;
  ActivateFallback();
}

// Moves the KV pages to the session's own block; they may have been on the device.
void Executor::ActivateFallback() {
  in_use_ = &fallback_;
  fallback_.backend->host_kv->place(fallback_.state,
                                    core_.memory.region[static_cast<uint32_t>(Region::kKv)]);
  ChooseChunk();
}

void Executor::ChooseChunk() {
  const SessionPlan& plan = core_.plan;
  if (!kHasDevices || !plan.device_chooses_chunk) return;
  const DeviceOps* device = backend().device;
  const uint32_t wanted =
      device == nullptr ? kDefaultPrefillChunk : device->chunk_rows(in_use_->state);
  core_.chunk_rows = Min(plan.options.prefill_chunk, wanted);
}

}  // namespace arn

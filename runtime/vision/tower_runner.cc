#include "runtime/vision/tower_runner.h"

#include "kernels/contract/check.h"
#include "runtime/memory/devices.h"

namespace arn {
namespace {

bool IsDeviceFailure(Status status) {
  return status == Status::kDevice || status == Status::kDeviceLost ||
         status == Status::kOutOfMemory;
}

}  // namespace

bool IsTowerOnDevice(const ImagePlan& plan) {
  return kHasDevices && plan.backend->host_kv == nullptr;
}

TowerRunner::TowerRunner(const ImagePlan& plan, const Memory& memory)
    : plan_(plan), memory_(memory), reason_(plan.refused) {}

// Loads the fallback first: it is needed if the device fails.
Status TowerRunner::Load([[maybe_unused]] const VisionSpec& vision, Diag* diag) {
  BackendOptions options = OptionsOfThreads(plan_.options.n_threads);
  options.gpu = plan_.options.gpu;
  const auto load = [&](const Backend& backend, const BackendPlan& slices, void** state) {
    return backend.load(plan_.program, options, slices, memory_, state, diag);
  };
  if (plan_.fallback != nullptr) ARN_TRY(load(*plan_.fallback, plan_.fallback_plan, &fallback_));
  Status status = load(*plan_.backend, plan_.backend_plan, &planned_);
  if constexpr (kHasDevices) {
    if (!IsTowerOnDevice(plan_)) return status;
    if (status == Status::kOk && !plan_.options.trusts_device) status = TestDevice(vision, diag);
    if (status == Status::kOk) plan_.backend->device->trust(planned_);
    if (status == Status::kOk || plan_.fallback == nullptr) return status;
    SwitchToFallback(diag);
    return Status::kOk;
  }
  return status;
}

void TowerRunner::Unload() {
  if (planned_ != nullptr) plan_.backend->unload(planned_);
  if (fallback_ != nullptr) plan_.fallback->unload(fallback_);
}

void TowerRunner::SwitchToFallback(Diag* reason) {
  reason_ = *reason;
  reason->Clear();
  is_on_fallback_ = true;
}

uint32_t TowerRunner::n_results() const {
  const uint64_t floats = uint64_t{plan_.program.max_pooled_rows} * plan_.program.values[0].width;
  return static_cast<uint32_t>(plan_.results.bytes / sizeof(float) / floats);
}

uint64_t TowerRunner::ResultFloats(uint32_t index, const RunArgs& args) const {
  return uint64_t{PooledRows(plan_.program, args)} * plan_.program.values[index].width;
}

Status TowerRunner::RunPlanned(const RunArgs& args, Diag* diag) {
  ARN_TRY(plan_.backend->run(planned_, args, diag));
  if (!IsTowerOnDevice(plan_)) return Status::kOk;
  auto* to = memory_.As<float>(plan_.results);
  for (uint32_t i = 0; i < n_results(); ++i) {
    const Value& value = plan_.program.values[i];
    const Span<std::byte> rows(reinterpret_cast<std::byte*>(to),
                               static_cast<size_t>(ResultFloats(i, args) * sizeof(float)));
    ARN_TRY(plan_.backend->device->read_values(planned_, value.slice, rows, diag));
    to += uint64_t{plan_.program.max_pooled_rows} * value.width;
  }
  return Status::kOk;
}

Status TowerRunner::Run(const RunArgs& args, Diag* diag) {
  if (kHasDevices && is_on_fallback_) return plan_.fallback->run(fallback_, args, diag);
  const Status status = RunPlanned(args, diag);
  if (!kHasDevices || plan_.fallback == nullptr || !IsDeviceFailure(status)) return status;
  SwitchToFallback(diag);
  return plan_.fallback->run(fallback_, args, diag);
}

const float* TowerRunner::Rows(uint32_t index) const {
  const Value& value = plan_.program.values[index];
  if (!IsTowerOnDevice(plan_) || is_on_fallback_) return memory_.As<float>(value.slice);
  return memory_.As<float>(plan_.results) +
         uint64_t{index} * plan_.program.max_pooled_rows * value.width;
}

const char* TowerRunner::device_name() const {
  const DeviceOps* device = backend().device;
  return device == nullptr ? "" : device->name(planned_);
}

const char* TowerRunner::kernel_names() const {
  const DeviceOps* device = backend().device;
  return device == nullptr ? "" : device->kernel_names(planned_);
}

const char* TowerRunner::quirks() const {
  const DeviceOps* device = backend().device;
  return device == nullptr ? "" : device->quirks(planned_);
}

uint64_t TowerRunner::imported_bytes() const {
  const DeviceOps* device = backend().device;
  return !kHasDevices || device == nullptr ? 0 : device->imported_bytes(planned_);
}

}  // namespace arn

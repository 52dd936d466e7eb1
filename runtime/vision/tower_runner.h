// TowerRunner: runs an image encoder's program on the backend that was asked for, or on its
// fallback once a device fails. Both are loaded by Load(), so that the change allocates nothing.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "platform/base/diag.h"
#include "runtime/model/self_test.h"
#include "runtime/model/vision_spec.h"
#include "runtime/vision/image_plan.h"

namespace arn {

// True if the planned backend computes on a device.
bool IsTowerOnDevice(const ImagePlan& plan);

class TowerRunner {
 public:
  // `plan` and `memory` must outlive it.
  TowerRunner(const ImagePlan& plan, const Memory& memory);
  TowerRunner(const TowerRunner&) = delete;
  TowerRunner& operator=(const TowerRunner&) = delete;

  // Loads the backends. A device is tested with made-up patches, unless it is trusted: kDevice if
  // its rows are wrong, or the fallback.
  Status Load(const VisionSpec& vision, Diag* diag);
  void Unload();

  // As Backend::run.
  Status Run(const RunArgs& args, Diag* diag);
  // Returns the rows that the last run wrote to value `index`: [rows, width of the value].
  const float* Rows(uint32_t index) const;

  // Backend in use, what it says about itself, and why it is not the planned one; "" if it is.
  const Backend& backend() const { return is_on_fallback_ ? *plan_.fallback : *plan_.backend; }
  const char* device_name() const;
  const char* kernel_names() const;
  const char* quirks() const;
  uint64_t imported_bytes() const;
  const char* reason() const { return reason_.text(); }

 private:
  Status RunPlanned(const RunArgs& args, Diag* diag);
  void SwitchToFallback(Diag* reason);
  // The device's rows against those of the host.
  Status TestDevice(const VisionSpec& vision, Diag* diag);
  Status TestRows(const RunArgs& args, float* expected, Diag* diag);
  Status ExpectRows(const RunArgs& args, float* expected, Diag* diag);
  // Floats of value `index` in a run, and of all results.
  uint64_t ResultFloats(uint32_t index, const RunArgs& args) const;
  uint32_t n_results() const;

  const ImagePlan& plan_;
  const Memory& memory_;
  void* planned_ = nullptr;
  void* fallback_ = nullptr;
  bool is_on_fallback_ = false;
  Diag reason_;
};

}  // namespace arn

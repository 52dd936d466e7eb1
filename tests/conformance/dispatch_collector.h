// Collects the dispatches of a lowered program.
#pragma once

#include <vector>

#include "kernels/vulkan/lower/dispatch.h"

namespace arn::conformance {

class DispatchCollector final : public vulkan::DispatchSink {
 public:
  Status BeginStep(uint32_t) override { return Status::kOk; }
  Status BeginEdits(uint32_t) override { return Status::kOk; }
  Status BeginChoice(uint32_t*) override { return Status::kOk; }
  Status Add(const vulkan::Dispatch& dispatch, Diag*) override {
    dispatches.push_back(dispatch);
    return Status::kOk;
  }
  std::vector<vulkan::Dispatch> dispatches;
};

}  // namespace arn::conformance

// WholeInputPlan: the memory of a program that sees whole inputs and has no KV cache. Embedders and
// image encoders add what is theirs.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "platform/base/diag.h"
#include "platform/base/layout.h"
#include "platform/base/status.h"
#include "runtime/model/decoder_program.h"
#include "runtime/model/model_spec.h"

namespace arn {

struct WholeInputPlan {
  const Backend* backend = nullptr;
  const Backend* fallback = nullptr;  // takes over if the backend fails; null: nothing does
  Program program;
  BackendPlan backend_plan, fallback_plan;
  Slice object;  // that the block is for
  uint64_t region_bytes[kRegionCount] = {};

  // Bytes of the block: activations on a device are not in it.
  uint64_t BlockBytes(Region region) const;
  uint64_t TotalBytes() const;
  // Copies a model's program, whose sizes then belong to this plan.
  void Copy(const Program& of_model);
  // Points the program to this plan's copies. Call after copying the plan.
  void Bind();

  Value values[kMaxValues];
  RopeKind ropes[kMaxRopeKinds];
};

// kUnsupported unless the backend keeps activations on the host. `who`: "embedders".
Status CheckRunsOnHost(const Backend* backend, const char* who, Diag* diag);
// 0 becomes the number of performance CPUs. kBadArgument: too many.
Status ResolveThreads(uint32_t* n_threads, Diag* diag);
BackendOptions OptionsOfThreads(uint32_t n_threads);
// Adds activations and what the backends need, and sets region_bytes. REQUIRES: the program's sizes
// are set, and everything else is in the layout.
Status PlanProgram(uint32_t n_threads, Layout* layout, WholeInputPlan* plan, Diag* diag);
// Splits a block of TotalBytes().
Memory PartitionBlock(const WholeInputPlan& plan, std::byte* block);
// Loads the plan's program on its backend. Errors are those of Backend::load.
Status LoadProgram(const WholeInputPlan& plan, uint32_t n_threads, const Memory& memory,
                   void** state, Diag* diag);

}  // namespace arn

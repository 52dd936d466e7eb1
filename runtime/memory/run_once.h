// Runs a whole-input program on a backend that is loaded for this run alone: what a device is
// tested against.
#pragma once

#include "platform/os/pages.h"
#include "runtime/memory/whole_input_plan.h"

namespace arn {

// Calls keep(program, memory) after the run, while its values are there. Takes and releases the
// memory that the run needs.
template <typename Keep>
Status RunOnce(const Backend* backend, const Program& program, uint32_t n_threads,
               uint32_t n_pooled_rows, const RunArgs& args, const Keep& keep, Diag* diag) {
  WholeInputPlan host;
  host.backend = backend;
  host.Copy(program);
  host.program.max_encoder_rows = args.sequences[0].n_rows;
  host.program.max_pooled_rows = n_pooled_rows;
  Layout layout;
  ARN_TRY(PlanProgram(n_threads, &layout, &host, diag));
  const Result<Span<std::byte>> pages = ReservePages(host.TotalBytes());
  if (!pages.ok()) return diag->Fail(pages.status(), "not enough memory for the device self-test");
  const Memory memory = PartitionBlock(host, pages.value().data());
  void* state = nullptr;
  Status status = LoadProgram(host, n_threads, memory, &state, diag);
  if (status == Status::kOk) status = host.backend->run(state, args, diag);
  if (status == Status::kOk) keep(host.program, memory);
  host.backend->unload(state);
  ReleasePages(pages.value());
  return status;
}

}  // namespace arn

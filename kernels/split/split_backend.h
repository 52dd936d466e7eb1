// Split backend: prompts run on a device, which multiplies faster; single tokens run on the host,
// which often reads memory as fast and has less latency. If the host can map the device's pages,
// both use the same pages. Otherwise each has its own copy, and a page is copied when one side
// needs it and the other has changed it.
#pragma once

#include "kernels/contract/backend.h"

namespace arn {

struct SplitOptions {
  const Backend* device;   // REQUIRES: Backend::device
  const Backend* host;     // the session's fallback. REQUIRES: Backend::host_kv
  bool copies_kv = false;  // copies pages even if the device's pages are mapped to the host
};

namespace split {

// The entries of the backend; those without a state are given the options.
Status Plan(const SplitOptions& split, const Program& program, const BackendOptions& options,
            Layout* layout, BackendPlan* plan, Diag* diag);
Status Load(const SplitOptions& split, const Program& program, const BackendOptions& options,
            const BackendPlan& plan, const Memory& memory, void** state, Diag* diag);
Status Run(void* state, const RunArgs& args, Diag* diag);
Status KvRead(void* state, Slice from, Span<std::byte> to);
Status KvWrite(void* state, Slice to, Span<const std::byte> from);
void Unload(void* state);
extern const DeviceOps kDevice;
extern const PartnerOps kPartner;

}  // namespace split

// The split backend of two others. Parts::kName is its name; Parts::Options() returns its options.
template <typename Parts>
inline constexpr Backend kSplitBackend = {
    .name = Parts::kName,
    .plan =
        [](const Program& program, const BackendOptions& options, Layout* layout, BackendPlan* plan,
           Diag* diag) {
          return split::Plan(Parts::Options(), program, options, layout, plan, diag);
        },
    .load =
        [](const Program& program, const BackendOptions& options, const BackendPlan& plan,
           const Memory& memory, void** state, Diag* diag) {
          return split::Load(Parts::Options(), program, options, plan, memory, state, diag);
        },
    .run = split::Run,
    .kv_read = split::KvRead,
    .kv_write = split::KvWrite,
    .unload = split::Unload,
    .takes_prefix_masks = true,
    .takes_embeddings = true,
    .device = &split::kDevice,
    .partner = &split::kPartner,
};

// For tests: true if both sides use the same pages.
bool SplitSharesKv(const void* state);

}  // namespace arn

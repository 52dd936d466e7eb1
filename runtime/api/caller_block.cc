#include "runtime/api/caller_block.h"

#include "platform/os/pages.h"

namespace arn::api {

Status FindBlock(const char* what, uint64_t needed, void* memory, uint64_t memory_bytes,
                 CallerBlock* out, Diag* diag) {
  *out = {{static_cast<std::byte*>(memory), static_cast<size_t>(needed)}, {}};
  if (memory == nullptr) {
    const Result<Span<std::byte>> reserved = ReservePages(needed);
    if (!reserved.ok()) {
      return diag->Fail(reserved.status(), "cannot reserve %llu bytes for the %s",
                        static_cast<unsigned long long>(needed), what);
    }
    out->block = out->pages = reserved.value();
    return Status::kOk;
  }
  if (reinterpret_cast<uintptr_t>(memory) % kSliceAlign != 0) {
    return diag->Fail(Status::kBadArgument, "memory is not aligned to %u bytes", kSliceAlign);
  }
  if (memory_bytes >= needed) return Status::kOk;
  return diag->Fail(Status::kOutOfMemory, "memory has %llu bytes, the %s needs %llu",
                    static_cast<unsigned long long>(memory_bytes), what,
                    static_cast<unsigned long long>(needed));
}

}  // namespace arn::api

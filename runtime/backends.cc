#include "runtime/backends.h"

#include "kernels/cpu/backend_cpu.h"
#include "kernels/reference/backend_reference.h"

namespace arn {

const Backend* FindBackend(BackendId id) {
  switch (id) {
    case BackendId::kCpu: return CpuBackend();
    case BackendId::kReference: return ReferenceBackend();
  }
  return nullptr;
}

const LogitsOps* FindLogitsOps(BackendId id) {
  switch (id) {
    case BackendId::kCpu: return CpuLogitsOps();
    case BackendId::kReference: return ReferenceLogitsOps();
  }
  return nullptr;
}

}  // namespace arn

#include "tests/support/failing_arena.h"

#include "platform/base/arena.h"

namespace arn::test {
namespace {

uint64_t allocations_left = 0;
bool is_counting = false, failed = false;

}  // namespace

FailingAllocation::FailingAllocation(uint64_t n) {
  allocations_left = n;
  is_counting = true;
  failed = false;
}

FailingAllocation::~FailingAllocation() { is_counting = false; }

bool FailingAllocation::has_failed() const { return failed; }

// The linker's --wrap leads the calls of Arena::Allocate here.
Result<void*> RealAllocate(Arena* arena, uint64_t bytes,
                           uint64_t align) __asm__("__real_" ARN_ARENA_ALLOCATE);
Result<void*> WrappedAllocate(Arena* arena, uint64_t bytes,
                              uint64_t align) __asm__("__wrap_" ARN_ARENA_ALLOCATE);

Result<void*> WrappedAllocate(Arena* arena, uint64_t bytes, uint64_t align) {
  if (is_counting && allocations_left-- == 0) {
    is_counting = false;
    failed = true;
    return Status::kOutOfMemory;
  }
  return RealAllocate(arena, bytes, align);
}

}  // namespace arn::test

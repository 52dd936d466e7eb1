#include "runtime/cache/page_pool.h"

namespace arn {

Result<PagePool::Plan> PagePool::MakePlan(uint32_t n_pages, Layout* layout) {
  Plan plan;
  ARN_ASSIGN(plan.free_pages, layout->AddArray(Region::kConstants, n_pages, sizeof(uint32_t)));
  ARN_ASSIGN(plan.references, layout->AddArray(Region::kConstants, n_pages, sizeof(uint32_t)));
  return plan;
}

void PagePool::Init(const Plan& plan, const Memory& memory, uint32_t n_pages) {
  free_ = memory.As<uint32_t>(plan.free_pages);
  references_ = memory.As<uint32_t>(plan.references);
  n_pages_ = n_pages;
  Restart(0);
}

void PagePool::Restart(uint32_t n) {
  n_free_ = n_pages_ - n;
  // Low pages first, so that a short sequence touches contiguous memory.
  for (uint32_t i = 0; i < n_free_; ++i) free_[i] = n_pages_ - 1 - i;
  for (uint32_t i = 0; i < n_pages_; ++i) references_[i] = 0;
}

uint32_t PagePool::Take() {
  const uint32_t page = free_[--n_free_];
  references_[page] = 1;
  return page;
}

void PagePool::Release(uint32_t page) {
  if (--references_[page] == 0) free_[n_free_++] = page;
}

}  // namespace arn

// PagePool: reference-counted pages of one group. Integers only.
#pragma once

#include <cstdint>

#include "platform/base/layout.h"
#include "platform/base/result.h"

namespace arn {

class PagePool {
 public:
  // Slices of the free stack and the reference counts.
  struct Plan {
    Slice free_pages;  // u32 [n_pages]
    Slice references;  // u32 [n_pages]
  };
  static Result<Plan> MakePlan(uint32_t n_pages, Layout* layout);

  // Frees all pages.
  void Init(const Plan& plan, const Memory& memory, uint32_t n_pages);
  // Frees all pages except the first n. The caller must retain each of those.
  void Restart(uint32_t n);

  uint32_t n_pages() const { return n_pages_; }
  uint32_t n_free() const { return n_free_; }
  uint32_t n_used() const { return n_pages_ - n_free_; }
  // Returns the number of tables that contain the page.
  uint32_t References(uint32_t page) const { return references_[page]; }

  // Takes a page with one reference. REQUIRES: n_free() > 0.
  uint32_t Take();
  void Retain(uint32_t page) { ++references_[page]; }
  // Drops a reference; frees the page at zero.
  void Release(uint32_t page);

 private:
  uint32_t* free_ = nullptr;  // stack; its top is the next page to take
  uint32_t* references_ = nullptr;
  uint32_t n_free_ = 0;
  uint32_t n_pages_ = 0;
};

}  // namespace arn

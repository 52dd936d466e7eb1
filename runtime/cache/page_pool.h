// PagePool: the pages of one group, counted by how many tables name them. Integers only.
#pragma once

#include <cstdint>

#include "platform/base/layout.h"
#include "platform/base/result.h"

namespace arn {

class PagePool {
 public:
  // Where the free stack and the counts lie.
  struct Plan {
    Slice free_pages;  // u32 [n_pages]
    Slice references;  // u32 [n_pages]
  };
  static Result<Plan> MakePlan(uint32_t n_pages, Layout* layout);

  // All pages free.
  void Init(const Plan& plan, const Memory& memory, uint32_t n_pages);
  // All pages free but the first n, which nothing names yet: the caller retains each.
  void Restart(uint32_t n);

  uint32_t n_pages() const { return n_pages_; }
  uint32_t n_free() const { return n_free_; }
  uint32_t n_used() const { return n_pages_ - n_free_; }
  // How many tables name the page.
  uint32_t References(uint32_t page) const { return references_[page]; }

  // The caller has checked that n_free() > 0. The page has one reference.
  uint32_t Take();
  void Retain(uint32_t page) { ++references_[page]; }
  // Free once nothing names it.
  void Release(uint32_t page);

 private:
  uint32_t* free_ = nullptr;  // a stack; its top is the next page to take
  uint32_t* references_ = nullptr;
  uint32_t n_free_ = 0;
  uint32_t n_pages_ = 0;
};

}  // namespace arn

// RequestTable: the requests of a scheduler in the order in which they came.
#pragma once

#include <cstdint>

#include "platform/base/span.h"
#include "runtime/scheduler/request.h"

namespace arn {

class RequestTable {
 public:
  // order: as many as records. All are made free.
  void Init(Span<RequestRecord> records, Span<uint32_t> order);

  uint32_t size() const { return n_; }
  uint32_t capacity() const { return static_cast<uint32_t>(records_.size()); }
  // The i-th oldest. REQUIRES: i < size().
  RequestRecord& At(uint32_t i) const { return records_[order_[i]]; }
  // Returns the request of this number; null: there is none, or its last event was taken.
  RequestRecord* Find(uint64_t id) const;
  // Returns a record that waits, with the next number; null: all are taken.
  RequestRecord* Add(const Request& request);
  // Frees the record of a request. REQUIRES: it is here.
  void Remove(uint64_t id);

 private:
  Span<RequestRecord> records_;
  Span<uint32_t> order_;  // indices: of the requests, oldest first, and then of free records
  uint32_t n_ = 0;
  uint64_t last_id_ = 0;
};

}  // namespace arn

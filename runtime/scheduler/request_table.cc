#include "runtime/scheduler/request_table.h"

#include <new>

namespace arn {

void RequestTable::Init(Span<RequestRecord> records, Span<uint32_t> order) {
  records_ = records;
  order_ = order;
  n_ = 0;
  for (uint32_t i = 0; i < records.size(); ++i) {
    new (&records_[i]) RequestRecord();
    order_[i] = i;
  }
}

RequestRecord* RequestTable::Find(uint64_t id) const {
  for (uint32_t i = 0; i < n_; ++i) {
    if (At(i).id == id) return &At(i);
  }
  return nullptr;
}

RequestRecord* RequestTable::Add(const Request& request) {
  if (n_ == capacity()) return nullptr;
  RequestRecord* record = &records_[order_[n_++]];
  *record = RequestRecord();
  record->request = request;
  record->id = ++last_id_;
  record->phase = RequestPhase::kWaiting;
  return record;
}

void RequestTable::Remove(uint64_t id) {
  uint32_t i = 0;
  while (At(i).id != id) ++i;
  At(i).phase = RequestPhase::kFree;
  const uint32_t index = order_[i];
  --n_;
  for (; i < n_; ++i) order_[i] = order_[i + 1];
  order_[n_] = index;
}

}  // namespace arn

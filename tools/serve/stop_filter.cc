#include "tools/serve/stop_filter.h"

#include <algorithm>

namespace arn::serve {

std::string StopFilter::Add(std::string_view piece) {
  if (has_stopped_) return "";
  if (stops_.empty()) return std::string(piece);
  held_ += piece;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    has_stopped_ = true;
    return held_.substr(0, first);
  }
  size_t keep = 0;  // bytes at the end that begin a stop string
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n) {
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) keep = n;
    }
  }
  // Not inside a character.
  while (keep < held_.size() && (static_cast<uint8_t>(held_[held_.size() - keep]) & 0xC0) == 0x80 &&
         keep > 0) {
    ++keep;
  }
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopFilter::End() {
  std::string rest;
  if (!has_stopped_) rest.swap(held_);
  return rest;
}

}  // namespace arn::serve

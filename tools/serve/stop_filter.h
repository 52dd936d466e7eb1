// StopFilter: cuts a text at the first of some strings, and holds back what may become one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace arn::serve {

class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Adds a piece and returns what may be shown. Once a stop string came, nothing more is.
  std::string Add(std::string_view piece);
  // Returns what was held back: the text has ended.
  std::string End();
  bool has_stopped() const { return has_stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool has_stopped_ = false;
};

}  // namespace arn::serve

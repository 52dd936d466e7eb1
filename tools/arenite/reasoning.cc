#include "tools/arenite/reasoning.h"

#include <algorithm>

namespace arn::tool {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";

// Returns the longest end of `text` that begins `mark`.
size_t PartialMark(const std::string& text, std::string_view mark) {
  for (size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n) {
    if (std::string_view(text).substr(text.size() - n) == mark.substr(0, n)) return n;
  }
  return 0;
}

}  // namespace

void ReasoningSplitter::Add(std::string_view text, const OnPiece& on_piece) {
  held_ += text;
  for (;;) {
    const std::string_view mark = is_inside_ ? kClose : kOpen;
    const size_t at = held_.find(mark);
    if (at == std::string::npos) {
      const size_t n = held_.size() - PartialMark(held_, mark);
      if (n > 0) on_piece(std::string_view(held_).substr(0, n), is_inside_);
      held_.erase(0, n);
      return;
    }
    const size_t end = is_inside_ ? at + mark.size() : at;
    if (end > 0) on_piece(std::string_view(held_).substr(0, end), is_inside_);
    held_.erase(0, end);
    if (!is_inside_) {
      on_piece(mark, true);
      held_.erase(0, mark.size());
    }
    is_inside_ = !is_inside_;
  }
}

void ReasoningSplitter::End(const OnPiece& on_piece) {
  if (!held_.empty()) on_piece(held_, is_inside_);
  held_.clear();
}

bool EndsInsideReasoning(std::string_view prompt) {
  const size_t end = prompt.find_last_not_of(" \n\t");
  if (end == std::string_view::npos) return false;
  prompt = prompt.substr(0, end + 1);
  return prompt.size() >= kOpen.size() && prompt.substr(prompt.size() - kOpen.size()) == kOpen;
}

}  // namespace arn::tool

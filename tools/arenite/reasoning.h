// Reasoning in an answer: the text between <think> and </think>.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace arn::tool {

// Splits a stream of text into pieces of answer and of reasoning. The marks are part of the
// reasoning.
class ReasoningSplitter {
 public:
  using OnPiece = std::function<void(std::string_view text, bool is_reasoning)>;

  // `begins_inside`: the prompt ends with an opening mark.
  explicit ReasoningSplitter(bool begins_inside) : is_inside_(begins_inside) {}
  // Passes on what cannot be the beginning of a mark.
  void Add(std::string_view text, const OnPiece& on_piece);
  // Passes on the rest.
  void End(const OnPiece& on_piece);

 private:
  bool is_inside_;
  std::string held_;
};

// Returns true if a prompt ends with an opening mark, white space aside.
bool EndsInsideReasoning(std::string_view prompt);

}  // namespace arn::tool

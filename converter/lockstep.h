// Bundles of one model, run over all windows of a text at once and product by product: nobody makes
// a product before everybody has come to it. So whoever is told sees what a matrix multiplies over
// the whole text, in one bundle and in another, and may exchange the matrix before it is used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "converter/runner.h"

namespace arn::convert {

// The text as it is run: tokenised as a whole, cut into windows that do not overlap.
struct CalibrationText {
  std::vector<int32_t> ids;
  uint32_t window = 0;  // tokens of each, but perhaps the last

  size_t n_windows() const { return (ids.size() + window - 1) / window; }
  size_t TokensOf(size_t w) const { return std::min<size_t>(window, ids.size() - w * window); }
};

// What one window's run is about to multiply: [n_rows, width]; and what the products are added to,
// [n_rows, out_width], or null. An expert to which none of its tokens was routed has no rows.
struct ProductRows {
  const float* rows = nullptr;
  size_t n_rows = 0;
  const float* sums = nullptr;
};

// What the output head's product is called, also where its matrix is the embedding: bundles of one
// model may differ in that.
inline constexpr const char* kHeadProduct = "head";
std::string ProductName(const char* tensor);

struct Product {
  std::string tensor;  // ProductName() of the matrix
  size_t width = 0;
  size_t out_width = 0;
  std::vector<std::vector<ProductRows>> rows;  // by bundle, by window; valid during the call
};
// Called on the caller's thread. May throw, which ends all runs.
using OnProduct = std::function<void(const Product&)>;

// The order of products is that of the model's steps, experts by their places in `experts`: the
// names of all their matrices, in the order in which a layer runs them. One session a bundle and
// window, each with KV in f32 and room for the window's activations. `n_threads` (not 0) run at
// once; what is seen does not depend on it. The output head sees the last token of each window
// alone.
void RunInLockstep(const std::vector<const Runner*>& bundles, const CalibrationText& text,
                   const std::vector<std::string>& experts, uint32_t n_threads,
                   const OnProduct& on_product);

// The options of those sessions.
arn_session_options LockstepSession(const CalibrationText& text);

}  // namespace arn::convert

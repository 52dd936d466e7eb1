// Checks the shapes of the tensors that a model names.
#pragma once

#include <cinttypes>
#include <cstdint>

#include "kernels/contract/program.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "platform/base/status.h"

namespace arn {

// Looks up tensor `index`, checks it against the required shape. Sets *out, if given, to it.
class Shapes {
 public:
  Shapes(Span<const Weight> weights, Diag* diag) : weights_(weights), diag_(diag) {}

  Status Matrix(const char* place, uint32_t layer, uint32_t index, uint64_t rows, uint64_t cols,
                WeightId* out = nullptr) {
    return Check(place, layer, index, false, rows, cols, out);
  }
  Status Vector(const char* place, uint32_t layer, uint32_t index, uint64_t size,
                WeightId* out = nullptr) {
    return Check(place, layer, index, true, 1, size, out);
  }

  // Returns the columns of a tensor, 0 if there is none of this index.
  uint32_t Cols(uint32_t index) const { return index < weights_.size() ? weights_[index].cols : 0; }

 private:
  Status Check(const char* place, uint32_t layer, uint32_t index, bool is_vector, uint64_t rows,
               uint64_t cols, WeightId* out) {
    if (index >= weights_.size()) {
      return diag_->Fail(Status::kBadBundle, "layer %u %s: tensor %u of %zu", layer, place, index,
                         weights_.size());
    }
    const Weight& w = weights_[index];
    if (w.is_vector != is_vector || w.rows != rows || w.cols != cols) {
      return diag_->Fail(Status::kBadBundle,
                         "layer %u %s: tensor %u is a %s of [%u, %u], expected a %s of [%" PRIu64
                         ", %" PRIu64 "]",
                         layer, place, index, w.is_vector ? "vector" : "matrix", w.rows, w.cols,
                         is_vector ? "vector" : "matrix", rows, cols);
    }
    if (out != nullptr) *out = index;
    return Status::kOk;
  }

  Span<const Weight> weights_;
  Diag* diag_;
};

}  // namespace arn

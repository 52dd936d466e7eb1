#include "converter/write/source_rows.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <string>

#include "converter/base/error.h"
#include "converter/quantize/quantize.h"

namespace arn::convert {
namespace {

[[noreturn]] void FailValue(const Checkpoint::Entry& entry, uint64_t index, const char* problem) {
  const std::vector<uint64_t>& shape = entry.tensor->shape;
  std::string at = "]";
  for (size_t i = shape.size(); i-- > 0; index /= shape[i]) {
    at = (i == 0 ? "[" : ", ") + std::to_string(index % shape[i]) + at;
  }
  Fail("%s: tensor %s: the value at %s %s", entry.file->path().c_str(), entry.tensor->name.c_str(),
       at.c_str(), problem);
}

// Reads elements [first, first + count) as floats; refuses NaN and infinity.
void ReadFinite(const Checkpoint::Entry& entry, uint64_t first, uint64_t count, float* out) {
  Checkpoint::ReadFloats(entry, first, count, out);
  const size_t bad = FindNotFinite(out, static_cast<size_t>(count));
  if (bad < count) {
    FailValue(entry, first + bad, std::isnan(out[bad]) ? "is NaN" : "is infinite");
  }
}

// Reads all elements; infinities become the largest numbers. Refuses NaN.
void ReadBounds(const Checkpoint::Entry& entry, std::vector<float>* out) {
  Checkpoint::ReadFloats(entry, 0, out->size(), out->data());
  for (size_t i = 0; i < out->size(); ++i) {
    if (std::isnan((*out)[i])) FailValue(entry, i, "is NaN");
    (*out)[i] = std::clamp((*out)[i], -FLT_MAX, FLT_MAX);
  }
}

// Returns the part that holds a row of the whole matrix, and the row inside it.
const SourcePart& PartOfRow(const PlannedTensor& tensor, uint32_t row, uint32_t* row_in_part) {
  size_t i = 0;
  while (row >= tensor.parts[i].rows) row -= tensor.parts[i++].rows;
  *row_in_part = row;
  return tensor.parts[i];
}

// Reads rows [row, row + n) of a part stored as [cols, rows].
void ReadTransposed(const SourcePart& part, uint32_t row, uint32_t n, uint32_t cols, float* out) {
  const uint64_t stored_cols = part.transposed_rows;
  const uint32_t first = part.SourceRow(row), last = part.SourceRow(row + n - 1);
  std::vector<float> column(last - first + 1);
  const Checkpoint::Entry* source = part.weight;
  uint64_t begin = 0;  // column of the whole where the source begins
  for (uint32_t c = 0; c < cols; ++c) {
    const uint64_t stored = part.SourceColumn(c) - begin;
    ReadFinite(*source, part.first_element + stored * stored_cols + first, column.size(),
               column.data());
    const bool is_last = (stored + 1) * stored_cols == source->tensor->elements();
    if (is_last && part.more_columns[0] != nullptr && c + 1 < cols) {
      source = source == part.weight ? part.more_columns[0] : part.more_columns[1];
      begin = uint64_t{c} + 1;
    }
    for (uint32_t r = 0; r < n; ++r) {
      out[uint64_t{r} * cols + c] = column[part.SourceRow(row + r) - first];
    }
  }
}

// Replaces x[n, cols] by -e^x, for a part that is stored transposed, from its row `first` on, or
// one that is a vector.
void NegativeExponentials(const SourcePart& part, uint32_t first, uint32_t n, uint32_t cols,
                          float* x) {
  for (uint64_t i = 0; i < uint64_t{n} * cols; ++i) {
    x[i] = static_cast<float>(-std::exp(static_cast<double>(x[i])));
    if (std::isfinite(x[i])) continue;
    const bool is_transposed = part.transposed_rows != 0;
    const uint64_t at = is_transposed ? i % cols * part.transposed_rows + first + i / cols : i;
    FailValue(*part.weight, at, "is too large for an exponent");
  }
}

// Reorders each row from [cols / taps, taps] to [taps, cols / taps].
void PutTapsFirst(uint32_t taps, uint32_t n, uint32_t cols, float* rows) {
  std::vector<float> row(cols);
  const uint32_t inputs = cols / taps;
  for (uint32_t r = 0; r < n; ++r) {
    float* at = rows + uint64_t{r} * cols;
    std::copy(at, at + cols, row.begin());
    for (uint32_t t = 0; t < taps; ++t) {
      for (uint32_t i = 0; i < inputs; ++i) at[t * inputs + i] = row[i * taps + t];
    }
  }
}

// Reorders the columns of each row.
void PutColumnsInOrder(const SourcePart& part, uint32_t n, uint32_t cols, float* rows) {
  std::vector<float> row(cols);
  for (uint32_t r = 0; r < n; ++r) {
    float* at = rows + uint64_t{r} * cols;
    std::copy(at, at + cols, row.begin());
    for (uint32_t c = 0; c < cols; ++c) at[c] = row[part.SourceColumn(c)];
  }
}

// Reads rows [row, row + n) of a part with frames. REQUIRES: its rows are consecutive.
void ReadSummed(const SourcePart& part, uint32_t row, uint32_t n, uint32_t cols, float* out) {
  std::vector<float> stored(uint64_t{part.frames} * cols);
  for (uint32_t r = 0; r < n; ++r, out += cols) {
    ReadFinite(*part.weight, part.first_element + part.SourceRow(row + r) * stored.size(),
               stored.size(), stored.data());
    const float* from = stored.data();
    for (uint32_t first = 0; first < cols; first += part.frame_cols) {
      for (uint32_t f = 0; f < part.frames; ++f, from += part.frame_cols) {
        for (uint32_t i = 0; i < part.frame_cols; ++i) {
          out[first + i] = f == 0 ? from[i] : out[first + i] + from[i];
        }
      }
    }
  }
}

}  // namespace

void ReadRows(const PlannedTensor& tensor, uint32_t first, uint32_t rows, float* values) {
  const uint64_t cols = tensor.cols;
  if (!tensor.slopes.empty()) {
    for (uint32_t r = 0; r < rows; ++r) {
      for (uint64_t h = 0; h < cols; ++h) {
        values[r * cols + h] = -static_cast<float>(first + r) * tensor.slopes[h];
      }
    }
    return;
  }
  for (uint32_t done = 0; done < rows;) {
    uint32_t row = 0;
    const SourcePart& part = PartOfRow(tensor, first + done, &row);
    const bool is_transposed = part.transposed_rows != 0;
    const uint32_t n = std::min(is_transposed ? part.rows - row : part.RunLength(row), rows - done);
    float* to = values + done * cols;
    if (is_transposed) {
      ReadTransposed(part, row, n, tensor.cols, to);
    } else if (part.frames != 0) {
      ReadSummed(part, row, n, tensor.cols, to);
    } else {
      ReadFinite(*part.weight, part.first_element + part.SourceRow(row) * cols, n * cols, to);
    }
    if (!is_transposed && !part.column_turns.is_in_order()) {
      PutColumnsInOrder(part, n, tensor.cols, to);
    }
    if (part.taps != 0) PutTapsFirst(part.taps, n, tensor.cols, to);
    if (const float factor = part.factor * part.input_factor; factor != 1.0f) {
      for (uint64_t i = 0; i < n * cols; ++i) to[i] *= factor;
    }
    if (part.is_negative_log) NegativeExponentials(part, row, n, tensor.cols, to);
    if (part.zero_row && *part.zero_row >= row && *part.zero_row < row + n) {
      std::fill_n(to + (*part.zero_row - row) * cols, cols, 0.0f);
    }
    done += n;
  }
}

std::vector<float> ReadBias(const PlannedTensor& tensor) {
  if (!tensor.has_bias()) return {};
  std::vector<float> bias(tensor.rows, 0.0f);
  uint32_t row = 0;
  for (const SourcePart& part : tensor.parts) {
    for (uint32_t done = 0; part.bias != nullptr && done < part.rows;) {
      const uint32_t n = std::min(part.RunLength(done), part.rows - done);
      ReadFinite(*part.bias, part.first_bias + part.SourceRow(done), n, bias.data() + row + done);
      done += n;
    }
    for (uint32_t i = 0; i < part.rows; ++i) bias[row + i] *= part.factor;
    row += part.rows;
  }
  return bias;
}

std::vector<float> ReadVector(const PlannedTensor& tensor) {
  if (!tensor.literal.empty()) return tensor.literal;
  std::vector<float> values(tensor.cols);
  uint64_t at = 0;
  for (const SourcePart& part : tensor.parts) {
    std::vector<float> stored(part.weight->tensor->elements());
    if (part.is_bound) {
      ReadBounds(*part.weight, &stored);
    } else {
      ReadFinite(*part.weight, 0, stored.size(), stored.data());
    }
    for (uint32_t i = 0; i < stored.size(); ++i) {
      values[at + i] = stored[part.SourceColumn(i)] * part.factor;
    }
    at += stored.size();
  }
  for (float& value : values) value = (value + tensor.offset) * tensor.factor;
  return values;
}

void FailOverflow(const PlannedTensor& tensor, uint32_t row, size_t col) {
  uint32_t row_in_part = 0;
  const SourcePart& part = PartOfRow(tensor, row, &row_in_part);
  const uint64_t source_row = part.SourceRow(row_in_part);
  const bool is_transposed = part.transposed_rows != 0;
  const uint64_t at =
      is_transposed ? col * part.transposed_rows + source_row : source_row * tensor.cols + col;
  FailValue(*part.weight, part.first_element + at,
            Format("is too large for %s", DTypeName(tensor.dtype)).c_str());
}

}  // namespace arn::convert

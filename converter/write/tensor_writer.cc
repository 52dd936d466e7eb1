#include "converter/write/tensor_writer.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <deque>
#include <future>
#include <optional>
#include <vector>

#include "converter/error.h"
#include "converter/quantize/compensate.h"
#include "converter/quantize/quantize.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

using Bytes = std::vector<std::byte>;

// A packed slab of rows. For kRows the parts of the blob are kept apart, because in the file the
// values of all rows come before the scales of all rows.
struct PackedSlab {
  Bytes values;
  Bytes scales;
  std::vector<float> bias;
  uint32_t rows = 0;
};

[[noreturn]] void FailValue(const Checkpoint::Entry& entry, uint64_t index, const char* problem) {
  const std::vector<uint64_t>& shape = entry.tensor->shape;
  std::string at = "]";
  for (size_t i = shape.size(); i-- > 0; index /= shape[i]) {
    at = (i == 0 ? "[" : ", ") + std::to_string(index % shape[i]) + at;
  }
  Fail("%s: tensor %s: the value at %s %s", entry.file->path().c_str(), entry.tensor->name.c_str(),
       at.c_str(), problem);
}

// Elements [first, first + count) as floats; NaN and infinity are refused.
void ReadFinite(const Checkpoint::Entry& entry, uint64_t first, uint64_t count, float* out) {
  Checkpoint::ReadFloats(entry, first, count, out);
  const size_t bad = FindNotFinite(out, static_cast<size_t>(count));
  if (bad < count) {
    FailValue(entry, first + bad, std::isnan(out[bad]) ? "is NaN" : "is infinite");
  }
}

// The part that holds a row of the whole matrix, and the row inside it.
const SourcePart& PartOfRow(const PlannedTensor& tensor, uint32_t row, uint32_t* row_in_part) {
  size_t i = 0;
  while (row >= tensor.parts[i].rows) row -= tensor.parts[i++].rows;
  *row_in_part = row;
  return tensor.parts[i];
}

// Rows [row, row + n) of a part whose source is stored as [cols, rows].
void ReadTransposed(const SourcePart& part, uint32_t row, uint32_t n, uint32_t cols, float* out) {
  const uint64_t stored_cols = part.transposed_rows;
  const uint32_t first = part.SourceRow(row), last = part.SourceRow(row + n - 1);
  std::vector<float> column(last - first + 1);
  for (uint32_t c = 0; c < cols; ++c) {
    ReadFinite(*part.weight, part.first_element + c * stored_cols + first, column.size(),
               column.data());
    for (uint32_t r = 0; r < n; ++r) {
      out[uint64_t{r} * cols + c] = column[part.SourceRow(row + r) - first];
    }
  }
}

// x[n, cols] = -e^x, of a part that is stored transposed, from its row `first` on.
void NegativeExponentials(const SourcePart& part, uint32_t first, uint32_t n, uint32_t cols,
                          float* x) {
  for (uint64_t i = 0; i < uint64_t{n} * cols; ++i) {
    x[i] = static_cast<float>(-std::exp(static_cast<double>(x[i])));
    if (std::isfinite(x[i])) continue;
    FailValue(*part.weight, i % cols * part.transposed_rows + first + i / cols,
              "is too large for an exponent");
  }
}

// Each row [cols / taps, taps] becomes [taps, cols / taps].
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

// Rows [first, first + rows) of the matrix, which may lie in several parts.
std::vector<float> ReadRows(const PlannedTensor& tensor, uint32_t first, uint32_t rows) {
  const uint64_t cols = tensor.cols;
  std::vector<float> values(rows * cols);
  for (uint32_t done = 0; done < rows;) {
    uint32_t row = 0;
    const SourcePart& part = PartOfRow(tensor, first + done, &row);
    const bool is_transposed = part.transposed_rows != 0;
    const uint32_t n = std::min(is_transposed ? part.rows - row : part.RunLength(row), rows - done);
    float* to = values.data() + done * cols;
    if (is_transposed) {
      ReadTransposed(part, row, n, tensor.cols, to);
    } else {
      ReadFinite(*part.weight, part.first_element + part.SourceRow(row) * cols, n * cols, to);
    }
    if (part.taps != 0) PutTapsFirst(part.taps, n, tensor.cols, to);
    if (part.factor != 1.0f) {
      for (uint64_t i = 0; i < n * cols; ++i) to[i] *= part.factor;
    }
    if (part.is_negative_log) NegativeExponentials(part, row, n, tensor.cols, to);
    done += n;
  }
  return values;
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

[[noreturn]] void FailOverflow(const PlannedTensor& tensor, uint32_t row, size_t col) {
  uint32_t row_in_part = 0;
  const SourcePart& part = PartOfRow(tensor, row, &row_in_part);
  const uint64_t source_row = part.SourceRow(row_in_part);
  const bool is_transposed = part.transposed_rows != 0;
  const uint64_t at =
      is_transposed ? col * part.transposed_rows + source_row : source_row * tensor.cols + col;
  FailValue(*part.weight, part.first_element + at,
            Format("is too large for %s", DTypeName(tensor.dtype)).c_str());
}

// The slab in its final element type. `values` and `scales` hold what `matrix` points to.
struct TypedRows {
  std::vector<float> floats;
  Bytes values;
  Bytes scales;
  std::vector<float> bias_shifts;  // to be added to the bias; empty: nothing
  RowMatrix matrix;
};

TypedRows Quantize(const PlannedTensor& tensor, const InputModel* inputs, uint32_t first,
                   uint32_t rows, std::vector<float> floats) {
  const size_t cols = tensor.cols;
  TypedRows typed;
  typed.matrix.dtype = tensor.dtype;
  typed.matrix.rows = rows;
  typed.matrix.cols = tensor.cols;
  if (inputs != nullptr) typed.bias_shifts.resize(rows);
  switch (tensor.dtype) {
    case DType::kF32:
      typed.floats = std::move(floats);
      typed.matrix.values = typed.floats.data();
      return typed;
    case DType::kF16:
    case DType::kBf16: {
      const auto round = tensor.dtype == DType::kF16 ? RoundRowF16 : RoundRowBf16;
      typed.values.resize(rows * cols * sizeof(uint16_t));
      uint16_t* out = reinterpret_cast<uint16_t*>(typed.values.data());
      for (uint32_t r = 0; r < rows; ++r) {
        const size_t bad = round(floats.data() + r * cols, cols, out + r * cols);
        if (bad < cols) FailOverflow(tensor, first + r, bad);
      }
      break;
    }
    case DType::kInt8: {
      typed.values.resize(rows * cols);
      typed.scales.resize(rows * sizeof(float));
      int8_t* out = reinterpret_cast<int8_t*>(typed.values.data());
      float* scales = reinterpret_cast<float*>(typed.scales.data());
      for (uint32_t r = 0; r < rows; ++r) {
        const float* row = floats.data() + r * cols;
        if (inputs == nullptr) {
          QuantizeRowInt8(row, cols, out + r * cols, scales + r);
        } else {
          typed.bias_shifts[r] = CompensateRowInt8(row, cols, *inputs, out + r * cols, scales + r);
        }
      }
      break;
    }
    case DType::kInt4: {
      const size_t padded = static_cast<size_t>(AlignUp(cols, kInt4BlockSize));
      const size_t blocks = padded / kInt4BlockSize;
      typed.values.resize(rows * padded);
      typed.scales.resize(rows * blocks * sizeof(uint16_t));
      uint8_t* out = reinterpret_cast<uint8_t*>(typed.values.data());
      uint16_t* scales = reinterpret_cast<uint16_t*>(typed.scales.data());
      for (uint32_t r = 0; r < rows; ++r) {
        const float* row = floats.data() + r * cols;
        uint8_t* to = out + r * padded;
        if (inputs == nullptr) {
          QuantizeRowInt4(row, cols, nullptr, to, scales + r * blocks);
        } else {
          typed.bias_shifts[r] = CompensateRowInt4(row, cols, *inputs, to, scales + r * blocks);
        }
      }
      break;
    }
  }
  typed.matrix.values = typed.values.data();
  typed.matrix.scales = typed.scales.empty() ? nullptr : typed.scales.data();
  return typed;
}

// `bias`: of the whole tensor, or none.
PackedSlab MakeSlab(const PlannedTensor& tensor, const InputModel* inputs,
                    const std::vector<float>& bias, uint32_t first, uint32_t rows) {
  TypedRows typed = Quantize(tensor, inputs, first, rows, ReadRows(tensor, first, rows));
  PackedSlab slab;
  slab.rows = rows;
  slab.bias.resize(rows);
  for (uint32_t r = 0; r < rows; ++r) {
    if (!bias.empty()) slab.bias[r] = bias[first + r];
    if (!typed.bias_shifts.empty()) slab.bias[r] += typed.bias_shifts[r];
  }
  typed.matrix.bias = slab.bias.data();
  uint64_t bytes = 0;
  if (!PackedBytes(tensor.dtype, tensor.layout, rows, tensor.cols, &bytes)) {
    Fail("internal error: %u rows of %s cannot be packed", rows, tensor.name.c_str());
  }
  slab.values.resize(static_cast<size_t>(bytes));
  PackRows(typed.matrix, tensor.layout, slab.values.data());
  if (tensor.layout.order == WeightOrder::kRows) {
    const RowsBlobLayout blob = RowsBlob(tensor.dtype, rows, tensor.cols);
    const std::byte* scales = slab.values.data() + blob.scales_offset;
    slab.scales.assign(scales, scales + rows * blob.scale_row_bytes);
    slab.values.erase(slab.values.begin(),
                      slab.values.begin() + static_cast<ptrdiff_t>(blob.values_offset));
    slab.values.resize(static_cast<size_t>(rows * blob.row_bytes));
  }
  return slab;
}

// A multiple of the panel height, so that packed slabs laid one after another are the packed
// matrix.
uint32_t RowsPerSlab(const PlannedTensor& tensor) {
  const uint64_t panel = std::max<uint64_t>(tensor.layout.nr, 1);
  const uint64_t panels = std::max<uint64_t>(kSlabElements / (panel * tensor.cols), 1);
  return static_cast<uint32_t>(std::min<uint64_t>(panels * panel, tensor.rows));
}

fbs::Segment WriteVector(const PlannedTensor& tensor, const OnProgress& on_progress,
                         BundleWriter* writer) {
  std::vector<float> values(tensor.cols);
  if (!tensor.parts.empty()) {
    ReadFinite(*tensor.parts[0].weight, 0, tensor.cols, values.data());
  }
  for (float& value : values) value += tensor.offset;
  const fbs::Segment segment = writer->WriteSegment(values.data(), values.size() * sizeof(float));
  on_progress(tensor, tensor.cols);
  return segment;
}

}  // namespace

uint64_t SegmentBytes(const PlannedTensor& tensor) {
  if (tensor.is_vector) return uint64_t{tensor.cols} * sizeof(float);
  uint64_t bytes = 0;
  if (!PackedBytes(tensor.dtype, tensor.layout, tensor.rows, tensor.cols, &bytes)) {
    Fail("internal error: %s cannot be packed", tensor.name.c_str());
  }
  return bytes;
}

fbs::Segment WriteTensor(const PlannedTensor& tensor, const InputMoments* moments,
                         uint32_t n_threads, const OnProgress& on_progress, BundleWriter* writer) {
  if (tensor.is_vector) return WriteVector(tensor, on_progress, writer);
  const std::vector<float> bias = ReadBias(tensor);
  std::optional<InputModel> model;
  if (moments != nullptr) model.emplace(*moments);
  const InputModel* inputs = model ? &*model : nullptr;
  const bool is_rows = tensor.layout.order == WeightOrder::kRows;
  const RowsBlobLayout blob = RowsBlob(tensor.dtype, tensor.rows, tensor.cols);
  const uint64_t bytes = SegmentBytes(tensor);
  const uint32_t slab_rows = RowsPerSlab(tensor);

  writer->BeginSegment(bytes);
  if (is_rows) writer->PadSegmentTo(blob.values_offset);
  Bytes scales;
  std::vector<float> biases;
  std::deque<std::future<PackedSlab>> in_work;
  uint32_t next = 0;
  while (next < tensor.rows || !in_work.empty()) {
    while (next < tensor.rows && in_work.size() < std::max(n_threads, 1u)) {
      const uint32_t rows = std::min(slab_rows, tensor.rows - next);
      in_work.push_back(std::async(std::launch::async, MakeSlab, std::cref(tensor), inputs,
                                   std::cref(bias), next, rows));
      next += rows;
    }
    const PackedSlab slab = in_work.front().get();
    in_work.pop_front();
    writer->Append(slab.values.data(), slab.values.size());
    scales.insert(scales.end(), slab.scales.begin(), slab.scales.end());
    biases.insert(biases.end(), slab.bias.begin(), slab.bias.end());
    on_progress(tensor, uint64_t{slab.rows} * tensor.cols);
  }
  if (is_rows) {
    if (!scales.empty()) {
      writer->PadSegmentTo(blob.scales_offset);
      writer->Append(scales.data(), scales.size());
    }
    writer->PadSegmentTo(blob.bias_offset);
    writer->Append(biases.data(), tensor.rows * sizeof(float));
    writer->PadSegmentTo(bytes);
  }
  return writer->EndSegment();
}

}  // namespace arn::convert

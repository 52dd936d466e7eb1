#include "converter/write/tensor_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <future>
#include <vector>

#include "converter/base/error.h"
#include "converter/quantize/quantize.h"
#include "converter/write/held_rows.h"
#include "converter/write/source_rows.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

using Bytes = std::vector<std::byte>;

// Selects how a matrix is quantised. At most one is set; neither: rounds each row independently.
struct Method {
  const InputModel* inputs = nullptr;
  const Weight* finished = nullptr;  // the whole matrix, already quantised
};

// A packed slab of rows. Layout kRows keeps the parts of the blob separate, because the file stores
// the values of all rows before the scales of all rows.
struct PackedSlab {
  Bytes values;
  Bytes scales;
  std::vector<float> bias;
  uint32_t rows = 0;
  float error = 0.0f;  // as of TypedRows
};

// A slab in its final element type. `values` and `scales` own the data that `matrix` points to.
struct TypedRows {
  std::vector<float> floats;
  Bytes values;
  Bytes scales;
  RowMatrix matrix;
  // Largest error divided by the largest magnitude of its row, of rows that others have quantised
  // and that are not held exactly.
  float error = 0.0f;
};

// Returns the error of a row as of TypedRows; scales: one for each `block` columns.
template <typename Level>
float RowError(const float* row, size_t cols, const Level* levels, int offset, size_t block,
               const std::vector<float>& scales) {
  float largest = 0.0f, error = 0.0f;
  for (size_t i = 0; i < cols; ++i) {
    const float value = static_cast<float>(levels[i] - offset) * scales[i / block];
    largest = std::max(largest, std::fabs(row[i]));
    error = std::max(error, std::fabs(value - row[i]));
  }
  return largest == 0.0f ? 0.0f : error / largest;
}

bool IsRequantised(const SourcePart& part, DType dtype) {
  return part.weight->decoded != nullptr && HeldBy(part, dtype) != DecodedTensor::Held::kExactly;
}

void MakeInt8(const PlannedTensor& tensor, const Method& method, uint32_t first, TypedRows* typed) {
  const size_t cols = tensor.cols;
  typed->values.resize(typed->matrix.rows * cols);
  typed->scales.resize(typed->matrix.rows * sizeof(float));
  int8_t* out = reinterpret_cast<int8_t*>(typed->values.data());
  float* scales = reinterpret_cast<float*>(typed->scales.data());
  const uint32_t rows = typed->matrix.rows;
  if (method.finished != nullptr) {
    for (uint32_t r = 0; r < rows; ++r, out += cols, ++scales) {
      UnpackRowInt8(*method.finished, first + r, out, scales);
    }
    return;
  }
  for (uint32_t r = 0; r < rows;) {
    const SourceRun run = RunOfRows(tensor, first + r, rows - r);
    const bool is_held = HeldBy(*run.part, DType::kInt8) != DecodedTensor::Held::kNo;
    const bool is_requantised = IsRequantised(*run.part, DType::kInt8);
    if (is_held) run.part->weight->decoded->ReadInt8(run.first_row, run.rows, out, scales);
    for (uint32_t i = 0; i < run.rows; ++i, ++r, out += cols, ++scales) {
      const float* row = typed->floats.data() + r * cols;
      if (!is_held && method.inputs == nullptr) {
        QuantizeRowInt8(row, cols, out, scales);
      } else if (!is_held) {
        const std::vector<float> wanted = CorrectRow(row, cols, first + r, *method.inputs);
        CompensateRowInt8(wanted.data(), cols, *method.inputs, out, scales);
      }
      if (!is_requantised) continue;
      typed->error = std::max(typed->error, RowError(row, cols, out, 0, cols, {*scales}));
    }
  }
}

void MakeInt4(const PlannedTensor& tensor, const Method& method, uint32_t first, TypedRows* typed) {
  const size_t cols = tensor.cols;
  const size_t padded = static_cast<size_t>(AlignUp(cols, kInt4BlockSize));
  const size_t blocks = padded / kInt4BlockSize;
  typed->values.resize(typed->matrix.rows * padded);
  typed->scales.resize(typed->matrix.rows * blocks * sizeof(uint16_t));
  uint8_t* out = reinterpret_cast<uint8_t*>(typed->values.data());
  uint16_t* scales = reinterpret_cast<uint16_t*>(typed->scales.data());
  std::vector<int8_t> levels(padded);
  std::vector<float> wide(blocks);
  const uint32_t rows = typed->matrix.rows;
  if (method.finished != nullptr) {
    for (uint32_t r = 0; r < rows; ++r, out += padded, scales += blocks) {
      UnpackRowInt4(*method.finished, first + r, levels.data(), wide.data());
      for (size_t i = 0; i < padded; ++i) out[i] = static_cast<uint8_t>(levels[i] + 8);
      for (size_t b = 0; b < blocks; ++b) scales[b] = Bf16FromF32(wide[b]);
    }
    return;
  }
  for (uint32_t r = 0; r < rows;) {
    const SourceRun run = RunOfRows(tensor, first + r, rows - r);
    const bool is_held = HeldBy(*run.part, DType::kInt4) != DecodedTensor::Held::kNo;
    const bool is_requantised = IsRequantised(*run.part, DType::kInt4);
    if (is_held) run.part->weight->decoded->ReadInt4(run.first_row, run.rows, out, scales);
    for (uint32_t i = 0; i < run.rows; ++i, ++r, out += padded, scales += blocks) {
      const float* row = typed->floats.data() + r * cols;
      if (!is_held && method.inputs == nullptr) {
        QuantizeRowInt4(row, cols, nullptr, out, scales);
      } else if (!is_held) {
        const std::vector<float> wanted = CorrectRow(row, cols, first + r, *method.inputs);
        CompensateRowInt4(wanted.data(), cols, *method.inputs, out, scales);
      }
      if (!is_requantised) continue;
      for (size_t b = 0; b < blocks; ++b) wide[b] = F32FromBf16(scales[b]);
      typed->error =
          std::max(typed->error, RowError(row, cols, out, 8, size_t{kInt4BlockSize}, wide));
    }
  }
}

void MakeHalf(const PlannedTensor& tensor, uint32_t first, TypedRows* typed) {
  const size_t cols = tensor.cols;
  const auto round = tensor.dtype == DType::kF16 ? RoundRowF16 : RoundRowBf16;
  typed->values.resize(typed->matrix.rows * cols * sizeof(uint16_t));
  uint16_t* out = reinterpret_cast<uint16_t*>(typed->values.data());
  for (uint32_t r = 0; r < typed->matrix.rows; ++r) {
    const size_t bad = round(typed->floats.data() + r * cols, cols, out + r * cols);
    if (bad < cols) FailOverflow(tensor, first + r, bad);
  }
}

TypedRows MakeRows(const PlannedTensor& tensor, const Method& method, uint32_t first,
                   uint32_t rows) {
  TypedRows typed;
  if (method.finished == nullptr) typed.floats = ReadRows(tensor, first, rows);
  typed.matrix.dtype = tensor.dtype;
  typed.matrix.rows = rows;
  typed.matrix.cols = tensor.cols;
  switch (tensor.dtype) {
    case DType::kF32: typed.matrix.values = typed.floats.data(); return typed;
    case DType::kF16:
    case DType::kBf16: MakeHalf(tensor, first, &typed); break;
    case DType::kInt8: MakeInt8(tensor, method, first, &typed); break;
    case DType::kInt4: MakeInt4(tensor, method, first, &typed); break;
  }
  typed.matrix.values = typed.values.data();
  typed.matrix.scales = typed.scales.empty() ? nullptr : typed.scales.data();
  return typed;
}

// `bias`: of the whole tensor, or empty.
PackedSlab MakeSlab(const PlannedTensor& tensor, const Method& method,
                    const std::vector<float>& bias, uint32_t first, uint32_t rows) {
  TypedRows typed = MakeRows(tensor, method, first, rows);
  PackedSlab slab;
  slab.rows = rows;
  slab.error = typed.error;
  slab.bias.resize(rows);
  if (!bias.empty()) std::copy_n(bias.data() + first, rows, slab.bias.data());
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

// Returns a multiple of the panel height, so that consecutive packed slabs form the packed matrix.
// A matrix that is quantised by its inputs, which is slow, gets one slab per thread.
uint32_t RowsPerSlab(const PlannedTensor& tensor, const Method& method, uint32_t n_threads) {
  const uint64_t panel = std::max<uint64_t>(tensor.layout.nr, 1);
  uint64_t panels = std::max<uint64_t>(kSlabElements / (panel * tensor.cols), 1);
  if (method.inputs != nullptr) {
    panels = std::min(panels, CeilDiv(CeilDiv(tensor.rows, panel), std::max(n_threads, 1u)));
  }
  return static_cast<uint32_t>(std::min<uint64_t>(panels * panel, tensor.rows));
}

// Builds a segment in memory.
struct MemorySegment {
  Bytes bytes;
  void Append(const void* data, size_t n) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), from, from + n);
  }
  void PadSegmentTo(uint64_t n) { bytes.resize(static_cast<size_t>(n)); }
};

// Builds a segment in memory whose padding is zero already.
struct PlacedSegment {
  std::byte* to;
  uint64_t at = 0;
  void Append(const void* data, size_t n) {
    std::memcpy(to + at, data, n);
    at += n;
  }
  void PadSegmentTo(uint64_t n) { at = std::max(at, n); }
};

// Writes the segment's bytes, in order. Out: BundleWriter, MemorySegment or PlacedSegment. Returns
// the error as of TypedRows.
template <typename Out>
float PutMatrix(const PlannedTensor& tensor, const Method& method, uint32_t n_threads,
                const OnProgress& on_progress, Out* out) {
  const std::vector<float> bias = ReadBias(tensor);
  const bool is_rows = tensor.layout.order == WeightOrder::kRows;
  const RowsBlobLayout blob = RowsBlob(tensor.dtype, tensor.rows, tensor.cols);
  const uint32_t slab_rows = RowsPerSlab(tensor, method, n_threads);
  if (is_rows) out->PadSegmentTo(blob.values_offset);
  Bytes scales;
  std::vector<float> biases;
  std::deque<std::future<PackedSlab>> in_work;
  uint32_t next = 0;
  float error = 0.0f;
  while (next < tensor.rows || !in_work.empty()) {
    while (next < tensor.rows && in_work.size() < std::max(n_threads, 1u)) {
      const uint32_t rows = std::min(slab_rows, tensor.rows - next);
      in_work.push_back(std::async(std::launch::async, MakeSlab, std::cref(tensor),
                                   std::cref(method), std::cref(bias), next, rows));
      next += rows;
    }
    const PackedSlab slab = in_work.front().get();
    in_work.pop_front();
    error = std::max(error, slab.error);
    out->Append(slab.values.data(), slab.values.size());
    scales.insert(scales.end(), slab.scales.begin(), slab.scales.end());
    biases.insert(biases.end(), slab.bias.begin(), slab.bias.end());
    on_progress(tensor, uint64_t{slab.rows} * tensor.cols);
  }
  if (!is_rows) return error;
  if (!scales.empty()) {
    out->PadSegmentTo(blob.scales_offset);
    out->Append(scales.data(), scales.size());
  }
  out->PadSegmentTo(blob.bias_offset);
  out->Append(biases.data(), tensor.rows * sizeof(float));
  out->PadSegmentTo(SegmentBytes(tensor));
  return error;
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

fbs::Segment WriteTensor(const PlannedTensor& tensor, const Weight* finished, uint32_t n_threads,
                         const OnProgress& on_progress, BundleWriter* writer, float* error) {
  if (tensor.is_vector) {
    const std::vector<float> values = ReadVector(tensor);
    const fbs::Segment segment = writer->WriteSegment(values.data(), values.size() * sizeof(float));
    on_progress(tensor, tensor.cols);
    return segment;
  }
  Method method;
  method.finished = finished;
  writer->BeginSegment(SegmentBytes(tensor));
  const float largest = PutMatrix(tensor, method, n_threads, on_progress, writer);
  if (error != nullptr) *error = largest;
  return writer->EndSegment();
}

std::vector<std::byte> PackMatrix(const PlannedTensor& tensor, const InputModel& inputs,
                                  uint32_t n_threads) {
  Method method;
  method.inputs = &inputs;
  MemorySegment segment;
  segment.bytes.reserve(static_cast<size_t>(SegmentBytes(tensor)));
  PutMatrix(
      tensor, method, n_threads, [](const PlannedTensor&, uint64_t) {}, &segment);
  return std::move(segment.bytes);
}

void PackMatrixTo(const PlannedTensor& tensor, uint32_t n_threads, std::byte* to) {
  PlacedSegment segment{to};
  PutMatrix(
      tensor, Method(), n_threads, [](const PlannedTensor&, uint64_t) {}, &segment);
}

}  // namespace arn::convert

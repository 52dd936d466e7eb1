#include "converter/write/tensor_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <future>
#include <memory>
#include <vector>

#include "converter/base/error.h"
#include "converter/base/ternary_row.h"
#include "converter/quantize/quantize.h"
#include "converter/write/held_rows.h"
#include "converter/write/source_rows.h"
#include "kernels/pack/device_rows.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

using Bytes = std::vector<std::byte>;

// Selects how a matrix is quantised. At most one is set; neither: rounds each row independently.
struct Method {
  const InputModel* inputs = nullptr;
  const Weight* finished = nullptr;  // the whole matrix, already quantised
};

// Memory that is not cleared, and kept for the next use.
template <typename T>
class SlabMemory {
 public:
  T* Need(size_t n) {
    if (n > size_) data_.reset(new T[n]);
    size_ = std::max(n, size_);
    return data_.get();
  }
  const T* data() const { return data_.get(); }

 private:
  std::unique_ptr<T[]> data_;
  size_t size_ = 0;
};

// Rows in their final element type, and packed. Its memory is used again for the next slab of the
// same matrix.
struct Slab {
  SlabMemory<float> floats;
  SlabMemory<std::byte> values;  // what `matrix` points to, unless it is f32
  Bytes scales;
  std::vector<float> row_scales;
  RowMatrix matrix;
  std::vector<float> bias;
  SlabMemory<std::byte> packed;
  size_t packed_bytes = 0;
  // Largest error divided by the largest magnitude of its row, of rows that others have quantised
  // and that are not held exactly.
  float error = 0.0f;
};

// Returns the error of a row as of Slab; scales: one for each `block` columns.
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
  return Checkpoint::IsQuantised(*part.weight) &&
         HeldBy(part, dtype) != DecodedTensor::Held::kExactly;
}

void MakeInt8(const PlannedTensor& tensor, const Method& method, uint32_t first, Slab* typed) {
  const size_t cols = tensor.cols;
  typed->scales.resize(typed->matrix.rows * sizeof(float));
  int8_t* out = reinterpret_cast<int8_t*>(typed->values.Need(typed->matrix.rows * cols));
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

void MakeInt4(const PlannedTensor& tensor, const Method& method, uint32_t first, Slab* typed) {
  const size_t cols = tensor.cols;
  const size_t padded = static_cast<size_t>(AlignUp(cols, kInt4BlockSize));
  const size_t blocks = padded / kInt4BlockSize;
  typed->scales.resize(typed->matrix.rows * blocks * sizeof(uint16_t));
  uint8_t* out = reinterpret_cast<uint8_t*>(typed->values.Need(typed->matrix.rows * padded));
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

// Fails with the file, the tensor, the row and two magnitudes.
[[noreturn]] void FailNotTernary(const SourceRun& run, uint64_t row, const float* weights,
                                 size_t cols) {
  const Checkpoint::Entry& source = *run.part->weight;
  float largest = 0.0f, other = 0.0f;
  for (size_t i = 0; i < cols; ++i) largest = std::max(largest, std::fabs(weights[i]));
  for (size_t i = 0; i < cols && (other == 0.0f || other == largest); ++i) {
    other = std::fabs(weights[i]);
  }
  Fail(
      "%s: tensor %s: row %llu has magnitudes %g and %g: ternary takes only rows of -1, 0 and 1 "
      "times one scale, or one f16 scale for each 256 columns, as BitNet and GGUF's TQ1_0 and "
      "TQ2_0 have them; --weights int2 rounds others",
      source.file->path().c_str(), source.tensor->name.c_str(),
      static_cast<unsigned long long>(row), static_cast<double>(largest),
      static_cast<double>(other));
}

void MakeCodes(const PlannedTensor& tensor, const CodeType& type, const Method& method,
               uint32_t first, Slab* typed) {
  const size_t cols = tensor.cols;
  const auto padded = static_cast<size_t>(type.Padded(cols));
  const auto blocks = static_cast<size_t>(type.Blocks(cols));
  const auto entries = static_cast<size_t>(type.Entries(cols));
  const uint32_t rows = typed->matrix.rows;
  typed->scales.resize(rows * entries * sizeof(int16_t));
  typed->row_scales.resize(rows);
  typed->matrix.row_scales = typed->row_scales.data();
  CodeRow out = {reinterpret_cast<uint8_t*>(typed->values.Need(rows * padded)),
                 reinterpret_cast<int16_t*>(typed->scales.data()), typed->row_scales.data()};
  const auto next = [&] {
    out.codes += padded;
    out.scales += entries;
    ++out.row_scale;
  };
  if constexpr (kHasLowBits) {
    for (uint32_t r = 0; method.finished != nullptr && r < rows; ++r, next()) {
      UnpackRowCodes(*method.finished, first + r, out.codes, out.scales, out.row_scale);
    }
    if (method.finished != nullptr) return;
  }
  std::vector<int16_t> levels(cols);
  std::vector<float> wide(blocks);
  for (uint32_t r = 0; r < rows;) {
    const SourceRun run = RunOfRows(tensor, first + r, rows - r);
    if (IsOfOthers(type.dtype)) {
      ReadHeld(run, type, tensor.cols, out.codes, out.scales);
      for (uint32_t i = 0; i < run.rows; ++i, ++r, next()) *out.row_scale = 1.0f;
      continue;
    }
    const bool is_requantised = IsRequantised(*run.part, type.dtype);
    for (uint32_t i = 0; i < run.rows; ++i, ++r, next()) {
      const float* row = typed->floats.data() + r * cols;
      if (IsTernary(type.dtype)) {
        if (!EncodeTernaryRow(row, cols, out.codes, out.scales, out.row_scale)) {
          FailNotTernary(run, run.first_row + i, row, cols);
        }
        continue;
      }
      if (method.inputs == nullptr) {
        QuantizeRowCodes(type, row, cols, nullptr, out);
      } else {
        const std::vector<float> wanted = CorrectRow(row, cols, first + r, *method.inputs);
        CompensateRowCodes(type, wanted.data(), cols, *method.inputs, out);
      }
      if (!is_requantised) continue;
      for (size_t c = 0; c < cols; ++c) levels[c] = type.Level(out.codes[c]);
      for (size_t b = 0; b < blocks; ++b) {
        wide[b] = BlockScaleOf(type, out.scales[b]) * *out.row_scale;
      }
      typed->error =
          std::max(typed->error, RowError(row, cols, levels.data(), 0, type.block, wide));
    }
  }
}

void MakeHalf(const PlannedTensor& tensor, uint32_t first, Slab* typed) {
  const size_t cols = tensor.cols;
  const auto round = tensor.dtype == DType::kF16 ? RoundRowF16 : RoundRowBf16;
  const size_t bytes = typed->matrix.rows * cols * sizeof(uint16_t);
  uint16_t* out = reinterpret_cast<uint16_t*>(typed->values.Need(bytes));
  for (uint32_t r = 0; r < typed->matrix.rows; ++r) {
    const size_t bad = round(typed->floats.data() + r * cols, cols, out + r * cols);
    if (bad < cols) FailOverflow(tensor, first + r, bad);
  }
}

void MakeRows(const PlannedTensor& tensor, const Method& method, uint32_t first, uint32_t rows,
              Slab* slab) {
  if (method.finished == nullptr) {
    ReadRows(tensor, first, rows, slab->floats.Need(size_t{rows} * tensor.cols));
  }
  slab->error = 0.0f;
  slab->matrix = {};
  slab->matrix.dtype = tensor.dtype;
  slab->matrix.rows = rows;
  slab->matrix.cols = tensor.cols;
  if (tensor.dtype == DType::kF32) {
    slab->matrix.values = slab->floats.data();
    return;
  }
  if (const CodeType* type = FindCodeType(tensor.dtype)) {
    MakeCodes(tensor, *type, method, first, slab);
  } else if (tensor.dtype == DType::kInt8) {
    MakeInt8(tensor, method, first, slab);
  } else if (tensor.dtype == DType::kInt4) {
    MakeInt4(tensor, method, first, slab);
  } else {
    MakeHalf(tensor, first, slab);
  }
  slab->matrix.values = slab->values.data();
  slab->matrix.scales = slab->scales.empty() ? nullptr : slab->scales.data();
}

// `bias`: of the whole tensor, or empty.
std::unique_ptr<Slab> MakeSlab(const PlannedTensor& tensor, const Method& method,
                               const std::vector<float>& bias, uint32_t first, uint32_t rows,
                               std::unique_ptr<Slab> slab) {
  MakeRows(tensor, method, first, rows, slab.get());
  slab->bias.assign(rows, 0.0f);
  if (!bias.empty()) std::copy_n(bias.data() + first, rows, slab->bias.data());
  slab->matrix.bias = slab->bias.data();
  uint64_t bytes = 0;
  if (!PackedBytes(tensor.dtype, tensor.layout, rows, tensor.cols, &bytes)) {
    Fail("internal error: %u rows of %s cannot be packed", rows, tensor.name.c_str());
  }
  slab->packed_bytes = static_cast<size_t>(bytes);
  PackRows(slab->matrix, tensor.layout, slab->packed.Need(slab->packed_bytes));
  return slab;
}

// One more than the threads, so that all have work while the first slab is written.
uint32_t SlabsInWork(uint32_t n_threads) { return std::max(n_threads, 1u) + 1; }

// Returns a multiple of the panel height, so that consecutive packed slabs form the packed matrix.
// A matrix that is quantised by its inputs, which is slow, gets one slab per thread.
uint32_t RowsPerSlab(const PlannedTensor& tensor, const Method& method, uint32_t n_threads) {
  const uint64_t panel = std::max<uint64_t>(tensor.layout.nr, 1);
  const uint64_t elements = std::min(kSlabElements, kElementsInWork / SlabsInWork(n_threads));
  uint64_t panels = std::max<uint64_t>(elements / (panel * tensor.cols), 1);
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

// One part of a packed matrix, with as many bytes for each row.
struct Part {
  uint64_t offset = 0, row_bytes = 0;
};

// The parts of a matrix in a row-major order, which its slabs have too: values, then what is kept
// until all rows are written.
struct RowParts {
  Part values, kept[2];
};

RowParts PartsOf(const PlannedTensor& tensor, uint32_t rows) {
  if (tensor.layout.order == WeightOrder::kDeviceRows) {
    const DeviceRows d = ShapeOfDeviceRows(tensor.dtype, rows, tensor.cols);
    return {{0, d.row_bytes},
            {{d.heads_offset, kDeviceHeadBytes}, {d.blocks_offset, d.block_row_bytes}}};
  }
  const RowsBlobLayout blob = RowsBlob(tensor.dtype, rows, tensor.cols);
  return {{blob.values_offset, blob.row_bytes},
          {{blob.scales_offset, blob.scale_row_bytes}, {blob.bias_offset, sizeof(float)}}};
}

// Writes the segment's bytes, in order. Out: BundleWriter, MemorySegment or PlacedSegment. Returns
// the error as of Slab.
template <typename Out>
float PutMatrix(const PlannedTensor& tensor, const Method& method, uint32_t n_threads,
                const OnProgress& on_progress, Out* out) {
  const std::vector<float> bias = ReadBias(tensor);
  const bool is_rows = tensor.layout.order != WeightOrder::kPanels;
  const uint32_t slab_rows = RowsPerSlab(tensor, method, n_threads);
  // The file stores the values of all rows before the scales of all rows.
  Bytes kept[2];
  std::deque<std::future<std::unique_ptr<Slab>>> in_work;
  std::unique_ptr<Slab> done;
  uint32_t next = 0;
  float error = 0.0f;
  while (next < tensor.rows || !in_work.empty()) {
    while (next < tensor.rows && in_work.size() < SlabsInWork(n_threads)) {
      const uint32_t rows = std::min(slab_rows, tensor.rows - next);
      if (done == nullptr) done = std::make_unique<Slab>();
      in_work.push_back(std::async(std::launch::async, MakeSlab, std::cref(tensor),
                                   std::cref(method), std::cref(bias), next, rows,
                                   std::move(done)));
      next += rows;
    }
    done = in_work.front().get();
    in_work.pop_front();
    const uint32_t rows = done->matrix.rows;
    error = std::max(error, done->error);
    if (is_rows) {
      const RowParts own = PartsOf(tensor, rows);
      out->Append(done->packed.data() + own.values.offset, rows * own.values.row_bytes);
      for (size_t i = 0; i < std::size(kept); ++i) {
        const std::byte* from = done->packed.data() + own.kept[i].offset;
        kept[i].insert(kept[i].end(), from, from + rows * own.kept[i].row_bytes);
      }
    } else {
      out->Append(done->packed.data(), done->packed_bytes);
    }
    on_progress(tensor, uint64_t{rows} * tensor.cols);
  }
  if (!is_rows) return error;
  const RowParts parts = PartsOf(tensor, tensor.rows);
  for (size_t i = 0; i < std::size(kept); ++i) {
    if (kept[i].empty()) continue;
    out->PadSegmentTo(parts.kept[i].offset);
    out->Append(kept[i].data(), kept[i].size());
  }
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
  const uint64_t bytes = SegmentBytes(tensor);
  writer->BeginSegment(bytes);
  if (finished != nullptr && finished->layout == tensor.layout && finished->bytes == bytes) {
    writer->Append(finished->data, static_cast<size_t>(bytes));
    on_progress(tensor, tensor.elements());
    return writer->EndSegment();
  }
  Method method;
  method.finished = finished;
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

#include "converter/hf/quantised/planes.h"

#include <algorithm>

#include "platform/base/arith.h"

namespace arn::convert {
namespace {

// Returns the code of `bits` bits at bit `at` of a stream; reads no byte without a bit of it.
uint8_t PackedCodeAt(const uint8_t* stream, uint64_t at, uint32_t bits) {
  const uint32_t shift = at % 8;
  uint32_t word = stream[at / 8];
  if (shift + bits > 8) word |= static_cast<uint32_t>(stream[at / 8 + 1]) << 8;
  return static_cast<uint8_t>(word >> shift & ((1u << bits) - 1));
}

void ReadPlaneBytes(const Checkpoint::Entry& entry, uint64_t at, uint64_t bytes, void* out) {
  entry.file->Read(entry.tensor->offset + at, out, static_cast<size_t>(bytes));
}

}  // namespace

uint64_t CodePlane::stored_row_bytes() const {
  return stored.tensor->bytes / (by_column ? cols : rows);
}

void CodePlane::Read(uint64_t first, uint32_t n, uint8_t* out) const {
  if (by_column) return packs_down ? ReadDownAcross(first, n, out) : ReadAcross(first, n, out);
  return packs_down ? ReadDown(first, n, out) : ReadAlong(first, n, out);
}

// Reads codes stored as [rows, cols], packed along the rows.
void CodePlane::ReadAlong(uint64_t first, uint32_t n, uint8_t* out) const {
  const uint64_t stride = stored_row_bytes();
  std::vector<uint8_t> bytes(stride * n);
  ReadPlaneBytes(stored, first * stride, bytes.size(), bytes.data());
  if (bits == 8 && stride == cols) {
    std::copy(bytes.begin(), bytes.end(), out);
    return;
  }
  for (uint32_t r = 0; r < n; ++r) {
    const uint8_t* stream = bytes.data() + r * stride;
    for (uint64_t c = 0; c < cols; ++c) out[r * cols + c] = PackedCodeAt(stream, c * bits, bits);
  }
}

// Reads codes stored as [cols, rows], packed along the stored rows.
void CodePlane::ReadAcross(uint64_t first, uint32_t n, uint8_t* out) const {
  const uint64_t stride = stored_row_bytes();
  // Whole words, so that 8 codes of `order` are together.
  const uint64_t begin = first * bits / 32 * 4;
  const uint64_t end = std::min(CeilDiv((first + n) * bits, 32) * 4, stride);
  std::vector<uint8_t> bytes(end - begin);
  for (uint64_t c = 0; c < cols; ++c) {
    ReadPlaneBytes(stored, c * stride + begin, bytes.size(), bytes.data());
    for (uint32_t r = 0; r < n; ++r) {
      uint64_t i = first + r;
      if (order != nullptr) i = i / 8 * 8 + order[i % 8];
      out[r * cols + c] = PackedCodeAt(bytes.data(), i * bits - begin * 8, bits);
    }
  }
}

// Reads codes stored as [rows, cols], packed along the stored columns.
void CodePlane::ReadDown(uint64_t first, uint32_t n, uint8_t* out) const {
  const uint64_t begin = first * bits / 32, end = CeilDiv((first + n) * bits, 32);
  std::vector<uint32_t> words((end - begin) * cols);
  ReadPlaneBytes(stored, begin * cols * 4, words.size() * 4, words.data());
  for (uint32_t r = 0; r < n; ++r) {
    const uint64_t at = (first + r) * bits - begin * 32;
    const uint32_t shift = at % 32;
    for (uint64_t c = 0; c < cols; ++c) {
      const uint32_t* word = words.data() + at / 32 * cols + c;
      uint32_t code = *word >> shift;
      if (shift + bits > 32) code |= word[cols] << (32 - shift);
      out[r * cols + c] = static_cast<uint8_t>(code & ((1u << bits) - 1));
    }
  }
}

// Reads codes stored as [cols, rows], packed along the stored columns.
void CodePlane::ReadDownAcross(uint64_t first, uint32_t n, uint8_t* out) const {
  const uint64_t count = CeilDiv(cols * bits, 32);
  std::vector<uint32_t> words(count * n);
  for (uint64_t w = 0; w < count; ++w) {
    ReadPlaneBytes(stored, (w * rows + first) * 4, uint64_t{n} * 4, words.data() + w * n);
  }
  for (uint64_t c = 0; c < cols; ++c) {
    const uint64_t at = c * bits;
    const uint32_t shift = at % 32;
    const uint32_t* line = words.data() + at / 32 * n;
    for (uint32_t r = 0; r < n; ++r) {
      uint32_t code = line[r] >> shift;
      if (shift + bits > 32) code |= line[n + r] << (32 - shift);
      out[r * cols + c] = static_cast<uint8_t>(code & ((1u << bits) - 1));
    }
  }
}

bool IsScale(const SourceTensor& tensor) {
  const std::string& dtype = tensor.dtype;
  return dtype == "F32" || dtype == "F16" || dtype == "BF16" || dtype == "F8_E4M3" ||
         dtype == "U8" || dtype == "F8_E8M0";
}

void ReadScales(const Checkpoint::Entry& entry, uint64_t first, uint64_t count, float* out) {
  if (Checkpoint::IsFloat(*entry.tensor)) return Checkpoint::ReadFloats(entry, first, count, out);
  static const CodeTable kFp8 = Fp8E4m3Codes(), kPowers = E8m0Codes();
  const CodeTable& table = entry.tensor->dtype == "F8_E4M3" ? kFp8 : kPowers;
  std::vector<uint8_t> codes(count);
  ReadPlaneBytes(entry, first, count, codes.data());
  for (uint64_t i = 0; i < count; ++i) out[i] = table[codes[i]];
}

void ScalePlane::Read(uint64_t first, uint32_t n, float* out) const {
  const auto row_of = [this](uint64_t r) {
    return r / matrix_rows * scale_rows + r % matrix_rows / block_rows;
  };
  const uint64_t begin = row_of(first), count = row_of(first + n - 1) + 1 - begin;
  std::vector<float> rows(count * cols);
  if (by_column) {
    // GPTQ and AWQ store no stacks, so there is one matrix.
    std::vector<float> line(count);
    for (uint64_t c = 0; c < cols; ++c) {
      ReadScales(stored, c * scale_rows + begin, count, line.data());
      for (uint64_t r = 0; r < count; ++r) rows[r * cols + c] = line[r];
    }
  } else {
    ReadScales(stored, begin * cols, rows.size(), rows.data());
  }
  if (divisor != 1.0f) {
    for (float& scale : rows) scale /= divisor;
  }
  for (uint32_t r = 0; r < n; ++r) {
    std::copy_n(rows.data() + (row_of(first + r) - begin) * cols, cols, out + r * cols);
  }
}

}  // namespace arn::convert

// Order kDeviceRows: the layout that the shaders of kernels/vulkan read, so that a device can use a
// bundle's bytes in place. Declared here alone, for the converter, that backend, and the CPU, which
// unpacks it. The parts of a matrix:
//   values  [rows, row_bytes]: the elements; each row is zero-padded to 16 bytes. int4: byte i of a
//           word has element i in its low half and element i + 4 in its high half, each plus 8.
//   heads   from a multiple of kDeviceAlign on, [rows, kDeviceHeadBytes]: scale f32 (int8), bias
//           f32, sum of the row's values (int8: i32; int4: f32, each times its scale), 0
//   blocks  int4: [rows, block_row_bytes]: bf16 scales, padded with 0 to an even number
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/contract/weight.h"
#include "kernels/pack/pack.h"

namespace arn {

// Alignment of a matrix and of its heads: the largest that a device may ask of a binding.
inline constexpr uint64_t kDeviceAlign = 256;
inline constexpr uint64_t kDeviceQuadBytes = 16;
inline constexpr uint64_t kDeviceHeadBytes = 16;
inline constexpr uint64_t kDeviceBiasOffset = 4;  // in a head

struct DeviceRows {
  uint64_t element_bytes = 0;    // of a row
  uint64_t row_bytes = 0;        // the same, padded
  uint64_t heads_offset = 0;     // from the start of the matrix
  uint64_t blocks_offset = 0;    // int4: likewise
  uint64_t block_row_bytes = 0;  // int4; else 0
  uint64_t bytes = 0;
};

// REQUIRES: PackedBytes accepts the combination for kDeviceRows.
DeviceRows ShapeOfDeviceRows(DType dtype, uint32_t rows, uint32_t cols);

// A row in its final element type.
struct DeviceRowSource {
  const void* elements = nullptr;          // [cols]; int4: the words of UnpackRowInt4Words
  float scale = 0.0f;                      // int8
  const uint16_t* block_scales = nullptr;  // int4: bf16 [blocks of 32]
  float bias = 0.0f;
};

// Writes a row of a matrix: `values` has row_bytes, `head` kDeviceHeadBytes, and `blocks`
// block_row_bytes. Only writes to them: they may be memory of a device. source.elements may be
// `values`.
void PutDeviceRow(const DeviceRows& shape, DType dtype, const DeviceRowSource& source,
                  std::byte* values, std::byte* head, std::byte* blocks);

}  // namespace arn

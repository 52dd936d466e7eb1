// Bounds the resident part of a matrix whose rows are looked up in a mapped file.
#pragma once

#include <cstdint>

#include "kernels/contract/backend.h"
#include "kernels/pack/device_rows.h"
#include "kernels/pack/pack.h"
#include "platform/os/pages.h"

namespace arn {

// Drops the pages of a row that has been read, if the matrix is the run's row table.
inline void ForgetRow(const RunArgs& args, const Weight& weight, uint32_t row) {
  if (args.row_table.empty() || args.row_table.data() != weight.data) return;
  const auto forget = [&](uint64_t first, uint64_t row_bytes) {
    if (row_bytes == 0) return;
    const std::byte* const at = weight.data + static_cast<size_t>(first + row * row_bytes);
    ForgetPagesAround({at, static_cast<size_t>(row_bytes)}, args.row_table);
  };
  if (weight.layout.order == WeightOrder::kDeviceRows) {
    const DeviceRows rows = ShapeOfDeviceRows(weight.dtype, weight.rows, weight.cols);
    forget(0, rows.row_bytes);
    forget(rows.heads_offset, kDeviceHeadBytes);
    forget(rows.blocks_offset, rows.block_row_bytes);
  } else if (weight.layout.order == WeightOrder::kRows) {
    const RowsBlobLayout rows = RowsBlob(weight.dtype, weight.rows, weight.cols);
    forget(rows.values_offset, rows.row_bytes);
    forget(rows.scales_offset, rows.scale_row_bytes);
  }
}

}  // namespace arn

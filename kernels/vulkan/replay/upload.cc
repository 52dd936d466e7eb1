// Copies weights to the device in chunks of the staging buffer.
#include <cstring>

#include "kernels/vulkan/replay/vulkan_state.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

// Uploads a matrix n rows at a time, as many as fit. The front of the staging memory holds the data
// to copy, its end the scratch to unpack a row.
class Uploader {
 public:
  Uploader(State* state, Diag* diag) : s_(*state), diag_(diag) {}

  Status Bytes(const DeviceWeight& at, const std::byte* from, uint64_t n) {
    return s_.transfer.Write(s_.device, s_.blocks[at.block], at.values,
                             {from, static_cast<size_t>(n)}, diag_);
  }

  Status Matrix(const Weight& weight, const DeviceWeight& at) {
    const uint64_t scratch = AlignUp(WeightRowBytes(weight), kSliceAlign);
    const uint64_t row_needs =
        Max<uint64_t>(at.row_bytes, (kRowHeadWords + at.block_words) * sizeof(uint32_t));
    if (scratch + row_needs > Transfer::kStagingBytes) {
      return diag_->Fail(Status::kUnsupported, "Vulkan: a matrix of %u columns", weight.cols);
    }
    std::byte* row = s_.transfer.staging() + Transfer::kStagingBytes - scratch;
    const Buffer& block = s_.blocks[at.block];
    const auto most = static_cast<uint32_t>((Transfer::kStagingBytes - scratch) / row_needs);
    for (uint32_t first = 0; first < weight.rows; first += most) {
      const uint32_t n = Min(most, weight.rows - first);
      ARN_TRY(Values(weight, at, first, n, row, block));
      const uint64_t head_bytes = uint64_t{n} * kRowHeadWords * sizeof(uint32_t);
      const uint64_t block_bytes = uint64_t{n} * at.block_words * sizeof(uint32_t);
      std::byte* heads = s_.transfer.staging();
      FillHeads(weight, at, first, n, row, heads, heads + head_bytes);
      ARN_TRY(s_.transfer.Flush(s_.device, block,
                                at.heads + uint64_t{first} * kRowHeadWords * sizeof(uint32_t),
                                head_bytes, diag_));
      if (block_bytes == 0) continue;
      std::memmove(heads, heads + head_bytes, block_bytes);
      const uint64_t to = at.blocks_words + uint64_t{first} * at.block_words;
      ARN_TRY(s_.transfer.Flush(s_.device, block, at.heads + to * sizeof(uint32_t), block_bytes,
                                diag_));
    }
    return Status::kOk;
  }

 private:
  // Writes directly to device memory if mapped.
  Status Values(const Weight& weight, const DeviceWeight& at, uint32_t first, uint32_t n,
                std::byte* row, const Buffer& block) {
    const uint64_t to = at.values + uint64_t{first} * at.row_bytes;
    if (block.mapped != nullptr) {
      FillValues(weight, at, first, n, row, block.mapped + to);
      return Status::kOk;
    }
    FillValues(weight, at, first, n, row, s_.transfer.staging());
    return s_.transfer.Flush(s_.device, block, to, uint64_t{n} * at.row_bytes, diag_);
  }

  State& s_;
  Diag* diag_;
};

}  // namespace

Status Upload(State* state, Diag* diag) {
  State& s = *state;
  const Program& program = *s.program;
  Uploader uploader(state, diag);
  const auto n = static_cast<uint32_t>(program.weights.size());
  for (uint32_t i = 0; i < n; ++i) {
    const Weight& weight = program.weights[i];
    ARN_TRY(weight.is_vector ? uploader.Bytes(s.weights[i], weight.data, s.weights[i].values_bytes)
                             : uploader.Matrix(weight, s.weights[i]));
  }
  for (uint32_t i = 0; i < program.ropes.size(); ++i) {
    const auto* from = reinterpret_cast<const std::byte*>(program.ropes[i].inv_freq.data());
    ARN_TRY(uploader.Bytes(s.weights[n + i], from, s.weights[n + i].values_bytes));
  }
  return Status::kOk;
}

}  // namespace arn::vulkan

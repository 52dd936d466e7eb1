// Copies weights to the device, on several threads: directly if its memory is mapped, else in
// chunks of the staging buffer. Those in imported pages are there already.
#include <cstring>

#include "kernels/vulkan/replay/vulkan_state.h"
#include "platform/base/arith.h"
#include "platform/os/thread_pool.h"

namespace arn::vulkan {
namespace {

constexpr uint32_t kMostThreads = 8;
constexpr uint32_t kTaskRows = 16;
constexpr uint64_t kTaskBytes = uint64_t{1} << 20;

// Rows [first, first + n) of a matrix, and where their parts go.
struct Rows {
  const Weight& weight;
  const DeviceWeight& at;
  uint32_t first, n;
  std::byte *values, *heads, *blocks;
  std::byte* scratch;  // scratch_bytes of each thread
  uint64_t scratch_bytes;
};

void FillTask(void* context, uint32_t thread, size_t task) {
  const Rows& rows = *static_cast<const Rows*>(context);
  const auto begin = static_cast<uint32_t>(task * kTaskRows);
  for (uint32_t i = begin; i < Min(begin + kTaskRows, rows.n); ++i) {
    FillRow(rows.weight, rows.first + i, rows.scratch + thread * rows.scratch_bytes,
            rows.values + uint64_t{i} * rows.at.row_bytes,
            rows.heads + uint64_t{i} * kRowHeadWords * sizeof(uint32_t),
            rows.blocks + uint64_t{i} * rows.at.block_words * sizeof(uint32_t));
  }
}

struct Bytes {
  const std::byte* from;
  std::byte* to;
  uint64_t n;
};

void CopyTask(void* context, uint32_t, size_t task) {
  const Bytes& bytes = *static_cast<const Bytes*>(context);
  const uint64_t begin = task * kTaskBytes;
  std::memcpy(bytes.to + begin, bytes.from + begin, Min(kTaskBytes, bytes.n - begin));
}

class Uploader {
 public:
  Uploader(State* state, Diag* diag) : s_(*state), diag_(diag) {}
  ~Uploader() { threads_.Stop(); }

  Status Start(uint32_t n_threads) {
    if (threads_.Start(Min(n_threads, kMostThreads))) return Status::kOk;
    return diag_->Fail(Status::kOutOfMemory, "Vulkan: %u threads could not be started", n_threads);
  }

  // Copies bytes that have the device's layout.
  Status Copy(const Buffer& block, uint64_t at, const std::byte* from, uint64_t n) {
    if (block.mapped == nullptr) {
      return s_.transfer.Write(s_.device, block, at, {from, static_cast<size_t>(n)}, diag_);
    }
    Bytes bytes = {from, block.mapped + at, n};
    if (n <= kTaskBytes) {
      CopyTask(&bytes, 0, 0);
    } else {
      threads_.Run(static_cast<size_t>(CeilDiv(n, kTaskBytes)), CopyTask, &bytes);
    }
    return Status::kOk;
  }

  // The end of the staging memory is the threads' scratch.
  Status Matrix(const Weight& weight, const DeviceWeight& at) {
    const uint64_t scratch = AlignUp(RowScratchBytes(weight), kSliceAlign);
    const uint64_t scratches = threads_.count() * scratch;
    const uint64_t row_needs = at.row_bytes + HeadBytes(1) + BlockBytes(at, 1);
    if (scratches + row_needs > Transfer::kStagingBytes) {
      return diag_->Fail(Status::kUnsupported, "Vulkan: a matrix of %u columns", weight.cols);
    }
    const uint64_t room = Transfer::kStagingBytes - scratches;
    std::byte* staging = s_.transfer.staging();
    Rows rows = {weight, at, 0, 0, nullptr, nullptr, nullptr, staging + room, scratch};
    const Buffer& block = s_.blocks[at.block];
    if (block.mapped != nullptr) {
      rows.n = weight.rows;
      rows.values = block.mapped + at.values;
      rows.heads = block.mapped + at.heads;
      rows.blocks = block.mapped + BlocksAt(at, 0);
      Fill(&rows);
      return Status::kOk;
    }
    const auto most = static_cast<uint32_t>(room / row_needs);
    for (; rows.first < weight.rows; rows.first += most) {
      rows.n = Min(most, weight.rows - rows.first);
      rows.values = staging;
      rows.heads = rows.values + uint64_t{rows.n} * at.row_bytes;
      rows.blocks = rows.heads + HeadBytes(rows.n);
      Fill(&rows);
      ARN_TRY(Flush(rows, block));
    }
    return Status::kOk;
  }

 private:
  static uint64_t HeadBytes(uint64_t n) { return n * kRowHeadWords * sizeof(uint32_t); }
  static uint64_t BlockBytes(const DeviceWeight& at, uint64_t n) {
    return n * at.block_words * sizeof(uint32_t);
  }
  static uint64_t BlocksAt(const DeviceWeight& at, uint32_t row) {
    return at.heads + uint64_t{at.blocks_words} * sizeof(uint32_t) + BlockBytes(at, row);
  }

  void Fill(Rows* rows) { threads_.Run(CeilDiv(rows->n, kTaskRows), FillTask, rows); }

  Status Flush(const Rows& rows, const Buffer& block) {
    const DeviceWeight& at = rows.at;
    const auto copy = [&](const std::byte* from, uint64_t to, uint64_t bytes) {
      if (bytes == 0) return Status::kOk;
      return s_.transfer.Flush(s_.device, static_cast<uint64_t>(from - s_.transfer.staging()),
                               block, to, bytes, diag_);
    };
    ARN_TRY(copy(rows.values, at.values + uint64_t{rows.first} * at.row_bytes,
                 uint64_t{rows.n} * at.row_bytes));
    ARN_TRY(copy(rows.heads, at.heads + HeadBytes(rows.first), HeadBytes(rows.n)));
    return copy(rows.blocks, BlocksAt(at, rows.first), BlockBytes(at, rows.n));
  }

  State& s_;
  ThreadPool threads_;
  Diag* diag_;
};

}  // namespace

Status Upload(State* state, uint32_t n_threads, Diag* diag) {
  State& s = *state;
  const Program& program = *s.program;
  Uploader uploader(state, diag);
  ARN_TRY(uploader.Start(n_threads));
  const auto n = static_cast<uint32_t>(program.weights.size());
  for (const Buffer& block : s.blocks) {
    if (block.pages == nullptr || block.is_imported) continue;
    const auto left =
        static_cast<uint64_t>(program.file.data() + program.file.size() - block.pages);
    ARN_TRY(uploader.Copy(block, 0, block.pages, Min(block.bytes, left)));
  }
  const UsedWeights used = UsedWeightsOf(program);
  for (uint32_t i = used.first; i < Min(used.end, n); ++i) {
    const Weight& weight = program.weights[i];
    const DeviceWeight& at = s.weights[i];
    const Buffer& block = s.blocks[at.block];
    if (block.pages != nullptr) continue;
    const bool is_packed = weight.layout.order == WeightOrder::kDeviceRows;
    ARN_TRY(weight.is_vector || is_packed
                ? uploader.Copy(block, at.values, weight.data, weight.bytes)
                : uploader.Matrix(weight, at));
  }
  for (uint32_t i = 0; i < program.ropes.size(); ++i) {
    const DeviceWeight& at = s.weights[n + i];
    const auto* from = reinterpret_cast<const std::byte*>(program.ropes[i].inv_freq.data());
    ARN_TRY(uploader.Copy(s.blocks[at.block], at.values, from, at.values_bytes));
  }
  return Status::kOk;
}

}  // namespace arn::vulkan

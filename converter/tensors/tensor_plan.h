// Plans the tensors of a bundle and the checkpoint tensors that each is made of. Checks all names,
// shapes and types before a byte is written.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "converter/family/decoder_spec.h"
#include "converter/hf/checkpoint.h"
#include "kernels/contract/weight.h"
#include "kernels/pack/pack.h"
#include "runtime/bundle/layer_fields.h"

namespace arn::convert {

// Element types of a bundle's matrices, and the CPU they are packed for. Vectors are always f32.
struct Formats {
  DType weights = DType::kInt8;
  DType embedding = DType::kInt8;
  DType head = DType::kInt8;
  const PackTarget* target = nullptr;
  // Layer matrices with another type than `weights`, by their names in the bundle.
  std::map<std::string, DType> exceptions = {};
};

// Heads that are stored in turn: the first of every group, the second of every group, and so on.
struct HeadTurns {
  uint32_t first = 0;  // row or column where they begin
  uint32_t head_dim = 0;
  uint32_t groups = 1;
  uint32_t in_group = 1;  // 1: stored in order

  bool is_in_order() const { return in_group == 1 || groups == 1; }
  // Returns the stored place of a row or column.
  uint32_t Stored(uint32_t i) const {
    if (is_in_order() || i < first) return i;
    const uint32_t head = (i - first) / head_dim, group = head / in_group;
    return first + (head % in_group * groups + group) * head_dim + (i - first) % head_dim;
  }
  // Returns the number of places from `i` on that are stored one after the other; 0: all.
  uint32_t RunLength(uint32_t i) const {
    if (is_in_order()) return 0;
    return i < first ? first - i : head_dim - (i - first) % head_dim;
  }
};

// Rows of a matrix that come from one tensor of the checkpoint. Row r is the tensor's row first_row
// + r / block_rows * block_stride + r % block_rows.
struct SourcePart {
  const Checkpoint::Entry* weight = nullptr;
  const Checkpoint::Entry* bias = nullptr;  // f32/f16/bf16 [source rows] or null
  uint32_t rows = 0;
  uint32_t first_row = 0;
  uint32_t block_rows = 0;  // consecutive rows; 0: all
  uint32_t block_stride = 0;
  uint32_t transposed_rows = 0;  // not 0: the tensor is [cols, transposed_rows]
  // Tensors with further columns of a transposed part.
  const Checkpoint::Entry* more_columns[2] = {};
  uint64_t first_element = 0;  // start of the matrix in a tensor that holds several
  uint64_t first_bias = 0;
  // Not 0: reorders each row from [cols / taps, taps] to [taps, cols / taps].
  uint32_t taps = 0;
  // Not 0: sums the frames of a convolution over images that repeat: each row is stored as
  // [cols / frame_cols, frames, frame_cols].
  uint32_t frames = 0, frame_cols = 0;
  // Not 0: of every four blocks of so many columns, the second and the third are exchanged.
  uint32_t exchanged_block = 0;
  bool is_bound = false;   // infinities become the largest numbers
  HeadTurns row_turns;     // not together with blocks of rows
  HeadTurns column_turns;  // nor this with other orders of columns
  // The source row of each row, in place of the fields above. Null: they say it.
  std::shared_ptr<const std::vector<uint32_t>> row_order;
  // Not 0: the columns are three blocks of these sizes, stored last first.
  uint32_t stored_blocks[3] = {};
  float factor = 1.0f;               // of weights and biases
  float input_factor = 1.0f;         // of weights alone
  bool is_negative_log = false;      // stores -e^x of the weights
  std::optional<uint32_t> zero_row;  // is zeros, whatever the tensor has

  uint32_t SourceRow(uint32_t row) const {
    if (row_order != nullptr) return (*row_order)[row];
    if (block_rows != 0) return first_row + row / block_rows * block_stride + row % block_rows;
    return row_turns.Stored(first_row + row);
  }
  // Returns the stored column of a column.
  uint32_t SourceColumn(uint32_t col) const {
    if (exchanged_block != 0) {
      const uint32_t block = col / exchanged_block % 4;
      if (block == 1) return col + exchanged_block;
      return block == 2 ? col - exchanged_block : col;
    }
    const uint32_t first = stored_blocks[0], second = stored_blocks[1], third = stored_blocks[2];
    if (first == 0) return column_turns.Stored(col);
    if (col < first) return col + second + third;
    return col < first + second ? col - first + third : col - first - second;
  }
  // Returns the number of contiguous source rows from `row` on.
  uint32_t RunLength(uint32_t row) const {
    if (row_order != nullptr) return 1;
    if (block_rows != 0) return block_rows - row % block_rows;
    const uint32_t run = row_turns.RunLength(first_row + row);
    return run == 0 ? rows - row : std::min(run, rows - row);
  }
};

struct PlannedTensor {
  std::string name;  // the bundle's own, such as "layers.0.qkv"
  DType dtype = DType::kF32;
  WeightLayout layout;
  bool is_packed = true;  // for the target; false: a table of rows, unless a type of codes
  bool is_vector = false;
  float offset = 0.0f;  // added to a vector's elements, which are 0 without parts
  float factor = 1.0f;  // then multiplies them
  uint32_t rows = 0;    // the sum of the parts' rows; 1 for a vector
  uint32_t cols = 0;
  std::vector<SourcePart> parts;  // a vector's follow one another
  // ALiBi, in place of parts: row d is -d times these.
  std::vector<float> slopes;
  std::vector<float> literal;  // likewise: a vector's elements

  bool has_bias() const;
  // Returns the layout that the matrix has in a type.
  WeightLayout LayoutOf(DType of, const PackTarget& target) const;
  // Returns the number of elements, as a measure of the work.
  uint64_t elements() const { return static_cast<uint64_t>(rows) * cols; }
};

inline constexpr uint32_t kNoTensor = kNoWeight;

struct ProjectorTensors {
  uint32_t norm = kNoTensor;
  uint32_t norm_bias = kNoTensor;
  std::vector<uint32_t> stages;
};

// Tensors of a convolution over an encoder's features.
struct ConvolutionTensors {
  uint32_t weight = kNoTensor;
  uint32_t norm = kNoTensor;
  uint32_t norm_bias = kNoTensor;
};

// Tensors of a vision tower.
struct VisionTensors {
  uint32_t patch_embedding = kNoTensor;
  uint32_t positions = kNoTensor;
  std::vector<LayerTensors> layers;
  uint32_t final_norm = kNoTensor;
  uint32_t final_norm_bias = kNoTensor;
  uint32_t merge_shift = kNoTensor;
  uint32_t merge_scale = kNoTensor;
  ProjectorTensors projector;
  std::vector<ProjectorTensors> deepstack;
};

// Tensors of a multi-token prediction head; those of a model without one are kNoTensor.
struct MtpTensors {
  uint32_t embedding_norm = kNoTensor;
  uint32_t hidden_norm = kNoTensor;
  uint32_t fc_embedding = kNoTensor;
  uint32_t fc_hidden = kNoTensor;
  std::vector<LayerTensors> layers;
  uint32_t final_norm = kNoTensor;
  // Tensors of an assistant alone.
  uint32_t out = kNoTensor;
  uint32_t head = kNoTensor;
  uint32_t clusters = kNoTensor;
  uint32_t cluster_ids = kNoTensor;
  uint32_t first = kNoTensor;  // all tensors from here on are the head's
};

struct TensorPlan {
  std::vector<PlannedTensor> tensors;  // in write order
  std::vector<LayerTensors> layers;    // indices into tensors
  uint32_t per_layer_embedding = kNoTensor;
  uint32_t per_layer_projection = kNoTensor;
  uint32_t per_layer_norm = kNoTensor;
  uint32_t stream_in = kNoTensor;
  uint32_t stream_out = kNoTensor;
  // Encoder, if any.
  std::vector<LayerTensors> encoder_layers;
  std::vector<ConvolutionTensors> convolutions;
  uint32_t encoder_positions = kNoTensor;
  uint32_t encoder_final_norm = kNoTensor;
  uint32_t encoder_final_norm_bias = kNoTensor;
  uint32_t embedding = kNoTensor;
  uint32_t positions = kNoTensor;
  uint32_t encoder_embedding = kNoTensor;  // of its own
  uint32_t head_dense = kNoTensor;
  uint32_t head_norm = kNoTensor, head_norm_bias = kNoTensor;
  uint32_t embedding_norm = kNoTensor;
  uint32_t embedding_norm_bias = kNoTensor;
  uint32_t final_norm = kNoTensor;
  uint32_t final_norm_bias = kNoTensor;
  uint32_t token_types = kNoTensor;
  // A layer over pooled rows.
  struct Dense {
    uint32_t weight = kNoTensor, norm = kNoTensor, norm_bias = kNoTensor;
  };
  std::vector<Dense> dense;
  VisionTensors vision;  // empty without a tower
  MtpTensors mtp;
  uint32_t head = kNoTensor;  // same as embedding if tied and of one format
};

// Throws ConvertError with the names of missing tensors, of tensors that the spec does not use, or
// of tensors with an unexpected shape or type. `checkpoint` must outlive the plan.
TensorPlan MakeTensorPlan(const DecoderSpec& spec, const Checkpoint& checkpoint,
                          const Formats& formats, std::vector<std::string>* warnings);

}  // namespace arn::convert

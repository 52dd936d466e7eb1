// FP8 as DeepSeek and Qwen publish it (quant_method fp8), and MXFP8: E4M3 codes and one scale for
// each block of rows and columns, or one for the whole matrix. As class Fp8Dequantize of
// transformers 5.12 (integrations/finegrained_fp8.py): code * scale in float32; what it rounds this
// to is the type that the model is loaded in. It takes the size of a block from the number of
// scales; here weight_block_size decides, as in its kernels, so that the last block may be smaller.
#include <cinttypes>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "converter/hf/quantised/readers.h"
#include "converter/hf/quantised/stored_parts.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

struct Fp8Block {
  uint64_t rows = 0, cols = 0;  // 0: the whole matrix
};

Fp8Block ReadBlockSize(ConfigReader* config) {
  constexpr const char* kKey = "weight_block_size";
  const nlohmann::json* value = config->Find(kKey);
  if (config->IsNull(kKey)) return {};
  if (value == nullptr) return {128, 128};  // of FineGrainedFP8Config
  const auto is_side = [](const nlohmann::json& side) {
    return side.is_number_unsigned() && side.get<uint64_t>() >= 1 &&
           side.get<uint64_t>() <= INT32_MAX;
  };
  if (!value->is_array() || value->size() != 2 || !is_side((*value)[0]) || !is_side((*value)[1])) {
    config->FailKey(kKey, "two whole numbers from 1 to 2147483647");
  }
  return {(*value)[0].get<uint64_t>(), (*value)[1].get<uint64_t>()};
}

// Returns the name of the scales of tensor `name`, or what it should be.
std::string Fp8ScaleName(const StoredParts& parts, const std::string& name) {
  std::vector<std::string> names = {name + "_scale_inv", name + "_scale"};
  const std::string end = ".weight";
  if (name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0) {
    names.push_back(name.substr(0, name.size() - end.size()) + ".scale");
  }
  for (const std::string& candidate : names) {
    if (parts.Find(candidate) != nullptr) return candidate;
  }
  return names[0];
}

void AddFp8(const std::string& name, const Fp8Block& wanted, StoredParts* parts) {
  const Checkpoint::Entry& codes = *parts->Find(name);
  const std::vector<uint64_t>& shape = codes.tensor->shape;
  if (shape.size() < 2 || shape.size() > 3 || codes.tensor->elements() == 0) {
    FailPart(codes, "expected a matrix or a stack of them, found shape " + ShapeText(shape));
  }
  const std::string scale_name = Fp8ScaleName(*parts, name);
  const Checkpoint::Entry& scales = parts->Need(scale_name, name);
  CheckScales(scales);
  const uint64_t rows = shape[shape.size() - 2], cols = shape.back();
  const uint64_t stack = shape.size() == 3 ? shape[0] : 1;
  std::vector<uint64_t> grid = scales.tensor->shape;
  const uint64_t n_scales = scales.tensor->elements();
  Fp8Block block = wanted;
  if (n_scales == stack) {
    grid.assign(shape.size(), 1);
    grid[0] = stack;
    block = {rows, cols};
  } else if (grid.size() != shape.size() || (stack != 1 && grid[0] != stack)) {
    FailPart(scales, "expected one number or blocks of " + ShapeText(shape) + ", found shape " +
                         ShapeText(grid));
  }
  const uint64_t scale_rows = grid[grid.size() - 2], scale_cols = grid.back();
  const auto fits = [&](uint64_t block_rows, uint64_t block_cols) {
    return block_rows != 0 && block_cols != 0 && CeilDiv(rows, block_rows) == scale_rows &&
           CeilDiv(cols, block_cols) == scale_cols;
  };
  if (!fits(block.rows, block.cols) && n_scales != 0 && rows % scale_rows == 0 &&
      cols % scale_cols == 0) {
    block = {rows / scale_rows, cols / scale_cols};
  }
  if (!fits(block.rows, block.cols)) {
    FailPart(
        scales,
        Format("expected a scale for each block of %" PRIu64 " x %" PRIu64 " of %s, found shape %s",
               block.rows, block.cols, ShapeText(shape).c_str(), ShapeText(grid).c_str()));
  }
  QuantisedGrid matrix;
  matrix.codes.stored = codes;
  matrix.codes.rows = stack * rows;
  matrix.codes.cols = cols;
  matrix.values = Fp8E4m3Codes();
  matrix.scales.stored = scales;
  matrix.scales.cols = scale_cols;
  matrix.scales.block_rows = block.rows;
  matrix.scales.matrix_rows = rows;
  matrix.scales.scale_rows = scale_rows;
  matrix.group_cols = block.cols;
  parts->Add(name, shape, std::move(matrix), {name, scale_name});
}

}  // namespace

void ReadFineGrainedFp8(StoredParts* parts) {
  ConfigReader& config = parts->config();
  const Fp8Block block = ReadBlockSize(&config);
  if (config.String("fmt").value_or("e4m3") != "e4m3") config.FailKey("fmt", "e4m3");
  parts->RefuseOtherKeys({"activation_scheme", "dequantize", "ignored_layers",
                          "modules_to_not_convert", "quant_method", "scale_fmt"});
  for (const std::string& name : parts->NamesBefore("")) {
    const Checkpoint::Entry* entry = parts->Find(name);  // null: scales of an earlier matrix
    if (entry != nullptr && entry->tensor->dtype == "F8_E4M3") AddFp8(name, block, parts);
  }
  for (const char* end : {".activation_scale", ".input_scale"}) parts->LeaveOut(end);
  if (config.Has("activation_scheme")) {
    parts->Note("activation_scheme is left out: the runtime rounds activations in its own way");
  }
}

}  // namespace arn::convert

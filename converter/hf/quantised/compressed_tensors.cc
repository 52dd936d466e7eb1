// compressed-tensors, which llm-compressor and vLLM write (quant_method compressed-tensors;
// https://github.com/vllm-project/compressed-tensors): of each module
//   weight (int8 or FP8), or weight_packed: codes of 1 to 8 bits plus 2^(bits - 1), one after
//     another in words of 32 bits along the rows (pack-quantized), or pairs of 4-bit floats in
//     bytes, the first in the low half (nvfp4- and mxfp4-pack-quantized);
//   weight_scale: of the matrix, of each row, of each group of columns of a row, or of each block;
//   weight_zero_point: like the scales, int8, or packed along the columns where the weight is
//   packed; weight_g_idx: the group of each column; weight_global_scale, which divides all scales
//   (NVFP4).
// As _dequantize (quantization/lifecycle/forward_helpers.py): (code - zero) * scale, with scale =
// weight_scale / weight_global_scale where there is one, here in float32, there in the type of the
// scales (float32 with a global scale).
#include <algorithm>
#include <cinttypes>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "converter/hf/quantised/compressed_scheme.h"
#include "converter/hf/quantised/readers.h"
#include "converter/hf/quantised/stored_parts.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

// Everything about one module while it is read.
struct CompressedModule {
  std::string name;   // with the last dot: "model.layers.0.mlp.up_proj."
  std::string found;  // the tensor by which it was found
  const CompressedScheme* scheme = nullptr;
  std::vector<std::string> stored;  // names of the tensors that are read
  QuantisedGrid matrix;
  uint64_t rows = 0, cols = 0;
};

const Checkpoint::Entry& TakePart(const char* part, StoredParts* parts, CompressedModule* module) {
  module->stored.push_back(module->name + part);
  return parts->Need(module->stored.back(), module->found);
}

void FailScheme(const Checkpoint::Entry& entry, const CompressedScheme& scheme) {
  FailPart(entry, Format("%s of shape %s does not fit %s, which says %s, %u bits",
                         entry.tensor->dtype.c_str(), ShapeText(entry.tensor->shape).c_str(),
                         scheme.label.c_str(), scheme.is_float ? "float" : "int", scheme.bits));
}

// The codes of weight_packed.
void ReadPackedCodes(StoredParts* parts, CompressedModule* module) {
  const Checkpoint::Entry& packed = TakePart("weight_packed", parts, module);
  const CompressedScheme& scheme = *module->scheme;
  CheckMatrix(packed);
  CodePlane& codes = module->matrix.codes;
  codes.stored = packed;
  codes.bits = scheme.bits;
  module->rows = packed.tensor->shape[0];
  if (packed.tensor->dtype == "U8" && scheme.is_float && scheme.bits == 4) {
    module->cols = packed.tensor->shape[1] * 2;
    module->matrix.values = Fp4E2m1Codes();
    return;
  }
  if (packed.tensor->dtype != "I32" || scheme.is_float) FailScheme(packed, scheme);
  const Checkpoint::Entry& shape_tensor = TakePart("weight_shape", parts, module);
  const std::vector<int64_t> shape = ReadWhole(shape_tensor, 2);
  if (shape.size() != 2 || shape[0] != static_cast<int64_t>(module->rows) || shape[1] < 1 ||
      shape[1] > INT32_MAX ||
      CeilDiv(static_cast<uint64_t>(shape[1]) * scheme.bits, 32) != packed.tensor->shape[1]) {
    FailPart(shape_tensor, Format("[%" PRId64 ", %" PRId64 "] does not fit %s of codes of %u bits",
                                  shape.empty() ? 0 : shape[0], shape.size() < 2 ? 0 : shape[1],
                                  ShapeText(packed.tensor->shape).c_str(), scheme.bits));
  }
  module->cols = static_cast<uint64_t>(shape[1]);
  module->matrix.is_integer = true;
  module->matrix.values = IntegerCodes(scheme.bits, 1 << (scheme.bits - 1));
}

// The codes of weight, one byte each.
void ReadByteCodes(StoredParts* parts, CompressedModule* module) {
  const Checkpoint::Entry& weight = TakePart("weight", parts, module);
  CheckMatrix(weight);
  const bool is_int = weight.tensor->dtype == "I8", is_fp8 = weight.tensor->dtype == "F8_E4M3";
  if ((!is_int && !is_fp8) || is_fp8 != module->scheme->is_float ||
      (is_fp8 && module->scheme->bits != 8)) {
    FailScheme(weight, *module->scheme);
  }
  module->rows = weight.tensor->shape[0];
  module->cols = weight.tensor->shape[1];
  module->matrix.codes.stored = weight;
  module->matrix.is_integer = is_int;
  module->matrix.values = is_int ? SignedCodes() : Fp8E4m3Codes();
}

void ReadScalePlane(StoredParts* parts, CompressedModule* module) {
  const Checkpoint::Entry& scales = TakePart("weight_scale", parts, module);
  CheckScales(scales);
  const CompressedScheme& scheme = *module->scheme;
  const std::vector<uint64_t>& shape = scales.tensor->shape;
  ScalePlane& plane = module->matrix.scales;
  plane.stored = scales;
  plane.matrix_rows = module->rows;
  plane.scale_rows = module->rows;
  module->matrix.group_cols = module->cols;
  if (scheme.strategy == CompressedStrategy::kTensor || scales.tensor->elements() == 1) {
    if (scales.tensor->elements() != 1) CheckShape(scales, {1});
    plane.block_rows = module->rows;
    plane.scale_rows = 1;
    return;
  }
  if (scheme.strategy == CompressedStrategy::kChannel) {
    if (shape.size() != 1) return CheckShape(scales, {module->rows, 1});
    return CheckShape(scales, {module->rows});
  }
  const bool is_block = scheme.strategy == CompressedStrategy::kBlock;
  if (is_block) {
    plane.block_rows = scheme.block_rows;
    plane.scale_rows = CeilDiv(module->rows, scheme.block_rows);
  }
  const uint64_t group_cols = is_block ? scheme.block_cols : scheme.group_size;
  plane.cols = CeilDiv(module->cols, group_cols);
  CheckShape(scales, {plane.scale_rows, plane.cols});
  if (!is_block && module->cols > group_cols && module->cols % group_cols != 0) {
    FailPart(scales, Format("the %" PRIu64 " columns are no whole groups of %" PRIu64, module->cols,
                            group_cols));
  }
  module->matrix.group_cols = group_cols;
}

// Returns the values of a tensor of zeros that is no plane: all zero, or one for the whole matrix.
float ReadConstantZero(const Checkpoint::Entry& zeros, const CodeTable& values) {
  const uint64_t count = zeros.tensor->elements();
  std::vector<uint8_t> codes(count);
  zeros.file->Read(zeros.tensor->offset, codes.data(), count);
  for (const uint8_t code : codes) {
    if (values[code] != values[codes[0]] || (count > 1 && values[code] != 0.0f)) {
      FailPart(zeros, "zeros of blocks are not read");
    }
  }
  return codes.empty() ? 0.0f : values[codes[0]];
}

void ReadCompressedZeros(StoredParts* parts, CompressedModule* module) {
  const CompressedScheme& scheme = *module->scheme;
  const std::string name = module->name + "weight_zero_point";
  if (scheme.is_symmetric && parts->Find(name) == nullptr) return;
  const Checkpoint::Entry& zeros = TakePart("weight_zero_point", parts, module);
  QuantisedGrid& matrix = module->matrix;
  CodePlane& plane = matrix.zeros;
  plane.stored = zeros;
  plane.rows = module->rows;
  plane.cols = matrix.scales.cols;
  if (zeros.tensor->dtype == "I32" && matrix.codes.stored.tensor->dtype == "I32") {
    plane.bits = scheme.bits;
    plane.packs_down = true;
    CheckShape(zeros, {CeilDiv(module->rows * scheme.bits, 32), plane.cols});
    if (matrix.scales.scale_rows != module->rows) {
      FailPart(zeros, "packed zeros of a whole matrix are not read");
    }
    matrix.zero_values = IntegerCodes(scheme.bits, 1 << (scheme.bits - 1));
    matrix.has_zeros = true;
    return;
  }
  CheckType(zeros, {"I8", "F8_E4M3"});
  CheckShape(zeros, matrix.scales.stored.tensor->shape);
  matrix.zero_values = zeros.tensor->dtype == "I8" ? SignedCodes() : Fp8E4m3Codes();
  if (matrix.scales.scale_rows == module->rows) {
    matrix.has_zeros = true;
    return;
  }
  const float zero = ReadConstantZero(zeros, matrix.zero_values);
  for (float& value : matrix.values) value -= zero;
}

void ReadCompressedIndices(StoredParts* parts, CompressedModule* module) {
  const std::string name = module->name + "weight_g_idx";
  if (!module->scheme->has_indices && parts->Find(name) == nullptr) return;
  const Checkpoint::Entry& entry = TakePart("weight_g_idx", parts, module);
  QuantisedGrid& matrix = module->matrix;
  matrix.group_of = ReadGroupIndices(entry, module->cols, matrix.scales.cols);
  // The library sorts the columns by group and cuts them into groups of one size.
  std::vector<uint64_t> counts(matrix.scales.cols);
  for (const uint32_t group : matrix.group_of) ++counts[group];
  for (size_t g = 0; g < counts.size() && !matrix.group_of.empty(); ++g) {
    if (counts[g] == matrix.group_cols) continue;
    FailPart(entry, Format("group %zu has %" PRIu64 " columns, expected %" PRIu64, g, counts[g],
                           matrix.group_cols));
  }
}

void AddCompressed(const std::string& base, bool is_packed, const CompressedSchemes& schemes,
                   StoredParts* parts) {
  CompressedModule module;
  module.name = base + ".";
  module.found = module.name + (is_packed ? "weight_packed" : "weight_scale");
  module.scheme = &schemes.Of(base);
  if (is_packed) {
    ReadPackedCodes(parts, &module);
  } else {
    ReadByteCodes(parts, &module);
  }
  module.matrix.codes.rows = module.rows;
  module.matrix.codes.cols = module.cols;
  ReadScalePlane(parts, &module);
  const std::string global = module.name + "weight_global_scale";
  if (parts->Find(global) != nullptr || module.scheme->format == "nvfp4-pack-quantized") {
    const Checkpoint::Entry& entry = TakePart("weight_global_scale", parts, &module);
    module.matrix.scales.divisor = ReadOneNumber(entry);
  }
  ReadCompressedZeros(parts, &module);
  ReadCompressedIndices(parts, &module);
  const uint64_t rows = module.rows, cols = module.cols;
  parts->Add(module.name + "weight", {rows, cols}, std::move(module.matrix), module.stored);
}

// Keys that say how something else than the weights is stored or computed.
void CheckOtherSchemes(StoredParts* parts) {
  ConfigReader& config = parts->config();
  if (const nlohmann::json* sparsity = config.Find("sparsity_config");
      sparsity != nullptr && !sparsity->empty() &&
      !(sparsity->is_object() && sparsity->value("format", "") == "dense")) {
    config.FailKey("sparsity_config", "none: sparse formats are not read");
  }
  if (const nlohmann::json* transform = config.Find("transform_config");
      transform != nullptr && !transform->empty()) {
    config.FailKey("transform_config", "none: rotations of weights and activations are not read");
  }
  const std::string status = config.String("quantization_status").value_or("compressed");
  if (status != "compressed" && status != "frozen") {
    config.FailKey("quantization_status", "compressed or frozen");
  }
  if (config.Has("kv_cache_scheme")) {
    parts->Note("kv_cache_scheme is left out: sessions choose the type of their KV cache");
  }
}

}  // namespace

void ReadCompressedTensors(StoredParts* parts) {
  const CompressedSchemes schemes(&parts->config());
  CheckOtherSchemes(parts);
  parts->RefuseOtherKeys(
      {"global_compression_ratio", "ignore", "quant_method", "run_compressed", "version"});
  for (const std::string& base : parts->NamesBefore(".weight_packed")) {
    AddCompressed(base, true, schemes, parts);
  }
  for (const std::string& base : parts->NamesBefore(".weight_scale")) {
    AddCompressed(base, false, schemes, parts);
  }
  for (const char* end :
       {".input_scale", ".input_zero_point", ".input_global_scale", ".output_scale",
        ".output_zero_point", ".k_scale", ".v_scale", ".q_scale"}) {
    parts->LeaveOut(end);
  }
  if (schemes.rounds_activations()) {
    parts->Note("input_activations is left out: the runtime rounds activations in its own way");
  }
}

}  // namespace arn::convert

// AWQ as AutoAWQ stores it for its GEMM kernels (quant_method awq, version gemm): of a matrix of
// [outputs, inputs], qweight [inputs, outputs / 8] and qzeros [groups, outputs / 8], each word with
// the codes of outputs 0, 2, 4, 6, 1, 3, 5, 7, lowest bits first; scales [groups, outputs]. As
// dequantize_gemm of AutoAWQ (awq/utils/packing_utils.py): (code - zero) * scale, here in float32
// and there in the type of the scales, float16. Keys: transformers 5.12, class AwqConfig.
#include <algorithm>

#include "converter/base/error.h"
#include "converter/hf/quantised/readers.h"
#include "converter/hf/quantised/stored_parts.h"

namespace arn::convert {
namespace {

constexpr uint8_t kAwqPlaces[8] = {0, 4, 1, 5, 2, 6, 3, 7};

void AddAwq(const std::string& name, uint64_t group_size, StoredParts* parts) {
  const std::string codes_name = name + ".qweight", zeros_name = name + ".qzeros";
  const std::string scales_name = name + ".scales";
  const Checkpoint::Entry& codes = *parts->Find(codes_name);
  const Checkpoint::Entry& zeros = parts->Need(zeros_name, codes_name);
  const Checkpoint::Entry& scales = parts->Need(scales_name, codes_name);
  CheckType(codes, {"I32"});
  CheckMatrix(codes);
  CheckType(zeros, {"I32"});
  CheckType(scales, {"F16", "BF16", "F32"});
  const uint64_t cols = codes.tensor->shape[0], words = codes.tensor->shape[1];
  const uint64_t rows = words * 8, group_cols = group_size == 0 ? cols : group_size;
  if (cols % group_cols != 0) {
    FailPart(codes, "the " + std::to_string(cols) + " inputs are no whole groups of " +
                        std::to_string(group_cols));
  }
  const uint64_t groups = cols / group_cols;
  CheckShape(zeros, {groups, words});
  CheckShape(scales, {groups, rows});

  QuantisedGrid matrix = GridByColumns(codes, zeros, scales, 4, rows, cols);
  matrix.codes.order = matrix.zeros.order = kAwqPlaces;
  matrix.group_cols = group_cols;
  parts->Add(name + ".weight", {rows, cols}, std::move(matrix),
             {codes_name, zeros_name, scales_name});
}

}  // namespace

void ReadAwq(StoredParts* parts) {
  ConfigReader& config = parts->config();
  const char* bits_key = config.Has("w_bit") ? "w_bit" : "bits";
  if (config.Int(bits_key).value_or(4) != 4) config.FailKey(bits_key, "4");
  const char* size_key = config.Has("q_group_size") ? "q_group_size" : "group_size";
  const int64_t group_size = config.Int(size_key).value_or(128);
  if (group_size != -1 && (group_size < 1 || group_size > INT32_MAX)) {
    config.FailKey(size_key, "-1 or a number of columns");
  }
  const char* version_key = config.Has("version") ? "version" : "format";
  std::string version = config.String(version_key).value_or("gemm");
  std::transform(version.begin(), version.end(), version.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (version != "gemm") config.FailKey(version_key, "gemm, the only layout of AWQ that is read");
  parts->RefuseOtherKeys({"backend", "bits", "do_fuse", "exllama_config", "format",
                          "fuse_max_seq_len", "group_size", "meta", "modules_to_fuse",
                          "modules_to_not_convert", "quant_method", "version", "zero_point"});
  for (const std::string& name : parts->NamesBefore(".qweight")) {
    AddAwq(name, group_size == -1 ? 0 : static_cast<uint64_t>(group_size), parts);
  }
}

}  // namespace arn::convert

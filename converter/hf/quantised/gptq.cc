// GPTQ as AutoGPTQ and GPTQModel store it (quant_method gptq): of a matrix of [outputs, inputs],
// qweight [inputs * bits / 32, outputs], codes of an output one after another down its column;
// qzeros [groups, outputs * bits / 32], along the row; scales [groups, outputs]; g_idx [inputs],
// the group of each input. Stored zeros are one less than meant, modulo 2^bits, unless
// checkpoint_format is gptq_v2. As QuantLinear.forward of AutoGPTQ
// (auto_gptq/nn_modules/qlinear/qlinear_cuda.py): (code - zero) * scale, here in float32 and there
// in the type of the scales, float16. Keys: transformers 5.12, class GPTQConfig.
#include <algorithm>
#include <cinttypes>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "converter/hf/quantised/readers.h"
#include "converter/hf/quantised/stored_parts.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

struct GptqScheme {
  uint64_t bits = 0;
  uint64_t group_size = 0;  // 0: all inputs
  bool needs_indices = false;
  bool is_dynamic = false;  // bits and groups differ by module
  bool adds_one = false;    // to zeros
};

bool IsGptqBits(uint64_t bits) { return bits == 2 || bits == 3 || bits == 4 || bits == 8; }

GptqScheme ReadGptqScheme(ConfigReader* config) {
  GptqScheme scheme;
  scheme.bits = config->RequiredCount("bits");
  if (!IsGptqBits(scheme.bits)) config->FailKey("bits", "2, 3, 4 or 8");
  const int64_t group_size = config->Int("group_size").value_or(128);
  if (group_size != -1 && (group_size < 1 || group_size > INT32_MAX)) {
    config->FailKey("group_size", "-1 or a number of columns");
  }
  scheme.group_size = group_size == -1 ? 0 : static_cast<uint64_t>(group_size);
  scheme.needs_indices = config->Bool("desc_act", false);
  const char* format_key = config->Has("checkpoint_format") ? "checkpoint_format" : "format";
  const std::string format = config->String(format_key).value_or("gptq");
  if (format != "gptq" && format != "gptq_v2") config->FailKey(format_key, "gptq or gptq_v2");
  scheme.adds_one = format == "gptq";
  if (config->Bool("is_marlin_format", false)) config->FailKey("is_marlin_format", "false");
  if (config->String("pack_dtype").value_or("int32") != "int32") {
    config->FailKey("pack_dtype", "int32");
  }
  const nlohmann::json* dynamic = config->Find("dynamic");
  scheme.is_dynamic = dynamic != nullptr && !dynamic->empty();
  return scheme;
}

void AddGptq(const std::string& name, const GptqScheme& scheme, StoredParts* parts) {
  const std::string codes_name = name + ".qweight", zeros_name = name + ".qzeros";
  const std::string scales_name = name + ".scales", indices_name = name + ".g_idx";
  const Checkpoint::Entry& codes = *parts->Find(codes_name);
  const Checkpoint::Entry& zeros = parts->Need(zeros_name, codes_name);
  const Checkpoint::Entry& scales = parts->Need(scales_name, codes_name);
  const bool has_indices =
      scheme.needs_indices || scheme.is_dynamic || parts->Find(indices_name) != nullptr;
  CheckType(codes, {"I32"});
  CheckMatrix(codes);
  CheckType(zeros, {"I32"});
  CheckMatrix(zeros);
  CheckType(scales, {"F16", "BF16", "F32"});
  CheckMatrix(scales);
  const uint64_t words = codes.tensor->shape[0], rows = codes.tensor->shape[1];
  uint64_t bits = scheme.bits, cols = words * 32 / bits;
  std::vector<std::string> stored = {codes_name, zeros_name, scales_name};
  const Checkpoint::Entry* indices = nullptr;
  if (has_indices) {
    indices = &parts->Need(indices_name, codes_name);
    stored.push_back(indices_name);
    cols = indices->tensor->elements();
    if (scheme.is_dynamic && cols != 0) bits = words * 32 / cols;
  }
  if (!IsGptqBits(bits) || cols * bits != words * 32) {
    FailPart(codes, Format("%" PRIu64 " words hold no %" PRIu64 " codes of %" PRIu64 " bits", words,
                           cols, bits));
  }
  const uint64_t groups = scales.tensor->shape[0];
  uint64_t group_cols = scheme.group_size == 0 ? cols : scheme.group_size;
  if (scheme.is_dynamic) group_cols = CeilDiv(cols, groups);
  CheckShape(scales, {CeilDiv(cols, group_cols), rows});
  CheckShape(zeros, {groups, CeilDiv(rows * bits, 32)});

  QuantisedGrid matrix =
      GridByColumns(codes, zeros, scales, static_cast<uint32_t>(bits), rows, cols);
  matrix.codes.packs_down = true;
  if (scheme.adds_one) {
    const auto end = matrix.zero_values.begin() + (int64_t{1} << bits);
    std::rotate(matrix.zero_values.begin(), matrix.zero_values.begin() + 1, end);
  }
  matrix.group_cols = group_cols;
  if (has_indices) matrix.group_of = ReadGroupIndices(*indices, cols, groups);
  parts->Add(name + ".weight", {rows, cols}, std::move(matrix), stored);
}

}  // namespace

void ReadGptq(StoredParts* parts) {
  const GptqScheme scheme = ReadGptqScheme(&parts->config());
  parts->RefuseOtherKeys({"act_group_aware",
                          "backend",
                          "batch_size",
                          "block_name_to_quantize",
                          "cache_block_outputs",
                          "cache_examples_on_gpu",
                          "damp_auto_increment",
                          "damp_percent",
                          "dataset",
                          "disable_exllama",
                          "exllama_config",
                          "format",
                          "hyb_act",
                          "lm_head",
                          "max_input_length",
                          "meta",
                          "model_file_base_name",
                          "model_name_or_path",
                          "model_seqlen",
                          "module_name_preceding_first_block",
                          "modules_in_block_to_quantize",
                          "mse",
                          "pack_impl",
                          "pad_token_id",
                          "quant_method",
                          "static_groups",
                          "sym",
                          "tokenizer",
                          "true_sequential",
                          "use_cuda_fp16",
                          "use_exllama",
                          "use_triton"});
  for (const std::string& name : parts->NamesBefore(".qweight")) AddGptq(name, scheme, parts);
}

}  // namespace arn::convert

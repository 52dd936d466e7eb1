// bitsandbytes (quant_method bitsandbytes;
// https://github.com/bitsandbytes-foundation/bitsandbytes). 8 bits: weight, int8 [rows, cols], and
// SCB, the largest magnitude of each row. As int8_vectorwise_dequant (bitsandbytes/_ops.py): code *
// SCB * 0.007874015718698502 in float32. 4 bits: weight, the codes of all elements, the first of
// each pair in the high half of a byte; absmax of each block of elements, which may be quantised
// itself; and quant_state, JSON in bytes with the type, the shape and the size of a block. As
// dequantize_4bit (bitsandbytes/functional.py): value of the code * absmax, with absmax =
// nested_quant_map[code] * nested_absmax + nested_offset, in float32; the library rounds it to the
// type in quant_state.
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <memory>
#include <utility>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "converter/hf/quantised/readers.h"
#include "converter/hf/quantised/stored_parts.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

constexpr float kPerLevel = 7.874015718698502e-3f;

void AddBnbInt8(const std::string& base, StoredParts* parts) {
  const std::string name = base + ".weight", scale_name = base + ".SCB";
  const std::string format_name = base + ".weight_format";
  const Checkpoint::Entry& codes = *parts->Find(name);
  const Checkpoint::Entry& scales = parts->Need(scale_name, name);
  CheckMatrix(codes);
  const uint64_t rows = codes.tensor->shape[0], cols = codes.tensor->shape[1];
  CheckType(scales, {"F32", "F16", "BF16"});
  CheckShape(scales, {rows});
  std::vector<std::string> stored = {name, scale_name};
  if (const Checkpoint::Entry* format = parts->Find(format_name)) {
    uint8_t order = 0;
    CheckType(*format, {"U8"});
    if (format->tensor->elements() != 1) CheckShape(*format, {});
    format->file->Read(format->tensor->offset, &order, 1);
    if (order != 0) FailPart(*format, Format("expected 0 (by rows), found %u", order));
    stored.push_back(format_name);
  }
  QuantisedGrid matrix;
  matrix.codes.stored = codes;
  matrix.codes.rows = rows;
  matrix.codes.cols = cols;
  matrix.values = SignedCodes();
  matrix.is_integer = true;
  matrix.scales.stored = scales;
  matrix.scales.matrix_rows = matrix.scales.scale_rows = rows;
  matrix.group_cols = cols;
  matrix.factor = kPerLevel;
  parts->Add(name, {rows, cols}, std::move(matrix), stored);
}

// A matrix in blocks of elements, across its rows.
class BnbBlocks : public DecodedTensor {
 public:
  struct Nested {
    Checkpoint::Entry scales;  // of each block of scales
    CodeTable values = {};
    uint64_t block = 0;
    float offset = 0.0f;
  };
  BnbBlocks(SourceTensor tensor, std::string method, const Checkpoint::Entry& codes,
            const Checkpoint::Entry& absmax, const CodeTable& values, uint64_t block)
      : DecodedTensor(std::move(tensor), std::move(method)),
        codes_(codes),
        absmax_(absmax),
        values_(values),
        block_(block) {}
  void SetNested(const Nested& nested) {
    nested_ = nested;
    is_nested_ = true;
  }

 private:
  // Returns the scales of blocks [first, first + count).
  std::vector<float> ReadAbsmax(uint64_t first, uint64_t count) const {
    std::vector<float> scales(count);
    if (!is_nested_) {
      Checkpoint::ReadFloats(absmax_, first, count, scales.data());
      return scales;
    }
    std::vector<uint8_t> codes(count);
    absmax_.file->Read(absmax_.tensor->offset + first, codes.data(), count);
    const uint64_t begin = first / nested_.block, end = (first + count - 1) / nested_.block + 1;
    std::vector<float> outer(end - begin);
    Checkpoint::ReadFloats(nested_.scales, begin, outer.size(), outer.data());
    for (uint64_t i = 0; i < count; ++i) {
      scales[i] = nested_.values[codes[i]] * outer[(first + i) / nested_.block - begin];
      scales[i] += nested_.offset;
    }
    return scales;
  }

  void ReadRows(uint64_t first, uint32_t n, float* out) const override {
    const uint64_t begin = first * cols(), count = n * cols(), end = begin + count;
    const uint64_t first_byte = begin / 2;
    std::vector<uint8_t> bytes(CeilDiv(end, 2) - first_byte);
    codes_.file->Read(codes_.tensor->offset + first_byte, bytes.data(), bytes.size());
    const uint64_t first_block = begin / block_;
    const std::vector<float> scales = ReadAbsmax(first_block, (end - 1) / block_ + 1 - first_block);
    for (uint64_t i = begin; i < end; ++i) {
      const uint8_t byte = bytes[i / 2 - first_byte];
      out[i - begin] =
          values_[i % 2 == 0 ? byte >> 4 : byte & 15] * scales[i / block_ - first_block];
    }
  }

  const Checkpoint::Entry codes_, absmax_;
  const CodeTable values_;
  const uint64_t block_;
  Nested nested_;
  bool is_nested_ = false;
};

// Reads the JSON in a tensor of bytes.
nlohmann::json ReadQuantState(const Checkpoint::Entry& entry) {
  CheckType(entry, {"U8"});
  constexpr uint64_t kMost = 1 << 16;
  if (entry.tensor->elements() > kMost) {
    FailPart(entry, Format("expected at most %" PRIu64 " bytes, found shape %s", kMost,
                           ShapeText(entry.tensor->shape).c_str()));
  }
  std::string text(entry.tensor->elements(), '\0');
  entry.file->Read(entry.tensor->offset, text.data(), text.size());
  return ParseJson(text, entry.file->path().string() + ": tensor " + entry.tensor->name);
}

// Reads a table of codes; throws ConvertError unless it has `count` values, all finite.
CodeTable ReadCodeMap(const Checkpoint::Entry& entry, uint64_t count) {
  CheckType(entry, {"F32"});
  CheckShape(entry, {count});
  CodeTable table = {};
  Checkpoint::ReadFloats(entry, 0, count, table.data());
  return table;
}

// Checks that the table beside a matrix is the one of its type.
void CheckCodeMap(const Checkpoint::Entry& entry, const CodeTable& expected) {
  const CodeTable stored = ReadCodeMap(entry, 16);
  for (size_t i = 0; i < 16; ++i) {
    if (std::fabs(stored[i] - expected[i]) <= 1e-3f) continue;
    FailPart(entry, Format("the value at [%zu] is %g, expected %g", i,
                           static_cast<double>(stored[i]), static_cast<double>(expected[i])));
  }
}

// Returns [rows, cols] of a quant_state.
std::vector<uint64_t> ReadStateShape(ConfigReader* state) {
  const std::vector<int64_t> shape = state->IntOrList("shape");
  const auto is_side = [](int64_t n) { return n >= 1 && n <= INT32_MAX; };
  if (shape.size() != 2 || !is_side(shape[0]) || !is_side(shape[1])) {
    state->FailKey("shape", "two whole numbers from 1 to 2147483647");
  }
  return {static_cast<uint64_t>(shape[0]), static_cast<uint64_t>(shape[1])};
}

void AddBnb4(const std::string& name, const std::string& type, StoredParts* parts) {
  const std::string state_name = name + ".quant_state.bitsandbytes__" + type;
  const Checkpoint::Entry& state_entry = *parts->Find(state_name);
  const Checkpoint::Entry& codes = parts->Need(name, state_name);
  const Checkpoint::Entry& absmax = parts->Need(name + ".absmax", name);
  std::vector<std::string> stored = {name, state_name, name + ".absmax"};
  const nlohmann::json json = ReadQuantState(state_entry);
  ConfigReader state(json, state_entry.file->path().string() + ": tensor " + state_name);
  if (state.String("quant_type").value_or(type) != type) state.FailKey("quant_type", type.c_str());
  const std::vector<uint64_t> shape = ReadStateShape(&state);
  const uint64_t count = shape[0] * shape[1], block = state.RequiredCount("blocksize");
  for (const char* key : {"dtype", "nested_dtype"}) state.MarkRead(key);
  // The bytes may be stored as numbers of another type.
  if (codes.tensor->bytes < CeilDiv(count, 2) || codes.tensor->bytes > CeilDiv(count, 2) + 7) {
    FailPart(codes, Format("expected %" PRIu64 " bytes for shape %s, found %" PRIu64,
                           CeilDiv(count, 2), ShapeText(shape).c_str(), codes.tensor->bytes));
  }
  const CodeTable values = type == "nf4" ? Nf4Codes() : BnbFp4Codes();
  if (const Checkpoint::Entry* map = parts->Find(name + ".quant_map")) {
    CheckCodeMap(*map, values);
    stored.push_back(name + ".quant_map");
  }
  const uint64_t blocks = CeilDiv(count, block);
  CheckShape(absmax, {blocks});
  SourceTensor tensor;
  tensor.name = name;
  tensor.dtype = "F32";
  tensor.shape = shape;
  auto matrix =
      std::make_unique<BnbBlocks>(std::move(tensor), parts->method(), codes, absmax, values, block);
  if (parts->Find(name + ".nested_absmax") != nullptr || state.Has("nested_blocksize")) {
    BnbBlocks::Nested nested;
    CheckType(absmax, {"U8"});
    nested.scales = parts->Need(name + ".nested_absmax", name);
    nested.values = ReadCodeMap(parts->Need(name + ".nested_quant_map", name), 256);
    nested.block = state.RequiredCount("nested_blocksize");
    const std::optional<double> offset = state.Number("nested_offset");
    if (!offset) state.FailKey("nested_offset", "a number");
    nested.offset = static_cast<float>(*offset);
    CheckType(nested.scales, {"F32"});
    CheckShape(nested.scales, {CeilDiv(blocks, nested.block)});
    matrix->SetNested(nested);
    stored.push_back(name + ".nested_absmax");
    stored.push_back(name + ".nested_quant_map");
  } else {
    CheckType(absmax, {"F32", "F16", "BF16"});
  }
  const std::vector<std::string> unknown = state.Unread();
  if (!unknown.empty()) {
    Fail("%s: unknown keys: %s", state.label().c_str(), JoinNames(unknown, 20).c_str());
  }
  parts->Add(std::move(matrix), stored);
}

}  // namespace

void ReadBitsAndBytes(StoredParts* parts) {
  parts->RefuseOtherKeys({"_load_in_4bit", "_load_in_8bit", "bnb_4bit_compute_dtype",
                          "bnb_4bit_quant_storage", "bnb_4bit_quant_type",
                          "bnb_4bit_use_double_quant", "llm_int8_enable_fp32_cpu_offload",
                          "llm_int8_has_fp16_weight", "llm_int8_skip_modules", "llm_int8_threshold",
                          "load_in_4bit", "load_in_8bit", "quant_method"});
  for (const char* type : {"nf4", "fp4"}) {
    const std::string end = std::string(".quant_state.bitsandbytes__") + type;
    for (const std::string& name : parts->NamesBefore(end)) AddBnb4(name, type, parts);
  }
  for (const std::string& base : parts->NamesBefore(".weight")) {
    if (parts->Find(base + ".weight")->tensor->dtype == "I8") AddBnbInt8(base, parts);
  }
}

}  // namespace arn::convert

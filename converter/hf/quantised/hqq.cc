// HQQ (quant_method hqq; https://github.com/mobiusml/hqq), as HQQLinear.state_dict
// (hqq/core/quantize.py) stores a module for safetensors: W_q, scale, zero and, as small tensors,
// shape [rows, cols], axis, group_size and packing. Groups are the rows (axis 1) or the columns
// (axis 0) of the matrix reshaped to [groups, group_size] or [group_size, groups]. W_q packs rows
// of that which are far apart (hqq/core/bitpack.py): with n codes a word and p stored rows, row r
// is in stored row r % p, in the word's upper bits if r / p is 0. As Quantizer.dequantize: (code -
// zero) * scale, here in float32 and there in compute_dtype. Keys: transformers 5.12, HqqConfig.
#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <memory>
#include <utility>

#include "converter/base/error.h"
#include "converter/hf/quantised/readers.h"
#include "converter/hf/quantised/stored_parts.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

struct HqqPacking {
  const char* name;
  uint32_t bits;
  uint32_t codes;  // of a word
  uint32_t word_bytes;
};
constexpr HqqPacking kHqqPackings[] = {{"8bit_u8", 8, 1, 1},
                                       {"4bit_u8", 4, 2, 1},
                                       {"3bit_32", 3, 10, 4},
                                       {"2bit_u8", 2, 4, 1},
                                       {"1bit_u8", 1, 8, 1}};

// Elements are numbered through the rows of the matrix, which reshaping leaves in order.
struct HqqLayout {
  HqqPacking packing = {};
  bool is_by_column = false;  // axis 0
  uint64_t group_size = 0;
  uint64_t groups = 0;
  uint64_t slot = 0;  // elements, one after another, that are in the same bits of the words
};

class HqqMatrix : public DecodedTensor {
 public:
  HqqMatrix(SourceTensor tensor, std::string method, const HqqLayout& layout,
            const Checkpoint::Entry& codes, const Checkpoint::Entry& scales,
            const Checkpoint::Entry& zeros)
      : DecodedTensor(std::move(tensor), std::move(method)),
        layout_(layout),
        codes_(codes),
        scales_(scales),
        zeros_(zeros) {}

 private:
  void ReadRows(uint64_t first, uint32_t n, float* out) const override {
    const uint64_t end = (first + n) * cols();
    for (uint64_t e = first * cols(); e < end;) {
      uint64_t count = std::min(end - e, layout_.slot - e % layout_.slot);
      if (layout_.is_by_column) count = std::min(count, layout_.groups - e % layout_.groups);
      ReadRun(e, count, out);
      e += count;
      out += count;
    }
  }

  // Reads elements of one slot and, by column, of ascending groups.
  void ReadRun(uint64_t first, uint64_t count, float* out) const {
    const HqqPacking& packing = layout_.packing;
    const uint64_t group =
        layout_.is_by_column ? first % layout_.groups : first / layout_.group_size;
    const uint64_t n_groups =
        layout_.is_by_column ? count : (first + count - 1) / layout_.group_size + 1 - group;
    std::vector<float> scales(n_groups), zeros(n_groups);
    Checkpoint::ReadFloats(scales_, group, n_groups, scales.data());
    Checkpoint::ReadFloats(zeros_, group, n_groups, zeros.data());
    std::vector<uint8_t> bytes(count * packing.word_bytes);
    codes_.file->Read(codes_.tensor->offset + first % layout_.slot * packing.word_bytes,
                      bytes.data(), bytes.size());
    const auto slot = static_cast<uint32_t>(first / layout_.slot);
    const uint32_t shift = packing.bits * (packing.codes - 1 - slot);
    const uint32_t mask = (1u << packing.bits) - 1;
    for (uint64_t i = 0; i < count; ++i) {
      uint32_t word = 0;
      std::memcpy(&word, bytes.data() + i * packing.word_bytes, packing.word_bytes);
      const uint64_t g = layout_.is_by_column ? i : (first + i) / layout_.group_size - group;
      out[i] = (static_cast<float>(word >> shift & mask) - zeros[g]) * scales[g];
    }
  }

  const HqqLayout layout_;
  const Checkpoint::Entry codes_, scales_, zeros_;
};

// Reads a whole number; older versions store small ones in a byte.
int64_t ReadHqqNumber(const Checkpoint::Entry& entry) {
  if (entry.tensor->elements() != 1) CheckShape(entry, {});
  if (entry.tensor->dtype != "U8") return ReadWhole(entry, 1).front();
  uint8_t byte = 0;
  entry.file->Read(entry.tensor->offset, &byte, 1);
  return byte;
}

HqqPacking ReadHqqPacking(const Checkpoint::Entry& entry) {
  CheckType(entry, {"U8"});
  std::string text(std::min<uint64_t>(entry.tensor->elements(), 16), '\0');
  entry.file->Read(entry.tensor->offset, text.data(), text.size());
  for (const HqqPacking& packing : kHqqPackings) {
    if (text == packing.name) return packing;
  }
  FailPart(entry, "expected 8bit_u8, 4bit_u8, 3bit_32, 2bit_u8 or 1bit_u8 in ASCII");
}

// Returns [rows, cols].
std::vector<uint64_t> ReadHqqShape(const Checkpoint::Entry& entry) {
  const std::vector<int64_t> shape = ReadWhole(entry, 2);
  const auto is_side = [](int64_t n) { return n >= 1 && n <= INT32_MAX; };
  if (shape.size() != 2 || !is_side(shape[0]) || !is_side(shape[1])) {
    FailPart(entry, "expected two whole numbers from 1 to 2147483647");
  }
  return {static_cast<uint64_t>(shape[0]), static_cast<uint64_t>(shape[1])};
}

HqqLayout ReadHqqLayout(const std::string& base, const std::vector<uint64_t>& shape,
                        const StoredParts& parts) {
  HqqLayout layout;
  layout.packing = ReadHqqPacking(parts.Need(base + ".packing", base + ".W_q"));
  const Checkpoint::Entry& axis_entry = parts.Need(base + ".axis", base + ".W_q");
  const int64_t axis = ReadHqqNumber(axis_entry);
  if (axis != 0 && axis != 1) FailPart(axis_entry, Format("expected 0 or 1, found %" PRId64, axis));
  layout.is_by_column = axis == 0;
  const uint64_t count = shape[0] * shape[1];
  layout.group_size = shape[layout.is_by_column ? 0 : 1];
  if (const Checkpoint::Entry* entry = parts.Find(base + ".group_size")) {
    const int64_t size = ReadHqqNumber(*entry);
    if (size < 1 || count % static_cast<uint64_t>(size) != 0) {
      FailPart(*entry, Format("%" PRId64 " does not divide the %" PRIu64 " elements of shape %s",
                              size, count, ShapeText(shape).c_str()));
    }
    layout.group_size = static_cast<uint64_t>(size);
  }
  layout.groups = count / layout.group_size;
  const uint64_t grouped_rows = layout.is_by_column ? layout.group_size : layout.groups;
  layout.slot = CeilDiv(grouped_rows, layout.packing.codes) * (count / grouped_rows);
  return layout;
}

void AddHqq(const std::string& base, StoredParts* parts) {
  const std::string name = base + ".W_q";
  const Checkpoint::Entry& codes = *parts->Find(name);
  for (const char* flag : {".quant_scale", ".quant_zero"}) {
    const Checkpoint::Entry* entry = parts->Find(base + flag);
    if (entry != nullptr && ReadHqqNumber(*entry) != 0) {
      FailPart(*entry, "expected 0: quantised scales and zeros are not read");
    }
  }
  SourceTensor tensor;
  tensor.name = base + ".weight";
  tensor.dtype = "F32";
  tensor.shape = ReadHqqShape(parts->Need(base + ".shape", name));
  const HqqLayout layout = ReadHqqLayout(base, tensor.shape, *parts);
  // With view_as_float the words are stored as if they were floats.
  const uint64_t bytes = layout.slot * layout.packing.word_bytes;
  if (codes.tensor->bytes != bytes) {
    FailPart(codes, Format("expected %" PRIu64 " bytes for shape %s, found %" PRIu64, bytes,
                           ShapeText(tensor.shape).c_str(), codes.tensor->bytes));
  }
  const Checkpoint::Entry& scales = parts->Need(base + ".scale", name);
  const Checkpoint::Entry& zeros = parts->Need(base + ".zero", name);
  for (const Checkpoint::Entry* entry : {&scales, &zeros}) {
    CheckType(*entry, {"F32", "F16", "BF16"});
    if (entry->tensor->elements() != layout.groups) CheckShape(*entry, {layout.groups});
  }
  std::vector<std::string> stored = {name};
  for (const char* part :
       {"scale", "zero", "shape", "packing", "axis", "group_size", "nbits", "compute_dtype",
        "view_as_float", "unpack_view_dtype", "quant_scale", "quant_zero", "channel_wise",
        "optimize", "round_zero", "offload_meta", "encoded_state_dict", "stores_quant_config"}) {
    const std::string other = base + "." + part;
    if (parts->Find(other) != nullptr) stored.push_back(other);
  }
  parts->Add(
      std::make_unique<HqqMatrix>(std::move(tensor), parts->method(), layout, codes, scales, zeros),
      stored);
}

}  // namespace

void ReadHqq(StoredParts* parts) {
  parts->RefuseOtherKeys({"quant_config", "quant_method", "skip_modules"});
  for (const std::string& base : parts->NamesBefore(".W_q")) AddHqq(base, parts);
}

}  // namespace arn::convert

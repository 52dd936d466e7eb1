#include "converter/write/held_rows.h"

#include <algorithm>

#include "converter/base/error.h"
#include "converter/base/ternary_row.h"
#include "converter/write/source_rows.h"

namespace arn::convert {
namespace {

bool KeepsStoredValues(const SourcePart& part) {
  return part.weight->added == nullptr && part.transposed_rows == 0 && part.taps == 0 &&
         part.frames == 0 && part.column_turns.is_in_order() && part.exchanged_block == 0 &&
         part.stored_blocks[0] == 0 && part.more_columns[0] == nullptr && !part.is_bound &&
         part.factor * part.input_factor == 1.0f && !part.is_negative_log && !part.zero_row;
}

const char* WhyNotHeld(const SourcePart& part, DType dtype, DecodedTensor::Held held) {
  if (!KeepsStoredValues(part)) return "its values are changed on their way into the bundle";
  if (held == DecodedTensor::Held::kNo) return "its levels or groups are not ones of that type";
  return dtype == DType::kInt4 ? "its scales are not bfloat16 numbers" : "it has levels of -128";
}

// Returns the type of a matrix that was never quantised, if its parts have one; else int8.
DType FloatTypeOf(const PlannedTensor& tensor) {
  const std::string& type = tensor.parts.empty() ? "" : tensor.parts[0].weight->tensor->dtype;
  for (const SourcePart& part : tensor.parts) {
    if (part.weight->tensor->dtype != type || !KeepsStoredValues(part)) return DType::kInt8;
  }
  return type == "F32"    ? DType::kF32
         : type == "F16"  ? DType::kF16
         : type == "BF16" ? DType::kBf16
                          : DType::kInt8;
}

// Reads its values once.
bool HasOneScalePerRow(const PlannedTensor& tensor) {
  constexpr uint32_t kStep = 16;
  std::vector<float> rows(size_t{kStep} * tensor.cols);
  for (uint32_t first = 0; first < tensor.rows; first += kStep) {
    const uint32_t n = std::min(kStep, tensor.rows - first);
    ReadRows(tensor, first, n, rows.data());
    for (uint32_t r = 0; r < n; ++r) {
      if (TernaryMagnitude(rows.data() + size_t{r} * tensor.cols, tensor.cols) < 0.0f) return false;
    }
  }
  return true;
}

}  // namespace

void ChooseTernary(TensorPlan* plan) {
  for (PlannedTensor& tensor : plan->tensors) {
    if (tensor.dtype != DType::kTernary || !HasOneScalePerRow(tensor)) continue;
    tensor.dtype = DType::kTernaryRows;
  }
}

SourceRun RunOfRows(const PlannedTensor& tensor, uint32_t row, uint32_t most) {
  size_t i = 0;
  while (row >= tensor.parts[i].rows) row -= tensor.parts[i++].rows;
  const SourcePart& part = tensor.parts[i];
  SourceRun run;
  run.part = &part;
  run.first_row = part.first_element / tensor.cols + part.SourceRow(row);
  run.rows = std::min(part.transposed_rows != 0 ? part.rows - row : part.RunLength(row), most);
  return run;
}

DecodedTensor::Held HeldBy(const SourcePart& part, DType dtype) {
  if (!KeepsStoredValues(part)) return DecodedTensor::Held::kNo;
  if (const DecodedTensor* decoded = part.weight->decoded) return decoded->HeldBy(dtype);
  return Checkpoint::IsHeldBy(*part.weight, dtype) ? DecodedTensor::Held::kExactly
                                                   : DecodedTensor::Held::kNo;
}

void ReadHeld(const SourceRun& run, const CodeType& type, uint32_t cols, uint8_t* codes,
              int16_t* entries) {
  const Checkpoint::Entry& source = *run.part->weight;
  if (source.decoded != nullptr) {
    return source.decoded->ReadCodes(type, run.first_row, run.rows, codes, entries);
  }
  Checkpoint::ReadHeld(source, type, run.first_row * cols, uint64_t{run.rows} * cols, codes,
                       entries);
}

DType HeldTypeOf(const PlannedTensor& tensor) {
  const bool is_ternary =
      !tensor.parts.empty() &&
      std::all_of(tensor.parts.begin(), tensor.parts.end(), [](const SourcePart& part) {
        return KeepsStoredValues(part) && Checkpoint::IsTernary(*part.weight);
      });
  if (is_ternary) return DType::kTernary;
  for (const DType dtype :
       {DType::kIq4K, DType::kIq4, DType::kFp4, DType::kInt4K, DType::kInt4K128, DType::kInt4K32,
        DType::kInt6K, DType::kInt6K32, DType::kInt8K, DType::kInt8K256}) {
    const bool is_held =
        !tensor.parts.empty() &&
        std::all_of(tensor.parts.begin(), tensor.parts.end(), [&](const SourcePart& part) {
          return HeldBy(part, dtype) == DecodedTensor::Held::kExactly;
        });
    if (is_held) return dtype;
  }
  return DType::kF32;
}

void ChooseHeld(const PackTarget& target, bool is_gguf, TensorPlan* plan) {
  bool is_asked = false, is_held = false;
  for (PlannedTensor& tensor : plan->tensors) {
    if (!IsOfOthers(tensor.dtype)) continue;
    const DType dtype = HeldTypeOf(tensor);
    is_asked = true;
    is_held = is_held || dtype != DType::kF32;
    tensor.dtype = dtype != DType::kF32 ? dtype : is_gguf ? FloatTypeOf(tensor) : DType::kInt8;
    tensor.layout = tensor.LayoutOf(tensor.dtype, target);
  }
  if (!is_asked || is_held) return;
  Fail(
      "--weights held: the checkpoint has no matrix that it holds: it never rounds, and takes "
      "GGUF's Q2_K to Q6_K, Q4_0 to Q8_0, IQ4_NL and IQ4_XS, MXFP4, and 4 bits of folders in "
      "groups of a multiple of 32 columns with whole zeros and f16 scales");
}

std::vector<std::string> CheckHeld(const TensorPlan& plan, bool may_requantise) {
  std::vector<std::string> names;
  const SourcePart* first = nullptr;
  const PlannedTensor* first_tensor = nullptr;
  for (const PlannedTensor& tensor : plan.tensors) {
    // Leaves ternary rows to the writer, which sees their values.
    if (!IsInteger(tensor.dtype) || IsTernary(tensor.dtype)) continue;
    const auto bad = std::find_if(tensor.parts.begin(), tensor.parts.end(), [&](const auto& part) {
      return Checkpoint::IsQuantised(*part.weight) &&
             HeldBy(part, tensor.dtype) != DecodedTensor::Held::kExactly;
    });
    if (bad == tensor.parts.end()) continue;
    names.push_back(tensor.name);
    if (first != nullptr) continue;
    first = &*bad;
    first_tensor = &tensor;
  }
  if (first == nullptr || may_requantise) return names;
  const DType dtype = first_tensor->dtype;
  const DecodedTensor* decoded = first->weight->decoded;
  const std::string stored =
      decoded != nullptr ? "method " + decoded->method() : "type " + first->weight->tensor->dtype;
  Fail(
      "%s: tensor %s: %s does not hold what %s stores of it exactly, because %s (%s; %zu %s in "
      "all): --weights %s keeps its values, --requantise quantises it again",
      first->weight->file->path().c_str(), first->weight->tensor->name.c_str(), DTypeName(dtype),
      stored.c_str(), WhyNotHeld(*first, dtype, HeldBy(*first, dtype)), first_tensor->name.c_str(),
      names.size(), names.size() == 1 ? "matrix" : "matrices",
      kHasLowBits && HeldTypeOf(*first_tensor) != DType::kF32 ? "held" : "f32, bf16 or f16");
}

}  // namespace arn::convert

// Rows of a planned matrix that come from a checkpoint quantised by others, and whether the element
// type of the bundle holds their levels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/base/decoded_tensor.h"
#include "converter/tensors/tensor_plan.h"

namespace arn::convert {

// Consecutive rows of one part, which are consecutive in its tensor too.
struct SourceRun {
  const SourcePart* part = nullptr;
  uint64_t first_row = 0;  // of the tensor, all matrices of a stack one after another
  uint32_t rows = 0;
};
// Returns at most `most` rows from `row` on. REQUIRES: the matrix has parts.
SourceRun RunOfRows(const PlannedTensor& tensor, uint32_t row, uint32_t most);

// Returns what `dtype` holds of a part: kNo for one that is not quantised, or whose values change
// on their way (a factor, an adapter, another order).
DecodedTensor::Held HeldBy(const SourcePart& part, DType dtype);

// Reads rows in a type of codes (IsOfOthers): codes and entries as RowMatrix has them. REQUIRES:
// HeldBy says that the type holds the part exactly.
void ReadHeld(const SourceRun& run, const CodeType& type, uint32_t cols, uint8_t* codes,
              int16_t* entries);

// Returns the smallest type of codes (IsOfOthers, or ternary for GGUF's TQ types) that holds a
// matrix exactly; none: kF32.
DType HeldTypeOf(const PlannedTensor& tensor);
// Gives the matrices of types of others the smallest type that holds them exactly, and int8 those
// that none holds; those of a GGUF file that are floats keep their type. Throws ConvertError if
// none is held.
void ChooseHeld(const PackTarget& target, bool is_gguf, TensorPlan* plan);

// Returns the names of the matrices with parts that were quantised and are not held exactly by the
// matrix's integer type. Throws ConvertError with the first of them unless `may_requantise`.
std::vector<std::string> CheckHeld(const TensorPlan& plan, bool may_requantise);

// Leaves out the scales of blocks of the ternary matrices that need none: of those whose rows are
// -1, 0 and 1 times one scale. Reads all of them.
void ChooseTernary(TensorPlan* plan);

}  // namespace arn::convert

// Packs and unpacks the types of codes.
#pragma once

#include "kernels/pack/code_panel.h"
#include "kernels/pack/pack.h"

namespace arn {

// PackRows, UnpackRowF32 and UnpackBias for these types.
void PackCodes(const RowMatrix& source, const CodeType& type, std::byte* out);
void UnpackCodesF32(const Weight& weight, const CodeType& type, uint32_t row, float* out);
float UnpackCodesBias(const Weight& weight, const CodeType& type, uint32_t row);

}  // namespace arn

// GGUF's element types whose blocks index codebooks: IQ1, IQ2 and IQ3.
#pragma once

#include <cstddef>

namespace arn::convert {

// Dequantise one block to 256 floats, as BlockFormat::dequantise (block_formats.h).
void DequantiseIQ1_S(const std::byte* block, float* out);    // 50 bytes
void DequantiseIQ1_M(const std::byte* block, float* out);    // 56
void DequantiseIQ2_XXS(const std::byte* block, float* out);  // 66
void DequantiseIQ2_XS(const std::byte* block, float* out);   // 74
void DequantiseIQ2_S(const std::byte* block, float* out);    // 82
void DequantiseIQ3_XXS(const std::byte* block, float* out);  // 98
void DequantiseIQ3_S(const std::byte* block, float* out);    // 110

}  // namespace arn::convert

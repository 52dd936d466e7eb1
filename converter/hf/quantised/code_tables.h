// Values of the codes of small number formats.
#pragma once

#include <array>
#include <cstdint>

namespace arn::convert {

// Values by code; of a format of fewer than 8 bits only the first are used.
using CodeTable = std::array<float, 256>;

// Unsigned codes of `bits` bits minus `offset`.
CodeTable IntegerCodes(uint32_t bits, int offset);
// int8.
CodeTable SignedCodes();
// FP8 with 4 bits of exponent, bias 7 and no infinity (E4M3FN): OCP 8-bit Floating Point
// Specification, revision 1.0.
CodeTable Fp8E4m3Codes();
// Powers of two, 2^(code - 127), and 4-bit floats with 2 bits of exponent: OCP Microscaling Formats
// Specification, version 1.0. Code 255 of E8M0 is NaN.
CodeTable E8m0Codes();
CodeTable Fp4E2m1Codes();
// bitsandbytes' NF4 (quantiles of a normal distribution: Dettmers et al., arXiv:2305.14314) and
// FP4, which divides its numbers by the largest, 12.
CodeTable Nf4Codes();
CodeTable BnbFp4Codes();

}  // namespace arn::convert

// The character classes that tokenisation asks for.
#pragma once

#include <cstdint>

namespace arn {

// Unicode White_Space.
bool IsWhiteSpace(uint32_t code_point);
// \w of UTS #18: Alphabetic, M, Nd, Pc and Join_Control.
bool IsWordCharacter(uint32_t code_point);
// General category N (Nd, Nl, No).
bool IsNumeric(uint32_t code_point);

}  // namespace arn

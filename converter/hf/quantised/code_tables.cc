#include "converter/hf/quantised/code_tables.h"

#include <cmath>
#include <limits>

namespace arn::convert {

CodeTable IntegerCodes(uint32_t bits, int offset) {
  CodeTable table = {};
  for (int code = 0; code < 1 << bits; ++code) {
    table[static_cast<size_t>(code)] = static_cast<float>(code - offset);
  }
  return table;
}

CodeTable SignedCodes() {
  CodeTable table = {};
  for (size_t code = 0; code < table.size(); ++code) {
    table[code] = static_cast<float>(static_cast<int8_t>(static_cast<uint8_t>(code)));
  }
  return table;
}

CodeTable Fp8E4m3Codes() {
  CodeTable table = {};
  for (int code = 0; code < 256; ++code) {
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    if ((code & 127) == 127) value = std::numeric_limits<float>::quiet_NaN();
    table[static_cast<size_t>(code)] = code < 128 ? value : -value;
  }
  return table;
}

CodeTable E8m0Codes() {
  CodeTable table = {};
  for (int code = 0; code < 255; ++code) {
    table[static_cast<size_t>(code)] = std::ldexp(1.0f, code - 127);
  }
  table[255] = std::numeric_limits<float>::quiet_NaN();
  return table;
}

CodeTable Fp4E2m1Codes() {
  constexpr float kMagnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  CodeTable table = {};
  for (size_t code = 0; code < 8; ++code) {
    table[code] = kMagnitudes[code];
    table[8 + code] = -kMagnitudes[code];
  }
  return table;
}

CodeTable Nf4Codes() {
  CodeTable table = {-1.0f,
                     -0.6961928009986877f,
                     -0.5250730514526367f,
                     -0.39491748809814453f,
                     -0.28444138169288635f,
                     -0.18477343022823334f,
                     -0.09105003625154495f,
                     0.0f,
                     0.07958029955625534f,
                     0.16093020141124725f,
                     0.24611230194568634f,
                     0.33791524171829224f,
                     0.44070982933044434f,
                     0.5626170039176941f,
                     0.7229568362236023f,
                     1.0f};
  return table;
}

CodeTable BnbFp4Codes() {
  constexpr float kMagnitudes[8] = {0.0f, 0.0625f, 8.0f, 12.0f, 4.0f, 6.0f, 2.0f, 3.0f};
  CodeTable table = {};
  for (size_t code = 0; code < 8; ++code) {
    table[code] = kMagnitudes[code] / 12.0f;
    table[8 + code] = -(kMagnitudes[code] / 12.0f);
  }
  return table;
}

}  // namespace arn::convert

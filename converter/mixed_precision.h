// --bits: which matrices of an int4 bundle are better kept in int8.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "converter/calibrate.h"
#include "converter/convert.h"

namespace arn::convert {

// Bits that the values and scales of matrices take, a weight: int4 4.5 (blocks of 32 with a bf16
// scale), int8 8 and an f32 scale a row. The zeros that fill up a row count.
double BitsPerWeight(const std::vector<MatrixInfo>& matrices);

// Matrices that change their type together: one, or all experts of a layer.
struct PrecisionUnit {
  std::string name;
  std::vector<std::string> matrices;
  double sensitivity = 0;  // KL divergence, in nats a token, that int4 adds where all else is int8
};

// The units to keep in int8: those whose sensitivities add up to most while BitsPerWeight stays at
// or below `bits`. `matrices`: with all units in int4. Returns Formats::exceptions. Throws
// ConvertError when `bits` is less than all in int4 take.
std::map<std::string, DType> ChooseInt8(const std::vector<MatrixInfo>& matrices,
                                        const std::vector<PrecisionUnit>& units, double bits);

// The units of the matrices that belong to layers.
std::vector<PrecisionUnit> ListUnits(const std::vector<MatrixInfo>& matrices);

struct SensitivityOptions {
  ConvertOptions convert;           // of the int4 bundle, with its quantised matrices; output and
                                    // exceptions are not read
  std::filesystem::path reference;  // the same checkpoint in f32
  std::filesystem::path temporary;  // a name for bundles that are made and removed
  CalibrationText text;             // its first tokens are run, at most kSensitivityTokens
};
inline constexpr uint32_t kSensitivityTokens = 2048;

// Fills in the sensitivities. Converts and runs the model once for each unit.
void MeasureSensitivities(const SensitivityOptions& options, const RunProgress& on_progress,
                          std::vector<PrecisionUnit>* units);

}  // namespace arn::convert

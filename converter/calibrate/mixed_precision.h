// --bits: chooses which matrices of an int4 bundle stay in int8.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "converter/calibrate/calibrate.h"
#include "converter/convert/convert.h"

namespace arn::convert {

// Returns the bits per weight, values and scales: int4 4.5 (blocks of 32 with a bf16 scale), int8 8
// plus an f32 scale per row. Counts the zero padding of rows.
double BitsPerWeight(const std::vector<MatrixInfo>& matrices);

// Matrices that change type together: one, or all experts of a layer.
struct PrecisionUnit {
  std::string name;
  std::vector<std::string> matrices;
  double sensitivity = 0;  // KL divergence, in nats per token, that int4 adds with all else in int8
};

// Chooses the units to keep in int8: the largest total sensitivity with BitsPerWeight at or below
// `bits`. `matrices`: with all units in int4. Returns Formats::exceptions. Throws ConvertError if
// `bits` is less than all-int4 takes.
std::map<std::string, DType> ChooseInt8(const std::vector<MatrixInfo>& matrices,
                                        const std::vector<PrecisionUnit>& units, double bits);

// Returns the units of the layers' matrices.
std::vector<PrecisionUnit> ListUnits(const std::vector<MatrixInfo>& matrices);

struct SensitivityOptions {
  ConvertOptions convert;           // of the int4 bundle, with its quantised matrices; ignores
                                    // output and exceptions
  std::filesystem::path reference;  // the same checkpoint in f32
  std::filesystem::path temporary;  // name for temporary bundles
  CalibrationText text;             // runs the first kSensitivityTokens tokens at most
};
inline constexpr uint32_t kSensitivityTokens = 2048;

// Sets the sensitivities. Converts and runs the model once per unit.
void MeasureSensitivities(const SensitivityOptions& options, const RunProgress& on_progress,
                          std::vector<PrecisionUnit>* units);

}  // namespace arn::convert

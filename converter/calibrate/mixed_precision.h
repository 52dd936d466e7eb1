// --bits: chooses which matrices get more bits than --weights says.
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

// Returns the bits per weight, values and scales (StoredBits).
double BitsPerWeight(const std::vector<MatrixInfo>& matrices);

// Returns the types that --bits mixes for --weights `least`, from it up to int8.
std::vector<DType> MixedTypes(DType least);

// Matrices that change type together: one, or all experts of a layer.
struct PrecisionUnit {
  std::string name;
  std::vector<std::string> matrices;
  // KL divergence, in nats per token, that each type of MixedTypes but int8 adds with all else in
  // int8.
  std::vector<double> costs;
};

// Chooses the type of each unit: the least total cost with BitsPerWeight at or below `bits`.
// `matrices`: with all units in `least`. Returns Formats::exceptions. Throws ConvertError if `bits`
// is less than they take.
std::map<std::string, DType> ChooseTypes(const std::vector<MatrixInfo>& matrices,
                                         const std::vector<PrecisionUnit>& units, DType least,
                                         double bits);

// Returns the units of the layers' matrices.
std::vector<PrecisionUnit> ListUnits(const std::vector<MatrixInfo>& matrices);

struct SensitivityOptions {
  ConvertOptions convert;             // of the bundle, with matrices quantised to `dtype`; ignores
                                      // output and exceptions
  DType dtype = DType::kInt4;         // to measure
  std::filesystem::path reference;    // the same checkpoint in f32
  std::filesystem::path temporary;    // name for temporary bundles
  CalibrationText text;               // runs the first kSensitivityTokens tokens at most
  CalibrationNotes* notes = nullptr;  // not null: notes the costs, and takes those that are noted
};
inline constexpr uint32_t kSensitivityTokens = 2048;

// Appends a type's costs. Converts and runs the model once per unit whose cost is not noted.
void MeasureSensitivities(const SensitivityOptions& options, const RunProgress& on_progress,
                          std::vector<PrecisionUnit>* units);

}  // namespace arn::convert

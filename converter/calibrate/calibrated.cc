#include "converter/calibrate/calibrated.h"

#include <algorithm>

#include "converter/base/auto_target.h"

namespace arn::convert {
namespace {

bool AreNoted(const CalibrationNotes& notes, const std::vector<PrecisionUnit>& units, DType dtype) {
  return std::all_of(units.begin(), units.end(), [&](const PrecisionUnit& unit) {
    return notes.CostOf(unit.name, dtype).has_value();
  });
}

}  // namespace

CalibratedMatrices CalibrateFor(const CalibratedOptions& options, ConvertOptions* convert,
                                CalibrationNotes* notes, const LabelledProgress& on_progress) {
  const auto labelled = [&](const char* label) {
    return
        [&on_progress, label](uint64_t done, uint64_t total) { on_progress(label, done, total); };
  };
  CheckWeights(*convert);  // before any work is done
  const std::vector<MatrixInfo> matrices = ListMatrices(*convert);
  std::vector<PrecisionUnit> units = ListUnits(matrices);
  const DType least = convert->formats.weights;
  const std::vector<DType> types = MixedTypes(least);
  // Fails before any work is done if `bits` is too low.
  if (options.bits != 0) (void)ChooseTypes(matrices, units, least, options.bits);

  ConvertEvents events;
  events.on_progress = on_progress;
  if (!notes->has_reference()) {
    ConvertOptions exact = *convert;
    exact.output = notes->reference();
    exact.quantized = nullptr;
    exact.make_prefix = nullptr;
    exact.resume = nullptr;
    exact.formats = {};
    exact.formats.weights = exact.formats.embedding = exact.formats.head = DType::kF32;
    exact.formats.target = AutoTarget();
    Convert(exact, events);
    notes->NoteReference();
  }

  SensitivityOptions sensitivity;
  sensitivity.convert = *convert;
  sensitivity.convert.resume = nullptr;
  sensitivity.reference = notes->reference();
  sensitivity.temporary = notes->measured();
  sensitivity.notes = notes;
  // make(): the matrices to measure, quantised by their inputs; called only if some are not noted.
  const auto measure = [&](DType dtype, const auto& make) {
    const CalibratedMatrices quantised =
        AreNoted(*notes, units, dtype) ? CalibratedMatrices() : make();
    sensitivity.dtype = dtype;
    sensitivity.convert.quantized = &quantised.matrices();
    sensitivity.convert.drop_quantized = [&] { quantised.Forget(); };
    MeasureSensitivities(sensitivity, labelled("measure"), &units);
  };
  if (!options.text) {
    for (size_t t = 0; t + 1 < types.size(); ++t) {
      measure(types[t], [&] {
        if (sensitivity.text.ids.empty()) {
          sensitivity.text =
              WriteOwnText(notes->reference(), kSensitivityTokens, convert->n_threads);
        }
        return CalibratedMatrices();
      });
    }
    convert->formats.exceptions = ChooseTypes(matrices, units, least, options.bits);
    return {};
  }
  CalibrateOptions calibrate;
  calibrate.convert = *convert;
  calibrate.reference = notes->reference();
  calibrate.temporary = notes->copy();
  calibrate.text = ReadCalibrationText(*options.text, notes->reference(), options.max_tokens);
  calibrate.notes = notes;
  calibrate.frame = notes->measured();
  calibrate.events = events;
  sensitivity.text = calibrate.text;
  for (size_t t = 0; options.bits != 0 && t + 1 < types.size(); ++t) {
    measure(types[t], [&] {
      // Measures the cost of one matrix with all others unquantised.
      calibrate.in_order = false;
      calibrate.stage = DTypeName(types[t]);
      calibrate.convert.formats.weights = types[t];
      return Calibrate(calibrate, labelled("calibrate"));
    });
  }
  if (options.bits != 0) {
    convert->formats.exceptions = ChooseTypes(matrices, units, least, options.bits);
  }
  calibrate.convert = *convert;
  calibrate.in_order = true;
  calibrate.stage = "all";
  return Calibrate(calibrate, labelled("calibrate"));
}

}  // namespace arn::convert

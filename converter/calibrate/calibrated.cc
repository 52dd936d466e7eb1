#include "converter/calibrate/calibrated.h"

#include "converter/base/auto_target.h"
#include "converter/write/temporary_file.h"

namespace arn::convert {

CalibratedMatrices CalibrateFor(const CalibratedOptions& options, ConvertOptions* convert,
                                const LabelledProgress& on_progress) {
  const auto labelled = [&](const char* label) {
    return
        [&on_progress, label](uint64_t done, uint64_t total) { on_progress(label, done, total); };
  };
  CheckWeights(*convert);  // before any work is done
  const std::vector<MatrixInfo> matrices = ListMatrices(*convert);
  std::vector<PrecisionUnit> units = ListUnits(matrices);
  // Fails before any work is done if `bits` is too low.
  if (options.bits != 0) (void)ChooseInt8(matrices, units, options.bits);

  const TemporaryFile reference(TemporaryName(convert->output, "calibrate"));
  ConvertOptions exact = *convert;
  exact.output = reference.path();
  exact.quantized = nullptr;
  exact.make_prefix = nullptr;
  exact.formats = {};
  exact.formats.weights = exact.formats.embedding = exact.formats.head = DType::kF32;
  exact.formats.target = AutoTarget();
  ConvertEvents events;
  events.on_progress = on_progress;
  Convert(exact, events);

  if (!options.text) {
    const QuantizedMatrices none;
    SensitivityOptions sensitivity;
    sensitivity.convert = *convert;
    sensitivity.convert.quantized = &none;
    sensitivity.reference = reference.path();
    sensitivity.temporary = TemporaryName(convert->output, "measure");
    sensitivity.text = WriteOwnText(reference.path(), kSensitivityTokens, convert->n_threads);
    MeasureSensitivities(sensitivity, labelled("measure"), &units);
    convert->formats.exceptions = ChooseInt8(matrices, units, options.bits);
    return {};
  }
  CalibrateOptions calibrate;
  calibrate.convert = *convert;
  calibrate.reference = reference.path();
  calibrate.temporary = TemporaryName(convert->output, "measure");
  calibrate.text = ReadCalibrationText(*options.text, reference.path(), options.max_tokens);
  if (options.bits == 0) return Calibrate(calibrate, labelled("calibrate"));

  // Measures the cost of one int4 matrix with all others unquantised.
  calibrate.in_order = false;
  const CalibratedMatrices alone = Calibrate(calibrate, labelled("calibrate"));
  SensitivityOptions sensitivity;
  sensitivity.convert = *convert;
  sensitivity.convert.quantized = &alone.matrices();
  sensitivity.reference = reference.path();
  sensitivity.temporary = calibrate.temporary;
  sensitivity.text = calibrate.text;
  MeasureSensitivities(sensitivity, labelled("measure"), &units);
  convert->formats.exceptions = ChooseInt8(matrices, units, options.bits);
  calibrate.convert = *convert;
  calibrate.in_order = true;
  return Calibrate(calibrate, labelled("calibrate"));
}

}  // namespace arn::convert

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
  const DType least = convert->formats.weights;
  const std::vector<DType> types = MixedTypes(least);
  // Fails before any work is done if `bits` is too low.
  if (options.bits != 0) (void)ChooseTypes(matrices, units, least, options.bits);

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

  SensitivityOptions sensitivity;
  sensitivity.convert = *convert;
  sensitivity.reference = reference.path();
  sensitivity.temporary = TemporaryName(convert->output, "measure");
  const auto measure = [&](DType dtype, const QuantizedMatrices& quantised) {
    sensitivity.dtype = dtype;
    sensitivity.convert.quantized = &quantised;
    MeasureSensitivities(sensitivity, labelled("measure"), &units);
  };
  if (!options.text) {
    sensitivity.text = WriteOwnText(reference.path(), kSensitivityTokens, convert->n_threads);
    for (size_t t = 0; t + 1 < types.size(); ++t) measure(types[t], {});
    convert->formats.exceptions = ChooseTypes(matrices, units, least, options.bits);
    return {};
  }
  CalibrateOptions calibrate;
  calibrate.convert = *convert;
  calibrate.reference = reference.path();
  calibrate.temporary = TemporaryName(convert->output, "measure");
  calibrate.text = ReadCalibrationText(*options.text, reference.path(), options.max_tokens);
  if (options.bits == 0) return Calibrate(calibrate, labelled("calibrate"));

  // Measures the cost of one matrix with all others unquantised.
  calibrate.in_order = false;
  sensitivity.text = calibrate.text;
  for (size_t t = 0; t + 1 < types.size(); ++t) {
    calibrate.convert.formats.weights = types[t];
    const CalibratedMatrices alone = Calibrate(calibrate, labelled("calibrate"));
    measure(types[t], alone.matrices());
  }
  convert->formats.exceptions = ChooseTypes(matrices, units, least, options.bits);
  calibrate.convert = *convert;
  calibrate.in_order = true;
  return Calibrate(calibrate, labelled("calibrate"));
}

}  // namespace arn::convert

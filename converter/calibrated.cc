#include "converter/calibrated.h"

#include <unistd.h>

#include "converter/write/temporary_file.h"

namespace arn::convert {
namespace {

std::filesystem::path Beside(const std::filesystem::path& output, const char* what) {
  std::filesystem::path path = output;
  path += std::string(".") + what + "-" + std::to_string(getpid());
  return path;
}

}  // namespace

Calibration MakeCalibration(const CalibratedOptions& options, ConvertOptions* convert,
                            const LabelledProgress& on_progress) {
  const auto labelled = [&](const char* label) {
    return
        [&on_progress, label](uint64_t done, uint64_t total) { on_progress(label, done, total); };
  };
  const std::vector<MatrixInfo> matrices = ListMatrices(*convert);
  std::vector<PrecisionUnit> units = ListUnits(matrices);
  // Refused before the work is done.
  if (options.bits != 0) (void)ChooseInt8(matrices, units, options.bits);

  const TemporaryFile reference(Beside(convert->output, "calibrate"));
  ConvertOptions exact = *convert;
  exact.output = reference.path();
  exact.calibration = nullptr;
  exact.make_prefix = nullptr;
  exact.formats = {};
  exact.formats.weights = exact.formats.embedding = exact.formats.head = DType::kF32;
  exact.formats.target = convert->formats.target;
  ConvertEvents events;
  events.on_progress = on_progress;
  Convert(exact, events);

  const CalibrationText text =
      ReadCalibrationText(options.text, reference.path(), options.max_tokens);
  Calibration calibration =
      Calibrate(reference.path(), text, convert->n_threads, labelled("calibrate"));
  if (options.bits == 0) return calibration;

  SensitivityOptions sensitivity;
  sensitivity.convert = *convert;
  sensitivity.convert.calibration = &calibration;
  sensitivity.reference = reference.path();
  sensitivity.temporary = Beside(convert->output, "measure");
  sensitivity.text = text;
  MeasureSensitivities(sensitivity, labelled("measure"), &units);
  convert->formats.exceptions = ChooseInt8(matrices, units, options.bits);
  return calibration;
}

}  // namespace arn::convert

#include "converter/calibrated.h"

#include <unistd.h>

#include "converter/auto_target.h"
#include "converter/write/temporary_file.h"

namespace arn::convert {
namespace {

std::filesystem::path Beside(const std::filesystem::path& output, const char* what) {
  std::filesystem::path path = output;
  path += std::string(".") + what + "-" + std::to_string(getpid());
  return path;
}

}  // namespace

CalibratedMatrices CalibrateFor(const CalibratedOptions& options, ConvertOptions* convert,
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
  exact.quantized = nullptr;
  exact.make_prefix = nullptr;
  exact.formats = {};
  exact.formats.weights = exact.formats.embedding = exact.formats.head = DType::kF32;
  exact.formats.target = AutoTarget();
  ConvertEvents events;
  events.on_progress = on_progress;
  Convert(exact, events);

  CalibrateOptions calibrate;
  calibrate.convert = *convert;
  calibrate.reference = reference.path();
  calibrate.temporary = Beside(convert->output, "measure");
  calibrate.text = ReadCalibrationText(options.text, reference.path(), options.max_tokens);
  if (options.bits == 0) return Calibrate(calibrate, labelled("calibrate"));

  // What one matrix in int4 costs is measured where the others are not.
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

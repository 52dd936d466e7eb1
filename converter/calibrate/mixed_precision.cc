#include "converter/calibrate/mixed_precision.h"

#include <algorithm>
#include <cmath>

#include "converter/base/error.h"
#include "converter/run/divergence.h"
#include "converter/run/runner.h"
#include "converter/write/temporary_file.h"
#include "platform/base/arith.h"

namespace arn::convert {
namespace {

// Limit of the reference logits kept in memory.
constexpr uint64_t kLogitBytes = 256u << 20;
// Resolution of the bit budget of --bits.
constexpr size_t kShares = 1u << 15;

double BitsOf(const MatrixInfo& matrix, DType dtype) {
  const double rows = matrix.rows, cols = matrix.cols;
  const auto padded = static_cast<double>(AlignUp(matrix.cols, kInt4BlockSize));
  switch (dtype) {
    case DType::kF32: return 32 * rows * cols;
    case DType::kF16:
    case DType::kBf16: return 16 * rows * cols;
    case DType::kInt8: return rows * (8 * cols + 32);
    case DType::kInt4: return rows * padded * (4 + 16.0 / kInt4BlockSize);
  }
  return 0;
}

double ElementsOf(const MatrixInfo& matrix) { return 1.0 * matrix.rows * matrix.cols; }

// Returns the unit: "layers.3.experts" for "layers.3.experts.5.down", the matrix itself otherwise.
std::string UnitName(const std::string& matrix) {
  constexpr const char* kExperts = ".experts.";
  const size_t at = matrix.find(kExperts);
  return at == std::string::npos ? matrix : matrix.substr(0, at + std::string(kExperts).size() - 1);
}

// Computes the mean KL divergence of bundles from one reference, whose logits it keeps.
class Judge {
 public:
  explicit Judge(const SensitivityOptions& options) : options_(options), text_(options.text) {
    Runner reference(options.reference, "measure sensitivities");
    vocab_ = reference.info().vocab;
    const uint64_t fits = kLogitBytes / (vocab_ * sizeof(float));
    const uint64_t n = std::min<uint64_t>({text_.ids.size(), kSensitivityTokens, fits});
    text_.ids.resize(static_cast<size_t>(std::max<uint64_t>(n, 2)));
    RunText(options.reference, text_, options.convert.n_threads,
            [&](const float* logits, uint32_t count) {
              expected_.insert(expected_.end(), logits, logits + uint64_t{count} * vocab_);
            });
  }

  // Measures the checkpoint in int8 with the given matrices in int4.
  double Measure(const std::vector<std::string>& int4) const {
    QuantizedMatrices quantized;
    ConvertOptions convert = options_.convert;
    convert.output = options_.temporary;
    convert.make_prefix = nullptr;
    convert.quantized = &quantized;
    convert.formats.weights = DType::kInt8;
    convert.formats.exceptions.clear();
    for (const std::string& name : int4) {
      convert.formats.exceptions[name] = DType::kInt4;
      const auto found = options_.convert.quantized->find(name);
      if (found != options_.convert.quantized->end()) quantized.insert(*found);
    }
    const TemporaryFile bundle(options_.temporary);
    Convert(convert, {});
    double sum = 0;
    const float* expected = expected_.data();
    RunText(bundle.path(), text_, convert.n_threads, [&](const float* logits, uint32_t count) {
      for (uint32_t i = 0; i < count; ++i, expected += vocab_) {
        sum += Divergence(expected, logits + uint64_t{i} * vocab_, vocab_);
      }
    });
    return sum / static_cast<double>(text_.ids.size());
  }

 private:
  const SensitivityOptions& options_;
  CalibrationText text_;
  uint32_t vocab_ = 0;
  std::vector<float> expected_;  // [tokens, vocab]
};

}  // namespace

double BitsPerWeight(const std::vector<MatrixInfo>& matrices) {
  double bits = 0, elements = 0;
  for (const MatrixInfo& matrix : matrices) {
    bits += BitsOf(matrix, matrix.dtype);
    elements += ElementsOf(matrix);
  }
  return bits / elements;
}

std::vector<PrecisionUnit> ListUnits(const std::vector<MatrixInfo>& matrices) {
  std::vector<PrecisionUnit> units;
  for (const MatrixInfo& matrix : matrices) {
    if (!matrix.is_of_layer) continue;
    const std::string name = UnitName(matrix.name);
    if (units.empty() || units.back().name != name) units.push_back({name, {}, 0});
    units.back().matrices.push_back(matrix.name);
  }
  return units;
}

std::map<std::string, DType> ChooseInt8(const std::vector<MatrixInfo>& matrices,
                                        const std::vector<PrecisionUnit>& units, double bits) {
  double elements = 0;
  std::map<std::string, double> more;  // extra bits of a unit in int8
  for (const MatrixInfo& matrix : matrices) {
    elements += ElementsOf(matrix);
    more[UnitName(matrix.name)] += BitsOf(matrix, DType::kInt8) - BitsOf(matrix, matrix.dtype);
  }
  const double least = BitsPerWeight(matrices);
  if (bits < least) {
    Fail("--bits %g: even with all layers in int4 a weight takes %.3f bits", bits, least);
  }
  // Knapsack problem, by dynamic programming over shares of the bit budget. Sizes are rounded up,
  // so that the result never exceeds the budget.
  const double share = (bits - least) * elements / kShares;
  std::vector<double> most(kShares + 1, 0.0);  // by budget in shares
  std::vector<std::vector<bool>> takes;        // [units, kShares + 1]
  std::vector<size_t> sizes;
  for (const PrecisionUnit& unit : units) {
    // With few columns int8 may take fewer bits: costs nothing.
    const double size = more[unit.name] > 0 ? std::ceil(more[unit.name] / share) : 0;
    sizes.push_back(size <= kShares ? static_cast<size_t>(size) : kShares + 1);
    takes.emplace_back(kShares + 1, false);
    for (size_t s = kShares + 1; s-- > sizes.back();) {
      const double with = most[s - sizes.back()] + unit.sensitivity;
      if (!(with > most[s])) continue;
      most[s] = with;
      takes.back()[s] = true;
    }
  }
  std::map<std::string, DType> chosen;
  size_t left = kShares;
  for (size_t u = units.size(); u-- > 0;) {
    if (!takes[u][left]) continue;
    left -= sizes[u];
    for (const std::string& name : units[u].matrices) chosen[name] = DType::kInt8;
  }
  return chosen;
}

void MeasureSensitivities(const SensitivityOptions& options, const RunProgress& on_progress,
                          std::vector<PrecisionUnit>* units) {
  const Judge judge(options);
  const double base = judge.Measure({});
  uint64_t done = 0;
  for (PrecisionUnit& unit : *units) {
    unit.sensitivity = std::max(judge.Measure(unit.matrices) - base, 0.0);
    on_progress(++done, units->size());
  }
}

}  // namespace arn::convert

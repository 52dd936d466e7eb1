#include "converter/calibrate/mixed_precision.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "converter/base/error.h"
#include "converter/run/divergence.h"
#include "converter/run/runner.h"
#include "converter/run/scratch_memory.h"
#include "converter/write/temporary_file.h"
#include "kernels/contract/code_type.h"
#include "platform/base/arith.h"
#include "platform/os/pages.h"

namespace arn::convert {
namespace {

// Limit of the reference logits, which are in a file.
constexpr uint64_t kLogitBytes = 256u << 20;
// Resolution of the bit budget of --bits.
constexpr size_t kShares = 1u << 15;

double BitsOf(const MatrixInfo& matrix, DType dtype) {
  return static_cast<double>(StoredBits(dtype, matrix.rows, matrix.cols));
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
    expected_.emplace(std::filesystem::path(options.temporary) += ".logits",
                      text_.ids.size() * vocab_ * sizeof(float));
    std::byte* at = expected_->bytes().data();
    RunText(options.reference, text_, options.convert.n_threads,
            [&](const float* logits, uint32_t count) {
              const size_t bytes = size_t{count} * vocab_ * sizeof(float);
              std::memcpy(at, logits, bytes);
              at += bytes;
              ForgetLogits();
            });
  }

  // Measures the checkpoint in int8 with the given matrices in the type to measure.
  double Measure(const std::vector<std::string>& names) const {
    QuantizedMatrices quantized;
    ConvertOptions convert = options_.convert;
    convert.output = options_.temporary;
    convert.make_prefix = nullptr;
    convert.quantized = &quantized;
    convert.formats.weights = DType::kInt8;
    convert.formats.exceptions.clear();
    for (const std::string& name : names) {
      convert.formats.exceptions[name] = options_.dtype;
      const auto found = options_.convert.quantized->find(name);
      if (found != options_.convert.quantized->end()) quantized.insert(*found);
    }
    const TemporaryFile bundle(options_.temporary);
    Convert(convert, {});
    double sum = 0;
    const float* expected = reinterpret_cast<const float*>(expected_->bytes().data());
    RunText(bundle.path(), text_, convert.n_threads, [&](const float* logits, uint32_t count) {
      for (uint32_t i = 0; i < count; ++i, expected += vocab_) {
        sum += Divergence(expected, logits + uint64_t{i} * vocab_, vocab_);
      }
      ForgetLogits();
    });
    return sum / static_cast<double>(text_.ids.size());
  }

 private:
  void ForgetLogits() const { ForgetPages({expected_->bytes().data(), expected_->bytes().size()}); }

  const SensitivityOptions& options_;
  CalibrationText text_;
  uint32_t vocab_ = 0;
  std::optional<ScratchMemory> expected_;  // floats, [tokens, vocab]
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
    if (units.empty() || units.back().name != name) units.push_back({name, {}, {}});
    units.back().matrices.push_back(matrix.name);
  }
  return units;
}

std::vector<DType> MixedTypes(DType least) {
  constexpr DType kByBits[] = {DType::kInt2, DType::kInt3, DType::kInt4, DType::kInt8};
  return {std::find(std::begin(kByBits), std::end(kByBits), least), std::end(kByBits)};
}

std::map<std::string, DType> ChooseTypes(const std::vector<MatrixInfo>& matrices,
                                         const std::vector<PrecisionUnit>& units, DType least,
                                         double bits) {
  const std::vector<DType> types = MixedTypes(least);
  double elements = 0;
  std::map<std::string, std::vector<double>> more;  // extra bits of a unit by type
  for (const MatrixInfo& matrix : matrices) {
    elements += ElementsOf(matrix);
    std::vector<double>& of_unit = more[UnitName(matrix.name)];
    of_unit.resize(types.size());
    for (size_t t = 0; t < types.size(); ++t) {
      of_unit[t] += BitsOf(matrix, types[t]) - BitsOf(matrix, matrix.dtype);
    }
  }
  const double fewest = BitsPerWeight(matrices);
  if (bits < fewest) {
    Fail("--bits %g: even with all layers in %s a weight takes %.3f bits", bits, DTypeName(least),
         fewest);
  }
  // Knapsack problem with a choice of one type a unit, by dynamic programming over shares of the
  // bit budget. Sizes are rounded up, so that the result never exceeds the budget.
  const double share = (bits - fewest) * elements / kShares;
  std::vector<double> cost(kShares + 1, 0.0);  // by budget in shares
  std::vector<std::vector<uint8_t>> taken;     // [units, kShares + 1]: index of the type
  std::vector<std::vector<size_t>> sizes;      // [units, types]
  for (const PrecisionUnit& unit : units) {
    std::vector<size_t>& size_of = sizes.emplace_back();
    for (const double extra : more[unit.name]) {
      // With few columns a type may take fewer bits: costs nothing.
      const double size = extra > 0 ? std::ceil(extra / share) : 0;
      size_of.push_back(size <= kShares ? static_cast<size_t>(size) : kShares + 1);
    }
    std::vector<uint8_t>& takes = taken.emplace_back(kShares + 1, uint8_t{0});
    std::vector<double> next(kShares + 1);
    for (size_t s = 0; s <= kShares; ++s) {
      next[s] = std::numeric_limits<double>::infinity();
      for (size_t t = 0; t < types.size() && t <= unit.costs.size(); ++t) {
        if (size_of[t] > s) continue;
        const double with = cost[s - size_of[t]] + (t < unit.costs.size() ? unit.costs[t] : 0.0);
        if (!(with < next[s])) continue;
        next[s] = with;
        takes[s] = static_cast<uint8_t>(t);
      }
    }
    cost = std::move(next);
  }
  std::map<std::string, DType> chosen;
  size_t left = kShares;
  for (size_t u = units.size(); u-- > 0;) {
    const uint8_t type = taken[u][left];
    left -= sizes[u][type];
    for (const std::string& name : units[u].matrices) {
      if (types[type] != least) chosen[name] = types[type];
    }
  }
  return chosen;
}

void MeasureSensitivities(const SensitivityOptions& options, const RunProgress& on_progress,
                          std::vector<PrecisionUnit>* units) {
  std::optional<Judge> judge;
  double base = 0;
  uint64_t done = 0;
  for (PrecisionUnit& unit : *units) {
    std::optional<double> cost;
    if (options.notes != nullptr) cost = options.notes->CostOf(unit.name, options.dtype);
    if (!cost) {
      if (!judge) base = judge.emplace(options).Measure({});
      cost = std::max(judge->Measure(unit.matrices) - base, 0.0);
      if (options.notes != nullptr) options.notes->NoteCost(unit.name, options.dtype, *cost);
    }
    unit.costs.push_back(*cost);
    on_progress(++done, units->size());
  }
}

}  // namespace arn::convert

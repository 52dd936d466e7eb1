#include "converter/calibrate/mixed_precision.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "converter/base/error.h"
#include "converter/base/on_threads.h"
#include "converter/run/divergence.h"
#include "converter/run/runner.h"
#include "converter/run/scratch_memory.h"
#include "converter/run/written_bundle.h"
#include "converter/write/temporary_file.h"
#include "kernels/contract/code_type.h"
#include "platform/base/arith.h"
#include "platform/os/pages.h"

namespace arn::convert {
namespace {

constexpr const char* kMeasure = "measure sensitivities";
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
    Runner reference(options.reference, kMeasure);
    vocab_ = reference.info().vocab;
    const uint64_t fits = kLogitBytes / (vocab_ * sizeof(float));
    const uint64_t n = std::min<uint64_t>({text_.ids.size(), kSensitivityTokens, fits});
    text_.ids.resize(static_cast<size_t>(std::max<uint64_t>(n, 2)));
    expected_.emplace(std::filesystem::path(options.temporary) += ".logits",
                      text_.ids.size() * vocab_ * sizeof(float));
    expected_z_.resize(text_.ids.size());
    uint64_t first = 0;
    RunText(options.reference, text_, options.convert.n_threads,
            [&](const float* logits, uint32_t count) {
              std::memcpy(Expected(first), logits, size_t{count} * vocab_ * sizeof(float));
              ForEachRow(count, [&](uint64_t i) {
                expected_z_[first + i] = LogSumExp(Expected(first + i), vocab_);
              });
              first += count;
              ForgetLogits();
            });
    KeepInt8();
  }

  // Measures the checkpoint in int8 with the given matrices in the type to measure.
  double Measure(const std::vector<std::string>& names) const {
    QuantizedMatrices quantized = in_int8_;
    ConvertOptions convert = MeasuredConversion();
    convert.quantized = &quantized;
    convert.drop_quantized = [this] {
      int8_->Forget();
      if (options_.convert.drop_quantized) options_.convert.drop_quantized();
    };
    for (const std::string& name : names) {
      convert.formats.exceptions[name] = options_.dtype;
      quantized.erase(name);
      const auto found = options_.convert.quantized->find(name);
      if (found != options_.convert.quantized->end()) quantized.insert(*found);
    }
    const TemporaryFile bundle(options_.temporary);
    Convert(convert, {});
    std::vector<double> divergences(text_.ids.size());
    uint64_t first = 0;
    RunText(bundle.path(), text_, convert.n_threads, [&](const float* logits, uint32_t count) {
      ForEachRow(count, [&](uint64_t i) {
        const uint64_t row = first + i;
        divergences[row] = Divergence(Expected(row), expected_z_[row], logits + i * vocab_, vocab_);
      });
      first += count;
      ForgetLogits();
    });
    return std::accumulate(divergences.begin(), divergences.end(), 0.0) /
           static_cast<double>(text_.ids.size());
  }

 private:
  float* Expected(uint64_t row) const {
    return reinterpret_cast<float*>(expected_->bytes().data()) + row * vocab_;
  }

  // Calls body(i) for i of [0, n), on all threads.
  template <typename Body>
  void ForEachRow(uint32_t n, const Body& body) const {
    OnThreads(std::max(1u, options_.convert.n_threads), [&](size_t begin, size_t step) {
      for (size_t i = begin; i < n; i += step) body(i);
    });
  }

  // Returns the conversion to int8, without what measuring does not use.
  ConvertOptions MeasuredConversion() const {
    ConvertOptions convert = options_.convert;
    convert.output = options_.temporary;
    convert.no_tokenizer = convert.no_chat_template = true;
    convert.make_prefix = nullptr;
    convert.make_self_test = nullptr;
    convert.find_reply_format = nullptr;
    convert.check = nullptr;
    convert.signing_key = nullptr;
    convert.quantized = nullptr;
    convert.formats.weights = DType::kInt8;
    convert.formats.exceptions.clear();
    return convert;
  }

  // Keeps the matrices in int8, packed, in a mapped file without a name: each measured bundle
  // differs from it in one unit, and copies the others.
  void KeepInt8() {
    const TemporaryFile bundle(options_.temporary);
    const ConvertResult result = Convert(MeasuredConversion(), {});
    int8_.emplace(bundle.path(), kMeasure);
    for (const StoredMatrix& stored : result.matrices) {
      Weight& weight = in_int8_.emplace(stored.name, stored.weight).first->second;
      weight.data = int8_->bytes().data() + stored.file_offset;
    }
  }

  void ForgetLogits() const { ForgetPages({expected_->bytes().data(), expected_->bytes().size()}); }

  const SensitivityOptions& options_;
  CalibrationText text_;
  uint32_t vocab_ = 0;
  std::optional<ScratchMemory> expected_;  // floats, [tokens, vocab]
  std::vector<double> expected_z_;         // LogSumExp of each
  std::optional<WrittenBundle> int8_;
  QuantizedMatrices in_int8_;  // in int8_, all matrices
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

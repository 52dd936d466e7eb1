#include "kernels/vulkan/tune/tune_matmuls.h"

#include <cstdio>
#include <cstring>

#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

// A variant replaces the best so far only if its time is below this percentage of it.
constexpr uint64_t kClearlyFaster = 95;

// Heaviest first.
constexpr Mode kOrder[kModeCount] = {Mode::kOne, Mode::kMany, Mode::kFew};

uint32_t RowsOf(const Program& program, Mode mode, const Traits& traits) {
  switch (mode) {
    case Mode::kOne: return 1;
    case Mode::kFew: return program.max_rows > 1 ? Min(program.max_rows, kFewRows) : 0;
    case Mode::kMany:
      return program.max_rows > kFewRows ? Min(program.max_rows, traits.timed_rows) : 0;
  }
  return 0;
}

// Returns the matrix of a kLinear step of the decoder with weights of this type; null: it is not
// one.
const Weight* Counted(const Program& program, uint32_t step, DType dtype) {
  const auto* linear = program.steps[step].If<LinearParams>();
  if (step < program.n_encoder_steps || linear == nullptr) return nullptr;
  const Weight& weight = program.weights[linear->weight];
  return weight.dtype == dtype ? &weight : nullptr;
}

// Finds the shape with the most multiplications. Returns false if no matmul has such weights.
bool FindHeaviest(const Program& program, DType dtype, TunedMatmul* out) {
  uint64_t most = 0;
  for (uint32_t i = program.n_encoder_steps; i < program.steps.size(); ++i) {
    const Weight* shape = Counted(program, i, dtype);
    if (shape == nullptr) continue;
    uint64_t work = 0;
    for (uint32_t j = i; j < program.steps.size(); ++j) {
      const Weight* other = Counted(program, j, dtype);
      if (other != nullptr && other->rows == shape->rows && other->cols == shape->cols) {
        work += uint64_t{shape->rows} * shape->cols;
      }
    }
    if (work <= most) continue;
    most = work;
    out->rows = shape->rows;
    out->cols = shape->cols;
  }
  return most != 0;
}

// Collects dispatches of one shape that differ only in their places.
class ShapeCollector final : public DispatchSink {
 public:
  ShapeCollector(const Program& program, const TunedMatmul& matmul, uint32_t rows)
      : program_(program), matmul_(matmul), rows_(rows) {}

  Status BeginStep(uint32_t step) override {
    const Weight* weight = Counted(program_, step, static_cast<DType>(matmul_.dtype));
    is_counted_ = weight != nullptr && HasShape(*weight);
    return Status::kOk;
  }
  Status BeginEdits(uint32_t) override { return StopCounting(); }
  Status BeginChoice(uint32_t*) override { return StopCounting(); }
  Status Add(const Dispatch& d, Diag*) override {
    const uint64_t work = d.work * rows_ * d.row_factor;
    if (!is_counted_ || d.modes != BitOf(static_cast<Mode>(matmul_.mode)) || n_ == kMostTimed ||
        d.first_row != 0 || (n_ != 0 && work_ + work > kMostTimedWork)) {
      return Status::kOk;
    }
    if (n_ != 0 && (d.shader != found_[0].shader ||
                    std::memcmp(d.constants, found_[0].constants, sizeof d.constants) != 0)) {
      return Status::kOk;
    }
    found_[n_++] = d;
    work_ += work;
    return Status::kOk;
  }
  Span<const Dispatch> found() const { return {found_, n_}; }

 private:
  Status StopCounting() {
    is_counted_ = false;
    return Status::kOk;
  }
  bool HasShape(const Weight& weight) const {
    return weight.rows == matmul_.rows && weight.cols == matmul_.cols;
  }

  const Program& program_;
  const TunedMatmul& matmul_;
  const uint32_t rows_;
  bool is_counted_ = false;
  Dispatch found_[kMostTimed];
  uint32_t n_ = 0;
  uint64_t work_ = 0;
};

bool IsSame(const TunedMatmul& a, const TunedMatmul& b) {
  return a.mode == b.mode && a.dtype == b.dtype && a.rows == b.rows && a.cols == b.cols;
}

// Returns its entry in the record; inserts it at the front if new.
TunedMatmul* Recall(const TunedMatmul& matmul, TuningRecord* record) {
  for (uint32_t i = 0; i < record->n; ++i) {
    if (IsSame(record->matmuls[i], matmul)) return &record->matmuls[i];
  }
  record->n = Min(record->n + 1, TuningRecord::kMost);
  for (uint32_t i = record->n - 1; i > 0; --i) record->matmuls[i] = record->matmuls[i - 1];
  record->matmuls[0] = matmul;
  return record->matmuls;
}

struct Tuner {
  const Program& program;
  Span<const DeviceWeight> weights;
  const Workspace& workspace;
  MatmulMeter* meter;
  Traits* traits;
  Diag* diag;
  uint64_t end = 0;  // end of the budget
  bool has_measured = false, is_unfinished = false;

  Status Try(uint32_t rows, TunedMatmul* matmul) {
    const auto mode = static_cast<Mode>(matmul->mode);
    const uint32_t index = matmul->n_tried;
    if (IsUsable(traits->matmuls, mode, static_cast<DType>(matmul->dtype), index)) {
      Traits tried = *traits;
      tried.fuses = false;  // what ends matmuls needs a run's pages
      tried.choices.of[matmul->mode][matmul->dtype] = static_cast<uint8_t>(index);
      ShapeCollector collector(program, *matmul, rows);
      ARN_TRY(Lowering(program, weights, workspace, tried).Run(&collector, diag));
      uint64_t ns = 0;
      const Status status = collector.found().empty()
                                ? Status::kUnsupported
                                : meter->Measure(collector.found(), rows, &ns, diag);
      if (status != Status::kOk && status != Status::kUnsupported) return status;
      has_measured = true;
      const bool is_better = matmul->best_ns == 0 || ns * 100 < matmul->best_ns * kClearlyFaster;
      if (status == Status::kOk && is_better) {
        matmul->best = index;
        matmul->best_ns = Max<uint64_t>(ns, 1);
      }
    }
    ++matmul->n_tried;
    return Status::kOk;
  }

  Status Tune(uint32_t rows, TunedMatmul* matmul) {
    const uint32_t n = VariantCount(static_cast<Mode>(matmul->mode));
    while (matmul->n_tried < n && meter->NowNs() < end) {
      ARN_TRY(Try(rows, matmul));
    }
    is_unfinished = is_unfinished || matmul->n_tried < n;
    traits->choices.of[matmul->mode][matmul->dtype] = static_cast<uint8_t>(matmul->best);
    return Status::kOk;
  }
};

}  // namespace

const char* TuningName(Tuning tuning) {
  switch (tuning) {
    case Tuning::kFixed: return "fixed";
    case Tuning::kRemembered: return "remembered";
    case Tuning::kMeasured: return "measured";
    case Tuning::kUnfinished: return "measured in part";
  }
  return "";
}

void TuningRecord::Read(Span<const std::byte> bytes) {
  n = 0;
  const size_t count = bytes.size() / sizeof(TunedMatmul);
  if (count == 0 || bytes.size() % sizeof(TunedMatmul) != 0 || count > kMost) return;
  std::memcpy(matmuls, bytes.data(), bytes.size());
  for (size_t i = 0; i < count; ++i) {
    const TunedMatmul& p = matmuls[i];
    if (p.mode >= kModeCount || p.dtype >= kDTypeCount) return;
    const uint32_t n_variants = VariantCount(static_cast<Mode>(p.mode));
    if (p.n_tried > n_variants || p.best >= n_variants) return;
  }
  n = static_cast<uint32_t>(count);
}

Status TuneMatmuls(const Program& program, Span<const DeviceWeight> weights,
                   const Workspace& workspace, MatmulMeter* meter, TuningRecord* record,
                   Traits* traits, Tuning* tuning, Diag* diag) {
  Tuner tuner = {program, weights, workspace, meter, traits, diag};
  tuner.end = meter->NowNs() + kTuningBudgetNs;
  for (const Mode mode : kOrder) {
    const uint32_t rows = RowsOf(program, mode, *traits);
    for (uint32_t dtype = 0; rows != 0 && dtype < kDTypeCount; ++dtype) {
      TunedMatmul matmul;
      matmul.mode = static_cast<uint32_t>(mode);
      matmul.dtype = dtype;
      if (!FindHeaviest(program, static_cast<DType>(dtype), &matmul)) continue;
      ARN_TRY(tuner.Tune(rows, Recall(matmul, record)));
    }
  }
  *tuning = tuner.is_unfinished  ? Tuning::kUnfinished
            : tuner.has_measured ? Tuning::kMeasured
                                 : Tuning::kRemembered;
  return Status::kOk;
}

void DescribeMatmuls(const Program& program, const Traits& traits, Tuning tuning, char* out,
                     size_t bytes) {
  size_t at = 0;
  const auto add = [&](const char* before, const char* text) {
    const int n = std::snprintf(out + at, bytes - at, "%s%s", before, text);
    if (n > 0) at = Min(at + static_cast<size_t>(n), bytes - 1);
  };
  out[0] = '\0';
  for (uint32_t dtype = 0; dtype < kDTypeCount; ++dtype) {
    bool is_used = false;
    for (const Weight& weight : program.weights) {
      is_used = is_used || (!weight.is_vector && static_cast<uint32_t>(weight.dtype) == dtype);
    }
    if (!is_used) continue;
    add(at == 0 ? "" : ", ", DTypeName(static_cast<DType>(dtype)));
    for (uint32_t mode = 0; mode < kModeCount; ++mode) {
      const uint32_t chosen = traits.choices.of[mode][dtype];
      const auto m = static_cast<Mode>(mode);
      const bool is_usable = IsUsable(traits.matmuls, m, static_cast<DType>(dtype), chosen);
      add(" ", VariantName(m, is_usable ? chosen : 0));
    }
  }
  add("; ", TuningName(tuning));
}

}  // namespace arn::vulkan

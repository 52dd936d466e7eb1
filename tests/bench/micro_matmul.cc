// kLinear for each weight type: one row (memory bound) and a chunk (compute bound).
#include "kernels/contract/code_type.h"
#include "kernels/cpu/native_layout.h"
#include "micro.h"

namespace arn::bench {
namespace {

using conformance::ProgramBuilder;

// More bytes than any cache holds.
constexpr uint64_t kColdBytes = uint64_t{96} << 20;

struct Shape {
  uint32_t rows, cols;
};

// One row cycles through enough matrices that none stays in cache. A chunk reuses its matrix so
// often that caching does not matter.
void Matmul(benchmark::State& state, DType dtype, Shape shape, uint32_t n_rows) {
  std::mt19937 rng(1);
  ProgramBuilder builder(/*vocab=*/2, n_rows, /*max_context=*/1024);
  const conformance::Matrix matrix = FastMatrix(dtype, shape.rows, shape.cols, &rng);
  Step step{LinearParams()};
  step.in = builder.AddValue(shape.cols);
  step.out = builder.AddValue(shape.rows);
  const uint64_t bytes = StoredBits(dtype, shape.rows, shape.cols) / 8;
  const uint64_t copies = n_rows == 1 ? kColdBytes / bytes + 1 : 1;
  for (uint64_t i = 0; i < copies; ++i) {
    step.Get<LinearParams>().weight = builder.AddMatrix(matrix, NativeLayout(dtype));
    builder.AddStep(step);
  }
  StepBench bench(&builder, 0, n_rows);
  FillValue(&bench.session(), step.in, n_rows);
  bench.Run(state);
}

}  // namespace

void RegisterMatmul() {
  for (DType dtype : {DType::kInt8, DType::kInt4, DType::kInt4K, DType::kInt6K, DType::kInt8K,
                      DType::kFp4, DType::kIq4K, DType::kInt3, DType::kInt2, DType::kTernary,
                      DType::kF32, DType::kF16, DType::kBf16}) {
    for (const Shape shape : {Shape{960, 576}, Shape{3072, 576}, Shape{576, 1536},
                              Shape{2048, 2048}, Shape{16384, 2048}, Shape{2048, 8192}}) {
      for (const uint32_t n_rows : {1u, 128u}) {
        const std::string name = std::string("matmul/") + DTypeName(dtype) + "/" +
                                 std::to_string(shape.rows) + "x" + std::to_string(shape.cols) +
                                 "/M:" + std::to_string(n_rows);
        benchmark::RegisterBenchmark(
            name, [=](benchmark::State& state) { Matmul(state, dtype, shape, n_rows); })
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

}  // namespace arn::bench

// A row of a matmul gets the same bits whatever else is in the run: alone, among any number of
// rows, with any number of threads. docs/architecture.md, "The same result".
#include <algorithm>
#include <cstring>

#include "backends.h"
#include "cases.h"
#include "kernels/contract/code_type.h"
#include "kernels/cpu/backend_cpu.h"
#include "program_builder.h"
#include "tests/support/row_bits.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kRows = 40;

// One kLinear over kRows rows.
class Rows {
 public:
  Rows(const Matrix& w, bool splits, const BackendCase& backend, uint32_t n_threads,
       std::mt19937* rng)
      : rng_(rng), w_(w), builder_(/*vocab=*/2, kRows, /*max_context=*/64) {
    Step step{LinearParams()};
    step.in = in_ = builder_.AddValue(w.cols);
    step.out = out_ = builder_.AddValue(w.rows);
    step.Get<LinearParams>().weight = builder_.AddMatrix(w, {});
    step.Get<LinearParams>().accumulate = w.cols % 3 == 1;
    builder_.AddStep(step);
    if (splits) builder_.SplitRows();
    session_ = std::make_unique<Session>(backend.backend, &builder_, n_threads);
  }

  // Returns the outputs of rows [first, first + n) of x, added to the same rows of `before` if the
  // step accumulates.
  std::vector<float> Run(const std::vector<float>& x, const std::vector<float>& before,
                         uint32_t first, uint32_t n) {
    float* const out = session_->ValueData(out_);
    std::memcpy(session_->ValueData(in_), x.data() + size_t{first} * w_.cols,
                size_t{n} * w_.cols * sizeof(float));
    std::memcpy(out, before.data() + size_t{first} * w_.rows, size_t{n} * w_.rows * sizeof(float));
    Batch batch(session_->program(), {{0, n}}, rng_);
    EXPECT_EQ(Status::kOk, session_->Run(batch.Args())) << session_->message();
    return {out, out + size_t{n} * w_.rows};
  }

 private:
  std::mt19937* rng_;
  const Matrix& w_;
  ProgramBuilder builder_;
  ValueId in_, out_;
  std::unique_ptr<Session> session_;
};

class RowBitsTest : public BackendTest {
 protected:
  void ExpectSameBits(DType dtype, bool splits) {
    // 16-bit rows go through the kernel of several rows.
    if (GetParam().backend == CpuBackend() && !splits && !test::RowsKeepTheirBits(dtype)) {
      GTEST_SKIP() << "this CPU's kernels round one row and several differently";
    }
    if (!kHasLowBits && FindCodeType(dtype) != nullptr) {
      GTEST_SKIP() << "built without ARENITE_LOW_BITS";
    }
    std::mt19937 rng(31);
    for (const MatrixShape& shape : kMatrixShapes) {
      const Matrix w = RandomMatrix(dtype, shape.rows, shape.cols, shape.rows % 2 == 1, &rng);
      const auto x = RandomFloats(size_t{kRows} * shape.cols, 1.0f, &rng);
      const auto before = RandomFloats(size_t{kRows} * shape.rows, 1.0f, &rng);
      Rows alone(w, splits, GetParam(), GetParam().n_threads, &rng);
      std::vector<float> expected;
      for (uint32_t row = 0; row < kRows; ++row) {
        const std::vector<float> one = alone.Run(x, before, row, 1);
        expected.insert(expected.end(), one.begin(), one.end());
      }
      for (const uint32_t n_threads : {1u, 2u, 3u}) {
        Rows together(w, splits, GetParam(), n_threads, &rng);
        // Threads share columns, so a few counts are enough for several.
        const std::vector<uint32_t> few = {1, 2, 5, 13, 16, kRows};
        const std::vector<uint32_t> all = {1,  2,  3,  4,  5,  6,  7,  8,  9,
                                           10, 11, 12, 13, 14, 15, 16, 17, kRows};
        for (const uint32_t n : n_threads == 1 ? all : few) {
          for (uint32_t first = 0; first + n <= kRows; first += n) {
            const std::vector<float> found = together.Run(x, before, first, n);
            ASSERT_EQ(0, std::memcmp(found.data(), &expected[size_t{first} * shape.rows],
                                     found.size() * sizeof(float)))
                << DTypeName(dtype) << " " << shape.rows << " x " << shape.cols << ", rows "
                << first << " to " << first + n << ", " << n_threads << " threads";
          }
        }
      }
    }
  }
};

TEST_P(RowBitsTest, F32) { ExpectSameBits(DType::kF32, false); }
TEST_P(RowBitsTest, F16) { ExpectSameBits(DType::kF16, false); }
TEST_P(RowBitsTest, Bf16) { ExpectSameBits(DType::kBf16, false); }
TEST_P(RowBitsTest, Int8) { ExpectSameBits(DType::kInt8, false); }
TEST_P(RowBitsTest, Int4) { ExpectSameBits(DType::kInt4, false); }
TEST_P(RowBitsTest, Ternary) { ExpectSameBits(DType::kTernary, false); }
TEST_P(RowBitsTest, TernaryRows) { ExpectSameBits(DType::kTernaryRows, false); }
TEST_P(RowBitsTest, Int2) { ExpectSameBits(DType::kInt2, false); }
TEST_P(RowBitsTest, Int3) { ExpectSameBits(DType::kInt3, false); }
TEST_P(RowBitsTest, Int3_SplitRows) { ExpectSameBits(DType::kInt3, true); }
TEST_P(RowBitsTest, Int4K) { ExpectSameBits(DType::kInt4K, false); }
TEST_P(RowBitsTest, Int4K128) { ExpectSameBits(DType::kInt4K128, false); }
TEST_P(RowBitsTest, Int4K32) { ExpectSameBits(DType::kInt4K32, false); }
TEST_P(RowBitsTest, Int6K) { ExpectSameBits(DType::kInt6K, false); }
TEST_P(RowBitsTest, Int6K32) { ExpectSameBits(DType::kInt6K32, false); }
TEST_P(RowBitsTest, Fp4) { ExpectSameBits(DType::kFp4, false); }
TEST_P(RowBitsTest, Iq4K) { ExpectSameBits(DType::kIq4K, false); }
TEST_P(RowBitsTest, Iq4) { ExpectSameBits(DType::kIq4, false); }
TEST_P(RowBitsTest, Int8K256) { ExpectSameBits(DType::kInt8K256, false); }
TEST_P(RowBitsTest, Int8K) { ExpectSameBits(DType::kInt8K, false); }
TEST_P(RowBitsTest, Int6K_SplitRows) { ExpectSameBits(DType::kInt6K, true); }
TEST_P(RowBitsTest, Int4K_SplitRows) { ExpectSameBits(DType::kInt4K, true); }
TEST_P(RowBitsTest, Iq4K_SplitRows) { ExpectSameBits(DType::kIq4K, true); }
TEST_P(RowBitsTest, Int8_SplitRows) { ExpectSameBits(DType::kInt8, true); }
TEST_P(RowBitsTest, Int4_SplitRows) { ExpectSameBits(DType::kInt4, true); }

std::vector<BackendCase> Cpus() {
  std::vector<BackendCase> cases = AllBackends();
  // The reference runs row by row in any case.
  std::erase_if(cases, [](const BackendCase& c) { return c.backend != CpuBackend(); });
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Backends, RowBitsTest, testing::ValuesIn(Cpus()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance

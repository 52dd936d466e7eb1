// kLinear, kEmbed and kLogits: matmuls with weights of every type and layout.
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/contract/code_type.h"
#include "kernels/cpu/backend_cpu.h"
#include "kernels/cpu/native_layout.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

// Returns the activations an integer matmul uses: quantised to int8 per row over [min(x, 0), max(x,
// 0)]. Implemented again from the definition, with the scale in f32 as in XNNPACK.
std::vector<double> QuantizedActivations(const std::vector<float>& x, uint32_t rows,
                                         uint32_t cols) {
  std::vector<double> out(x.size());
  for (uint32_t m = 0; m < rows; ++m) {
    float low = 0.0f, high = 0.0f;
    for (uint32_t c = 0; c < cols; ++c) {
      low = std::fmin(low, x[m * cols + c]);
      high = std::fmax(high, x[m * cols + c]);
    }
    const float steps = low == high ? 1.0f : 255.0f / (high - low);
    const float from_low = -128.0f - low * steps, from_high = 127.0f - high * steps;
    const float exact =
        (-128.0f + low * steps) + (127.0f + high * steps) > 0 ? from_low : from_high;
    const auto zero =
        static_cast<double>(std::nearbyint(std::fmin(std::fmax(exact, -128.0f), 127.0f)));
    const float step = 1.0f / steps;
    for (uint32_t c = 0; c < cols; ++c) {
      const double q = std::nearbyint(static_cast<double>(x[m * cols + c] * (1.0f / step))) + zero;
      out[m * cols + c] =
          (std::fmin(std::fmax(q, -128.0), 127.0) - zero) * static_cast<double>(step);
    }
  }
  return out;
}

// The same for ternary weights, from BitNet's definition: the largest magnitude becomes 127.
std::vector<double> SymmetricActivations(const std::vector<float>& x, uint32_t rows,
                                         uint32_t cols) {
  std::vector<double> out(x.size());
  for (uint32_t m = 0; m < rows; ++m) {
    float most = 1e-5f;
    for (uint32_t c = 0; c < cols; ++c) most = std::fmax(most, std::fabs(x[m * cols + c]));
    const float scale = 127.0f / most;
    for (uint32_t c = 0; c < cols; ++c) {
      out[m * cols + c] =
          static_cast<double>(std::nearbyint(x[m * cols + c] * scale)) / static_cast<double>(scale);
    }
  }
  return out;
}

std::vector<double> ExactMatmul(const Matrix& w, const std::vector<float>& x, uint32_t rows) {
  std::vector<double> a(x.begin(), x.end());
  if (IsTernary(w.dtype)) {
    a = SymmetricActivations(x, rows, w.cols);
  } else if (IsInteger(w.dtype)) {
    a = QuantizedActivations(x, rows, w.cols);
  }
  std::vector<double> y(size_t{rows} * w.rows);
  for (uint32_t m = 0; m < rows; ++m) {
    for (uint32_t n = 0; n < w.rows; ++n) {
      double sum = w.bias.empty() ? 0.0 : static_cast<double>(w.bias[n]);
      for (uint32_t k = 0; k < w.cols; ++k) {
        sum += a[size_t{m} * w.cols + k] * w.exact[size_t{n} * w.cols + k];
      }
      y[size_t{m} * w.rows + n] = sum;
    }
  }
  return y;
}

// A Program with one kLinear.
struct Linear {
  Linear(const Matrix& w, const WeightLayout& layout, uint32_t max_rows, bool accumulate = false)
      : builder(/*vocab=*/2, max_rows, /*max_context=*/64) {
    Step step{LinearParams()};
    auto& params = step.Get<LinearParams>();
    step.in = in = builder.AddValue(w.cols);
    step.out = out = builder.AddValue(w.rows);
    params.weight = builder.AddMatrix(w, layout);
    params.accumulate = accumulate;
    builder.AddStep(step);
  }
  ProgramBuilder builder;
  ValueId in, out;
};

std::string Name(const Matrix& w, const WeightLayout& l, uint32_t rows) {
  return std::string(DTypeName(w.dtype)) + " nr " + std::to_string(l.nr) + " kr " +
         std::to_string(l.kr) + " sr " + std::to_string(l.sr) + ", " + std::to_string(rows) +
         " rows, " + std::to_string(w.rows) + " x " + std::to_string(w.cols);
}

constexpr WeightLayout kInRows = {WeightOrder::kDeviceRows};

// Returns the layouts to test for a shape: all layouts if the kernels read host memory. A device
// stores weights as rows for any layout and each session compiles shaders, so it gets one layout in
// rotation. Each shape still runs the shaders and each layout is read (pack_test covers reading for
// many shapes).
std::vector<WeightLayout> LayoutsFor(const BackendCase& backend, DType dtype,
                                     const MatrixShape& shape) {
  std::vector<WeightLayout> layouts = TargetLayouts(dtype);
  if (backend.backend == CpuInRows() && FindCodeType(dtype) == nullptr) return {kInRows};
  if (backend.backend->host_kv != nullptr) return layouts;
  const auto turn = static_cast<size_t>(&shape - kMatrixShapes);
  return {layouts[turn % layouts.size()]};
}

// Error of activations quantised to 16 bits against f32 ones. With 8 bits it is a few hundredths.
constexpr double kSplitTolerance = 4e-4;

class LinearTest : public BackendTest {};

TEST_P(LinearTest, Linear_EveryTypeLayoutAndShape_EqualsTheFormula) {
  std::mt19937 rng(7);
  for (const DType dtype : WeightTypesOf(GetParam())) {
    for (const MatrixShape& shape : kMatrixShapes) {
      for (const WeightLayout& layout : LayoutsFor(GetParam(), dtype, shape)) {
        const Matrix w = RandomMatrix(dtype, shape.rows, shape.cols, shape.rows % 2 == 1, &rng);
        const bool accumulate = shape.cols % 3 == 1;
        Linear linear(w, layout, /*max_rows=*/33, accumulate);
        Session session(GetParam().backend, &linear.builder, GetParam().n_threads);
        for (uint32_t rows : kRowCounts) {
          SCOPED_TRACE(Name(w, layout, rows));
          const auto x = RandomFloats(size_t{rows} * shape.cols, 1.0f, &rng);
          const auto before = RandomFloats(size_t{rows} * shape.rows, 1.0f, &rng);
          std::memcpy(session.ValueData(linear.in), x.data(), x.size() * sizeof(float));
          std::memcpy(session.ValueData(linear.out), before.data(), before.size() * sizeof(float));
          Batch batch(session.program(), {{0, rows}}, &rng);
          ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
          std::vector<double> expected = ExactMatmul(w, x, rows);
          for (size_t i = 0; accumulate && i < expected.size(); ++i) {
            expected[i] += static_cast<double>(before[i]);
          }
          // Blocks are summed in f32: one for each 32 columns.
          ExpectNear(session.ValueData(linear.out), expected,
                     (w.dtype >= DType::kInt4 ? 2 : 1) * SumTolerance(shape.cols));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// 16-bit rows: the quantised row plus the quantised remainder.
TEST_P(LinearTest, Linear_SplitRows_EqualTheFormula) {
  std::mt19937 rng(17);
  for (const DType dtype : WeightTypesOf(GetParam())) {
    if (!IsInteger(dtype)) continue;
    for (const MatrixShape& shape : kMatrixShapes) {
      const bool accumulate = shape.cols % 3 == 1;
      const Matrix w = RandomMatrix(dtype, shape.rows, shape.cols, true, &rng);
      Linear linear(w, LayoutsFor(GetParam(), dtype, shape)[0], /*max_rows=*/33, accumulate);
      linear.builder.SplitRows();
      if (GetParam().backend->host_kv == nullptr) {
        std::string message;
        EXPECT_FALSE(CanLoad(GetParam().backend, &linear.builder, &message));
        EXPECT_NE(std::string::npos, message.find("of 16 bits")) << message;
        return;
      }
      Session session(GetParam().backend, &linear.builder, GetParam().n_threads);
      for (const uint32_t rows : kRowCounts) {
        SCOPED_TRACE(Name(w, {}, rows));
        const auto x = RandomFloats(size_t{rows} * shape.cols, 1.0f, &rng);
        const auto before = RandomFloats(size_t{rows} * shape.rows, 1.0f, &rng);
        std::memcpy(session.ValueData(linear.in), x.data(), x.size() * sizeof(float));
        std::memcpy(session.ValueData(linear.out), before.data(), before.size() * sizeof(float));
        Batch batch(session.program(), {{0, rows}}, &rng);
        ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
        // The result is close to a matmul of the f32 activations.
        Matrix exact = w;
        exact.dtype = DType::kF32;
        std::vector<double> expected = ExactMatmul(exact, x, rows);
        for (size_t i = 0; accumulate && i < expected.size(); ++i) {
          expected[i] += static_cast<double>(before[i]);
        }
        ExpectNear(session.ValueData(linear.out), expected, kSplitTolerance);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(LinearTest, Linear_TypesThatTheBackendLacks_AreRefusedByName) {
  if (!kHasLowBits) GTEST_SKIP() << "built without ARENITE_LOW_BITS";
  std::mt19937 rng(19);
  const std::vector<DType> runs = WeightTypesOf(GetParam());
  for (const DType dtype : kWeightTypes) {
    if (std::count(runs.begin(), runs.end(), dtype) != 0) continue;
    Linear linear(RandomMatrix(dtype, 8, 8, false, &rng), {}, /*max_rows=*/1);
    std::string message;
    EXPECT_FALSE(CanLoad(GetParam().backend, &linear.builder, &message));
    EXPECT_NE(std::string::npos, message.find(DTypeName(dtype))) << message;
  }
}

// A chunk of one token uses another micro-kernel, which may round differently from the one for
// several rows. XNNPACK's int8 pair on ARM with dot products does: one row computes fma(dot * a, b,
// bias), four rows compute dot * (a * b) + bias in assembler, with a and b the two scales.
TEST_P(LinearTest, Linear_ARowAlone_IsTheSameRowAmongOthersButForRounding) {
  std::mt19937 rng(11);
  constexpr uint32_t kRows = 16;
  constexpr double kHalfUlp = 0x1p-24;
  for (const DType dtype : WeightTypesOf(GetParam())) {
    for (const MatrixShape& shape : kMatrixShapes) {
      const Matrix w = RandomMatrix(dtype, shape.rows, shape.cols, true, &rng);
      SCOPED_TRACE(Name(w, {}, kRows));
      Linear linear(w, {}, kRows);
      Session session(GetParam().backend, &linear.builder, GetParam().n_threads);
      const auto x = RandomFloats(size_t{kRows} * shape.cols, 1.0f, &rng);
      const float* const out = session.ValueData(linear.out);
      std::memcpy(session.ValueData(linear.in), x.data(), x.size() * sizeof(float));
      Batch together(session.program(), {{0, kRows}}, &rng);
      ASSERT_EQ(session.Run(together.Args()), Status::kOk);
      const std::vector<float> among(out, out + size_t{kRows} * shape.rows);
      std::vector<float> alone;
      for (uint32_t m = 0; m < kRows; ++m) {
        std::memcpy(session.ValueData(linear.in), x.data() + m * shape.cols,
                    shape.cols * sizeof(float));
        Batch one(session.program(), {{0, 1}}, &rng);
        ASSERT_EQ(session.Run(one.Args()), Status::kOk);
        alone.insert(alone.end(), out, out + shape.rows);
      }
      ExpectNear(alone.data(), among, SumTolerance(shape.cols));
      // Kernels of this project sum in the same order in every tile.
      if (GetParam().backend == CpuBackend() &&
          (dtype == DType::kF16 || dtype == DType::kBf16 || dtype > DType::kInt4)) {
        ASSERT_TRUE(alone == among);
      }
      for (size_t i = 0; dtype == DType::kInt8 && i < alone.size(); ++i) {
        // One rounding of the dot product against two, and two roundings of the sum.
        const double sum = static_cast<double>(among[i]);
        const double product = std::fabs(sum - static_cast<double>(w.bias[i % shape.rows]));
        ASSERT_LE(std::fabs(static_cast<double>(alone[i]) - sum),
                  kHalfUlp * (3 * product + 2 * std::fabs(sum)))
            << "row " << i / shape.rows << " output " << i % shape.rows;
      }
    }
  }
}

#if HWY_ARCH_X86
// Runs one matmul on the CPU backend with Highway restricted to `targets` (0: unrestricted).
std::vector<float> MatmulOnTargets(int64_t targets, const Matrix& w, uint32_t rows,
                                   const std::vector<float>& x, bool accumulate) {
  hwy::SetSupportedTargetsForTest(targets);
  std::mt19937 rng(1);
  Linear linear(w, {}, rows, accumulate);
  Session session(CpuBackend(), &linear.builder, 1);
  std::memcpy(session.ValueData(linear.in), x.data(), x.size() * sizeof(float));
  float* out = session.ValueData(linear.out);
  const size_t n = size_t{rows} * w.rows;
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(i % 7) - 3.0f;
  Batch batch(session.program(), {{0, rows}}, &rng);
  EXPECT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
  hwy::SetSupportedTargetsForTest(0);
  return {out, out + n};
}

// Compares the int4 kernels of this project with XNNPACK's, which the CPU backend uses if Highway
// is restricted. With VNNI both sum in the same order; XNNPACK's kernel for AVX2 rounds
// differently.
TEST(LinearKernelsTest, Linear_Int4OursAndXnnpacks_AreTheSameButForRounding) {
  if ((hwy::SupportedTargets() & HWY_AVX2) == 0) GTEST_SKIP() << "no AVX2";
  const bool has_vnni = (hwy::SupportedTargets() & HWY_AVX3_DL) != 0;
  const int64_t of_xnnpack = has_vnni ? HWY_AVX3 : HWY_SSE4;
  const WeightLayout ours = NativeLayout(DType::kInt4);
  hwy::SetSupportedTargetsForTest(of_xnnpack);
  EXPECT_FALSE(NativeLayout(DType::kInt4) == ours);
  hwy::SetSupportedTargetsForTest(0);
  std::mt19937 rng(12);
  for (const MatrixShape& shape : kMatrixShapes) {
    const Matrix w = RandomMatrix(DType::kInt4, shape.rows, shape.cols, true, &rng);
    for (uint32_t rows : kRowCounts) {
      SCOPED_TRACE(Name(w, ours, rows));
      const auto x = RandomFloats(size_t{rows} * shape.cols, 1.0f, &rng);
      ExpectNear(MatmulOnTargets(0, w, rows, x, false).data(),
                 MatmulOnTargets(of_xnnpack, w, rows, x, false),
                 has_vnni ? 3e-7 : SumTolerance(shape.cols));
    }
  }
}

// With VNNI products are summed in 32 bits, with AVX2 in 16.
TEST(LinearKernelsTest, Linear_Int4WithVnniAndAvx2_AreTheSameBits) {
  if ((hwy::SupportedTargets() & HWY_AVX3_DL) == 0) GTEST_SKIP() << "no AVX-512 VNNI";
  std::mt19937 rng(14);
  for (const MatrixShape& shape : kMatrixShapes) {
    const Matrix w = RandomMatrix(DType::kInt4, shape.rows, shape.cols, true, &rng);
    for (uint32_t rows = 1; rows <= 14; ++rows) {
      SCOPED_TRACE(Name(w, NativeLayout(DType::kInt4), rows));
      const auto x = RandomFloats(size_t{rows} * shape.cols, 1.0f, &rng);
      for (const bool accumulate : {false, true}) {
        EXPECT_EQ(MatmulOnTargets(0, w, rows, x, accumulate),
                  MatmulOnTargets(HWY_AVX2, w, rows, x, accumulate));
      }
    }
  }
}

// The int8 kernel of this project gives the same bits as XNNPACK's for every tile height.
TEST(LinearKernelsTest, Linear_Int8OursAndXnnpacks_AreTheSameBits) {
  if ((hwy::SupportedTargets() & HWY_AVX3_DL) == 0) GTEST_SKIP() << "no AVX-512 VNNI";
  std::mt19937 rng(13);
  for (const MatrixShape& shape : kMatrixShapes) {
    const Matrix w = RandomMatrix(DType::kInt8, shape.rows, shape.cols, true, &rng);
    for (uint32_t rows = 1; rows <= 14; ++rows) {
      SCOPED_TRACE(Name(w, NativeLayout(DType::kInt8), rows));
      const auto x = RandomFloats(size_t{rows} * shape.cols, 1.0f, &rng);
      for (const bool accumulate : {false, true}) {
        EXPECT_EQ(MatmulOnTargets(0, w, rows, x, accumulate),
                  MatmulOnTargets(HWY_AVX3, w, rows, x, accumulate));
      }
    }
  }
}
#endif

TEST_P(LinearTest, Linear_ExtremeRows_EqualTheFormula) {
  std::mt19937 rng(8);
  constexpr uint32_t kCols = 172, kOut = 40, kRows = 5;
  for (const DType dtype : WeightTypesOf(GetParam())) {
    const Matrix w = RandomMatrix(dtype, kOut, kCols, true, &rng);
    Linear linear(w, {}, kRows);
    Session session(GetParam().backend, &linear.builder, GetParam().n_threads);
    std::vector<float> x(kRows * kCols, 0.0f);  // row 0: zeros
    for (uint32_t c = 0; c < kCols; ++c) {
      x[kCols + c] = 3.0f + 0.01f * static_cast<float>(c);  // all positive
      x[2 * kCols + c] = -1e-5f * static_cast<float>(c);    // all negative, small
      x[3 * kCols + c] = c == 17 ? 1e4f : 0.001f;           // one outlier
      x[4 * kCols + c] = c % 2 == 0 ? 1e-20f : -1e-20f;
    }
    std::memcpy(session.ValueData(linear.in), x.data(), x.size() * sizeof(float));
    Batch batch(session.program(), {{0, kRows}}, &rng);
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk);
    const std::vector<double> expected = ExactMatmul(w, x, kRows);
    // The zeros have zero point 127: products and correction cancel, but for the rounding of sums
    // of blocks with scales of 7 bits, of 11 with fp4, and of 19 in nested ones.
    const bool is_coarse = HasMinimums(dtype) || dtype == DType::kFp4;
    const double tolerance = is_coarse              ? 64 * kTolerance
                             : dtype > DType::kInt4 ? 32 * kTolerance
                                                    : kTolerance;
    for (uint32_t m = 0; m < kRows; ++m) {
      SCOPED_TRACE(std::string(DTypeName(dtype)) + " row " + std::to_string(m));
      ExpectNear(
          session.ValueData(linear.out) + m * kOut,
          std::vector<double>(expected.begin() + m * kOut, expected.begin() + (m + 1) * kOut),
          tolerance);
    }
  }
}

// The largest sums of products that a block of int4 can have, of both signs.
TEST_P(LinearTest, Linear_LargestInt4AndActivations_EqualTheFormula) {
  std::mt19937 rng(15);
  constexpr uint32_t kCols = 96, kOut = 40, kRows = 15;
  Matrix w = RandomMatrix(DType::kInt4, kOut, kCols, false, &rng);
  std::vector<uint16_t> scales(kOut * kCols / kInt4BlockSize);
  ASSERT_EQ(scales.size() * sizeof(uint16_t), w.scales.size());
  std::memcpy(scales.data(), w.scales.data(), w.scales.size());
  for (uint32_t i = 0; i < kOut * kCols; ++i) {
    const uint32_t row = i / kCols;
    const bool is_least = row % 4 == 3 ? i % 2 == 0 : row % 2 == 0;
    w.values[i] = is_least ? 0 : 15;
    const uint32_t bits = uint32_t{scales[i / kInt4BlockSize]} << 16;
    float scale;
    std::memcpy(&scale, &bits, sizeof scale);
    w.exact[i] = (is_least ? -8.0 : 7.0) * static_cast<double>(scale);
  }
  Linear linear(w, {}, kRows);
  Session session(GetParam().backend, &linear.builder, GetParam().n_threads);
  std::vector<float> x(kRows * kCols);
  for (uint32_t i = 0; i < kRows * kCols; ++i) x[i] = i / kCols % 2 == 0 ? 3.0f : -2.0f;
  std::memcpy(session.ValueData(linear.in), x.data(), x.size() * sizeof(float));
  Batch batch(session.program(), {{0, kRows}}, &rng);
  ASSERT_EQ(session.Run(batch.Args()), Status::kOk);
  ExpectNear(session.ValueData(linear.out), ExactMatmul(w, x, kRows), kTolerance);
}

TEST_P(LinearTest, Embed_EveryTypeAndLayout_GivesTheRows) {
  std::mt19937 rng(9);
  for (const DType dtype : WeightTypesOf(GetParam())) {
    for (const WeightLayout& layout : TargetLayouts(dtype)) {
      const Matrix w = RandomMatrix(dtype, 101, 172, false, &rng);
      ProgramBuilder builder(101, 20, 64);
      Step step{EmbedParams()};
      step.out = builder.AddValue(172);
      step.Get<EmbedParams>().weight = builder.AddMatrix(w, layout);
      builder.AddStep(step);
      Session session(GetParam().backend, &builder, GetParam().n_threads);
      Batch batch(session.program(), {{0, 20}}, &rng);
      ASSERT_EQ(session.Run(batch.Args()), Status::kOk);
      for (size_t i = 0; i < batch.tokens.size(); ++i) {
        for (size_t c = 0; c < 172; ++c) {
          ASSERT_EQ(session.ValueData(step.out)[i * 172 + c],
                    static_cast<float>(w.exact[static_cast<size_t>(batch.tokens[i]) * 172 + c]));
        }
      }
    }
  }
}

TEST_P(LinearTest, Logits_LastAndAll_AreNormAndHead) {
  std::mt19937 rng(10);
  constexpr uint32_t kVocab = 1021, kHidden = 172;
  for (const DType dtype : WeightTypesOf(GetParam())) {
    const Matrix w = RandomMatrix(dtype, kVocab, kHidden, false, &rng);
    ProgramBuilder builder(kVocab, 12, 64);
    const auto norm = RandomFloats(kHidden, 1.0f, &rng);
    Step step{LogitsParams()};
    auto& params = step.Get<LogitsParams>();
    step.in = builder.AddValue(kHidden);
    params.weight = builder.AddMatrix(w, {});
    params.norm = builder.AddVector(norm);
    params.epsilon = 1e-5f;
    builder.AddStep(step);
    Session session(GetParam().backend, &builder, GetParam().n_threads);
    for (LogitRows rows : {LogitRows::kLastOfEach, LogitRows::kAll, LogitRows::kNone}) {
      SCOPED_TRACE(static_cast<int>(rows));
      const auto x = RandomFloats(12 * kHidden, 3.0f, &rng);
      std::memcpy(session.ValueData(step.in), x.data(), x.size() * sizeof(float));
      Batch batch(session.program(), {{0, 4}, {0, 1}, {0, 7}}, &rng);
      batch.logit_rows = rows;
      ASSERT_EQ(session.Run(batch.Args()), Status::kOk);
      std::vector<uint32_t> wanted;
      if (rows == LogitRows::kLastOfEach) wanted = {3, 4, 11};
      if (rows == LogitRows::kAll) wanted = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
      for (size_t i = 0; i < wanted.size(); ++i) {
        const float* row = x.data() + wanted[i] * kHidden;
        double sum = 0.0;
        for (uint32_t c = 0; c < kHidden; ++c) {
          sum += static_cast<double>(row[c]) * static_cast<double>(row[c]);
        }
        std::vector<float> normed(kHidden);
        for (uint32_t c = 0; c < kHidden; ++c) {
          normed[c] =
              static_cast<float>(static_cast<double>(row[c]) / std::sqrt(sum / kHidden + 1e-5) *
                                 static_cast<double>(norm[c]));
        }
        // Quantised activations may round the other way if the norm differs in the last bit.
        const bool exact = !IsInteger(dtype);
        ExpectNear(session.Logits() + i * kVocab, ExactMatmul(w, normed, 1),
                   exact ? kTolerance : 2e-3);
      }
    }
  }
}

// Parts that begin with a panel of the kernels, or within one.
TEST_P(LinearTest, LogitsOfChosenParts_AreThoseOfAll_AndTheOthersAreHidden) {
  if (!GetParam().backend->takes_features) GTEST_SKIP() << "has no parts of the head";
  std::mt19937 rng(14);
  constexpr uint32_t kHidden = 44, kParts = 12, kChosen = 5, kRows = 3;
  for (const DType dtype : WeightTypesOf(GetParam())) {
    for (const uint32_t size : {1u, 17u, 32u, 1100u}) {
      SCOPED_TRACE(std::string(DTypeName(dtype)) + ", " + std::to_string(size));
      const uint32_t vocab = kParts * size;
      const Matrix w = RandomMatrix(dtype, vocab, kHidden, false, &rng);
      const auto norm = RandomFloats(kHidden, 1.0f, &rng);
      const auto x = RandomFloats(kRows * kHidden, 3.0f, &rng);
      std::vector<float> logits[2];
      const std::vector<float> ids = {3, 11, 0, 7, 4, 8, 1, 9, 2, 10, 5, 6, 0, 11, 3};
      for (const bool has_parts : {false, true}) {
        ProgramBuilder builder(vocab, kRows, 64);
        Step step{LogitsParams()};
        auto& params = step.Get<LogitsParams>();
        step.in = builder.AddValue(kHidden);
        params.weight = builder.AddMatrix(w, {});
        params.norm = builder.AddVector(norm);
        params.epsilon = 1e-5f;
        if (has_parts) {
          params.chosen = builder.AddValue(2 * kChosen);
          params.n_parts = kParts;
        }
        builder.AddStep(step);
        Session session(GetParam().backend, &builder, GetParam().n_threads);
        // The whole head runs on one row at a time: on some CPUs several rows round otherwise.
        const uint32_t n_rows = has_parts ? kRows : 1;
        for (uint32_t first = 0; first < kRows; first += n_rows) {
          std::memcpy(session.ValueData(step.in), x.data() + first * kHidden,
                      n_rows * kHidden * sizeof(float));
          for (uint32_t row = 0; has_parts && row < kRows; ++row) {
            std::copy_n(ids.begin() + row * kChosen, kChosen,
                        session.ValueData(params.chosen) + row * 2 * kChosen);
          }
          std::mt19937 same(1);
          Batch batch(session.program(), {{0, n_rows}}, &same);
          batch.logit_rows = LogitRows::kAll;
          ASSERT_EQ(session.Run(batch.Args()), Status::kOk);
          logits[has_parts].insert(logits[has_parts].end(), session.Logits(),
                                   session.Logits() + n_rows * vocab);
        }
      }
      for (uint32_t row = 0; row < kRows; ++row) {
        for (uint32_t part = 0; part < kParts; ++part) {
          const auto first = ids.begin() + row * kChosen;
          const bool is_chosen =
              std::find(first, first + kChosen, static_cast<float>(part)) != first + kChosen;
          for (uint32_t i = 0; i < size; ++i) {
            const size_t at = row * vocab + part * size + i;
            ASSERT_EQ(is_chosen ? logits[0][at] : -INFINITY, logits[1][at]) << at;
          }
        }
      }
    }
  }
}

// Writes the product of the rows of x to `out`, which has them.
void Multiply(const Backend* backend, const Matrix& w, const WeightLayout& layout, uint32_t rows,
              const std::vector<float>& x, bool accumulate, std::vector<float>* out) {
  std::mt19937 rng(1);
  Linear linear(w, layout, rows, accumulate);
  Session session(backend, &linear.builder, 1);
  std::memcpy(session.ValueData(linear.in), x.data(), x.size() * sizeof(float));
  std::memcpy(session.ValueData(linear.out), out->data(), out->size() * sizeof(float));
  Batch batch(session.program(), {{0, rows}}, &rng);
  EXPECT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
  std::memcpy(out->data(), session.ValueData(linear.out), out->size() * sizeof(float));
}

// Matrices that a CPU reads as a device does.
TEST(LinearInRowsTest, ARow_HasTheSameBitsAmongOthers) {
  std::mt19937 rng(23);
  for (const DType dtype : kWeightTypes) {
    if (FindCodeType(dtype) != nullptr) continue;
    for (const MatrixShape& shape : kMatrixShapes) {
      constexpr uint32_t kRows = 3;
      const Matrix w = RandomMatrix(dtype, shape.rows, shape.cols, true, &rng);
      SCOPED_TRACE(Name(w, kInRows, kRows));
      const auto x = RandomFloats(size_t{kRows} * shape.cols, 1.0f, &rng);
      std::vector<float> among(size_t{kRows} * shape.rows), alone;
      Multiply(CpuInRows(), w, kInRows, kRows, x, false, &among);
      for (uint32_t r = 0; r < kRows; ++r) {
        const auto row = x.begin() + static_cast<std::ptrdiff_t>(size_t{r} * shape.cols);
        std::vector<float> out(shape.rows);
        Multiply(CpuInRows(), w, kInRows, 1, {row, row + shape.cols}, false, &out);
        alone.insert(alone.end(), out.begin(), out.end());
      }
      EXPECT_EQ(alone, among);
    }
  }
}

#if HWY_ARCH_X86
TEST(LinearInRowsTest, Int8_HasTheBitsOfPanels) {
  if ((hwy::SupportedTargets() & HWY_AVX3_DL) == 0) GTEST_SKIP() << "no AVX-512 VNNI";
  std::mt19937 rng(29);
  for (const MatrixShape& shape : kMatrixShapes) {
    const Matrix w = RandomMatrix(DType::kInt8, shape.rows, shape.cols, true, &rng);
    for (const uint32_t rows : {1u, 3u}) {
      SCOPED_TRACE(Name(w, kInRows, rows));
      const auto x = RandomFloats(size_t{rows} * shape.cols, 1.0f, &rng);
      const auto before = RandomFloats(size_t{rows} * shape.rows, 1.0f, &rng);
      for (const bool accumulate : {false, true}) {
        std::vector<float> in_rows = before, panels = before;
        Multiply(CpuInRows(), w, kInRows, rows, x, accumulate, &in_rows);
        Multiply(CpuBackend(), w, NativeLayout(DType::kInt8), rows, x, accumulate, &panels);
        EXPECT_EQ(panels, in_rows);
      }
    }
  }
}
#endif

TEST(LinearInRowsTest, Plan_HasNoSecondCopy) {
#ifndef ARENITE_VULKAN
  GTEST_SKIP() << "built without a device";
#endif
  std::mt19937 rng(31);
  for (const DType dtype : kWeightTypes) {
    if (FindCodeType(dtype) != nullptr) continue;
    SCOPED_TRACE(DTypeName(dtype));
    const Matrix w = RandomMatrix(dtype, 40, 72, true, &rng);
    const auto repacked = [&](const Backend* backend, const WeightLayout& layout, bool splits) {
      Linear linear(w, layout, 2);
      if (splits) linear.builder.SplitRows();
      return Session(backend, &linear.builder, 1).plan().repacked_weight_bytes;
    };
    EXPECT_EQ(0u, repacked(CpuInRows(), kInRows, false));
    const uint64_t one_copy = repacked(CpuBackend(), kInRows, false);
    EXPECT_GT(one_copy, 0u);
    EXPECT_EQ(one_copy, repacked(CpuInRows(), {}, false));  // no device reads them there
    EXPECT_EQ(one_copy, repacked(CpuInRows(), kInRows, true));
  }
}

INSTANTIATE_TEST_SUITE_P(InRows, LinearTest, testing::ValuesIn(CpusInRows()),
                         [](const auto& i) { return i.param.name; });
INSTANTIATE_TEST_SUITE_P(Backends, LinearTest, testing::ValuesIn(BackendsAndStaging()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance

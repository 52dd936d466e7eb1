// Matmuls with products in f16 (kernels/vulkan/shaders/gemm_half.comp): the bound of their error
// (docs/decisions/0023-products-in-f16.md), what it is on ordinary inputs, the weights that have
// them, and their counts against those of the shader.
#include <cmath>
#include <cstring>
#include <string>

#include "backends.h"
#include "cases.h"
#include "kernels/vulkan/count/dispatch_work.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/traits.h"
#include "program_builder.h"
#include "tests/support/counting_device.h"

namespace arn::conformance {
namespace {

using vulkan::GemmVariantOf;
using vulkan::Mode;

constexpr uint32_t kMaxRows = 70, kRows = 101;
// One rounding to f16: to nearest, or down on devices that truncate.
constexpr double kUnit = 1.0 / 1024;

// A matmul, with inputs and weights of magnitudes that differ by column, row and block.
struct HalfMatmul {
  HalfMatmul(DType dtype, uint32_t cols, bool is_wild) : builder(2, kMaxRows, 128) {
    std::mt19937 rng(31);
    matrix = RandomMatrix(dtype, kRows, cols, true, &rng);
    if (is_wild) Spread(&rng);
    in = builder.AddValue(cols);
    out = builder.AddValue(kRows);
    LinearParams params;
    params.weight = builder.AddMatrix(matrix, TargetLayouts(dtype)[0]);
    builder.AddStep(params, in, out);
    x = RandomFloats(size_t{kMaxRows} * cols, 1.0f, &rng);
    for (size_t i = 0; is_wild && i < x.size(); ++i) {
      const auto row = static_cast<int>(i / cols);
      const int of_row = 2 * (row - 35), of_element = static_cast<int>(rng() % 25) - 12;
      x[i] = std::ldexp(x[i], of_row + of_element);
    }
  }

  // Multiplies weights by powers of two, where they stay normal numbers.
  void Spread(std::mt19937* rng) {
    const uint32_t shift = matrix.dtype == DType::kF16 ? 10 : 7;
    const uint32_t mask = matrix.dtype == DType::kF16 ? 31 : 255;
    for (size_t i = 0; i < matrix.exact.size(); ++i) {
      uint16_t bits;
      std::memcpy(&bits, matrix.values.data() + 2 * i, sizeof bits);
      const int by = static_cast<int>((*rng)() % 24) - 8;
      const int exponent = static_cast<int>(bits >> shift & mask), moved = exponent + by;
      if (exponent == 0 || moved < 1 || moved >= static_cast<int>(mask)) continue;
      bits = static_cast<uint16_t>(bits + (moved - exponent) * (1 << shift));
      std::memcpy(matrix.values.data() + 2 * i, &bits, sizeof bits);
      matrix.exact[i] = std::ldexp(matrix.exact[i], by);
    }
  }

  std::vector<float> Run(Session* session, uint32_t rows) {
    std::mt19937 rng(32);
    std::memcpy(session->ValueData(in), x.data(), size_t{rows} * matrix.cols * sizeof(float));
    Batch batch(session->program(), {{0, rows}}, &rng);
    EXPECT_EQ(session->Run(batch.Args()), Status::kOk) << session->message();
    const float* found = session->ValueData(out);
    return {found, found + size_t{rows} * kRows};
  }

  ProgramBuilder builder;
  Matrix matrix;
  ValueId in = kNoValue, out = kNoValue;
  std::vector<float> x;
};

// An output, and the most that it may be off by.
struct Expected {
  double value = 0, bound = 0;
};
Expected ExpectedOf(const HalfMatmul& m, uint32_t row, uint32_t out) {
  const float* x = m.x.data() + size_t{row} * m.matrix.cols;
  const double* w = m.matrix.exact.data() + size_t{out} * m.matrix.cols;
  Expected e;
  double sizes = 0;
  for (uint32_t first = 0; first < m.matrix.cols; first += vulkan::kHalfBlock) {
    const uint32_t end = std::min(first + vulkan::kHalfBlock, m.matrix.cols);
    double most_x = 0, most_w = 0;
    for (uint32_t c = first; c < end; ++c) {
      const double value = static_cast<double>(x[c]);
      e.value += value * w[c];
      sizes += std::fabs(value * w[c]);
      most_x = std::max(most_x, std::fabs(value));
      most_w = std::max(most_w, std::fabs(w[c]));
    }
    e.bound += 1.6e-5 * vulkan::kHalfBlock * most_x * most_w;
  }
  e.value += static_cast<double>(m.matrix.bias[out]);
  e.bound += 18 * kUnit * sizes + 1e-6 * std::fabs(e.value) + 1e-37;
  return e;
}

bool HasHalf(vulkan::Traits* traits) {
  vulkan::Device device;
  Diag diag;
  EXPECT_EQ(Status::kOk, device.Open(vulkan::DeviceChoice(), &diag)) << diag.text();
  vulkan::SetTraits(vulkan::GpuTraitsOf(device), traits);
  device.Close();
  return traits->matmuls.has_half;
}

class VulkanHalfTest : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    if (const char* problem = NoDevice(backend())) GTEST_SKIP() << problem;
    if (!HasHalf(&traits_)) GTEST_SKIP() << "the device has no f16 arithmetic";
  }
  const Backend* backend() const { return vulkan::VariantBackend(GetParam()); }

  vulkan::Traits traits_;
};

TEST_P(VulkanHalfTest, Error_IsWithinItsBoundWhateverTheMagnitudes) {
  for (const DType dtype : {DType::kF16, DType::kBf16}) {
    for (const uint32_t cols : {33u, 460u}) {
      HalfMatmul matmul(dtype, cols, true);
      Session session(backend(), &matmul.builder, 1);
      for (const uint32_t rows : {9u, kMaxRows}) {
        SCOPED_TRACE(testing::Message()
                     << DTypeName(dtype) << ", " << cols << " columns, " << rows);
        const std::vector<float> found = matmul.Run(&session, rows);
        for (uint32_t i = 0; i < rows * kRows; ++i) {
          const Expected e = ExpectedOf(matmul, i / kRows, i % kRows);
          ASSERT_TRUE(std::fabs(static_cast<double>(found[i]) - e.value) <= e.bound)
              << "row " << i / kRows << ", output " << i % kRows << ": " << found[i]
              << ", expected " << e.value << " within " << e.bound;
        }
      }
    }
  }
}

// Inputs of one magnitude: roundings cancel, far from the bound.
TEST_P(VulkanHalfTest, OrdinaryInputs_AreOffByLessThanAThousandth) {
  for (const DType dtype : {DType::kF16, DType::kBf16}) {
    HalfMatmul matmul(dtype, 1280, false);
    Session session(backend(), &matmul.builder, 1);
    const std::string used = backend()->device->kernel_names(session.state());
    EXPECT_NE(std::string::npos, used.find("gemm-half")) << used;
    const std::vector<float> found = matmul.Run(&session, kMaxRows);
    double errors = 0, squares = 0;
    for (uint32_t i = 0; i < found.size(); ++i) {
      const double value = ExpectedOf(matmul, i / kRows, i % kRows).value;
      const double off = static_cast<double>(found[i]) - value;
      errors += off * off;
      squares += value * value;
    }
    const double error = std::sqrt(errors / squares);
    RecordProperty(DTypeName(dtype), std::to_string(error));
    EXPECT_LT(error, 1e-3) << DTypeName(dtype);
    EXPECT_GT(error, 1e-5) << DTypeName(dtype) << ": not in f16";
  }
}

TEST_P(VulkanHalfTest, Row_HasTheSameBitsWhateverElseIsInTheRun) {
  HalfMatmul matmul(DType::kF16, 460, true);
  Session session(backend(), &matmul.builder, 1);
  const std::vector<float> all = matmul.Run(&session, kMaxRows), few = matmul.Run(&session, 9);
  EXPECT_EQ(0, std::memcmp(all.data(), few.data(), few.size() * sizeof(float)));
}

// Weights of f32 and integers, and runs of few rows, have no such kernel.
TEST_P(VulkanHalfTest, IsForHalfPrecisionWeightsOfManyRows) {
  const auto is_usable = [&](Mode mode, DType dtype) {
    return IsUsable(traits_.matmuls, mode, dtype, GetParam());
  };
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBf16, DType::kInt8, DType::kInt4}) {
    const bool has_half = dtype == DType::kF16 || dtype == DType::kBf16;
    EXPECT_EQ(has_half, is_usable(Mode::kMany, dtype)) << DTypeName(dtype);
    EXPECT_FALSE(is_usable(Mode::kOne, dtype) || is_usable(Mode::kFew, dtype));
  }
  traits_.matmuls.has_half = false;
  EXPECT_FALSE(is_usable(Mode::kMany, DType::kF16));
}

#ifndef ARENITE_NO_COUNTS
// Adds up the counted work of the shader in a run of `rows` rows.
class HalfWork final : public vulkan::DispatchSink {
 public:
  explicit HalfWork(uint32_t rows) : rows_(rows) {}
  Status BeginStep(uint32_t) override { return Status::kOk; }
  Status BeginEdits(uint32_t) override { return Status::kOk; }
  Status BeginChoice(uint32_t* n_dispatches) override {
    *n_dispatches = 0;
    return Status::kOk;
  }
  Status Add(const vulkan::Dispatch& d, Diag*) override {
    if (d.shader != vulkan::Shader::kGemmHalf) return Status::kOk;
    vulkan::WorkContext context;
    context.run.n_rows = rows_;
    work = WorkOf(d, rows_, context);
    ++n;
    return Status::kOk;
  }
  KernelWork work;
  uint32_t n = 0;

 private:
  const uint32_t rows_;
};

TEST_P(VulkanHalfTest, Counts_AreWhatTheShaderDoes) {
  for (const uint32_t cols : {33u, 460u}) {
    SCOPED_TRACE(cols);
    HalfMatmul matmul(DType::kF16, cols, false);
    test::CountingDevice counting;
    Session session(backend(), &matmul.builder, 1);
    for (auto& of_mode : traits_.choices.of) {
      for (uint8_t& choice : of_mode) choice = static_cast<uint8_t>(GetParam());
    }
    counting.Reset();
    matmul.Run(&session, kMaxRows);
    HalfWork counted(kMaxRows);
    Diag diag;
    const vulkan::Workspace nowhere = {};
    ASSERT_EQ(Status::kOk,
              vulkan::Lowering(session.program(), {}, nowhere, traits_).Run(&counted, &diag))
        << diag.text();
    ASSERT_EQ(1u, counted.n);
    const test::ShaderCounts found = counting.Of(vulkan::Shader::kGemmHalf);
    EXPECT_LT(0u, found.half_fmas);
    EXPECT_EQ(counted.work.half_products, found.half_fmas);
    EXPECT_EQ(counted.work.float_products, found.vector_fmas);
    EXPECT_EQ(counted.work.loaded, found.loaded);
    EXPECT_EQ(counted.work.stored, found.stored);
    EXPECT_EQ(0u, found.dots);
  }
}
#endif

std::vector<uint32_t> HalfVariants() {
  std::vector<uint32_t> variants;
  for (uint32_t i = 0; i < vulkan::kGemmVariants; ++i) {
    if (GemmVariantOf(i).is_half) variants.push_back(i);
  }
  return variants;
}
INSTANTIATE_TEST_SUITE_P(Variants, VulkanHalfTest, testing::ValuesIn(HalfVariants()),
                         [](const auto& i) { return std::to_string(i.param); });

}  // namespace
}  // namespace arn::conformance

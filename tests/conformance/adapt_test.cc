// kAdapt against a formula in double, and the bits of its rows: a row's depend only on its own
// adapters, whatever else is in the run.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends.h"
#include "cases.h"
#include "kernels/cpu/backend_cpu.h"
#include "platform/base/arith.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kRows = 61;

// Rows of the changed matrix of a block, and its ranks.
struct BlockShape {
  uint32_t first_row, n_rows, first_rank, rank;
};

// A random change of a matrix [rows, cols].
class RandomChange {
 public:
  RandomChange(DType dtype, uint32_t cols, uint32_t rank, const std::vector<BlockShape>& blocks,
               std::mt19937* rng)
      : dtype_(dtype), cols_(cols), shapes_(blocks) {
    uint64_t bytes = LowRankBytes(dtype, rank, cols);
    for (const BlockShape& b : blocks) bytes += LowRankBytes(dtype, b.n_rows, b.rank);
    panels_ = AlignedBytes(bytes);
    std::memset(panels_.data(), 0, bytes);
    std::byte* at = panels_.data();
    const auto fill = [&](uint32_t outputs, uint32_t inputs) {
      std::vector<double> exact(size_t{outputs} * inputs);
      const std::vector<float> values = RandomFloats(exact.size(), 1.0f, rng);
      for (uint32_t r = 0; r < outputs; ++r) {
        for (uint32_t c = 0; c < inputs; ++c) {
          const size_t i =
              (size_t{r / kLowRankColumns} * inputs + c) * kLowRankColumns + r % kLowRankColumns;
          const float value = values[size_t{r} * inputs + c];
          const uint16_t half = F16FromF32(value);
          const bool is_half = dtype == DType::kF16;
          exact[size_t{r} * inputs + c] = static_cast<double>(is_half ? F32FromF16(half) : value);
          if (is_half) {
            std::memcpy(at + i * sizeof half, &half, sizeof half);
          } else {
            std::memcpy(at + i * sizeof value, &value, sizeof value);
          }
        }
      }
      at += LowRankBytes(dtype, outputs, inputs);
      return exact;
    };
    change_.dtype = dtype;
    change_.rank = rank;
    change_.cols = cols;
    change_.bytes = bytes;
    change_.a = at;
    a_ = fill(rank, cols);
    for (const BlockShape& b : blocks) {
      blocks_.push_back({b.first_row, b.n_rows, b.first_rank, b.rank, at});
      b_.push_back(fill(b.n_rows, b.rank));
    }
    change_.blocks = {blocks_.data(), blocks_.size()};
    adapter_.changes = {&change_, 1};
    adapter_.change_of = {&change_of_, 1};
    adapter_.max_rank = rank;
  }
  RandomChange(const RandomChange&) = delete;
  RandomChange& operator=(const RandomChange&) = delete;

  const Adapter* adapter() const { return &adapter_; }
  // Adds scale B A x to out, and the sums of absolute products to `size`.
  void AddTo(double scale, const float* x, double* out, double* size) const {
    std::vector<double> y(change_.rank), of(change_.rank);
    for (uint32_t k = 0; k < change_.rank; ++k) {
      for (uint32_t c = 0; c < cols_; ++c) {
        const double product = a_[size_t{k} * cols_ + c] * static_cast<double>(x[c]);
        y[k] += scale * product;
        of[k] += std::abs(scale * product);
      }
    }
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const BlockShape& b = shapes_[i];
      for (uint32_t r = 0; r < b.n_rows; ++r) {
        for (uint32_t k = 0; k < b.rank; ++k) {
          const double w = b_[i][size_t{r} * b.rank + k];
          out[b.first_row + r] += w * y[b.first_rank + k];
          size[b.first_row + r] += std::abs(w) * of[b.first_rank + k];
        }
      }
    }
  }

 private:
  const DType dtype_;
  const uint32_t cols_;
  const std::vector<BlockShape> shapes_;
  AlignedBytes panels_;
  std::vector<double> a_;
  std::vector<std::vector<double>> b_;
  std::vector<LowRankBlock> blocks_;
  LowRank change_;
  uint32_t change_of_ = 1;
  Adapter adapter_;
};

struct AdaptShape {
  uint32_t rows, cols, rank;
  std::vector<BlockShape> blocks;
};

// One block and several; of whole panels and not; ranks shared by blocks, and rows left out.
std::vector<AdaptShape> Shapes() {
  return {
      {1, 1, 1, {{0, 1, 0, 1}}},
      {17, 33, 5, {{0, 17, 0, 5}}},
      {172, 172, 16, {{0, 172, 0, 16}}},
      {344, 172, 7, {{0, 100, 0, 3}, {113, 200, 3, 4}}},
      {96, 460, 48, {{0, 64, 0, 16}, {64, 16, 16, 16}, {80, 16, 32, 16}}},
      {64, 1280, 20, {{16, 48, 0, 20}}},
      {64, 70, 9, {{0, 32, 0, 9}, {32, 32, 0, 9}}},
      {1021, 65, 70, {{0, 1000, 0, 70}}},
  };
}

class AdaptTest : public BackendTest {
 protected:
  static bool IsVulkan() { return GetParam().name.rfind("Vulkan", 0) == 0; }
  static bool IsCpu() { return GetParam().backend == CpuBackend(); }

  std::mt19937 rng_{41};
};

// A kLinear and the kAdapt behind it.
struct AdaptedLinear {
  AdaptedLinear(const AdaptShape& shape, bool accumulates, uint32_t n_threads,
                const BackendCase& backend, std::mt19937* generator)
      : rng(generator), builder(2, kRows, 64) {
    const Matrix w = RandomMatrix(DType::kF16, shape.rows, shape.cols, true, rng);
    in = builder.AddValue(shape.cols);
    out = builder.AddValue(shape.rows);
    LinearParams linear;
    linear.weight = builder.AddMatrix(w, {});
    linear.accumulate = accumulates;
    builder.AddStep(linear, in, out);
    AdaptParams adapt;
    adapt.weight = linear.weight;
    builder.AddStep(adapt, in, out);
    builder.SetMaxRank(shape.rank);
    session = std::make_unique<Session>(backend.backend, &builder, n_threads);
  }

  // Runs parts of so many rows with these adapters, on x; out begins as ones.
  std::vector<float> Run(const std::vector<float>& x, const std::vector<uint32_t>& n_rows,
                         const std::vector<std::vector<ActiveAdapter>>& adapters) {
    std::vector<Batch::Part> parts;
    uint32_t n = 0;
    for (const uint32_t rows : n_rows) parts.push_back({0, rows}), n += rows;
    Batch batch(session->program(), parts, rng);
    for (size_t s = 0; s < adapters.size(); ++s) {
      batch.sequences[s].adapters = {adapters[s].data(), adapters[s].size()};
    }
    const size_t size = size_t{n} * session->program().values[out].width;
    std::memcpy(session->ValueData(in), x.data(), x.size() * sizeof(float));
    std::fill_n(session->ValueData(out), size, 1.0f);
    EXPECT_EQ(Status::kOk, session->Run(batch.Args())) << session->message();
    return {session->ValueData(out), session->ValueData(out) + size};
  }

  std::mt19937* rng;
  ProgramBuilder builder;
  ValueId in, out;
  std::unique_ptr<Session> session;
};

TEST_P(AdaptTest, EachShape_EqualsTheFormula) {
  if (IsVulkan()) GTEST_SKIP() << "refuses the step in its plan";
  for (const AdaptShape& shape : Shapes()) {
    for (const DType dtype : {DType::kF16, DType::kF32}) {
      for (const bool accumulates : {false, true}) {
        SCOPED_TRACE(testing::Message() << shape.rows << " x " << shape.cols << ", rank "
                                        << shape.rank << ", " << DTypeName(dtype));
        const RandomChange one(dtype, shape.cols, shape.rank, shape.blocks, &rng_);
        const RandomChange two(dtype, shape.cols, shape.rank, shape.blocks, &rng_);
        AdaptedLinear step(shape, accumulates, GetParam().n_threads, GetParam(), &rng_);
        const std::vector<float> x = RandomFloats(size_t{kRows} * shape.cols, 1.0f, &rng_);
        const std::vector<float> plain = step.Run(x, {kRows}, {{}});
        const std::vector<std::vector<ActiveAdapter>> uses = {
            {{one.adapter(), 1.0f}}, {{one.adapter(), -0.5f}, {two.adapter(), 2.0f}}};
        for (const std::vector<ActiveAdapter>& use : uses) {
          const std::vector<float> found = step.Run(x, {kRows}, {use});
          for (uint32_t row = 0; row < kRows; ++row) {
            std::vector<double> expected(shape.rows), size(shape.rows);
            for (uint32_t i = 0; i < shape.rows; ++i) {
              expected[i] = static_cast<double>(plain[size_t{row} * shape.rows + i]);
              size[i] = std::abs(expected[i]);
            }
            for (const ActiveAdapter& active : use) {
              (active.adapter == one.adapter() ? one : two)
                  .AddTo(static_cast<double>(active.scale), &x[size_t{row} * shape.cols],
                         expected.data(), size.data());
            }
            for (uint32_t i = 0; i < shape.rows; ++i) {
              ASSERT_NEAR(expected[i], static_cast<double>(found[size_t{row} * shape.rows + i]),
                          1e-6 * size[i] + 1e-6)
                  << "row " << row << ", output " << i;
            }
          }
        }
      }
    }
  }
}

TEST_P(AdaptTest, RowAmongOthers_HasTheBitsOfItsOwnRun) {
  if (!IsCpu()) GTEST_SKIP() << "the reference runs row by row in any case";
  for (const AdaptShape& shape : Shapes()) {
    const RandomChange one(DType::kF16, shape.cols, shape.rank, shape.blocks, &rng_);
    const RandomChange two(DType::kF16, shape.cols, shape.rank, shape.blocks, &rng_);
    const std::vector<std::vector<ActiveAdapter>> uses = {
        {{one.adapter(), 1.0f}},
        {},
        {{two.adapter(), 0.7f}},
        {{one.adapter(), 0.3f}, {two.adapter(), 1.0f}},
        {{one.adapter(), 1.0f}}};
    const std::vector<float> x = RandomFloats(size_t{kRows} * shape.cols, 1.0f, &rng_);
    const auto seed = rng_;
    std::mt19937 same = seed;
    AdaptedLinear alone(shape, false, 1, GetParam(), &same);
    for (const uint32_t n_threads : {1u, 3u}) {
      for (const std::vector<uint32_t>& n_rows : std::vector<std::vector<uint32_t>>{
               {1, 1, 1, 1, 1}, {1, 2, 3, 5, 40}, {13, 1, 27, 9, 11}}) {
        same = seed;
        AdaptedLinear together(shape, false, n_threads, GetParam(), &same);
        const std::vector<float> found = together.Run(x, n_rows, uses);
        uint32_t row = 0;
        for (size_t s = 0; s < uses.size(); ++s) {
          for (uint32_t i = 0; i < n_rows[s]; ++i, ++row) {
            const std::vector<float> own(
                x.begin() + static_cast<ptrdiff_t>(size_t{row} * shape.cols),
                x.begin() + static_cast<ptrdiff_t>((size_t{row} + 1) * shape.cols));
            const std::vector<float> expected = alone.Run(own, {1}, {uses[s]});
            ASSERT_EQ(0, std::memcmp(expected.data(), &found[size_t{row} * shape.rows],
                                     expected.size() * sizeof(float)))
                << shape.rows << " x " << shape.cols << ", row " << row << ", " << n_threads
                << " threads";
          }
        }
      }
    }
  }
}

TEST_P(AdaptTest, WithoutRank_IsRefused) {
  ProgramBuilder builder(2, kRows, 64);
  const ValueId in = builder.AddValue(8), out = builder.AddValue(4);
  AdaptParams adapt;
  adapt.weight = builder.AddMatrix(RandomMatrix(DType::kF16, 4, 8, false, &rng_), {});
  builder.AddStep(adapt, in, out);
  std::string message;
  EXPECT_FALSE(CanLoad(GetParam().backend, &builder, &message));
  EXPECT_NE(std::string::npos, message.find("adapt")) << message;
}

INSTANTIATE_TEST_SUITE_P(Backends, AdaptTest, testing::ValuesIn(AllBackends()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance

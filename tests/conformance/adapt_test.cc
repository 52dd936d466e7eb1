// kAdapt against a formula in double, and the bits of its rows: a row's depend only on its own
// adapters, whatever else is in the run.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends.h"
#include "cases.h"
#include "kernels/contract/adapter.h"
#include "kernels/cpu/backend_cpu.h"
#include "kernels/pack/low_rank.h"
#include "kernels/reference/ops.h"
#include "platform/base/arith.h"
#include "program_builder.h"
#include "tests/support/row_bits.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kRows = 61;
constexpr uint32_t kCheckedRows = 3;  // one of so many, at each place of a tile

// Rows of the changed matrix of a block, and its ranks.
struct BlockShape {
  uint32_t first_row, n_rows, first_rank, rank;
};

// Rounds a row to 8 bits, as integer matmuls do.
std::vector<double> RoundedInput(const float* x, uint32_t n) {
  std::vector<int8_t> values(n);
  const reference::QuantizedRow row =
      reference::QuantizeRow(x, n, /*is_symmetric=*/false, values.data());
  std::vector<double> rounded(n);
  for (uint32_t i = 0; i < n; ++i) {
    rounded[i] = static_cast<double>(values[i] - row.zero_point) * static_cast<double>(row.scale);
  }
  return rounded;
}

// Rounds the ranks of a block to 8 bits, with a scale for each kRankChunk of them. Returns the
// largest step.
double RoundRanks(std::vector<double>* ranks) {
  double largest_step = 0.0;
  for (size_t first = 0; first < ranks->size(); first += kRankChunk) {
    const size_t end = std::min<size_t>(first + kRankChunk, ranks->size());
    double largest = 0.0;
    for (size_t k = first; k < end; ++k) largest = std::max(largest, std::abs((*ranks)[k]));
    const double step = largest / 127.0;
    if (step == 0.0) continue;
    for (size_t k = first; k < end; ++k) {
      (*ranks)[k] = std::nearbyint((*ranks)[k] / step) * step;
    }
    largest_step = std::max(largest_step, step);
  }
  return largest_step;
}

// The product of a row: of each output, its sum, the sum of absolute products, and, in int8, how
// far it moves if one of A's products is rounded the other way.
struct RowSums {
  RowSums(const float* plain, uint32_t n) : out(plain, plain + n), step(n) {
    for (const double value : out) size.push_back(std::abs(value));
  }
  std::vector<double> out, size, step;
};

// A random change of a matrix [rows, cols].
class RandomChange {
 public:
  RandomChange(DType dtype, uint32_t cols, uint32_t rank, const std::vector<BlockShape>& blocks,
               std::mt19937* rng)
      : dtype_(dtype), cols_(cols), shapes_(blocks) {
    uint64_t bytes = LowRankABytes(dtype, rank, cols);
    for (const BlockShape& b : blocks) bytes += LowRankBBytes(dtype, b.n_rows, b.rank);
    packed_ = AlignedBytes(bytes);
    std::byte* at = packed_.data();
    change_.dtype = dtype;
    change_.rank = rank;
    change_.cols = cols;
    change_.bytes = bytes;
    change_.a = at;
    std::vector<float> values = RandomFloats(size_t{rank} * cols, 1.0f, rng);
    PackLowRankA(dtype, values.data(), rank, cols, at);
    a_ = Stored(LowRankA(change_, 1.0f, nullptr, 0, nullptr), rank);
    at += LowRankABytes(dtype, rank, cols);
    for (const BlockShape& b : blocks) {
      values = RandomFloats(size_t{b.n_rows} * b.rank, 1.0f, rng);
      PackLowRankB(dtype, values.data(), b.n_rows, b.rank, at);
      blocks_.push_back({b.first_row, b.n_rows, b.first_rank, b.rank, at});
      // Rows that nothing reads: the arguments hold places in them.
      std::vector<float> ranks(rank), outputs(size_t{b.first_row} + b.n_rows);
      b_.push_back(
          Stored(LowRankB(change_, blocks_.back(), ranks.data(), 0, outputs.data(), 0), b.n_rows));
      at += LowRankBBytes(dtype, b.n_rows, b.rank);
    }
    change_.blocks = {blocks_.data(), blocks_.size()};
    adapter_.changes = {&change_, 1};
    adapter_.change_of = {&change_of_, 1};
    adapter_.max_rank = rank;
  }
  RandomChange(const RandomChange&) = delete;
  RandomChange& operator=(const RandomChange&) = delete;

  const Adapter* adapter() const { return &adapter_; }
  // Adds scale B A x.
  void AddTo(double scale, const float* x, RowSums* sums, bool rounds_input = true) const {
    const std::vector<double> input = IsIntegerLowRank(dtype_) && rounds_input
                                          ? RoundedInput(x, cols_)
                                          : std::vector<double>(x, x + cols_);
    std::vector<double> y(change_.rank), of(change_.rank);
    for (uint32_t k = 0; k < change_.rank; ++k) {
      for (uint32_t c = 0; c < cols_; ++c) {
        const double product = a_[size_t{k} * cols_ + c] * input[c];
        y[k] += scale * product;
        of[k] += std::abs(scale * product);
      }
    }
    for (size_t i = 0; i < shapes_.size(); ++i) {
      const BlockShape& b = shapes_[i];
      std::vector<double> ranks(y.begin() + b.first_rank, y.begin() + b.first_rank + b.rank);
      const double step = IsIntegerLowRank(dtype_) ? RoundRanks(&ranks) : 0.0;
      for (uint32_t r = 0; r < b.n_rows; ++r) {
        for (uint32_t k = 0; k < b.rank; ++k) {
          const double w = b_[i][size_t{r} * b.rank + k];
          sums->out[b.first_row + r] += w * ranks[k];
          sums->size[b.first_row + r] += std::abs(w) * of[b.first_rank + k];
          sums->step[b.first_row + r] = std::max(sums->step[b.first_row + r], std::abs(w) * step);
        }
      }
    }
  }

 private:
  // Reads a matrix back, row-major.
  static std::vector<double> Stored(const LowRankArgs& args, uint32_t outputs) {
    std::vector<double> values;
    for (uint32_t r = 0; r < outputs; ++r) {
      const uint32_t column = r % kLowRankColumns;
      const std::byte* panel =
          args.panels + r / kLowRankColumns * LowRankPanelBytes(args.dtype, args.inputs);
      for (uint32_t k = 0; k < args.inputs; ++k) {
        const size_t at = size_t{k} * kLowRankColumns + column;
        if (IsIntegerLowRank(args.dtype)) {
          const bool is_half = args.dtype == DType::kInt4;
          auto bits = static_cast<uint8_t>(
              panel[(size_t{k / (is_half ? 8 : 4)} * kLowRankColumns + column) * 4 + k % 4]);
          if (is_half) bits = static_cast<uint8_t>(k % 8 < 4 ? bits << 4 : bits & 0xF0);
          const float scale = args.scales[args.accumulates ? r / kLowRankColumns : r];
          values.push_back(static_cast<double>(static_cast<int8_t>(bits)) *
                           static_cast<double>(scale));
        } else if (args.dtype == DType::kF16) {
          values.push_back(
              static_cast<double>(F32FromF16(reinterpret_cast<const uint16_t*>(panel)[at])));
        } else {
          values.push_back(static_cast<double>(reinterpret_cast<const float*>(panel)[at]));
        }
      }
    }
    return values;
  }

  const DType dtype_;
  const uint32_t cols_;
  const std::vector<BlockShape> shapes_;
  AlignedBytes packed_;
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
      {70, 40, 300, {{0, 70, 2, 295}}},
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
  AdaptedLinear(DType dtype, const AdaptShape& shape, bool accumulates, uint32_t n_threads,
                const BackendCase& backend, std::mt19937* generator, bool splits_rows = false)
      : rng(generator), builder(2, kRows, 64) {
    const Matrix w = RandomMatrix(dtype, shape.rows, shape.cols, true, rng);
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
    if (splits_rows) builder.SplitRows();
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

// The types of changes, and of the matrices that they are of.
struct AdaptTypes {
  DType change, matrix;
};
constexpr AdaptTypes kAdaptTypes[] = {{DType::kF16, DType::kF16},   {DType::kF32, DType::kF16},
                                      {DType::kF16, DType::kInt8},  {DType::kInt8, DType::kInt8},
                                      {DType::kInt8, DType::kInt4}, {DType::kInt4, DType::kInt8},
                                      {DType::kInt4, DType::kInt4}};

TEST_P(AdaptTest, EachShape_EqualsTheFormula) {
  if (IsVulkan()) GTEST_SKIP() << "refuses the step in its plan";
  uint32_t n_moved = 0, n_rows = 0;  // rows of A's that are rounded the other way
  bool accumulates = false;
  for (const AdaptShape& shape : Shapes()) {
    for (const AdaptTypes& types : kAdaptTypes) {
      accumulates = !accumulates;
      SCOPED_TRACE(testing::Message()
                   << shape.rows << " x " << shape.cols << ", rank " << shape.rank << ", "
                   << DTypeName(types.change) << " of " << DTypeName(types.matrix));
      const RandomChange one(types.change, shape.cols, shape.rank, shape.blocks, &rng_);
      const RandomChange two(types.change, shape.cols, shape.rank, shape.blocks, &rng_);
      AdaptedLinear step(types.matrix, shape, accumulates, GetParam().n_threads, GetParam(), &rng_);
      const std::vector<float> x = RandomFloats(size_t{kRows} * shape.cols, 1.0f, &rng_);
      const std::vector<float> plain = step.Run(x, {kRows}, {{}});
      const std::vector<std::vector<ActiveAdapter>> uses = {
          {{one.adapter(), 1.0f}}, {{one.adapter(), -0.5f}, {two.adapter(), 2.0f}}};
      for (const std::vector<ActiveAdapter>& use : uses) {
        const std::vector<float> found = step.Run(x, {kRows}, {use});
        for (uint32_t row = 0; row < kRows; row += kCheckedRows) {
          RowSums sums(&plain[size_t{row} * shape.rows], shape.rows);
          for (const ActiveAdapter& active : use) {
            (active.adapter == one.adapter() ? one : two)
                .AddTo(static_cast<double>(active.scale), &x[size_t{row} * shape.cols], &sums);
          }
          bool is_moved = false;
          for (uint32_t i = 0; i < shape.rows; ++i) {
            const auto is = static_cast<double>(found[size_t{row} * shape.rows + i]);
            const double rounding = 1e-6 * sums.size[i] + 1e-6;
            ASSERT_NEAR(sums.out[i], is, rounding + sums.step[i])
                << "row " << row << ", output " << i;
            is_moved = is_moved || std::abs(sums.out[i] - is) > rounding;
          }
          n_moved += is_moved ? 1 : 0;
          ++n_rows;
        }
      }
    }
  }
  EXPECT_LE(n_moved * 100, n_rows) << "of " << n_rows;
}

// Twice rounded rows are nearly exact, and so is what A makes of them.
TEST_P(AdaptTest, IntegersOfSplitRows_EqualTheFormulaOfExactOnes) {
  if (IsVulkan()) GTEST_SKIP() << "refuses the step in its plan";
  const std::vector<uint32_t> n_rows = {1, 20, 40};
  bool is_half = false;
  for (const AdaptShape& shape : Shapes()) {
    is_half = !is_half;
    const DType type = is_half ? DType::kInt4 : DType::kInt8;
    const RandomChange one(type, shape.cols, shape.rank, shape.blocks, &rng_);
    const RandomChange two(DType::kInt8, shape.cols, shape.rank, shape.blocks, &rng_);
    AdaptedLinear step(DType::kInt8, shape, false, GetParam().n_threads, GetParam(), &rng_, true);
    const std::vector<float> x = RandomFloats(size_t{kRows} * shape.cols, 1.0f, &rng_);
    const std::vector<float> plain = step.Run(x, n_rows, {{}, {}, {}});
    for (const bool both : {false, true}) {
      std::vector<ActiveAdapter> use = {{one.adapter(), 0.5f}};
      if (both) use.push_back({two.adapter(), 1.0f});
      const std::vector<float> found = step.Run(x, n_rows, {use, {}, use});
      for (uint32_t row = 0; row < kRows; ++row) {
        RowSums sums(&plain[size_t{row} * shape.rows], shape.rows);
        if (row < 1 || row >= 21) {
          one.AddTo(0.5, &x[size_t{row} * shape.cols], &sums, false);
          if (both) two.AddTo(1.0, &x[size_t{row} * shape.cols], &sums, false);
        }
        for (uint32_t i = 0; i < shape.rows; ++i) {
          ASSERT_NEAR(sums.out[i], static_cast<double>(found[size_t{row} * shape.rows + i]),
                      2e-5 * sums.size[i] + 1e-6 + 3 * sums.step[i])
              << shape.rows << " x " << shape.cols << ", row " << row << ", output " << i;
        }
      }
    }
  }
}

// Sequences of a run, each with its rows and adapters.
struct AdaptedBatch {
  std::vector<uint32_t> n_rows;
  std::vector<std::vector<ActiveAdapter>> uses;
};

// With two changes of a row, without, and of more sequences than share a matmul.
std::vector<AdaptedBatch> Batches(const Adapter* one, const Adapter* two) {
  std::vector<AdaptedBatch> batches;
  for (const bool both : {true, false}) {
    std::vector<std::vector<ActiveAdapter>> uses = {
        {{one, 1.0f}}, {}, {{two, 0.7f}}, {{one, 0.3f}}, {{one, 1.0f}}};
    if (both) uses[3].push_back({two, 1.0f});
    for (const std::vector<uint32_t>& n_rows : std::vector<std::vector<uint32_t>>{
             {1, 1, 1, 1, 1}, {1, 2, 3, 5, 40}, {13, 1, 27, 9, 11}}) {
      batches.push_back({n_rows, uses});
    }
  }
  AdaptedBatch many;
  for (uint32_t i = 0; i < 20; ++i) {
    many.n_rows.push_back(1 + i % 2);
    many.uses.push_back({{i % 3 == 0 ? two : one, 0.1f * static_cast<float>(i)}});
  }
  batches.push_back(many);
  return batches;
}

TEST_P(AdaptTest, RowAmongOthers_HasTheBitsOfItsOwnRun) {
  if (!IsCpu()) GTEST_SKIP() << "the reference runs row by row in any case";
  for (const AdaptTypes& types :
       {AdaptTypes{DType::kF16, DType::kF16}, AdaptTypes{DType::kInt8, DType::kInt8},
        AdaptTypes{DType::kInt4, DType::kInt8}}) {
    if (!test::RowsKeepTheirBits(types.matrix)) continue;
    for (const AdaptShape& shape : Shapes()) {
      const auto& [change, matrix] = types;
      const RandomChange one(change, shape.cols, shape.rank, shape.blocks, &rng_);
      const RandomChange two(change, shape.cols, shape.rank, shape.blocks, &rng_);
      const std::vector<float> x = RandomFloats(size_t{kRows} * shape.cols, 1.0f, &rng_);
      const auto seed = rng_;
      std::mt19937 same = seed;
      AdaptedLinear alone(matrix, shape, false, 1, GetParam(), &same);
      for (const uint32_t n_threads : {1u, 3u}) {
        for (const auto& [n_rows, uses] : Batches(one.adapter(), two.adapter())) {
          same = seed;
          AdaptedLinear together(matrix, shape, false, n_threads, GetParam(), &same);
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
                  << shape.rows << " x " << shape.cols << ", row " << row << " of " << uses.size()
                  << " sequences, " << n_threads << " threads";
            }
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

// What a step does between two looks at RunArgs::cancel: no more than a part of bounded size. The
// flag lies in the output of the step, or an observer sets it, so that the very first part does,
// and the number of parts that follow is known without a clock.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "backends.h"
#include "cases.h"
#include "kernels/cpu/backend_cpu.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

// Weights that a part of a matmul reads at most.
constexpr uint64_t kMaxPartBytes = 256 * 1024;
constexpr uint32_t kContext = 1024;

class CancelTest : public BackendTest {};

std::vector<BackendCase> CpuBackends() {
  std::vector<BackendCase> cases;
  for (const BackendCase& c : HostBackends()) {
    if (c.backend == CpuBackend()) cases.push_back(c);
  }
  return cases;
}

const std::atomic<uint32_t>* FlagAt(float* place) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(float));
  return reinterpret_cast<const std::atomic<uint32_t>*>(place);
}

// Sets a flag when a matmul begins.
struct SetAtMatmul {
  static void OnMatmul(void* user, WeightId, const float*, uint32_t, const float*) {
    static_cast<SetAtMatmul*>(user)->flag = 1;
  }
  MatmulObserver observer() { return {OnMatmul, this}; }
  std::atomic<uint32_t> flag{0};
};

struct WideLinear {
  WideLinear(DType dtype, uint32_t rows, uint32_t cols, uint32_t max_rows, std::mt19937* rng)
      : builder(/*vocab=*/2, max_rows, kContext) {
    const Matrix matrix = RandomMatrix(dtype, rows, cols, /*with_bias=*/false, rng);
    Step step{LinearParams()};
    step.in = in = builder.AddValue(cols);
    step.out = out = builder.AddValue(rows);
    step.Get<LinearParams>().weight = builder.AddMatrix(matrix, TargetLayouts(dtype)[0]);
    builder.AddStep(step);
  }
  ProgramBuilder builder;
  ValueId in, out;
};

TEST_P(CancelTest, SetBeforeAMatmul_NothingOfItRuns) {
  std::mt19937 rng(3);
  for (const DType dtype : WeightTypesOf(GetParam())) {
    WideLinear linear(dtype, 512, 256, 4, &rng);
    Session session(GetParam().backend, &linear.builder, GetParam().n_threads);
    Batch batch(session.program(), {{0, 3}}, &rng);
    const std::vector<float> x = RandomFloats(3 * 256, 1.0f, &rng);
    std::memcpy(session.ValueData(linear.in), x.data(), x.size() * sizeof(float));
    std::fill_n(session.ValueData(linear.out), 3 * 512, 42.0f);
    SetAtMatmul set;
    const MatmulObserver observer = set.observer();
    RunArgs args = batch.Args();
    args.cancel = &set.flag;
    args.observer = &observer;
    EXPECT_EQ(Status::kCancelled, session.Run(args)) << DTypeName(dtype);
    const float* out = session.ValueData(linear.out);
    EXPECT_EQ(3 * 512, std::count(out, out + 3 * 512, 42.0f)) << DTypeName(dtype);
  }
}

// One thread: after the first part, the next one sees what it has written.
TEST_P(CancelTest, SetWithinAMatmul_OnePartIsDone) {
  // More than the parts that each thread gets at least, in f32.
  constexpr uint32_t kRows = 704, kCols = 512, kBatch = 5;
  std::mt19937 rng(5);
  for (const DType dtype : {DType::kF32, DType::kInt8, DType::kInt4}) {
    WideLinear linear(dtype, kRows, kCols, kBatch, &rng);
    Session session(GetParam().backend, &linear.builder, 1);
    Batch batch(session.program(), {{0, kBatch}}, &rng);
    const std::vector<float> x = RandomFloats(kBatch * kCols, 1.0f, &rng);
    std::memcpy(session.ValueData(linear.in), x.data(), x.size() * sizeof(float));
    float* const out = session.ValueData(linear.out);
    std::fill_n(out, size_t{kBatch} * kRows, 0.0f);
    RunArgs args = batch.Args();
    args.cancel = FlagAt(out);
    EXPECT_EQ(Status::kCancelled, session.Run(args)) << DTypeName(dtype);
    const auto n_columns = kRows - static_cast<uint64_t>(std::count(out, out + kRows, 0.0f));
    const double bytes_per_weight = dtype == DType::kF32 ? 4 : dtype == DType::kInt8 ? 1 : 0.5;
    EXPECT_GT(n_columns, 0u) << DTypeName(dtype);
    EXPECT_LE(static_cast<double>(n_columns) * kCols * bytes_per_weight, kMaxPartBytes)
        << DTypeName(dtype);
    // A column is whole in all rows, or untouched.
    for (uint32_t row = 1; row < kBatch; ++row) {
      const float* of_row = out + size_t{row} * kRows;
      EXPECT_EQ(n_columns, kRows - static_cast<uint64_t>(std::count(of_row, of_row + kRows, 0.0f)));
    }
  }
}

// Set before the first matmul of a mixture: no expert runs, and nothing is added.
TEST_P(CancelTest, SetBeforeTheExperts_TheSumIsLeftAlone) {
  constexpr uint32_t kWidth = 64, kFfn = 32, kRows = 9, kExperts = 4;
  std::mt19937 rng(11);
  ProgramBuilder builder(/*vocab=*/2, kRows, kContext);
  Step step{ExpertsParams()};
  auto& params = step.Get<ExpertsParams>();
  params.n_experts = kExperts;
  params.n_chosen = 1;
  step.in = builder.AddValue(kWidth);
  step.out = builder.AddValue(kWidth);
  params.topk = builder.AddValue(2);
  params.gathered = builder.AddValue(kWidth);
  params.gate_up = builder.AddValue(2 * kFfn);
  params.activated = builder.AddValue(kFfn);
  params.expert_out = builder.AddValue(kWidth);
  for (uint32_t i = 0; i < 2 * kExperts; ++i) {
    const Matrix matrix = i % 2 == 0 ? RandomMatrix(DType::kInt8, 2 * kFfn, kWidth, false, &rng)
                                     : RandomMatrix(DType::kInt8, kWidth, kFfn, false, &rng);
    const WeightId id = builder.AddMatrix(matrix, TargetLayouts(DType::kInt8)[0]);
    if (i == 0) params.weight = id;
  }
  builder.AddStep(step);
  Session session(GetParam().backend, &builder, GetParam().n_threads);
  const std::vector<float> x = RandomFloats(kRows * kWidth, 1.0f, &rng);
  std::memcpy(session.ValueData(step.in), x.data(), x.size() * sizeof(float));
  for (uint32_t row = 0; row < kRows; ++row) {
    session.ValueData(params.topk)[2 * row] = static_cast<float>(row % 3);
    session.ValueData(params.topk)[2 * row + 1] = 0.5f;
  }
  std::fill_n(session.ValueData(step.out), kRows * kWidth, 42.0f);
  Batch batch(session.program(), {{0, kRows}}, &rng);
  SetAtMatmul set;
  const MatmulObserver observer = set.observer();
  RunArgs args = batch.Args();
  args.cancel = &set.flag;
  args.observer = &observer;
  EXPECT_EQ(Status::kCancelled, session.Run(args));
  const float* out = session.ValueData(step.out);
  EXPECT_EQ(kRows * kWidth, std::count(out, out + kRows * kWidth, 42.0f));
}

// What the logits of the last token are made of must outlive a head that is cut.
class CancelHeadTest : public CancelTest {
 protected:
  static constexpr uint32_t kVocab = 9001, kWidth = 24;

  CancelHeadTest() : rng_(7), builder_(kVocab, /*max_rows=*/2, /*max_context=*/64) {
    const Matrix matrix = RandomMatrix(DType::kInt8, kVocab, kWidth, /*with_bias=*/false, &rng_);
    Step step{LogitsParams()};
    auto& params = step.Get<LogitsParams>();
    in_ = step.in = builder_.AddValue(kWidth);
    params.weight = builder_.AddMatrix(matrix, TargetLayouts(DType::kInt8)[0]);
    params.norm = builder_.AddVector(RandomFloats(kWidth, 1.0f, &rng_));
    params.epsilon = 1e-5f;
    builder_.AddStep(step);
    session_ = std::make_unique<Session>(GetParam().backend, &builder_, GetParam().n_threads);
    batch_ = std::make_unique<Batch>(session_->program(), std::vector<Batch::Part>{{0, 1}}, &rng_);
  }
  std::vector<float> Read() {
    std::vector<float> logits(kVocab);
    Diag diag;
    EXPECT_EQ(Status::kOk, GetParam().backend->logits->read(
                               session_->state(), {logits.data(), logits.size()}, nullptr, &diag));
    return logits;
  }
  std::vector<float> Stored() {
    const float* logits = session_->Logits();
    return {logits, logits + kVocab};
  }
  void SetInput() {
    const std::vector<float> x = RandomFloats(kWidth, 2.0f, &rng_);
    std::memcpy(session_->ValueData(in_), x.data(), x.size() * sizeof(float));
  }

  std::mt19937 rng_;
  ProgramBuilder builder_;
  ValueId in_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Batch> batch_;
};

TEST_P(CancelHeadTest, SetInAGreedyHead_LeavesTheLogitsOfTheTokenBefore) {
  RunArgs args = batch_->Args();
  int32_t best = -1;
  args.best_id = &best;
  args.leaves_logits = true;
  SetInput();
  ASSERT_EQ(Status::kOk, session_->Run(args)) << session_->message();
  const std::vector<float> before = Read();
  const int32_t best_before = best;

  SetAtMatmul set;
  const MatmulObserver observer = set.observer();
  args.cancel = &set.flag;
  args.observer = &observer;
  SetInput();
  EXPECT_EQ(Status::kCancelled, session_->Run(args));
  EXPECT_EQ(best_before, best);
  EXPECT_EQ(before, Read());
}

TEST_P(CancelHeadTest, SetInAHeadThatMayLoseLogits_TheyCanBeReadAgain) {
  RunArgs args = batch_->Args();
  args.may_lose_logits = true;
  SetInput();
  ASSERT_EQ(Status::kOk, session_->Run(args)) << session_->message();
  const std::vector<float> before = Stored();
  EXPECT_EQ(before, Read());

  SetAtMatmul set;
  const MatmulObserver observer = set.observer();
  args.cancel = &set.flag;
  args.observer = &observer;
  for (int i = 0; i < 2; ++i) {
    set.flag = 0;
    SetInput();
    EXPECT_EQ(Status::kCancelled, session_->Run(args));
    EXPECT_EQ(before, Read());
  }
  std::vector<float> some(kVocab);
  Diag diag;
  EXPECT_EQ(Status::kCancelled,
            GetParam().backend->logits->read(session_->state(), {some.data(), some.size()},
                                             &set.flag, &diag));
  EXPECT_EQ(before, Read());
  args.cancel = nullptr;
  ASSERT_EQ(Status::kOk, session_->Run(args));
  EXPECT_NE(before, Stored());
  EXPECT_EQ(Stored(), Read());
}

TEST_P(CancelHeadTest, MayLoseLogits_WithSeveralRows_IsRefused) {
  Batch batch(session_->program(), {{0, 2}}, &rng_);
  RunArgs args = batch.Args();
  args.logit_rows = LogitRows::kAll;
  args.may_lose_logits = true;
  EXPECT_EQ(Status::kBadArgument, session_->Run(args));
  EXPECT_NE(nullptr, std::strstr(session_->message(), "may_lose_logits with 2 rows"));
}

// Stored logits would be overwritten: that head runs to its end, whose token then exists.
TEST_P(CancelTest, SetInAHeadThatStoresLogits_IsTooLate) {
  constexpr uint32_t kVocab = 300, kWidth = 16;
  std::mt19937 rng(9);
  ProgramBuilder builder(kVocab, /*max_rows=*/2, /*max_context=*/64);
  const Matrix matrix = RandomMatrix(DType::kF32, kVocab, kWidth, /*with_bias=*/false, &rng);
  Step step{LogitsParams()};
  auto& params = step.Get<LogitsParams>();
  step.in = builder.AddValue(kWidth);
  params.weight = builder.AddMatrix(matrix, TargetLayouts(DType::kF32)[0]);
  params.norm = builder.AddVector(RandomFloats(kWidth, 1.0f, &rng));
  params.epsilon = 1e-5f;
  builder.AddStep(step);
  Session session(GetParam().backend, &builder, GetParam().n_threads);
  Batch batch(session.program(), {{0, 1}}, &rng);
  std::memset(session.ValueData(step.in), 0, kWidth * sizeof(float));
  SetAtMatmul set;
  const MatmulObserver observer = set.observer();
  RunArgs args = batch.Args();
  args.cancel = &set.flag;
  args.observer = &observer;
  EXPECT_EQ(Status::kOk, session.Run(args)) << session.message();
  EXPECT_EQ(1u, set.flag);
}

// One thread, one sequence: the first part is the last tile of rows for the first head.
TEST_P(CancelTest, SetWithinAttention_OnePartIsDone) {
  constexpr uint32_t kHeads = 4, kKvHeads = 2, kHeadDim = 16, kRows = 64;
  std::mt19937 rng(11);
  ProgramBuilder builder(/*vocab=*/2, kRows, kContext);
  AttentionKind kind;
  kind.n_heads = kHeads;
  kind.n_kv_heads = kKvHeads;
  kind.head_dim = kHeadDim;
  kind.attention_scale = 0.25f;
  kind.rope = kNoRope;
  Step store{QkvRopeParams()}, attention{AttentionParams()};
  auto& store_params = store.Get<QkvRopeParams>();
  auto& attention_params = attention.Get<AttentionParams>();
  const uint32_t width = (kHeads + 2 * kKvHeads) * kHeadDim;
  store.in = attention.in = builder.AddValue(width);
  store_params.kind = attention_params.kind =
      static_cast<uint16_t>(builder.AddAttention(kind, DType::kF32, 1, 16, kRows / 16 + 1));
  attention.out = builder.AddValue(kHeads * kHeadDim);
  builder.AddStep(store);
  builder.AddStep(attention);
  Session session(GetParam().backend, &builder, 1);
  Batch batch(session.program(), {{0, kRows}}, &rng);
  const std::vector<float> x = RandomFloats(size_t{kRows} * width, 1.0f, &rng);
  std::memcpy(session.ValueData(store.in), x.data(), x.size() * sizeof(float));
  constexpr size_t kOut = size_t{kRows} * kHeads * kHeadDim;
  float* const out = session.ValueData(attention.out);
  std::fill_n(out, kOut, 0.0f);
  RunArgs args = batch.Args();
  args.cancel = FlagAt(out + size_t{kRows - 1} * kHeads * kHeadDim);
  EXPECT_EQ(Status::kCancelled, session.Run(args));
  const auto done = kOut - static_cast<size_t>(std::count(out, out + kOut, 0.0f));
  EXPECT_GT(done, 0u);
  EXPECT_LE(done, kOut / kKvHeads);
}

INSTANTIATE_TEST_SUITE_P(Backends, CancelHeadTest, testing::ValuesIn(CpuBackends()),
                         [](const auto& i) { return i.param.name; });
INSTANTIATE_TEST_SUITE_P(Backends, CancelTest, testing::ValuesIn(CpuBackends()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance

// RunArgs::best_id: the argmax of a fused head against the argmax of the kept logits; and the
// copies of SequenceRows.
#include <cmath>
#include <cstring>
#include <limits>

#include "backends.h"
#include "cases.h"
#include "kernels/reference/backend_reference.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Head {
  Head(const Matrix& w, const WeightLayout& layout, const std::vector<float>& norm, float factor,
       float softcap, uint32_t max_rows = 2)
      : builder(w.rows, max_rows, /*max_context=*/64) {
    Step step{LogitsParams()};
    auto& params = step.Get<LogitsParams>();
    in = step.in = builder.AddValue(w.cols);
    params.weight = builder.AddMatrix(w, layout);
    params.norm = builder.AddVector(norm);
    params.epsilon = 1e-5f;
    params.factor = factor;
    params.softcap = softcap;
    builder.AddStep(step);
  }
  ProgramBuilder builder;
  ValueId in;
};

class BestIdTest : public BackendTest {};

std::vector<BackendCase> ThoseThatFindIt() {
  std::vector<BackendCase> cases;
  for (const BackendCase& c : AllBackends()) {
    if (c.backend->logits != nullptr && c.backend->logits->finds_best) cases.push_back(c);
  }
  return cases;
}

// Compares the argmax with and without kept logits for one row.
void ExpectTheSame(const Backend* backend, const std::vector<float>& x, ValueId in,
                   Session* session, std::mt19937* rng) {
  const uint32_t vocab = session->program().vocab;
  std::memcpy(session->ValueData(in), x.data(), x.size() * sizeof(float));
  Batch batch(session->program(), {{0, 1}}, rng);
  ASSERT_EQ(session->Run(batch.Args()), Status::kOk) << session->message();
  const std::vector<float> logits(session->Logits(), session->Logits() + vocab);

  RunArgs args = batch.Args();
  int32_t best_id = -1;
  args.best_id = &best_id;
  args.leaves_logits = true;
  ASSERT_EQ(session->Run(args), Status::kOk) << session->message();
  EXPECT_EQ(best_id, static_cast<int32_t>(ReferenceLogitsOps()->argmax(logits.data(), vocab)));
  std::vector<float> again(vocab, -1.0f);
  Diag diag;
  ASSERT_EQ(backend->logits->read(session->state(), {again.data(), again.size()}, nullptr, &diag),
            Status::kOk);
  EXPECT_EQ(0, std::memcmp(again.data(), logits.data(), vocab * sizeof(float)));
}

TEST_P(BestIdTest, EveryTypeLayoutAndShape_IsTheLargestLogits) {
  std::mt19937 rng(23);
  const Backend* backend = GetParam().backend;
  std::vector<MatrixShape> shapes(std::begin(kMatrixShapes), std::end(kMatrixShapes));
  shapes.push_back({9001, 24});  // several tasks per thread
  for (const DType dtype : WeightTypesOf(GetParam())) {
    for (const MatrixShape& shape : shapes) {
      for (const WeightLayout& layout : TargetLayouts(dtype)) {
        const Matrix w = RandomMatrix(dtype, shape.rows, shape.cols, shape.rows % 2 == 1, &rng);
        const bool is_capped = shape.rows % 3 == 1;
        Head head(w, layout, RandomFloats(shape.cols, 1.0f, &rng), is_capped ? 0.5f : 1.0f,
                  is_capped ? 3.0f : 0.0f);
        Session session(backend, &head.builder, GetParam().n_threads);
        SCOPED_TRACE(testing::Message() << DTypeName(dtype) << " nr " << int{layout.nr} << ", "
                                        << shape.rows << " x " << shape.cols);
        for (int i = 0; i < 3; ++i) {
          ExpectTheSame(backend, RandomFloats(shape.cols, 2.0f, &rng), head.in, &session, &rng);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// A row that the norm makes zero leaves only the bias.
TEST_P(BestIdTest, TiesZerosAndNan_AreTheLowestIdOfTheLargest) {
  std::mt19937 rng(29);
  constexpr uint32_t kVocab = 4099, kWidth = 8;
  const std::vector<std::vector<std::pair<uint32_t, float>>> others = {
      {},
      {{4098, 1.0f}},
      {{4000, 1.0f}, {1500, 1.0f}, {1499, 1.0f}},
      {{0, -0.0f}, {1, 0.0f}},
      {{7, kNan}, {2000, 3.0f}},
      {{3000, kInf}, {4000, kInf}},
  };
  for (float rest : {0.0f, -0.0f, -1.0f, -kInf, kNan}) {
    for (const auto& set : others) {
      Matrix w = RandomMatrix(DType::kF32, kVocab, kWidth, /*with_bias=*/true, &rng);
      w.bias.assign(kVocab, rest);
      for (const auto& [id, value] : set) w.bias[id] = value;
      Head head(w, {}, std::vector<float>(kWidth, 0.0f), 1.0f, 0.0f);
      Session session(GetParam().backend, &head.builder, GetParam().n_threads);
      SCOPED_TRACE(testing::Message() << rest << ", " << set.size() << " others");
      ExpectTheSame(GetParam().backend, RandomFloats(kWidth, 1.0f, &rng), head.in, &session, &rng);
      if (HasFatalFailure()) return;
    }
  }
}

// Sequences with guesses behind their first row of logits, and one that wants nothing.
TEST_P(BestIdTest, SeveralSequences_CopyTheFirstRowOfEach) {
  std::mt19937 rng(37);
  constexpr uint32_t kVocab = 9001, kWidth = 24, kRows = 9;
  const Matrix w = RandomMatrix(DType::kF32, kVocab, kWidth, true, &rng);
  for (const float softcap : {0.0f, 3.0f}) {
    Head head(w, {}, RandomFloats(kWidth, 1.0f, &rng), 1.0f, softcap, kRows);
    Session session(GetParam().backend, &head.builder, GetParam().n_threads);
    Batch batch(session.program(), {{0, 1}, {0, 4}, {0, 3}, {0, 1}}, &rng);
    batch.sequences[1].more_logit_rows = 2;
    const uint32_t rows_of[] = {0, 1, 4, 5};
    std::vector<std::vector<float>> copies(4, std::vector<float>(kVocab, -1.0f));
    int32_t best[] = {-1, -1, -1, -1};
    for (const uint32_t i : {0u, 1u, 3u}) batch.sequences[i].logits_copy = copies[i].data();
    for (const uint32_t i : {0u, 1u}) batch.sequences[i].best_id = &best[i];
    const std::vector<float> x = RandomFloats(kWidth * kRows, 2.0f, &rng);
    std::memcpy(session.ValueData(head.in), x.data(), x.size() * sizeof(float));
    ASSERT_EQ(session.Run(batch.Args()), Status::kOk) << session.message();
    for (uint32_t i = 0; i < 4; ++i) {
      SCOPED_TRACE(testing::Message() << "sequence " << i << ", softcap " << softcap);
      const float* row = session.Logits() + uint64_t{rows_of[i]} * kVocab;
      const std::vector<float> untouched(kVocab, -1.0f);
      EXPECT_EQ(0, std::memcmp(copies[i].data(), i == 2 ? untouched.data() : row,
                               kVocab * sizeof(float)));
      const auto argmax = static_cast<int32_t>(ReferenceLogitsOps()->argmax(row, kVocab));
      EXPECT_EQ(best[i], i < 2 ? argmax : -1);
    }
  }
}

TEST_P(BestIdTest, NotOneRow_IsRefused) {
  std::mt19937 rng(31);
  const Matrix w = RandomMatrix(DType::kF32, 5, 8, false, &rng);
  Head head(w, {}, std::vector<float>(8, 1.0f), 1.0f, 0.0f);
  Session session(GetParam().backend, &head.builder, GetParam().n_threads);
  Batch batch(session.program(), {{0, 2}}, &rng);
  for (LogitRows rows : {LogitRows::kNone, LogitRows::kAll}) {
    RunArgs args = batch.Args();
    int32_t best_id = -1;
    args.best_id = &best_id;
    args.logit_rows = rows;
    EXPECT_EQ(Status::kBadArgument, session.Run(args));
    EXPECT_EQ(-1, best_id);
  }
  std::vector<float> few(4);
  Diag diag;
  EXPECT_EQ(Status::kBadArgument, GetParam().backend->logits->read(
                                      session.state(), {few.data(), few.size()}, nullptr, &diag));
}

INSTANTIATE_TEST_SUITE_P(Backends, BestIdTest, testing::ValuesIn(ThoseThatFindIt()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance

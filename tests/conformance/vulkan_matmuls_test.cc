// Each Vulkan matmul variant (kernels/vulkan/lower/matmul_variants.h) against the reference: one
// row, a few rows, more than a tile, and experts.
#include "kernels/vulkan/lower/matmul_variants.h"

#include <cstring>
#include <string>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/reference/backend_reference.h"
#include "kernels/vulkan/backend_vulkan.h"
#include "kernels/vulkan/lower/lower.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

// Integer matmuls quantise their input to 8 bits; experts do it twice.
constexpr double kExpertTolerance = 2e-2;
constexpr double kHalfTolerance = 1e-3;  // vulkan_half_test.cc has the bound

// Matmuls of several types, and experts, in one program.
struct Matmuls {
  static constexpr uint32_t kMaxRows = 70, kExperts = 3, kChosen = 2, kWidth = 72, kFfn = 40;
  static constexpr uint32_t kRows = 101, kCols = 460;
  static constexpr uint32_t kLastOfFloatTiles = 3, kLastOfFloats = 5;

  struct Case {
    Step step;
    double tolerance;
  };

  // Uses only types with different kernels, because a software driver compiles each shader slowly:
  // f16 and bf16 share the f32 tiles, and the last variants add nothing for floats.
  explicit Matmuls(uint32_t variant) : builder(2, kMaxRows, 128) {
    std::mt19937 rng(91);
    std::vector<DType> types = {DType::kInt8, DType::kInt4};
    const bool is_half = vulkan::GemmVariantOf(variant).is_half;
    if (is_half) types = {DType::kF16, DType::kBf16};
    if (variant <= kLastOfFloats) types.insert(types.begin(), DType::kF32);
    for (const DType dtype : types) {
      Step step{LinearParams()};
      auto& params = step.Get<LinearParams>();
      step.in = builder.AddValue(kCols);
      step.out = builder.AddValue(kRows);
      const Matrix m = RandomMatrix(dtype, kRows, kCols, true, &rng);
      params.weight = builder.AddMatrix(m, TargetLayouts(dtype)[0]);
      params.accumulate = dtype == DType::kInt8;
      builder.AddStep(step);
      const double tolerance = dtype == DType::kInt4 ? 2 * kTolerance : kTolerance;
      cases.push_back({step, is_half ? kHalfTolerance : tolerance});
    }
    const bool has_floats = variant <= kLastOfFloatTiles;
    AddExperts(is_half ? DType::kF16 : has_floats ? DType::kF32 : DType::kInt8, &rng);
  }

  void AddExperts(DType dtype, std::mt19937* rng) {
    Step step{ExpertsParams()};
    auto& params = step.Get<ExpertsParams>();
    params.n_experts = kExperts;
    params.n_chosen = kChosen;
    step.in = builder.AddValue(kWidth);
    step.out = builder.AddValue(kWidth);
    params.topk = builder.AddValue(2 * kChosen);
    params.gathered = builder.AddValue(kWidth);
    params.gate_up = builder.AddValue(2 * kFfn);
    params.activated = builder.AddValue(kFfn);
    params.expert_out = builder.AddValue(kWidth);
    for (uint32_t e = 0; e < kExperts; ++e) {
      const WeightLayout layout = TargetLayouts(dtype)[0];
      const WeightId up =
          builder.AddMatrix(RandomMatrix(dtype, 2 * kFfn, kWidth, true, rng), layout);
      builder.AddMatrix(RandomMatrix(dtype, kWidth, kFfn, false, rng), layout);
      if (e == 0) params.weight = up;
    }
    builder.AddStep(step);
    cases.push_back({step, dtype == DType::kF32 ? 2 * kTolerance : kExpertTolerance});
  }

  ProgramBuilder builder;
  std::vector<Case> cases;
};

// Returns the outputs of all cases. The inputs are the same in each session.
std::vector<std::vector<float>> Outputs(const Matmuls& matmuls, Session* session, uint32_t rows) {
  std::mt19937 rng(92);
  const Program& program = session->program();
  const auto fill = [&](ValueId id) {
    const auto x = RandomFloats(size_t{rows} * program.values[id].width, 1.0f, &rng);
    std::memcpy(session->ValueData(id), x.data(), x.size() * sizeof(float));
  };
  for (const Matmuls::Case& c : matmuls.cases) {
    fill(c.step.in);
    fill(c.step.out);
    const auto* experts = c.step.If<ExpertsParams>();
    if (experts == nullptr) continue;
    float* topk = session->ValueData(experts->topk);
    for (uint32_t row = 0; row < rows; ++row, topk += 2 * Matmuls::kChosen) {
      topk[0] = row % 5 == 0 ? 1.0f : 0.0f;  // expert 0 gets more than a tile of the 70 rows
      topk[1] = 2.0f;
      topk[2] = 0.4f;
      topk[3] = 0.7f;
    }
  }
  Batch batch(program, {{0, rows}}, &rng);
  EXPECT_EQ(session->Run(batch.Args()), Status::kOk) << session->message();
  std::vector<std::vector<float>> outputs;
  for (const Matmuls::Case& c : matmuls.cases) {
    const float* out = session->ValueData(c.step.out);
    outputs.emplace_back(out, out + size_t{rows} * program.values[c.step.out].width);
  }
  return outputs;
}

class VulkanMatmulsTest : public testing::TestWithParam<uint32_t> {};

TEST_P(VulkanMatmulsTest, Variant_EveryKindOfRun_IsTheReference) {
  const Backend* backend = vulkan::VariantBackend(GetParam());
  if (const char* problem = NoDevice(backend)) GTEST_SKIP() << problem;
  Matmuls matmuls(GetParam()), same(GetParam());
  Session reference(ReferenceBackend(), &matmuls.builder, 1);
  Session session(backend, &same.builder, 1);
  const std::string used = backend->device->kernel_names(session.state());
  RecordProperty("kernels", used);
  for (const uint32_t rows : {1u, 6u, Matmuls::kMaxRows}) {
    const auto expected = Outputs(matmuls, &reference, rows);
    const auto found = Outputs(same, &session, rows);
    for (size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE(testing::Message() << used << ": case " << i << ", " << rows << " rows");
      ExpectNear(found[i].data(), expected[i], matmuls.cases[i].tolerance);
      if (HasFatalFailure()) return;
    }
  }
}

// Notes the order of the tiles of each matmul of many rows.
class OrderOfTiles final : public vulkan::DispatchSink {
 public:
  Status BeginStep(uint32_t) override { return Status::kOk; }
  Status BeginEdits(uint32_t) override { return Status::kOk; }
  Status BeginChoice(uint32_t* n_dispatches) override {
    *n_dispatches = 0;
    return Status::kOk;
  }
  Status Add(const vulkan::Dispatch& d, Diag*) override {
    if ((d.modes & vulkan::BitOf(vulkan::Mode::kMany)) == 0) return Status::kOk;
    if (d.constants[vulkan::kMatmulTileMId] != 0) {
      rows_first.push_back(d.constants[vulkan::kMatmulRowsFirstId]);
    }
    return Status::kOk;
  }
  std::vector<uint32_t> rows_first;
};

// Neighbouring workgroups share the larger operand: 300 rows of inputs, and weights.
TEST(VulkanTileOrderTest, RowsComeFirst_IfTheInputsAreSmallerThanTheWeights) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kInt8, DType::kInt4}) {
    ProgramBuilder builder(2, 300, 512);
    std::mt19937 rng(5);
    const ValueId in = builder.AddValue(96);
    for (const uint32_t outs : {64u, 1500u}) {
      const Matrix matrix = RandomMatrix(dtype, outs, 96, false, &rng);
      const LinearParams params{.weight = builder.AddMatrix(matrix, TargetLayouts(dtype)[0])};
      builder.AddStep(params, in, builder.AddValue(outs));
    }
    Layout layout;
    const Program program = builder.Build(&layout);
    OrderOfTiles order;
    Diag diag;
    const vulkan::Workspace nowhere = {};
    ASSERT_EQ(Status::kOk, vulkan::Lowering(program, {}, nowhere, {}).Run(&order, &diag))
        << diag.text();
    EXPECT_EQ((std::vector<uint32_t>{0, 1}), order.rows_first) << DTypeName(dtype);
  }
}

// All other tests run the first variant. AddressSanitizer covers only host code, which is the same
// for all variants.
#ifdef ARN_SANITIZE_ADDRESS
constexpr uint32_t kEnd = 2;
#else
constexpr uint32_t kEnd = vulkan::kMostVariants;
#endif
INSTANTIATE_TEST_SUITE_P(Variants, VulkanMatmulsTest, testing::Range(1u, kEnd),
                         [](const auto& i) { return std::to_string(i.param); });

}  // namespace
}  // namespace arn::conformance

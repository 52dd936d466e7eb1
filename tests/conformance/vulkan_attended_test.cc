// Attention that ends the matmul of queries, keys and values, of one row in a short context
// (kernels/vulkan/lower/fusion.h, IsAttended): which layers have it, and what it computes up to and
// behind the end of a short context, against the reference.
#include <cstring>
#include <string>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/reference/backend_reference.h"
#include "kernels/vulkan/backend_vulkan.h"
#include "kernels/vulkan/lower/fusion.h"
#include "kernels/vulkan/lower/segments.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kIn = 96, kOut = 70, kMaxRows = 40, kContext = 300;
constexpr uint32_t kShort = vulkan::kAttentionSegment;

struct AttendedCase {
  DType weights, pages;
  uint32_t n_heads, n_kv_heads, head_dim, rotary_dim;
  bool has_norms = false, norm_follows = false;
  uint32_t window = 0;
  float softcap = 0.0f;
};
constexpr AttendedCase kCases[] = {
    {DType::kInt8, DType::kInt8, 4, 4, 16, 16},
    {DType::kInt8, DType::kF16, 8, 2, 64, 64, true},
    {DType::kInt4, DType::kInt8, 7, 1, 24, 16, true, true, kShort + 1, 20.0f},
    {DType::kInt8, DType::kF32, 6, 3, 72, 0},
    {DType::kInt4, DType::kF16, 8, 1, 8, 8},
};

// A matmul of queries, keys and values, attention, and the matmul behind it, for each case.
struct Attended {
  explicit Attended(Span<const AttendedCase> cases = {kCases, std::size(kCases)}) {
    std::mt19937 rng(21);
    for (const AttendedCase& c : cases) Add(c, &rng);
  }
  void Add(const AttendedCase& c, std::mt19937* rng) {
    AttentionKind kind;
    kind.n_heads = c.n_heads;
    kind.n_kv_heads = c.n_kv_heads;
    kind.head_dim = c.head_dim;
    kind.attention_scale = 0.2f;
    kind.softcap = c.softcap;
    kind.window = c.window;
    kind.qk_norm_follows_rope = c.norm_follows;
    kind.rope = kNoRope;
    QkvRopeParams rope;
    rope.epsilon = 1e-5f;
    if (c.rotary_dim != 0) {
      kind.rope = builder.AddRope(c.rotary_dim, 10000.0f);
      rope.angles = builder.AddValue(c.rotary_dim);
      builder.AddStep(RopeAnglesParams{.rope = static_cast<uint16_t>(kind.rope)}, kNoValue,
                      rope.angles);
    }
    if (c.has_norms) {
      rope.q_norm = builder.AddVector(RandomFloats(c.head_dim, 1.0f, rng));
      rope.k_norm = builder.AddVector(RandomFloats(c.head_dim, 1.0f, rng));
    }
    AttentionParams attend;
    rope.kind = attend.kind = static_cast<uint16_t>(builder.AddAttention(kind, c.pages, 2, 8, 40));
    rope.group_layer = attend.group_layer = 1;
    const uint32_t width = (c.n_heads + 2 * c.n_kv_heads) * c.head_dim;
    const uint32_t attended_width = c.n_heads * c.head_dim;
    const ValueId in = builder.AddValue(kIn), qkv = builder.AddValue(width);
    const ValueId attended = builder.AddValue(attended_width), out = builder.AddValue(kOut);
    const auto add_linear = [&](DType dtype, ValueId from, ValueId to, uint32_t rows,
                                uint32_t cols) {
      const WeightId weight =
          builder.AddMatrix(RandomMatrix(dtype, rows, cols, true, rng), TargetLayouts(dtype)[0]);
      builder.AddStep(LinearParams{.weight = weight}, from, to);
    };
    matmuls.push_back(builder.AddedSteps());
    add_linear(c.weights, in, qkv, width, kIn);
    builder.AddStep(rope, qkv, kNoValue);
    builder.AddStep(attend, qkv, attended);
    add_linear(DType::kInt8, attended, out, kOut, attended_width);
    ins.push_back(in);
    attendeds.push_back(attended);
    outs.push_back(out);
  }

  ProgramBuilder builder{2, kMaxRows, kContext};
  std::vector<uint32_t> matmuls;  // steps
  std::vector<ValueId> ins, attendeds, outs;
};

// A program of one case whose parts may be changed.
struct Editable {
  Editable() : attended({&kCases[1], 1}) {
    program = attended.builder.Build(&layout);
    steps.assign(program.steps.begin(), program.steps.end());
    kinds.assign(program.kinds.begin(), program.kinds.end());
    groups.assign(program.kv_groups.begin(), program.kv_groups.end());
  }
  bool IsAttended() {
    program.steps = {steps.data(), steps.size()};
    program.kinds = {kinds.data(), kinds.size()};
    program.kv_groups = {groups.data(), groups.size()};
    return vulkan::IsAttended(program, matmul(), kShort);
  }
  Step& matmul() { return steps[attended.matmuls[0]]; }
  QkvRopeParams& rope() { return (&matmul())[1].Get<QkvRopeParams>(); }
  Step& attention() { return (&matmul())[2]; }

  Attended attended;
  Layout layout;
  Program program;
  std::vector<Step> steps;
  std::vector<AttentionKind> kinds;
  std::vector<KvGroup> groups;
};

TEST(VulkanAttendedTest, LayersWhoseHeadsAWorkgroupCanAttendFor_HaveIt) {
  EXPECT_TRUE(Editable().IsAttended());
  const auto after = [](auto change) {
    Editable e;
    change(&e);
    return e.IsAttended();
  };
  EXPECT_TRUE(after([](Editable* e) { e->kinds[0].window = kShort; }));
  EXPECT_FALSE(after([](Editable* e) { e->kinds[0].window = kShort - 1; }));
  EXPECT_FALSE(after([](Editable* e) { e->kinds[0].chunk = kShort / 2; }));
  EXPECT_FALSE(after([](Editable* e) { e->groups[0].quantised.n_pages = 1; }));
  EXPECT_FALSE(after([](Editable* e) { e->rope().shares_kv = true; }));
  EXPECT_FALSE(after([](Editable* e) { e->rope().v_norm = e->rope().k_norm; }));
  EXPECT_FALSE(after([](Editable* e) { e->attention().Get<AttentionParams>().sinks = 0; }));
  EXPECT_FALSE(after([](Editable* e) { e->attention().Get<AttentionParams>().group_layer = 0; }))
      << "pages of another layer";
  EXPECT_FALSE(after([](Editable* e) {
    e->steps.push_back(
        Step(MultiplyParams{.by = e->attention().out}, e->attended.outs[0], kNoValue));
  })) << "outputs that a later step reads";
  EXPECT_FALSE(after([](Editable* e) {
    e->steps.push_back(Step(MultiplyParams{.by = e->matmul().out}, e->attended.outs[0], kNoValue));
  })) << "queries that a later step reads";
}

TEST(VulkanAttendedTest, ManyHeadsOfOneKey_AndFloats_HaveADispatchOfTheirOwn) {
  constexpr AttendedCase kOthers[] = {
      {DType::kInt8, DType::kInt8, 9, 1, 16, 0},
      {DType::kInt8, DType::kInt8, 8, 2, 136, 0},
      {DType::kF16, DType::kInt8, 4, 2, 64, 0},
  };
  Attended attended({kOthers, std::size(kOthers)});
  Layout layout;
  const Program program = attended.builder.Build(&layout);
  for (const uint32_t step : attended.matmuls) {
    EXPECT_FALSE(vulkan::IsAttended(program, program.steps[step], kShort)) << "step " << step;
  }
}

// What single rows compute.
struct Row {
  uint32_t position = 0;
  bool is_attended_written = false;  // of the first case
  std::vector<std::vector<float>> outs;
};

// Positions at which one row runs: the first ones, and around the ends of segments. Many run
// between them.
bool RunsAlone(uint32_t position) {
  return position < 2 || position == 31 || position == 32 || position >= kShort - 3;
}

// Runs rows up to behind the end of a short context.
std::vector<Row> Rows(const Backend* backend) {
  Attended attended;
  Session session(backend, &attended.builder, 1);
  const auto width = [&](ValueId id) { return session.program().values[id].width; };
  std::mt19937 rng(22);
  Batch batch(session.program(), {{0, 1}}, &rng);
  std::vector<Row> found;
  for (uint32_t position = 0, n = 1; position < kShort + 3; position += n) {
    for (n = 1; !RunsAlone(position) && n < kMaxRows && !RunsAlone(position + n);) ++n;
    if (position != 0) batch.Advance({n});
    for (const ValueId id : attended.ins) {
      const auto x = RandomFloats(size_t{n} * width(id), 1.0f, &rng);
      std::memcpy(session.ValueData(id), x.data(), x.size() * sizeof(float));
    }
    const std::vector<float> before(width(attended.attendeds[0]), 7.0f);
    float* const first = session.ValueData(attended.attendeds[0]);
    std::memcpy(first, before.data(), before.size() * sizeof(float));
    EXPECT_EQ(Status::kOk, session.Run(batch.Args())) << session.message();
    if (n != 1) continue;
    Row row;
    row.position = position;
    row.is_attended_written = std::memcmp(first, before.data(), before.size() * sizeof(float)) != 0;
    for (const ValueId id : attended.outs) {
      row.outs.emplace_back(session.ValueData(id), session.ValueData(id) + width(id));
    }
    found.push_back(row);
  }
  return found;
}

struct RowsCase {
  vulkan::Restriction restriction;
  uint32_t short_positions;  // 0: a dispatch for each step
};
void PrintTo(const RowsCase& c, std::ostream* out) { *out << vulkan::NameOf(c.restriction); }

class VulkanAttendedRowsTest : public testing::TestWithParam<RowsCase> {};

TEST_P(VulkanAttendedRowsTest, RowsUpToASegmentAndBehindIt_AreTheReference) {
  const Backend* backend = vulkan::RestrictedBackend(GetParam().restriction);
  if (const char* problem = NoDevice(backend)) GTEST_SKIP() << problem;
  const std::vector<Row> expected = Rows(ReferenceBackend()), found = Rows(backend);
  ASSERT_EQ(10u, expected.size());
  ASSERT_EQ(expected.size(), found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "position " << found[i].position);
    // Rows in a short context are quantised alone.
    EXPECT_EQ(found[i].position >= GetParam().short_positions, found[i].is_attended_written);
    for (size_t c = 0; c < found[i].outs.size(); ++c) {
      SCOPED_TRACE(testing::Message() << "case " << c);
      // A value of an input that is rounded otherwise changes all outputs.
      ExpectNear(found[i].outs[c].data(), expected[i].outs[c], 1e-2);
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Restrictions, VulkanAttendedRowsTest,
                         testing::Values(RowsCase{vulkan::Restriction::kNone, kShort},
                                         RowsCase{vulkan::Restriction::kStaged, kShort},
                                         RowsCase{vulkan::Restriction::kTeams, 32},
                                         RowsCase{vulkan::Restriction::kSharedMemory, 0}),
                         [](const auto& i) {
                           return std::string(vulkan::NameOf(i.param.restriction));
                         });

}  // namespace
}  // namespace arn::conformance

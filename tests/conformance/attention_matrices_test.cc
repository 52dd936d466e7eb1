// Attention of many rows by f16 cooperative matrices (kernels/vulkan/shaders/attention_coop.comp):
// which layers have it, the tiles that fit the shader, the bound of its error
// (docs/decisions/0026-attention-by-matrices.md), and its counts. attention_tile_test.cc compares
// it with the attention of each row.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "backends.h"
#include "cases.h"
#include "dispatch_collector.h"
#include "kernels/vulkan/count/dispatch_work.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/attention_tiles.h"
#include "kernels/vulkan/lower/traits.h"
#include "platform/base/arith.h"
#include "program_builder.h"
#include "run_parts.h"
#include "tests/support/counting_device.h"

namespace arn::conformance {
namespace {

using vulkan::Dispatch;
using vulkan::Shader;

constexpr uint32_t kMaxRows = 100, kContext = 256;
// One rounding to f16: to nearest, or down on devices that truncate.
constexpr double kUnit = 1.0 / 1024;

struct Layer {
  uint32_t n_heads, n_kv_heads, head_dim, window, page_tokens;
};

// One layer's attention to pages, behind a matmul.
struct OneLayer {
  OneLayer(const Layer& l, DType pages, DType weights) : layer(l), builder(2, kMaxRows, kContext) {
    std::mt19937 rng(61);
    AttentionKind kind;
    kind.n_heads = l.n_heads;
    kind.n_kv_heads = l.n_kv_heads;
    kind.head_dim = l.head_dim;
    kind.window = l.window;
    kind.attention_scale = 1.0f / std::sqrt(static_cast<float>(l.head_dim));
    kind.rope = kNoRope;
    width = (l.n_heads + 2 * l.n_kv_heads) * l.head_dim;
    const Matrix matrix = RandomMatrix(weights, 32, 32, false, &rng);
    const LinearParams linear{.weight = builder.AddMatrix(matrix, TargetLayouts(weights)[0])};
    const ValueId x = builder.AddValue(32);
    builder.AddStep(linear, x, builder.AddValue(32));
    in = builder.AddValue(width);
    out = builder.AddValue(l.n_heads * l.head_dim);
    const auto k = static_cast<uint16_t>(
        builder.AddAttention(kind, pages, 1, l.page_tokens, kContext / l.page_tokens));
    QkvRopeParams store;
    AttentionParams attention;
    store.kind = attention.kind = k;
    builder.AddStep(store, in, kNoValue);
    builder.AddStep(attention, in, out);
  }

  const Layer layer;
  ProgramBuilder builder;
  uint32_t width = 0;
  ValueId in = kNoValue, out = kNoValue;
};

// A device with the matrices of many GPUs, which were measured to be faster.
vulkan::Traits TraitsWithMatrices(uint32_t m = 16, uint32_t n = 16) {
  vulkan::Traits traits;
  traits.matmuls.subgroup_size = 32;
  traits.matmuls.has_full_subgroups = true;
  traits.matmuls.max_lanes = 1024;
  traits.matmuls.shared_memory = 49152;
  traits.matmuls.coop = {m, n, 32};
  traits.matrices = {{m, n, 16}, 32, 1024};
  traits.shared_memory = 36864;
  for (auto& of_mode : traits.choices.of) {
    for (uint8_t& choice : of_mode) choice = 6;
  }
  return traits;
}

// The attention of runs of many rows.
Dispatch AttentionOf(const Program& program, const vulkan::Traits& traits) {
  DispatchCollector found;
  Diag diag;
  const vulkan::Workspace nowhere = {};
  EXPECT_EQ(Status::kOk, vulkan::Lowering(program, {}, nowhere, traits).Run(&found, &diag))
      << diag.text();
  for (const Dispatch& d : found.dispatches) {
    const bool is_attention = d.shader == Shader::kAttention ||
                              d.shader == Shader::kAttentionTile ||
                              d.shader == Shader::kAttentionCoop;
    if (is_attention && (d.modes & BitOf(vulkan::Mode::kMany)) != 0) return d;
  }
  ADD_FAILURE() << "no attention";
  return {};
}

constexpr Layer kUsual = {9, 3, 64, 0, 32};

Shader ShaderOf(const vulkan::Traits& traits, DType pages = DType::kInt8,
                DType weights = DType::kInt8, const Layer& layer = kUsual) {
  OneLayer one(layer, pages, weights);
  Layout layout;
  return AttentionOf(one.builder.Build(&layout), traits).shader;
}

TEST(AttentionMatrices, AreUsedWhereThoseOfMatmulsAreFasterAndPagesAreNotF32) {
  const vulkan::Traits traits = TraitsWithMatrices();
  EXPECT_EQ(Shader::kAttentionCoop, ShaderOf(traits));
  EXPECT_EQ(Shader::kAttentionCoop, ShaderOf(traits, DType::kF16, DType::kInt4));
  // In a cache of a large GPU, where tiles of f32 are slower than each row by itself.
  vulkan::Traits large = traits;
  large.row_attention_bytes = uint64_t{16} << 20;
  EXPECT_EQ(Shader::kAttentionCoop, ShaderOf(large));
  // f32 and f16 are to stay as exact as they are.
  EXPECT_EQ(Shader::kAttentionTile, ShaderOf(traits, DType::kF32));
  EXPECT_EQ(Shader::kAttentionTile, ShaderOf(traits, DType::kInt8, DType::kF16));
  EXPECT_EQ(Shader::kAttention, ShaderOf(traits, DType::kInt8, DType::kInt8, {2, 1, 264, 0, 32}));
  vulkan::Traits none = traits;
  none.choices = {};
  EXPECT_EQ(Shader::kAttentionTile, ShaderOf(none));
  none = traits;
  none.matrices.coop = {};
  EXPECT_EQ(Shader::kAttentionTile, ShaderOf(none));
  none = traits;
  none.attention = vulkan::kAttentionOfRows;
  EXPECT_EQ(Shader::kAttention, ShaderOf(none));
  // By force, whatever the weights.
  none.attention = vulkan::kAttentionOfMatrices;
  none.choices = {};
  EXPECT_EQ(Shader::kAttentionCoop, ShaderOf(none, DType::kF16, DType::kF32));
  EXPECT_EQ(Shader::kAttentionTile, ShaderOf(none, DType::kF32, DType::kF32));
}

TEST(AttentionMatrices, EveryGeometry_FitsTheShaderOrHasNone) {
  for (const uint32_t m : {8u, 16u}) {
    for (const uint32_t n : {8u, 16u}) {
      for (const uint32_t subgroup : {8u, 16u, 32u, 64u, 128u}) {
        for (uint32_t dim = 1; dim <= 264; ++dim) {
          for (const uint32_t heads : {1u, 3u, 7u, 71u}) {
            for (const uint32_t shared_memory : {16384u, 36864u, 49152u}) {
              AttentionKind kind;
              kind.n_heads = 2 * heads;
              kind.n_kv_heads = 2;
              kind.head_dim = dim;
              const vulkan::AttentionTile t =
                  vulkan::MatrixTileOf(kind, {{m, n, 16}, subgroup, 256}, shared_memory);
              if (t.pairs == 0) continue;
              ASSERT_LE(dim, 256u);
              ASSERT_LE(vulkan::SharedBytesOf(t, dim), shared_memory);
              ASSERT_EQ(t.lanes, t.pairs / m * subgroup);
              ASSERT_LE(t.lanes, 256u);
              ASSERT_EQ(0u, t.pairs % m);
              ASSERT_EQ(0u, t.keys % 16);
              ASSERT_EQ(0u, t.keys / 2 % (subgroup / m));
              ASSERT_LE(t.rows * t.heads, t.pairs);
              ASSERT_GE(t.groups_x * t.heads, kind.n_heads);
            }
          }
        }
      }
    }
  }
  // Subgroups with fewer invocations than a matrix has rows, and workgroups that are too small.
  AttentionKind kind;
  kind.n_heads = kind.n_kv_heads = 1;
  kind.head_dim = 64;
  EXPECT_EQ(0u, vulkan::MatrixTileOf(kind, {{16, 16, 16}, 8, 256}, 16384).pairs);
  EXPECT_EQ(32u, vulkan::MatrixTileOf(kind, {{8, 8, 16}, 32, 128}, 16384).pairs);
  EXPECT_EQ(0u, vulkan::MatrixTileOf(kind, {{8, 8, 16}, 256, 128}, 16384).pairs);
  EXPECT_EQ(0u, vulkan::MatrixTileOf(kind, {{}, 32, 256}, 16384).pairs);
}

TEST(AttentionMatrices, Shape_IsTheLargestOfF16WithF32Sums) {
  const auto of = [](uint32_t m, uint32_t n, uint32_t k, VkComponentTypeKHR sums) {
    VkCooperativeMatrixPropertiesKHR p = {};
    p.MSize = m;
    p.NSize = n;
    p.KSize = k;
    p.AType = p.BType = VK_COMPONENT_TYPE_FLOAT16_KHR;
    p.CType = p.ResultType = sums;
    p.scope = VK_SCOPE_SUBGROUP_KHR;
    return p;
  };
  constexpr VkComponentTypeKHR kF32 = VK_COMPONENT_TYPE_FLOAT32_KHR;
  VkCooperativeMatrixPropertiesKHR list[] = {of(16, 16, 16, VK_COMPONENT_TYPE_FLOAT16_KHR),
                                             of(16, 8, 8, kF32), of(8, 16, 16, kF32),
                                             of(32, 8, 16, kF32), of(16, 16, 4, kF32)};
  const vulkan::CoopShape shape = vulkan::ChooseHalfCoopShape(list, 5);
  EXPECT_EQ(8u, shape.m);
  EXPECT_EQ(16u, shape.n);
  EXPECT_EQ(16u, shape.k);
  list[2].scope = VK_SCOPE_WORKGROUP_KHR;
  EXPECT_EQ(16u, vulkan::ChooseHalfCoopShape(list, 5).m);
  EXPECT_EQ(0u, vulkan::ChooseHalfCoopShape(list, 1).m);
}

#ifndef ARENITE_NO_COUNTS
// What the shader does, invocation by invocation and matrix by matrix.
KernelWork Walk(const Layer& l, const Dispatch& d, DType pages, uint32_t rows, uint32_t before) {
  const uint32_t* c = d.constants;
  const uint32_t pairs = c[vulkan::kAttentionPairsId], keys = c[vulkan::kAttentionKeysId];
  const uint32_t tile_rows = c[vulkan::kAttentionTileRowsId];
  const uint32_t m = c[vulkan::kAttentionCoopMId], n = c[vulkan::kAttentionCoopNId];
  const uint32_t k = c[vulkan::kAttentionCoopKId], dim = (l.head_dim + 15) / 16 * 16;
  const uint32_t group_heads = l.n_heads / l.n_kv_heads, heads = c[vulkan::kAttentionTileHeadsId];
  const uint32_t quad_bytes = pages == DType::kInt8 ? 4 : 8;
  const auto first_of = [&](uint32_t row) {
    const uint32_t position = before + row;
    return l.window != 0 && position >= l.window ? position - l.window + 1 : 0;
  };
  KernelWork w;
  for (uint32_t group = 0; group < d.groups_x; ++group) {
    const uint32_t first_head = group % (d.groups_x / l.n_kv_heads) * heads;
    const uint32_t n_heads = std::min(heads, group_heads - first_head);
    for (uint32_t first = 0; first < rows; first += tile_rows) {
      const uint32_t end = std::min(first + tile_rows, rows);
      w.loaded += uint64_t{2} * pairs * l.head_dim * 4;
      w.stored += uint64_t{end - first} * n_heads * l.head_dim * 4;
      const uint32_t first_key = first_of(first), end_key = before + end;
      for (uint32_t at = first_key / keys * keys; at < end_key; at += keys) {
        for (uint32_t key = std::max(at, first_key); key < std::min(at + keys, end_key); ++key) {
          w.loaded += uint64_t{2} * (l.head_dim / 4 * quad_bytes + (quad_bytes == 4 ? 4 : 0));
        }
        for (uint32_t subgroup = 0; subgroup < pairs / m; ++subgroup) {
          for (uint32_t column = 0; column < keys; column += n) {
            for (uint32_t sum = 0; sum < dim; sum += k) w.half_matrix_products += m * n * k;
          }
          for (uint32_t column = 0; column < dim; column += n) {
            for (uint32_t sum = 0; sum < keys; sum += k) w.half_matrix_products += m * n * k;
          }
        }
      }
    }
  }
  return w;
}

TEST(AttentionMatrices, Counts_AreWhatTheShaderWalksThrough) {
  for (const Layer& layer : {kUsual, Layer{7, 1, 80, 0, 32}, Layer{6, 2, 96, 37, 16},
                             Layer{4, 4, 8, 1, 16}, Layer{70, 1, 8, 0, 32}}) {
    for (const DType pages : {DType::kInt8, DType::kF16}) {
      for (const uint32_t n : {8u, 16u}) {
        for (const uint32_t before : {0u, 45u}) {
          SCOPED_TRACE(testing::Message()
                       << layer.n_heads << ":" << layer.n_kv_heads << " dim " << layer.head_dim
                       << " " << DTypeName(pages) << " " << n << " after " << before);
          OneLayer one(layer, pages, DType::kInt8);
          Layout layout;
          const Program program = one.builder.Build(&layout);
          const Dispatch d = AttentionOf(program, TraitsWithMatrices(n, n));
          ASSERT_EQ(Shader::kAttentionCoop, d.shader);
          vulkan::WorkContext context;
          context.run = {kMaxRows, before};
          const KernelWork counted = WorkOf(d, kMaxRows, context);
          const KernelWork walked = Walk(layer, d, pages, kMaxRows, before);
          EXPECT_EQ(walked.loaded, counted.loaded);
          EXPECT_EQ(walked.stored, counted.stored);
          EXPECT_EQ(walked.half_matrix_products, counted.half_matrix_products);
          EXPECT_EQ(0u, counted.int_products + counted.half_products);
        }
      }
    }
  }
}
#endif

// On a device that has them.
class VulkanAttentionMatricesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* problem = NoDevice(backend())) GTEST_SKIP() << problem;
    vulkan::Device device;
    Diag diag;
    ASSERT_EQ(Status::kOk, device.Open(vulkan::DeviceChoice(), &diag)) << diag.text();
    vulkan::SetTraits(vulkan::GpuTraitsOf(device), &traits_);
    device.Close();
    if (traits_.matrices.coop.m == 0) GTEST_SKIP() << "no f16 cooperative matrices";
    traits_.attention = vulkan::kAttentionOfMatrices;
    traits_.row_attention_bytes = 0;
  }
  static const Backend* backend() { return vulkan::AttentionBackend(vulkan::kAttentionOfMatrices); }

  // Runs rows of queries, keys and values after none; returns the outputs.
  static std::vector<float> Run(OneLayer* one, Session* session, const std::vector<float>& x) {
    std::mt19937 rng(62);
    const auto rows = static_cast<uint32_t>(x.size() / one->width);
    session->Forget();
    Batch batch(session->program(), {{0, kContext}}, &rng);
    return RunParts(session, batch, {{0, 0, rows}}, one->in, one->out,
                    [&](uint32_t, uint32_t token) { return x.data() + token * one->width; });
  }

  vulkan::Traits traits_;
};

// What an f16 page holds of x.
double InPage(float x) { return static_cast<double>(F32FromF16(F16FromF32(x))); }

TEST_F(VulkanAttentionMatricesTest, Error_IsWithinItsBoundWhateverTheMagnitudes) {
  const Layer layer = {6, 2, 40, 0, 16};
  OneLayer one(layer, DType::kF16, DType::kF32);
  Session session(backend(), &one.builder, 1);
  std::mt19937 rng(63);
  std::vector<float> x = RandomFloats(size_t{kMaxRows} * one.width, 2.0f, &rng);
  const uint32_t q_width = layer.n_heads * layer.head_dim;
  const uint32_t k_width = layer.n_kv_heads * layer.head_dim;
  // Queries from 2^-60 to 2^60, with keys whose scores stay small; small and large values.
  for (uint32_t row = 0; row < kMaxRows; ++row) {
    float* token = x.data() + size_t{row} * one.width;
    for (uint32_t i = 0; i < q_width; ++i) {
      token[i] = std::ldexp(token[i], static_cast<int>(row % 5) * 3 - 9);
    }
    for (uint32_t i = 0; i < k_width; ++i) {
      token[q_width + k_width + i] =
          std::ldexp(token[q_width + k_width + i], static_cast<int>(row * 7 % 23) - 11);
    }
  }
  const std::vector<float> found = Run(&one, &session, x);
  const double scale = 1.0 / std::sqrt(static_cast<double>(layer.head_dim));
  double worst = 0;
  for (uint32_t row = 0; row < kMaxRows; ++row) {
    for (uint32_t h = 0; h < layer.n_heads; ++h) {
      const float* q = x.data() + size_t{row} * one.width + h * layer.head_dim;
      const uint32_t kv = h / (layer.n_heads / layer.n_kv_heads) * layer.head_dim;
      std::vector<double> weights(row + 1);
      double peak = 0, total = 0, most = -INFINITY, off = 0;
      for (uint32_t i = 0; i < layer.head_dim; ++i) {
        peak = std::max(peak, std::fabs(static_cast<double>(q[i])));
      }
      for (uint32_t t = 0; t <= row; ++t) {
        const float* k = x.data() + size_t{t} * one.width + q_width + kv;
        double score = 0, sizes = 0, sum = 0;
        for (uint32_t i = 0; i < layer.head_dim; ++i) {
          score += static_cast<double>(q[i]) * InPage(k[i]);
          sizes += std::fabs(static_cast<double>(q[i]) * InPage(k[i]));
          sum += std::fabs(InPage(k[i]));
        }
        weights[t] = score * scale;
        most = std::max(most, weights[t]);
        off = std::max(off, scale * (kUnit * sizes + std::ldexp(peak, -23) * sum));
      }
      for (double& w : weights) total += w = std::exp(w - most);
      const double of_scores = std::expm1(2 * off) + kUnit + 1e-5;
      for (uint32_t i = 0; i < layer.head_dim; ++i) {
        double value = 0, bound = 1e-30;
        for (uint32_t t = 0; t <= row; ++t) {
          const float* v = x.data() + size_t{t} * one.width + q_width + k_width + kv;
          value += weights[t] / total * InPage(v[i]);
          // A weight below 2^-14 of the largest has fewer digits, or none.
          const double of_weight = of_scores * weights[t] + std::ldexp(1.0, -24);
          bound += of_weight / total * std::fabs(InPage(v[i]));
        }
        const double error = std::fabs(
            static_cast<double>(found[size_t{row} * q_width + h * layer.head_dim + i]) - value);
        ASSERT_LE(error, bound) << "row " << row << " head " << h << " channel " << i;
        worst = std::max(worst, error / bound);
      }
    }
  }
  RecordProperty("of_the_bound", std::to_string(worst));
  EXPECT_GT(worst, 1e-3) << "not in f16";
}

// A value that is infinite is not seen by earlier rows of its tile.
TEST_F(VulkanAttentionMatricesTest, ValueThatIsInfinite_ChangesNoRowThatDoesNotSeeIt) {
  for (const DType pages : {DType::kF16, DType::kInt8}) {
    SCOPED_TRACE(DTypeName(pages));
    OneLayer one({3, 1, 64, 0, 32}, pages, DType::kF32);
    Session session(backend(), &one.builder, 1);
    std::mt19937 rng(64);
    std::vector<float> x = RandomFloats(size_t{45} * one.width, 2.0f, &rng);
    const std::vector<float> whole = Run(&one, &session, x);
    x[size_t{12} * one.width + one.width - 7] = std::numeric_limits<float>::infinity();
    const std::vector<float> found = Run(&one, &session, x);
    const size_t width = 3 * 64;
    for (uint32_t row = 0; row < 45; ++row) {
      if (row < 12) {
        ASSERT_EQ(0, std::memcmp(whole.data() + row * width, found.data() + row * width,
                                 width * sizeof(float)))
            << row;
      } else {
        ASSERT_FALSE(std::isfinite(found[row * width + 64 - 7])) << row;
      }
    }
  }
}

#ifndef ARENITE_NO_COUNTS
TEST_F(VulkanAttentionMatricesTest, Counts_AreWhatTheShaderDoes) {
  for (const DType pages : {DType::kF16, DType::kInt8}) {
    SCOPED_TRACE(DTypeName(pages));
    OneLayer one({6, 2, 40, 0, 16}, pages, DType::kF32);
    test::CountingDevice counting;
    Session session(backend(), &one.builder, 1);
    std::mt19937 rng(65);
    const std::vector<float> x = RandomFloats(size_t{kMaxRows} * one.width, 2.0f, &rng);
    counting.Reset();
    Run(&one, &session, x);
    const Dispatch d = AttentionOf(session.program(), traits_);
    vulkan::WorkContext context;
    context.run = {kMaxRows, 0};
    const KernelWork work = WorkOf(d, kMaxRows, context);
    const test::ShaderCounts found = counting.Of(Shader::kAttentionCoop);
    EXPECT_LT(0u, found.loaded);
    EXPECT_EQ(work.loaded, found.loaded);
    EXPECT_EQ(work.stored, found.stored);
  }
}
#endif

}  // namespace
}  // namespace arn::conformance

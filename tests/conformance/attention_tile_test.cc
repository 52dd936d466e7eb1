// Attention of many rows in tiles (kernels/vulkan/shaders/attention_tile.comp) against the same
// device's attention of each row, at the edges of tiles and with every type of page, and what a
// row's tile may not change. attention_test.cc compares both with the formula.
#include <cmath>
#include <cstring>
#include <limits>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/vulkan/device/device.h"
#include "kernels/vulkan/lower/attention_tiles.h"
#include "kernels/vulkan/lower/traits.h"
#include "program_builder.h"
#include "run_parts.h"

namespace arn::conformance {
namespace {

// Queries and weights are rounded to f16, elements of quantised pages too.
constexpr double kMatrixTolerance = 4e-3;
constexpr uint32_t kMaxRows = 150, kContext = 256, kSequences = 4;

struct TileShape {
  uint32_t n_heads, n_kv_heads, head_dim, window, page_tokens;
  uint32_t chunk = 0;
  float softcap = 0.0f;
  bool has_sinks = false;
  uint32_t n_relative_positions = 0;
};
constexpr TileShape kShapes[] = {
    {7, 1, 80, 0, 32},               // 7 : 1, 9 rows of 7 heads
    {9, 3, 64, 0, 32},               // 21 rows of 3 heads
    {6, 2, 96, 37, 16, 0, 0, true},  // windows that begin inside a tile of keys
    {2, 1, 20, 0, 8, 45, 3.0f},
    {4, 4, 8, 1, 16},    // sees only itself
    {70, 1, 8, 0, 32},   // more heads than a small tile has pairs
    {2, 2, 256, 0, 32},  // tiles of 8 keys
    {1, 1, 260, 0, 32},  // too wide for tiles
    {8, 2, 6, 0, 16},    // not a multiple of 4
    {4, 2, 64, 0, 32, 0, 0, true, 90},
};
// 0 bits: no quantised pages. The last ones are int4 and int2 pages.
struct TilePages {
  DType type;
  uint32_t k_bits = 0, v_bits = 0;
};
constexpr TilePages kPages[] = {
    {DType::kInt8}, {DType::kF32}, {DType::kF16}, {DType::kInt8, 4, 4}, {DType::kF16, 2, 2},
};

AttentionKind KindOf(uint32_t n_heads, uint32_t n_kv_heads, uint32_t head_dim) {
  AttentionKind kind;
  kind.n_heads = n_heads;
  kind.n_kv_heads = n_kv_heads;
  kind.head_dim = head_dim;
  return kind;
}

// One attention layer without RoPE, and up to kSequences sequences.
class Layer {
 public:
  Layer(const Backend* backend, const TileShape& shape, const TilePages& pages)
      : shape_(shape), pages_(pages), builder_(/*vocab=*/2, kMaxRows, kContext) {
    std::mt19937 rng(51);
    AttentionKind kind = KindOf(shape.n_heads, shape.n_kv_heads, shape.head_dim);
    kind.window = shape.window;
    kind.chunk = shape.chunk;
    kind.softcap = shape.softcap;
    kind.attention_scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
    kind.rope = kNoRope;
    width_ = (shape.n_heads + 2 * shape.n_kv_heads) * shape.head_dim;
    Step store{QkvRopeParams()}, attention{AttentionParams()};
    auto& store_params = store.Get<QkvRopeParams>();
    auto& attention_params = attention.Get<AttentionParams>();
    store.in = attention.in = in_ = builder_.AddValue(width_);
    const uint32_t n_pages = kSequences * kContext / shape.page_tokens;
    const uint32_t k = builder_.AddAttention(kind, pages.type, 2, shape.page_tokens, n_pages);
    if (pages.k_bits != 0) {
      builder_.AddQuantisedPages(k, pages.k_bits, pages.v_bits, shape.page_tokens / 2, n_pages);
    }
    store_params.kind = attention_params.kind = static_cast<uint16_t>(k);
    store_params.group_layer = attention_params.group_layer = 1;
    attention.out = out_ = builder_.AddValue(shape.n_heads * shape.head_dim);
    if (shape.has_sinks) {
      attention_params.sinks = builder_.AddVector(RandomFloats(shape.n_heads, 3.0f, &rng));
    }
    if (shape.n_relative_positions != 0) {
      const Matrix bias =
          RandomMatrix(DType::kF32, shape.n_relative_positions, shape.n_heads, false, &rng);
      attention_params.relative_position_bias = builder_.AddMatrix(bias, WeightLayout());
    }
    builder_.AddStep(store);
    builder_.AddStep(attention);
    session_ = std::make_unique<Session>(backend, &builder_, 1);
    x_ = RandomFloats(size_t{kSequences} * kContext * width_, 2.0f, &rng);
    Forget();
  }

  // Queries, keys and values of a token.
  float* Token(uint32_t sequence, uint32_t position) {
    return x_.data() + (size_t{sequence} * kContext + position) * width_;
  }
  float* Value(uint32_t sequence, uint32_t position) {
    return Token(sequence, position) + (shape_.n_heads + shape_.n_kv_heads) * shape_.head_dim;
  }

  // Empties all sequences.
  void Forget() {
    std::mt19937 rng(52);
    session_->Forget();
    batch_ = std::make_unique<Batch>(session_->program(),
                                     std::vector<Batch::Part>(kSequences, {0, kContext}), &rng);
  }

  // Returns the outputs of all parts.
  std::vector<float> Run(const std::vector<TokenRange>& parts) {
    return RunParts(session_.get(), *batch_, parts, in_, out_,
                    [&](uint32_t sequence, uint32_t token) { return Token(sequence, token); });
  }
  size_t out_width() const { return size_t{shape_.n_heads} * shape_.head_dim; }

  // Quantises the first full page of a sequence's n tokens, and every second one after it.
  void Quantise(uint32_t sequence, uint32_t n) {
    for (uint32_t i = 0; pages_.k_bits != 0 && (i + 1) * shape_.page_tokens <= n; i += 2) {
      uint32_t& page = batch_->pages[sequence][i];
      KvEdit edit;
      edit.from = page;
      edit.to = page | kQuantisedPage;
      edit.n_tokens = shape_.page_tokens;
      RunArgs args;
      args.edits = {&edit, 1};
      args.logit_rows = LogitRows::kNone;
      ASSERT_EQ(Status::kOk, session_->Run(args)) << session_->message();
      page = edit.to;
    }
  }

 private:
  const TileShape shape_;
  const TilePages pages_;
  ProgramBuilder builder_;
  uint32_t width_ = 0;
  ValueId in_ = kNoValue, out_ = kNoValue;
  std::vector<float> x_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Batch> batch_;
};

// Rows of a run and tokens before it, per sequence.
const std::vector<std::vector<SequenceShape>> kTiledRuns = {
    {{64, 0}},                              // a whole tile of 64 rows
    {{9, 70}},                              // the fewest rows
    {{65, 41}},                             // a last tile of one row, windows inside tiles of keys
    {{20, 3}, {1, 40}, {50, 0}, {17, 165}}  // tiles of several sequences
};

bool HasLargeTile(const TileShape& shape) {
  const auto pairs = [&](uint32_t variant) {
    const AttentionKind kind = KindOf(shape.n_heads, shape.n_kv_heads, shape.head_dim);
    return vulkan::AttentionTileOf(kind, variant, vulkan::Device::kMinSharedMemory).pairs;
  };
  return pairs(vulkan::kAttentionOfLargeTiles) != pairs(vulkan::kAttentionOfTiles);
}

// By the shapes that the device reports, and the shaders that were built.
bool HasMatrices() {
  static const bool has_matrices = [] {
    vulkan::Device device;
    Diag diag;
    const bool has =
        device.Open(vulkan::DeviceChoice(), &diag) == Status::kOk && device.half_coop().m != 0;
    device.Close();
    return has;
  }();
  return has_matrices;
}

class VulkanAttentionTileTest : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    if (const char* problem = NoDevice(backend())) GTEST_SKIP() << problem;
    if (IsOfMatrices() && !HasMatrices()) GTEST_SKIP() << "no f16 cooperative matrices";
  }
  static bool IsOfMatrices() { return GetParam() == vulkan::kAttentionOfMatrices; }
  static double Tolerance() { return IsOfMatrices() ? kMatrixTolerance : kAttentionTolerance; }
  static const Backend* backend() { return vulkan::AttentionBackend(GetParam()); }
};

TEST_P(VulkanAttentionTileTest, Attention_EdgesOfTiles_IsThatOfEachRow) {
  for (const TileShape& shape : kShapes) {
    const auto turn = static_cast<size_t>(&shape - kShapes);
    const bool is_large = GetParam() == vulkan::kAttentionOfLargeTiles;
    if (is_large && !HasLargeTile(shape)) continue;  // the same as the small one
    // Every type for small tiles of the second shape, else one in rotation: a software driver
    // compiles each shader slowly.
    for (const TilePages& pages : kPages) {
      const auto i = static_cast<size_t>(&pages - kPages);
      if ((turn != 1 || is_large) && i != turn % std::size(kPages)) continue;
      SCOPED_TRACE(testing::Message()
                   << shape.n_heads << ":" << shape.n_kv_heads << " dim " << shape.head_dim << " "
                   << DTypeName(pages.type) << " bits " << pages.k_bits);
      Layer rows(vulkan::AttentionBackend(vulkan::kAttentionOfRows), shape, pages);
      Layer tiled(backend(), shape, pages);
      for (const auto& run : kTiledRuns) {
        SCOPED_TRACE(testing::Message() << run.size() << " sequences, first " << run[0].n_rows
                                        << " after " << run[0].n_before);
        std::vector<float> found[2];
        for (Layer* layer : {&rows, &tiled}) {
          layer->Forget();
          std::vector<TokenRange> parts;
          for (uint32_t s = 0; s < run.size(); ++s) {
            const uint32_t before = run[s].n_before, half = before / 2;
            layer->Run({{s, 0, half}});
            layer->Run({{s, half, before - half}});
            ASSERT_NO_FATAL_FAILURE(layer->Quantise(s, before));
            parts.push_back({s, before, run[s].n_rows});
          }
          found[layer == &tiled] = layer->Run(parts);
        }
        ASSERT_EQ(found[0].size(), found[1].size());
        for (size_t at = 0; at < found[0].size(); at += tiled.out_width()) {
          SCOPED_TRACE(testing::Message() << "row " << at / tiled.out_width());
          const float* row = found[0].data() + at;
          ExpectNear(found[1].data() + at, std::vector<float>(row, row + tiled.out_width()),
                     Tolerance());
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// The bits of an output do not depend on where its row lies in a tile, nor on the other rows.
TEST_P(VulkanAttentionTileTest, Attention_AloneAndBesideOtherRows_TheSameBits) {
  for (const TileShape& shape : {kShapes[1], kShapes[2], kShapes[3]}) {
    SCOPED_TRACE(testing::Message() << "dim " << shape.head_dim);
    Layer layer(backend(), shape, kPages[0]);
    layer.Run({{0, 0, 130}});
    layer.Run({{1, 0, 30}});
    const std::vector<float> all = layer.Run({{0, 61, 69}});
    const size_t width = layer.out_width();
    const auto expect = [&](const std::vector<float>& found, size_t row, size_t n, size_t from) {
      ASSERT_EQ(0, std::memcmp(found.data() + row * width, all.data() + from * width,
                               n * width * sizeof(float)));
    };
    expect(layer.Run({{0, 61, 40}}), 0, 40, 0);
    expect(layer.Run({{0, 74, 13}}), 0, 13, 13);
    expect(layer.Run({{1, 19, 11}, {0, 80, 17}}), 11, 17, 19);
  }
}

// A value that is not finite, as damaged weights may produce, is not seen by earlier rows of its
// tile, nor by other sequences.
TEST_P(VulkanAttentionTileTest, Attention_ValueThatIsInfinite_ChangesNoRowThatDoesNotSeeIt) {
  const TileShape& shape = kShapes[1];
  Layer layer(backend(), shape, {DType::kF32});
  const std::vector<TokenRange> parts = {{0, 0, 45}, {1, 0, 30}};
  const std::vector<float> whole = layer.Run(parts);
  layer.Forget();
  layer.Value(0, 12)[3] = std::numeric_limits<float>::infinity();
  const std::vector<float> found = layer.Run(parts);
  const size_t width = layer.out_width();
  for (uint32_t row = 0; row < 75; ++row) {
    const bool sees = row >= 12 && row < 45;
    for (uint32_t i = 0; i < width; ++i) {
      // Of the first three heads, which share it, the channel that is infinite.
      const bool is_infinite = sees && i < 3 * shape.head_dim && i % shape.head_dim == 3;
      if (is_infinite) {
        ASSERT_FALSE(std::isfinite(found[row * width + i])) << row << " " << i;
      } else {
        ASSERT_EQ(whole[row * width + i], found[row * width + i]) << row << " " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiles, VulkanAttentionTileTest,
                         testing::Values(vulkan::kAttentionOfTiles, vulkan::kAttentionOfLargeTiles,
                                         vulkan::kAttentionOfMatrices),
                         [](const auto& i) {
                           return i.param == vulkan::kAttentionOfTiles        ? "Small"
                                  : i.param == vulkan::kAttentionOfLargeTiles ? "Large"
                                                                              : "Matrices";
                         });

// Rows of keys and values that the tiles of a prompt of n tokens read, for one key and value head.
uint64_t RowsRead(uint32_t n, uint32_t tile_rows) {
  uint64_t read = 0;
  for (uint32_t row = 0; row < n; row += tile_rows) read += std::min(n, row + tile_rows);
  return read;
}

TEST(AttentionTiles, LargeTiles_OneBillionParameterGeometry_ReadKeysOncePer64Rows) {
  const AttentionKind kind = KindOf(32, 8, 64);
  const auto times = [&](uint32_t variant) {
    const vulkan::AttentionTile tile =
        vulkan::AttentionTileOf(kind, variant, vulkan::Device::kMinSharedMemory);
    const uint64_t read = RowsRead(4096, tile.rows) * tile.groups_x;
    return static_cast<double>(read) / static_cast<double>(RowsRead(4096, 64) * kind.n_kv_heads);
  };
  EXPECT_LE(times(vulkan::kAttentionOfLargeTiles), 1.2);
  EXPECT_LE(times(vulkan::kAttentionOfTiles), 4.0);
}

// The shader's conditions, and the limits of every device.
TEST(AttentionTiles, EveryGeometry_FitsTheShader) {
  for (const uint32_t variant : {vulkan::kAttentionOfTiles, vulkan::kAttentionOfLargeTiles}) {
    for (uint32_t dim = 1; dim <= 256; ++dim) {
      for (const uint32_t heads : {1u, 2u, 3u, 5u, 7u, 8u, 16u, 32u, 64u, 71u, 300u}) {
        SCOPED_TRACE(testing::Message() << variant << " dim " << dim << " heads " << heads);
        const AttentionKind kind = KindOf(2 * heads, 2, dim);
        for (const uint32_t shared_memory : {16384u, 24576u, 36864u, 49152u}) {
          const vulkan::AttentionTile t = vulkan::AttentionTileOf(kind, variant, shared_memory);
          ASSERT_LE(vulkan::SharedBytesOf(t, dim), shared_memory);
          ASSERT_LE(t.lanes, vulkan::AttentionVariantOf(variant).lanes);
          ASSERT_GE(t.rows, 1u);
          ASSERT_LE(t.rows, 64u);
          ASSERT_LE(t.rows * t.heads, t.pairs);
          ASSERT_GE(t.groups_x * t.heads, kind.n_heads);
          ASSERT_EQ(t.lanes % t.pairs, 0u);
          ASSERT_EQ(t.keys * t.pairs % (4 * t.lanes), 0u);
          ASSERT_GT(t.keys * t.pairs, 0u);
          ASSERT_EQ(t.keys % (t.lanes / t.pairs), 0u);
        }
      }
    }
  }
}

}  // namespace
}  // namespace arn::conformance

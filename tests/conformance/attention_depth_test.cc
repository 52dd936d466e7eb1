// Attention over contexts longer than one task: several segments and many tiles, read directly from
// the pages.
#include <cmath>
#include <cstring>
#include <memory>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/contract/kv_page.h"
#ifdef ARENITE_VULKAN
#include "kernels/vulkan/lower/attention_tiles.h"
#endif
#include "program_builder.h"
#include "run_parts.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kDepth = 1170;  // two segments of 512 and a partial one
constexpr uint32_t kFew = 3;       // tokens compared row by row
constexpr uint32_t kAfter = 12;    // more rows than a device splits over segments
constexpr uint32_t kShort = 40;    // tokens of the second sequence

struct DepthShape {
  uint32_t n_heads, n_kv_heads, head_dim, window, page_tokens;
  bool has_sinks;
  uint32_t chunk = 0;
  float softcap = 0.0f;
  uint32_t n_relative_positions = 0;
};
constexpr DepthShape kShapes[] = {
    {9, 3, 64, 0, 32, false},
    {7, 1, 80, 0, 8, true},
    {2, 1, 20, 600, 64, false},
    {4, 4, 8, 0, 128, false},
    {6, 2, 96, 1000, 16, true},
    {4, 2, 24, 0, 16, false, 800, 3.0f},
    {2, 2, 16, 0, 32, false, 0, 0.0f, 700},
};

// One attention layer without RoPE after kDepth tokens with random K and V.
class Deep {
 public:
  Deep(const DepthShape& shape, DType kv_type, const BackendCase& backend, uint32_t n_threads)
      : shape_(shape), rng_(5), builder_(/*vocab=*/2, /*max_rows=*/64, /*max_context=*/2048) {
    AttentionKind kind;
    kind.n_heads = shape.n_heads;
    kind.n_kv_heads = shape.n_kv_heads;
    kind.head_dim = shape.head_dim;
    kind.window = shape.window;
    kind.chunk = shape.chunk;
    kind.softcap = shape.softcap;
    kind.attention_scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
    kind.rope = kNoRope;
    Step store{QkvRopeParams()};
    auto& store_params = store.Get<QkvRopeParams>();
    Step attention{AttentionParams()};
    auto& attention_params = attention.Get<AttentionParams>();
    width_ = (shape.n_heads + 2 * shape.n_kv_heads) * shape.head_dim;
    store.in = in_ = builder_.AddValue(width_);
    store_params.kind = static_cast<uint16_t>(builder_.AddAttention(
        kind, kv_type, 2, shape.page_tokens, 2 * ((kDepth + kAfter) / shape.page_tokens + 1)));
    store_params.group_layer = kLayer;
    attention.in = store.in;
    attention_params.kind = store_params.kind;
    attention_params.group_layer = kLayer;
    attention.out = out_ = builder_.AddValue(shape.n_heads * shape.head_dim);
    if (shape.has_sinks) {
      sinks_ = RandomFloats(shape.n_heads, 3.0f, &rng_);
      attention_params.sinks = builder_.AddVector(sinks_);
    }
    if (shape.n_relative_positions != 0) {
      bias_ = RandomMatrix(DType::kF32, shape.n_relative_positions, shape.n_heads, false, &rng_);
      attention_params.relative_position_bias = builder_.AddMatrix(bias_, WeightLayout());
    }
    builder_.AddStep(store);
    builder_.AddStep(attention);
    session_ = std::make_unique<Session>(backend.backend, &builder_, n_threads);
    batch_ = std::make_unique<Batch>(
        session_->program(), std::vector<Batch::Part>{{0, kDepth + kAfter}, {0, kShort}}, &rng_);
    x_ = RandomFloats(size_t{kDepth + kAfter + kShort} * width_, 2.0f, &rng_);
    for (uint32_t t = 0; t < kDepth; ++t) {
      for (uint32_t h = 0; h < shape.n_kv_heads; ++h) {
        const KvHeadPage page = PageAt(t, h);
        Fill(page.k, t % shape.page_tokens);
        Fill(page.v, t % shape.page_tokens);
      }
    }
  }

  void SetQuery(uint32_t position, uint32_t channel, float x) {
    x_[size_t{position} * width_ + channel] = x;
  }

  // Tokens [first, first + n) of the first sequence.
  std::vector<float> Run(uint32_t first, uint32_t n) { return Run({{0, first, n}}); }
  // Returns the outputs of all parts.
  std::vector<float> Run(const std::vector<TokenRange>& parts) {
    return RunParts(session_.get(), *batch_, parts, in_, out_,
                    [&](uint32_t sequence, uint32_t token) {
                      const size_t row = token + (sequence == 0 ? 0 : kDepth + kAfter);
                      return x_.data() + row * width_;
                    });
  }

  // softmax(q K^T) V of the token at `position`, in double.
  std::vector<double> Expected(uint32_t position) const {
    const uint32_t dim = shape_.head_dim, group = shape_.n_heads / shape_.n_kv_heads;
    uint32_t first =
        shape_.window == 0 || position < shape_.window ? 0 : position - shape_.window + 1;
    if (shape_.chunk != 0) first = std::max(first, position / shape_.chunk * shape_.chunk);
    const auto cap = static_cast<double>(shape_.softcap);
    std::vector<double> out(shape_.n_heads * dim, 0.0);
    for (uint32_t h = 0; h < shape_.n_heads; ++h) {
      const float* q = x_.data() + size_t{position} * width_ + h * dim;
      std::vector<double> scores;
      double largest = shape_.has_sinks ? static_cast<double>(sinks_[h]) : -1e30, total = 0.0;
      for (uint32_t t = first; t <= position; ++t) {
        double dot = 0.0;
        for (uint32_t i = 0; i < dim; ++i) {
          dot += static_cast<double>(q[i]) * Stored(true, t, h / group, i);
        }
        dot /= std::sqrt(static_cast<double>(dim));
        if (shape_.n_relative_positions != 0) {
          const uint32_t distance = std::min(position - t, shape_.n_relative_positions - 1);
          dot += bias_.exact[distance * shape_.n_heads + h];
        }
        scores.push_back(cap == 0.0 ? dot : cap * std::tanh(dot / cap));
        largest = std::fmax(largest, scores.back());
      }
      for (double& s : scores) total += s = std::exp(s - largest);
      if (shape_.has_sinks) total += std::exp(static_cast<double>(sinks_[h]) - largest);
      for (uint32_t t = first; t <= position; ++t) {
        for (uint32_t i = 0; i < dim; ++i) {
          out[h * dim + i] += scores[t - first] / total * Stored(false, t, h / group, i);
        }
      }
    }
    return out;
  }

 private:
  static constexpr uint32_t kLayer = 1;

  KvHeadPage PageAt(uint32_t position, uint32_t kv_head) const {
    const uint32_t page = batch_->pages[0][position / shape_.page_tokens];
    return KvPageAt(session_->program().kv_groups[0], session_->Pools(0), page, kLayer, kv_head);
  }

  void Fill(const KvHeadBlock& block, uint32_t slot) {
    std::byte* row = block.values + size_t{slot} * shape_.head_dim * ElementBytes(block.type);
    const std::vector<float> x = RandomFloats(shape_.head_dim, 2.0f, &rng_);
    for (uint32_t i = 0; i < shape_.head_dim; ++i) {
      const uint16_t half = F16FromF32(x[i]);
      if (block.type == DType::kInt8) {
        row[i] = static_cast<std::byte>(std::lrint(x[i] * 63.5f));
      } else if (block.type == DType::kF16) {
        std::memcpy(row + i * sizeof half, &half, sizeof half);
      } else {
        std::memcpy(row + i * sizeof(float), &x[i], sizeof(float));
      }
    }
    // Up to twice the usual value, so that a missing scale shows.
    if (block.scales != nullptr) {
      static_cast<float*>(block.scales)[slot] = (1.0f + std::fabs(x[0])) / 100.0f;
    }
  }

  double Stored(bool keys, uint32_t position, uint32_t kv_head, uint32_t i) const {
    const uint32_t slot = position % shape_.page_tokens;
    const KvHeadPage at = PageAt(position, kv_head);
    const KvHeadBlock& block = keys ? at.k : at.v;
    const std::byte* value =
        block.values + (size_t{slot} * shape_.head_dim + i) * ElementBytes(block.type);
    if (block.type == DType::kInt8) {
      return static_cast<double>(static_cast<const float*>(block.scales)[slot]) *
             static_cast<int8_t>(*value);
    }
    if (block.type == DType::kF16) {
      uint16_t half;
      std::memcpy(&half, value, sizeof half);
      return static_cast<double>(F32FromF16(half));
    }
    float x;
    std::memcpy(&x, value, sizeof x);
    return static_cast<double>(x);
  }

  const DepthShape shape_;
  std::mt19937 rng_;
  ProgramBuilder builder_;
  uint32_t width_ = 0;
  ValueId in_ = kNoValue, out_ = kNoValue;
  std::vector<float> sinks_, x_;
  Matrix bias_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Batch> batch_;
};

class AttentionDepthTest : public BackendTest {};

TEST_P(AttentionDepthTest, Attention_ManySegments_EqualsTheFormula) {
  for (const DepthShape& shape : kShapes) {
    for (const DType kv_type : kKvTypes) {
      SCOPED_TRACE(testing::Message() << shape.n_heads << ":" << shape.n_kv_heads << " dim "
                                      << shape.head_dim << " " << DTypeName(kv_type));
      Deep deep(shape, kv_type, GetParam(), GetParam().n_threads);
      const std::vector<float> found = deep.Run(kDepth, 1);
      ExpectNear(found.data(), deep.Expected(kDepth),
                 kv_type == DType::kInt8 ? kInt8AttentionTolerance : kAttentionTolerance);
      if (HasFatalFailure()) return;
    }
  }
}

// The output of a token must not depend on the other tokens of the chunk or on the number of
// threads.
TEST_P(AttentionDepthTest, Attention_AloneInAChunkAndByThreads_TheSameBits) {
  for (const DepthShape& shape : kShapes) {
    for (const DType kv_type : kKvTypes) {
      SCOPED_TRACE(testing::Message() << shape.n_heads << ":" << shape.n_kv_heads << " dim "
                                      << shape.head_dim << " " << DTypeName(kv_type));
      Deep one(shape, kv_type, GetParam(), 1);
      const std::vector<float> chunk = one.Run(kDepth, kAfter), few = one.Run(kDepth, kFew);
      ASSERT_EQ(0, std::memcmp(few.data(), chunk.data(), few.size() * sizeof(float)));
      // A device has no threads.
      std::unique_ptr<Deep> three;
      if (GetParam().backend->host_kv != nullptr) {
        three = std::make_unique<Deep>(shape, kv_type, GetParam(), 3);
      }
      for (uint32_t i = 0; i < kFew; ++i) {
        const std::vector<float> alone = (three ? *three : one).Run(kDepth + i, 1);
        ASSERT_EQ(0, std::memcmp(alone.data(), chunk.data() + i * alone.size(),
                                 alone.size() * sizeof(float)))
            << "token " << i;
      }
      // In a batch with a token that sees a single segment.
      const std::vector<float> brief = one.Run({{1, 0, kShort}});
      const std::vector<float> both = one.Run({{1, kShort - 1, 1}, {0, kDepth, 1}});
      const size_t row = both.size() / 2;
      ASSERT_EQ(0, std::memcmp(both.data(), &brief[brief.size() - row], row * sizeof(float)));
      ASSERT_EQ(0, std::memcmp(&both[row], chunk.data(), row * sizeof(float)));
    }
  }
}

// Damaged weights may produce NaN or infinity. It must stay visible and within its head.
TEST_P(AttentionDepthTest, Attention_QueryThatIsNotFinite_NotFiniteInItsHeadAlone) {
  const DepthShape& shape = kShapes[0];
  for (const DType kv_type : kKvTypes) {
    for (const float bad : {std::nanf(""), HUGE_VALF}) {
      SCOPED_TRACE(testing::Message() << DTypeName(kv_type) << " " << bad);
      Deep whole(shape, kv_type, GetParam(), 1), damaged(shape, kv_type, GetParam(), 1);
      damaged.SetQuery(kDepth, 2 * shape.head_dim + 5, bad);
      const std::vector<float> expected = whole.Run(kDepth, 1), found = damaged.Run(kDepth, 1);
      for (uint32_t i = 0; i < found.size(); ++i) {
        if (i / shape.head_dim == 2) {
          ASSERT_FALSE(std::isfinite(found[i])) << i;
        } else {
          ASSERT_EQ(expected[i], found[i]) << i;
        }
      }
    }
  }
}

// A device attends to many rows one by one here. The sums of tiles have another order, and their
// own test (attention_tile_test.cc).
std::vector<BackendCase> RowBackends() {
  std::vector<BackendCase> cases = AllBackends();
#ifdef ARENITE_VULKAN
  for (BackendCase& c : cases) {
    if (c.name == "Vulkan") c.backend = vulkan::AttentionBackend(vulkan::kAttentionOfRows);
  }
#endif
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionDepthTest, testing::ValuesIn(RowBackends()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance

// Attention with random masks and positions: each backend against the reference, over every shape.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/reference/backend_reference.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kChunk = 64;  // rows of a run at most

// One attention layer with RoPE on one backend, and the pages of one sequence.
class MaskedLayer {
 public:
  MaskedLayer(const AttentionShape& shape, DType kv_dtype, const Backend* backend,
              uint32_t n_threads, uint32_t n_tokens)
      : builder_(/*vocab=*/2, kChunk, n_tokens), rng_(31) {
    AttentionKind kind;
    kind.n_heads = shape.n_heads;
    kind.n_kv_heads = shape.n_kv_heads;
    kind.head_dim = shape.head_dim;
    kind.window = shape.window;
    kind.chunk = shape.chunk;
    kind.softcap = shape.softcap;
    kind.query_temperature = shape.temperature;
    kind.query_temperature_step = 5;
    kind.query_temperature_shift = shape.temperature_shift;
    kind.attention_scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
    kind.rope = kNoRope;
    width_ = (shape.n_heads + 2 * shape.n_kv_heads) * shape.head_dim;
    out_width_ = shape.n_heads * shape.head_dim;
    QkvRopeParams rope;
    if (shape.rotary_dim != 0) {
      RopeAnglesParams angles;
      kind.rope = builder_.AddRope(shape.rotary_dim, 10000.0f);
      angles.rope = static_cast<uint16_t>(kind.rope);
      rope.angles = builder_.AddValue(shape.rotary_dim);
      builder_.AddStep(angles, kNoValue, rope.angles);
    }
    in_ = builder_.AddValue(width_);
    out_ = builder_.AddValue(out_width_);
    AttentionParams attention;
    attention.kind = rope.kind = static_cast<uint16_t>(
        builder_.AddAttention(kind, kv_dtype, 1, shape.page_tokens, n_tokens));
    if (shape.has_sinks) {
      attention.sinks = builder_.AddVector(RandomFloats(shape.n_heads, 3.0f, &rng_));
    }
    // Only programs that take embeddings have masks on a device.
    EmbedParams embed;
    embed.weight = builder_.AddMatrix(RandomMatrix(DType::kF32, 2, 4, false, &rng_), {});
    embed.embedding_stride = 4;
    builder_.AddStep(embed, kNoValue, builder_.AddValue(4));
    builder_.AddStep(rope, in_, kNoValue);
    builder_.AddStep(attention, in_, out_);
    session_ = std::make_unique<Session>(backend, &builder_, n_threads);
    batch_ = std::make_unique<Batch>(session_->program(), std::vector<Batch::Part>{{0, n_tokens}},
                                     &rng_);
    batch_->logit_rows = LogitRows::kNone;
  }

  // Runs rows [n, width] at `first` and returns their attention [n, heads, head_dim].
  std::vector<float> Run(uint32_t first, const std::vector<float>& rows, const RowMask* mask) {
    const auto n = static_cast<uint32_t>(rows.size() / width_);
    std::memcpy(session_->ValueData(in_), rows.data(), rows.size() * sizeof(float));
    SequenceRows sequence = batch_->sequences[0];
    sequence.first_row = 0;
    sequence.first_position = first;
    sequence.n_rows = n;
    const std::vector<int32_t> tokens(n, 0);
    RunArgs args;
    args.tokens = {tokens.data(), tokens.size()};
    args.sequences = {&sequence, 1};
    args.logit_rows = LogitRows::kNone;
    args.mask = mask;
    EXPECT_EQ(Status::kOk, session_->Run(args)) << session_->message();
    const float* out = session_->ValueData(out_);
    return {out, out + size_t{n} * out_width_};
  }
  uint32_t width() const { return width_; }

 private:
  ProgramBuilder builder_;
  std::mt19937 rng_;
  uint32_t width_, out_width_;
  ValueId in_, out_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Batch> batch_;
};

struct RandomMask {
  RandomMask(uint32_t before, uint32_t n, uint32_t n_tokens, std::mt19937* rng)
      : positions(n),
        mask{nullptr, nullptr,
             std::uniform_int_distribution<uint32_t>(before > 40 ? before - 40 : 0, before)(*rng)} {
    const uint32_t cells = before + n - mask.first;
    for (uint32_t& p : positions)
      p = std::uniform_int_distribution<uint32_t>(0, n_tokens - 1)(*rng);
    // From a few visible cells to nearly all: whole tiles are hidden too.
    std::bernoulli_distribution is_visible((*rng)() % 8 / 8.0 + 0.05);
    visible.resize(size_t{n} * cells);
    for (uint32_t r = 0; r < n; ++r) {
      for (uint32_t i = 0; i < cells; ++i) {
        visible[size_t{r} * cells + i] = mask.first + i == before + r || is_visible(*rng);
      }
    }
    mask.positions = positions.data();
    mask.visible = visible.data();
  }
  RandomMask(const RandomMask&) = delete;

  std::vector<uint32_t> positions;
  std::vector<uint8_t> visible;
  RowMask mask;
};

// Rows see further than themselves, as those of images do.
struct PrefixMask {
  PrefixMask(uint32_t before, uint32_t n, uint32_t, std::mt19937* rng)
      : visible(size_t{n} * n), mask{nullptr, nullptr, before} {
    uint32_t end = 0;
    for (uint32_t r = 0; r < n; ++r) {
      end = std::max(end, r + 1);
      if ((*rng)() % 3 == 0) end += static_cast<uint32_t>((*rng)()) % (n - end + 1);
      std::fill_n(visible.begin() + r * n, end, uint8_t{1});
    }
    mask.visible = visible.data();
  }
  PrefixMask(const PrefixMask&) = delete;

  std::vector<uint8_t> visible;
  RowMask mask;
};

class AttentionMaskTest : public BackendTest {
 protected:
  template <typename Mask = RandomMask>
  void Compare(const AttentionShape& shape, DType kv_dtype, uint32_t before) {
    SCOPED_TRACE(testing::Message()
                 << shape.n_heads << ":" << shape.n_kv_heads << " dim " << shape.head_dim
                 << " window " << shape.window << " page " << shape.page_tokens << " "
                 << DTypeName(kv_dtype) << " after " << before);
    const uint32_t n_tokens = before + 2 * kChunk;
    MaskedLayer tested(shape, kv_dtype, GetParam().backend, GetParam().n_threads, n_tokens);
    MaskedLayer reference(shape, kv_dtype, ReferenceBackend(), 1, n_tokens);
    std::mt19937 rng(77);
    uint32_t length = 0;
    const auto run = [&](uint32_t n, const RowMask* mask) {
      const std::vector<float> rows = RandomFloats(size_t{n} * tested.width(), 2.0f, &rng);
      const std::vector<float> found = tested.Run(length, rows, mask);
      const std::vector<float> wanted = reference.Run(length, rows, mask);
      const std::vector<double> exact(wanted.begin(), wanted.end());
      // A last-bit difference may make f16 and int8 round the other way.
      ExpectNear(found.data(), exact,
                 kv_dtype == DType::kF32   ? 2 * kAttentionTolerance
                 : kv_dtype == DType::kF16 ? 5e-4
                                           : 4e-3);
      length += n;
    };
    while (length < before) run(std::min(before - length, kChunk), nullptr);
    for (const uint32_t n : {1u, 7u, 33u}) {
      const Mask mask(length, n, n_tokens, &rng);
      run(n, &mask.mask);
      if (HasFatalFailure()) return;
    }
    run(5, nullptr);
  }
};

TEST_P(AttentionMaskTest, EveryShapeAndType_AsTheReference) {
  for (const AttentionShape& shape : kAttentionShapes) {
    if (shape.qk_norm || shape.clip != 0.0f) continue;  // not a matter of masks
    for (const DType kv_dtype : kKvTypes) Compare(shape, kv_dtype, 21);
  }
}

// Over a segment's border, and with whole tiles that a row does not see.
TEST_P(AttentionMaskTest, LongPast_AsTheReference) {
  for (const DType kv_dtype : kKvTypes) Compare({4, 2, 16, 16, 0, 32, false}, kv_dtype, 490);
}

class AttentionPrefixMaskTest : public AttentionMaskTest {};

TEST_P(AttentionPrefixMaskTest, RowsThatSeeAhead_AsTheReference) {
  const AttentionShape shapes[] = {{9, 3, 64, 64, 0, 32, false}, {4, 2, 64, 64, 13, 32, false}};
  for (const AttentionShape& shape : shapes) Compare<PrefixMask>(shape, DType::kF32, 21);
  for (const DType kv_dtype : {DType::kF32, DType::kInt8}) {
    Compare<PrefixMask>({4, 2, 16, 16, 0, 32, false}, kv_dtype, 490);
  }
}

// Returns the backends that run such masks, but for the reference.
std::vector<BackendCase> PrefixMaskBackends() {
  std::vector<BackendCase> cases;
  for (const BackendCase& one : AllBackends()) {
    const bool takes = one.backend->takes_masks || one.backend->takes_prefix_masks;
    if (takes && one.backend != ReferenceBackend()) cases.push_back(one);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionPrefixMaskTest, testing::ValuesIn(PrefixMaskBackends()),
                         [](const auto& i) { return i.param.name; });

// Returns the backends that run masks, but for the reference.
std::vector<BackendCase> MaskBackends() {
  std::vector<BackendCase> cases;
  for (const BackendCase& one : AllBackends()) {
    if (one.backend->takes_masks && one.backend != ReferenceBackend()) cases.push_back(one);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionMaskTest, testing::ValuesIn(MaskBackends()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance

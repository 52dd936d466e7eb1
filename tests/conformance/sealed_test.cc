// Sealed pages: what an edit that seals writes, and kAttention over tables that name both kinds.
#include <cmath>
#include <cstring>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/kv_page.h"
#include "kernels/kv_rows.h"
#include "platform/base/arith.h"
#include "program_builder.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kTokens = 64;  // before the run that is looked at
constexpr uint32_t kRows = 3;

// Slot `slot` of a block, by the words of kernels/kv_view.h.
std::vector<double> Row(const KvGroup& group, bool keys, const KvHeadBlock& block, uint32_t slot) {
  const uint32_t dim = group.head_dim;
  std::vector<double> x(dim);
  if (block.bits == 0) {
    std::vector<float> open(dim);
    LoadKvRow(group, keys, block, slot, open.data());
    return {open.begin(), open.end()};
  }
  const uint32_t row_bytes = (dim * block.bits + 7) / 8;
  const uint32_t value_groups = (dim + group.group_size - 1) / group.group_size;
  for (uint32_t i = 0; i < dim; ++i) {
    const auto byte = static_cast<uint32_t>(block.values[slot * row_bytes + i % row_bytes]);
    const uint32_t value = byte >> (i / row_bytes * block.bits) & ((1u << block.bits) - 1);
    const uint32_t pair =
        keys ? slot / group.group_size * dim + i : slot * value_groups + i / group.group_size;
    uint16_t range[2];
    std::memcpy(range, static_cast<const uint16_t*>(block.scales) + 2 * pair, sizeof range);
    x[i] = static_cast<double>(F32FromF16(range[1])) +
           static_cast<double>(F32FromF16(range[0])) * value;
  }
  return x;
}

// One attention layer of a group of two, and one sequence that has run kTokens tokens.
class SealedSession {
 public:
  SealedSession(const BackendCase& backend, const SealedShape& shape, SealedBits bits, DType open,
                std::mt19937* rng)
      : shape_(shape), rng_(rng), builder_(2, kTokens, 2 * kTokens) {
    AttentionKind kind;
    kind.n_heads = shape.n_heads;
    kind.n_kv_heads = shape.n_kv_heads;
    kind.head_dim = shape.head_dim;
    kind.window = shape.window;
    kind.scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
    const uint32_t rotary_dim = shape.head_dim / 2 * 2;
    kind.rope = builder_.AddRope(rotary_dim, 10000.0f);
    scale_ = static_cast<double>(kind.scale);
    width_ = (shape.n_heads + 2 * shape.n_kv_heads) * shape.head_dim;
    Step angles, rope, attention;
    angles.op = Op::kRopeAngles;
    angles.rope = static_cast<uint16_t>(kind.rope);
    angles.out = builder_.AddValue(rotary_dim);
    rope.op = Op::kQkvRope;
    rope.in = in_ = builder_.AddValue(width_);
    rope.angles = angles.out;
    const uint32_t pages = 2 * kTokens / shape.page_tokens;
    const uint32_t k = builder_.AddAttention(kind, open, 2, shape.page_tokens, pages);
    builder_.AddSealedPages(k, bits.k, bits.v, shape.group_size, pages);
    rope.kind = static_cast<uint16_t>(k);
    rope.group_layer = kLayer;
    attention = rope;
    attention.op = Op::kAttention;
    attention.out = out_ = builder_.AddValue(shape.n_heads * shape.head_dim);
    builder_.AddStep(angles);
    builder_.AddStep(rope);
    builder_.AddStep(attention);
    session_ = std::make_unique<Session>(backend.backend, &builder_, backend.n_threads);
    batch_ =
        std::make_unique<Batch>(session_->program(), std::vector<Batch::Part>{{0, kTokens}}, rng);
    Run(kTokens);
  }

  const KvGroup& group() const { return session_->program().kv_groups[0]; }
  KvHeadPage Page(uint32_t index, uint32_t head) {
    return KvPageAt(group(), session_->Pools(0), batch_->pages[0][index], kLayer, head);
  }
  uint32_t page(uint32_t index) const { return batch_->pages[0][index]; }

  // Seals the page at `index` of the table into sealed page `to`.
  void Seal(uint32_t index, uint32_t to) {
    KvEdit edit;
    edit.from = batch_->pages[0][index];
    edit.to = to | kSealedPage;
    edit.n_tokens = shape_.page_tokens;
    RunArgs args;
    args.edits = {&edit, 1};
    args.logit_rows = LogitRows::kNone;
    ASSERT_EQ(Status::kOk, session_->Run(args)) << session_->message();
    batch_->pages[0][index] = edit.to;
  }

  void Run(uint32_t n_rows) {
    if (n_rows != kTokens) batch_->Advance({n_rows});
    const auto x = RandomFloats(size_t{n_rows} * width_, 2.0f, rng_);
    std::memcpy(session_->ValueData(in_), x.data(), x.size() * sizeof(float));
    RunArgs args = batch_->Args();
    args.logit_rows = LogitRows::kNone;
    ASSERT_EQ(Status::kOk, session_->Run(args)) << session_->message();
  }

  // The last run's rows against softmax(q K^T) V in double over what the pages hold.
  void ExpectAttention(uint32_t n_rows) {
    const uint32_t dim = shape_.head_dim, first = batch_->sequences[0].first_position;
    for (uint32_t row = 0; row < n_rows; ++row) {
      const uint32_t position = first + row;
      const float* x = session_->ValueData(in_) + size_t{row} * width_;  // after RoPE
      std::vector<double> expected(shape_.n_heads * dim, 0.0);
      for (uint32_t h = 0; h < shape_.n_heads; ++h) {
        Attend(x + h * dim, position, h / (shape_.n_heads / shape_.n_kv_heads),
               expected.data() + h * dim);
      }
      ExpectNear(session_->ValueData(out_) + size_t{row} * expected.size(), expected,
                 kInt8AttentionTolerance);
    }
  }

 private:
  static constexpr uint32_t kLayer = 1;

  void Attend(const float* q, uint32_t position, uint32_t kv_head, double* out) {
    const uint32_t dim = shape_.head_dim;
    const uint32_t first =
        shape_.window == 0 || position + 1 < shape_.window ? 0 : position + 1 - shape_.window;
    std::vector<double> p;
    std::vector<std::vector<double>> values;
    double largest = -INFINITY, total = 0.0;
    for (uint32_t t = first; t <= position; ++t) {
      const KvHeadPage page = Page(t / shape_.page_tokens, kv_head);
      const std::vector<double> k = Row(group(), true, page.k, t % shape_.page_tokens);
      values.push_back(Row(group(), false, page.v, t % shape_.page_tokens));
      double dot = 0.0;
      for (uint32_t i = 0; i < dim; ++i) dot += static_cast<double>(q[i]) * k[i];
      p.push_back(dot * scale_);
      largest = std::fmax(largest, p.back());
    }
    for (double& e : p) total += e = std::exp(e - largest);
    for (size_t t = 0; t < p.size(); ++t) {
      for (uint32_t i = 0; i < dim; ++i) out[i] += p[t] / total * values[t][i];
    }
  }

  SealedShape shape_;
  std::mt19937* rng_;
  ProgramBuilder builder_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Batch> batch_;
  ValueId in_ = 0, out_ = 0;
  uint32_t width_ = 0;
  double scale_ = 0.0;
};

using Rows = std::vector<std::vector<double>>;

// That `sealed` is `open` in the nearest steps of the smallest range that holds the group's values.
void ExpectSealed(const Rows& open, const Rows& sealed, bool keys, uint32_t group_size,
                  uint32_t bits) {
  const auto n_tokens = static_cast<uint32_t>(open.size());
  const auto dim = static_cast<uint32_t>(open[0].size());
  const double steps = (1u << bits) - 1;
  for (uint32_t t = 0; t < n_tokens; ++t) {
    for (uint32_t i = 0; i < dim; ++i) {
      double low = open[t][i], high = low;
      const uint32_t first = (keys ? t : i) / group_size * group_size;
      const uint32_t end = std::min(first + group_size, keys ? n_tokens : dim);
      for (uint32_t other = first; other < end; ++other) {
        const double x = keys ? open[other][i] : open[t][other];
        low = std::fmin(low, x);
        high = std::fmax(high, x);
      }
      // Half a step, and what rounding the pair to 11 bits adds at either end of the range.
      const double least_error = std::fabs(low) / 2048;
      const double bound = (high - low + least_error) / steps * (0.5 + steps / 2048) + least_error;
      ASSERT_LE(std::fabs(open[t][i] - sealed[t][i]), bound + 1e-7)
          << (keys ? "keys" : "values") << " token " << t << " channel " << i;
    }
  }
}

// Which of `types` a combination goes through: all of them in host memory. On a device, where each
// makes shaders of its own to compile, one in turn: so each type meets each shape and each number
// of bits, though not all three at once.
std::vector<DType> TypesFor(const BackendCase& backend, const SealedShape& shape,
                            const SealedBits& bits, const std::vector<DType>& types) {
  if (backend.backend->kv_in_memory) return types;
  const auto turn =
      static_cast<size_t>(&shape - kSealedShapes) + static_cast<size_t>(&bits - kSealedBits);
  return {types[turn % types.size()]};
}

class SealedTest : public BackendTest {};

TEST_P(SealedTest, SealingEdit_EveryShapeAndBits_IsTheNearestStep) {
  std::mt19937 rng(31);
  for (const SealedShape& shape : kSealedShapes) {
    for (const SealedBits& bits : kSealedBits) {
      for (DType open_type : TypesFor(GetParam(), shape, bits, {DType::kInt8, DType::kF32})) {
        SCOPED_TRACE(testing::Message() << "dim " << shape.head_dim << " page " << shape.page_tokens
                                        << " group " << shape.group_size << " bits " << bits.k
                                        << "/" << bits.v << " " << DTypeName(open_type));
        SealedSession session(GetParam(), shape, bits, open_type, &rng);
        for (uint32_t head = 0; head < shape.n_kv_heads; ++head) {
          Rows open[2], sealed[2];
          const uint32_t index = 1 + head;
          const uint32_t first_page = session.page(index);
          const auto read = [&](Rows* rows) {
            const KvHeadPage page = session.Page(index, head);
            for (uint32_t t = 0; t < shape.page_tokens; ++t) {
              rows[0].push_back(Row(session.group(), true, page.k, t));
              rows[1].push_back(Row(session.group(), false, page.v, t));
            }
          };
          if (index * shape.page_tokens >= kTokens) continue;
          read(open);
          ASSERT_NO_FATAL_FAILURE(session.Seal(index, first_page));
          read(sealed);
          for (const bool keys : {true, false}) {
            const uint32_t n_bits = keys ? bits.k : bits.v;
            const Rows& before = open[keys ? 0 : 1];
            const Rows& after = sealed[keys ? 0 : 1];
            if (n_bits == 0) {
              ASSERT_EQ(before, after);
            } else {
              ASSERT_NO_FATAL_FAILURE(ExpectSealed(before, after, keys, shape.group_size, n_bits));
            }
          }
        }
      }
    }
  }
}

TEST_P(SealedTest, Attention_OpenAndSealedPages_EqualsTheFormula) {
  std::mt19937 rng(32);
  for (const SealedShape& shape : kSealedShapes) {
    for (const SealedBits& bits : kSealedBits) {
      for (DType open_type :
           TypesFor(GetParam(), shape, bits, {DType::kInt8, DType::kF16, DType::kF32})) {
        SCOPED_TRACE(testing::Message()
                     << shape.n_heads << ":" << shape.n_kv_heads << " dim " << shape.head_dim
                     << " page " << shape.page_tokens << " group " << shape.group_size << " window "
                     << shape.window << " bits " << bits.k << "/" << bits.v << " "
                     << DTypeName(open_type));
        SealedSession session(GetParam(), shape, bits, open_type, &rng);
        // All whole pages but the last, in an order of their own, and one of them not.
        const uint32_t n = kTokens / shape.page_tokens - 1;
        for (uint32_t i = 0; i < n; ++i) {
          if (i == 1) continue;
          ASSERT_NO_FATAL_FAILURE(session.Seal(i, (i * 5 + 3) % (2 * n + 1)));
        }
        for (uint32_t rows : {kRows, 1u}) {
          ASSERT_NO_FATAL_FAILURE(session.Run(rows));
          ASSERT_NO_FATAL_FAILURE(session.ExpectAttention(rows));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, SealedTest, testing::ValuesIn(AllBackends()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance

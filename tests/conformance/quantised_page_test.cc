// Quantised pages: the edit that quantises a page, and kAttention over tables with both page types.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends.h"
#include "cases.h"
#include "expect_near.h"
#include "kernels/contract/kv_page.h"
#include "kernels/cpu/int8_dot/int8_dot.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/kv/kv_rows.h"
#include "platform/base/arith.h"
#include "program_builder.h"
#include "scalar_dot.h"
#include "tests/support/test_time.h"

namespace arn::conformance {
namespace {

constexpr uint32_t kTokens = 64;    // tokens before the tested run, or per earlier run
constexpr uint32_t kDeepRuns = 10;  // earlier runs of kTokens: more than one attention segment
constexpr uint32_t kRows = 3;
constexpr uint32_t kManyRows = 7;
// Timed runs per page type, and the largest allowed time ratio of quantised to int8 pages in cache.
// From memory, fewer bytes make up for it.
constexpr uint32_t kTimes = 200;
constexpr double kSlowest = 1.6;

// Reads slot `slot` of a block by the layout in kernels/contract/kv_view.h.
std::vector<double> Row(const KvGroup& group, bool keys, const KvHeadBlock& block, uint32_t slot) {
  const uint32_t dim = group.head_dim;
  std::vector<double> x(dim);
  if (block.bits == 0) {
    std::vector<float> active(dim);
    LoadKvRow(group, keys, block, slot, active.data());
    return {active.begin(), active.end()};
  }
  const uint32_t row_bytes = (dim * block.bits + 7) / 8;
  const uint32_t value_groups = (dim + group.group_size - 1) / group.group_size;
  for (uint32_t i = 0; i < dim; ++i) {
    const auto byte = static_cast<uint32_t>(block.values[slot * row_bytes + i % row_bytes]);
    const uint32_t value = byte >> (i / row_bytes * block.bits) & ((1u << block.bits) - 1);
    const uint32_t pair = group.RangesByChannel(keys) ? slot / group.group_size * dim + i
                                                      : slot * value_groups + i / group.group_size;
    uint16_t range[2];
    std::memcpy(range, static_cast<const uint16_t*>(block.scales) + 2 * pair, sizeof range);
    x[i] = static_cast<double>(F32FromF16(range[1])) +
           static_cast<double>(F32FromF16(range[0])) * value;
  }
  return x;
}

// One attention layer in a group of two, and one sequence after n_runs runs of kTokens tokens.
class QuantisedSession {
 public:
  QuantisedSession(const BackendCase& backend, const QuantisedShape& shape, QuantisedBits bits,
                   DType active, std::mt19937* rng, uint32_t n_runs = 1, uint32_t n_threads = 0)
      : shape_(shape), rng_(rng), builder_(2, kTokens, (n_runs + 1) * kTokens) {
    AttentionKind kind;
    kind.n_heads = shape.n_heads;
    kind.n_kv_heads = shape.n_kv_heads;
    kind.head_dim = shape.head_dim;
    kind.window = shape.window;
    kind.attention_scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
    const uint32_t rotary_dim = shape.head_dim / 2 * 2;
    kind.rope = builder_.AddRope(rotary_dim, 10000.0f);
    scale_ = static_cast<double>(kind.attention_scale);
    width_ = (shape.n_heads + 2 * shape.n_kv_heads) * shape.head_dim;
    Step angles{RopeAnglesParams()};
    Step rope{QkvRopeParams()};
    auto& rope_params = rope.Get<QkvRopeParams>();
    angles.Get<RopeAnglesParams>().rope = static_cast<uint16_t>(kind.rope);
    angles.out = builder_.AddValue(rotary_dim);
    rope.in = in_ = builder_.AddValue(width_);
    rope_params.angles = angles.out;
    const uint32_t pages = (n_runs + 1) * kTokens / shape.page_tokens;
    const uint32_t k = builder_.AddAttention(kind, active, 2, shape.page_tokens, pages);
    builder_.AddQuantisedPages(k, bits.k, bits.v, shape.group_size, pages, bits.k_by_token,
                               bits.v_by_channel);
    rope_params.kind = static_cast<uint16_t>(k);
    rope_params.group_layer = kLayer;
    Step attention{AttentionParams{.kind = rope_params.kind, .group_layer = kLayer}, rope.in};
    attention.out = out_ = builder_.AddValue(shape.n_heads * shape.head_dim);
    builder_.AddStep(angles);
    builder_.AddStep(rope);
    builder_.AddStep(attention);
    session_ = std::make_unique<Session>(backend.backend, &builder_,
                                         n_threads == 0 ? backend.n_threads : n_threads);
    batch_ =
        std::make_unique<Batch>(session_->program(), std::vector<Batch::Part>{{0, kTokens}}, rng);
    for (uint32_t i = 0; i < n_runs; ++i) Run(kTokens);
  }

  const KvGroup& group() const { return session_->program().kv_groups[0]; }
  KvHeadPage Page(uint32_t index, uint32_t head) {
    return KvPageAt(group(), session_->Pools(0), batch_->pages[0][index], kLayer, head);
  }
  uint32_t page(uint32_t index) const { return batch_->pages[0][index]; }

  // Quantises the page at `index` of the table into quantised page `to`.
  void Quantise(uint32_t index, uint32_t to) {
    KvEdit edit;
    edit.from = batch_->pages[0][index];
    edit.to = to | kQuantisedPage;
    edit.n_tokens = shape_.page_tokens;
    RunArgs args;
    args.edits = {&edit, 1};
    args.logit_rows = LogitRows::kNone;
    ASSERT_EQ(Status::kOk, session_->Run(args)) << session_->message();
    batch_->pages[0][index] = edit.to;
  }

  // Runs the next n_rows tokens.
  void Run(uint32_t n_rows) {
    if (has_run_) batch_->Advance({n_rows});
    has_run_ = true;
    x_ = RandomFloats(size_t{n_rows} * width_, 2.0f, rng_);
    RunRows(batch_->sequences[0], 0);
  }
  // Runs row `row` of the last run alone and returns its output. The row may be run again.
  std::vector<float> RunAlone(uint32_t row) {
    SequenceRows alone = batch_->sequences[0];
    alone.first_position += row;
    alone.n_rows = 1;
    RunRows(alone, row);
    return Outputs(1);
  }
  // Runs attention of the last run's rows again on the CPU kernel with `dot`, one task per KV head.
  void AttendWith(const cpu::Int8Dot& dot) {
    const SequenceRows& rows = batch_->sequences[0];
    const AttentionKind& kind = session_->program().kinds[0];
    std::vector<std::byte> scratch(cpu::AttentionScratchBytes(kind) + kSliceAlign);
    cpu::AttentionTile tile = {};
    tile.kind = &kind;
    tile.group = &group();
    tile.pools = session_->Pools(0);
    tile.table = rows.tables;
    tile.group_layer = kLayer;
    tile.n_heads = kind.n_heads / kind.n_kv_heads;
    tile.n_rows = rows.n_rows;
    tile.first_position = rows.first_position;
    tile.q = session_->ValueData(in_);
    tile.q_stride = width_;
    tile.out = session_->ValueData(out_);
    tile.out_stride = size_t{kind.n_heads} * kind.head_dim;
    tile.dot = &dot;
    const auto at = reinterpret_cast<uintptr_t>(scratch.data());
    tile.scratch = scratch.data() + (AlignUp(at, kSliceAlign) - at);
    std::fill_n(tile.out, tile.n_rows * tile.out_stride, 0.0f);
    for (tile.kv_head = 0; tile.kv_head < kind.n_kv_heads; ++tile.kv_head) {
      tile.first_head = tile.kv_head * tile.n_heads;
      cpu::ChooseAttention()(tile);
    }
  }
  std::vector<float> Outputs(uint32_t n_rows) {
    const float* out = session_->ValueData(out_);
    return {out, out + size_t{n_rows} * shape_.n_heads * shape_.head_dim};
  }

  // Compares the last run's rows with softmax(q K^T) V in double over the stored pages.
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

  // Runs rows of x_ from `first` on.
  void RunRows(const SequenceRows& sequence, uint32_t first) {
    std::memcpy(session_->ValueData(in_), x_.data() + size_t{first} * width_,
                size_t{sequence.n_rows} * width_ * sizeof(float));
    RunArgs args = batch_->Args();
    args.tokens = {args.tokens.data(), sequence.n_rows};
    args.sequences = {&sequence, 1};
    args.logit_rows = LogitRows::kNone;
    ASSERT_EQ(Status::kOk, session_->Run(args)) << session_->message();
  }

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

  QuantisedShape shape_;
  std::mt19937* rng_;
  ProgramBuilder builder_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Batch> batch_;
  ValueId in_ = 0, out_ = 0;
  bool has_run_ = false;
  std::vector<float> x_;  // rows of the last run
  uint32_t width_ = 0;
  double scale_ = 0.0;
};

using Rows = std::vector<std::vector<double>>;

// Expects each value of `quantised` to equal the nearest step of the smallest range that covers its
// group.
void ExpectQuantised(const Rows& active, const Rows& quantised, bool by_channel,
                     uint32_t group_size, uint32_t bits) {
  const auto n_tokens = static_cast<uint32_t>(active.size());
  const auto dim = static_cast<uint32_t>(active[0].size());
  const double steps = (1u << bits) - 1;
  for (uint32_t t = 0; t < n_tokens; ++t) {
    for (uint32_t i = 0; i < dim; ++i) {
      double low = active[t][i], high = low;
      const uint32_t first = (by_channel ? t : i) / group_size * group_size;
      const uint32_t end = std::min(first + group_size, by_channel ? n_tokens : dim);
      for (uint32_t other = first; other < end; ++other) {
        const double x = by_channel ? active[other][i] : active[t][other];
        low = std::fmin(low, x);
        high = std::fmax(high, x);
      }
      // Half a step, plus the error of rounding the pair to 11 bits at either end of the range.
      const double least_error = std::fabs(low) / 2048;
      const double bound = (high - low + least_error) / steps * (0.5 + steps / 2048) + least_error;
      ASSERT_LE(std::fabs(active[t][i] - quantised[t][i]), bound + 1e-7)
          << (by_channel ? "by channel" : "by token") << ", token " << t << " channel " << i;
    }
  }
}

// Returns the page types to test: all in host memory. A device compiles shaders per type, so it
// gets one type in rotation, and every third pair of shape and bits. Without subgroups only the
// reductions differ: each shape then gets one number of bits.
std::vector<DType> TypesFor(const BackendCase& backend, const QuantisedShape& shape,
                            const QuantisedBits& bits, const std::vector<DType>& types) {
  if (backend.backend->host_kv != nullptr) return types;
  if (!bits.has_default_ranges()) return {};  // refused: VulkanPlanTest
  constexpr size_t kDefaultBits = 5;
  const auto row = static_cast<size_t>(&shape - kQuantisedShapes);
  const auto column = static_cast<size_t>(&bits - kQuantisedBits);
  const bool is_taken =
      backend.name == "VulkanSharedMemory" ? row % kDefaultBits == column : (row + column) % 3 == 0;
  if (!is_taken) return {};
  return {types[(row + column) / 3 % types.size()]};
}

// Quantises the first n pages but one, into quantised pages in reverse order.
void QuantiseMost(uint32_t n, QuantisedSession* session) {
  for (uint32_t i = 0; i < n; ++i) {
    if (i == 1) continue;
    ASSERT_NO_FATAL_FAILURE(session->Quantise(i, n - 1 - i));
  }
}

class QuantisedPageTest : public BackendTest {};

TEST_P(QuantisedPageTest, QuantisingEdit_EveryShapeAndBits_IsTheNearestStep) {
  std::mt19937 rng(31);
  for (const QuantisedShape& shape : kQuantisedShapes) {
    for (const QuantisedBits& bits : kQuantisedBits) {
      for (DType active_type : TypesFor(GetParam(), shape, bits, {DType::kInt8, DType::kF32})) {
        SCOPED_TRACE(testing::Message() << "dim " << shape.head_dim << " page " << shape.page_tokens
                                        << " group " << shape.group_size << " bits " << bits.k
                                        << "/" << bits.v << " " << DTypeName(active_type));
        QuantisedSession session(GetParam(), shape, bits, active_type, &rng);
        for (uint32_t head = 0; head < shape.n_kv_heads; ++head) {
          Rows active[2], quantised[2];
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
          read(active);
          ASSERT_NO_FATAL_FAILURE(session.Quantise(index, first_page));
          read(quantised);
          for (const bool keys : {true, false}) {
            const uint32_t n_bits = keys ? bits.k : bits.v;
            const Rows& before = active[keys ? 0 : 1];
            const Rows& after = quantised[keys ? 0 : 1];
            if (n_bits == 0) {
              ASSERT_EQ(before, after);
            } else {
              ASSERT_NO_FATAL_FAILURE(ExpectQuantised(
                  before, after, session.group().RangesByChannel(keys), shape.group_size, n_bits));
            }
          }
        }
      }
    }
  }
}

TEST_P(QuantisedPageTest, Attention_ActiveAndQuantisedPages_EqualsTheFormula) {
  std::mt19937 rng(32);
  for (const QuantisedShape& shape : kQuantisedShapes) {
    for (const QuantisedBits& bits : kQuantisedBits) {
      for (DType active_type :
           TypesFor(GetParam(), shape, bits, {DType::kInt8, DType::kF16, DType::kF32})) {
        SCOPED_TRACE(testing::Message()
                     << shape.n_heads << ":" << shape.n_kv_heads << " dim " << shape.head_dim
                     << " page " << shape.page_tokens << " group " << shape.group_size << " window "
                     << shape.window << " bits " << bits.k << "/" << bits.v << " "
                     << DTypeName(active_type));
        QuantisedSession session(GetParam(), shape, bits, active_type, &rng);
        ASSERT_NO_FATAL_FAILURE(QuantiseMost(kTokens / shape.page_tokens - 1, &session));
        for (uint32_t rows : {kRows, 1u}) {
          ASSERT_NO_FATAL_FAILURE(session.Run(rows));
          ASSERT_NO_FATAL_FAILURE(session.ExpectAttention(rows));
        }
      }
    }
  }
}

// Several segments of tokens. The output of a row must not depend on the other rows or on the
// number of threads.
TEST_P(QuantisedPageTest, Attention_ManyPages_EqualsTheFormulaInTheSameBitsAlone) {
  if (GetParam().backend->name != std::string("cpu")) GTEST_SKIP() << "the CPU's kernel alone";
  if (GetParam().name == "Cpu3Threads") GTEST_SKIP() << "Cpu's case runs one thread and three";
  std::mt19937 rng(33);
  for (const QuantisedShape& shape : kQuantisedShapes) {
    for (const QuantisedBits& bits : kQuantisedBits) {
      if (shape.head_dim < 32) continue;  // the small shapes cover one page only
      // Every third pair: each shape and each number of bits.
      const auto pair = (&shape - kQuantisedShapes) + (&bits - kQuantisedBits);
      if (test::kSlowdown > 1 && pair % 3 != 0) continue;
      SCOPED_TRACE(testing::Message()
                   << shape.n_heads << ":" << shape.n_kv_heads << " dim " << shape.head_dim
                   << " page " << shape.page_tokens << " bits " << bits.k << "/" << bits.v);
      std::mt19937 copy = rng;
      QuantisedSession one(GetParam(), shape, bits, DType::kInt8, &rng, kDeepRuns, 1);
      QuantisedSession three(GetParam(), shape, bits, DType::kInt8, &copy, kDeepRuns, 3);
      const uint32_t n = (kDeepRuns * kTokens - 3 * kTokens) / shape.page_tokens;
      for (QuantisedSession* s : {&one, &three}) {
        ASSERT_NO_FATAL_FAILURE(QuantiseMost(n, s));
        ASSERT_NO_FATAL_FAILURE(s->Run(kManyRows));
      }
      const std::vector<float> together = one.Outputs(kManyRows);
      ASSERT_EQ(together, three.Outputs(kManyRows));
      for (uint32_t row = 0; row < kManyRows; ++row) {
        const std::vector<float> alone = three.RunAlone(row);
        ASSERT_EQ(0, std::memcmp(alone.data(), together.data() + row * alone.size(),
                                 alone.size() * sizeof(float)))
            << "row " << row;
      }
      ASSERT_NO_FATAL_FAILURE(one.Run(1));
      ASSERT_NO_FATAL_FAILURE(one.ExpectAttention(1));
    }
  }
}

// Runs the summation orders of VNNI and of ARM on any CPU.
TEST_P(QuantisedPageTest, Attention_WithDotProducts_EqualsTheFormula) {
  if (GetParam().backend->name != std::string("cpu")) GTEST_SKIP() << "the CPU's kernel alone";
  std::mt19937 rng(35);
  for (const QuantisedShape& shape : kQuantisedShapes) {
    for (const QuantisedBits& bits : kQuantisedBits) {
      SCOPED_TRACE(testing::Message()
                   << shape.n_heads << ":" << shape.n_kv_heads << " dim " << shape.head_dim
                   << " page " << shape.page_tokens << " group " << shape.group_size << " bits "
                   << bits.k << "/" << bits.v);
      QuantisedSession session(GetParam(), shape, bits, DType::kInt8, &rng, /*n_runs=*/3);
      ASSERT_NO_FATAL_FAILURE(QuantiseMost(3 * kTokens / shape.page_tokens - 1, &session));
      ASSERT_NO_FATAL_FAILURE(session.Run(kRows));
      session.AttendWith(ScalarDot<4, 128, false>::kTable);
      ASSERT_NO_FATAL_FAILURE(session.ExpectAttention(kRows)) << "VNNI's order";
      session.AttendWith(ScalarDot<8, 0, true>::kTable);
      ASSERT_NO_FATAL_FAILURE(session.ExpectAttention(kRows)) << "ARM's order";
    }
  }
}

// Reading 4 or 2 bits must take about as long as reading 8 bits, here from cache.
TEST_P(QuantisedPageTest, Attention_QuantisedPages_TakeNotMuchLongerThanInt8Pages) {
  if (GetParam().backend->name != std::string("cpu")) GTEST_SKIP() << "the CPU's kernel alone";
  if (GetParam().name == "Cpu3Threads") GTEST_SKIP() << "Cpu's case times one thread";
    // Other architectures run under an emulator, which has other timings.
#if defined(ARN_SANITIZE_ADDRESS) || defined(ARN_SANITIZE_THREAD) || !defined(__OPTIMIZE__) || \
    !defined(__x86_64__)
  GTEST_SKIP() << "what is measured is not what users run";
#endif
  const QuantisedShape shape = {9, 3, 64, 32, 32, 0};
  for (const QuantisedBits& bits : {QuantisedBits{4, 4}, QuantisedBits{2, 2}}) {
    std::mt19937 rng(34);
    QuantisedSession active(GetParam(), shape, bits, DType::kInt8, &rng, kDeepRuns, 1);
    QuantisedSession quantised(GetParam(), shape, bits, DType::kInt8, &rng, kDeepRuns, 1);
    for (uint32_t i = 0; i < kDeepRuns * kTokens / shape.page_tokens; ++i) {
      ASSERT_NO_FATAL_FAILURE(quantised.Quantise(i, i));
    }
    double least[2] = {std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
    QuantisedSession* sessions[] = {&active, &quantised};
    for (QuantisedSession* s : sessions) s->Run(1);
    for (uint32_t i = 0; i < 2 * kTimes; ++i) {
      const auto start = std::chrono::steady_clock::now();
      sessions[i % 2]->RunAlone(0);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      least[i % 2] = std::min(least[i % 2], took.count());
    }
    std::printf("%u bits: %.1f us after int8's %.1f\n", bits.k, 1e6 * least[1], 1e6 * least[0]);
    EXPECT_LT(least[1], kSlowest * least[0]) << bits.k << " bits";
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, QuantisedPageTest, testing::ValuesIn(AllBackends()),
                         [](const auto& i) { return i.param.name; });

}  // namespace
}  // namespace arn::conformance

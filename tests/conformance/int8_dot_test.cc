// Tests every kernel variant for int8 K and V that the CPU supports against 64-bit sums. Attention
// uses only the first variant; a newer CPU also tests the older ones here.
#include "kernels/cpu/int8_dot/int8_dot.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <random>
#include <string>
#include <vector>

namespace arn::cpu {
namespace {

struct Way {
  const char* name;
  const Int8Dot* (*choose)();
};
#if defined(__x86_64__)
// Words of one instruction set.
template <int64_t kTarget>
const Int8Dot* WordsOf() {
  if ((hwy::SupportedTargets() & kTarget) == 0) return nullptr;
  hwy::SetSupportedTargetsForTest(kTarget);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  const Int8Dot* dot = Int8DotWords();
  hwy::SetSupportedTargetsForTest(0);
  return dot;
}
#endif
constexpr Way kWays[] = {
#if defined(__aarch64__)
    {"dotprod", Int8DotDotprod},
    {"i8mm", Int8DotI8mm},
    {"sve", Int8DotSve},
#elif defined(__x86_64__)
    {"vnni", Int8DotVnni},
    {"sse4", WordsOf<HWY_SSE4>},
    {"avx2", WordsOf<HWY_AVX2>},
    {"avx3", WordsOf<HWY_AVX3>},
#endif
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

constexpr uint32_t kDims[] = {4, 8, 12, 20, 40, 64, 80, 96, 128, 172, 256, 1024};
constexpr uint32_t kTokens[] = {1, 4, 7, 8, 9, 16, 21, 32, 45, 57, 63, 64};
constexpr uint32_t kQueries[] = {1, 2, 3, 4, 5, 8, 33};

// A tile of n tokens with each strip in separate memory.
class Tile {
 public:
  Tile(uint32_t n, uint32_t dim, std::mt19937* rng) : dim_(dim), memory_(CeilDiv(n, kKvStrip)) {
    std::uniform_int_distribution<int> byte(-127, 127);
    for (std::vector<int8_t>& strip : memory_) {
      for (uint32_t i = 0; i < kKvStrip * dim; ++i)
        strip.push_back(static_cast<int8_t>(byte(*rng)));
      strips_.push_back(strip.data());
    }
    while (strips_.size() % (kDotBlock / kKvStrip) != 0) strips_.push_back(strips_.back());
  }

  const int8_t* const* strips() const { return strips_.data(); }
  int64_t At(uint32_t token, uint32_t channel) const {
    return DotRow(strips_.data(), token, dim_)[channel];
  }

 private:
  const uint32_t dim_;
  std::vector<std::vector<int8_t>> memory_;
  std::vector<const int8_t*> strips_;
};

// 16-bit queries (or weights) and their high and low byte planes.
struct Numbers {
  size_t stride;  // bytes from one query to the next
  std::vector<int32_t> high, low, high_sums, low_sums;
  std::vector<std::vector<int64_t>> values;

  Numbers(uint32_t n_queries, uint32_t n, size_t bytes, bool is_signed, int32_t most,
          std::mt19937* rng)
      : stride(bytes),
        high(n_queries * bytes / 4),
        low(high.size()),
        high_sums(n_queries),
        low_sums(n_queries),
        values(n_queries) {
    std::uniform_int_distribution<int32_t> number(is_signed ? -most : 0, most);
    for (uint32_t q = 0; q < n_queries; ++q) {
      for (uint32_t i = 0; i < n; ++i) {
        const int32_t x = i == 0 ? most : number(*rng);
        const int32_t h = (is_signed ? x + 128 : x) >> 8, l = x - 256 * h;
        reinterpret_cast<uint8_t*>(high.data())[q * stride + i] = static_cast<uint8_t>(h);
        reinterpret_cast<uint8_t*>(low.data())[q * stride + i] = static_cast<uint8_t>(l);
        high_sums[q] += h;
        low_sums[q] += l;
        values[q].push_back(x);
      }
    }
  }
  const uint8_t* High() const { return reinterpret_cast<const uint8_t*>(high.data()); }
  const uint8_t* Low() const { return reinterpret_cast<const uint8_t*>(low.data()); }
};

class Int8DotTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    dot_ = GetParam().choose();
    if (dot_ == nullptr) GTEST_SKIP() << "this CPU has no " << GetParam().name;
  }

  // Calls check(dim, n_tokens, n_queries) for every combination.
  template <typename Check>
  void ForEach(const Check& check) {
    for (const uint32_t dim : kDims) {
      for (const uint32_t n : kTokens) {
        for (const uint32_t queries : kQueries) {
          SCOPED_TRACE(testing::Message()
                       << "dim " << dim << ", " << n << " tokens, " << queries << " queries");
          ASSERT_NO_FATAL_FAILURE(check(dim, n, queries));
        }
      }
    }
  }
  bool TakesRows(uint32_t dim, uint32_t queries) const {
    return dot_->score_rows != nullptr && dim <= kDotRowDim && queries <= kDotRowQueries;
  }

  const Int8Dot* dot_ = nullptr;
  std::mt19937 rng_{97};
};

TEST_P(Int8DotTest, Scores_EveryShape_AreTheSumsOfProducts) {
  ForEach([&](uint32_t dim, uint32_t n, uint32_t n_queries) {
    const Tile keys(n, dim, &rng_);
    const Numbers numbers(n_queries, dim, DotValueWidth(dim), true, 32639, &rng_);
    std::vector<int8_t> spread(n_queries * DotSpreadBytes(dim));
    const DotQueries queries = {numbers.high.data(),
                                numbers.low.data(),
                                numbers.high_sums.data(),
                                numbers.low_sums.data(),
                                numbers.stride / 4,
                                n_queries,
                                spread.data()};
    const auto n_blocks = static_cast<uint32_t>(CeilDiv(n, kDotBlock));
    const auto expect = [&](const std::vector<float>& scores) {
      for (uint32_t q = 0; q < n_queries; ++q) {
        for (uint32_t t = 0; t < n; ++t) {
          int64_t sum = 0;
          for (uint32_t i = 0; i < dim; ++i) sum += numbers.values[q][i] * keys.At(t, i);
          // The sum of each plane is rounded to float.
          const double error = 1.2e-7 * (32639.0 * 127 * dim + 1);
          ASSERT_NEAR(static_cast<double>(sum), scores[q * kDotTokens + t], error)
              << "query " << q << " token " << t;
        }
      }
    };
    std::vector<float> scores(n_queries * kDotTokens);
    std::vector<uint8_t> packed(DotKeyBytes(dim));
    for (uint32_t i = 0; i < n_blocks; ++i) {
      dot_->pack_keys(keys.strips() + i * (kDotBlock / kKvStrip), 1, dim,
                      packed.data() + i * dot_->KeyBlockBytes(dim));
    }
    dot_->scores(queries, packed.data(), n_blocks, dim, scores.data());
    ASSERT_NO_FATAL_FAILURE(expect(scores));
    if (!TakesRows(dim, n_queries)) return;
    scores.assign(scores.size(), 0.0f);
    if (dot_->spread_queries != nullptr) dot_->spread_queries(queries, dim);
    dot_->score_rows(queries, keys.strips(), n_blocks, dim, scores.data());
    expect(scores);
  });
}

TEST_P(Int8DotTest, AddValues_EveryShape_AddsTheWeightedSum) {
  ForEach([&](uint32_t dim, uint32_t n, uint32_t n_queries) {
    const Tile values(n, dim, &rng_);
    const Numbers numbers(n_queries, n, kDotTokens, dot_->weights_signed, dot_->weight_max, &rng_);
    const std::vector<float> factors(n_queries, 0x1p-16f);
    const DotWeights weights = {numbers.High(), numbers.Low(), factors.data(), n_queries};
    const size_t stride = DotValueWidth(dim);
    const std::vector<float> before(n_queries * stride, 3.0f);
    const auto expect = [&](const std::vector<float>& sums) {
      for (uint32_t q = 0; q < n_queries; ++q) {
        for (uint32_t i = 0; i < dim; ++i) {
          int64_t sum = 0;
          for (uint32_t t = 0; t < n; ++t) sum += numbers.values[q][t] * values.At(t, i);
          const double exact = 3.0 + static_cast<double>(sum) * 0x1p-16;
          ASSERT_NEAR(exact, sums[q * stride + i], 2e-7 * std::abs(exact) + 1e-6)
              << "query " << q << " channel " << i;
        }
      }
    };
    std::vector<float> sums = before;
    std::vector<uint8_t> packed(DotValueBytes(dim));
    dot_->pack_values(values.strips(), DotQuads(n), dim, packed.data());
    dot_->add_values(weights, packed.data(), DotQuads(n), DotValueWidth(dim), dim, stride,
                     sums.data());
    ASSERT_NO_FATAL_FAILURE(expect(sums));
    if (!TakesRows(dim, n_queries)) return;
    sums = before;
    dot_->add_value_rows(weights, values.strips(), DotQuads(n), dim, stride, sums.data());
    expect(sums);
  });
}

// Returns value `channel` of a row of `bits`-bit values.
int64_t PackedAt(const Tile& tile, uint32_t bits, uint32_t row_bytes, uint32_t token,
                 uint32_t channel) {
  const auto byte = static_cast<uint8_t>(tile.At(token, channel % row_bytes));
  return byte >> (channel / row_bytes * bits) & ((1u << bits) - 1);
}

constexpr uint32_t kPackedBits[] = {4, 2};
constexpr uint32_t kRowUnits[] = {1, 2, 3, 4, 5, 8};

TEST_P(Int8DotTest, ScorePackedRows_EveryShape_AreTheSumsOfProducts) {
  if (dot_->score_packed_rows == nullptr) GTEST_SKIP() << "no kernel for packed rows";
  for (const uint32_t bits : kPackedBits) {
    for (const uint32_t units : kRowUnits) {
      for (const uint32_t n : kTokens) {
        for (const uint32_t n_queries : {1u, 2u, 3u, 4u, 5u, kDotRowQueries}) {
          const uint32_t row_bytes = units * kPackedRowUnit, dim = row_bytes * 8 / bits;
          if (dim > kDotRowDim) continue;
          SCOPED_TRACE(testing::Message() << bits << " bits, dim " << dim << ", " << n
                                          << " tokens, " << n_queries << " queries");
          const Tile keys(n, row_bytes, &rng_);
          const Numbers numbers(n_queries, dim, DotValueWidth(dim), true, 32639, &rng_);
          const std::vector<int32_t> no_sums(n_queries);
          std::vector<int16_t> words(n_queries * numbers.stride);
          for (uint32_t q = 0; q < n_queries; ++q) {
            std::copy(numbers.values[q].begin(), numbers.values[q].end(),
                      words.begin() + static_cast<ptrdiff_t>(q * numbers.stride));
          }
          DotQueries queries = {
              numbers.high.data(), numbers.low.data(), no_sums.data(), no_sums.data(),
              numbers.stride / 4,  n_queries,          nullptr};
          if (dot_->packed_takes_words) {
            queries.high = queries.low = nullptr;
            queries.words = words.data();
          }
          std::vector<float> scores(n_queries * kDotTokens);
          dot_->score_packed_rows(queries, keys.strips(),
                                  static_cast<uint32_t>(CeilDiv(n, kDotBlock)), row_bytes, bits,
                                  scores.data());
          for (uint32_t q = 0; q < n_queries; ++q) {
            for (uint32_t t = 0; t < n; ++t) {
              int64_t sum = 0;
              for (uint32_t i = 0; i < dim; ++i) {
                sum += numbers.values[q][i] * PackedAt(keys, bits, row_bytes, t, i);
              }
              ASSERT_EQ(static_cast<float>(sum), scores[q * kDotTokens + t])
                  << "query " << q << " token " << t;
            }
          }
        }
      }
    }
  }
}

TEST_P(Int8DotTest, AddPackedValueRows_EveryShapeAndRange_AddsTheWeightedSum) {
  if (dot_->add_packed_value_rows == nullptr) GTEST_SKIP() << "no kernel for packed rows";
  for (const uint32_t bits : kPackedBits) {
    for (const uint32_t units : kRowUnits) {
      for (const uint32_t n : kTokens) {
        for (const uint32_t n_queries : {1u, 2u, 3u, 4u, 5u, kDotRowQueries}) {
          const uint32_t row_bytes = units * kPackedRowUnit, dim = row_bytes * 8 / bits;
          if (dim > kDotRowDim) continue;
          SCOPED_TRACE(testing::Message() << bits << " bits, dim " << dim << ", " << n
                                          << " tokens, " << n_queries << " queries");
          const Tile values(n, row_bytes, &rng_);
          const Numbers numbers(n_queries, n, kDotTokens, dot_->weights_signed, dot_->weight_max,
                                &rng_);
          const std::vector<float> factors(n_queries, 0x1p-16f);
          DotWeights weights = {numbers.High(), numbers.Low(), factors.data(), n_queries};
          std::vector<int16_t> words(n_queries * kDotTokens);
          if (dot_->packed_takes_words) {
            for (uint32_t q = 0; q < n_queries; ++q) {
              std::copy(numbers.values[q].begin(), numbers.values[q].end(),
                        words.begin() + static_cast<ptrdiff_t>(q * kDotTokens));
            }
            weights.high = weights.low = nullptr;
            weights.words = words.data();
          }
          const uint32_t n_channels = units % 2 == 0 ? 32 : 16;  // of a range
          std::vector<float> sums(n_queries * size_t{dim}, 3.0f);
          for (uint32_t channel = 0; channel < dim; channel += n_channels) {
            dot_->add_packed_value_rows(weights, values.strips(), DotQuads(n), row_bytes, bits,
                                        channel, n_channels, dim, sums.data() + channel);
          }
          for (uint32_t q = 0; q < n_queries; ++q) {
            for (uint32_t i = 0; i < dim; ++i) {
              int64_t sum = 0;
              for (uint32_t t = 0; t < n; ++t) {
                sum += numbers.values[q][t] * PackedAt(values, bits, row_bytes, t, i);
              }
              const double exact = 3.0 + static_cast<double>(sum) * 0x1p-16;
              ASSERT_NEAR(exact, sums[q * size_t{dim} + i], 2e-7 * std::abs(exact) + 1e-6)
                  << "query " << q << " channel " << i;
            }
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Int8DotTest, testing::ValuesIn(kWays),
                         [](const auto& way) { return std::string(way.param.name); });

}  // namespace
}  // namespace arn::cpu

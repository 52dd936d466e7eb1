// The same row, the same bits: a token's logits do not depend on what else is in the run. One row,
// any chunk, other sequences and any number of threads give the bits of running token by token, for
// every type of weights, of keys and values, and of layers.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/layer_shapes.h"
#include "tests/support/print_params.h"
#include "tests/support/row_bits.h"
#include "tests/support/session_support.h"

namespace arn::test {
namespace {

constexpr uint32_t kVocab = 61;
constexpr uint32_t kTokens = 75;
constexpr uint32_t kKvKinds[] = {ARN_KV_F32, ARN_KV_F16, ARN_KV_INT8};

BundleBytes Bundle(DType weights, const std::vector<TinyLayer>& layers) {
  TinyBundle bundle;
  bundle.vocab = kVocab;
  bundle.weights = weights;
  bundle.layer_kinds = layers;
  bundle.hidden = 44;  // no multiple of a tile
  bundle.ffn = 52;
  return MakeTinyBundle(bundle);
}

arn_session_options Options(uint32_t kv, uint32_t threads) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = kv;
  options.n_threads = threads;
  options.context_tokens = 128;
  options.kv_page_tokens = 8;
  options.prefill_chunk = kTokens;
  options.all_logits = 1;
  return options;
}

// Returns the logits of every position, run in parts of the given sizes, in turn.
std::vector<float> AllLogits(const arn_model* model, const arn_session_options& options,
                             const std::vector<int32_t>& ids, const std::vector<size_t>& sizes) {
  const SessionPtr session = NewSession(model, options);
  std::vector<float> all;
  size_t done = 0;
  for (size_t i = 0; done < ids.size(); ++i) {
    const size_t n = std::min(sizes[i % sizes.size()], ids.size() - done);
    const float* logits = nullptr;
    EXPECT_EQ(ARN_OK, arn_session_prefill_logits(session.get(), ids.data() + done, n, &logits))
        << arn_session_last_error(session.get());
    all.insert(all.end(), logits, logits + n * kVocab);
    done += n;
  }
  return all;
}

// Returns the first position whose logits differ, or the number of positions.
size_t FirstDifference(const std::vector<float>& a, const std::vector<float>& b) {
  size_t i = 0;
  while ((i + 1) * kVocab <= a.size() &&
         std::memcmp(&a[i * kVocab], &b[i * kVocab], kVocab * sizeof(float)) == 0) {
    ++i;
  }
  return i;
}

class SessionRowsTest : public testing::TestWithParam<Shape> {};

TEST_P(SessionRowsTest, AnyChunkAndThreads_GiveTheBitsOfTokenByToken) {
  const std::vector<int32_t> ids = SomeIds(kTokens, kVocab);
  for (const DType weights : {DType::kF32, DType::kF16, DType::kBf16, DType::kInt8, DType::kInt4}) {
    if (!RowsKeepTheirBits(weights)) continue;
    const BundleBytes bytes = Bundle(weights, GetParam().layers);
    const ModelPtr model = OpenBytes(bytes);
    for (const uint32_t kv : kKvKinds) {
      const auto alone = AllLogits(model.get(), Options(kv, 1), ids, {1});
      uint32_t threads = 1;
      for (const std::vector<size_t>& sizes : std::vector<std::vector<size_t>>{
               {2}, {3, 4, 5}, {6, 7}, {8}, {9, 1, 10}, {11, 12}, {13, 14}, {15, 16}, {kTokens}}) {
        const auto together = AllLogits(model.get(), Options(kv, threads), ids, sizes);
        ASSERT_EQ(kTokens, FirstDifference(alone, together))
            << DTypeName(weights) << " weights, " << arn_kv_type_name(kv) << " KV, parts of "
            << sizes[0] << ", " << threads << " threads";
        threads = threads % 3 + 1;
      }
    }
  }
}

// Sequences of other lengths in the same runs.
TEST_P(SessionRowsTest, OtherSequences_ChangeNoBit) {
  constexpr uint32_t kSequences = 5;
  for (const DType weights : {DType::kF32, DType::kF16, DType::kInt8, DType::kInt4}) {
    if (!RowsKeepTheirBits(weights)) continue;
    const BundleBytes bytes = Bundle(weights, GetParam().layers);
    const ModelPtr model = OpenBytes(bytes);
    arn_session_options options = Options(ARN_KV_INT8, 2);
    options.max_sequences = kSequences;
    const SessionPtr session = NewSession(model.get(), options);
    const std::vector<int32_t> ids = SomeIds(kTokens, kVocab);
    std::vector<uint32_t> sequences;
    for (uint32_t s = 0; s < kSequences; ++s) {
      sequences.push_back(s);
      ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), 7 * s + 1));
    }
    const auto alone = AllLogits(model.get(), Options(ARN_KV_INT8, 1), ids, {1});
    for (uint32_t step = 0; step < 20; ++step) {
      std::vector<int32_t> next;
      for (uint32_t s = 0; s < kSequences; ++s) next.push_back(ids[7 * s + 1 + step]);
      ASSERT_EQ(ARN_OK, arn_session_step(session.get(), sequences.data(), next.data(), kSequences));
      for (uint32_t s = 0; s < kSequences; ++s) {
        ASSERT_EQ(ARN_OK, arn_session_select(session.get(), s));
        const float* logits = nullptr;
        ASSERT_EQ(ARN_OK, arn_session_logits(session.get(), &logits));
        ASSERT_EQ(0,
                  std::memcmp(logits, &alone[(7 * s + 1 + step) * kVocab], kVocab * sizeof(float)))
            << DTypeName(weights) << " weights, sequence " << s << ", step " << step;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, SessionRowsTest,
                         testing::ValuesIn(Join({Shapes(), StateShapes(), LinearShapes(),
                                                 WidthShapes(), StateWidthShapes()})),
                         ShapeName);

}  // namespace
}  // namespace arn::test

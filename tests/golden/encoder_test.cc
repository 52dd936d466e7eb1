// Encoder-decoder models: transformers' logits and tokens, and the lifetime of encoder outputs in a
// session.
#include "tests/golden/encoder_case.h"

namespace arn::test {
namespace {

constexpr double kTolerance = 2e-4;  // as golden_test.cc

class EncoderGoldenTest : public EncoderCaseTest {
 protected:
  // Returns the group of the encoder's keys and values, the last one of the plan.
  arn_kv_group_info EncoderGroup(const arn_session_options& options) const {
    arn_kv_group_info group = ARN_KV_GROUP_INFO_INIT;
    char error[256] = "";
    for (uint32_t i = 0; group.is_encoder == 0; ++i) {
      const arn_status status =
          arn_session_plan_group(model_.get(), &options, i, error, sizeof error, &group);
      EXPECT_EQ(ARN_OK, status) << error;
      if (status != ARN_OK) break;
    }
    return group;
  }

  std::vector<float> exact_;  // logits with keys and values in f32
};

TEST_P(EncoderGoldenTest, BothConfigs_Prefill_GiveTheReferencesLogits) {
  const std::vector<int32_t> ids = golden_.all_ids();
  for (const ConfigStyle style : {ConfigStyle::kTransformers5, ConfigStyle::kTransformers4}) {
    const auto bundle = folder_ / "styled.arn";
    ASSERT_TRUE(ConvertGolden(golden_, style, folder_ / "styled", bundle, {"--weights", "f32"}));
    const ModelPtr model = OpenModel(bundle);
    ASSERT_NE(nullptr, model);
    for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
      for (const uint32_t chunk : {1u, 7u, 64u}) {
        SCOPED_TRACE(testing::Message() << "backend " << backend << ", chunks of " << chunk);
        const SessionPtr session = NewSession(model.get(), GoldenOptions(backend, chunk));
        ASSERT_NE(nullptr, session);
        ASSERT_TRUE(EncodeInput(golden_, session.get()));
        const std::vector<float> logits = AllLogits(session.get(), golden_.vocab(), chunk, ids);
        ASSERT_EQ(ids.size() * golden_.vocab(), logits.size());
        for (size_t i = 0; i < ids.size(); ++i) {
          ExpectLogits(golden_, i, logits.data() + i * golden_.vocab(), kTolerance);
        }
      }
    }
  }
}

TEST_P(EncoderGoldenTest, Generate_AfterEncodingAgainAndRewinding_GivesTheReferencesTokens) {
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    SCOPED_TRACE(backend);
    const SessionPtr session = Encoded(GoldenOptions(backend, 0));
    ASSERT_NE(nullptr, session);
    EXPECT_EQ(golden_.greedy, Greedy(session.get()));
    ASSERT_TRUE(EncodeInput(golden_, session.get()));
    EXPECT_EQ(0u, arn_session_length(session.get()));
    EXPECT_EQ(golden_.greedy, Greedy(session.get()));
    ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 0));  // keeps the encoder output
    EXPECT_EQ(golden_.greedy, Greedy(session.get()));
    uint32_t kept = 1;
    const std::vector<int32_t> other = {golden_.prompt[0] + 1};
    ASSERT_EQ(ARN_OK, arn_session_follow(session.get(), other.data(), other.size(), &kept));
    EXPECT_EQ(0u, kept);
  }
}

TEST_P(EncoderGoldenTest, NoCache_GivesTheReferencesTokens) {
  arn_session_options options = GoldenOptions(ARN_BACKEND_CPU, 0);
  options.no_cache = 1;
  const SessionPtr session = Encoded(options);
  ASSERT_NE(nullptr, session);
  EXPECT_EQ(golden_.greedy, Greedy(session.get()));
}

TEST_P(EncoderGoldenTest, Forks_ShareTheEncoderOutputUntilTheyGetTheirOwn) {
  arn_session_options options = GoldenOptions(ARN_BACKEND_CPU, 0);
  options.max_sequences = 3;
  const SessionPtr session = Encoded(options);
  ASSERT_NE(nullptr, session);
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));  // releases only sequence 0's share
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 1));
  EXPECT_EQ(golden_.greedy, Greedy(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 1, 2));
  ASSERT_TRUE(EncodeInput(golden_, session.get()));
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 2));
  EXPECT_EQ(golden_.prompt.size() + golden_.greedy.size(), arn_session_length(session.get()));
  ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 0));
  EXPECT_EQ(golden_.greedy, Greedy(session.get()));
  // Each of the three sequences has an encoder output, the maximum.
  ASSERT_EQ(ARN_OK, arn_session_select(session.get(), 0));
  ASSERT_TRUE(EncodeInput(golden_, session.get()));
  EXPECT_EQ(golden_.greedy, Greedy(session.get()));
}

// Two sequences share an encoder output and a third has none: restored into another session, with
// room for more, each continues where it was.
TEST_P(EncoderGoldenTest, SavedAndRestored_ContinuesWithoutTheEncoder) {
  for (const uint32_t kv_type : {ARN_KV_F32, ARN_KV_INT8, ARN_KV_INT4}) {
    for (const bool from_file : {false, true}) {
      SCOPED_TRACE(testing::Message() << "KV type " << kv_type << ", from a file: " << from_file);
      arn_session_options options = GoldenOptions(ARN_BACKEND_CPU, 0);
      options.kv_type = kv_type;
      options.max_sequences = 3;
      const SessionPtr session = Encoded(options);
      ASSERT_NE(nullptr, session);
      const std::vector<int32_t> expected = Greedy(session.get());
      ASSERT_EQ(ARN_OK, arn_session_rewind(session.get(), 0));
      ASSERT_EQ(ARN_OK, arn_session_fork(session.get(), 0, 1));
      const std::vector<int32_t> start(expected.begin(), expected.begin() + 5);
      std::vector<int32_t> ids = golden_.prompt;
      ids.insert(ids.end(), start.begin(), start.end());
      ASSERT_EQ(ARN_OK, arn_session_prefill(session.get(), ids.data(), ids.size()));
      const auto path = folder_ / "encoder.state";
      ASSERT_EQ(ARN_OK, arn_session_save(session.get(), path.c_str()))
          << arn_session_last_error(session.get());
      uint64_t bytes = 0;
      ASSERT_EQ(ARN_OK, arn_session_save_bytes(session.get(), &bytes));
      std::vector<std::byte> state(bytes);
      ASSERT_EQ(ARN_OK, arn_session_save_memory(session.get(), state.data(), bytes, &bytes));

      options.max_sequences = 4;
      const SessionPtr other = NewSession(model_.get(), options);
      ASSERT_NE(nullptr, other);
      ASSERT_EQ(ARN_OK, from_file
                            ? arn_session_restore(other.get(), path.c_str(), nullptr)
                            : arn_session_restore_memory(other.get(), state.data(), bytes, nullptr))
          << arn_session_last_error(other.get());
      EXPECT_EQ(ids.size(), arn_session_length(other.get()));
      for (size_t i = start.size(); i < expected.size(); ++i) {
        int32_t id = -1;
        ASSERT_EQ(ARN_OK, arn_session_decode(other.get(), &id));
        EXPECT_EQ(expected[i], id) << i;
      }
      // The other sequence has no tokens, but the output.
      ASSERT_EQ(ARN_OK, arn_session_select(other.get(), 1));
      EXPECT_EQ(expected, Greedy(other.get()));
      ASSERT_EQ(ARN_OK, arn_session_select(other.get(), 2));
      EXPECT_EQ(ARN_BAD_STATE,
                arn_session_prefill(other.get(), golden_.prompt.data(), golden_.prompt.size()));
      ASSERT_TRUE(EncodeInput(golden_, other.get()));
      EXPECT_EQ(expected, Greedy(other.get()));

      options.encoder_kv_type = kv_type == ARN_KV_F32 ? ARN_KV_INT8 : ARN_KV_F16;
      const SessionPtr unlike = NewSession(model_.get(), options);
      ASSERT_NE(nullptr, unlike);
      EXPECT_EQ(ARN_SAVE_MISMATCH, arn_session_restore(unlike.get(), path.c_str(), nullptr));
      options.encoder_kv_type = ARN_KV_AS_KEYS;

      options.encoder_rows = 8;
      const SessionPtr small = NewSession(model_.get(), options);
      ASSERT_NE(nullptr, small);
      EXPECT_EQ(ARN_SAVE_MISMATCH, arn_session_restore(small.get(), path.c_str(), nullptr));
      EXPECT_NE(nullptr, std::strstr(arn_session_last_error(small.get()), "encoder_rows"));
    }
  }
}

// The encoder's keys and values in f32 beside the decoder's in int4: their error is gone, and their
// group alone grows.
TEST_P(EncoderGoldenTest, TypeOfTheEncodersKeysAndValues_IsChosenApart) {
  const std::vector<int32_t> ids = golden_.all_ids();
  const auto error_of = [&](uint32_t kv_type, uint32_t encoder_type, uint64_t* pool_bytes) {
    arn_session_options options = GoldenOptions(ARN_BACKEND_REFERENCE, 64);
    options.kv_type = kv_type;
    options.encoder_kv_type = encoder_type;
    *pool_bytes = EncoderGroup(options).page_bytes;
    const SessionPtr session = Encoded(options);
    if (session == nullptr) return -1.0;
    const std::vector<float> logits = AllLogits(session.get(), golden_.vocab(), 64, ids);
    double error_sum = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      error_sum += std::pow(static_cast<double>(logits[i] - exact_[i]), 2);
    }
    return error_sum;
  };
  const SessionPtr session = Encoded(GoldenOptions(ARN_BACKEND_REFERENCE, 64));
  ASSERT_NE(nullptr, session);
  exact_ = AllLogits(session.get(), golden_.vocab(), 64, ids);
  uint64_t f32 = 0, f16 = 0, int8 = 0, as_keys = 0;
  EXPECT_EQ(0.0, error_of(ARN_KV_F32, ARN_KV_F32, &f32));
  const double f16_error = error_of(ARN_KV_F32, ARN_KV_F16, &f16);
  const double int8_error = error_of(ARN_KV_F32, ARN_KV_INT8, &int8);
  EXPECT_LT(0.0, f16_error);
  EXPECT_LT(f16_error, int8_error);
  // Keys and values of a layer begin at whole lines.
  EXPECT_NEAR(static_cast<double>(2 * f16), static_cast<double>(f32), 1024);
  EXPECT_LT(int8, f16);
  error_of(ARN_KV_INT4, ARN_KV_AS_KEYS, &as_keys);
  EXPECT_EQ(int8, as_keys);
  error_of(ARN_KV_INT4, ARN_KV_F32, &as_keys);
  EXPECT_EQ(f32, as_keys);
}

// One beam with one group is greedy search. Several beams share the encoder output across
// reordering.
TEST_P(EncoderGoldenTest, Beams_OneIsGreedy_SeveralAreNoWorse) {
  float scores[2] = {};
  const uint32_t counts[2] = {1, 4};
  for (uint32_t i = 0; i < 2; ++i) {
    arn_session_options options = GoldenOptions(ARN_BACKEND_CPU, 0);
    options.max_sequences = counts[i];
    const SessionPtr session = Encoded(options);
    ASSERT_NE(nullptr, session);
    ASSERT_EQ(ARN_OK,
              arn_session_prefill(session.get(), golden_.prompt.data(), golden_.prompt.size()));
    arn_beam_options beams = ARN_BEAM_OPTIONS_INIT;
    beams.num_beams = counts[i];
    beams.max_tokens = 12;
    beams.ignore_eos = 1;
    arn_beam_result result = ARN_BEAM_RESULT_INIT;
    ASSERT_EQ(ARN_OK, arn_session_beam_search(session.get(), &beams, &result))
        << arn_session_last_error(session.get());
    std::vector<int32_t> ids(12);
    size_t count = 0;
    ASSERT_EQ(ARN_OK,
              arn_session_beam(session.get(), 0, ids.data(), ids.size(), &count, &scores[i]));
    if (i == 0) {
      EXPECT_EQ(std::vector<int32_t>(golden_.greedy.begin(), golden_.greedy.begin() + 12), ids);
    }
  }
  EXPECT_GE(scores[1], scores[0] - 1e-5f);
}

// With random weights unscaled attention is too sharp to compare with float results.
TEST_P(EncoderGoldenTest, F16WeightsAndInt8Pages_BothBackendsAgree) {
  ASSERT_TRUE(ConvertGolden(golden_, ConfigStyle::kTransformers5, folder_ / "f16",
                            folder_ / "f16.arn", {"--weights", "f16"}));
  const ModelPtr model = OpenModel(folder_ / "f16.arn");
  ASSERT_NE(nullptr, model);
  const std::vector<int32_t> ids = golden_.all_ids();
  std::vector<float> logits[2];
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    arn_session_options options = GoldenOptions(backend, 64);
    options.kv_type = ARN_KV_INT8;
    const SessionPtr session = NewSession(model.get(), options);
    ASSERT_NE(nullptr, session);
    ASSERT_TRUE(EncodeInput(golden_, session.get()));
    logits[backend] = AllLogits(session.get(), golden_.vocab(), 64, ids);
  }
  double error = 0, magnitude = 0;
  for (size_t i = 0; i < logits[0].size(); ++i) {
    error += std::pow(static_cast<double>(logits[0][i] - logits[1][i]), 2);
    magnitude += std::pow(static_cast<double>(logits[1][i]), 2);
  }
  EXPECT_LT(std::sqrt(error / magnitude), 0.03);
}

TEST_P(EncoderGoldenTest, Misuse_IsRefusedWithItsReason) {
  arn_model_info info = ARN_MODEL_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_model_get_info(model_.get(), &info));
  EXPECT_EQ(golden_.feature_width, info.encoder_feature_width);
  ASSERT_EQ(1u, info.n_start_ids);
  EXPECT_EQ(golden_.prompt[0], static_cast<int32_t>(info.start_ids[0]));
  arn_session_options options = GoldenOptions(ARN_BACKEND_CPU, 0);
  options.encoder_rows = info.encoder_rows + 1;
  char error[256];
  arn_session* none = nullptr;
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_session_create(model_.get(), &options, nullptr, 0, error, sizeof error, &none));
  EXPECT_NE(nullptr, std::strstr(error, "encoder_rows")) << error;
  options.encoder_rows = 0;
  options.encoder_kv_type = ARN_KV_INT4;
  EXPECT_EQ(ARN_UNSUPPORTED,
            arn_session_create(model_.get(), &options, nullptr, 0, error, sizeof error, &none));
  EXPECT_STREQ("encoder_kv_type is int4, expected f32, f16 or int8", error);
  options.encoder_kv_type = ARN_KV_AS_KEYS;

  options.encoder_rows = 8;
  EXPECT_EQ(8u, EncoderGroup(options).page_tokens);
  const SessionPtr session = NewSession(model_.get(), options);
  ASSERT_NE(nullptr, session);
  EXPECT_EQ(ARN_BAD_STATE,
            arn_session_prefill(session.get(), golden_.prompt.data(), golden_.prompt.size()));
  EXPECT_NE(nullptr, std::strstr(arn_session_last_error(session.get()), "encoder"));
  const std::vector<int32_t> ids(9, 5);
  const uint32_t width = std::max(golden_.feature_width, 1u);
  const uint32_t most = 8 * info.encoder_row_frames + info.encoder_more_frames;
  const uint32_t least =
      info.encoder_row_frames + info.encoder_more_frames - info.encoder_optional_frames;
  const std::vector<float> features(size_t{most + 2} * width);
  const bool takes_ids = golden_.feature_width == 0;
  EXPECT_EQ(takes_ids ? ARN_BAD_ARGUMENT : ARN_UNSUPPORTED,
            arn_session_encode_ids(session.get(), ids.data(), 9));
  EXPECT_EQ(takes_ids ? ARN_BAD_ARGUMENT : ARN_UNSUPPORTED,
            arn_session_encode_ids(session.get(), ids.data(), 0));
  for (const uint32_t frames : {0u, least - 1, most + 1}) {
    EXPECT_EQ(takes_ids ? ARN_UNSUPPORTED : ARN_BAD_ARGUMENT,
              arn_session_encode_features(session.get(), features.data(), frames, width));
  }
  EXPECT_EQ(takes_ids ? ARN_UNSUPPORTED : ARN_BAD_ARGUMENT,
            arn_session_encode_features(session.get(), features.data(), least, width + 1));
  if (takes_ids) {
    const int32_t outside = static_cast<int32_t>(golden_.vocab());
    EXPECT_EQ(ARN_BAD_TOKEN, arn_session_encode_ids(session.get(), &outside, 1));
    EXPECT_EQ(ARN_OK, arn_session_encode_ids(session.get(), ids.data(), 8));
  } else {
    for (const uint32_t frames : {least, most}) {
      EXPECT_EQ(ARN_OK, arn_session_encode_features(session.get(), features.data(), frames, width));
    }
  }
  EXPECT_EQ(ARN_OK,
            arn_session_prefill(session.get(), golden_.prompt.data(), golden_.prompt.size()));
  ASSERT_EQ(ARN_OK, arn_session_reset(session.get()));
  EXPECT_EQ(ARN_BAD_STATE,
            arn_session_prefill(session.get(), golden_.prompt.data(), golden_.prompt.size()));
}

INSTANTIATE_TEST_SUITE_P(Cases, EncoderGoldenTest,
                         testing::Values("relative_bias", "relative_bias_gated",
                                         "relative_bias_untied", "relative_bias_of_layers",
                                         "features", "windows_both_ways", "windows_both_ways_wide",
                                         "samples", "samples_odd"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace arn::test

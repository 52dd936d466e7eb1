// Text before the windows of speech, and windows that are distrusted: transformers' numbers where
// it draws nothing, and what must hold where tokens are drawn.
#include <cmath>

#include "gmock/gmock.h"
#include "tests/golden/speech_case.h"
#include "tests/unit/audio/signal.h"

namespace arn::test {
namespace {

using testing::HasSubstr;

class SpeechDecodingTest : public testing::Test {
 protected:
  void SetUp() override {
    ARN_NEEDS_CONVERTER();
    case_ = LoadSpeech("decoding");
  }
  void Start(uint32_t context_tokens = 0) {
    transcriber_.reset();
    if (model_ == nullptr) {
      ASSERT_TRUE(ConvertSpeech(case_, "", folder_ / "decoding", bundle_, {"--weights", "f32"}));
      model_ = OpenModel(bundle_);
      ASSERT_NE(nullptr, model_);
    }
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.kv_type = ARN_KV_F32;
    options.n_threads = 2;
    options.context_tokens = context_tokens;
    session_ = NewSession(model_.get(), options);
    ASSERT_NE(nullptr, session_);
    transcriber_ = NewTranscriber(session_.get());
    ASSERT_NE(nullptr, transcriber_);
  }
  SpeechFound Found(const arn_transcribe_options& given, size_t n_samples = 42345) {
    SpeechFound found;
    arn_transcribe_options options = given;
    options.language = "en";
    options.user = &found;
    options.on_segment = [](void* user, const arn_segment* s) {
      static_cast<SpeechFound*>(user)->segments.push_back(CopyOf(*s));
      return 0;
    };
    const std::vector<float> pcm = MakeSignal(n_samples);
    found.status =
        arn_transcribe(transcriber_.get(), pcm.data(), pcm.size(), &options, &found.result);
    return found;
  }
  std::string Refused(const arn_transcribe_options& options) {
    EXPECT_EQ(ARN_BAD_ARGUMENT, Found(options).status);
    return arn_transcriber_last_error(transcriber_.get());
  }

  TempFolder folder_;
  std::filesystem::path bundle_ = folder_ / "model.arn";
  SpeechCase case_;
  ModelPtr model_;
  SessionPtr session_;
  TranscriberPtr transcriber_;
};

std::vector<std::vector<int32_t>> IdsOf(const SpeechFound& found) {
  std::vector<std::vector<int32_t>> ids;
  for (const SpeechSegment& segment : found.segments) ids.push_back(segment.ids);
  return ids;
}

TEST_F(SpeechDecodingTest, TextBeforeWindowsAndSilence_AreTheReferences) {
  Start();
  for (const SpeechRun& run : case_.runs) {
    SCOPED_TRACE(testing::Message()
                 << run.n_samples << " samples, " << run.decoding.prompt_ids.size()
                 << " tokens before, threshold " << run.decoding.logprob_threshold);
    ExpectFound(run, Transcribe(transcriber_.get(), run));
  }
  // The same windows without a text differ: the text was read.
  const SpeechFound plain = Found(ARN_TRANSCRIBE_OPTIONS_INIT);
  EXPECT_NE(IdsOf(plain), IdsOf(Transcribe(transcriber_.get(), case_.runs[0])));
  EXPECT_NE(IdsOf(plain), IdsOf(Transcribe(transcriber_.get(), case_.runs[1])));
}

TEST_F(SpeechDecodingTest, DistrustedWindows_AreWrittenAgain) {
  Start();
  arn_transcribe_options options = ARN_TRANSCRIBE_OPTIONS_INIT;
  const SpeechFound plain = Found(options);
  options.temperature_step = 0.25f;
  SpeechFound found = Found(options);  // nothing distrusts
  EXPECT_EQ(IdsOf(plain), IdsOf(found));
  EXPECT_EQ(0u, found.result.n_retries);

  options.logprob_threshold = -1e-6f;  // distrusts all
  found = Found(options);
  ASSERT_EQ(ARN_OK, found.status);
  EXPECT_EQ(4 * found.result.n_windows, found.result.n_retries);  // 0.25, 0.5, 0.75, 1
  for (const SpeechSegment& segment : found.segments) {
    EXPECT_FLOAT_EQ(1.0f, segment.temperature);
    EXPECT_LT(segment.logprob, -1.0f);
  }
  EXPECT_EQ(IdsOf(found), IdsOf(Found(options))) << "the same seed";
  options.seed = 1;
  EXPECT_NE(IdsOf(found), IdsOf(Found(options)));

  options.logprob_threshold = -1e30f;  // rates, and trusts all
  found = Found(options);
  EXPECT_EQ(IdsOf(plain), IdsOf(found));
  EXPECT_EQ(0u, found.result.n_retries);
  for (const SpeechSegment& segment : found.segments) EXPECT_LT(segment.logprob, 0.0f);

  options = ARN_TRANSCRIBE_OPTIONS_INIT;
  options.logprob_threshold = -1e-6f;  // without a step the first are kept
  EXPECT_EQ(IdsOf(plain), IdsOf(Found(options)));
}

TEST_F(SpeechDecodingTest, RepeatedText_IsDistrusted) {
  Start();
  arn_transcribe_options options = ARN_TRANSCRIBE_OPTIONS_INIT;
  options.no_timestamps = 1;
  const SpeechFound plain = Found(options, 16000);
  ASSERT_EQ(1u, plain.segments.size());
  ASSERT_GT(plain.segments[0].ids.size(), 32u);
  options.entropy_threshold = 3.46f;  // below log(32): one repeated token is enough
  options.temperature_step = 1.0f;
  EXPECT_EQ(1u, Found(options, 16000).result.n_retries);
  options.entropy_threshold = 1e-3f;
  EXPECT_EQ(0u, Found(options, 16000).result.n_retries);
}

// Half of the context but one, and never all of it.
TEST_F(SpeechDecodingTest, LongText_IsCutAtItsBeginning) {
  const std::vector<int32_t> all = [] {
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 300; ++i) ids.push_back(3 + i % 7 * 31);
    return ids;
  }();
  const auto with = [&](size_t n) {
    arn_transcribe_options options = ARN_TRANSCRIBE_OPTIONS_INIT;
    options.prompt_ids = all.data() + all.size() - n;
    options.n_prompt_ids = static_cast<uint32_t>(n);
    return Found(options);
  };
  Start();
  const SpeechFound cut = with(300);
  ASSERT_EQ(ARN_OK, cut.status);
  EXPECT_EQ(IdsOf(with(19)), IdsOf(cut));  // of 40
  EXPECT_NE(IdsOf(with(18)), IdsOf(cut));
  for (const uint32_t context : {7u, 8u, 9u, 12u}) {
    SCOPED_TRACE(context);
    Start(context);
    EXPECT_EQ(ARN_OK, with(300).status);
  }
  Start(6);
  EXPECT_EQ(ARN_UNSUPPORTED, with(1).status);
  EXPECT_THAT(arn_transcriber_last_error(transcriber_.get()), HasSubstr("too short"));
}

TEST_F(SpeechDecodingTest, WrongOptions_AreRefusedWithTheReason) {
  Start();
  const auto refused = [&](auto set) {
    arn_transcribe_options options = ARN_TRANSCRIBE_OPTIONS_INIT;
    set(&options);
    return Refused(options);
  };
  EXPECT_THAT(refused([](auto* o) { o->temperature = 1.5f; }), HasSubstr("temperature is 1.5"));
  EXPECT_THAT(refused([](auto* o) { o->temperature = NAN; }), HasSubstr("temperature is nan"));
  EXPECT_THAT(refused([](auto* o) { o->temperature_step = 0.01f; }),
              HasSubstr("temperature_step is 0.01"));
  EXPECT_THAT(refused([](auto* o) { o->logprob_threshold = 0.5f; }),
              HasSubstr("logprob_threshold is 0.5"));
  EXPECT_THAT(refused([](auto* o) { o->entropy_threshold = -1; }),
              HasSubstr("entropy_threshold is -1"));
  EXPECT_THAT(refused([](auto* o) { o->no_speech_threshold = 2; }),
              HasSubstr("no_speech_threshold is 2"));
  EXPECT_THAT(refused([](auto* o) { o->no_speech_threshold = 0.5f; }),
              HasSubstr("needs a logprob_threshold"));
  EXPECT_THAT(refused([](auto* o) { o->condition_on_previous = 2; }),
              HasSubstr("condition_on_previous is 2"));
  EXPECT_THAT(refused([](auto* o) { o->n_prompt_ids = 1; }), HasSubstr("prompt_ids is NULL"));
  const int32_t wrong[] = {3, 9999};
  EXPECT_THAT(refused([&](auto* o) {
                o->prompt_ids = wrong;
                o->n_prompt_ids = 2;
              }),
              HasSubstr("prompt_ids has 9999"));
}

}  // namespace
}  // namespace arn::test

// Speech to text: the tokens and times of transformers' generate(), from samples to segments, by
// the C API and by the command arenite transcribe.
#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "tests/golden/speech_case.h"
#include "tests/harness/process.h"
#include "tests/unit/audio/signal.h"

namespace arn::test {
namespace {

using testing::HasSubstr;

constexpr const char* kTokenizer = "tests/unit/text/data/byte_level_added/tokenizer.json";

arn_session_options Options(uint32_t backend) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.backend = backend;
  options.kv_type = ARN_KV_F32;
  options.n_threads = 2;
  return options;
}

class SpeechTest : public testing::Test {
 protected:
  void SetUp() override { ARN_NEEDS_CONVERTER(); }

  void Open(const std::string& name, const std::string& tokenizer = "") {
    case_ = LoadSpeech(name);
    ASSERT_TRUE(ConvertSpeech(case_, tokenizer, folder_ / name, bundle_, {"--weights", "f32"}));
    model_ = OpenModel(bundle_);
    ASSERT_NE(nullptr, model_);
  }
  void Start(uint32_t backend = ARN_BACKEND_CPU) {
    session_ = NewSession(model_.get(), Options(backend));
    ASSERT_NE(nullptr, session_);
    transcriber_ = NewTranscriber(session_.get());
    ASSERT_NE(nullptr, transcriber_);
  }
  // Returns the reason of a refused call.
  std::string Refused(arn_status expected, const std::vector<float>& pcm,
                      const arn_transcribe_options& options) {
    arn_transcribe_result result = ARN_TRANSCRIBE_RESULT_INIT;
    EXPECT_EQ(expected,
              arn_transcribe(transcriber_.get(), pcm.data(), pcm.size(), &options, &result));
    return arn_transcriber_last_error(transcriber_.get());
  }
  // Writes samples as floats, twice in each frame.
  std::string WriteWav(const std::vector<float>& pcm, uint32_t rate = 16000) {
    std::string bytes = "RIFF....WAVEfmt ";
    const auto add = [&](uint32_t value, size_t n) {
      for (size_t i = 0; i < n; ++i) bytes += static_cast<char>(value >> (8 * i) & 255);
    };
    add(16, 4), add(3, 2), add(2, 2), add(rate, 4), add(rate * 8, 4), add(8, 2), add(32, 2);
    bytes += "data";
    add(static_cast<uint32_t>(pcm.size() * 8), 4);
    for (const float x : pcm) {
      uint32_t bits;
      std::memcpy(&bits, &x, sizeof bits);
      add(bits, 4), add(bits, 4);
    }
    WriteFile(folder_ / "sound.wav", bytes);
    return folder_ / "sound.wav";
  }

  TempFolder folder_;
  std::filesystem::path bundle_ = folder_ / "model.arn";
  SpeechCase case_;
  ModelPtr model_;
  SessionPtr session_;
  TranscriberPtr transcriber_;
};

TEST_F(SpeechTest, Multilingual_GivesTheReferencesSegments) {
  Open("multilingual");
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    Start(backend);
    for (const SpeechRun& run : case_.runs) {
      SCOPED_TRACE(testing::Message() << "backend " << backend << ", " << run.n_samples
                                      << " samples, language '" << run.given << "'");
      ExpectFound(run, Transcribe(transcriber_.get(), run));
    }
    transcriber_.reset();
  }
}

TEST_F(SpeechTest, OneLanguage_GivesTheReferencesSegments) {
  Open("english");
  Start();
  for (const SpeechRun& run : case_.runs) {
    SCOPED_TRACE(run.n_samples);
    ExpectFound(run, Transcribe(transcriber_.get(), run));
  }
  arn_transcribe_options options = ARN_TRANSCRIBE_OPTIONS_INIT;
  options.language = "en";
  EXPECT_THAT(Refused(ARN_BAD_ARGUMENT, {0.0f}, options), HasSubstr("'en'"));
  options.language = nullptr;
  options.translate = 1;
  EXPECT_THAT(Refused(ARN_UNSUPPORTED, {0.0f}, options), HasSubstr("translate"));
}

// An encoder of raw samples, without times: audio below its least, of one window and of two.
TEST_F(SpeechTest, Samples_GiveTheReferencesTokens) {
  Open("samples", kTokenizer);
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    Start(backend);
    for (const SpeechRun& run : case_.runs) {
      if (backend == ARN_BACKEND_REFERENCE && run.n_windows > 1) continue;
      SCOPED_TRACE(testing::Message() << "backend " << backend << ", " << run.n_samples);
      ExpectFound(run, Transcribe(transcriber_.get(), run));
    }
    transcriber_.reset();
  }
  Start();
  SpeechRun plain = case_.runs[1];
  plain.has_timestamps = false;  // the same
  ExpectFound(plain, Transcribe(transcriber_.get(), plain));
  arn_transcribe_info info = ARN_TRANSCRIBE_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_transcribe_get_info(model_.get(), &info));
  EXPECT_EQ(0u, info.has_timestamps);
  EXPECT_EQ(0u, info.n_languages);
  EXPECT_EQ(480894u, info.window_samples);
  const std::string sound = WriteWav(MakeSignal(plain.n_samples));
  const ProcessResult made = RunArenite({"transcribe", bundle_, sound, "--quiet", "--kv", "f32"});
  ASSERT_EQ(0, made.exit_code) << made.err;
  EXPECT_EQ(Detokenize(model_.get(), plain.segments[0].ids, ARN_DETOKENIZE_SKIP_SPECIAL),
            Transcribe(transcriber_.get(), plain).segments[0].text);
  EXPECT_FALSE(made.out.empty());
  for (const auto& [option, value] : {std::pair{"--format", "srt"}, {"--format", "vtt"}}) {
    const ProcessResult refused = RunArenite({"transcribe", bundle_, sound, option, value});
    EXPECT_EQ(1, refused.exit_code);
    EXPECT_THAT(refused.err, HasSubstr(std::string(option) + " " + value));
    EXPECT_THAT(refused.err, HasSubstr("the model writes no times"));
  }
  EXPECT_THAT(RunArenite({"transcribe", bundle_, sound, "--timestamps"}).err,
              HasSubstr("--timestamps: "));
}

TEST_F(SpeechTest, Info_NamesTheLanguages) {
  Open("multilingual");
  arn_transcribe_info info = ARN_TRANSCRIBE_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_transcribe_get_info(model_.get(), &info));
  EXPECT_EQ(5u, info.n_languages);
  EXPECT_EQ(1u, info.can_translate);
  EXPECT_EQ(1u, info.has_timestamps);
  EXPECT_EQ(16000u, info.window_samples);
  std::vector<std::string> names;
  const char* name = nullptr;
  while (arn_transcribe_language(model_.get(), static_cast<uint32_t>(names.size()), &name) ==
         ARN_OK) {
    names.push_back(name);
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("en", "zh", "de", "es", "yue"));
}

// The plan's bytes suffice, and nothing behind them is written.
TEST_F(SpeechTest, CallersMemory_OfThePlansSize_Suffices) {
  Open("multilingual", kTokenizer);
  const arn_session_options options = Options(ARN_BACKEND_CPU);
  session_ = NewSession(model_.get(), options);
  ASSERT_NE(nullptr, session_);
  char error[256] = "";
  uint64_t bytes = 0;
  arn_transcriber_options with_words = ARN_TRANSCRIBER_OPTIONS_INIT;
  with_words.words = 1;
  ASSERT_EQ(ARN_OK,
            arn_transcriber_plan(model_.get(), &options, &with_words, error, sizeof error, &bytes))
      << error;
  constexpr size_t kAlign = 64, kBehind = 256;
  std::vector<unsigned char> block(bytes + kAlign + kBehind, 0xA5);
  const size_t skip = (kAlign - reinterpret_cast<uintptr_t>(block.data()) % kAlign) % kAlign;
  arn_transcriber* refused = nullptr;
  EXPECT_EQ(ARN_OUT_OF_MEMORY,
            arn_transcriber_create(session_.get(), &with_words, block.data() + skip, bytes - 1,
                                   error, sizeof error, &refused));
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_transcriber_create(session_.get(), &with_words, block.data() + skip + 1, bytes,
                                   error, sizeof error, &refused));
  EXPECT_EQ(nullptr, refused);
  transcriber_ = NewTranscriber(session_.get(), block.data() + skip, bytes, &with_words);
  ASSERT_NE(nullptr, transcriber_);
  for (const SpeechRun& run : case_.runs) {
    ExpectFound(run, Transcribe(transcriber_.get(), run, /*has_words=*/true));
  }
  transcriber_.reset();
  for (size_t i = skip + bytes; i < block.size(); ++i) ASSERT_EQ(0xA5, block[i]) << i;
}

// Without a tokenizer each token of the text is a word.
TEST_F(SpeechTest, Words_HaveTheReferencesTimes) {
  Open("multilingual");
  arn_transcribe_info info = ARN_TRANSCRIBE_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_transcribe_get_info(model_.get(), &info));
  EXPECT_EQ(1u, info.has_word_times);
  constexpr double kNear = 0.0201;
  size_t n_words = 0, n_exact = 0;
  for (const uint32_t backend : {ARN_BACKEND_CPU, ARN_BACKEND_REFERENCE}) {
    session_ = NewSession(model_.get(), Options(backend));
    ASSERT_NE(nullptr, session_);
    transcriber_ = NewWordTranscriber(session_.get());
    ASSERT_NE(nullptr, transcriber_);
    for (const SpeechRun& run : case_.runs) {
      SCOPED_TRACE(testing::Message() << run.n_samples << " samples, '" << run.given << "'");
      const SpeechFound found = Transcribe(transcriber_.get(), run, /*has_words=*/true);
      ExpectFound(run, found);
      ASSERT_EQ(run.segments.size(), found.segments.size());
      for (size_t i = 0; i < run.segments.size(); ++i) {
        const SpeechSegment& expected = run.segments[i];
        size_t n_text = 0;
        for (const int32_t id : expected.ids) n_text += id < 500 ? 1 : 0;
        ASSERT_EQ(n_text, found.segments[i].words.size());
        for (const arn_word& word : found.segments[i].words) {
          ASSERT_EQ(1u, word.n_ids);
          EXPECT_LT(expected.ids[word.first_id], 500);
          EXPECT_NEAR(expected.times[word.first_id], word.end_s, kNear);
          if (word.first_id == 0) continue;
          EXPECT_NEAR(expected.times[word.first_id - 1], word.start_s, kNear);
          n_exact += std::abs(expected.times[word.first_id] - word.end_s) < 1e-6 ? 1 : 0;
          ++n_words;
        }
      }
      // Only when they are asked for.
      for (const SpeechSegment& segment : Transcribe(transcriber_.get(), run).segments) {
        EXPECT_TRUE(segment.words.empty());
      }
    }
    transcriber_.reset();
  }
  EXPECT_GT(n_words, 100u);
  EXPECT_GT(n_exact, n_words * 98 / 100);
}

TEST_F(SpeechTest, Words_AreTheText) {
  Open("multilingual", kTokenizer);
  session_ = NewSession(model_.get(), Options(ARN_BACKEND_CPU));
  ASSERT_NE(nullptr, session_);
  transcriber_ = NewWordTranscriber(session_.get());
  ASSERT_NE(nullptr, transcriber_);
  size_t n_words = 0;
  for (const SpeechRun& run : case_.runs) {
    for (const SpeechSegment& segment : Transcribe(transcriber_.get(), run, true).segments) {
      std::string text;
      double time = 0;
      for (const arn_word& word : segment.words) {
        EXPECT_EQ(text.size(), word.offset);
        text += segment.text.substr(word.offset, word.bytes);
        EXPECT_LE(word.start_s, word.end_s);
        EXPECT_LE(time, word.start_s);
        time = word.start_s;
        EXPECT_LE(word.first_id + word.n_ids, segment.ids.size());
      }
      EXPECT_EQ(segment.text, text);
      n_words += segment.words.size();
    }
  }
  EXPECT_GT(n_words, 10u);
}

TEST_F(SpeechTest, Words_AreRefusedWithTheReason) {
  Open("multilingual");
  Start();
  arn_transcribe_options options = ARN_TRANSCRIBE_OPTIONS_INIT;
  options.words = 1;
  EXPECT_THAT(Refused(ARN_BAD_STATE, {0.0f}, options), HasSubstr("without memory"));
  options.words = 2;
  EXPECT_THAT(Refused(ARN_BAD_ARGUMENT, {0.0f}, options), HasSubstr("words is 2"));
  arn_transcriber_options with = ARN_TRANSCRIBER_OPTIONS_INIT;
  char error[256] = "";
  uint64_t bytes = 0, bytes_with = 0;
  const arn_session_options session = Options(ARN_BACKEND_CPU);
  ASSERT_EQ(ARN_OK,
            arn_transcriber_plan(model_.get(), &session, &with, error, sizeof error, &bytes));
  with.words = 1;
  ASSERT_EQ(ARN_OK,
            arn_transcriber_plan(model_.get(), &session, &with, error, sizeof error, &bytes_with));
  EXPECT_GE(bytes_with - bytes, 3u * 40 * 50 * sizeof(float));  // heads, tokens, rows
  with.words = 3;
  EXPECT_EQ(ARN_BAD_ARGUMENT,
            arn_transcriber_plan(model_.get(), &session, &with, error, sizeof error, &bytes));
  EXPECT_THAT(error, HasSubstr("words is 3"));

  Open("english");
  arn_transcribe_info info = ARN_TRANSCRIBE_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_transcribe_get_info(model_.get(), &info));
  EXPECT_EQ(0u, info.has_word_times);
  with.words = 1;
  EXPECT_EQ(ARN_UNSUPPORTED,
            arn_transcriber_plan(model_.get(), &session, &with, error, sizeof error, &bytes));
  EXPECT_THAT(error, HasSubstr("alignment_heads"));
  const ProcessResult refused =
      RunArenite({"transcribe", bundle_, WriteWav({0.0f, 0.1f}), "--words"});
  EXPECT_EQ(1, refused.exit_code);
  EXPECT_THAT(refused.err, HasSubstr("--words: "));
}

TEST_F(SpeechTest, Text_IsThatOfTheSegmentsTokens) {
  Open("multilingual", kTokenizer);
  Start();
  const SpeechFound found = Transcribe(transcriber_.get(), case_.runs[3]);
  ExpectFound(case_.runs[3], found);
  std::string all;
  for (const SpeechSegment& segment : found.segments) {
    std::vector<int32_t> ids;
    for (const int32_t id : segment.ids) {
      if (id < 500) ids.push_back(id);
    }
    EXPECT_EQ(Detokenize(model_.get(), ids, ARN_DETOKENIZE_SKIP_SPECIAL), segment.text);
    all += segment.text;
  }
  EXPECT_FALSE(all.empty());
}

struct Log {
  arn_transcriber* transcriber = nullptr;
  arn_session* session = nullptr;
  std::vector<uint64_t> done;
  uint64_t total = 0;
  int n_segments = 0;
  int last_segment = 100;
  bool cancels = false;
};

TEST_F(SpeechTest, Progress_Grows_CallbacksAndCancelEndTheCall) {
  Open("multilingual");
  Start();
  const SpeechRun& run = case_.runs[3];
  const std::vector<float> pcm = MakeSignal(run.n_samples);
  Log log;
  log.transcriber = transcriber_.get();
  log.session = session_.get();
  arn_transcribe_options options = OptionsOf(run);
  options.user = &log;
  options.on_progress = [](void* user, uint64_t done, uint64_t total) {
    Log& to = *static_cast<Log*>(user);
    to.done.push_back(done);
    to.total = total;
    if (to.cancels) arn_session_cancel(to.session);
    const float silence = 0;
    // Calls that would change the session are refused here.
    EXPECT_EQ(ARN_BAD_STATE, arn_transcribe(to.transcriber, &silence, 1, nullptr, nullptr));
    EXPECT_EQ(ARN_BAD_STATE, arn_session_reset(to.session));
    return 0;
  };
  options.on_segment = [](void* user, const arn_segment*) {
    Log& to = *static_cast<Log*>(user);
    return ++to.n_segments == to.last_segment ? 1 : 0;
  };
  ASSERT_EQ(ARN_OK, arn_transcribe(transcriber_.get(), pcm.data(), pcm.size(), &options, nullptr));
  EXPECT_EQ(run.n_windows + 1, log.done.size());
  EXPECT_EQ(0u, log.done[0]);
  for (size_t i = 1; i < log.done.size(); ++i) EXPECT_LT(log.done[i - 1], log.done[i]);
  EXPECT_EQ(pcm.size(), log.done.back());
  EXPECT_EQ(pcm.size(), log.total);

  log.n_segments = 0;
  log.last_segment = 2;
  EXPECT_THAT(Refused(ARN_CANCELLED, pcm, options), HasSubstr("after 2 segments"));
  log.last_segment = 100;
  log.cancels = true;
  Refused(ARN_CANCELLED, pcm, options);
  log.cancels = false;
  log.n_segments = 0;
  ASSERT_EQ(ARN_OK, arn_transcribe(transcriber_.get(), pcm.data(), pcm.size(), &options, nullptr));
  EXPECT_EQ(run.segments.size(), static_cast<size_t>(log.n_segments));
}

TEST_F(SpeechTest, WrongCalls_AreRefusedWithTheReason) {
  Open("multilingual");
  Start();
  arn_transcribe_options options = ARN_TRANSCRIBE_OPTIONS_INIT;
  EXPECT_THAT(Refused(ARN_BAD_ARGUMENT, {}, options), HasSubstr("no samples"));
  EXPECT_THAT(Refused(ARN_BAD_ARGUMENT, {0.0f, NAN}, options), HasSubstr("sample 1 of 2"));
  options.language = "tlh";
  EXPECT_THAT(Refused(ARN_BAD_ARGUMENT, {0.0f}, options), HasSubstr("'tlh'"));
  options.language = nullptr;
  options.translate = 2;
  EXPECT_THAT(Refused(ARN_BAD_ARGUMENT, {0.0f}, options), HasSubstr("translate is 2"));
  char error[256] = "";
  arn_transcriber* transcriber = nullptr;
  arn_transcriber_options wrong = ARN_TRANSCRIBER_OPTIONS_INIT;
  wrong.sequence = 1;
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_transcriber_create(session_.get(), &wrong, nullptr, 0, error,
                                                     sizeof error, &transcriber));
  EXPECT_THAT(error, HasSubstr("sequence is 1"));
  arn_session_options small = Options(ARN_BACKEND_CPU);
  small.encoder_rows = 49;
  const SessionPtr session = NewSession(model_.get(), small);
  EXPECT_EQ(ARN_BAD_ARGUMENT, arn_transcriber_create(session.get(), nullptr, nullptr, 0, error,
                                                     sizeof error, &transcriber));
  EXPECT_THAT(error, HasSubstr("encoder_rows 49"));
  EXPECT_EQ(nullptr, transcriber);
}

TEST_F(SpeechTest, OtherModels_AreRefused) {
  const GoldenCase golden = LoadGolden("encoder/features");
  ASSERT_TRUE(ConvertGolden(golden, ConfigStyle::kTransformers5, folder_ / "features", bundle_,
                            {"--weights", "f32"}));
  const ModelPtr model = OpenModel(bundle_);
  ASSERT_NE(nullptr, model);
  arn_transcribe_info info = ARN_TRANSCRIBE_INFO_INIT;
  EXPECT_EQ(ARN_UNSUPPORTED, arn_transcribe_get_info(model.get(), &info));
  char error[256] = "";
  uint64_t bytes = 1;
  EXPECT_EQ(ARN_UNSUPPORTED,
            arn_transcriber_plan(model.get(), nullptr, nullptr, error, sizeof error, &bytes));
  EXPECT_THAT(error, HasSubstr("no_timestamps_token_id"));
  EXPECT_EQ(0u, bytes);
}

TEST_F(SpeechTest, Command_WritesJsonSubtitlesAndText) {
  Open("multilingual", kTokenizer);
  const SpeechRun& run = case_.runs[3];
  const std::string sound = WriteWav(MakeSignal(run.n_samples));
  const auto transcribe = [&](std::vector<std::string> more) {
    std::vector<std::string> call = {"transcribe", bundle_, sound, "--kv", "f32"};
    call.insert(call.end(), more.begin(), more.end());
    return RunArenite(call);
  };
  ProcessResult made = transcribe({"--format", "json"});
  ASSERT_EQ(0, made.exit_code) << made.err;
  const nlohmann::json json = nlohmann::json::parse(made.out);
  EXPECT_EQ(run.language, json.at("language"));
  ASSERT_EQ(run.segments.size(), json.at("segments").size());
  size_t n_spoken = 0;
  for (size_t i = 0; i < run.segments.size(); ++i) {
    const nlohmann::json& segment = json.at("segments")[i];
    EXPECT_EQ(run.segments[i].ids, segment.at("ids").get<std::vector<int32_t>>());
    EXPECT_NEAR(run.segments[i].start_s, segment.at("start").get<double>(), 1e-6);
    n_spoken += segment.at("text").get<std::string>().empty() ? 0 : 1;
  }
  ASSERT_GT(n_spoken, 0u);

  const auto count = [](const std::string& text, const std::string& part) {
    size_t n = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
  };
  made = transcribe({"--format", "srt"});
  ASSERT_EQ(0, made.exit_code) << made.err;
  EXPECT_EQ(0u, made.out.find("1\n00:00:0")) << made.out;
  EXPECT_EQ(n_spoken, count(made.out, " --> "));
  EXPECT_THAT(made.err, HasSubstr("language " + run.language));
  made = transcribe({"--format", "vtt", "--quiet"});
  ASSERT_EQ(0, made.exit_code) << made.err;
  EXPECT_EQ(0u, made.out.find("WEBVTT\n\n00:00:0")) << made.out;
  EXPECT_EQ("", made.err);
  made = transcribe({"--timestamps", "--quiet"});
  EXPECT_EQ(n_spoken, count(made.out, "\n"));
  EXPECT_EQ(0u, made.out.find("[00:00:0")) << made.out;
  made = transcribe({"--quiet"});
  EXPECT_EQ(0u, count(made.out, " --> "));
  EXPECT_EQ(n_spoken, count(made.out, "\n"));
}

TEST_F(SpeechTest, Command_BenchMeasuresTheEncoderToo) {
  Open("multilingual");
  const ProcessResult measured =
      RunArenite({"bench", bundle_, "-p", "2", "-n", "3", "-r", "2", "--threads", "1", "--json"});
  ASSERT_EQ(0, measured.exit_code) << measured.err;
  const nlohmann::json results = nlohmann::json::parse(measured.out).at("results");
  ASSERT_EQ(3u, results.size());
  EXPECT_EQ("encode", results[0].at("test"));
  arn_model_info info = ARN_MODEL_INFO_INIT;
  ASSERT_EQ(ARN_OK, arn_model_get_info(model_.get(), &info));
  EXPECT_EQ(info.encoder_rows, results[0].at("tokens"));
  EXPECT_GT(results[0].at("tokens_per_s"), 0);
  EXPECT_EQ(2u, results[0].at("runs").size());
  EXPECT_EQ("prefill", results[1].at("test"));
  EXPECT_EQ("decode", results[2].at("test"));
}

TEST_F(SpeechTest, Command_RefusesWithTheReason) {
  Open("multilingual");
  EXPECT_THAT(
      RunArenite({"inspect", bundle_}).out,
      HasSubstr(
          "speech      5 languages, translated to English too, times of words, windows of 1 s\n"));
  const std::string sound = WriteWav(MakeSignal(2000), 1000);
  ProcessResult made = RunArenite({"transcribe", bundle_, sound});
  EXPECT_EQ(1, made.exit_code);
  EXPECT_THAT(made.err, HasSubstr("has 1000 samples in a second, expected 8000 to 384000"));
  made = RunArenite({"transcribe", bundle_, sound, "--language", "tlh"});
  EXPECT_EQ(1, made.exit_code);
  EXPECT_THAT(made.err, HasSubstr("--language tlh"));
  EXPECT_THAT(made.err, HasSubstr("yue"));
  made = RunArenite({"transcribe", bundle_, bundle_});
  EXPECT_EQ(1, made.exit_code);
  EXPECT_THAT(made.err, HasSubstr("not a WAV or FLAC file"));
}

}  // namespace
}  // namespace arn::test

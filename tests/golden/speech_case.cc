#include "tests/golden/speech_case.h"

#include "tests/unit/audio/signal.h"

namespace arn::test {

namespace fs = std::filesystem;

namespace {

SpeechDecoding ReadDecoding(const nlohmann::json& json) {
  SpeechDecoding made;
  made.logprob_threshold = json.value("logprob_threshold", 0.0f);
  made.no_speech_threshold = json.value("no_speech_threshold", 0.0f);
  made.conditions_on_previous = json.value("condition_on_previous", false);
  made.prompt_ids = json.value("prompt_ids", std::vector<int32_t>());
  made.n_silent = json.at("silent");
  for (const nlohmann::json& rating : json.at("ratings")) {
    made.ratings.push_back({rating.at(0), rating.at(1)});
  }
  return made;
}

}  // namespace

SpeechCase LoadSpeech(const std::string& name) {
  const nlohmann::json json =
      nlohmann::json::parse(ReadText(SourcePath("tests/golden/data/speech/" + name + ".json")));
  SpeechCase out;
  out.golden.name = name;
  out.golden.config = out.golden.old_config = json.at("config");
  json.at("tensors").get_to(out.golden.tensors);
  out.golden.checkpoint.generation = json.at("generation");
  out.golden.checkpoint.base_seed = json.at("base_seed");
  out.golden.checkpoint.amplitude = json.at("amplitude");
  for (const nlohmann::json& run : json.at("runs")) {
    SpeechRun made;
    made.n_samples = run.at("samples");
    made.given = run.at("given");
    made.language = run.at("language");
    made.translates = run.at("translate");
    made.has_timestamps = run.at("timestamps");
    made.n_windows = run.at("windows");
    for (const nlohmann::json& segment : run.at("segments")) {
      made.segments.push_back({segment.at("start"),
                               segment.at("end"),
                               segment.at("ids"),
                               "",
                               segment.value("times", std::vector<double>()),
                               {}});
    }
    if (run.contains("decoding")) made.decoding = ReadDecoding(run.at("decoding"));
    out.runs.push_back(std::move(made));
  }
  return out;
}

bool ConvertSpeech(const SpeechCase& c, const std::string& tokenizer, const fs::path& folder,
                   const fs::path& bundle, const std::vector<std::string>& options) {
  fs::create_directories(folder);
  if (!tokenizer.empty()) {
    fs::copy_file(SourcePath(tokenizer), folder / "tokenizer.json",
                  fs::copy_options::overwrite_existing);
  }
  return ConvertGolden(c.golden, ConfigStyle::kTransformers5, folder, bundle, options);
}

TranscriberPtr NewTranscriber(arn_session* session, void* memory, uint64_t bytes,
                              const arn_transcriber_options* options) {
  char error[512] = "";
  arn_transcriber* transcriber = nullptr;
  EXPECT_EQ(ARN_OK, arn_transcriber_create(session, options, memory, bytes, error, sizeof error,
                                           &transcriber))
      << error;
  return TranscriberPtr(transcriber);
}

TranscriberPtr NewWordTranscriber(arn_session* session) {
  arn_transcriber_options options = ARN_TRANSCRIBER_OPTIONS_INIT;
  options.words = 1;
  return NewTranscriber(session, nullptr, 0, &options);
}

arn_transcribe_options OptionsOf(const SpeechRun& run) {
  arn_transcribe_options options = ARN_TRANSCRIBE_OPTIONS_INIT;
  options.language = run.given.c_str();
  options.translate = run.translates ? 1 : 0;
  options.no_timestamps = run.has_timestamps ? 0 : 1;
  options.logprob_threshold = run.decoding.logprob_threshold;
  options.no_speech_threshold = run.decoding.no_speech_threshold;
  options.condition_on_previous = run.decoding.conditions_on_previous ? 1 : 0;
  options.prompt_ids = run.decoding.prompt_ids.data();
  options.n_prompt_ids = static_cast<uint32_t>(run.decoding.prompt_ids.size());
  return options;
}

SpeechSegment CopyOf(const arn_segment& segment) {
  SpeechSegment made;
  made.start_s = segment.start_s;
  made.end_s = segment.end_s;
  made.ids.assign(segment.ids, segment.ids + segment.n_ids);
  if (segment.text != nullptr) made.text.assign(segment.text, segment.text_bytes);
  made.words.assign(segment.words, segment.words + segment.n_words);
  made.temperature = segment.temperature;
  made.logprob = segment.logprob;
  made.no_speech = segment.no_speech;
  return made;
}

SpeechFound Transcribe(arn_transcriber* transcriber, const SpeechRun& run, bool has_words) {
  SpeechFound found;
  arn_transcribe_options options = OptionsOf(run);
  options.user = &found;
  options.words = has_words ? 1 : 0;
  options.on_segment = [](void* user, const arn_segment* s) {
    static_cast<SpeechFound*>(user)->segments.push_back(CopyOf(*s));
    return 0;
  };
  const std::vector<float> pcm = MakeSignal(run.n_samples);
  found.status = arn_transcribe(transcriber, pcm.data(), pcm.size(), &options, &found.result);
  return found;
}

void ExpectFound(const SpeechRun& run, const SpeechFound& found) {
  EXPECT_EQ(ARN_OK, found.status);
  EXPECT_EQ(run.language, found.result.language);
  EXPECT_EQ(run.n_windows, found.result.n_windows);
  EXPECT_EQ(run.decoding.n_silent, found.result.n_silent);
  EXPECT_EQ(run.segments.size(), found.result.n_segments);
  ASSERT_EQ(run.segments.size(), found.segments.size());
  for (size_t i = 0; i < run.segments.size(); ++i) {
    EXPECT_EQ(run.segments[i].ids, found.segments[i].ids) << "segment " << i;
    EXPECT_NEAR(run.segments[i].start_s, found.segments[i].start_s, 1e-6) << "segment " << i;
    EXPECT_NEAR(run.segments[i].end_s, found.segments[i].end_s, 1e-6) << "segment " << i;
    if (run.decoding.ratings.empty()) continue;
    const SpeechDecoding::Rating& rating = run.decoding.ratings[i];
    EXPECT_NEAR(rating.logprob, static_cast<double>(found.segments[i].logprob), 3e-4);
    EXPECT_NEAR(rating.no_speech, static_cast<double>(found.segments[i].no_speech), 1e-6);
  }
}

}  // namespace arn::test

#include "tests/golden/speech_case.h"

#include "tests/unit/audio/signal.h"

namespace arn::test {

namespace fs = std::filesystem;

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
  return options;
}

SpeechFound Transcribe(arn_transcriber* transcriber, const SpeechRun& run, bool has_words) {
  SpeechFound found;
  arn_transcribe_options options = OptionsOf(run);
  options.user = &found;
  options.words = has_words ? 1 : 0;
  options.on_segment = [](void* user, const arn_segment* s) {
    static_cast<SpeechFound*>(user)->segments.push_back(
        {s->start_s,
         s->end_s,
         std::vector<int32_t>(s->ids, s->ids + s->n_ids),
         std::string(s->text == nullptr ? "" : s->text, s->text_bytes),
         {},
         std::vector<arn_word>(s->words, s->words + s->n_words)});
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
  EXPECT_EQ(run.segments.size(), found.result.n_segments);
  ASSERT_EQ(run.segments.size(), found.segments.size());
  for (size_t i = 0; i < run.segments.size(); ++i) {
    EXPECT_EQ(run.segments[i].ids, found.segments[i].ids) << "segment " << i;
    EXPECT_NEAR(run.segments[i].start_s, found.segments[i].start_s, 1e-6) << "segment " << i;
    EXPECT_NEAR(run.segments[i].end_s, found.segments[i].end_s, 1e-6) << "segment " << i;
  }
}

}  // namespace arn::test

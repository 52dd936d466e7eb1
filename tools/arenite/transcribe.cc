// arenite transcribe: writes down the speech of a sound file.

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>

#include "CLI/CLI.hpp"
#include "tools/arenite/commands.h"
#include "tools/arenite/interrupt.h"
#include "tools/arenite/io.h"
#include "tools/arenite/json.h"
#include "tools/arenite/options.h"
#include "tools/arenite/sound.h"
#include "tools/arenite/transcript.h"
#include "tools/cli/progress.h"

namespace arn::tool {
namespace {

constexpr const char* kAuto = "auto";

struct TranscribeArguments {
  ModelArguments model;
  SessionArguments session;
  std::string sound;
  std::string language = kAuto;
  std::string format = "text";
  bool translate = false, timestamps = false, words = false, quiet = false;
  std::string prompt;
  bool retry = false;
  arn_transcribe_options decoding = ARN_TRANSCRIBE_OPTIONS_INIT;  // what options of their own set
};

// The values of OpenAI's whisper; the entropy is whisper.cpp's.
constexpr float kRetryStep = 0.2f, kRetryLogprob = -1.0f, kRetryEntropy = 2.4f;
constexpr float kRetryNoSpeech = 0.6f;

const std::vector<std::string>& FormatNames() {
  static const std::vector<std::string> names = {"text", "srt", "vtt", "json"};
  return names;
}

TranscriptFormat FormatOf(const std::string& name) {
  const std::vector<std::string>& names = FormatNames();
  return static_cast<TranscriptFormat>(std::find(names.begin(), names.end(), name) - names.begin());
}

// Refuses a language that the model does not have, with those that it has.
void CheckLanguage(const Model& model, const std::string& language) {
  if (language == kAuto) return;
  std::string names;
  const char* name = nullptr;
  for (uint32_t i = 0; arn_transcribe_language(model.get(), i, &name) == ARN_OK; ++i) {
    if (language == name) return;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw Error("--language " + language + ": " + model.path() +
              (names.empty() ? ": the model has one language, which is not named: leave it out"
                             : ": the model has " + names));
}

// Receives segments and progress, prints the ones and shows the other.
class Printer {
 public:
  Printer(const TranscribeArguments& arguments, TranscriptFormat format)
      : arguments_(arguments), format_(format), progress_(arguments.quiet, cli::UsualPatience()) {}

  void Fill(arn_transcribe_options* options) {
    options->user = this;
    options->on_segment = [](void* user, const arn_segment* segment) {
      auto& self = *static_cast<Printer*>(user);
      return self.Guard([&] { self.Add(*segment); });
    };
    options->on_progress = [](void* user, uint64_t done, uint64_t total) {
      auto& self = *static_cast<Printer*>(user);
      return self.Guard([&] { self.Show(done, total); });
    };
  }
  // Throws what was thrown within a callback.
  void Rethrow() {
    progress_.Clear();
    if (failure_) std::rethrow_exception(failure_);
  }
  const std::vector<TranscriptSegment>& segments() const { return segments_; }

 private:
  // An exception must not pass through the library.
  template <typename Function>
  int32_t Guard(const Function& function) {
    try {
      function();
      return 0;
    } catch (...) {
      failure_ = std::current_exception();
      return 1;
    }
  }
  void Add(const arn_segment& segment) {
    TranscriptSegment made = CopySegment(segment);
    made.text = Trimmed(made.text);
    if (format_ == TranscriptFormat::kJson) {
      segments_.push_back(std::move(made));
    } else if (arguments_.words) {
      for (const TranscriptSegment& word : WordsOf(made)) PrintPart(word);
    } else if (!made.text.empty()) {
      PrintPart(made);
    }
  }
  void PrintPart(const TranscriptSegment& part) {
    progress_.Clear();
    Print(SegmentText(format_, part, ++n_printed_, arguments_.timestamps));
  }
  void Show(uint64_t done, uint64_t total) {
    const auto seconds = [](uint64_t samples) {
      return cli::Duration(static_cast<double>(samples) / ARN_SAMPLE_RATE);
    };
    progress_.Update("transcribing: " + seconds(done) + " of " + seconds(total), done, total);
  }

  const TranscribeArguments& arguments_;
  TranscriptFormat format_;
  cli::Progress progress_;
  std::vector<TranscriptSegment> segments_;
  uint32_t n_printed_ = 0;
  std::exception_ptr failure_;
};

void WriteWords(const std::vector<TranscriptWord>& words, JsonWriter* json) {
  json->Key("words").BeginArray();
  for (const TranscriptWord& word : words) {
    json->BeginObject();
    json->Key("start").Number(word.start_s);
    json->Key("end").Number(word.end_s);
    json->Key("text").String(word.text);
    json->EndObject();
  }
  json->EndArray();
}

void WriteJson(const std::vector<TranscriptSegment>& segments, const arn_transcribe_result& result,
               const arn_transcribe_options& decoding, double audio_s, double seconds) {
  JsonWriter json;
  json.BeginObject();
  json.Key("language").String(result.language);
  json.Key("language_probability").Number(static_cast<double>(result.language_probability));
  json.Key("audio_s").Number(audio_s);
  json.Key("seconds").Number(seconds);
  json.Key("windows").Uint(result.n_windows);
  json.Key("retries").Uint(result.n_retries);
  json.Key("silent").Uint(result.n_silent);
  json.Key("tokens").Uint(result.n_tokens);
  std::string text;
  for (const TranscriptSegment& segment : segments) {
    if (!segment.text.empty()) text += (text.empty() ? "" : " ") + segment.text;
  }
  json.Key("text").String(text);
  json.Key("segments").BeginArray();
  for (const TranscriptSegment& segment : segments) {
    json.BeginObject();
    json.Key("start").Number(segment.start_s);
    json.Key("end").Number(segment.end_s);
    json.Key("text").String(segment.text);
    json.Key("ids").Ids(segment.ids);
    json.Key("temperature").Number(segment.temperature);
    if (decoding.logprob_threshold < 0) json.Key("logprob").Number(segment.logprob);
    if (decoding.no_speech_threshold > 0) json.Key("no_speech").Number(segment.no_speech);
    if (decoding.words != 0) WriteWords(segment.words, &json);
    json.EndObject();
  }
  json.EndArray();
  Print(json.EndObject().Finish());
}

void AddDecodingOptions(CLI::App* sub, TranscribeArguments* arguments) {
  arn_transcribe_options& to = arguments->decoding;
  const char* const kGroup = "Decoding";
  sub->add_option("--prompt", arguments->prompt,
                  "Text before the speech: shows the model names and style")
      ->group(kGroup);
  sub->add_flag_callback(
         "--retry",
         [&to] {
           to.temperature_step = kRetryStep;
           to.logprob_threshold = kRetryLogprob;
           to.entropy_threshold = kRetryEntropy;
           to.no_speech_threshold = kRetryNoSpeech;
         },
         "Leaves out silence, and writes windows that repeat themselves or are unlikely again: "
         "--temperature-step 0.2 --logprob-threshold -1 --entropy-threshold 2.4 "
         "--no-speech-threshold 0.6")
      ->trigger_on_parse()
      ->group(kGroup);
  sub->add_flag_callback(
         "--condition-on-previous", [&to] { to.condition_on_previous = 1; },
         "Shows the model the text of the windows before each")
      ->group(kGroup);
  sub->add_option("--temperature", to.temperature, "0: the likeliest tokens; up to 1: drawn ones")
      ->group(kGroup);
  sub->add_option("--temperature-step", to.temperature_step,
                  "Increases the temperature of a window that a threshold distrusts; 0: never")
      ->group(kGroup);
  sub->add_option("--logprob-threshold", to.logprob_threshold,
                  "Distrusts windows whose tokens have a lower mean log-probability; 0: none")
      ->group(kGroup);
  sub->add_option("--entropy-threshold", to.entropy_threshold,
                  "Distrusts windows whose last 32 tokens have a lower entropy; 0: none")
      ->group(kGroup);
  sub->add_option("--no-speech-threshold", to.no_speech_threshold,
                  "Leaves out unlikely windows with a larger probability of silence; 0: none")
      ->group(kGroup);
  sub->add_option("--seed", to.seed, "Of drawn tokens")->group(kGroup);
}

int Run(const TranscribeArguments& arguments) {
  const Model model = OpenModel(arguments.model);
  arn_transcribe_info info = ARN_TRANSCRIBE_INFO_INIT;
  if (arn_transcribe_get_info(model.get(), &info) != ARN_OK) {
    throw Error(model.path() + ": the model does not write speech down (Whisper and Moonshine do)");
  }
  const TranscriptFormat format = FormatOf(arguments.format);
  const bool is_subtitles = format == TranscriptFormat::kSrt || format == TranscriptFormat::kVtt;
  if (info.has_timestamps == 0 && (is_subtitles || arguments.timestamps)) {
    throw Error((is_subtitles ? "--format " + arguments.format : std::string("--timestamps")) +
                ": " + model.path() + ": the model writes no times");
  }
  if (arguments.words && info.has_word_times == 0) {
    throw Error("--words: " + model.path() + ": the model has no times of words (its checkpoint " +
                "has no alignment_heads)");
  }
  if (arguments.words && format == TranscriptFormat::kText && !arguments.timestamps) {
    throw Error("--words: text is without times: add --timestamps, or --format srt, vtt or json");
  }
  CheckLanguage(model, arguments.language);
  if (arguments.translate && info.can_translate == 0) {
    throw Error("--translate: " + model.path() + ": the model does not translate");
  }
  const std::vector<float> samples =
      ReadSoundAt(ARN_SAMPLE_RATE, ReadFile(arguments.sound), arguments.sound);
  const Session session(model, ToSessionOptions(arguments.session));
  arn_transcriber_options transcriber_options = ARN_TRANSCRIBER_OPTIONS_INIT;
  transcriber_options.words = arguments.words ? 1 : 0;
  const TranscriberPtr transcriber = NewTranscriber(model, session, transcriber_options);
  const CancelOnSignal cancel(session.get());

  Printer printer(arguments, format);
  const std::vector<int32_t> prompt = SpeechPromptIds(model, arguments.prompt);
  arn_transcribe_options options = arguments.decoding;
  options.prompt_ids = prompt.data();
  options.n_prompt_ids = static_cast<uint32_t>(prompt.size());
  if (arguments.language != kAuto) options.language = arguments.language.c_str();
  options.translate = arguments.translate ? 1 : 0;
  options.words = arguments.words ? 1 : 0;
  printer.Fill(&options);
  arn_transcribe_result result = ARN_TRANSCRIBE_RESULT_INIT;
  Print(TranscriptHead(format));
  const auto start = std::chrono::steady_clock::now();
  const arn_status status =
      arn_transcribe(transcriber.get(), samples.data(), samples.size(), &options, &result);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  printer.Rethrow();
  if (status == ARN_CANCELLED) throw Interrupted();
  if (status != ARN_OK) {
    throw Error(arguments.sound + ": " + arn_transcriber_last_error(transcriber.get()));
  }
  const double audio_s = static_cast<double>(samples.size()) / ARN_SAMPLE_RATE;
  if (format == TranscriptFormat::kJson) {
    WriteJson(printer.segments(), result, options, audio_s, seconds);
  } else if (!arguments.quiet) {
    std::string language;
    if (result.language[0] != '\0') language = Format("language %s, ", result.language);
    if (!language.empty() && arguments.language == kAuto) {
      language = Format("language %s (%.0f %%), ", result.language,
                        100 * static_cast<double>(result.language_probability));
    }
    std::string again;
    if (result.n_retries != 0) again += Format(", %u windows again", result.n_retries);
    if (result.n_silent != 0) again += Format(", %u left out as silence", result.n_silent);
    std::fprintf(stderr, "%s%.1f s of sound in %.1f s%s\n", language.c_str(), audio_s, seconds,
                 again.c_str());
  }
  return 0;
}

}  // namespace

Command AddTranscribe(CLI::App* app) {
  CLI::App* sub = app->add_subcommand("transcribe", "Writes down the speech of a sound file");
  const auto arguments = std::make_shared<TranscribeArguments>();
  AddModelOptions(sub, &arguments->model);
  sub->add_option("SOUND", arguments->sound,
                  "WAV or FLAC file of any rate; channels are averaged; -: standard input")
      ->required();
  sub->add_option("--language", arguments->language,
                  "Language of the speech, such as en; auto: found in the first window")
      ->capture_default_str();
  sub->add_flag("--translate", arguments->translate, "Writes English, whatever is spoken");
  sub->add_option("--format", arguments->format, "text, srt or vtt (subtitles), or json")
      ->transform(CLI::IsMember(FormatNames(), CLI::ignore_case))
      ->capture_default_str();
  sub->add_flag("--timestamps", arguments->timestamps, "With times before each line of text");
  sub->add_flag("--words", arguments->words,
                "With times of words: a subtitle or line for each, or words in json");
  AddDecodingOptions(sub, arguments.get());
  sub->add_flag("--quiet", arguments->quiet, "Shows no progress and no summary");
  AddSessionOptions(sub, &arguments->session, "the model's");
  sub->footer(
      "Examples:\n"
      "  arenite transcribe whisper.arn talk.wav\n"
      "  arenite transcribe whisper.arn talk.wav --language de --translate\n"
      "  arenite transcribe whisper.arn talk.wav --retry --prompt \"Arenite, GGUF\"\n"
      "  arenite transcribe whisper.arn talk.wav --format srt > talk.srt");
  return {sub, [arguments] { return Run(*arguments); }};
}

}  // namespace arn::tool

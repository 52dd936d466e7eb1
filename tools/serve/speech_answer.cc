#include "tools/serve/speech_answer.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "tools/cli/format.h"
#include "tools/serve/answer.h"
#include "tools/serve/json_fields.h"

namespace arn::serve {
namespace {

using tool::TranscriptFormat;
using tool::TranscriptSegment;

constexpr std::chrono::milliseconds kPatience{100};

enum class Form : uint8_t { kJson, kText, kSrt, kVtt, kVerboseJson };

// Wanted: what an answer is to be.
struct Wanted {
  Form form = Form::kJson;
  bool streams = false;
  bool translates = false;
  bool has_segments = true;  // verbose_json has a list of them
  bool has_words = false;    // likewise; subtitles are of words
};

struct SpeechFields {
  SpeechRequest request;
  Wanted wanted;
};

// Fields of arn_transcribe_options with their ranges, which the library narrows.
struct NumberField {
  const char* name;
  float arn_transcribe_options::*to;
  double least, most;
};
constexpr NumberField kNumbers[] = {
    {"temperature", &arn_transcribe_options::temperature, 0, 1},
    {"temperature_step", &arn_transcribe_options::temperature_step, 0, 1},
    {"logprob_threshold", &arn_transcribe_options::logprob_threshold, -1e30, 0},
    {"entropy_threshold", &arn_transcribe_options::entropy_threshold, 0, 1e30},
    {"no_speech_threshold", &arn_transcribe_options::no_speech_threshold, 0, 1},
};

bool IsNumber(const std::string& name) {
  return std::any_of(std::begin(kNumbers), std::end(kNumbers),
                     [&](const NumberField& field) { return field.name == name; });
}

// Returns the parts of a form that are text as the fields of an object, whose values have the types
// they would have in JSON. Names that end in [] are lists.
Json TextFields(const HttpRequest& request) {
  Json fields = Json::object();
  for (const HttpPart& part : request.parts) {
    if (part.is_file) continue;
    const std::string text(part.content);
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    Json value = text;
    if (text == "true" || text == "false") {
      value = text == "true";
    } else if (IsNumber(part.name) && !text.empty() && *end == '\0') {
      value = number;
    }
    if (part.name.size() > 2 && part.name.compare(part.name.size() - 2, 2, "[]") == 0) {
      fields[part.name].push_back(std::move(value));
    } else {
      fields[part.name] = std::move(value);
    }
  }
  return fields;
}

std::string_view FileOf(const HttpRequest& request) {
  for (const HttpPart& part : request.parts) {
    if (part.is_file && part.name == "file") return part.content;
  }
  for (const HttpPart& part : request.parts) {
    if (part.is_file) throw BadField(part.name, "is a file, which is expected as file");
  }
  throw ApiError(400, "invalid_request_error", "file is missing", "file", "missing_field");
}

Form FormOf(const std::string& name) {
  static const char* const kNames[] = {"json", "text", "srt", "vtt", "verbose_json"};
  const auto* const at = std::find(std::begin(kNames), std::end(kNames), name);
  if (at == std::end(kNames)) {
    throw BadField("response_format",
                   "is \"" + name + "\", expected json, text, srt, vtt or verbose_json");
  }
  return static_cast<Form>(at - std::begin(kNames));
}

void ReadGranularities(Fields* fields, const Transcriber& transcriber, Wanted* out) {
  const Json* list = fields->Find("timestamp_granularities[]");
  if (list == nullptr) list = fields->Find("timestamp_granularities");
  if (list == nullptr) return;
  out->has_segments = false;
  const Json one = Json::array({*list});
  for (const Json& name : list->is_array() ? *list : one) {
    if (name == "segment") {
      out->has_segments = true;
    } else if (name == "word") {
      out->has_words = true;
    } else {
      throw BadField("timestamp_granularities", "has " + Dump(name) + ", expected segment or word");
    }
  }
  if (out->has_words && !transcriber.has_word_times()) {
    throw BadField("timestamp_granularities",
                   "has \"word\": the model has no times of words (its checkpoint has no "
                   "alignment_heads)");
  }
}

std::string LanguageOf(Fields* fields, const Transcriber& transcriber) {
  const std::string language = fields->Text("language").value_or("");
  const std::vector<std::string>& known = transcriber.languages();
  if (language.empty() || std::find(known.begin(), known.end(), language) != known.end()) {
    return language;
  }
  std::string names;
  for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
  throw BadField("language", "is \"" + language + "\", but the model has " +
                                 (names.empty() ? "one language, which is not named" : names));
}

void ReadDecoding(Fields* fields, arn_transcribe_options* out) {
  for (const NumberField& field : kNumbers) {
    const std::optional<double> value = fields->Number(field.name, field.least, field.most);
    if (value) out->*field.to = static_cast<float>(*value);
  }
  out->condition_on_previous = fields->Bool("condition_on_previous").value_or(false) ? 1 : 0;
}

SpeechFields Read(const HttpRequest& request, bool translates, const Transcriber& transcriber) {
  if (!request.is_form) {
    throw ApiError(400, "invalid_request_error",
                   "the body is not a form: expected Content-Type: multipart/form-data", "",
                   "invalid_form");
  }
  const Json json = TextFields(request);
  Fields fields(json, "");
  SpeechFields read;
  Wanted& wanted = read.wanted;
  const auto model = fields.Text("model");
  if (model && *model != transcriber.name()) {
    throw ApiError(404, "invalid_request_error",
                   "there is no model \"" + *model + "\" for this: the server has \"" +
                       transcriber.name() + "\"",
                   "model", "model_not_found");
  }
  read.request.translates = wanted.translates = translates;
  if (!translates) {
    read.request.language = LanguageOf(&fields, transcriber);
    ReadGranularities(&fields, transcriber, &wanted);
    read.request.has_words = wanted.has_words;
  } else if (!transcriber.can_translate()) {
    throw ApiError(501, "invalid_request_error", "the model does not translate", "model",
                   "unsupported_endpoint");
  }
  wanted.streams = fields.Bool("stream").value_or(false);
  wanted.form = FormOf(fields.Text("response_format").value_or("json"));
  if (!transcriber.has_timestamps() && (wanted.form == Form::kSrt || wanted.form == Form::kVtt)) {
    throw BadField("response_format", "has times, and the model writes none");
  }
  if (wanted.has_words && (wanted.form == Form::kJson || wanted.form == Form::kText)) {
    throw BadField("timestamp_granularities",
                   "has \"word\": expected verbose_json, srt or vtt as response_format");
  }
  read.request.prompt = fields.Text("prompt").value_or("");
  ReadDecoding(&fields, &read.request.decoding);
  fields.Ignore({"chunking_strategy"});  // windows are the model's
  fields.End();
  if (wanted.streams && (wanted.form == Form::kSrt || wanted.form == Form::kVtt)) {
    throw BadField("stream", "is true: expected json, text or verbose_json as response_format");
  }
  read.request.sound = FileOf(request);
  return read;
}

Json Usage(const SpeechResult& result) {
  return {{"type", "duration"}, {"seconds", result.seconds}};
}

std::string TextOf(const std::vector<TranscriptSegment>& segments) {
  std::string text;
  for (const TranscriptSegment& segment : segments) text += segment.text;
  return tool::Trimmed(text);
}

Json PlainJson(const std::vector<TranscriptSegment>& segments, const SpeechResult& result) {
  return {{"text", TextOf(segments)}, {"usage", Usage(result)}};
}

Json WordsJson(const TranscriptSegment& segment) {
  Json list = Json::array();
  for (const TranscriptSegment& word : tool::WordsOf(segment)) {
    list.push_back({{"word", word.text}, {"start", word.start_s}, {"end", word.end_s}});
  }
  return list;
}

Json SegmentJson(size_t id, const TranscriptSegment& segment) {
  return {{"id", id},
          {"start", segment.start_s},
          {"end", segment.end_s},
          {"text", segment.text},
          {"tokens", segment.ids},
          {"temperature", segment.temperature},
          {"avg_logprob", segment.logprob},
          {"no_speech_prob", segment.no_speech}};
}

Json VerboseJson(const std::vector<TranscriptSegment>& segments, const SpeechResult& result,
                 const Wanted& wanted) {
  Json list = Json::array(), words = Json::array();
  for (const TranscriptSegment& segment : segments) {
    list.push_back(SegmentJson(list.size(), segment));
    for (Json& word : WordsJson(segment)) words.push_back(std::move(word));
  }
  Json json = {{"task", wanted.translates ? "translate" : "transcribe"},
               {"language", result.language},
               {"duration", result.seconds},
               {"text", TextOf(segments)},
               {"usage", Usage(result)}};
  if (wanted.has_segments) json["segments"] = std::move(list);
  if (wanted.has_words) json["words"] = std::move(words);
  return json;
}

// One for each segment, or for each word of it.
std::string Subtitles(TranscriptFormat format, const std::vector<TranscriptSegment>& segments,
                      bool has_words) {
  std::string text = tool::TranscriptHead(format);
  uint32_t n = 0;
  const auto add = [&](TranscriptSegment part) {
    part.text = tool::Trimmed(part.text);
    if (!part.text.empty()) text += tool::SegmentText(format, part, ++n, /*with_times=*/true);
  };
  for (const TranscriptSegment& segment : segments) {
    if (!has_words) {
      add(segment);
      continue;
    }
    for (const TranscriptSegment& word : tool::WordsOf(segment)) add(word);
  }
  return text;
}

HttpReply Whole(const std::vector<TranscriptSegment>& segments, const SpeechResult& result,
                const Wanted& wanted) {
  HttpReply reply;
  switch (wanted.form) {
    case Form::kJson: reply.body = Dump(PlainJson(segments, result)); break;
    case Form::kVerboseJson: reply.body = Dump(VerboseJson(segments, result, wanted)); break;
    case Form::kText:
      reply.type = "text/plain; charset=utf-8";
      reply.body = TextOf(segments) + "\n";
      break;
    case Form::kSrt:
      reply.type = "text/plain; charset=utf-8";
      reply.body = Subtitles(TranscriptFormat::kSrt, segments, wanted.has_words);
      break;
    case Form::kVtt:
      reply.type = "text/vtt; charset=utf-8";
      reply.body = Subtitles(TranscriptFormat::kVtt, segments, wanted.has_words);
      break;
  }
  return reply;
}

std::string Frame(const Json& value) { return "data: " + Dump(value) + "\n\n"; }

// With verbose_json each segment has an event of its own, and the last event has all of its fields.
HttpReply Stream(std::shared_ptr<Transcription> transcription, const Wanted& wanted,
                 Transcriber* transcriber) {
  HttpReply reply;
  reply.type = "text/event-stream";
  reply.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  const auto segments = std::make_shared<std::vector<TranscriptSegment>>();
  const bool is_verbose = wanted.form == Form::kVerboseJson;
  reply.stream = [transcription, segments, is_verbose, wanted](std::string* out) {
    const Transcription::News news = transcription->Take(kPatience);
    for (const TranscriptSegment& segment : news.segments) {
      if (is_verbose) {
        Json event = SegmentJson(segments->size(), segment);
        if (wanted.has_words) event["words"] = WordsJson(segment);
        event["type"] = "transcript.text.segment";
        *out += Frame(event);
      }
      segments->push_back(segment);
      if (segment.text.empty()) continue;
      *out += Frame({{"type", "transcript.text.delta"}, {"delta", segment.text}});
    }
    if (news.error) {
      *out += "data: " + news.error->Json() + "\n\n";
      return false;
    }
    if (!news.result) return true;
    Json last = is_verbose ? VerboseJson(*segments, *news.result, wanted)
                           : PlainJson(*segments, *news.result);
    last["type"] = "transcript.text.done";
    *out += Frame(last);
    return false;
  };
  reply.on_end = [transcription, transcriber] { transcriber->Cancel(transcription); };
  return reply;
}

}  // namespace

HttpReply AnswerSpeech(const HttpRequest& request, bool translates, Transcriber* transcriber) {
  SpeechFields fields = Read(request, translates, *transcriber);
  const auto transcription = std::make_shared<Transcription>(std::move(fields.request));
  transcriber->Submit(transcription);
  std::vector<TranscriptSegment> segments;
  for (;;) {
    if (fields.wanted.streams) {
      if (transcription->HasBegun(kPatience)) {
        return Stream(transcription, fields.wanted, transcriber);
      }
    } else {
      Transcription::News news = transcription->Take(kPatience);
      if (news.error) throw ApiError(*news.error);
      std::move(news.segments.begin(), news.segments.end(), std::back_inserter(segments));
      if (news.result) return Whole(segments, *news.result, fields.wanted);
    }
    if (request.is_gone()) {
      transcriber->Cancel(transcription);
      throw ApiError(499, "server_error", "the client has gone");
    }
  }
}

}  // namespace arn::serve

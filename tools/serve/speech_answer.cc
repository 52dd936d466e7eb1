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

struct SpeechFields {
  SpeechRequest request;
  Form form = Form::kJson;
  bool streams = false;
};

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
    } else if (part.name == "temperature" && !text.empty() && *end == '\0') {
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

void CheckGranularities(Fields* fields) {
  const Json* list = fields->Find("timestamp_granularities[]");
  if (list == nullptr) list = fields->Find("timestamp_granularities");
  if (list == nullptr) return;
  for (const Json& one : *list) {
    if (one != "segment") {
      throw BadField("timestamp_granularities",
                     "has " + Dump(one) + ": times are of segments, not of words");
    }
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

SpeechFields Read(const HttpRequest& request, bool translates, const Transcriber& transcriber) {
  if (!request.is_form) {
    throw ApiError(400, "invalid_request_error",
                   "the body is not a form: expected Content-Type: multipart/form-data", "",
                   "invalid_form");
  }
  const Json json = TextFields(request);
  Fields fields(json, "");
  SpeechFields read;
  const auto model = fields.Text("model");
  if (model && *model != transcriber.name()) {
    throw ApiError(404, "invalid_request_error",
                   "there is no model \"" + *model + "\" for this: the server has \"" +
                       transcriber.name() + "\"",
                   "model", "model_not_found");
  }
  read.request.translates = translates;
  if (!translates) {
    read.request.language = LanguageOf(&fields, transcriber);
    CheckGranularities(&fields);
  } else if (!transcriber.can_translate()) {
    throw ApiError(501, "invalid_request_error", "the model does not translate", "model",
                   "unsupported_endpoint");
  }
  read.streams = fields.Bool("stream").value_or(false);
  read.form = FormOf(fields.Text("response_format").value_or("json"));
  if (!transcriber.has_timestamps() && (read.form == Form::kSrt || read.form == Form::kVtt)) {
    throw BadField("response_format", "has times, and the model writes none");
  }
  if (!fields.Text("prompt").value_or("").empty()) {
    throw BadField("prompt", "is not supported: the model gets no text before the speech");
  }
  if (fields.Number("temperature", 0, 1).value_or(0) > 0) {
    throw BadField("temperature", "is above 0: speech is written down greedily");
  }
  fields.Ignore({"chunking_strategy"});  // windows are the model's
  fields.End();
  if (read.streams && (read.form == Form::kSrt || read.form == Form::kVtt)) {
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

Json SegmentJson(size_t id, const TranscriptSegment& segment) {
  return {{"id", id},
          {"start", segment.start_s},
          {"end", segment.end_s},
          {"text", segment.text},
          {"tokens", segment.ids},
          {"temperature", 0.0}};
}

Json VerboseJson(const std::vector<TranscriptSegment>& segments, const SpeechResult& result,
                 bool translates) {
  Json list = Json::array();
  for (const TranscriptSegment& segment : segments) {
    list.push_back(SegmentJson(list.size(), segment));
  }
  return {{"task", translates ? "translate" : "transcribe"},
          {"language", result.language},
          {"duration", result.seconds},
          {"text", TextOf(segments)},
          {"segments", std::move(list)},
          {"usage", Usage(result)}};
}

HttpReply Whole(Form form, std::vector<TranscriptSegment> segments, const SpeechResult& result,
                bool translates) {
  HttpReply reply;
  if (form == Form::kJson) {
    reply.body = Dump(PlainJson(segments, result));
    return reply;
  }
  if (form == Form::kVerboseJson) {
    reply.body = Dump(VerboseJson(segments, result, translates));
    return reply;
  }
  reply.type = form == Form::kVtt ? "text/vtt; charset=utf-8" : "text/plain; charset=utf-8";
  if (form == Form::kText) {
    reply.body = TextOf(segments) + "\n";
    return reply;
  }
  const auto format = form == Form::kSrt ? TranscriptFormat::kSrt : TranscriptFormat::kVtt;
  reply.body = tool::TranscriptHead(format);
  uint32_t n = 0;
  for (TranscriptSegment& segment : segments) {
    segment.text = tool::Trimmed(segment.text);
    if (!segment.text.empty()) {
      reply.body += tool::SegmentText(format, segment, ++n, /*with_times=*/true);
    }
  }
  return reply;
}

std::string Frame(const Json& value) { return "data: " + Dump(value) + "\n\n"; }

// With verbose_json each segment has an event of its own, and the last event has all of its fields.
HttpReply Stream(std::shared_ptr<Transcription> transcription, Form form, bool translates,
                 Transcriber* transcriber) {
  HttpReply reply;
  reply.type = "text/event-stream";
  reply.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  const auto segments = std::make_shared<std::vector<TranscriptSegment>>();
  const bool is_verbose = form == Form::kVerboseJson;
  reply.stream = [transcription, segments, is_verbose, translates](std::string* out) {
    const Transcription::News news = transcription->Take(kPatience);
    for (const TranscriptSegment& segment : news.segments) {
      if (is_verbose) {
        Json event = SegmentJson(segments->size(), segment);
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
    Json last = is_verbose ? VerboseJson(*segments, *news.result, translates)
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
    if (fields.streams) {
      if (transcription->HasBegun(kPatience)) {
        return Stream(transcription, fields.form, translates, transcriber);
      }
    } else {
      Transcription::News news = transcription->Take(kPatience);
      if (news.error) throw ApiError(*news.error);
      std::move(news.segments.begin(), news.segments.end(), std::back_inserter(segments));
      if (news.result) return Whole(fields.form, std::move(segments), *news.result, translates);
    }
    if (request.is_gone()) {
      transcriber->Cancel(transcription);
      throw ApiError(499, "server_error", "the client has gone");
    }
  }
}

}  // namespace arn::serve

#include "tools/arenite/transcript.h"

#include <cmath>
#include <utility>

#include "tools/cli/format.h"

namespace arn::tool {
namespace {

using cli::Format;

// WebVTT reads & and < as markup (W3C, WebVTT 3.1).
std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

TranscriptSegment CopySegment(const arn_segment& segment) {
  TranscriptSegment made;
  made.start_s = segment.start_s;
  made.end_s = segment.end_s;
  if (segment.text != nullptr) made.text.assign(segment.text, segment.text_bytes);
  made.ids.assign(segment.ids, segment.ids + segment.n_ids);
  for (uint32_t i = 0; i < segment.n_words; ++i) {
    const arn_word& word = segment.words[i];
    made.words.push_back({word.start_s, word.end_s, made.text.substr(word.offset, word.bytes)});
  }
  made.temperature = static_cast<double>(segment.temperature);
  made.logprob = static_cast<double>(segment.logprob);
  made.no_speech = static_cast<double>(segment.no_speech);
  return made;
}

std::vector<TranscriptSegment> WordsOf(const TranscriptSegment& segment) {
  std::vector<TranscriptSegment> words;
  for (const TranscriptWord& word : segment.words) {
    TranscriptSegment made;
    made.start_s = word.start_s;
    made.end_s = word.end_s;
    made.text = Trimmed(word.text);
    if (!made.text.empty()) words.push_back(std::move(made));
  }
  return words;
}

std::string Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "";
  std::string out(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
  for (char& c : out) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return out;
}

std::string TimeText(double seconds, char separator) {
  const auto ms = static_cast<unsigned long long>(std::llround(seconds * 1000));
  return Format("%02llu:%02llu:%02llu%c%03llu", ms / 3600000, ms / 60000 % 60, ms / 1000 % 60,
                separator, ms % 1000);
}

std::string TranscriptHead(TranscriptFormat format) {
  return format == TranscriptFormat::kVtt ? "WEBVTT\n\n" : "";
}

std::string SegmentText(TranscriptFormat format, const TranscriptSegment& segment, uint32_t number,
                        bool with_times) {
  const char separator = format == TranscriptFormat::kSrt ? ',' : '.';
  const std::string times =
      TimeText(segment.start_s, separator) + " --> " + TimeText(segment.end_s, separator);
  switch (format) {
    case TranscriptFormat::kText:
      return (with_times ? "[" + times + "] " : "") + segment.text + "\n";
    case TranscriptFormat::kSrt:
      return Format("%u\n", number) + times + "\n" + segment.text + "\n\n";
    case TranscriptFormat::kVtt: return times + "\n" + Escaped(segment.text) + "\n\n";
    case TranscriptFormat::kJson: return "";
  }
  return "";
}

}  // namespace arn::tool

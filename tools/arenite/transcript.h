// Transcript: segments of speech as text, subtitles (SubRip, WebVTT) or JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "arenite/arenite.h"

namespace arn::tool {

enum class TranscriptFormat : uint8_t { kText, kSrt, kVtt, kJson };

struct TranscriptWord {
  double start_s = 0;
  double end_s = 0;
  std::string text;  // as the model writes it: a space comes first as a rule
};

struct TranscriptSegment {
  double start_s = 0;
  double end_s = 0;
  std::string text;  // without spaces around it
  std::vector<int32_t> ids;
  std::vector<TranscriptWord> words;  // if they were asked for
  // Rating of its window; 0: not computed.
  double temperature = 0;
  double logprob = 0;    // mean of the tokens
  double no_speech = 0;  // probability
};

// Copies a segment; its text is as the model writes it.
TranscriptSegment CopySegment(const arn_segment& segment);
// Returns a segment for each of its words that has text.
std::vector<TranscriptSegment> WordsOf(const TranscriptSegment& segment);

// Returns the text that comes before the first segment; "" if none does.
std::string TranscriptHead(TranscriptFormat format);
// Returns a segment as it is printed; `number`: 1 for the first one. "" in kJson, which is written
// as a whole. with_times: kText has times too.
std::string SegmentText(TranscriptFormat format, const TranscriptSegment& segment, uint32_t number,
                        bool with_times);
// Returns "00:01:02.500", with `separator` before the milliseconds.
std::string TimeText(double seconds, char separator);
// Returns a text without the white space around it, on one line.
std::string Trimmed(std::string_view text);

}  // namespace arn::tool

// Segments as text and subtitles.
#include "tools/arenite/transcript.h"

#include <gtest/gtest.h>

namespace arn::tool {
namespace {

const TranscriptSegment kSegment = {3661.5, 3662.0415, "a < b & c", {}, {}};

TEST(SegmentText, OfEveryFormat) {
  EXPECT_EQ("a < b & c\n", SegmentText(TranscriptFormat::kText, kSegment, 1, false));
  EXPECT_EQ("[01:01:01.500 --> 01:01:02.042] a < b & c\n",
            SegmentText(TranscriptFormat::kText, kSegment, 1, true));
  EXPECT_EQ("7\n01:01:01,500 --> 01:01:02,042\na < b & c\n\n",
            SegmentText(TranscriptFormat::kSrt, kSegment, 7, false));
  EXPECT_EQ("01:01:01.500 --> 01:01:02.042\na &lt; b &amp; c\n\n",
            SegmentText(TranscriptFormat::kVtt, kSegment, 7, false));
  EXPECT_EQ("WEBVTT\n\n", TranscriptHead(TranscriptFormat::kVtt));
  EXPECT_EQ("", TranscriptHead(TranscriptFormat::kSrt));
}

TEST(WordsOf, AreThoseWithText) {
  const int32_t ids[] = {9, 1, 2, 3, 4};
  const arn_word words[] = {
      {0.5, 0.75, 0, 3, 1, 2}, {0.75, 0.75, 3, 1, 3, 1}, {1.0, 1.5, 4, 3, 4, 1}};
  const arn_segment segment = {
      sizeof(arn_segment), 0.5, 1.5, " ab  c,", 7, ids, 5, 3, words, 0.25f, -0.5f, 0.125f};
  const TranscriptSegment copy = CopySegment(segment);
  EXPECT_EQ(" ab  c,", copy.text);
  EXPECT_EQ(5u, copy.ids.size());
  EXPECT_EQ(0.25, copy.temperature);
  EXPECT_EQ(-0.5, copy.logprob);
  EXPECT_EQ(0.125, copy.no_speech);
  ASSERT_EQ(3u, copy.words.size());
  EXPECT_EQ(" ab", copy.words[0].text);
  EXPECT_EQ(" c,", copy.words[2].text);
  const std::vector<TranscriptSegment> found = WordsOf(copy);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ("ab", found[0].text);
  EXPECT_EQ(0.75, found[0].end_s);
  EXPECT_EQ("c,", found[1].text);
  EXPECT_EQ(1.0, found[1].start_s);
}

TEST(Trimmed, IsOneLineWithoutSpaceAround) {
  EXPECT_EQ("a b", Trimmed(" a\nb \n"));
  EXPECT_EQ("", Trimmed(" \n"));
  EXPECT_EQ("", Trimmed(""));
}

}  // namespace
}  // namespace arn::tool

// Segments as text and subtitles.
#include "tools/arenite/transcript.h"

#include <gtest/gtest.h>

namespace arn::tool {
namespace {

const TranscriptSegment kSegment = {3661.5, 3662.0415, "a < b & c", {}};

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

TEST(Trimmed, IsOneLineWithoutSpaceAround) {
  EXPECT_EQ("a b", Trimmed(" a\nb \n"));
  EXPECT_EQ("", Trimmed(" \n"));
  EXPECT_EQ("", Trimmed(""));
}

}  // namespace
}  // namespace arn::tool

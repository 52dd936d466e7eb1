// Segments of a window's tokens. Whole transcripts are compared with transformers by
// golden_speech_test.
#include "runtime/transcription/segments.h"

#include <vector>

#include "gmock/gmock.h"

namespace arn {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int32_t kZero = 101;  // 0 s
constexpr uint32_t kWindow = 100;

struct Part {
  std::vector<int32_t> ids;
  uint32_t start, end;
  bool operator==(const Part&) const = default;
};
void PrintTo(const Part& part, std::ostream* out) {
  *out << testing::PrintToString(part.ids) << " " << part.start << ".." << part.end;
}

class CutSegmentsTest : public testing::Test {
 protected:
  CutSegmentsTest() { rules_.no_timestamps_id = kZero - 1; }

  std::vector<Part> Cut(std::vector<int32_t> ids, uint32_t n_frames = kWindow) {
    struct Sink {
      std::vector<int32_t>* ids;
      std::vector<Part> parts;
    } sink = {&ids, {}};
    const SegmentSink to = {
        [](void* user, const SegmentPart& part) {
          Sink& into = *static_cast<Sink*>(user);
          const auto first = into.ids->begin() + static_cast<long>(part.first);
          into.parts.push_back(
              {{first, first + static_cast<long>(part.n)}, part.start_frame, part.end_frame});
          return Status::kOk;
        },
        &sink};
    EXPECT_EQ(Status::kOk, CutSegments(rules_, {ids.data(), ids.size()}, n_frames, to, &advance_));
    return sink.parts;
  }

  TokenRules rules_;
  uint32_t advance_ = 0;
};

TEST_F(CutSegmentsTest, Pairs_EndSegments_TheNextWindowBeginsAtTheLast) {
  EXPECT_THAT(Cut({kZero, 1, 2, kZero + 10, kZero + 12, 3, kZero + 20, kZero + 20, 4}),
              ElementsAre(Part{{kZero, 1, 2, kZero + 10}, 0, 20},
                          Part{{kZero + 12, 3, kZero + 20, kZero + 20}, 24, 40}));
  EXPECT_EQ(40u, advance_);
}

TEST_F(CutSegmentsTest, LoneTimeAtTheEnd_EndsTheWindow) {
  EXPECT_THAT(
      Cut({kZero, 1, kZero + 10, kZero + 10, 3, kZero + 20}, 60),
      ElementsAre(Part{{kZero, 1, kZero + 10}, 0, 20}, Part{{kZero + 10, 3, kZero + 20}, 20, 40}));
  EXPECT_EQ(60u, advance_);
}

TEST_F(CutSegmentsTest, WithoutPairs_IsOneSegment) {
  EXPECT_THAT(Cut({kZero, 1, 2}), ElementsAre(Part{{kZero, 1, 2}, 0, kWindow}));
  EXPECT_THAT(Cut({kZero, 1, kZero + 7}), ElementsAre(Part{{kZero, 1, kZero + 7}, 0, 14}));
  EXPECT_EQ(kWindow, advance_);
  EXPECT_THAT(Cut({1, 2}, 37), ElementsAre(Part{{1, 2}, 0, 36}));
  EXPECT_EQ(37u, advance_);
  EXPECT_THAT(Cut({}), IsEmpty());
  EXPECT_EQ(kWindow, advance_);
}

TEST_F(CutSegmentsTest, PairAtZero_StillMakesProgress) {
  Cut({kZero, 1, kZero, kZero, 2});
  EXPECT_EQ(kWindow, advance_);
}

TEST_F(CutSegmentsTest, WithoutTimestamps_TimesDoNotCut) {
  rules_.has_timestamps = false;
  EXPECT_EQ(1u, Cut({1, kZero + 3, kZero + 3, 2}).size());
  EXPECT_EQ(kWindow, advance_);
}

TEST_F(CutSegmentsTest, FailureOfTheSink_EndsIt) {
  int n = 0;
  const SegmentSink to = {[](void* user, const SegmentPart&) {
                            ++*static_cast<int*>(user);
                            return Status::kCancelled;
                          },
                          &n};
  const int32_t ids[] = {kZero, 1, kZero + 1, kZero + 1, 2, kZero + 3, kZero + 3};
  EXPECT_EQ(Status::kCancelled, CutSegments(rules_, ids, kWindow, to, &advance_));
  EXPECT_EQ(1, n);
}

}  // namespace
}  // namespace arn

// The text that is kept of the windows before.
#include "runtime/transcription/previous_text.h"

#include <vector>

#include "gmock/gmock.h"

namespace arn {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int32_t kNoTimestamps = 50;

class PreviousTextTest : public testing::Test {
 protected:
  PreviousTextTest() { rules_.no_timestamps_id = kNoTimestamps; }
  void Add(const std::vector<int32_t>& ids) { text_.Add({ids.data(), ids.size()}); }
  void AddSegment(const std::vector<int32_t>& ids) {
    text_.AddSegment(rules_, {ids.data(), ids.size()});
  }
  std::vector<int32_t> Kept() const { return {text_.ids().begin(), text_.ids().end()}; }

  TokenRules rules_;
  int32_t room_[6] = {};
  PreviousText text_{room_};
};

TEST_F(PreviousTextTest, TheLastTokens_AreKept) {
  EXPECT_THAT(Kept(), IsEmpty());
  Add({});
  EXPECT_THAT(Kept(), IsEmpty());
  Add({1, 2, 3, 4});
  EXPECT_THAT(Kept(), ElementsAre(1, 2, 3, 4));
  Add({5, 6, 7});
  EXPECT_THAT(Kept(), ElementsAre(2, 3, 4, 5, 6, 7));
  Add({10, 11, 12, 13, 14, 15, 16});
  EXPECT_THAT(Kept(), ElementsAre(11, 12, 13, 14, 15, 16));
}

TEST_F(PreviousTextTest, OfTwoTimesAtASegmentsEnd_OneIsKept) {
  AddSegment({51, 7, 60, 60});
  EXPECT_THAT(Kept(), ElementsAre(51, 7, 60));
  AddSegment({60, 8, 65});
  EXPECT_THAT(Kept(), ElementsAre(51, 7, 60, 60, 8, 65));
  AddSegment({66, 66});  // nothing was said
  EXPECT_THAT(Kept(), ElementsAre(60, 60, 8, 65, 66, 66));
}

TEST(PreviousTextWithoutRoom, KeepsNothing) {
  PreviousText text({});
  const int32_t ids[] = {1, 2};
  text.Add(ids);
  EXPECT_EQ(0u, text.ids().size());
}

}  // namespace
}  // namespace arn

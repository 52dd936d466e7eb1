#include "runtime/transcription/sample_windows.h"

#include <vector>

#include "gtest/gtest.h"

namespace arn {
namespace {

constexpr size_t kWindow = 64000, kBlock = 1600;

TEST(SampleWindows, AudioThatFits_IsOneWindow) {
  const std::vector<float> pcm(kWindow, 0.5f);
  EXPECT_EQ(kWindow, EndOfWindow({pcm.data(), pcm.size()}, 0, kWindow));
  EXPECT_EQ(kWindow, EndOfWindow({pcm.data(), pcm.size()}, kWindow - 1, kWindow));
}

TEST(SampleWindows, LongAudio_IsCutWhereTheLastQuarterIsQuietest) {
  std::vector<float> pcm(3 * kWindow, 0.5f);
  pcm[100] = 0.0f;  // not in the last quarter
  const size_t quiet = kWindow / 4 * 3 + 3 * kBlock;
  for (size_t i = 0; i < kBlock; ++i) pcm[quiet + i] = 0.1f;
  EXPECT_EQ(quiet + kBlock / 2, EndOfWindow({pcm.data(), pcm.size()}, 0, kWindow));
  // All alike: the first of them.
  const size_t begin = kWindow + 7;
  EXPECT_EQ(begin + kWindow / 4 * 3 + kBlock / 2,
            EndOfWindow({pcm.data(), pcm.size()}, begin, kWindow));
}

TEST(SampleWindows, WindowsBelowFourBlocks_AreFull) {
  const std::vector<float> pcm(kWindow);
  EXPECT_EQ(kBlock, EndOfWindow({pcm.data(), pcm.size()}, 0, kBlock));
}

}  // namespace
}  // namespace arn

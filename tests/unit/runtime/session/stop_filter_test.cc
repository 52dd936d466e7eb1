#include "runtime/session/stop_filter.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace arn {
namespace {

struct Outcome {
  std::string shown;
  bool stopped = false;
};

// Feeds `pieces` one at a time and checks that no part of a stop string was shown.
Outcome Filtered(const std::vector<std::string>& pieces, const std::vector<std::string>& stops) {
  std::vector<StringView> views;
  for (const std::string& stop : stops) views.emplace_back(stop.data(), stop.size());
  std::vector<char> buffer(64);
  StopFilter filter({views.data(), views.size()}, {buffer.data(), buffer.size()});
  Outcome outcome;
  for (size_t i = 0; i <= pieces.size() && !outcome.stopped; ++i) {
    const bool last = i == pieces.size();
    const std::string piece = last ? "" : pieces[i];
    Span<char> space = filter.Space();
    EXPECT_GE(space.size(), piece.size());
    std::memcpy(space.data(), piece.data(), piece.size());
    StringView text;
    outcome.stopped = filter.Add(piece.size(), last, &text);
    outcome.shown.append(text.data, text.size);
  }
  return outcome;
}

TEST(StopFilter_NoStops, Text_PassesAtOnce) {
  EXPECT_EQ("hello", Filtered({"he", "l", "lo"}, {}).shown);
}

TEST(StopFilter_Stop, AcrossPieces_IsCutAndNotShown) {
  const Outcome outcome = Filtered({"a\n", "\nUs", "er: x"}, {"\n\nUser:"});
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ("a", outcome.shown);
}

TEST(StopFilter_Partial, AtTheEnd_IsShown) {
  const Outcome outcome = Filtered({"abc", "<e"}, {"<end>"});
  EXPECT_FALSE(outcome.stopped);
  EXPECT_EQ("abc<e", outcome.shown);
}

TEST(StopFilter_SeveralStops, TheEarliest_Wins) {
  EXPECT_EQ("ab", Filtered({"abcdef"}, {"ef", "cd"}).shown);
}

TEST(StopFilter_StopInsideACharacter, TheCharacter_IsNotSplit) {
  const std::string e_acute = "\xC3\xA9";
  const Outcome outcome = Filtered({"x" + e_acute}, {"\xA9"});
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ("x", outcome.shown);
}

// The shown text is the text up to the first stop string, however it is split into pieces.
TEST(StopFilter_Random, AnyCutting_GivesTheSame) {
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (uint32_t i = 0; i < 1 + random() % 30; ++i) text += static_cast<char>('a' + random() % 3);
    std::vector<std::string> stops;
    for (uint32_t i = 0; i < random() % 3; ++i) {
      std::string stop;
      for (uint32_t j = 0; j < 1 + random() % 4; ++j) stop += static_cast<char>('a' + random() % 3);
      stops.push_back(stop);
    }
    // The first stop string to complete ends the text. With single-character pieces the cut depends
    // only on its end. A longer piece may complete two at once; then the one that starts first
    // wins.
    std::vector<std::string> pieces;
    for (char c : text) pieces.emplace_back(1, c);
    std::string expected = text;
    bool stopped = false;
    for (size_t end = 1; end <= text.size() && !stopped; ++end) {
      for (const std::string& stop : stops) {
        const size_t at = text.substr(0, end).find(stop);
        if (at != std::string::npos) {
          expected =
              stopped ? expected.substr(0, std::min(expected.size(), at)) : text.substr(0, at);
          stopped = true;
        }
      }
    }
    const Outcome outcome = Filtered(pieces, stops);
    EXPECT_EQ(expected, outcome.shown) << text;
    EXPECT_EQ(stopped, outcome.stopped) << text;
  }
}

}  // namespace
}  // namespace arn

// Edited tokenizer files: an error with a reason, or a tokenizer that works. The changes are the
// same in every run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/exercise_text.h"

namespace arn::test {
namespace {

// splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::vector<uint8_t> Bytes(size_t count) {
    std::vector<uint8_t> bytes(count);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(Next());
    return bytes;
  }

 private:
  uint64_t state_;
};

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(TextFuzz, ChangedTokenizerJson_ErrorOrWorks) {
  Random random(1);
  size_t worked = 0, refused = 0;
  for (int round = 0; round < 600; ++round) {
    std::vector<uint8_t> bytes = random.Bytes(4 + random.Next() % 24);
    bytes[0] = 0;
    std::string problem;
    (ExerciseTokenizerJson(bytes.data(), bytes.size(), &problem) ? worked : refused) += 1;
    EXPECT_EQ(problem, "") << "round " << round;
  }
  EXPECT_GT(worked, 20u);
  EXPECT_GT(refused, 20u);
}

// The fuzz target's documents are whole before they are edited.
TEST(TextFuzz, SmallTokenizers_Work) {
  for (size_t i = 0; i < SmallTokenizers().size(); ++i) {
    const uint8_t bytes[] = {0, 0, static_cast<uint8_t>(i)};
    std::string problem;
    EXPECT_TRUE(ExerciseTokenizerJson(bytes, sizeof bytes, &problem)) << SmallTokenizers()[i];
    EXPECT_EQ(problem, "") << SmallTokenizers()[i];
  }
}

TEST(TextFuzz, ChangedSentencePieceModel_ErrorOrWorks) {
  Random random(2);
  for (const char* name : {"pieces_unigram", "pieces_bpe"}) {
    const std::string whole =
        ReadFile(std::filesystem::path(ARN_TEXT_TEST_DATA) / name / "tokenizer.model");
    ASSERT_FALSE(whole.empty());
    size_t worked = 0, refused = 0;
    for (int round = 0; round < 400; ++round) {
      std::string bytes = whole;
      for (uint64_t n = 1 + random.Next() % 3; n > 0; --n) {
        bytes[random.Next() % bytes.size()] = static_cast<char>(random.Next());
      }
      if (round % 8 == 0) bytes.resize(random.Next() % bytes.size());
      std::string problem;
      const bool ok = ExerciseSentencePiece(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            bytes.size(), &problem);
      (ok ? worked : refused) += 1;
      EXPECT_EQ(problem, "") << name << ", round " << round;
    }
    EXPECT_GT(worked, 20u);
    EXPECT_GT(refused, 20u);
  }
}

TEST(TextFuzz, RandomText_EachKindOfTokenizer) {
  Random random(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> bytes = random.Bytes(1 + random.Next() % 40);
    bytes[0] = static_cast<uint8_t>(round);
    std::string problem;
    ExerciseSmallTokenizer(bytes.data(), bytes.size(), &problem);
    EXPECT_EQ(problem, "") << "round " << round;
  }
}

}  // namespace
}  // namespace arn::test

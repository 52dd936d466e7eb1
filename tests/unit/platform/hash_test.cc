#include "platform/base/hash.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace arn {
namespace {

// The buffer and the values of xxHash's sanity test (https://github.com/Cyan4973/xxHash,
// tests/sanity_test.c).
constexpr uint64_t kSeed = 2654435761u;

std::vector<uint8_t> SanityBuffer(size_t bytes) {
  std::vector<uint8_t> buffer(bytes);
  uint64_t generator = 2654435761u;
  for (uint8_t& b : buffer) {
    b = static_cast<uint8_t>(generator >> 56);
    generator *= 11400714785074694797u;
  }
  return buffer;
}

TEST(Xxh64, PublishedVectors_Match) {
  const std::vector<uint8_t> b = SanityBuffer(222);
  EXPECT_EQ(Xxh64(b.data(), 0), 0xEF46DB3751D8E999u);
  EXPECT_EQ(Xxh64(b.data(), 0, kSeed), 0xAC75FDA2929B17EFu);
  EXPECT_EQ(Xxh64(b.data(), 1), 0xE934A84ADB052768u);
  EXPECT_EQ(Xxh64(b.data(), 1, kSeed), 0x5014607643A9B4C3u);
  EXPECT_EQ(Xxh64(b.data(), 4), 0x9136A0DCA57457EEu);
  EXPECT_EQ(Xxh64(b.data(), 14), 0x8282DCC4994E35C8u);
  EXPECT_EQ(Xxh64(b.data(), 14, kSeed), 0xC3BD6BF63DEB6DF0u);
  EXPECT_EQ(Xxh64(b.data(), 222), 0xB641AE8CB691C174u);
  EXPECT_EQ(Xxh64(b.data(), 222, kSeed), 0x20CB8AB7AE10C14Au);
}

TEST(Xxh64, KnownTexts_Match) {
  EXPECT_EQ(Xxh64("a", 1), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(Xxh64("abc", 3), 0x44BC2CF5AD770999u);
  const std::string text = "Nobody inspects the spammish repetition";
  EXPECT_EQ(Xxh64(text.data(), text.size()), 0xFBCEA83C8A378BF1u);
}

TEST(Xxh64Stream, AnyCutting_SameDigest) {
  const std::vector<uint8_t> b = SanityBuffer(1000);
  for (size_t size : {0, 1, 31, 32, 33, 63, 64, 65, 222, 1000}) {
    const uint64_t expected = Xxh64(b.data(), size, 7);
    for (size_t piece : {1, 3, 31, 32, 33, 100}) {
      Xxh64Stream stream(7);
      for (size_t at = 0; at < size; at += piece) {
        stream.Update(b.data() + at, std::min(piece, size - at));
      }
      EXPECT_EQ(stream.Digest(), expected) << size << " bytes in pieces of " << piece;
    }
  }
}

TEST(Xxh64Stream, DigestInBetween_ChangesNothing) {
  const std::vector<uint8_t> b = SanityBuffer(100);
  Xxh64Stream stream;
  stream.Update(b.data(), 40);
  EXPECT_EQ(stream.Digest(), Xxh64(b.data(), 40));
  stream.Update(b.data() + 40, 60);
  EXPECT_EQ(stream.Digest(), Xxh64(b.data(), 100));
}

}  // namespace
}  // namespace arn

// WAV files: every sample format, and files that are damaged.
#include "tools/arenite/wav.h"

#include <cmath>
#include <cstring>

#include "gmock/gmock.h"
#include "tools/arenite/error.h"

namespace arn::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Number(uint64_t value, size_t n) {
  std::string bytes;
  for (size_t i = 0; i < n; ++i) bytes += static_cast<char>(value >> (8 * i) & 255);
  return bytes;
}

std::string Chunk(const std::string& id, const std::string& content) {
  return id + Number(content.size(), 4) + content + (content.size() % 2 == 0 ? "" : "\xEE");
}

std::string Format(uint32_t kind, uint32_t channels, uint32_t bits, uint32_t rate = 16000) {
  const uint32_t frame = channels * bits / 8;
  return Number(kind, 2) + Number(channels, 2) + Number(rate, 4) + Number(rate * frame, 4) +
         Number(frame, 2) + Number(bits, 2);
}

std::string Wav(const std::string& chunks) {
  return "RIFF" + Number(chunks.size() + 4, 4) + "WAVE" + chunks;
}

std::string Wav(const std::string& format, const std::string& data) {
  return Wav(Chunk("fmt ", format) + Chunk("data", data));
}

template <typename T>
std::string Bits(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string ErrorOf(const std::string& bytes) {
  try {
    ReadWav(bytes, "a.wav");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ReadWav, Pcm_OfEveryWidth) {
  EXPECT_THAT(ReadWav(Wav(Format(1, 1, 8), {"\x80\xC0\x00", 3}), "").samples,
              ElementsAre(0.0f, 0.5f, -1.0f));
  EXPECT_THAT(ReadWav(Wav(Format(1, 1, 16), Number(0x4000, 2) + Number(0x8000, 2)), "").samples,
              ElementsAre(0.5f, -1.0f));
  EXPECT_THAT(ReadWav(Wav(Format(1, 1, 24), Number(0x200000, 3) + Number(0xFFFFFF, 3)), "").samples,
              ElementsAre(0.25f, -1.0f / 8388608));
  EXPECT_THAT(ReadWav(Wav(Format(1, 1, 32), Number(0xC0000000, 4)), "").samples,
              ElementsAre(-0.5f));
}

TEST(ReadWav, Floats_ChannelsAreAveraged) {
  const Sound sound = ReadWav(Wav(Format(3, 2, 32, 44100), Bits(0.5f) + Bits(-0.25f)), "");
  EXPECT_EQ(44100u, sound.rate);
  EXPECT_THAT(sound.samples, ElementsAre(0.125f));
  EXPECT_THAT(ReadWav(Wav(Format(3, 1, 64), Bits(0.75)), "").samples, ElementsAre(0.75f));
}

TEST(ReadWav, OtherChunks_ExtensibleFormat_UnknownSize) {
  const std::string extensible =
      Format(0xFFFE, 1, 16) + Number(22, 2) + Number(16, 2) + Number(4, 4) + Number(1, 2) +
      std::string("\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71", 14);
  std::string bytes = Wav(Chunk("LIST", "odd") + Chunk("fmt ", extensible) +
                          Chunk("data", Number(0x4000, 2)) + Chunk("tail", "x"));
  EXPECT_THAT(ReadWav(bytes, "").samples, ElementsAre(0.5f));
  bytes = "RIFF" + Number(UINT32_MAX, 4) + "WAVE" + Chunk("fmt ", Format(1, 1, 16)) + "data" +
          Number(UINT32_MAX, 4) + Number(0x4000, 2) + "\x01";
  EXPECT_THAT(ReadWav(bytes, "").samples, ElementsAre(0.5f));
  EXPECT_TRUE(ReadWav(Wav(Format(1, 1, 16), ""), "").samples.empty());
}

TEST(ReadWav, Errors_NameTheFileAndTheValue) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("a.wav: not a WAV or FLAC file"));
  EXPECT_THAT(ErrorOf("RIFX----WAVE"), HasSubstr("RIFX"));
  EXPECT_THAT(ErrorOf(Wav(Chunk("fmt ", Format(1, 1, 16)))), HasSubstr("no chunk 'data'"));
  EXPECT_THAT(ErrorOf(Wav(Chunk("data", "ab"))), HasSubstr("before their format"));
  EXPECT_THAT(ErrorOf(Wav(Format(1, 1, 12), "ab")), HasSubstr("format 1 with 12 bits"));
  EXPECT_THAT(ErrorOf(Wav(Format(85, 1, 16), "ab")), HasSubstr("format 85"));
  EXPECT_THAT(ErrorOf(Wav(Format(1, 0, 16), "ab")), HasSubstr("0 channels"));
  EXPECT_THAT(ErrorOf(Wav(Format(1, 1, 16, 0), "ab")), HasSubstr("0 samples in a second"));
  EXPECT_THAT(ErrorOf(Wav(Format(1, 1, 16), "abc")), HasSubstr("no multiple of 2"));
  EXPECT_THAT(ErrorOf(Wav(Chunk("fmt ", "short"))), HasSubstr("5 bytes"));
  EXPECT_THAT(ErrorOf(Wav(Format(3, 1, 32), Bits(NAN))), HasSubstr("sample 0"));
  const std::string whole = Wav(Format(1, 1, 16), "abcdefgh");
  EXPECT_THAT(ErrorOf(whole.substr(0, whole.size() - 3)), HasSubstr("it is cut"));
}

// A damaged file gives samples or an error, and nothing is read behind it (sanitizers).
TEST(ReadWav, DamagedFiles_GiveSamplesOrAnError) {
  const std::string seeds[] = {
      Wav(Chunk("LIST", "odd") + Chunk("fmt ", Format(1, 2, 16)) + Chunk("data", "abcdefgh")),
      Wav(Format(3, 1, 64), Bits(0.5)), Wav(Format(0xFFFE, 1, 24) + std::string(24, '\1'), "abc")};
  uint64_t random = 1;
  const auto next = [&](size_t n) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(random >> 33) % n;
  };
  constexpr unsigned char kBytes[] = {0, 1, 2, 16, 0x7F, 0x80, 0xFE, 0xFF};
  size_t n_read = 0;
  for (const std::string& seed : seeds) {
    for (size_t cut = 0; cut <= seed.size(); ++cut) {
      ErrorOf(std::string(seed.data(), cut));  // a copy: its end is the allocation's
    }
    for (int i = 0; i < 20000; ++i) {
      std::string bytes = seed;
      for (size_t n = 1 + next(4); n > 0; --n) {
        bytes[next(bytes.size())] = static_cast<char>(kBytes[next(sizeof kBytes)]);
      }
      if (next(4) == 0) bytes.erase(next(bytes.size()));
      n_read += ErrorOf(bytes).empty() ? 1 : 0;
    }
  }
  EXPECT_GT(n_read, 0u);
}

}  // namespace
}  // namespace arn::tool

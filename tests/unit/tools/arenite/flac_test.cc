// FLAC files: samples that the program flac has encoded, and files that are damaged.
#include "tools/arenite/flac.h"

#include <fstream>
#include <iterator>

#include "gmock/gmock.h"
#include "tools/arenite/error.h"

namespace arn::tool {
namespace {

using testing::HasSubstr;

std::string FlacFile(const std::string& name) {
  std::ifstream file(std::string(ARN_TOOLS_DATA) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string FlacError(const std::string& bytes) {
  try {
    ReadFlac(bytes, "a.flac");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The formula of data/make_flac_files.py.
int32_t Wave(int32_t i) {
  const int32_t place = i * 37 % 2000;
  return (place < 1000 ? place : 2000 - place) * 20 - 10000;
}

TEST(ReadFlac, Stereo_IsAveraged) {
  const Sound sound = ReadFlac(FlacFile("stereo16.flac"), "");
  EXPECT_EQ(44100u, sound.rate);
  ASSERT_EQ(500u, sound.samples.size());
  for (int32_t i = 0; i < 500; ++i) {
    const int32_t left = Wave(i), right = left >> 1;
    EXPECT_EQ(static_cast<float>((left + right) / 65536.0), sound.samples[static_cast<size_t>(i)]);
  }
}

TEST(ReadFlac, SamplesOf24Bits) {
  const Sound sound = ReadFlac(FlacFile("mono24.flac"), "");
  EXPECT_EQ(16000u, sound.rate);
  ASSERT_EQ(300u, sound.samples.size());
  for (int32_t i = 0; i < 300; ++i) {
    EXPECT_EQ(static_cast<float>((Wave(i) * 200 + i) / 8388608.0),
              sound.samples[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(300u, ReadSoundAt(16000, FlacFile("mono24.flac"), "").size());
}

TEST(ReadFlac, Errors_NameTheFileAndTheProblem) {
  const std::string whole = FlacFile("stereo16.flac");
  ASSERT_EQ("", FlacError(whole));
  EXPECT_THAT(FlacError(whole.substr(0, whole.size() - 3)), HasSubstr("a.flac: has 500 samples"));
  EXPECT_THAT(FlacError(whole.substr(0, 42)), HasSubstr("a.flac: is cut"));
  std::string damaged = whole;
  damaged[whole.size() - 40] = static_cast<char>(damaged[whole.size() - 40] ^ 1);
  EXPECT_THAT(FlacError(damaged), HasSubstr("a.flac: is damaged (FRAME_CRC_MISMATCH)"));
  damaged = whole;
  damaged[4 + 4 + 18] = static_cast<char>(damaged[4 + 4 + 18] ^ 1);  // of the MD5 of STREAMINFO
  EXPECT_THAT(FlacError(damaged), HasSubstr("the checksum of its samples differs"));
}

TEST(ReadSoundAt, OtherFiles_AreNamed) {
  const auto error_of = [](const std::string& bytes) {
    try {
      ReadSoundAt(16000, bytes, "a");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(error_of("OggS and more bytes"), HasSubstr("a: a compressed sound file"));
  EXPECT_THAT(error_of("....ftypM4A "), HasSubstr("a: a compressed sound file"));
  EXPECT_THAT(error_of("plain text, no sound"), HasSubstr("a: not a WAV or FLAC file"));
  EXPECT_EQ("", error_of(FlacFile("stereo16.flac")));
}

// A frame of 14 bytes may hold 65,535 equal samples.
TEST(ReadFlac, MoreSamplesThanAFileOfItsSizeHas_AreRefused) {
  const auto crc = [](const std::string& bytes, uint32_t polynomial, uint32_t bits) {
    uint32_t value = 0;
    for (const char byte : bytes) {
      value ^= static_cast<uint32_t>(static_cast<unsigned char>(byte)) << (bits - 8);
      for (int i = 0; i < 8; ++i) {
        const bool carries = (value >> (bits - 1) & 1) != 0;
        value = (value << 1 ^ (carries ? polynomial : 0)) & ((1u << bits) - 1);
      }
    }
    return value;
  };
  std::string file = FlacFile("mono24.flac").substr(0, 42);  // STREAMINFO
  file[4] = static_cast<char>(0x80);                         // is the last block
  file[21] = static_cast<char>(file[21] & 0xF0);             // of any number of samples
  for (size_t i = 22; i < 42; ++i) file[i] = 0;
  for (uint32_t frame = 0; frame < 100; ++frame) {
    // Fixed block size, 65,535 samples, 16 kHz, mono, 24 bits.
    std::string bytes = {'\xFF', '\xF8', '\x75', '\x0C', static_cast<char>(frame), '\xFF', '\xFE'};
    bytes += static_cast<char>(crc(bytes, 0x07, 8));
    bytes += std::string("\0\0\0\1", 4);  // a constant
    const uint32_t end = crc(bytes, 0x8005, 16);
    file += bytes + static_cast<char>(end >> 8) + static_cast<char>(end & 255);
  }
  EXPECT_EQ("a.flac: has more than 4194304 samples in " + std::to_string(file.size()) + " bytes",
            FlacError(file));
}

// A damaged file gives samples or an error, and nothing is read behind it (sanitizers).
TEST(ReadFlac, DamagedFiles_GiveSamplesOrAnError) {
  const std::string seed = FlacFile("mono24.flac");
  for (size_t cut = 0; cut < seed.size(); ++cut) {
    EXPECT_NE("", FlacError(std::string(seed.data(), cut)));  // a copy: its end is the allocation's
  }
  uint64_t random = 1;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = seed;
    for (int n = 0; n < 3; ++n) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      bytes[(random >> 33) % bytes.size()] ^= static_cast<char>(1u << (random >> 60 & 7));
    }
    FlacError(bytes);
  }
}

}  // namespace
}  // namespace arn::tool

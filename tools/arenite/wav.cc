#include "tools/arenite/wav.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "tools/arenite/error.h"
#include "tools/cli/format.h"

namespace arn::tool {
namespace {

using cli::Format;

constexpr uint32_t kPcm = 1, kFloat = 3, kExtensible = 0xFFFE;
constexpr uint32_t kUnknownSize = 0xFFFFFFFF;
constexpr uint32_t kMaxChannels = 64;
constexpr double kMaxSample = 1e6;  // of floats; what is larger is no sound
constexpr size_t kChunkHeader = 8;
// The part of an extensible format's GUID behind the format's number.
constexpr char kGuidEnd[] = "\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71";

uint32_t LittleEndian(std::string_view bytes, size_t at, size_t n) {
  uint32_t value = 0;
  for (size_t i = 0; i < n; ++i) {
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

struct WavFormat {
  uint32_t kind = 0;  // kPcm or kFloat
  uint32_t channels = 0;
  uint32_t rate = 0;
  uint32_t bits = 0;

  size_t frame_bytes() const { return size_t{channels} * bits / 8; }
};

class WavReader {
 public:
  WavReader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Sound Read() {
    CheckHeader();
    std::optional<WavFormat> format;
    for (size_t at = 12; bytes_.size() - at >= kChunkHeader;) {
      const std::string_view id = bytes_.substr(at, 4);
      const uint32_t size = LittleEndian(bytes_, at + 4, 4);
      const std::string_view rest = bytes_.substr(at + kChunkHeader);
      if (id == "data") {
        if (!format) Fail("the samples come before their format (fmt)");
        return ReadSamples(*format, rest, size);
      }
      if (size > rest.size()) {
        Fail(Format("chunk '%s' has %u bytes, the file %zu more: it is cut", Shown(id).c_str(),
                    size, rest.size()));
      }
      if (id == "fmt ") format = ReadFormat(rest.substr(0, size));
      // A chunk of odd size is followed by a byte that belongs to none.
      at = std::min(at + kChunkHeader + size + size % 2, bytes_.size());
    }
    Fail("has no samples: no chunk 'data'");
  }

 private:
  [[noreturn]] void Fail(const std::string& reason) const { throw Error(name_ + ": " + reason); }

  static std::string Shown(std::string_view id) {
    std::string text(id);
    for (char& c : text) {
      if (c < ' ' || c > '~') c = '?';
    }
    return text;
  }

  void CheckHeader() const {
    const std::string_view magic = bytes_.substr(0, 4);
    if (magic == "RF64" || magic == "RIFX" || magic == "riff") {
      Fail("a WAV file of the kind " + Shown(magic) + ", which is not read: save it as RIFF");
    }
    if (bytes_.size() < 12 || magic != "RIFF" || bytes_.substr(8, 4) != "WAVE") {
      Fail("not a WAV or FLAC file; convert it: ffmpeg -i IN OUT.wav");
    }
  }

  WavFormat ReadFormat(std::string_view chunk) const {
    if (chunk.size() < 16) Fail(Format("the format has %zu bytes, expected 16", chunk.size()));
    WavFormat format;
    format.kind = LittleEndian(chunk, 0, 2);
    format.channels = LittleEndian(chunk, 2, 2);
    format.rate = LittleEndian(chunk, 4, 4);
    const uint32_t frame_bytes = LittleEndian(chunk, 12, 2);
    format.bits = LittleEndian(chunk, 14, 2);
    if (format.kind == kExtensible && chunk.size() >= 40 &&
        chunk.substr(26, 14) == std::string_view(kGuidEnd, 14)) {
      format.kind = LittleEndian(chunk, 24, 2);
    }
    const bool is_pcm = format.kind == kPcm && (format.bits == 8 || format.bits == 16 ||
                                                format.bits == 24 || format.bits == 32);
    const bool is_float = format.kind == kFloat && (format.bits == 32 || format.bits == 64);
    if (!is_pcm && !is_float) {
      Fail(
          Format("format %u with %u bits, expected PCM (1) with 8, 16, 24 or 32, or floats (3) "
                 "with 32 or 64",
                 format.kind, format.bits));
    }
    if (format.channels == 0 || format.channels > kMaxChannels) {
      Fail(Format("%u channels, expected 1 to %u", format.channels, kMaxChannels));
    }
    if (format.rate == 0) Fail("0 samples in a second");
    if (frame_bytes != format.frame_bytes()) {
      Fail(Format("%u bytes for %u channels of %u bits, expected %zu", frame_bytes, format.channels,
                  format.bits, format.frame_bytes()));
    }
    return format;
  }

  // Sample of `bits` at the beginning of `bytes`.
  static double SampleOf(const WavFormat& format, const char* bytes) {
    if (format.kind == kFloat && format.bits == 32) {
      float value;
      std::memcpy(&value, bytes, sizeof value);
      return static_cast<double>(value);
    }
    if (format.kind == kFloat) {
      double value;
      std::memcpy(&value, bytes, sizeof value);
      return value;
    }
    const size_t n = format.bits / 8;
    const uint32_t raw = LittleEndian({bytes, n}, 0, n);
    if (format.bits == 8) return (static_cast<double>(raw) - 128.0) / 128.0;
    const auto value = static_cast<int32_t>(raw << (32 - format.bits));
    return static_cast<double>(value) / 2147483648.0;
  }

  Sound ReadSamples(const WavFormat& format, std::string_view rest, uint32_t size) const {
    if (size != kUnknownSize && size > rest.size()) {
      Fail(Format("has %u bytes of samples, of which %zu are there: it is cut", size, rest.size()));
    }
    const std::string_view data = rest.substr(0, size);
    const size_t frame_bytes = format.frame_bytes();
    if (size != kUnknownSize && data.size() % frame_bytes != 0) {
      Fail(Format("%zu bytes of samples are no multiple of %zu", data.size(), frame_bytes));
    }
    Sound sound;
    sound.rate = format.rate;
    sound.samples.resize(data.size() / frame_bytes);
    const char* at = data.data();
    for (size_t i = 0; i < sound.samples.size(); ++i) {
      double sum = 0.0;
      for (uint32_t c = 0; c < format.channels; ++c, at += format.bits / 8) {
        sum += SampleOf(format, at);
      }
      const double mean = sum / format.channels;
      if (!(std::abs(mean) <= kMaxSample)) {
        Fail(Format("sample %zu is %g, expected numbers around [-1, 1]", i, mean));
      }
      sound.samples[i] = static_cast<float>(mean);
    }
    return sound;
  }

  std::string_view bytes_;
  const std::string& name_;
};

}  // namespace

Sound ReadWav(std::string_view bytes, const std::string& name) {
  return WavReader(bytes, name).Read();
}

}  // namespace arn::tool

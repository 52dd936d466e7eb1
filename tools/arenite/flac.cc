#include "tools/arenite/flac.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "FLAC/stream_decoder.h"
#include "tools/arenite/error.h"
#include "tools/cli/format.h"

namespace arn::tool {
namespace {

using cli::Format;

// Receives what the decoder calls with. Its C code cannot be thrown through: the first problem is
// kept, and ends the decoding.
class FlacReader {
 public:
  explicit FlacReader(std::string_view bytes)
      : bytes_(bytes), most_(std::max(kMostFlacSamples, kMostFlacSamplesPerByte * bytes.size())) {}

  Sound Read() {
    const std::unique_ptr<FLAC__StreamDecoder, decltype(&FLAC__stream_decoder_delete)> decoder(
        FLAC__stream_decoder_new(), &FLAC__stream_decoder_delete);
    if (decoder == nullptr) throw Error("no memory for a FLAC decoder");
    FLAC__stream_decoder_set_md5_checking(decoder.get(), 1);
    const FLAC__StreamDecoderInitStatus status =
        FLAC__stream_decoder_init_stream(decoder.get(), &OnRead, nullptr, nullptr, nullptr, nullptr,
                                         &OnFrame, &OnMetadata, &OnError, this);
    if (status != FLAC__STREAM_DECODER_INIT_STATUS_OK) throw Error("a FLAC decoder did not start");
    const bool ended = FLAC__stream_decoder_process_until_end_of_stream(decoder.get()) != 0;
    const bool fits = FLAC__stream_decoder_finish(decoder.get()) != 0;
    if (problem_.empty() && !ended) problem_ = at_ == bytes_.size() ? "is cut" : "is damaged";
    if (problem_.empty() && sound_.samples.size() < n_expected_) {
      problem_ = Format("has %llu samples, of which %zu are there: it is cut",
                        static_cast<unsigned long long>(n_expected_), sound_.samples.size());
    }
    if (problem_.empty() && !fits) problem_ = "is damaged: the checksum of its samples differs";
    if (!problem_.empty()) throw Error(problem_);
    return std::move(sound_);
  }

 private:
  static FLAC__StreamDecoderReadStatus OnRead(const FLAC__StreamDecoder*, FLAC__byte buffer[],
                                              size_t* n, void* self) {
    auto* reader = static_cast<FlacReader*>(self);
    *n = std::min(*n, reader->bytes_.size() - reader->at_);
    std::memcpy(buffer, reader->bytes_.data() + reader->at_, *n);
    reader->at_ += *n;
    return *n == 0 ? FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM
                   : FLAC__STREAM_DECODER_READ_STATUS_CONTINUE;
  }

  static void OnMetadata(const FLAC__StreamDecoder*, const FLAC__StreamMetadata* metadata,
                         void* self) {
    if (metadata->type != FLAC__METADATA_TYPE_STREAMINFO) return;
    static_cast<FlacReader*>(self)->n_expected_ = metadata->data.stream_info.total_samples;
  }

  static void OnError(const FLAC__StreamDecoder*, FLAC__StreamDecoderErrorStatus status,
                      void* self) {
    const std::string what = FLAC__StreamDecoderErrorStatusString[status];
    constexpr std::string_view kPrefix = "FLAC__STREAM_DECODER_ERROR_STATUS_";
    static_cast<FlacReader*>(self)->Note("is damaged (" + what.substr(kPrefix.size()) + ")");
  }

  static FLAC__StreamDecoderWriteStatus OnFrame(const FLAC__StreamDecoder*,
                                                const FLAC__Frame* frame,
                                                const FLAC__int32* const channels[], void* self) {
    return static_cast<FlacReader*>(self)->Append(frame->header, channels)
               ? FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE
               : FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
  }

  bool Append(const FLAC__FrameHeader& header, const FLAC__int32* const channels[]) {
    if (sound_.rate == 0) sound_.rate = header.sample_rate;
    if (sound_.rate != header.sample_rate) {
      Note(Format("changes from %u to %u samples in a second", sound_.rate, header.sample_rate));
    }
    if (header.blocksize > most_ - sound_.samples.size()) {
      Note(Format("has more than %zu samples in %zu bytes", most_, bytes_.size()));
    }
    if (!problem_.empty()) return false;
    const double scale =
        1.0 / (static_cast<double>(uint64_t{1} << (header.bits_per_sample - 1)) * header.channels);
    for (uint32_t i = 0; i < header.blocksize; ++i) {
      double sum = 0.0;
      for (uint32_t c = 0; c < header.channels; ++c) sum += channels[c][i];
      sound_.samples.push_back(static_cast<float>(sum * scale));
    }
    return true;
  }

  void Note(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }

  const std::string_view bytes_;
  const size_t most_;
  size_t at_ = 0;
  uint64_t n_expected_ = 0;  // 0: the file does not say
  std::string problem_;
  Sound sound_;
};

}  // namespace

Sound ReadFlac(std::string_view bytes, const std::string& name) {
  try {
    return FlacReader(bytes).Read();
  } catch (const Error& error) {
    throw Error(name + ": " + error.what());
  }
}

}  // namespace arn::tool

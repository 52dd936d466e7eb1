#include "tools/serve/image_reader.h"

#include <string_view>
#include <utility>

#include "tools/arenite/error.h"
#include "tools/serve/api_error.h"

namespace arn::serve {
namespace {

constexpr size_t kMaxImages = 64;  // of a request

// Returns the value of a base64 digit (RFC 4648, either alphabet); -1: it is none.
int DigitOf(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+' || c == '-') return 62;
  return c == '/' || c == '_' ? 63 : -1;
}

}  // namespace

std::vector<uint8_t> BytesOfDataUri(const ImageSource& source) {
  const std::string_view url = source.url;
  const size_t comma = url.find(',');
  if (url.compare(0, 5, "data:") != 0) {
    throw BadField(source.path,
                   "is no data: URI: this server fetches nothing, give the image as "
                   "data:image/png;base64,...");
  }
  constexpr std::string_view kBase64 = ";base64";
  if (comma == std::string_view::npos || comma < 5 + kBase64.size() ||
      url.substr(comma - kBase64.size(), kBase64.size()) != kBase64) {
    throw BadField(source.path, "is a data: URI without base64");
  }
  std::string_view digits = url.substr(comma + 1);
  while (!digits.empty() && digits.back() == '=') digits.remove_suffix(1);
  std::vector<uint8_t> bytes;
  bytes.reserve(digits.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : digits) {
    const int digit = DigitOf(c);
    if (digit < 0) {
      throw BadField(source.path, std::string("has '") + c + "' in its base64");
    }
    bits = bits << 6 | static_cast<uint32_t>(digit);
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes.push_back(static_cast<uint8_t>(bits >> n_bits));
  }
  return bytes;
}

ImageReader::ImageReader(const tool::Model& model, const arn_session_options& session)
    : model_(model), encoder_(model, session, kMaxSide) {}

uint64_t ImageReader::bytes() const {
  constexpr uint64_t kDecoded = uint64_t{3} * 3 * kMaxSide * kMaxSide;  // and copies of it
  return encoder_.bytes() + kDecoded + kKeptBytes;
}

tool::ImageList ImageReader::Read(const std::vector<ImageSource>& sources) {
  if (sources.size() > kMaxImages) {
    throw BadField(sources[kMaxImages].path,
                   "is one image too many: a request has at most " + std::to_string(kMaxImages));
  }
  tool::ImageList images;
  for (const ImageSource& source : sources) images.push_back(ReadOne(source));
  return images;
}

std::shared_ptr<const tool::EncodedImage> ImageReader::ReadOne(const ImageSource& source) {
  std::vector<uint8_t> file = BytesOfDataUri(source);
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->file != file) continue;
    kept_.splice(kept_.begin(), kept_, kept);
    return kept_.front().image;
  }
  std::shared_ptr<const tool::EncodedImage> image;
  try {
    image = encoder_.Encode(tool::DecodeImage(file, "the image", kMaxSide), "the image");
  } catch (const tool::Error& error) {
    throw ApiError(400, "invalid_request_error", source.path + ": " + error.what(), source.path,
                   "invalid_image");
  }
  kept_.push_front({std::move(file), image});
  uint64_t bytes = 0;
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    bytes += kept->bytes();
    kept = bytes > kKeptBytes ? kept_.erase(kept) : std::next(kept);
  }
  return image;
}

}  // namespace arn::serve

#include "converter/write/signing_key.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <vector>

#include "converter/base/error.h"
#include "converter/hf/json_file.h"
#include "converter/tokenizer/base64.h"
#include "sodium/crypto_sign_ed25519.h"
#include "sodium/utils.h"

namespace arn::convert {
namespace {

constexpr std::string_view kPemBegin = "-----BEGIN PRIVATE KEY-----";
constexpr std::string_view kPemEnd = "-----END PRIVATE KEY-----";
// DER prefix of the 32 bytes of an Ed25519 key without attributes (RFC 8410, 7).
constexpr uint8_t kPkcs8[] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
                              0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};

std::string WithoutSpace(std::string_view text) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out),
               [](unsigned char c) { return std::isspace(c) == 0; });
  return out;
}

bool DecodeHex(std::string_view text, std::vector<uint8_t>* out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out->clear();
  if (text.size() % 2 != 0) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t digit =
        kDigits.find(static_cast<char>(std::tolower(static_cast<unsigned char>(text[i]))));
    if (digit == std::string_view::npos) return false;
    if (i % 2 == 0) out->push_back(0);
    out->back() = static_cast<uint8_t>(out->back() << 4 | digit);
  }
  return true;
}

}  // namespace

SigningKey::SigningKey(const uint8_t* seed) {
  static_assert(sizeof secret_ == crypto_sign_ed25519_SECRETKEYBYTES);
  crypto_sign_ed25519_seed_keypair(public_, secret_, seed);
}

SigningKey::~SigningKey() { sodium_memzero(secret_, sizeof secret_); }

SigningKey SigningKey::Read(const std::filesystem::path& path) {
  const std::string text = ReadTextFile(path);
  std::vector<uint8_t> bytes;
  const size_t begin = text.find(kPemBegin);
  if (begin == std::string::npos) {
    if (!DecodeHex(WithoutSpace(text), &bytes) || bytes.size() != kSeedBytes) {
      Fail("%s: expected an Ed25519 private key: PEM that begins with %s, or 64 hexadecimal digits",
           path.c_str(), std::string(kPemBegin).c_str());
    }
    return SigningKey(bytes.data());
  }
  const size_t from = begin + kPemBegin.size();
  const size_t end = text.find(kPemEnd, from);
  if (end == std::string::npos ||
      !DecodeBase64(WithoutSpace(std::string_view(text).substr(from, end - from)), &bytes)) {
    Fail("%s: the PEM text is damaged", path.c_str());
  }
  if (bytes.size() != sizeof kPkcs8 + kSeedBytes ||
      std::memcmp(bytes.data(), kPkcs8, sizeof kPkcs8) != 0) {
    Fail(
        "%s: the private key is not an Ed25519 key (`openssl genpkey -algorithm ed25519` makes "
        "one)",
        path.c_str());
  }
  return SigningKey(bytes.data() + sizeof kPkcs8);
}

std::string SigningKey::PublicHex() const {
  std::string text;
  for (const uint8_t byte : public_) text += Format("%02x", byte);
  return text;
}

void SigningKey::Sign(Span<const uint8_t> message, uint8_t* out) const {
  crypto_sign_ed25519_detached(out, nullptr, message.data(), message.size(), secret_);
}

}  // namespace arn::convert

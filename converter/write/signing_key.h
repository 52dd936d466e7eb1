// Key for signing bundles: Ed25519, RFC 8032.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "platform/base/span.h"

namespace arn::convert {

class SigningKey {
 public:
  static constexpr size_t kSeedBytes = 32, kPublicBytes = 32, kSignatureBytes = 64;

  // Derives the key from its 32 secret bytes.
  explicit SigningKey(const uint8_t* seed);
  // Reads a private key as `openssl genpkey -algorithm ed25519` writes it (PKCS#8 in PEM, RFC 8410,
  // unencrypted), or its 32 bytes as 64 hexadecimal digits. Throws ConvertError.
  static SigningKey Read(const std::filesystem::path& path);
  ~SigningKey();
  SigningKey(const SigningKey&) = default;
  SigningKey& operator=(const SigningKey&) = default;

  const uint8_t* public_key() const { return public_; }
  // Returns the public key in hexadecimal.
  std::string PublicHex() const;
  // Writes out[kSignatureBytes].
  void Sign(Span<const uint8_t> message, uint8_t* out) const;

 private:
  uint8_t public_[kPublicBytes];
  uint8_t secret_[kSeedBytes + kPublicBytes];
};

}  // namespace arn::convert

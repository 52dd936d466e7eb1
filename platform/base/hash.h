// XXH64 (Yann Collet, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), the hash of
// every section of a bundle. Detects damage, not tampering.
#pragma once

#include <cstddef>
#include <cstdint>

namespace arn {

// Hashes bytes in chunks of any size.
class Xxh64Stream {
 public:
  explicit Xxh64Stream(uint64_t seed = 0);
  void Update(const void* data, size_t bytes);
  // Returns the hash so far; more may follow.
  uint64_t Digest() const;

 private:
  static constexpr size_t kStripeBytes = 32;

  uint64_t lanes_[4];
  uint64_t seed_;
  uint64_t total_bytes_ = 0;
  uint8_t tail_[kStripeBytes];  // total_bytes_ % kStripeBytes of them are buffered
};

uint64_t Xxh64(const void* data, size_t bytes, uint64_t seed = 0);

}  // namespace arn

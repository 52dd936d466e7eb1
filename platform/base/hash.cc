#include "platform/base/hash.h"

#include <cstring>

namespace arn {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;

constexpr uint64_t RotateLeft(uint64_t v, int bits) { return (v << bits) | (v >> (64 - bits)); }

// All supported targets are little endian, as the hash is.
uint64_t Read64(const uint8_t* p) {
  uint64_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
uint32_t Read32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

constexpr uint64_t Round(uint64_t lane, uint64_t input) {
  return RotateLeft(lane + input * kPrime2, 31) * kPrime1;
}
constexpr uint64_t MergeRound(uint64_t hash, uint64_t lane) {
  return (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
}

void Stripe(uint64_t lanes[4], const uint8_t* p) {
  for (int i = 0; i < 4; ++i) lanes[i] = Round(lanes[i], Read64(p + 8 * i));
}

}  // namespace

Xxh64Stream::Xxh64Stream(uint64_t seed)
    : lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1}, seed_(seed) {}

void Xxh64Stream::Update(const void* data, size_t bytes) {
  if (bytes == 0) return;
  const uint8_t* p = static_cast<const uint8_t*>(data);
  const size_t waiting = static_cast<size_t>(total_bytes_ % kStripeBytes);
  total_bytes_ += bytes;
  if (waiting != 0) {
    const size_t missing = kStripeBytes - waiting;
    if (bytes < missing) {
      std::memcpy(tail_ + waiting, p, bytes);
      return;
    }
    std::memcpy(tail_ + waiting, p, missing);
    Stripe(lanes_, tail_);
    p += missing;
    bytes -= missing;
  }
  // A local copy lets the compiler keep the lanes in registers.
  uint64_t lanes[4] = {lanes_[0], lanes_[1], lanes_[2], lanes_[3]};
  for (; bytes >= kStripeBytes; bytes -= kStripeBytes, p += kStripeBytes) Stripe(lanes, p);
  std::memcpy(lanes_, lanes, sizeof lanes);
  if (bytes != 0) std::memcpy(tail_, p, bytes);
}

uint64_t Xxh64Stream::Digest() const {
  uint64_t hash;
  if (total_bytes_ >= kStripeBytes) {
    hash = RotateLeft(lanes_[0], 1) + RotateLeft(lanes_[1], 7) + RotateLeft(lanes_[2], 12) +
           RotateLeft(lanes_[3], 18);
    for (const uint64_t lane : lanes_) hash = MergeRound(hash, lane);
  } else {
    hash = seed_ + kPrime5;
  }
  hash += total_bytes_;

  const uint8_t* p = tail_;
  size_t left = static_cast<size_t>(total_bytes_ % kStripeBytes);
  for (; left >= 8; left -= 8, p += 8) {
    hash = RotateLeft(hash ^ Round(0, Read64(p)), 27) * kPrime1 + kPrime4;
  }
  if (left >= 4) {
    hash = RotateLeft(hash ^ (Read32(p) * kPrime1), 23) * kPrime2 + kPrime3;
    left -= 4;
    p += 4;
  }
  for (; left > 0; --left, ++p) hash = RotateLeft(hash ^ (*p * kPrime5), 11) * kPrime1;

  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

uint64_t Xxh64(const void* data, size_t bytes, uint64_t seed) {
  Xxh64Stream stream(seed);
  stream.Update(data, bytes);
  return stream.Digest();
}

}  // namespace arn

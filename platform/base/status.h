// Status: result of a fallible call. The numbers are part of the C API (arn_status) and
// append-only; the ranges name the party at fault.
#pragma once

#include <cstdint>

namespace arn {

// clang-format 14 mistakes the attribute for an initialiser.
// clang-format off
enum class [[nodiscard]] Status : uint32_t {
  kOk = 0,
  // 0x0_: a bug in Arenite, or calls in the wrong order
  kInternal = 0x01,
  kBadState = 0x02,
  kCancelled = 0x03,
  // 0x1_: the caller
  kBadArgument = 0x10,
  kUnsupported = 0x11,
  kBadToken = 0x12,
  kBufferTooSmall = 0x13,
  kTemplateError = 0x14,
  // 0x2_: resources
  kContextFull = 0x20,
  kOutOfMemory = 0x21,
  kNotFound = 0x22,
  kIo = 0x23,
  kDiskFull = 0x24,
  // 0x3_: files
  kBadBundle = 0x30,
  kBundleVersion = 0x31,
  kBundleTruncated = 0x32,
  kHashMismatch = 0x33,
  kBadSave = 0x34,
  kSaveMismatch = 0x35,
  kBadSignature = 0x36,
  // 0x4_: devices
  kDevice = 0x40,
  kDeviceLost = 0x41,
};
// clang-format on

// Returns a short English name, never null. An unknown value gives "unknown status".
const char* StatusName(Status status);

}  // namespace arn

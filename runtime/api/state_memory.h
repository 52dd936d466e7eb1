// Saved states in a caller's memory.
#pragma once

#include <cinttypes>
#include <cstring>

#include "runtime/api/handles.h"

namespace arn::api {

struct MemorySink {
  std::byte* data;
  uint64_t capacity;

  static Status Write(void* user, uint64_t offset, Span<const std::byte> bytes, Diag* diag) {
    const auto* sink = static_cast<const MemorySink*>(user);
    if (offset > sink->capacity || bytes.size() > sink->capacity - offset) {
      return diag->Fail(Status::kInternal, "the saved state is larger than its planned size");
    }
    std::memcpy(sink->data + offset, bytes.data(), bytes.size());
    return Status::kOk;
  }
};

// Saves a state of `bytes` bytes by save(sink), if the buffer takes it.
template <typename Save>
Status SaveInto(void* buffer, uint64_t capacity, uint64_t bytes, const Save& save, Diag* diag) {
  if (bytes > capacity) {
    return diag->Fail(Status::kBufferTooSmall,
                      "the buffer has %" PRIu64 " bytes, the saved state needs %" PRIu64, capacity,
                      bytes);
  }
  MemorySink sink{static_cast<std::byte*>(buffer), capacity};
  return save({MemorySink::Write, &sink});
}

// Sets *out but for its bytes. by_default: whether ARN_VERIFY_DEFAULT verifies the pages.
inline Status ReadRestoreOptions(const arn_restore_options* options, bool by_default,
                                 StateSource* out, Diag* diag) {
  arn_restore_options read = ARN_RESTORE_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_restore_options", &read, diag));
  if (read.verify > ARN_VERIFY_TABLES) {
    return diag->Fail(Status::kUnsupported, "verify %u is not known", read.verify);
  }
  ARN_TRY(CheckFlag("no_constraints", read.no_constraints, diag));
  out->verify_pages =
      read.verify == ARN_VERIFY_DEFAULT ? by_default : read.verify == ARN_VERIFY_ALL;
  out->has_constraints = read.no_constraints == 0;
  return Status::kOk;
}

// Sets the bytes of *out.
inline Status ReadStateBytes(const void* data, uint64_t bytes, StateSource* out, Diag* diag) {
  if (bytes > SIZE_MAX) {
    return diag->Fail(Status::kBadArgument, "bytes exceeds the address space");
  }
  out->bytes = {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)};
  return Status::kOk;
}

}  // namespace arn::api

// The opaque handles of the C API are the runtime's own objects; and what all entry points share.
#pragma once

#include <cstddef>
#include <cstring>

#include "arenite/arenite.h"
#include "platform/base/diag.h"
#include "platform/base/status.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"

namespace arn::api {

inline arn_status ToC(Status status) { return static_cast<arn_status>(status); }

inline Model* ToModel(arn_model* model) { return reinterpret_cast<Model*>(model); }
inline const Model* ToModel(const arn_model* model) {
  return reinterpret_cast<const Model*>(model);
}
inline Session* ToSession(arn_session* session) { return reinterpret_cast<Session*>(session); }
inline const Session* ToSession(const arn_session* session) {
  return reinterpret_cast<const Session*>(session);
}

// Clears the last error, so that arn_session_last_error speaks of the call that failed last.
inline Session* Begin(arn_session* session) {
  Session* s = ToSession(session);
  s->diag()->Clear();
  return s;
}

// Copies a caller's option struct, which may be older (shorter: the new fields keep T's zero) or
// newer (longer: refused unless what this library does not know is zero) than the library. `in` may
// be null: then *out stays as it is.
template <typename T>
Status ReadStruct(const T* in, const char* name, T* out, Diag* diag) {
  if (in == nullptr) return Status::kOk;
  size_t size = 0;
  std::memcpy(&size, in, sizeof size);
  if (size < sizeof(size_t) || size > 4096) {
    return diag->Fail(Status::kBadArgument, "%s.struct_size is %zu, expected %zu", name, size,
                      sizeof(T));
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(in);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] != 0) {
      return diag->Fail(Status::kUnsupported,
                        "%s has a field set that this version of the library does not know", name);
    }
  }
  std::memcpy(out, in, size < sizeof(T) ? size : sizeof(T));
  out->struct_size = sizeof(T);
  return Status::kOk;
}

// Writes as much of a result struct as the caller's version has, and leaves its struct_size.
template <typename T>
Status WriteStruct(const T& from, T* to) {
  if (to == nullptr) return Status::kBadArgument;
  size_t size = 0;
  std::memcpy(&size, to, sizeof size);
  if (size < sizeof(size_t) || size > 4096) return Status::kBadArgument;
  T copy = from;
  copy.struct_size = size;
  std::memcpy(static_cast<void*>(to), &copy, size < sizeof(T) ? size : sizeof(T));
  return Status::kOk;
}

// Hands the reason of a failure to the caller's buffer and returns the status.
inline arn_status Report(Status status, const Diag& diag, char* error, size_t error_bytes) {
  if (error != nullptr && error_bytes > 0) {
    const char* text = "";
    if (status != Status::kOk) text = diag.text()[0] != '\0' ? diag.text() : StatusName(status);
    const size_t n = std::strlen(text);
    const size_t kept = n < error_bytes - 1 ? n : error_bytes - 1;
    std::memcpy(error, text, kept);
    error[kept] = '\0';
  }
  return ToC(status);
}

}  // namespace arn::api

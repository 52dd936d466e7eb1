// Helpers shared by all C API entry points. The API's opaque handles are the runtime's own objects.
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

// Runs `call`, a Status(Session&) that may change the session. Refuses with kBadState inside a
// callback of that session. Clears the last error first, so that arn_session_last_error reports the
// latest failure. REQUIRES: session is not null.
template <typename Call>
arn_status OnSession(arn_session* session, const Call& call) {
  Session& s = *ToSession(session);
  if (s.is_in_callback()) {
    return ToC(s.diag()->Fail(
        Status::kBadState,
        "the session is in a call; its callback may only read the session or cancel"));
  }
  s.diag()->Clear();
  return ToC(call(s));
}

// Copies a caller's option struct to *out. An older (shorter) struct leaves T's defaults in the new
// fields; a newer (longer) one is refused unless its unknown bytes are zero. Null `in`: *out is
// unchanged.
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

// Writes the part of a result struct that the caller's version has; keeps its struct_size.
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

// Copies the failure message to the caller's buffer and returns the status.
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

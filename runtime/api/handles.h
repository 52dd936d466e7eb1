// Helpers shared by all C API entry points. The API's opaque handles are the runtime's own objects.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arenite/arenite.h"
#include "platform/base/diag.h"
#include "platform/base/status.h"
#include "runtime/model/adapter_bundle.h"
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

inline const AdapterBundle* ToAdapter(const arn_adapter* adapter) {
  return reinterpret_cast<const AdapterBundle*>(adapter);
}

// kBadState inside a callback of the session, and while it has a scheduler unless the call works
// beside one.
Status CheckFree(Session* session, bool works_beside_scheduler);

// Runs `call`, a Status(Session&) that may change the session. Refuses as CheckFree(). Clears the
// last error first, so that arn_session_last_error reports the latest failure. REQUIRES: session is
// not null.
template <typename Call>
arn_status OnSession(arn_session* session, const Call& call, bool works_beside_scheduler = false) {
  Session& s = *ToSession(session);
  const Status free = CheckFree(&s, works_beside_scheduler);
  if (free != Status::kOk) return ToC(free);
  s.diag()->Clear();
  return ToC(call(s));
}
// As above for calls that change no sequence.
template <typename Call>
arn_status BesideScheduler(arn_session* session, const Call& call) {
  return OnSession(session, call, true);
}

// Copies a caller's option struct to *out, size bytes whose defaults are set. An older (shorter)
// struct leaves them in the new fields; a newer (longer) one is refused unless its unknown bytes
// are zero. Null `in`: *out is unchanged.
Status ReadStruct(const void* in, const char* name, void* out, size_t size, Diag* diag);
template <typename T>
Status ReadStruct(const T* in, const char* name, T* out, Diag* diag) {
  static_assert(offsetof(T, struct_size) == 0);
  return ReadStruct(in, name, out, sizeof(T), diag);
}

// Writes the part of a result struct, size bytes, that the caller's version has; keeps its
// struct_size.
Status WriteStruct(const void* from, size_t size, void* to);
template <typename T>
Status WriteStruct(const T& from, T* to) {
  static_assert(offsetof(T, struct_size) == 0);
  return WriteStruct(&from, sizeof(T), to);
}

// Fails unless the value of an option is 0 or 1.
Status CheckFlag(const char* name, uint64_t value, Diag* diag);

// Copies the failure message to the caller's buffer and returns the status.
arn_status Report(Status status, const Diag& diag, char* error, size_t error_bytes);

}  // namespace arn::api

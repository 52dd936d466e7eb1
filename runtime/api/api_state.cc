// Implements arn_session_save* and arn_session_restore*.
#include "platform/os/mapped_file.h"
#include "platform/os/replace_file.h"
#include "runtime/api/handles.h"
#include "runtime/api/state_memory.h"

namespace arn::api {
namespace {

// Saves again if a device failed midway and the fallback backend took over.
template <typename Save>
Status SaveOnceOrTwice(const Session& session, const Save& save) {
  const Backend* before = &session.executor().backend();
  const Status status = save();
  return status == Status::kOk || &session.executor().backend() == before ? status : save();
}

Status SaveMemory(Session* session, void* buffer, uint64_t capacity, uint64_t* out_bytes) {
  uint64_t bytes = 0;
  ARN_TRY(session->SaveBytes(&bytes));
  *out_bytes = bytes;
  return SaveInto(
      buffer, capacity, bytes, [&](const StateSink& sink) { return session->Save(sink); },
      session->diag());
}

Status RestoreMemory(Session* session, const void* data, uint64_t bytes,
                     const arn_restore_options* options) {
  StateSource source;
  ARN_TRY(ReadRestoreOptions(options, true, &source, session->diag()));
  ARN_TRY(ReadStateBytes(data, bytes, &source, session->diag()));
  return session->Restore(source);
}

Status WriteFile(void* user, uint64_t offset, Span<const std::byte> bytes, Diag* diag) {
  return WriteReplace(static_cast<ReplaceFile*>(user), offset, bytes, diag);
}

Status SavePath(Session* session, const char* path) {
  ReplaceFile file;
  ARN_TRY(BeginReplace(path, 0600, &file, session->diag()));
  const Status status = session->Save({WriteFile, &file});
  if (status != Status::kOk) {
    AbandonReplace(&file);
    return status;
  }
  return FinishReplace(&file, session->diag());
}

Status RestoreMapped(Session* session, const char* path, StateSource source) {
  Diag inner;
  MappedFile file;
  Status status = MapFd(source.fd, 0, 0, &file, &inner);
  if (status == Status::kBundleTruncated) status = Status::kBadSave;  // the file is empty
  if (status == Status::kOk) {
    source.bytes = file.bytes;
    status = session->Restore(source);
    inner = *session->diag();
    UnmapFile(&file);
  }
  if (status == Status::kOk) return status;
  return session->diag()->Fail(status, "%s: %s", path, inner.text());
}

Status RestorePath(Session* session, const char* path, const arn_restore_options* options) {
  StateSource source;
  ARN_TRY(ReadRestoreOptions(options, false, &source, session->diag()));
  ARN_TRY(OpenToMap(path, &source.fd, session->diag()));
  const Status status = RestoreMapped(session, path, source);
  CloseMapped(source.fd);
  return status;
}

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_session_save_bytes(const arn_session* session, uint64_t* out_bytes) {
  if (session == nullptr || out_bytes == nullptr) return ARN_BAD_ARGUMENT;
  // Logically const: writes no more than the message of a failure.
  return ToC(const_cast<Session*>(ToSession(session))->SaveBytes(out_bytes));
}

arn_status arn_session_save_memory(arn_session* session, void* buffer, uint64_t capacity,
                                   uint64_t* out_bytes) {
  if (out_bytes == nullptr) return ARN_BAD_ARGUMENT;
  *out_bytes = 0;
  if (session == nullptr || (buffer == nullptr && capacity > 0)) return ARN_BAD_ARGUMENT;
  return BesideScheduler(session, [&](Session& s) {
    return SaveOnceOrTwice(s, [&] { return SaveMemory(&s, buffer, capacity, out_bytes); });
  });
}

arn_status arn_session_save(arn_session* session, const char* path) {
  if (session == nullptr || path == nullptr) return ARN_BAD_ARGUMENT;
  return BesideScheduler(
      session, [&](Session& s) { return SaveOnceOrTwice(s, [&] { return SavePath(&s, path); }); });
}

arn_status arn_session_restore(arn_session* session, const char* path,
                               const arn_restore_options* options) {
  if (session == nullptr || path == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) { return RestorePath(&s, path, options); });
}

arn_status arn_session_restore_memory(arn_session* session, const void* data, uint64_t bytes,
                                      const arn_restore_options* options) {
  if (session == nullptr || (data == nullptr && bytes > 0)) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) { return RestoreMemory(&s, data, bytes, options); });
}

}  // extern "C"

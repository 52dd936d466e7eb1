// Implements arn_session_save* and arn_session_restore*.
#include <cinttypes>
#include <cstring>

#include "platform/os/mapped_file.h"
#include "platform/os/replace_file.h"
#include "runtime/api/handles.h"

namespace arn::api {
namespace {

struct MemorySink {
  std::byte* data;
  uint64_t capacity;
};

Status WriteMemory(void* user, uint64_t offset, Span<const std::byte> bytes, Diag* diag) {
  const auto* sink = static_cast<const MemorySink*>(user);
  if (offset > sink->capacity || bytes.size() > sink->capacity - offset) {
    return diag->Fail(Status::kInternal, "the saved session is larger than its planned size");
  }
  std::memcpy(sink->data + offset, bytes.data(), bytes.size());
  return Status::kOk;
}

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
  if (bytes > capacity) {
    return session->diag()->Fail(
        Status::kBufferTooSmall,
        "the buffer has %" PRIu64 " bytes, the saved session needs %" PRIu64, capacity, bytes);
  }
  MemorySink sink{static_cast<std::byte*>(buffer), capacity};
  return session->Save({WriteMemory, &sink});
}

// Sets *out but for its bytes. by_default: whether ARN_VERIFY_DEFAULT verifies the pages.
Status ReadOptions(const arn_restore_options* options, bool by_default, StateSource* out,
                   Diag* diag) {
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

Status RestoreMemory(Session* session, const void* data, uint64_t bytes,
                     const arn_restore_options* options) {
  StateSource source;
  ARN_TRY(ReadOptions(options, true, &source, session->diag()));
  if (bytes > SIZE_MAX) {
    return session->diag()->Fail(Status::kBadArgument, "bytes exceeds the address space");
  }
  source.bytes = {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)};
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
  ARN_TRY(ReadOptions(options, false, &source, session->diag()));
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

#include "runtime/api/handles.h"

#include <cinttypes>
#include <cstring>

namespace arn::api {
namespace {

constexpr size_t kMaxStructBytes = 4096;

}  // namespace

Status CheckFree(Session* session, bool works_beside_scheduler) {
  if (session->is_in_callback()) {
    return session->diag()->Fail(
        Status::kBadState,
        "the session is in a call; its callback may only read the session or cancel");
  }
  if (works_beside_scheduler || !session->scheduler().is_open()) return Status::kOk;
  return session->diag()->Fail(Status::kBadState,
                               "the session has a scheduler, which alone changes its sequences");
}

Status ReadStruct(const void* in, const char* name, void* out, size_t size, Diag* diag) {
  if (in == nullptr) return Status::kOk;
  size_t given = 0;
  std::memcpy(&given, in, sizeof given);
  if (given < sizeof(size_t) || given > kMaxStructBytes) {
    return diag->Fail(Status::kBadArgument, "%s.struct_size is %zu, expected %zu", name, given,
                      size);
  }
  const auto* bytes = static_cast<const unsigned char*>(in);
  for (size_t i = size; i < given; ++i) {
    if (bytes[i] != 0) {
      return diag->Fail(Status::kUnsupported,
                        "%s has a field set that this version of the library does not know", name);
    }
  }
  std::memcpy(out, in, given < size ? given : size);
  std::memcpy(out, &size, sizeof size);
  return Status::kOk;
}

Status WriteStruct(const void* from, size_t size, void* to) {
  if (to == nullptr) return Status::kBadArgument;
  size_t given = 0;
  std::memcpy(&given, to, sizeof given);
  if (given < sizeof(size_t) || given > kMaxStructBytes) return Status::kBadArgument;
  std::memcpy(to, from, given < size ? given : size);
  std::memcpy(to, &given, sizeof given);
  return Status::kOk;
}

Status CheckFlag(const char* name, uint64_t value, Diag* diag) {
  if (value <= 1) return Status::kOk;
  return diag->Fail(Status::kBadArgument, "%s is %" PRIu64 ", expected 0 or 1", name, value);
}

arn_status Report(Status status, const Diag& diag, char* error, size_t error_bytes) {
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

// Implements arn_adapter_* and arn_session_set_adapters.
#include "platform/os/mapped_file.h"
#include "runtime/api/handles.h"
#include "runtime/bundle/signature.h"

namespace arn::api {
namespace {

const char* TextOf(const flatbuffers::String* s) { return s == nullptr ? "" : s->c_str(); }

Status OpenAdapterPath(const arn_model* base, const char* path,
                       const arn_adapter_options* c_options, arn_adapter** out, Diag* diag) {
  if (path == nullptr) return diag->Fail(Status::kBadArgument, "path is NULL");
  arn_adapter_options options = ARN_ADAPTER_OPTIONS_INIT;
  ARN_TRY(ReadStruct(c_options, "arn_adapter_options", &options, diag));
  Span<const uint8_t> key;
  if (options.public_key != nullptr) key = {options.public_key, kPublicKeyBytes};
  int fd = -1;
  ARN_TRY(OpenToMap(path, &fd, diag));
  Diag inner;
  ModelBytes source;
  Status status = LoadModelBytes(fd, 0, 0, Residency::kMapped, &source, &inner);
  CloseMapped(fd);
  AdapterBundle* adapter = nullptr;
  if (status == Status::kOk) status = OpenAdapter(ToModel(base), source, key, &adapter, &inner);
  if (status != Status::kOk) return diag->Fail(status, "%s: %s", path, inner.text());
  *out = reinterpret_cast<arn_adapter*>(adapter);
  return Status::kOk;
}

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_adapter_open(const arn_model* base, const char* path,
                            const arn_adapter_options* options, char* error, size_t error_bytes,
                            arn_adapter** out_adapter) {
  if (out_adapter == nullptr) return ARN_BAD_ARGUMENT;
  *out_adapter = nullptr;
  Diag diag;
  return Report(OpenAdapterPath(base, path, options, out_adapter, &diag), diag, error, error_bytes);
}

void arn_adapter_close(arn_adapter* adapter) {
  CloseAdapter(reinterpret_cast<AdapterBundle*>(adapter));
}

arn_status arn_adapter_get_info(const arn_adapter* adapter, arn_adapter_info* out_info) {
  if (adapter == nullptr) return ARN_BAD_ARGUMENT;
  const AdapterBundle& bundle = *ToAdapter(adapter);
  const fbs::Bundle& index = *bundle.bundle.index;
  const fbs::Adapter& table = *index.adapter();
  arn_adapter_info info = ARN_ADAPTER_INFO_INIT;
  info.name = TextOf(table.name());
  info.base_name = TextOf(table.base_name());
  info.producer = TextOf(index.producer());
  info.base_hash = table.base_hash();
  info.hash = bundle.adapter.hash;
  if (table.changes() != nullptr) {
    info.n_changes = table.changes()->size();
    for (const fbs::LowRank* change : *table.changes()) {
      if (change->rank() > info.max_rank) info.max_rank = change->rank();
    }
  }
  info.n_directions = table.directions() == nullptr ? 0 : table.directions()->size();
  info.file_bytes = bundle.bundle.file.size();
  return ToC(WriteStruct(info, out_info));
}

arn_status arn_session_set_adapters(arn_session* session, const uint32_t* adapters,
                                    const float* scales, size_t n) {
  if (session == nullptr || (n > 0 && adapters == nullptr)) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) { return s.SetAdapters({adapters, n}, scales); });
}

}  // extern "C"

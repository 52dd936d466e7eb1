// Implements the arn_session_* calls that read and write the KV cache.
#include "runtime/api/handles.h"

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_session_kv_layer(const arn_session* session, uint32_t layer,
                                arn_kv_layer_info* out_info) {
  if (session == nullptr || out_info == nullptr) return ARN_BAD_ARGUMENT;
  const Session* s = ToSession(session);
  KvLayer found;
  const Status status = s->FindKvLayer(layer, &found);
  if (status != Status::kOk) return ToC(status);
  const KvGroup& group = s->plan().kv_groups[found.group];
  arn_kv_layer_info info = ARN_KV_LAYER_INFO_INIT;
  info.n_kv_heads = group.n_kv_heads;
  info.head_dim = group.head_dim;
  info.kv_layer = found.kv_layer;
  info.first_position = found.first_position;
  return ToC(WriteStruct(info, out_info));
}

arn_status arn_session_read_kv(arn_session* session, uint32_t layer, uint32_t first, uint32_t n,
                               float* keys, float* values) {
  if (session == nullptr || (keys == nullptr && values == nullptr)) return ARN_BAD_ARGUMENT;
  return BesideScheduler(session,
                         [&](Session& s) { return s.ReadKv(layer, first, n, keys, values); });
}

arn_status arn_session_write_kv(arn_session* session, const int32_t* ids, size_t n,
                                const float* const* keys, const float* const* values) {
  if (session == nullptr || (ids == nullptr && n != 0) || keys == nullptr || values == nullptr) {
    return ARN_BAD_ARGUMENT;
  }
  return OnSession(session, [&](Session& s) { return s.WriteKv({ids, n}, keys, values); });
}

}  // extern "C"

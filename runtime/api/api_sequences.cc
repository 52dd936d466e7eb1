// Implements the arn_session_* calls on whole sequences.
#include "runtime/api/handles.h"
#include "runtime/model/image_place.h"

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_session_tokens(const arn_session* session, const int32_t** out_ids,
                              uint32_t* out_count) {
  if (session == nullptr || out_ids == nullptr || out_count == nullptr) return ARN_BAD_ARGUMENT;
  const Sequences& sequences = ToSession(session)->sequences();
  const Span<const int32_t> ids = sequences.Ids(sequences.selected());
  *out_ids = ids.data();
  *out_count = static_cast<uint32_t>(ids.size());
  return ARN_OK;
}

arn_status arn_session_follow(arn_session* session, const int32_t* ids, size_t n_ids,
                              uint32_t* out_kept) {
  if (out_kept != nullptr) *out_kept = 0;
  if (session == nullptr || (ids == nullptr && n_ids > 0)) return ARN_BAD_ARGUMENT;
  uint32_t kept = 0;
  const arn_status status = OnSession(session, [&](Session& s) {
    return s.ReusePrefix({ids, n_ids}, {}, &kept);
  });
  if (out_kept != nullptr) *out_kept = kept;
  return status;
}

arn_status arn_session_prefill_embeddings(arn_session* session, const int32_t* ids, size_t n_ids,
                                          const float* embeddings, size_t n_embeddings) {
  if (session == nullptr || (ids == nullptr && n_ids > 0) ||
      (embeddings == nullptr && n_embeddings > 0)) {
    return ARN_BAD_ARGUMENT;
  }
  return OnSession(session, [&](Session& s) {
    return s.PrefillEmbeddings({ids, n_ids},
                               {embeddings, n_embeddings * EmbeddingFloats(s.model().spec)});
  });
}

arn_status arn_session_follow_embeddings(arn_session* session, const int32_t* ids, size_t n_ids,
                                         const float* embeddings, size_t n_embeddings,
                                         uint32_t* out_kept) {
  if (out_kept != nullptr) *out_kept = 0;
  if (session == nullptr || (ids == nullptr && n_ids > 0) ||
      (embeddings == nullptr && n_embeddings > 0)) {
    return ARN_BAD_ARGUMENT;
  }
  uint32_t kept = 0;
  const arn_status status = OnSession(session, [&](Session& s) {
    return s.ReusePrefix({ids, n_ids}, {embeddings, n_embeddings * EmbeddingFloats(s.model().spec)},
                         &kept);
  });
  if (out_kept != nullptr) *out_kept = kept;
  return status;
}

arn_status arn_session_use_prefix(arn_session* session) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) { return s.UsePrefix(); });
}

arn_status arn_session_rewind(arn_session* session, uint32_t position) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) { return s.Rewind(position); });
}

uint32_t arn_session_first_rewind_position(const arn_session* session) {
  return session == nullptr ? 0 : ToSession(session)->sequences().FirstRewindPosition();
}

uint32_t arn_session_resume_position(const arn_session* session, uint32_t position) {
  return session == nullptr ? 0 : ToSession(session)->sequences().ResumePosition(position);
}

arn_status arn_session_mark(arn_session* session) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [](Session& s) { return s.Mark(); });
}

arn_status arn_session_trim(arn_session* session, uint64_t* out_bytes) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  uint64_t bytes = 0;
  const arn_status status = BesideScheduler(session, [&](Session& s) { return s.Trim(&bytes); });
  if (out_bytes != nullptr) *out_bytes = bytes;
  return status;
}

arn_status arn_session_select(arn_session* session, uint32_t sequence) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return BesideScheduler(session, [&](Session& s) { return s.Select(sequence); });
}

uint32_t arn_session_selected(const arn_session* session) {
  return session == nullptr ? 0 : ToSession(session)->sequences().selected();
}

arn_status arn_session_fork(arn_session* session, uint32_t from, uint32_t to) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) { return s.Fork(from, to); });
}

arn_status arn_session_step(arn_session* session, const uint32_t* sequences, const int32_t* ids,
                            size_t n) {
  if (session == nullptr || (n > 0 && (sequences == nullptr || ids == nullptr))) {
    return ARN_BAD_ARGUMENT;
  }
  return OnSession(session, [&](Session& s) { return s.StepBatch({sequences, n}, {ids, n}); });
}

arn_status arn_session_decode_batch(arn_session* session, const uint32_t* sequences, size_t n,
                                    int32_t* out_ids) {
  if (session == nullptr || (n > 0 && (sequences == nullptr || out_ids == nullptr))) {
    return ARN_BAD_ARGUMENT;
  }
  return OnSession(session, [&](Session& s) {
    return s.DecodeBatch({sequences, n}, {out_ids, n});
  });
}

}  // extern "C"

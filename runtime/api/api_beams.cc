// Implements arn_session_beam_search and its results.
#include "runtime/api/handles.h"

namespace arn::api {
namespace {

Status ReadBeamOptions(const arn_beam_options* options, BeamRequest* out, Diag* diag) {
  arn_beam_options read = ARN_BEAM_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_beam_options", &read, diag));
  ARN_TRY(CheckFlag("ignore_eos", read.ignore_eos, diag));
  if (read.early_stopping > ARN_EARLY_STOPPING_NEVER) {
    return diag->Fail(Status::kUnsupported, "early_stopping %u is not known", read.early_stopping);
  }
  if (read.n_extra_eos_ids > 0 && read.extra_eos_ids == nullptr) {
    return diag->Fail(Status::kBadArgument, "extra_eos_ids is NULL");
  }
  out->options.num_beams = read.num_beams;
  out->options.num_beam_groups = read.num_beam_groups;
  out->options.diversity_penalty = read.diversity_penalty;
  out->options.length_penalty = read.length_penalty;
  out->options.early_stopping = static_cast<EarlyStopping>(read.early_stopping);
  out->options.num_return_sequences = read.num_return_sequences;
  out->options.max_tokens = read.max_tokens;
  out->ignore_eos = read.ignore_eos == 1;
  out->extra_eos_ids = {read.extra_eos_ids, read.n_extra_eos_ids};
  return Status::kOk;
}

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_session_beam_search(arn_session* session, const arn_beam_options* options,
                                   arn_beam_result* out_result) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) {
    BeamRequest read;
    ARN_TRY(ReadBeamOptions(options, &read, s.diag()));
    BeamResult result;
    const Status status = s.SearchBeams(read, &result);
    if (out_result == nullptr) return status;
    arn_beam_result out = ARN_BEAM_RESULT_INIT;
    out.n_sequences = result.n_sequences;
    out.n_steps = result.n_steps;
    out.kv_peak_bytes = result.kv_peak_bytes;
    const Status written = WriteStruct(out, out_result);
    return status == Status::kOk ? written : status;
  });
}

arn_status arn_session_beam(arn_session* session, uint32_t index, int32_t* out_ids, size_t capacity,
                            size_t* out_count, float* out_score) {
  if (session == nullptr || out_count == nullptr || (capacity > 0 && out_ids == nullptr)) {
    return ARN_BAD_ARGUMENT;
  }
  float score = 0.0f;
  const arn_status status = OnSession(session, [&](Session& s) {
    return s.Beam(index, {out_ids, capacity}, out_count, &score);
  });
  if (out_score != nullptr) *out_score = score;
  return status;
}

}  // extern "C"

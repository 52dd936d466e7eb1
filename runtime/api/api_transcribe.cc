// Implements arn_transcribe_* and arn_transcriber_*.
#include "runtime/api/caller_block.h"
#include "runtime/api/handles.h"
#include "runtime/api/options.h"
#include "runtime/transcription/transcriber.h"

namespace arn::api {
namespace {

static_assert(ARN_SAMPLE_RATE == kSampleRate);
// Words are passed on as they are.
static_assert(sizeof(arn_word) == sizeof(Word) && alignof(arn_word) == alignof(Word) &&
              offsetof(arn_word, start_s) == offsetof(Word, start_s) &&
              offsetof(arn_word, end_s) == offsetof(Word, end_s) &&
              offsetof(arn_word, offset) == offsetof(Word, offset) &&
              offsetof(arn_word, bytes) == offsetof(Word, bytes) &&
              offsetof(arn_word, first_id) == offsetof(Word, first_id) &&
              offsetof(arn_word, n_ids) == offsetof(Word, n_ids));

Transcriber* ToTranscriber(arn_transcriber* handle) {
  return reinterpret_cast<Transcriber*>(handle);
}

Status ReadTranscriberOptions(const arn_transcriber_options* options, TranscriberOptions* out,
                              Diag* diag) {
  arn_transcriber_options read = ARN_TRANSCRIBER_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_transcriber_options", &read, diag));
  if (read.words > 1) {
    return diag->Fail(Status::kBadArgument, "words is %u, expected 0 or 1", read.words);
  }
  out->sequence = read.sequence;
  out->has_words = read.words == 1;
  return Status::kOk;
}

Status Plan(const Model& model, const arn_session_options* session_options,
            const arn_transcriber_options* options, uint64_t* out_bytes, Diag* diag) {
  TranscriberOptions read;
  ARN_TRY(ReadTranscriberOptions(options, &read, diag));
  TranscriptionSpec spec;
  ARN_TRY(ReadTranscription(model, &spec, diag));
  SessionPlan session;
  ARN_TRY(PlanFromC(model, session_options, &session, diag));
  TranscriberPlan plan;
  ARN_TRY(PlanTranscriber(model, session.options, read, &plan, diag));
  *out_bytes = plan.total_bytes;
  return Status::kOk;
}

Status CreateTranscriber(Session* session, const arn_transcriber_options* options, void* memory,
                         uint64_t memory_bytes, Transcriber** out, Diag* diag) {
  TranscriberOptions read;
  ARN_TRY(ReadTranscriberOptions(options, &read, diag));
  TranscriberPlan plan;
  ARN_TRY(PlanTranscriber(session->model(), session->plan().options, read, &plan, diag));
  CallerBlock block;
  ARN_TRY(FindBlock("transcriber", plan.total_bytes, memory, memory_bytes, &block, diag));
  *out = Transcriber::Create(session, plan, block.block, block.pages);
  return Status::kOk;
}

int32_t OnSegment(void* user, const Segment& segment) {
  const auto& to = *static_cast<const arn_transcribe_options*>(user);
  const arn_segment out = {sizeof(arn_segment),
                           segment.start_s,
                           segment.end_s,
                           segment.text.data,
                           segment.text.size,
                           segment.ids.data(),
                           static_cast<uint32_t>(segment.ids.size()),
                           static_cast<uint32_t>(segment.words.size()),
                           reinterpret_cast<const arn_word*>(segment.words.data()),
                           segment.window.temperature,
                           segment.window.logprob,
                           segment.window.no_speech};
  return to.on_segment(to.user, &out);
}

int32_t OnProgress(void* user, uint64_t done, uint64_t total) {
  const auto& to = *static_cast<const arn_transcribe_options*>(user);
  return to.on_progress(to.user, done, total);
}

Status Transcribe(Transcriber* transcriber, Span<const float> samples,
                  const arn_transcribe_options* options, TranscribeResult* result) {
  Diag* diag = transcriber->diag();
  arn_transcribe_options read = ARN_TRANSCRIBE_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_transcribe_options", &read, diag));
  const struct {
    const char* name;
    uint32_t value;
  } switches[] = {{"translate", read.translate},
                  {"no_timestamps", read.no_timestamps},
                  {"words", read.words},
                  {"condition_on_previous", read.condition_on_previous}};
  for (const auto& one : switches) {
    if (one.value <= 1) continue;
    return diag->Fail(Status::kBadArgument, "%s is %u, expected 0 or 1", one.name, one.value);
  }
  if (samples.data() == nullptr && !samples.empty()) {
    return diag->Fail(Status::kBadArgument, "samples is NULL");
  }
  if (read.prompt_ids == nullptr && read.n_prompt_ids != 0) {
    return diag->Fail(Status::kBadArgument, "prompt_ids is NULL, n_prompt_ids %u",
                      read.n_prompt_ids);
  }
  TranscribeRequest request;
  if (read.language != nullptr) request.language = {read.language, std::strlen(read.language)};
  request.translates = read.translate == 1;
  request.has_timestamps = read.no_timestamps == 0;
  request.has_words = read.words == 1;
  request.temperature = read.temperature;
  request.temperature_step = read.temperature_step;
  request.seed = read.seed;
  request.trust = {read.logprob_threshold, read.entropy_threshold, read.no_speech_threshold};
  request.prompt_ids = {read.prompt_ids, read.n_prompt_ids};
  request.has_previous = read.condition_on_previous == 1;
  if (read.on_segment != nullptr) request.on_segment = OnSegment;
  if (read.on_progress != nullptr) request.on_progress = OnProgress;
  request.user = &read;
  return transcriber->Run(samples, request, result);
}

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_transcribe_get_info(const arn_model* model, arn_transcribe_info* out_info) {
  if (model == nullptr || out_info == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  TranscriptionSpec spec;
  const Status status = ReadTranscription(*ToModel(model), &spec, &diag);
  if (status != Status::kOk) return ToC(status);
  arn_transcribe_info info = ARN_TRANSCRIBE_INFO_INIT;
  info.n_languages = spec.n_languages;
  info.can_translate = spec.translate_id == TranscriptionSpec::kNoToken ? 0 : 1;
  info.window_samples = spec.window_samples;
  info.has_timestamps = spec.takes_samples ? 0 : 1;
  info.has_word_times = spec.n_alignment_heads == 0 ? 0 : 1;
  return ToC(WriteStruct(info, out_info));
}

arn_status arn_transcribe_language(const arn_model* model, uint32_t index, const char** out_name) {
  if (out_name == nullptr) return ARN_BAD_ARGUMENT;
  *out_name = nullptr;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  TranscriptionSpec spec;
  if (ReadTranscription(*ToModel(model), &spec, &diag) != Status::kOk ||
      index >= spec.n_languages) {
    return ARN_NOT_FOUND;
  }
  *out_name = LanguageAt(*ToModel(model), index).name;
  return ARN_OK;
}

arn_status arn_transcriber_plan(const arn_model* model, const arn_session_options* session_options,
                                const arn_transcriber_options* options, char* error,
                                size_t error_bytes, uint64_t* out_bytes) {
  if (out_bytes == nullptr) return ARN_BAD_ARGUMENT;
  *out_bytes = 0;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  return Report(Plan(*ToModel(model), session_options, options, out_bytes, &diag), diag, error,
                error_bytes);
}

arn_status arn_transcriber_create(arn_session* session, const arn_transcriber_options* options,
                                  void* memory, uint64_t memory_bytes, char* error,
                                  size_t error_bytes, arn_transcriber** out_transcriber) {
  if (out_transcriber == nullptr) return ARN_BAD_ARGUMENT;
  *out_transcriber = nullptr;
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  Transcriber* transcriber = nullptr;
  const Status status =
      CreateTranscriber(ToSession(session), options, memory, memory_bytes, &transcriber, &diag);
  *out_transcriber = reinterpret_cast<arn_transcriber*>(transcriber);
  return Report(status, diag, error, error_bytes);
}

void arn_transcriber_destroy(arn_transcriber* transcriber) {
  Transcriber::Destroy(ToTranscriber(transcriber));
}

const char* arn_transcriber_last_error(const arn_transcriber* transcriber) {
  return transcriber == nullptr ? ""
                                : reinterpret_cast<const Transcriber*>(transcriber)->diag().text();
}

arn_status arn_transcribe(arn_transcriber* transcriber, const float* samples, size_t n_samples,
                          const arn_transcribe_options* options,
                          arn_transcribe_result* out_result) {
  if (transcriber == nullptr) return ARN_BAD_ARGUMENT;
  Transcriber& t = *ToTranscriber(transcriber);
  TranscribeResult result;
  Status status = t.Enter();
  if (status == Status::kOk) status = Transcribe(&t, {samples, n_samples}, options, &result);
  if (out_result == nullptr) return ToC(status);
  arn_transcribe_result out = ARN_TRANSCRIBE_RESULT_INIT;
  out.language = result.language;
  out.language_probability = result.language_probability;
  out.n_windows = result.n_windows;
  out.n_segments = result.n_segments;
  out.n_tokens = result.n_tokens;
  out.n_retries = result.n_retries;
  out.n_silent = result.n_silent;
  const Status written = WriteStruct(out, out_result);
  return ToC(status == Status::kOk ? written : status);
}

}  // extern "C"

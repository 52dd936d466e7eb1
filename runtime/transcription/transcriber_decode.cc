// The tokens of a window: its prompt, and choosing them until they are trusted.
#include <cmath>
#include <cstring>

#include "platform/base/arith.h"
#include "runtime/sampling/logprobs.h"
#include "runtime/transcription/cross_weights.h"
#include "runtime/transcription/transcriber_job.h"

namespace arn {
namespace {

// A window above it is no text for the next one (generate_with_fallback).
constexpr float kLeastUncertain = 0.5f;
constexpr float kMostTemperature = 1.0f;

}  // namespace

Status Transcriber::FindLanguage(StringView name, SpeechLanguage* out) {
  for (uint32_t i = 0; i < plan_.spec.n_languages; ++i) {
    *out = LanguageAt(model_, i);
    if (StringView(out->name, std::strlen(out->name)) == name) return Status::kOk;
  }
  if (plan_.spec.n_languages == 0) {
    return diag_.Fail(Status::kBadArgument,
                      "language '%.*s': the model has one language, which is not named",
                      static_cast<int>(Min<size_t>(name.size, 64)), name.data);
  }
  return diag_.Fail(Status::kBadArgument, "language '%.*s' is none of the model's %u (such as %s)",
                    static_cast<int>(Min<size_t>(name.size, 64)), name.data, plan_.spec.n_languages,
                    LanguageAt(model_, 0).name);
}

Status Transcriber::DetectLanguage(Job* job, SpeechLanguage* out) {
  ARN_TRY(FromSession(session_.Prefill(Span<const int32_t>(&plan_.spec.start_id, 1))));
  const float* logits = nullptr;
  ARN_TRY(FromSession(session_.Logits(&logits)));
  *out = LanguageAt(model_, 0);
  for (uint32_t i = 1; i < plan_.spec.n_languages; ++i) {
    const SpeechLanguage language = LanguageAt(model_, i);
    const float more = logits[language.id] - logits[out->id];
    if (more > 0.0f || (more == 0.0f && language.id < out->id)) *out = language;
  }
  float sum = 0.0f;
  for (uint32_t i = 0; i < plan_.spec.n_languages; ++i) {
    sum += std::exp(logits[LanguageAt(model_, i).id] - logits[out->id]);
  }
  job->out->language_probability = 1.0f / sum;
  return FromSession(session_.Rewind(0));
}

Status Transcriber::FindTask(Job* job) {
  const TranscriptionSpec& spec = plan_.spec;
  SpeechLanguage language;
  if (job->request.language.size != 0) {
    ARN_TRY(FindLanguage(job->request.language, &language));
    job->out->language_probability = 1.0f;
  } else if (spec.n_languages != 0) {
    ARN_TRY(DetectLanguage(job, &language));
  }
  job->out->language = language.name;
  job->has_spaces =
      job->request.translates || !HasNoSpaces({language.name, std::strlen(language.name)});
  const int32_t ids[TranscriberPlan::kTaskTokens] = {
      spec.start_id, language.id, job->request.translates ? spec.translate_id : spec.transcribe_id,
      rules_.has_timestamps || spec.takes_samples ? TranscriptionSpec::kNoToken
                                                  : spec.no_timestamps_id};
  for (const int32_t id : ids) {
    if (id != TranscriptionSpec::kNoToken) job->task[job->n_task++] = id;
  }
  return Status::kOk;
}

void Transcriber::MakePrompt(Job* job) {
  const Span<int32_t> prompt = As<int32_t>(plan_.prompt);
  const Span<const int32_t> given = job->request.prompt_ids;
  const size_t n_given = Min<size_t>(given.size(), plan_.most_previous);
  Span<const int32_t> before = given.subspan(given.size() - n_given, n_given);
  // An uncertain window must not mislead the next one.
  if (job->request.has_previous && job->rating.temperature < kLeastUncertain) {
    before = job->previous.ids();
  }
  size_t n = 0;
  if (!before.empty()) {
    prompt[n++] = plan_.spec.previous_id;
    std::memcpy(prompt.data() + n, before.data(), before.size() * sizeof(int32_t));
    n += before.size();
  }
  std::memcpy(prompt.data() + n, job->task, job->n_task * sizeof(int32_t));
  job->prompt = {prompt.data(), n + job->n_task};
}

Status Transcriber::RunPrompt(Job* job) {
  Span<const int32_t> prompt = job->prompt;
  if (job->request.trust.no_speech > 0.0f) {
    const size_t n = prompt.size() - job->n_task + 1;  // the last is the start token
    ARN_TRY(FromSession(session_.Prefill(prompt.subspan(0, n))));
    const float* logits = nullptr;
    ARN_TRY(FromSession(session_.Logits(&logits)));
    const auto logit = static_cast<double>(logits[plan_.spec.no_speech_id()]);
    job->rating.no_speech =
        static_cast<float>(std::exp(logit - LogSumExp(logits, model_.spec.vocab)));
    prompt = prompt.subspan(n, prompt.size() - n);
    if (prompt.empty()) return Status::kOk;
  }
  return FromSession(session_.Prefill(prompt));
}

Status Transcriber::Generate(Job* job, bool is_first) {
  if (!is_first) ARN_TRY(FromSession(session_.Rewind(0)));
  ARN_TRY(RunPrompt(job));
  const TranscribeRequest& request = job->request;
  const Span<int32_t> ids = As<int32_t>(plan_.ids);
  const auto n_prompt = static_cast<uint32_t>(job->prompt.size());
  const uint32_t most = plan_.context_tokens - n_prompt;
  HeardWeights weights;
  weights.data = As<float>(plan_.weights).data();
  weights.n_heads = plan_.spec.n_alignment_heads;
  weights.most_tokens = most;
  weights.stride = model_.spec.encoder.max_rows;
  CrossWeights heard(session_, plan_.spec, n_prompt, weights);
  CrossRecording recording(&session_, request.has_words ? &heard : nullptr);
  ARN_TRY(FromSession(recording.Begin()));
  const bool is_rated = request.trust.need_logprob() || job->rating.temperature > 0.0f;
  const uint32_t sequence = plan_.options.sequence;
  uint32_t n = 0;
  double logprob = 0.0;
  bool has_ended = false;
  while (n < most) {
    const float* logits = nullptr;
    ARN_TRY(FromSession(session_.Logits(&logits)));
    const Span<const int32_t> chosen = ids.subspan(0, n);
    const RatedToken token =
        is_rated ? RateToken(rules_, chosen, logits, job->rating.temperature, &job->random)
                 : RatedToken{ChooseToken(rules_, chosen, logits)};
    logprob += token.logprob;
    for (const uint32_t end : model_.eos_ids) {
      has_ended = has_ended || static_cast<uint32_t>(token.id) == end;
    }
    if (has_ended) break;
    ids[n++] = token.id;
    if (n == most) break;
    ARN_TRY(FromSession(
        session_.StepBatch(Span<const uint32_t>(&sequence, 1), Span<const int32_t>(&token.id, 1))));
  }
  job->ids = {ids.data(), n};
  job->rating.logprob = static_cast<float>(logprob / (n + (has_ended ? 1 : 0)));
  if (request.has_words) Align(*job, n, heard.weights());
  return Status::kOk;
}

Status Transcriber::Decode(Job* job) {
  const TranscribeRequest& request = job->request;
  MakePrompt(job);
  job->rating = WindowRating();
  // Counted in steps, which do not add up rounding.
  for (uint32_t attempt = 0;; ++attempt) {
    const float raised =
        request.temperature + static_cast<float>(attempt) * request.temperature_step;
    job->rating.temperature = Min(raised, kMostTemperature);
    ARN_TRY(Generate(job, attempt == 0));
    const Trust trust =
        JudgeWindow(request.trust, job->ids, static_cast<double>(job->rating.logprob),
                    static_cast<double>(job->rating.no_speech));
    if (trust == Trust::kSilent) {
      job->ids = {};
      ++job->out->n_silent;
    }
    const bool is_last = request.temperature_step == 0.0f || raised >= kMostTemperature;
    if (trust != Trust::kRetried || is_last) return Status::kOk;
    ++job->out->n_retries;
  }
}

}  // namespace arn

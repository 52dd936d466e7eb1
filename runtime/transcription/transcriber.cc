#include "runtime/transcription/transcriber.h"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <new>

#include "platform/base/arith.h"
#include "platform/os/pages.h"
#include "runtime/transcription/cross_weights.h"
#include "runtime/transcription/sample_windows.h"
#include "runtime/transcription/transcriber_job.h"

namespace arn {
namespace {

constexpr uint32_t kFramesPerRow = 2;  // of features, to a row of the encoder's output
constexpr float kLeastStep = 0.05f;    // of temperatures, so that they are few

}  // namespace

Transcriber::Transcriber(Session* session, const TranscriberPlan& plan, Span<std::byte> block,
                         Span<std::byte> pages)
    : session_(*session),
      model_(session->model()),
      plan_(plan),
      block_(block),
      pages_(pages),
      mel_(plan.spec.n_mels) {
  const Span<uint32_t> bits = As<uint32_t>(plan.suppressed);
  std::memset(bits.data(), 0, bits.size() * sizeof(uint32_t));
  for (const int32_t id : model_.sampling.suppress_tokens) bits[id / 32] |= 1u << (id % 32);
  rules_.vocab = model_.spec.vocab;
  rules_.end_id = plan.spec.end_id;
  rules_.no_timestamps_id = plan.spec.no_timestamps_id;
  rules_.latest_first_id = plan.spec.latest_first_id;
  rules_.suppressed = bits;
  rules_.suppressed_at_begin = model_.sampling.begin_suppress_tokens;
}

Transcriber* Transcriber::Create(Session* session, const TranscriberPlan& plan,
                                 Span<std::byte> block, Span<std::byte> pages) {
  return new (block.data()) Transcriber(session, plan, block, pages);
}

void Transcriber::Destroy(Transcriber* transcriber) {
  if (transcriber != nullptr) ReleasePages(transcriber->pages_);
}

Status Transcriber::Enter() {
  if (session_.is_in_callback()) {
    return diag_.Fail(Status::kBadState,
                      "the session is in a call; its callback may only read or cancel");
  }
  diag_.Clear();
  return Status::kOk;
}

Status Transcriber::FromSession(Status status) {
  if (status == Status::kOk) return status;
  const char* const text = session_.diag()->text();
  return diag_.Fail(status, "%s", text[0] != '\0' ? text : StatusName(status));
}

Status Transcriber::Check(const Job& job) {
  const Span<const float> pcm = job.audio.pcm;
  if (pcm.empty()) return diag_.Fail(Status::kBadArgument, "there are no samples");
  const size_t bad = FindBadSample(pcm);
  if (bad < pcm.size()) {
    return diag_.Fail(Status::kBadArgument, "sample %zu of %zu is not a finite number", bad,
                      pcm.size());
  }
  if (job.request.translates && plan_.spec.translate_id == TranscriptionSpec::kNoToken) {
    return diag_.Fail(Status::kUnsupported, "the model does not translate");
  }
  ARN_TRY(CheckDecoding(job.request));
  if (!job.request.has_words) return Status::kOk;
  if (!plan_.options.has_words) {
    return diag_.Fail(Status::kBadState,
                      "words: the transcriber was created without memory for them");
  }
  CrossWeights none(session_, plan_.spec, 0, {});  // tries whether the runs can be observed
  return FromSession(CrossRecording(&session_, &none).Begin());
}

Status Transcriber::CheckDecoding(const TranscribeRequest& request) {
  const TrustRules& trust = request.trust;
  const struct {
    const char* name;
    float value, least, most;
  } ranges[] = {{"temperature", request.temperature, 0.0f, 1.0f},
                {"temperature_step", request.temperature_step, 0.0f, 1.0f},
                {"logprob_threshold", trust.logprob, -FLT_MAX, 0.0f},
                {"entropy_threshold", trust.entropy, 0.0f, FLT_MAX},
                {"no_speech_threshold", trust.no_speech, 0.0f, 1.0f}};
  for (const auto& range : ranges) {
    if (range.value >= range.least && range.value <= range.most) continue;
    return diag_.Fail(Status::kBadArgument, "%s is %g, expected %g to %g", range.name,
                      static_cast<double>(range.value), static_cast<double>(range.least),
                      static_cast<double>(range.most));
  }
  if (request.temperature_step > 0.0f && request.temperature_step < kLeastStep) {
    return diag_.Fail(Status::kBadArgument, "temperature_step is %g, expected 0, or %g to 1",
                      static_cast<double>(request.temperature_step),
                      static_cast<double>(kLeastStep));
  }
  if (trust.no_speech > 0.0f && !trust.need_logprob()) {
    return diag_.Fail(Status::kBadArgument,
                      "no_speech_threshold needs a logprob_threshold: only unlikely windows are "
                      "silence");
  }
  if (trust.no_speech > 0.0f && plan_.spec.takes_samples) {
    return diag_.Fail(Status::kUnsupported, "no_speech_threshold: the model has no such token");
  }
  if ((request.has_previous || !request.prompt_ids.empty()) && plan_.most_previous == 0) {
    return diag_.Fail(Status::kUnsupported,
                      "the model has no token that begins text before a window (prev_sot_token_id, "
                      "or the bundle is older than it), or the context is too short for any");
  }
  for (const int32_t id : request.prompt_ids) {
    if (id >= 0 && static_cast<uint32_t>(id) < model_.spec.vocab) continue;
    return diag_.Fail(Status::kBadArgument, "prompt_ids has %d, the vocabulary %u tokens", id,
                      model_.spec.vocab);
  }
  return Status::kOk;
}

float Transcriber::Largest(const PaddedAudio& audio) {
  float largest = 0.0f;
  const uint64_t window = plan_.spec.window_frames;
  for (uint64_t frame = 0; frame < audio.n_frames(); frame += window) {
    const uint64_t n = Min(window, audio.n_frames() - frame);
    largest = Max(largest, mel_.Energies(audio, frame, n, As<float>(plan_.features).data()));
  }
  return largest;
}

Status Transcriber::Encode(const Job& job, uint64_t frame) {
  const uint32_t window = plan_.spec.window_frames;
  const auto n = static_cast<uint32_t>(Min<uint64_t>(window, job.audio.n_frames() - frame));
  const Span<float> features(As<float>(plan_.features).data(), uint64_t{window} * mel_.n_mels());
  const size_t n_given = size_t{n} * mel_.n_mels();
  if (!job.has_energies) mel_.Energies(job.audio, frame, n, features.data());
  LogMel::ToFeatures(job.largest, features.subspan(0, n_given));
  std::memset(features.data() + n_given, 0, (features.size() - n_given) * sizeof(float));
  return FromSession(session_.EncodeFeatures(features, window, mel_.n_mels()));
}

void Transcriber::Align(const Job& job, uint32_t n, HeardWeights weights) {
  const Span<uint32_t> rows = As<uint32_t>(plan_.token_rows).subspan(0, n);
  // Leaves the zeros behind the audio out.
  const uint64_t n_frames = CeilDiv(job.audio.pcm.size(), uint64_t{kHopSamples}) - job.frame;
  weights.n_rows = static_cast<uint32_t>(Min<uint64_t>(weights.n_rows, n_frames / kFramesPerRow));
  weights.n_tokens = Min(weights.n_tokens, n);
  std::memset(rows.data(), 0, n * sizeof(uint32_t));
  if (weights.n_tokens == 0 || weights.n_rows == 0) return;
  const AlignScratch scratch = {As<float>(plan_.align_floats), As<uint8_t>(plan_.align_steps)};
  AlignTokens(weights, plan_.spec.alignment_median, scratch, rows);
  // The last token of a full context has not run.
  for (uint32_t i = weights.n_tokens; i < n; ++i) rows[i] = rows[i - 1];
}

double Transcriber::SecondsOf(const Job& job, uint32_t frame) {
  constexpr double kFramesPerSecond = static_cast<double>(kSampleRate) / kHopSamples;
  const double length =
      static_cast<double>(job.audio.pcm.size()) / static_cast<double>(kSampleRate);
  return Min(static_cast<double>(job.frame + frame) / kFramesPerSecond, length);
}

void Transcriber::TimeWords(const Job& job, size_t first, Segment* segment) {
  const Span<const uint32_t> rows = As<uint32_t>(plan_.token_rows);
  const Span<Word> words = As<Word>(plan_.words);
  for (size_t i = 0; i < segment->words.size(); ++i) {
    // As transformers has it, a token is heard from the row of the one before it to its own.
    const size_t begin = first + words[i].first_id;
    const uint32_t start = begin == 0 ? 0 : rows[begin - 1];
    words[i].start_s = SecondsOf(job, kFramesPerRow * start);
    words[i].end_s = SecondsOf(job, kFramesPerRow * rows[begin + words[i].n_ids - 1]);
  }
}

Status Transcriber::TextOf(const Job& job, Segment* segment) {
  const Tokenizer* const tokenizer = model_.tokenizer;
  const Span<char> text = As<char>(plan_.text);
  const Span<Word> pieces = As<Word>(plan_.words);
  Tokenizer::DecodeState state;
  size_t used = 0, n_pieces = 0;
  bool fits = true, is_open = false;  // is_open: the last piece ends within a character
  const auto room = [&] { return text.subspan(used, text.size() - used); };
  const auto add = [&](size_t bytes) {
    fits = fits && bytes <= room().size();
    if (fits) used += bytes;
  };
  for (uint32_t i = 0; i < segment->ids.size(); ++i) {
    const int32_t id = segment->ids[i];
    if (rules_.IsTime(id)) continue;
    const size_t before = used;
    if (tokenizer != nullptr) {
      add(tokenizer->DecodeToken(&state, id, /*skip_special=*/true, room()));
      if (used == before && state.pending_size == 0) continue;
    }
    if (!job.request.has_words) continue;
    if (!is_open) {
      pieces[n_pieces] = Word();
      pieces[n_pieces].offset = static_cast<uint32_t>(before);
      pieces[n_pieces++].first_id = i;
    }
    Word& piece = pieces[n_pieces - 1];
    piece.bytes = static_cast<uint32_t>(used) - piece.offset;
    piece.n_ids = i + 1 - piece.first_id;
    is_open = state.pending_size != 0;
  }
  if (tokenizer != nullptr) add(tokenizer->DecodeFinish(&state, room()));
  if (is_open) {
    Word& last = pieces[n_pieces - 1];
    last.bytes = static_cast<uint32_t>(used) - last.offset;
  }
  if (!fits) {
    return diag_.Fail(Status::kInternal, "the text of %zu tokens exceeds %zu bytes",
                      segment->ids.size(), text.size());
  }
  segment->text = {text.data(), used};
  // Without a tokenizer each token is a word.
  if (tokenizer != nullptr) {
    n_pieces = JoinWords(segment->text, job.has_spaces, pieces.subspan(0, n_pieces));
  }
  segment->words = pieces.subspan(0, n_pieces);
  return Status::kOk;
}

Status Transcriber::Emit(Job* job, const SegmentPart& part) {
  Segment segment;
  segment.start_s = SecondsOf(*job, part.start_frame);
  segment.end_s = SecondsOf(*job, part.end_frame);
  segment.ids = job->ids.subspan(part.first, part.n);
  return EmitSegment(job, part.first, &segment);
}

Status Transcriber::EmitSegment(Job* job, size_t first, Segment* segment) {
  ++job->out->n_segments;
  segment->window = job->rating;
  if (job->request.has_previous) job->previous.AddSegment(rules_, segment->ids);
  if (job->request.on_segment == nullptr) return Status::kOk;
  ARN_TRY(TextOf(*job, segment));
  if (job->request.has_words) TimeWords(*job, first, segment);
  const InCallback in_callback = session_.BeginCallback();
  if (job->request.on_segment(job->request.user, *segment) == 0) return Status::kOk;
  return diag_.Fail(Status::kCancelled, "ended by the callback after %u segments",
                    job->out->n_segments);
}

Status Transcriber::ReportProgress(const Job& job, uint64_t done) {
  if (job.request.on_progress == nullptr) return Status::kOk;
  const uint64_t total = job.audio.pcm.size();
  const InCallback in_callback = session_.BeginCallback();
  if (job.request.on_progress(job.request.user, Min(done, total), total) == 0) return Status::kOk;
  return diag_.Fail(Status::kCancelled, "ended by the callback after %llu of %llu samples",
                    static_cast<unsigned long long>(Min(done, total)),
                    static_cast<unsigned long long>(total));
}

Status Transcriber::RunWindows(Job* job) {
  const uint64_t size = job->audio.pcm.size();
  struct Sink {
    Transcriber* transcriber;
    Job* job;
  } sink = {this, job};
  const SegmentSink to = {[](void* user, const SegmentPart& part) {
                            const Sink& into = *static_cast<const Sink*>(user);
                            return into.transcriber->Emit(into.job, part);
                          },
                          &sink};
  while (job->frame < job->audio.n_frames() && job->frame * kHopSamples < size) {
    ARN_TRY(ReportProgress(*job, job->frame * kHopSamples));
    ARN_TRY(Encode(*job, job->frame));
    if (job->n_task == 0) ARN_TRY(FindTask(job));
    ARN_TRY(Decode(job));
    job->has_energies = false;
    ++job->out->n_windows;
    job->out->n_tokens += job->ids.size();
    const auto n_frames = static_cast<uint32_t>(
        Min<uint64_t>(plan_.spec.window_frames, job->audio.n_frames() - job->frame));
    uint32_t advance = 0;
    ARN_TRY(CutSegments(rules_, job->ids, n_frames, to, &advance));
    job->frame += advance;
  }
  return ReportProgress(*job, size);
}

Status Transcriber::EncodeSamples(Span<const float> pcm) {
  const Span<float> padded = As<float>(plan_.features);
  if (pcm.size() < padded.size()) {
    std::memcpy(padded.data(), pcm.data(), pcm.size() * sizeof(float));
    std::memset(padded.data() + pcm.size(), 0, (padded.size() - pcm.size()) * sizeof(float));
    pcm = padded;
  }
  return FromSession(session_.EncodeFeatures(pcm, static_cast<uint32_t>(pcm.size()), 1));
}

Status Transcriber::RunSampleWindows(Job* job) {
  const Span<const float> pcm = job->audio.pcm;
  for (size_t begin = 0, end = 0; begin < pcm.size(); begin = end) {
    ARN_TRY(ReportProgress(*job, begin));
    end = EndOfWindow(pcm, begin, plan_.spec.window_samples);
    ARN_TRY(EncodeSamples(pcm.subspan(begin, end - begin)));
    if (job->n_task == 0) ARN_TRY(FindTask(job));
    ARN_TRY(Decode(job));
    ++job->out->n_windows;
    job->out->n_tokens += job->ids.size();
    Segment segment;
    segment.start_s = static_cast<double>(begin) / kSampleRate;
    segment.end_s = static_cast<double>(end) / kSampleRate;
    segment.ids = job->ids;
    ARN_TRY(EmitSegment(job, 0, &segment));
  }
  return ReportProgress(*job, pcm.size());
}

Status Transcriber::Run(Span<const float> pcm, const TranscribeRequest& request,
                        TranscribeResult* out) {
  *out = TranscribeResult();
  Job job{{pcm, Max<uint64_t>(pcm.size(), plan_.spec.window_samples)},
          request,
          out,
          PreviousText(As<int32_t>(plan_.previous)),
          Random(request.seed)};
  ARN_TRY(Check(job));
  if (request.has_previous) job.previous.Add(request.prompt_ids);
  // Before the work.
  SpeechLanguage given;
  if (request.language.size != 0) ARN_TRY(FindLanguage(request.language, &given));
  const uint32_t selected_before = session_.sequences().selected();
  ARN_TRY(FromSession(session_.Select(plan_.options.sequence)));
  rules_.has_timestamps = request.has_timestamps && !plan_.spec.takes_samples;
  if (!plan_.spec.takes_samples) {
    job.largest = Largest(job.audio);
    job.has_energies = job.audio.n_frames() <= plan_.spec.window_frames;
  }
  const Status status = plan_.spec.takes_samples ? RunSampleWindows(&job) : RunWindows(&job);
  (void)session_.Select(selected_before);
  return status;
}

}  // namespace arn

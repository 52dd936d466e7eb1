#include "runtime/transcription/transcriber.h"

#include <cmath>
#include <cstring>
#include <new>

#include "platform/base/arith.h"
#include "platform/os/pages.h"
#include "runtime/transcription/cross_weights.h"
#include "runtime/transcription/sample_windows.h"

namespace arn {
namespace {

constexpr uint32_t kFramesPerRow = 2;  // of features, to a row of the encoder's output

// Calls `recorder` in the session's runs, for its lifetime. Null: does nothing.
class Recording {
 public:
  Recording(Session* session, CrossWeights* recorder) : session_(*session), recorder_(recorder) {}
  ~Recording() {
    if (recorder_ != nullptr) (void)session_.ObserveAttention(nullptr, nullptr);
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  Status Begin() {
    if (recorder_ == nullptr) return Status::kOk;
    return session_.ObserveAttention(CrossWeights::Before, recorder_);
  }

 private:
  Session& session_;
  CrossWeights* const recorder_;
};

}  // namespace

struct Transcriber::Job {
  PaddedAudio audio;
  const TranscribeRequest& request;
  TranscribeResult* out;
  bool has_energies = false;  // of the first window, which is the only one
  float largest = 0.0f;
  int32_t prompt[kMaxPrompt] = {};
  uint32_t n_prompt = 0;
  uint64_t frame = 0;            // where the window begins
  bool has_spaces = true;        // between words
  Span<const int32_t> ids = {};  // of the window
};

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
  if (!job.request.has_words) return Status::kOk;
  if (!plan_.options.has_words) {
    return diag_.Fail(Status::kBadState,
                      "words: the transcriber was created without memory for them");
  }
  CrossWeights none(session_, plan_.spec, 0, {});  // tries whether the runs can be observed
  return FromSession(Recording(&session_, &none).Begin());
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

Status Transcriber::MakePrompt(Job* job) {
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
  const int32_t ids[kMaxPrompt] = {
      spec.start_id, language.id, job->request.translates ? spec.translate_id : spec.transcribe_id,
      rules_.has_timestamps || spec.takes_samples ? TranscriptionSpec::kNoToken
                                                  : spec.no_timestamps_id};
  for (const int32_t id : ids) {
    if (id != TranscriptionSpec::kNoToken) job->prompt[job->n_prompt++] = id;
  }
  return Status::kOk;
}

Status Transcriber::Generate(const Job& job, Span<const int32_t>* out_ids) {
  ARN_TRY(FromSession(session_.Prefill(Span<const int32_t>(job.prompt, job.n_prompt))));
  const Span<int32_t> ids = As<int32_t>(plan_.ids);
  const uint32_t most = plan_.context_tokens - job.n_prompt;
  HeardWeights weights;
  weights.data = As<float>(plan_.weights).data();
  weights.n_heads = plan_.spec.n_alignment_heads;
  weights.most_tokens = most;
  weights.stride = model_.spec.encoder.max_rows;
  CrossWeights heard(session_, plan_.spec, job.n_prompt, weights);
  Recording recording(&session_, job.request.has_words ? &heard : nullptr);
  ARN_TRY(FromSession(recording.Begin()));
  const uint32_t sequence = plan_.options.sequence;
  uint32_t n = 0;
  for (;;) {
    const float* logits = nullptr;
    ARN_TRY(FromSession(session_.Logits(&logits)));
    const int32_t id = ChooseToken(rules_, ids.subspan(0, n), logits);
    bool ends = false;
    for (const uint32_t end : model_.eos_ids) ends = ends || static_cast<uint32_t>(id) == end;
    if (ends) break;
    ids[n++] = id;
    if (n == most) break;
    ARN_TRY(FromSession(
        session_.StepBatch(Span<const uint32_t>(&sequence, 1), Span<const int32_t>(&id, 1))));
  }
  *out_ids = {ids.data(), n};
  if (job.request.has_words) Align(job, n, heard.weights());
  return Status::kOk;
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
    if (job->n_prompt == 0) ARN_TRY(MakePrompt(job));
    ARN_TRY(Generate(*job, &job->ids));
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
    if (job->n_prompt == 0) ARN_TRY(MakePrompt(job));
    ARN_TRY(Generate(*job, &job->ids));
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
  Job job{{pcm, Max<uint64_t>(pcm.size(), plan_.spec.window_samples)}, request, out};
  ARN_TRY(Check(job));
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

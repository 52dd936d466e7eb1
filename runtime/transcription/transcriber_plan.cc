#include "runtime/transcription/transcriber_plan.h"

#include "platform/base/arith.h"
#include "runtime/transcription/align_tokens.h"
#include "runtime/transcription/transcriber.h"

namespace arn {
namespace {

// The task and a token.
constexpr uint32_t kLeastContext = TranscriberPlan::kTaskTokens + 1;

// As transformers has it (_prepare_decoder_input_ids), half of the context but one.
uint32_t MostPrevious(const TranscriptionSpec& spec, uint32_t context_tokens) {
  if (spec.previous_id == TranscriptionSpec::kNoToken) return 0;
  const uint32_t half = context_tokens / 2;
  // Its first token and those of the task must leave room for one more.
  const uint32_t room = context_tokens - kLeastContext;
  return half == 0 || room == 0 ? 0 : Min(half - 1, room - 1);
}

}  // namespace

Status PlanTranscriber(const Model& model, const SessionOptions& session,
                       const TranscriberOptions& options, TranscriberPlan* out, Diag* diag) {
  *out = TranscriberPlan();
  out->options = options;
  ARN_TRY(ReadTranscription(model, &out->spec, diag));
  const TranscriptionSpec& spec = out->spec;
  if (options.sequence >= session.max_sequences) {
    return diag->Fail(Status::kBadArgument, "sequence is %u, the session has %u", options.sequence,
                      session.max_sequences);
  }
  const uint32_t window_rows = model.spec.encoder.max_rows;
  if (session.encoder_rows < window_rows) {
    return diag->Fail(Status::kBadArgument,
                      "the session has encoder_rows %u, a window of audio takes %u",
                      session.encoder_rows, window_rows);
  }
  if (session.context_tokens < kLeastContext) {
    return diag->Fail(Status::kBadArgument, "the session has context_tokens %u, expected %u",
                      session.context_tokens, kLeastContext);
  }
  if (options.has_words && spec.n_alignment_heads == 0) {
    return diag->Fail(Status::kUnsupported,
                      "words: the checkpoint does not say which heads tell when a word was heard "
                      "(alignment_heads of its generation_config.json)");
  }
  out->context_tokens = session.context_tokens;
  out->most_previous = MostPrevious(spec, session.context_tokens);
  const uint64_t tokens = session.context_tokens;
  const uint64_t piece_bytes = model.tokenizer == nullptr ? 0 : model.tokenizer->max_piece_bytes();
  const uint64_t n_features =
      spec.takes_samples ? spec.least_samples : uint64_t{spec.window_frames} * spec.n_mels;
  const uint64_t word_tokens = options.has_words ? tokens : 0;
  Layout layout;
  const struct {
    Slice* slice;
    uint64_t bytes;
  } parts[] = {
      {&out->object, sizeof(Transcriber)},
      {&out->features, n_features * sizeof(float)},
      {&out->suppressed, (uint64_t{model.spec.vocab} + 31) / 32 * sizeof(uint32_t)},
      {&out->ids, tokens * sizeof(int32_t)},
      {&out->prompt,
       (uint64_t{out->most_previous} + 1 + TranscriberPlan::kTaskTokens) * sizeof(int32_t)},
      {&out->previous, uint64_t{out->most_previous} * sizeof(int32_t)},
      // One more for what an unfinished character becomes at the end.
      {&out->text, (tokens + 1) * piece_bytes},
      {&out->weights, word_tokens * spec.n_alignment_heads * window_rows * sizeof(float)},
      {&out->align_floats,
       options.has_words ? AlignScratch::Floats(session.context_tokens, window_rows) * sizeof(float)
                         : 0},
      {&out->align_steps, word_tokens * window_rows},
      {&out->token_rows, word_tokens * sizeof(uint32_t)},
      {&out->words, word_tokens * sizeof(Word)},
  };
  bool fits = true;
  for (const auto& part : parts) {
    Result<Slice> slice = layout.Add(Region::kIo, part.bytes);
    fits = fits && slice.ok();
    if (slice.ok()) *part.slice = slice.value();
  }
  out->total_bytes = layout.RegionBytes(Region::kIo);
  if (fits && out->total_bytes <= SIZE_MAX) return Status::kOk;
  return diag->Fail(Status::kOutOfMemory, "a transcriber of %u tokens and %u frames is too large",
                    session.context_tokens, spec.window_frames);
}

}  // namespace arn

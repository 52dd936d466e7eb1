#include "runtime/transcription/transcription_spec.h"

#include "runtime/audio/log_mel.h"
#include "runtime/transcription/align_tokens.h"

namespace arn {
namespace {

const char* NameOf(const fbs::SpeechLanguage& language) {
  return reinterpret_cast<const char*>(language.name()->data());
}

Status CheckToken(const char* field, int64_t id, uint32_t vocab, Diag* diag) {
  if (id >= 0 && id < int64_t{vocab}) return Status::kOk;
  return diag->Fail(Status::kBadBundle, "transcription.%s: %lld is not below the vocabulary %u",
                    field, static_cast<long long>(id), vocab);
}

// Fills the spec of a model that takes samples.
Status ReadSampleTranscription(const Model& model, TranscriptionSpec* out, Diag* diag) {
  const EncoderSpec& encoder = model.spec.encoder;
  const FrameRule& rule = encoder.frames;
  if (rule.optional + 1 != rule.per_row || encoder.feature_width != 1) {
    return diag->Fail(Status::kUnsupported,
                      "the encoder takes samples by %u, audio may have any number",
                      rule.per_row * encoder.feature_width);
  }
  out->takes_samples = true;
  out->no_timestamps_id = static_cast<int32_t>(model.spec.vocab);
  out->window_frames = out->window_samples = static_cast<uint32_t>(rule.most(encoder.max_rows));
  out->least_samples = static_cast<uint32_t>(rule.most(1)) - rule.optional;
  out->n_mels = encoder.feature_width;
  return Status::kOk;
}

// Returns the layer's heads of cross-attention.
uint32_t CrossHeads(const Model& model, uint32_t index) {
  const LayerSpec& layer = model.spec.layers[index];
  return layer.cross_q == kNoWeight ? 0 : model.spec.kinds[layer.kind].n_heads;
}

Status ReadAlignment(const Model& model, TranscriptionSpec* out, Diag* diag) {
  const fbs::Generation& generation = *model.bundle.index->generation();
  const auto* heads = generation.alignment_heads();
  if (heads == nullptr) return Status::kOk;
  out->alignment_median = generation.alignment_median();
  if (out->alignment_median % 2 == 0 || out->alignment_median > kMaxMedian) {
    return diag->Fail(Status::kBadBundle, "alignment_median is %u, expected an odd number up to %u",
                      out->alignment_median, kMaxMedian);
  }
  const auto n_layers = static_cast<uint32_t>(model.spec.layers.size());
  for (const fbs::AlignmentHead* head : *heads) {
    const bool is_layer = head->layer() < n_layers;
    const uint32_t n_heads = is_layer ? CrossHeads(model, head->layer()) : 0;
    if (head->head() < n_heads) continue;
    return diag->Fail(Status::kBadBundle,
                      "alignment_heads: layer %u has %u heads of cross-attention, not head %u",
                      head->layer(), n_heads, head->head());
  }
  out->n_alignment_heads = heads->size();
  return Status::kOk;
}

// Fills the spec of a model that takes log-mel features.
Status ReadMelTranscription(const Model& model, const fbs::Transcription& table,
                            TranscriptionSpec* out, Diag* diag) {
  const EncoderSpec& encoder = model.spec.encoder;
  if (encoder.feature_width > kMaxMels) {
    return diag->Fail(Status::kUnsupported, "the encoder takes %u mel bands, at most %u are made",
                      encoder.feature_width, kMaxMels);
  }
  const uint32_t vocab = model.spec.vocab;
  // Times follow.
  ARN_TRY(CheckToken("no_timestamps_id", int64_t{table.no_timestamps_id()} + 1, vocab, diag));
  out->no_timestamps_id = static_cast<int32_t>(table.no_timestamps_id());
  out->transcribe_id = table.transcribe_id();
  out->translate_id = table.translate_id();
  out->previous_id = model.bundle.index->generation()->previous_id();
  const struct {
    const char* name;
    int32_t id;
  } optional[] = {{"transcribe_id", out->transcribe_id},
                  {"translate_id", out->translate_id},
                  {"previous_id", out->previous_id}};
  for (const auto& [name, id] : optional) {
    if (id != TranscriptionSpec::kNoToken) ARN_TRY(CheckToken(name, id, vocab, diag));
  }
  if (table.max_initial_timestamp() >= 0) {
    out->latest_first_id = static_cast<uint32_t>(out->first_time_id()) +
                           static_cast<uint32_t>(table.max_initial_timestamp());
  }
  if (const auto* languages = model.bundle.index->generation()->languages()) {
    for (const fbs::SpeechLanguage* language : *languages) {
      const size_t room = language->name()->size();
      if (NameOf(*language)[0] == '\0' || NameOf(*language)[room - 1] != '\0') {
        return diag->Fail(Status::kBadBundle, "transcription: language %u has no name of 1 to %zu",
                          language->id(), room - 1);
      }
      ARN_TRY(CheckToken("languages", language->id(), vocab, diag));
    }
    out->n_languages = languages->size();
  }
  ARN_TRY(ReadAlignment(model, out, diag));
  out->window_frames = static_cast<uint32_t>(encoder.frames.most(encoder.max_rows));
  out->window_samples = out->window_frames * kHopSamples;
  out->n_mels = encoder.feature_width;
  if (uint64_t{out->window_frames} * kHopSamples < PaddedAudio::kLeastSamples) {
    return diag->Fail(Status::kUnsupported, "the encoder's window of %u frames is too short",
                      out->window_frames);
  }
  return Status::kOk;
}

}  // namespace

Status ReadTranscription(const Model& model, TranscriptionSpec* out, Diag* diag) {
  *out = TranscriptionSpec();
  const fbs::Generation* generation = model.bundle.index->generation();
  const fbs::Transcription* table = generation == nullptr ? nullptr : generation->transcription();
  const EncoderSpec& encoder = model.spec.encoder;
  const bool is_known = table != nullptr || encoder.takes_samples;
  if (!is_known || !model.has_weights || encoder.feature_width == 0) {
    return diag->Fail(Status::kUnsupported,
                      "the model does not write speech down: its checkpoint has no audio encoder, "
                      "or its generation_config.json no no_timestamps_token_id");
  }
  if (model.start_ids.size() != 1 || model.eos_ids.empty()) {
    return diag->Fail(Status::kBadBundle,
                      "transcription: %zu start tokens and %zu end tokens, expected one of each",
                      model.start_ids.size(), model.eos_ids.size());
  }
  out->start_id = static_cast<int32_t>(model.start_ids[0]);
  out->end_id = static_cast<int32_t>(model.eos_ids[0]);
  return encoder.takes_samples ? ReadSampleTranscription(model, out, diag)
                               : ReadMelTranscription(model, *table, out, diag);
}

SpeechLanguage LanguageAt(const Model& model, uint32_t index) {
  const fbs::SpeechLanguage* language = model.bundle.index->generation()->languages()->Get(index);
  return {NameOf(*language), static_cast<int32_t>(language->id())};
}

AlignmentHead AlignmentHeadAt(const Model& model, uint32_t index) {
  const fbs::AlignmentHead* head = model.bundle.index->generation()->alignment_heads()->Get(index);
  return {head->layer(), head->head()};
}

}  // namespace arn

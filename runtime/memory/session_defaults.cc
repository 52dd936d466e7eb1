#include "runtime/memory/session_defaults.h"

#include "platform/base/arith.h"
#include "runtime/memory/devices.h"
#include "runtime/speculate/availability.h"

namespace arn {

bool QuantisesPages(const SessionOptions& options) {
  return IsQuantised(options.k_type) || IsQuantised(options.v_type);
}

bool Has(Speculation all, Speculation one) {
  return (static_cast<uint32_t>(all) & static_cast<uint32_t>(one)) != 0;
}

namespace {

Status ApplyQuantisingDefaults(SessionOptions* options, Diag* diag) {
  const bool quantises_pages = QuantisesPages(*options);
  if (!quantises_pages && (options->kv_residual != 0 || options->kv_group_size != 0)) {
    return diag->Fail(Status::kBadArgument,
                      "kv_residual %u and kv_group_size %u need int4 or int2 KV",
                      options->kv_residual, options->kv_group_size);
  }
  if (options->kv_residual == 0) options->kv_residual = kDefaultKvResidual;
  if (options->kv_group_size == 0) {
    options->kv_group_size = Min(TraitsOf(options->k_type).page_tokens, options->kv_page_tokens);
  }
  if (options->kv_page_tokens % options->kv_group_size != 0) {
    return diag->Fail(Status::kBadArgument, "kv_group_size is %u, expected a divisor of %u tokens",
                      options->kv_group_size, options->kv_page_tokens);
  }
  return Status::kOk;
}

Status ApplySequenceDefaults(SessionOptions* options, Diag* diag) {
  if (options->max_sequences == 0) options->max_sequences = 1;
  if (options->max_sequences > kMaxSequences) {
    return diag->Fail(Status::kBadArgument, "max_sequences is %u, expected at most %u",
                      options->max_sequences, kMaxSequences);
  }
  const uint64_t all = uint64_t{options->max_sequences} * options->context_tokens;
  if (all > UINT32_MAX) {
    return diag->Fail(Status::kBadArgument, "%u sequences of %u tokens are too many",
                      options->max_sequences, options->context_tokens);
  }
  if (options->kv_tokens == 0) options->kv_tokens = static_cast<uint32_t>(all);
  if (options->kv_tokens < options->context_tokens || options->kv_tokens > all) {
    return diag->Fail(Status::kBadArgument,
                      "kv_tokens is %u, expected %u (one sequence) to %u (all of them)",
                      options->kv_tokens, options->context_tokens, static_cast<uint32_t>(all));
  }
  if (options->overflow != Overflow::kShift && options->pinned_tokens != 0) {
    return diag->Fail(Status::kBadArgument, "pinned_tokens is %u, but overflow is not shift",
                      options->pinned_tokens);
  }
  return Status::kOk;
}

// Rows that run again beside later ones see the quantised pages that those see, not the ones they
// saw at first.
Status CheckStatesBesideQuantisedPages(const ModelSpec& spec, const SessionOptions& options,
                                       Diag* diag) {
  for (uint32_t g = 0; g < spec.n_groups; ++g) {
    if (spec.groups[g].state_floats == 0 || !QuantisesPages(options)) continue;
    return diag->Fail(Status::kUnsupported,
                      "speculation: not with int4 or int2 KV beside layers with a recurrent state");
  }
  return Status::kOk;
}

// True if the head can read what the model's own run leaves in the host's memory. Adapters' runs
// leave nothing, and their rows are not those that the head was trained with.
bool CanUseMtp(const Model& model, const Backend& backend, const SessionOptions& options) {
  return model.mtp != nullptr && backend.host_kv != nullptr && backend.device == nullptr &&
         backend.takes_features && options.adapters.empty() &&
         !(options.kv_in_file && model.mtp->spec.lender != nullptr);
}

Status CheckMtp(const Model& model, const Backend& backend, const SessionOptions& options,
                Diag* diag) {
  if (model.mtp == nullptr) {
    return diag->Fail(Status::kUnsupported,
                      "speculation is 4: the bundle has no multi-token prediction head "
                      "(arenite-convert keeps it for some families, and --assistant adds one)");
  }
  if (CanUseMtp(model, backend, options)) return Status::kOk;
  if (!options.adapters.empty()) {
    return diag->Fail(Status::kUnsupported,
                      "speculation is 4: the multi-token prediction head does not know the "
                      "session's adapters");
  }
  if (options.kv_in_file && model.mtp->spec.lender != nullptr) {
    return diag->Fail(Status::kUnsupported,
                      "speculation is 4: the assistant reads the model's KV pages, which are in "
                      "kv_file");
  }
  return diag->Fail(Status::kUnsupported,
                    "speculation is 4: the multi-token prediction head reads rows in the "
                    "host's memory, not those of the %s backend",
                    backend.name);
}

Status ApplySpeculationDefaults(const Model& model, const Backend& backend, SessionOptions* options,
                                Diag* diag) {
  if (options->draft != nullptr && !Has(options->speculation, Speculation::kDraft)) {
    return diag->Fail(Status::kBadArgument, "a draft model is given, but speculation is %u",
                      static_cast<uint32_t>(options->speculation));
  }
  if (options->draft == nullptr && options->speculation == Speculation::kDraft) {
    return diag->Fail(Status::kBadArgument, "speculation is 2, but draft is NULL");
  }
  if (options->speculation == Speculation::kNone) {
    if (options->max_guesses == 0) return Status::kOk;
    return diag->Fail(Status::kBadArgument, "max_guesses is %u, but speculation is 0",
                      options->max_guesses);
  }
  if (!kHasSpeculation) return diag->Fail(Status::kUnsupported, "%s", kNoSpeculation);
  if (options->max_guesses > kMaxGuesses) {
    return diag->Fail(Status::kBadArgument, "max_guesses is %u, expected at most %u",
                      options->max_guesses, kMaxGuesses);
  }
  if (options->no_cache) {
    return diag->Fail(Status::kUnsupported, "speculation: no_cache is 1, every run takes all rows");
  }
  if (backend.host_kv == nullptr && options->fallback == nullptr) {
    return diag->Fail(Status::kUnsupported,
                      "speculation: the %s backend does not verify guesses, only CPUs do",
                      backend.name);
  }
  ARN_TRY(CheckStatesBesideQuantisedPages(model.spec, *options, diag));
  if (options->speculation == Speculation::kMtp) ARN_TRY(CheckMtp(model, backend, *options, diag));
  const bool takes_mtp = options->speculation == Speculation::kAuto && options->draft == nullptr;
  if (takes_mtp && CanUseMtp(model, backend, *options)) {
    options->speculation = static_cast<Speculation>(static_cast<uint32_t>(Speculation::kNgram) |
                                                    static_cast<uint32_t>(Speculation::kMtp));
  }
  if (options->max_guesses == 0) options->max_guesses = kDefaultGuesses;
  options->max_guesses = Min(options->max_guesses, options->prefill_chunk - 1);
  return Status::kOk;
}

Status ApplySnapshotDefaults(const ModelSpec& spec, SessionOptions* options, Diag* diag) {
  if (options->state_snapshots > kMaxStateSnapshots) {
    return diag->Fail(Status::kBadArgument, "state_snapshots is %u, expected at most %u",
                      options->state_snapshots, kMaxStateSnapshots);
  }
  if (options->state_snapshots == 0 && options->snapshot_every != 0) {
    return diag->Fail(Status::kBadArgument, "snapshot_every is %u, but state_snapshots is 0",
                      options->snapshot_every);
  }
  bool has_state = false;
  for (uint32_t g = 0; g < spec.n_groups; ++g) has_state |= spec.groups[g].state_floats != 0;
  if (!has_state || options->no_cache) options->state_snapshots = options->snapshot_every = 0;
  const bool is_default = options->state_snapshots != 0 && options->snapshot_every == 0;
  if (is_default) options->snapshot_every = options->prefill_chunk;
  return Status::kOk;
}

Status ApplyEncoderDefaults(const EncoderSpec& encoder, SessionOptions* options, Diag* diag) {
  if (options->encoder_rows > encoder.max_rows) {
    return diag->Fail(Status::kBadArgument,
                      "encoder_rows is %u, the model's encoder takes at most %u",
                      options->encoder_rows, encoder.max_rows);
  }
  if (options->encoder_rows == 0) {
    const bool is_fixed = encoder.positions != kNoWeight || encoder.feature_width != 0;
    options->encoder_rows =
        is_fixed ? encoder.max_rows : Min(encoder.max_rows, kDefaultEncoderTokens);
  }
  if (!encoder.exists() || !options->has_encoder_type) return Status::kOk;
  if (IsQuantised(options->encoder_type)) {
    return diag->Fail(Status::kUnsupported, "encoder_kv_type is %s, expected f32, f16 or int8",
                      TraitsOf(options->encoder_type).name);
  }
  return Status::kOk;
}

}  // namespace

Status ApplyDefaults(const Model& model, const Backend& backend, uint32_t default_chunk,
                     SessionOptions* options, Diag* diag) {
  uint32_t model_context = 0;
  ARN_TRY(CheckRopeScaling(model.spec, options->rope_scaling, &model_context, diag));
  if (options->context_tokens == 0) {
    options->context_tokens = Min(model_context, kDefaultContextTokens);
  }
  if (options->prefill_chunk == 0) {
    options->prefill_chunk = default_chunk;
    // An image that is seen both ways runs in one chunk.
    const VisionSpec& vision = model.spec.vision;
    if (vision.sees_both_ways && options->embedding_rows != 0) {
      options->prefill_chunk =
          Max(options->prefill_chunk, vision.max_patches / vision.merged_patches());
    }
  }
  // The checkpoint's own sampling must fit.
  if (model.sampling.Processor() != nullptr) options->logits_processors = true;
  options->sampling_words = Max(options->sampling_words, CountListWords(model.sampling));
  if (options->sampling_words > kMaxSamplingWords) {
    return diag->Fail(Status::kBadArgument, "sampling_words is %u, expected at most %u",
                      options->sampling_words, kMaxSamplingWords);
  }
  if (options->kv_page_tokens == 0) options->kv_page_tokens = TraitsOf(options->k_type).page_tokens;
  if (options->context_tokens > model_context) {
    return diag->Fail(Status::kBadArgument, "context_tokens is %u, the model was made for %u",
                      options->context_tokens, model_context);
  }
  if (options->prefill_chunk > kMaxPrefillChunk) {
    return diag->Fail(Status::kBadArgument, "prefill_chunk is %u, expected at most %u",
                      options->prefill_chunk, kMaxPrefillChunk);
  }
  if (options->n_threads > kMaxThreads) {
    return diag->Fail(Status::kBadArgument, "n_threads is %u, expected at most %u",
                      options->n_threads, kMaxThreads);
  }
  if (options->n_prefill_threads > kMaxThreads) {
    return diag->Fail(Status::kBadArgument, "n_prefill_threads is %u, expected at most %u",
                      options->n_prefill_threads, kMaxThreads);
  }
  if (!IsPowerOfTwo(options->kv_page_tokens) || options->kv_page_tokens < kMinKvPageTokens ||
      options->kv_page_tokens > kMaxKvPageTokens) {
    return diag->Fail(Status::kBadArgument,
                      "kv_page_tokens is %u, expected a power of two in %u..%u",
                      options->kv_page_tokens, kMinKvPageTokens, kMaxKvPageTokens);
  }
  ARN_TRY(ApplyEncoderDefaults(model.spec.encoder, options, diag));
  ARN_TRY(ApplyQuantisingDefaults(options, diag));
  // A chunk longer than the context would only waste activations.
  options->prefill_chunk = Min(options->prefill_chunk, options->context_tokens);
  ARN_TRY(ApplySnapshotDefaults(model.spec, options, diag));
  ARN_TRY(ApplySpeculationDefaults(model, backend, options, diag));
  return ApplySequenceDefaults(options, diag);
}

}  // namespace arn

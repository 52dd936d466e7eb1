#include "runtime/memory/session_plan.h"

#include "platform/base/arith.h"
#include "runtime/constrain/availability.h"
#include "runtime/constrain/token_constraint.h"
#include "runtime/memory/activation_plan.h"
#include "runtime/memory/devices.h"
#include "runtime/memory/placement.h"
#include "runtime/model/image_place.h"
#include "runtime/scheduler/availability.h"
#include "runtime/speculate/availability.h"

namespace arn {
namespace {

// Order of the regions in a session's block. KV is last, because it is committed as it is used.
constexpr Region kBlockOrder[] = {Region::kConstants, Region::kIo, Region::kActivations,
                                  Region::kKv};

bool QuantisesPages(const SessionOptions& options) {
  return IsQuantised(options.k_type) || IsQuantised(options.v_type);
}

Status ApplyQuantisingDefaults(SessionOptions* options, Diag* diag) {
  const bool quantises_pages = QuantisesPages(*options);
  if (!quantises_pages && (options->kv_residual != 0 || options->kv_group_size != 0)) {
    return diag->Fail(Status::kBadArgument,
                      "kv_residual %u and kv_group_size %u need int4 or int2 KV",
                      options->kv_residual, options->kv_group_size);
  }
  if (options->kv_residual == 0) options->kv_residual = kDefaultKvResidual;
  if (options->kv_group_size == 0) {
    options->kv_group_size = Min(kDefaultKvGroupSize, options->kv_page_tokens);
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

// At least one unit of the cache must be left to drop besides the pinned tokens.
Status CheckShift(const KvCachePlan& cache, const SessionOptions& options, Diag* diag) {
  if (options.overflow != Overflow::kShift) return Status::kOk;
  for (uint32_t g = 0; g < cache.n_groups; ++g) {
    if (!cache.groups[g].is_state) continue;
    return diag->Fail(Status::kUnsupported,
                      "overflow shift: the model has layers with a recurrent state, from which no "
                      "token can be dropped");
  }
  const uint64_t unit = ShiftTokens({cache.groups, cache.n_groups});
  const uint64_t pinned = CeilDiv(options.pinned_tokens, unit) * unit;
  if (pinned + 2 * unit > options.context_tokens) {
    return diag->Fail(Status::kBadArgument,
                      "a context shift drops %u tokens at a time: pinned_tokens %u leave too few "
                      "of a context of %u",
                      static_cast<uint32_t>(unit), options.pinned_tokens, options.context_tokens);
  }
  return Status::kOk;
}

bool Has(Speculation all, Speculation one) {
  return (static_cast<uint32_t>(all) & static_cast<uint32_t>(one)) != 0;
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
         backend.takes_features && options.adapters.empty();
}

Status CheckMtp(const Model& model, const Backend& backend, const SessionOptions& options,
                Diag* diag) {
  if (model.mtp == nullptr) {
    return diag->Fail(Status::kUnsupported,
                      "speculation is 4: the bundle has no multi-token prediction head "
                      "(arenite-convert keeps it for some families)");
  }
  if (CanUseMtp(model, backend, options)) return Status::kOk;
  if (!options.adapters.empty()) {
    return diag->Fail(Status::kUnsupported,
                      "speculation is 4: the multi-token prediction head does not know the "
                      "session's adapters");
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
  if (options->kv_page_tokens == 0) options->kv_page_tokens = kDefaultKvPageTokens;
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

// Derives the paging of one group from the options.
CacheGroup PlanGroup(const KvGroupSpec& group, const SessionOptions& options, uint32_t max_rows) {
  CacheGroup out;
  out.page_tokens = options.kv_page_tokens;
  if (!options.keeps_unseen) {
    out.window = group.window;
    out.chunk = group.chunk;
  }
  out.table_pages = TablePages(out, options.context_tokens, max_rows);
  if (QuantisesPages(options) && !group.keys_only) out.residual = options.kv_residual;
  PlanPools(&out, options.context_tokens, max_rows, options.max_sequences);
  if (options.kv_tokens < uint64_t{options.max_sequences} * options.context_tokens) {
    const auto most =
        static_cast<uint32_t>(CeilDiv(options.kv_tokens, uint64_t{options.kv_page_tokens}));
    out.n_pages = Min(out.n_pages, most);
    out.n_quantised_pages = Min(out.n_quantised_pages, most);
  }
  return out;
}

// True if the group's pool lies in the KV file.
bool IsInFile(const SessionOptions& options, const CacheGroup& group) {
  return kHasKvFiles && options.kv_in_file && group.window == 0 && group.chunk == 0 &&
         !group.is_state && !group.is_encoder;
}

KvOptions PageOptions(const SessionOptions& options, const CacheGroup& group) {
  KvOptions kv;
  kv.k_type = TraitsOf(options.k_type).active;
  kv.v_type = TraitsOf(options.v_type).active;
  kv.k_bits = TraitsOf(options.k_type).quantised_bits;
  kv.v_bits = TraitsOf(options.v_type).quantised_bits;
  kv.group_size = options.kv_group_size;
  kv.k_by_token = options.k_by_token;
  kv.v_by_channel = options.v_by_channel;
  kv.page_tokens = options.kv_page_tokens;
  kv.n_pages = group.n_pages;
  kv.n_quantised_pages = group.n_quantised_pages;
  kv.by_layer = IsInFile(options, group);
  return kv;
}

// Returns the maximum rows of a run: a chunk, one token per sequence, or all tokens of one
// sequence.
uint32_t MaxRows(const SessionOptions& options) {
  if (options.no_cache) return options.context_tokens;
  return Max(options.prefill_chunk, options.max_sequences);
}

Status PlanAdapters(const Model& model, SessionPlan* plan, Layout* layout, Diag* diag) {
  const Span<const AdapterBundle* const> adapters = plan->options.adapters;
  if (adapters.empty()) return Status::kOk;
  if (adapters.size() > kMaxAdapters) {
    return diag->Fail(Status::kBadArgument, "n_adapters is %zu, expected at most %u",
                      adapters.size(), kMaxAdapters);
  }
  for (size_t i = 0; i < adapters.size(); ++i) {
    if (adapters[i] != nullptr && adapters[i]->base == &model) continue;
    return diag->Fail(Status::kBadArgument, "adapters[%zu] is %s", i,
                      adapters[i] == nullptr ? "NULL" : "not an adapter of this model");
  }
  UseAdapters(adapters, &plan->program);
  ARN_ASSIGN(plan->adapters, layout->AddArray(Region::kConstants, adapters.size(), sizeof(void*)));
  ARN_ASSIGN(
      plan->active_adapters,
      layout->AddArray(Region::kConstants, uint64_t{plan->options.max_sequences} * adapters.size(),
                       sizeof(ActiveAdapter)));
  return Status::kOk;
}

Status PlanEmbeddings(const Model& model, SessionPlan* plan, Layout* layout, Diag* diag) {
  const SessionOptions& options = plan->options;
  const uint64_t n = options.embedding_rows;
  if (n == 0) return Status::kOk;
  if (n > kMaxEmbeddingRows) {
    return diag->Fail(Status::kBadArgument, "embedding_rows is %u, expected at most %u",
                      options.embedding_rows, kMaxEmbeddingRows);
  }
  if (!plan->backend->takes_embeddings) {
    return diag->Fail(Status::kUnsupported,
                      "embedding_rows is %u: the backend %s takes no embeddings (images)",
                      options.embedding_rows, plan->backend->name);
  }
  ARN_ASSIGN(plan->embeddings,
             layout->AddArray(Region::kIo, n * VectorFloats(model.spec), sizeof(float)));
  ARN_ASSIGN(plan->embedding_marks, layout->Add(Region::kIo, n));
  if (model.spec.vision.has_mrope) {
    ARN_ASSIGN(plan->image_places, layout->AddArray(Region::kIo, n, sizeof(ImagePlace)));
    ARN_ASSIGN(plan->axis_positions,
               layout->AddArray(Region::kIo, uint64_t{plan->program.max_rows} * kRopeAxes,
                                sizeof(uint32_t)));
  }
  ARN_ASSIGN(plan->mixed_ids,
             layout->AddArray(Region::kIo, options.context_tokens, sizeof(int32_t)));
  ARN_ASSIGN(plan->plain_ids,
             layout->AddArray(Region::kIo, options.context_tokens, sizeof(int32_t)));
  if (!model.spec.vision.sees_both_ways) return Status::kOk;
  const bool takes_masks = plan->backend->takes_masks || plan->backend->takes_prefix_masks;
  if (options.no_cache || !takes_masks) {
    return diag->Fail(Status::kUnsupported,
                      "images need a %s: their tokens attend to each other in both directions",
                      options.no_cache ? "cache" : "backend with masks");
  }
  ARN_ASSIGN(plan->image_mask,
             layout->AddArray(Region::kIo, options.prefill_chunk, options.prefill_chunk));
  return Status::kOk;
}

Status PlanProgram(const Model& model, uint64_t guesses_bytes, SessionPlan* plan, Layout* layout,
                   Diag* diag) {
  const SessionOptions& options = plan->options;
  Program& program = plan->program;
  program = Has(options.speculation, Speculation::kMtp) ? model.program_for_mtp : model.program;
  program.max_rows = MaxRows(options);
  const uint32_t plain_rows = options.all_logits ? program.max_rows : options.max_sequences;
  // The steps of a scheduler verify guesses of all sequences together.
  const uint32_t in_a_run = options.max_requests != 0 ? options.max_sequences : 1;
  program.max_logit_rows = Max(plain_rows, in_a_run + options.max_guesses);
  program.max_context = options.context_tokens;
  program.max_encoder_rows = options.encoder_rows;
  program.splits_rows = options.splits_rows;
  if (model.program.values.size() > kMaxValues) return Status::kInternal;
  for (size_t i = 0; i < model.program.values.size(); ++i)
    plan->values[i] = model.program.values[i];
  for (uint32_t i = 0; i < model.spec.ropes.size(); ++i) {
    const RopeVariants& variants = model.spec.rope_variants[i];
    plan->ropes[i] = model.spec.ropes[i];
    if (variants.short_context == 0 || options.context_tokens <= variants.short_context) continue;
    plan->ropes[i].inv_freq = variants.long_inv_freq;
    plan->long_ropes |= 1u << i;
  }
  if (options.rope_scaling.exists()) {
    ARN_ASSIGN(plan->scaled_rope,
               layout->AddArray(Region::kConstants, plan->ropes[0].inv_freq.size(), sizeof(float)));
  }
  CacheGroup groups[kMaxKvGroups];
  for (uint32_t g = 0; g < model.spec.n_groups; ++g) {
    const KvGroupSpec& group = model.spec.groups[g];
    if (group.is_encoder) {
      groups[g] = EncoderGroupOf(options.max_sequences, options.encoder_rows);
      KvOptions kv = PageOptions(options, groups[g]);
      kv.page_tokens = groups[g].page_tokens;
      if (options.has_encoder_type) kv.k_type = kv.v_type = TraitsOf(options.encoder_type).active;
      ARN_TRY(PlanEncoderGroup(group.n_layers, group.n_kv_heads, group.head_dim, kv, layout,
                               &plan->kv_groups[g], diag));
      continue;
    }
    if (group.state_floats != 0) {
      groups[g] = StateGroupOf(options.max_sequences, options.state_snapshots);
      ARN_TRY(PlanStateGroup(group.n_layers, group.state_floats, groups[g].n_pages, layout,
                             &plan->kv_groups[g], diag));
      continue;
    }
    groups[g] = PlanGroup(group, options, program.max_rows);
    KvOptions kv = PageOptions(options, groups[g]);
    kv.keys_only = group.keys_only;
    ARN_TRY(PlanKvGroup(group.n_layers, group.n_kv_heads, group.head_dim, kv, layout,
                        &plan->kv_groups[g], diag));
  }
  ARN_TRY(PlanKvCache({groups, model.spec.n_groups}, options.max_sequences,
                      {options.state_snapshots, options.snapshot_every}, layout, &plan->cache));
  plan->program.kv_groups = {plan->kv_groups, model.spec.n_groups};
  plan->Bind();
  if (kHasAdapters) ARN_TRY(PlanAdapters(model, plan, layout, diag));
  ARN_TRY(PlanEmbeddings(model, plan, layout, diag));
  ARN_TRY(PlanActivations(program, layout));
  uint64_t logits = 0;
  if (!CheckedMul(program.max_logit_rows, program.vocab, &logits)) return Status::kOutOfMemory;
  ARN_ASSIGN(program.logits, layout->AddArray(Region::kIo, logits, sizeof(float)));
  if (options.max_guesses != 0) {
    if (Has(options.speculation, Speculation::kNgram)) {
      ARN_TRY(PlanNgrams(options.context_tokens, in_a_run, layout, &plan->ngrams));
    }
    ARN_ASSIGN(plan->guesses, layout->AddArray(Region::kIo, in_a_run, guesses_bytes));
    plan->speculation_bytes =
        plan->ngrams.slots.bytes + plan->guesses.bytes +
        uint64_t{program.max_logit_rows - plain_rows} * program.vocab * sizeof(float);
  }
  return Status::kOk;
}

// For the smallest OS pages there are.
Status PlanMarks(SessionPlan* plan, Layout* layout) {
  uint64_t most = 0;
  for (uint32_t g = 0; g < plan->cache.n_groups; ++g) {
    if (!plan->IsInFile(g)) continue;
    uint64_t chunks = 0;
    for (uint32_t kind = 0; kind < kPageKinds; ++kind) {
      const KvPages& pages = plan->kv_groups[g].pages(kind);
      if (pages.n_pages != 0) chunks += CeilDiv(pages.layer_stride, kKvChunkPages * 4096);
    }
    most = Max(most, chunks);
  }
  if (most == 0) return Status::kOk;
  ARN_ASSIGN(plan->kv_marks,
             layout->AddArray(Region::kConstants, most, kKvLayersNoted * kKvChunkMarkBytes));
  return Status::kOk;
}

Status PlanSequences(uint64_t sequence_bytes, SessionPlan* plan, Layout* layout) {
  const uint64_t n = plan->options.max_sequences;
  ARN_ASSIGN(plan->sequences, layout->AddArray(Region::kConstants, n, sequence_bytes));
  ARN_ASSIGN(plan->rows, layout->AddArray(Region::kConstants, n, sizeof(SequenceRows)));
  ARN_ASSIGN(plan->growths, layout->AddArray(Region::kConstants, n, sizeof(Growth)));
  ARN_ASSIGN(plan->parts, layout->AddArray(Region::kConstants, n, sizeof(SessionPart)));
  ARN_ASSIGN(
      plan->tokens,
      layout->AddArray(Region::kIo, Max(plan->program.max_rows, plan->program.max_encoder_rows),
                       sizeof(int32_t)));
  ARN_ASSIGN(plan->history,
             layout->AddArray(Region::kIo, n * plan->options.context_tokens, sizeof(int32_t)));
  ARN_ASSIGN(plan->beam_sequences, layout->AddArray(Region::kIo, n, sizeof(uint32_t)));
  ARN_ASSIGN(plan->beam_logits, layout->AddArray(Region::kIo, n, sizeof(const float*)));
  if (n > 1) {
    ARN_ASSIGN(plan->scratch_history,
               layout->AddArray(Region::kIo, plan->options.context_tokens, sizeof(int32_t)));
    ARN_ASSIGN(plan->sequence_logits,
               layout->AddArray(Region::kIo, n * plan->program.vocab, sizeof(float)));
  }
  return Status::kOk;
}

Status PlaceDraft(const Model& model, const SessionObjects& objects, SessionPlan* plan,
                  Layout* layout, Diag* diag) {
  SessionPlan draft;
  ARN_TRY(PlanDraft(model, *plan, objects, &draft, diag));
  ARN_ASSIGN(plan->draft, layout->Add(Region::kIo, draft.TotalBytes(), kRegionAlign));
  plan->speculation_bytes += plan->draft.bytes;
  return Status::kOk;
}

Status PlaceMtp(const Model& model, const SessionObjects& objects, SessionPlan* plan,
                Layout* layout, Diag* diag) {
  SessionPlan head;
  ARN_TRY(PlanMtp(model, *plan, objects, &head, diag));
  MtpPlan& mtp = plan->mtp;
  // Holds those of a run, and others that may be read again behind another token.
  mtp.n_rows = plan->program.max_rows + plan->options.max_guesses + 1;
  ARN_ASSIGN(mtp.rows, layout->AddArray(Region::kIo, (uint64_t{mtp.n_rows} + 1) * model.spec.hidden,
                                        sizeof(float)));
  ARN_ASSIGN(mtp.text,
             layout->AddArray(Region::kIo, plan->options.context_tokens, sizeof(int32_t)));
  ARN_ASSIGN(mtp.block, layout->Add(Region::kIo, head.TotalBytes(), kRegionAlign));
  plan->speculation_bytes += mtp.TotalBytes();
  return Status::kOk;
}

Status PlanConstraints(const Model& model, uint64_t use_bytes, SessionPlan* plan, Layout* layout,
                       Diag* diag) {
  SessionOptions& options = plan->options;
  if (options.constraint_bytes == 0) {
    if (options.max_constraints == 0) return Status::kOk;
    return diag->Fail(Status::kBadArgument, "max_constraints is %u, but constraint_bytes is 0",
                      options.max_constraints);
  }
  if (!kHasConstraints) return diag->Fail(Status::kUnsupported, "%s", kNoConstraints);
  if (model.tokenizer == nullptr) {
    return diag->Fail(Status::kUnsupported, "constraints need a tokenizer, the bundle has none");
  }
  if (options.constraint_bytes < kMinConstraintBytes ||
      options.constraint_bytes > kMaxConstraintBytes) {
    return diag->Fail(Status::kBadArgument, "constraint_bytes is %llu, expected %llu to %llu",
                      static_cast<unsigned long long>(options.constraint_bytes),
                      static_cast<unsigned long long>(kMinConstraintBytes),
                      static_cast<unsigned long long>(kMaxConstraintBytes));
  }
  if (options.max_constraints == 0) options.max_constraints = options.max_sequences;
  if (options.max_constraints > options.max_sequences) {
    return diag->Fail(Status::kBadArgument,
                      "max_constraints is %u, expected at most max_sequences %u",
                      options.max_constraints, options.max_sequences);
  }
  ConstraintsPlan& out = plan->constraints;
  out.n = options.max_constraints;
  out.bytes_each = AlignUp(options.constraint_bytes, kSliceAlign);
  ARN_ASSIGN(out.blocks, layout->AddArray(Region::kIo, out.n, out.bytes_each));
  ARN_ASSIGN(out.uses,
             layout->AddArray(Region::kIo, uint64_t{2} * options.max_sequences, use_bytes));
  ARN_ASSIGN(out.masked, layout->AddArray(Region::kIo, plan->program.vocab, sizeof(float)));
  ARN_ASSIGN(out.found, layout->AddArray(Region::kIo, kConstraintBlock, sizeof(uint32_t)));
  ARN_ASSIGN(out.encode,
             layout->Add(Region::kIo, model.tokenizer->EncodeScratchBytes(kMaxForcedBytes)));
  return Status::kOk;
}

}  // namespace

void SessionPlan::Bind() {
  program.values = {values, program.values.size()};
  program.ropes = {ropes, program.ropes.size()};
  program.kv_groups = {kv_groups, program.kv_groups.size()};
}

bool SessionPlan::IsInFile(uint32_t g) const { return arn::IsInFile(options, cache.groups[g]); }

uint64_t SessionPlan::BlockBytes(Region region) const {
  const bool is_on_device = backend->host_kv == nullptr && options.fallback == nullptr &&
                            (region == Region::kKv || region == Region::kActivations);
  return is_on_device ? 0 : RegionBytes(region);
}

uint64_t SessionPlan::TotalBytes() const {
  uint64_t total = 0;
  for (Region region : kBlockOrder) total += BlockBytes(region);
  return total;
}

uint64_t SessionPlan::SnapshotBytes() const {
  uint64_t bytes = 0;
  for (const KvGroup& group : program.kv_groups) {
    if (group.state_floats != 0) bytes += group.active.page_bytes;
  }
  return bytes * options.max_sequences * options.state_snapshots;
}

uint64_t SessionPlan::KvBytesPerToken() const {
  uint64_t bytes = 0;
  for (const KvGroup& group : program.kv_groups) {
    if (group.state_floats != 0 || group.is_encoder) continue;
    const KvPages& pages = group.quantised.n_pages != 0 ? group.quantised : group.active;
    bytes += pages.page_bytes / group.page_tokens;
  }
  return bytes;
}

namespace {

// chunk: the default of prefill_chunk.
Status PlanWithChunk(const Model& model, const Backend* backend, const SessionOptions& options,
                     uint32_t chunk, const SessionObjects& objects, SessionPlan* out, Diag* diag) {
  *out = SessionPlan();
  if (!model.has_weights) {
    return diag->Fail(Status::kUnsupported, "the bundle holds only a tokenizer, no model to run");
  }
  if (model.has_weights && !model.spec.makes_text) {
    return diag->Fail(Status::kUnsupported,
                      "the model makes vectors or scores of texts, not text: an embedder runs it "
                      "(arenite embed, arenite rerank)");
  }
  out->options = options;
  out->backend = backend;
  ARN_TRY(PlaceThreads(*backend, out, diag));
  ARN_TRY(ApplyDefaults(model, *backend, chunk, &out->options, diag));
  ARN_TRY(CheckPace(&out->options.pace, diag));
  Layout layout;
  ARN_ASSIGN(out->session, layout.Add(Region::kConstants, objects.session_bytes));
  ARN_TRY(PlanProgram(model, objects.guesses_bytes, out, &layout, diag));
  ARN_TRY(CheckShift(out->cache, out->options, diag));
  ARN_TRY(PlanSequences(objects.sequence_bytes, out, &layout));
  if (out->options.kv_in_file && backend->host_kv == nullptr) {
    return diag->Fail(Status::kUnsupported, "kv_file: the KV pages are on the device");
  }
  if (kHasKvFiles) ARN_TRY(PlanMarks(out, &layout));
  BackendOptions backend_options;
  backend_options.cpu.n_threads = out->options.n_threads;
  backend_options.cpu.n_prefill_threads = out->options.n_prefill_threads;
  backend_options.gpu.device = out->options.device;
  ARN_TRY(backend->plan(out->program, backend_options, &layout, &out->backend_plan, diag));
  if (const Backend* fallback = out->options.fallback; fallback != nullptr) {
    ARN_TRY(fallback->plan(out->program, backend_options, &layout, &out->fallback_plan, diag));
  }
  ARN_TRY(PlanSampler(out->program.vocab, &layout, &out->sampler));
  ARN_TRY(PlanConstraints(model, objects.constraint_use_bytes, out, &layout, diag));
  if (out->options.logits_processors) {
    ARN_TRY(PlanProcessors(out->program.vocab, &layout, &out->processors));
  }
  if (const uint32_t n = out->options.sampling_words; n != 0) {
    ARN_ASSIGN(out->sampling_lists,
               layout.AddArray(Region::kIo, (uint64_t{out->options.max_sequences} + 1) * n,
                               sizeof(uint32_t)));
  }
  ARN_TRY(PlanBeamSearch(out->options.max_sequences, out->options.context_tokens,
                         out->program.vocab, &layout, &out->beams));
  if (kHasSpeculation && out->options.draft != nullptr) {
    ARN_TRY(PlaceDraft(model, objects, out, &layout, diag));
  }
  if (kHasSpeculation && Has(out->options.speculation, Speculation::kMtp)) {
    ARN_TRY(PlaceMtp(model, objects, out, &layout, diag));
  }
  // Text held back (at most a stop string less one byte) plus the piece added to it.
  const uint64_t piece = model.tokenizer == nullptr ? 0 : model.tokenizer->max_piece_bytes();
  ARN_ASSIGN(out->text, layout.Add(Region::kIo, kMaxStopBytes + 2 * piece));
  if (out->options.max_requests != 0) {
    if (!kHasScheduler) return diag->Fail(Status::kUnsupported, "%s", kNoScheduler);
    ARN_TRY(PlanScheduler(model, objects, out, &layout, diag));
  }
  for (uint32_t r = 0; r < kRegionCount; ++r) {
    out->region_bytes[r] = layout.RegionBytes(static_cast<Region>(r));
  }
  out->region_bytes[static_cast<uint32_t>(Region::kWeights)] = model.spec.weight_bytes;
  return Status::kOk;
}

}  // namespace

// A device's chunk is known only when the session is created, so the plan has room for the longest,
// unless that is more than the backend takes. A row of logits for each of its tokens, and rows for
// guesses, which a device does not run, are not worth their memory. An image that is seen both ways
// needs the chunk that was planned.
Status PlanSession(const Model& model, const Backend* backend, const SessionOptions& options,
                   const SessionObjects& objects, SessionPlan* out, Diag* diag) {
  const bool sees_both_ways = model.spec.vision.sees_both_ways && options.embedding_rows != 0;
  if (kHasDevices && backend->device != nullptr && options.prefill_chunk == 0 &&
      !options.all_logits && options.speculation == Speculation::kNone && !sees_both_ways) {
    const Status status =
        PlanWithChunk(model, backend, options, kMostChunkRows, objects, out, diag);
    out->device_chooses_chunk = status == Status::kOk;
    if (status != Status::kUnsupported) return status;
    diag->Clear();
  }
  return PlanWithChunk(model, backend, options, kDefaultPrefillChunk, objects, out, diag);
}

Memory PartitionBlock(const SessionPlan& plan, std::byte* block) {
  Memory memory;
  uint64_t offset = 0;
  for (Region region : kBlockOrder) {
    const uint64_t bytes = plan.BlockBytes(region);
    memory.region[static_cast<uint32_t>(region)] = {block + offset, static_cast<size_t>(bytes)};
    offset += bytes;
  }
  return memory;
}

}  // namespace arn

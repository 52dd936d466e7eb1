#include "runtime/memory/session_plan.h"

#include <algorithm>

#include "platform/base/arith.h"
#include "runtime/constrain/availability.h"
#include "runtime/constrain/token_constraint.h"
#include "runtime/memory/activation_plan.h"
#include "runtime/memory/devices.h"
#include "runtime/memory/placement.h"
#include "runtime/memory/session_defaults.h"
#include "runtime/model/image_place.h"
#include "runtime/scheduler/availability.h"
#include "runtime/speculate/availability.h"

namespace arn {
namespace {

// Order of the regions in a session's block. KV is last, because it is committed as it is used.
constexpr Region kBlockOrder[] = {Region::kConstants, Region::kIo, Region::kActivations,
                                  Region::kKv};

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
  const SessionPlan* lender = kHasSpeculation ? options.lender : nullptr;
  const uint32_t n_own = lender != nullptr ? 0 : model.spec.n_groups;
  if (lender != nullptr) {
    std::copy(lender->kv_groups, lender->kv_groups + model.spec.n_groups, plan->kv_groups);
  }
  for (uint32_t g = 0; g < n_own; ++g) {
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
  ARN_TRY(PlanKvCache({groups, n_own}, options.max_sequences,
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
  // Holds those of a run, and others that may be read again behind another token; for an assistant
  // those that guesses may end with.
  const bool is_assistant = model.mtp->spec.lender != nullptr;
  mtp.n_rows = (is_assistant ? 0 : plan->program.max_rows) + plan->options.max_guesses + 1;
  ARN_ASSIGN(mtp.rows, layout->AddArray(Region::kIo, (uint64_t{mtp.n_rows} + 1) * model.spec.hidden,
                                        sizeof(float)));
  ARN_ASSIGN(mtp.text,
             layout->AddArray(Region::kIo, is_assistant ? mtp.n_rows : plan->options.context_tokens,
                              sizeof(int32_t)));
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
  if (!model.spec.makes_text) {
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
    backend_options.cpu.reads_device_rows = kHasDevices && backend->partner != nullptr;
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

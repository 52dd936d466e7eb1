// Implements arn_session_plan*: converts session options to a plan and reports its memory.
#include "platform/base/arith.h"
#include "runtime/api/handles.h"
#include "runtime/api/options.h"
#include "runtime/backends.h"

namespace arn::api {
namespace {

static_assert(ARN_SPECULATE_NGRAM == static_cast<uint32_t>(Speculation::kNgram) &&
              ARN_SPECULATE_AUTO == static_cast<uint32_t>(Speculation::kAuto) &&
              ARN_SPECULATE_MTP == static_cast<uint32_t>(Speculation::kMtp));
static_assert(ARN_KV_F32 == static_cast<uint32_t>(KvType::kF32) &&
              ARN_KV_INT2 == static_cast<uint32_t>(KvType::kInt2) &&
              ARN_KV_INT2 + 1 == kKvTypeCount);

Status ReadKvType(const char* field, uint32_t value, KvType* out, Diag* diag) {
  if (value >= kKvTypeCount) {
    return diag->Fail(Status::kUnsupported, "%s %u is not known", field, value);
  }
  *out = static_cast<KvType>(value);
  return Status::kOk;
}

// ARN_CPUS_... and CpuChoice have the same values.
Status ReadDeviceOptions(const arn_session_options& read, SessionOptions* out, Diag* diag) {
  if (read.cpus > ARN_CPUS_MASK) {
    return diag->Fail(Status::kUnsupported, "cpus %u is not known", read.cpus);
  }
  ARN_TRY(CheckFlag("sensors", read.sensors, diag));
  ARN_TRY(CheckFlag("trust_device", read.trust_device, diag));
  ARN_TRY(CheckFlag("needs_gpu", read.needs_gpu, diag));
  ARN_TRY(CheckFlag("half_products", read.half_products, diag));
  out->device = read.device;
  out->device_folder = read.device_folder;
  out->hardware_only = read.needs_gpu == 1;
  out->half_products = read.half_products == 1;
  out->trusts_device = read.trust_device == 1;
  out->cpus = static_cast<CpuChoice>(read.cpus);
  out->cpu_mask = read.cpu_mask;
  out->sensors = read.sensors == 1;
  out->pace = {read.max_tokens_per_s, read.thermal_limit_mc, read.thermal_headroom,
               read.thermal_duty_percent};
  out->thermal_zone = read.thermal_zone;
  out->system_root = read.system_root;
  return Status::kOk;
}

// Plans the backend with its fallback, or the fallback alone if the backend is missing or does not
// support the model. The presence of a device is checked only when the session is created.
Status PlanWithFallback(const Model& model, const BackendTraits& traits,
                        const SessionOptions& options, SessionPlan* out, Diag* diag) {
  Diag refused;
  if (traits.backend == nullptr) {
    (void)refused.Fail(Status::kUnsupported, "%s", traits.if_missing);
  } else {
    SessionOptions both = options;
    both.fallback = traits.fallback;
    const Status status = PlanSession(model, traits.backend, both, Session::Objects(), out, diag);
    if (status != Status::kUnsupported) return status;
    refused = *diag;
    diag->Clear();
  }
  ARN_TRY(PlanSession(model, traits.fallback, options, Session::Objects(), out, diag));
  out->refused = refused;
  return Status::kOk;
}

}  // namespace

Status PlanFromC(const Model& model, const arn_session_options* options, SessionPlan* out,
                 Diag* diag) {
  arn_session_options read = ARN_SESSION_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_session_options", &read, diag));
  const BackendTraits traits = FindTraits(static_cast<BackendId>(read.backend));
  if (traits.backend == nullptr && traits.fallback == nullptr) {
    if (traits.if_missing[0] != '\0') {
      return diag->Fail(Status::kUnsupported, "%s", traits.if_missing);
    }
    return diag->Fail(Status::kUnsupported, "backend is %u, expected ARN_BACKEND_...",
                      read.backend);
  }
  SessionOptions session;
  ARN_TRY(ReadKvType("kv_type", read.kv_type, &session.k_type, diag));
  const uint32_t values = read.kv_value_type == ARN_KV_AS_KEYS ? read.kv_type : read.kv_value_type;
  ARN_TRY(ReadKvType("kv_value_type", values, &session.v_type, diag));
  if (read.encoder_kv_type != ARN_KV_AS_KEYS) {
    ARN_TRY(ReadKvType("encoder_kv_type", read.encoder_kv_type, &session.encoder_type, diag));
    session.has_encoder_type = true;
  }
  session.kv_residual = read.kv_residual;
  session.kv_group_size = read.kv_group_size;
  if (read.kv_key_axis > ARN_KV_AXIS_TOKEN || read.kv_value_axis > ARN_KV_AXIS_TOKEN) {
    return diag->Fail(Status::kUnsupported, "kv_key_axis %u, kv_value_axis %u: not known",
                      read.kv_key_axis, read.kv_value_axis);
  }
  session.k_by_token = IsQuantised(session.k_type) && read.kv_key_axis == ARN_KV_AXIS_TOKEN;
  session.v_by_channel = IsQuantised(session.v_type) && read.kv_value_axis == ARN_KV_AXIS_CHANNEL;
  ARN_TRY(CheckFlag("all_logits", read.all_logits, diag));
  if (read.activation_bits != 0 && read.activation_bits != 8 && read.activation_bits != 16) {
    return diag->Fail(Status::kBadArgument, "activation_bits is %u, expected 8 or 16",
                      read.activation_bits);
  }
  ARN_TRY(CheckFlag("no_cache", read.no_cache, diag));
  ARN_TRY(CheckFlag("logits_processors", read.logits_processors, diag));
  session.logits_processors = read.logits_processors == 1;
  session.sampling_words = read.sampling_words;
  if (read.overflow > ARN_OVERFLOW_SHIFT) {
    return diag->Fail(Status::kUnsupported, "overflow %u is not known", read.overflow);
  }
  session.max_sequences = read.max_sequences;
  session.kv_tokens = read.kv_tokens;
  session.overflow = static_cast<Overflow>(read.overflow);
  session.pinned_tokens = read.pinned_tokens;
  session.no_cache = read.no_cache == 1;
  session.splits_rows = read.activation_bits == 16;
  session.embedding_rows = read.embedding_rows;
  session.max_requests = read.max_requests;
  session.kv_in_file = read.kv_file != nullptr;
  session.context_tokens = read.context_tokens;
  session.prefill_chunk = read.prefill_chunk;
  session.n_threads = read.n_threads;
  session.n_prefill_threads = read.n_prefill_threads;
  session.kv_page_tokens = read.kv_page_tokens;
  session.encoder_rows = read.encoder_rows;
  session.all_logits = read.all_logits == 1;
  session.constraint_bytes = read.constraint_bytes;
  session.max_constraints = read.max_constraints;
  session.state_snapshots = read.state_snapshots;
  session.snapshot_every = read.snapshot_every;
  if (read.speculation > ARN_SPECULATE_MTP) {
    return diag->Fail(Status::kUnsupported, "speculation %u is not known", read.speculation);
  }
  session.speculation = static_cast<Speculation>(read.speculation);
  session.max_guesses = read.max_guesses;
  session.draft = ToModel(read.draft);
  if (read.rope_scaling > ARN_ROPE_YARN) {
    return diag->Fail(Status::kUnsupported, "rope_scaling %u is not known", read.rope_scaling);
  }
  session.rope_scaling = {static_cast<RopeScalingType>(read.rope_scaling), read.rope_factor};
  ARN_TRY(CheckFlag("guess_always", read.guess_always, diag));
  session.guesses_always = read.guess_always == 1;
  if (read.n_adapters != 0 && (!kHasAdapters || read.adapters == nullptr)) {
    return kHasAdapters ? diag->Fail(Status::kBadArgument, "n_adapters is %u, and adapters is NULL",
                                     read.n_adapters)
                        : diag->Fail(Status::kUnsupported, "%s", kNoAdapters);
  }
  // The handles are the objects.
  if (kHasAdapters) {
    session.adapters = {reinterpret_cast<const AdapterBundle* const*>(read.adapters),
                        read.n_adapters};
  }
  ARN_TRY(ReadDeviceOptions(read, &session, diag));
  session.hardware_only |= traits.hardware_only;
  if (traits.fallback != nullptr) return PlanWithFallback(model, traits, session, out, diag);
  return PlanSession(model, traits.backend, session, Session::Objects(), out, diag);
}

namespace {

void FillAdapters(const SessionPlan& plan, arn_memory_plan* out) {
  out->n_adapters = static_cast<uint32_t>(plan.options.adapters.size());
  out->adapters_bytes = plan.AdapterBytes();
  for (const AdapterBundle* adapter : plan.options.adapters) {
    out->adapter_files_bytes += adapter->bundle.file.size();
  }
}

void FillPlan(const Model& model, const SessionPlan& plan, arn_memory_plan* out) {
  out->weights_bytes = plan.RegionBytes(Region::kWeights);
  out->constants_bytes = plan.RegionBytes(Region::kConstants);
  out->repacked_bytes =
      plan.backend_plan.repacked_weight_bytes + plan.fallback_plan.repacked_weight_bytes;
  out->device_bytes = plan.backend_plan.device_bytes;
  out->importable_bytes = plan.backend_plan.importable_bytes;
  out->kv_bytes = plan.RegionBytes(Region::kKv);
  out->kv_bytes_per_token = plan.KvBytesPerToken();
  out->activations_bytes = plan.RegionBytes(Region::kActivations);
  out->io_bytes = plan.RegionBytes(Region::kIo);
  out->constraints_bytes = plan.constraints.TotalBytes();
  out->embeddings_bytes = plan.EmbeddingBytes();
  out->embedding_rows = plan.options.embedding_rows;
  out->snapshots_bytes = plan.SnapshotBytes();
  out->state_snapshots = plan.options.state_snapshots;
  out->snapshot_every = plan.options.snapshot_every;
  out->speculation_bytes = plan.speculation_bytes;
  out->max_guesses = plan.options.max_guesses;
  out->draft_bytes = plan.draft.bytes + plan.mtp.TotalBytes();
  out->scheduler_bytes = plan.scheduler.TotalBytes();
  out->max_requests = plan.options.max_requests;
  const Model* draft = plan.mtp.exists() ? model.mtp : plan.options.draft;
  if (draft != nullptr) out->draft_weights_bytes = draft->spec.weight_bytes;
  if (kHasAdapters) FillAdapters(plan, out);
  out->total_bytes = plan.TotalBytes();
  out->alignment = kRegionAlign;
  out->context_tokens = plan.options.context_tokens;
  out->prefill_chunk = plan.options.prefill_chunk;
  out->n_threads = plan.options.n_threads;
  out->kv_page_tokens = plan.options.kv_page_tokens;
  out->max_sequences = plan.options.max_sequences;
  out->kv_tokens = plan.options.kv_tokens;
  out->n_kv_groups = plan.cache.n_groups;
  out->n_prefill_threads = plan.options.n_prefill_threads;
  out->n_performance_cpus = Max<uint32_t>(1, plan.topology.performance.count());
  out->keeps_to_performance_cpus =
      plan.topology.is_mixed() && plan.keeps_cpus && plan.cpus == plan.topology.performance;
}

void FillGroup(const SessionPlan& plan, uint32_t index, arn_kv_group_info* out) {
  const KvGroup& group = plan.kv_groups[index];
  const CacheGroup& pages = plan.cache.groups[index];
  out->n_layers = group.n_layers;
  out->n_kv_heads = group.n_kv_heads;
  out->head_dim = group.head_dim;
  out->window = pages.window;
  out->chunk = pages.chunk;
  out->page_tokens = group.state_floats != 0 ? 0 : group.page_tokens;
  out->n_pages = group.active.n_pages;
  out->n_quantised_pages = group.quantised.n_pages;
  out->quantised_page_bytes = group.quantised.page_bytes;
  out->quantised_offset = group.quantised.pool.offset;
  out->residual = group.quantised.n_pages == 0 ? 0 : pages.residual;
  out->sequence_pages = pages.table_pages;
  out->page_bytes = group.active.page_bytes;
  out->offset = group.active.pool.offset;
  if (group.state_floats != 0) out->state_bytes = group.active.layer_bytes;
  out->is_encoder = group.is_encoder ? 1 : 0;
}

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

const char* arn_kv_type_name(uint32_t kv_type) {
  return kv_type < kKvTypeCount ? kKvTypes[kv_type].name : nullptr;
}

arn_status arn_session_plan(const arn_model* model, const arn_session_options* options, char* error,
                            size_t error_bytes, arn_memory_plan* out_plan) {
  if (model == nullptr || out_plan == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  SessionPlan plan;
  Status status = PlanFromC(*ToModel(model), options, &plan, &diag);
  if (status == Status::kOk) {
    arn_memory_plan out = ARN_MEMORY_PLAN_INIT;
    FillPlan(*ToModel(model), plan, &out);
    out.copied_bytes = ToModel(model)->source.copy.size();
    status = WriteStruct(out, out_plan);
  }
  return Report(status, diag, error, error_bytes);
}

arn_status arn_session_plan_group(const arn_model* model, const arn_session_options* options,
                                  uint32_t index, char* error, size_t error_bytes,
                                  arn_kv_group_info* out_group) {
  if (model == nullptr || out_group == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  SessionPlan plan;
  Status status = PlanFromC(*ToModel(model), options, &plan, &diag);
  if (status == Status::kOk && index >= plan.cache.n_groups) {
    status = diag.Fail(Status::kBadArgument, "group %u of %u", index, plan.cache.n_groups);
  }
  if (status == Status::kOk) {
    arn_kv_group_info out = ARN_KV_GROUP_INFO_INIT;
    FillGroup(plan, index, &out);
    status = WriteStruct(out, out_group);
  }
  return Report(status, diag, error, error_bytes);
}

}  // extern "C"

// arn_session_*.
#include "platform/base/arith.h"
#include "platform/os/backing_file.h"
#include "platform/os/pages.h"
#include "runtime/api/handles.h"
#include "runtime/api/options.h"
#include "runtime/backends.h"

namespace arn::api {
namespace {

// The block that a session takes from the OS itself. mmap aligns to the page size, which may be
// less than kRegionAlign.
struct OwnBlock {
  Span<std::byte> pages;
  Span<std::byte> block;
};

Status ReserveBlock(uint64_t bytes, OwnBlock* out, Diag* diag) {
  Result<Span<std::byte>> pages = ReservePages(bytes + kRegionAlign);
  if (!pages.ok()) {
    return diag->Fail(pages.status(), "cannot reserve %llu bytes for the session",
                      static_cast<unsigned long long>(bytes));
  }
  out->pages = pages.value();
  const uintptr_t base = reinterpret_cast<uintptr_t>(out->pages.data());
  const size_t skip = (kRegionAlign - base % kRegionAlign) % kRegionAlign;
  out->block = out->pages.subspan(skip, static_cast<size_t>(bytes));
  return Status::kOk;
}

// Lays a file under the pools that are to lie in one. They are whole OS pages each.
Status MapKvFile(const SessionPlan& plan, const char* path, std::byte* block, Diag* diag) {
  if (path == nullptr) return Status::kOk;
  const Memory memory = PartitionBlock(plan, block);
  int fd = -1;
  ARN_TRY(MakeBacking(path, plan.RegionBytes(Region::kKv), &fd, diag));
  Status status = Status::kOk;
  for (uint32_t g = 0; g < plan.cache.n_groups; ++g) {
    for (uint32_t kind = 0; kind < kPageKinds && status == Status::kOk; ++kind) {
      const Slice pool = plan.kv_groups[g].pages(kind).pool;
      const auto bytes = static_cast<size_t>(AlignUp(pool.bytes, kRegionAlign));
      if (bytes > 0 && plan.IsInFile(g)) {
        status = MapBacking(fd, pool.offset, {memory.At(pool), bytes}, diag);
      }
    }
  }
  CloseBacking(fd);
  return status;
}

Status CreateSession(const Model& model, const arn_session_options* options, void* memory,
                     uint64_t memory_bytes, Session** out, Diag* diag) {
  SessionPlan plan;
  ARN_TRY(PlanFromC(model, options, &plan, diag));
  arn_session_options read = ARN_SESSION_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_session_options", &read, diag));
  const uint64_t needed = plan.TotalBytes();
  if (memory != nullptr) {
    if (read.kv_file != nullptr) {
      return diag->Fail(Status::kUnsupported,
                        "kv_file: the memory is the caller's, no file can be laid under it");
    }
    if (reinterpret_cast<uintptr_t>(memory) % kRegionAlign != 0) {
      return diag->Fail(Status::kBadArgument, "memory is not aligned to %u bytes", kRegionAlign);
    }
    if (memory_bytes < needed) {
      return diag->Fail(Status::kOutOfMemory, "memory has %llu bytes, the session needs %llu",
                        static_cast<unsigned long long>(memory_bytes),
                        static_cast<unsigned long long>(needed));
    }
    return Session::Create(
        model, plan, {static_cast<std::byte*>(memory), static_cast<size_t>(needed)}, {}, out, diag);
  }
  OwnBlock own;
  ARN_TRY(ReserveBlock(needed, &own, diag));
  Status status = MapKvFile(plan, read.kv_file, own.block.data(), diag);
  if (status == Status::kOk) {
    status = Session::Create(model, plan, own.block, own.pages, out, diag);
  }
  if (status != Status::kOk) ReleasePages(own.pages);
  return status;
}

constexpr size_t kMaxStops = 16;

Status ReadGenerateOptions(const arn_generate_options* options, StringView* stops,
                           GenerateOptions* out, Diag* diag) {
  arn_generate_options read = ARN_GENERATE_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_generate_options", &read, diag));
  if (read.ignore_eos > 1) {
    return diag->Fail(Status::kBadArgument, "ignore_eos is %u, expected 0 or 1", read.ignore_eos);
  }
  if (read.n_stops > kMaxStops || (read.n_stops > 0 && read.stops == nullptr) ||
      (read.n_extra_eos_ids > 0 && read.extra_eos_ids == nullptr)) {
    return diag->Fail(Status::kBadArgument, "%zu stop strings (at most %zu) or a NULL list",
                      read.n_stops, kMaxStops);
  }
  for (size_t i = 0; i < read.n_stops; ++i) {
    if (read.stops[i].text == nullptr) {
      return diag->Fail(Status::kBadArgument, "stop string %zu is NULL", i);
    }
    stops[i] = StringView(read.stops[i].text, read.stops[i].bytes);
  }
  out->max_tokens = read.max_tokens;
  out->ignore_eos = read.ignore_eos == 1;
  out->stops = {stops, read.n_stops};
  out->extra_eos_ids = {read.extra_eos_ids, read.n_extra_eos_ids};
  out->callback = read.callback;
  out->user = read.user;
  return Status::kOk;
}

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_session_create(const arn_model* model, const arn_session_options* options,
                              void* memory, uint64_t memory_bytes, char* error, size_t error_bytes,
                              arn_session** out_session) {
  if (out_session == nullptr) return ARN_BAD_ARGUMENT;
  *out_session = nullptr;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  Session* session = nullptr;
  const Status status =
      CreateSession(*ToModel(model), options, memory, memory_bytes, &session, &diag);
  *out_session = reinterpret_cast<arn_session*>(session);
  return Report(status, diag, error, error_bytes);
}

void arn_session_destroy(arn_session* session) { Session::Destroy(ToSession(session)); }

const char* arn_session_last_error(const arn_session* session) {
  return session == nullptr ? "" : ToSession(session)->diag().text();
}

arn_status arn_session_backend(const arn_session* session, arn_backend_info* out_info) {
  if (session == nullptr || out_info == nullptr) return ARN_BAD_ARGUMENT;
  const Session& s = *ToSession(session);
  arn_backend_info out = ARN_BACKEND_INFO_INIT;
  for (BackendId id :
       {BackendId::kCpu, BackendId::kReference, BackendId::kVulkan, BackendId::kVulkanCpu}) {
    if (FindBackend(id) == s.backend()) out.backend = static_cast<uint32_t>(id);
  }
  out.name = s.backend()->name;
  out.device = s.device_name();
  out.reason = s.why_spare();
  out.kernels = s.kernel_names();
  return ToC(WriteStruct(out, out_info));
}

arn_status arn_session_encode_ids(arn_session* session, const int32_t* ids, size_t n_ids) {
  if (session == nullptr || (ids == nullptr && n_ids > 0)) return ARN_BAD_ARGUMENT;
  return ToC(Begin(session)->EncodeIds({ids, n_ids}));
}

arn_status arn_session_encode_features(arn_session* session, const float* features,
                                       uint32_t n_frames, uint32_t width) {
  if (session == nullptr || features == nullptr) return ARN_BAD_ARGUMENT;
  return ToC(Begin(session)->EncodeFeatures({features, size_t{n_frames} * width}, n_frames, width));
}

arn_status arn_session_prefill(arn_session* session, const int32_t* ids, size_t n_ids) {
  if (session == nullptr || (ids == nullptr && n_ids > 0)) return ARN_BAD_ARGUMENT;
  return ToC(Begin(session)->Prefill({ids, n_ids}));
}

arn_status arn_session_prefill_logits(arn_session* session, const int32_t* ids, size_t n_ids,
                                      const float** out_logits) {
  if (out_logits == nullptr) return ARN_BAD_ARGUMENT;
  *out_logits = nullptr;
  if (session == nullptr || (ids == nullptr && n_ids > 0)) return ARN_BAD_ARGUMENT;
  return ToC(Begin(session)->PrefillLogits({ids, n_ids}, out_logits));
}

arn_status arn_session_logits(const arn_session* session, const float** out_logits) {
  if (out_logits == nullptr) return ARN_BAD_ARGUMENT;
  *out_logits = nullptr;
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  // They may still have to be brought from a device, which changes nothing that a caller sees.
  return ToC(const_cast<Session*>(ToSession(session))->Logits(out_logits));
}

arn_status arn_session_set_sampling(arn_session* session, const arn_sampling* sampling) {
  if (session == nullptr || sampling == nullptr) return ARN_BAD_ARGUMENT;
  Session* s = Begin(session);
  arn_sampling read = ARN_SAMPLING_INIT;
  const Status status = ReadStruct(sampling, "arn_sampling", &read, s->diag());
  if (status != Status::kOk) return ToC(status);
  SamplingOptions options;
  options.temperature = read.temperature;
  options.top_k = read.top_k;
  options.top_p = read.top_p;
  options.min_p = read.min_p;
  options.seed = read.seed;
  return ToC(s->SetSampling(options));
}

arn_status arn_session_decode(arn_session* session, int32_t* out_id) {
  if (session == nullptr || out_id == nullptr) return ARN_BAD_ARGUMENT;
  return ToC(Begin(session)->Decode(out_id));
}

arn_status arn_session_sample(arn_session* session, int32_t* out_id) {
  if (session == nullptr || out_id == nullptr) return ARN_BAD_ARGUMENT;
  return ToC(Begin(session)->Sample(out_id));
}

uint32_t arn_session_length(const arn_session* session) {
  return session == nullptr ? 0 : ToSession(session)->length();
}

arn_status arn_session_reset(arn_session* session) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  Begin(session)->Reset();
  return ARN_OK;
}

void arn_session_cancel(arn_session* session) {
  if (session != nullptr) ToSession(session)->Cancel();
}

arn_status arn_session_generate(arn_session* session, const arn_generate_options* options,
                                arn_generate_result* out_result) {
  if (session == nullptr) return ARN_BAD_ARGUMENT;
  Session* s = Begin(session);
  StringView stops[kMaxStops];
  GenerateOptions read;
  const Status options_status = ReadGenerateOptions(options, stops, &read, s->diag());
  if (options_status != Status::kOk) return ToC(options_status);
  GenerateResult result;
  const Status status = s->Generate(read, &result);
  if (out_result != nullptr) {
    arn_generate_result out = ARN_GENERATE_RESULT_INIT;
    out.n_tokens = result.n_tokens;
    out.finish = static_cast<uint32_t>(result.finish);
    const Status written = WriteStruct(out, out_result);
    if (status == Status::kOk) return ToC(written);
  }
  return ToC(status);
}

}  // extern "C"

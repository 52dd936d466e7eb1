// Implements arn_model_*, arn_status_name, arn_version and arn_program_dump.
#include "kernels/contract/code_type.h"
#include "kernels/contract/descriptions.h"
#include "kernels/contract/program_dump.h"
#include "kernels/pack/pack.h"
#include "platform/base/arith.h"
#include "platform/os/huge_pages.h"
#include "platform/os/mapped_file.h"
#include "platform/os/pages.h"
#include "runtime/api/handles.h"
#include "runtime/api/options.h"
#include "runtime/bundle/parts.h"
#include "runtime/model/model_parts.h"

namespace arn::api {
namespace {

#define ARN_SAME(c_name, cpp_name) \
  static_assert(static_cast<uint32_t>(c_name) == static_cast<uint32_t>(Residency::cpp_name))
ARN_SAME(ARN_RESIDENCY_MAPPED, kMapped);
ARN_SAME(ARN_RESIDENCY_COPIED, kCopied);
ARN_SAME(ARN_RESIDENCY_LOCKED, kLocked);
ARN_SAME(ARN_RESIDENCY_HUGE, kHuge);
#undef ARN_SAME

const char* Text(const flatbuffers::String* s) { return s == nullptr ? "" : s->c_str(); }

Status ReadModelOptions(const arn_model_options* options, ModelOptions* out, Diag* diag) {
  arn_model_options read = ARN_MODEL_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_model_options", &read, diag));
  switch (read.verify_hashes) {
    case ARN_HASHES_INDEX: out->hashes = HashCheck::kNone; break;
    case ARN_HASHES_ALL: out->hashes = HashCheck::kAll; break;
    case ARN_HASHES_ON_USE: out->hashes = HashCheck::kOnUse; break;
    default:
      return diag->Fail(Status::kBadArgument, "verify_hashes is %u, expected ARN_HASHES_... (0..2)",
                        read.verify_hashes);
  }
  if (read.public_key != nullptr) out->public_key = {read.public_key, kPublicKeyBytes};
  if (read.residency > ARN_RESIDENCY_HUGE) {
    return diag->Fail(Status::kBadArgument, "residency is %u, expected ARN_RESIDENCY_... (0..%u)",
                      read.residency, ARN_RESIDENCY_HUGE);
  }
  out->residency = static_cast<Residency>(read.residency);
  return Status::kOk;
}

// Opens a bundle at `offset` of an open file. If it is mapped, the model keeps its own descriptor:
// each session that uses the stored prefix maps it again.
Status OpenMapped(int fd, uint64_t offset, uint64_t bytes, const ModelOptions& options,
                  arn_model** out, Diag* diag) {
  ModelBytes source;
  ARN_TRY(LoadModelBytes(fd, offset, bytes, options.residency, &source, diag));
  Model* model = nullptr;
  ARN_TRY(OpenModel(source, options, &model, diag));
  if (!model->prefix.ids.empty() && source.copy.empty()) {
    model->prefix.fd = DuplicateMapped(fd);
    model->prefix.file_offset += offset;
  }
  *out = reinterpret_cast<arn_model*>(model);
  return Status::kOk;
}

// paths: null for `first` and its siblings.
Status OpenParts(const char* const* paths, const char* first, uint64_t n,
                 const arn_model_options* c_options, arn_model** out, Diag* diag) {
  if ((paths == nullptr && first == nullptr) || n == 0 || n > kMaxParts) {
    return diag->Fail(Status::kBadArgument, "paths is NULL, or n_paths not 1..%u", kMaxParts);
  }
  ModelOptions options;
  ARN_TRY(ReadModelOptions(c_options, &options, diag));
  ModelBytes source;
  ARN_TRY(LoadModelParts(paths, first, static_cast<uint32_t>(n), options.residency, &source, diag));
  Model* model = nullptr;
  Diag inner;
  const Status status = OpenModel(source, options, &model, &inner);
  if (status != Status::kOk) {
    return diag->Fail(status, "%s: %s", first == nullptr ? paths[0] : first, inner.text());
  }
  *out = reinterpret_cast<arn_model*>(model);
  return Status::kOk;
}

Status OpenPath(const char* path, const arn_model_options* c_options, arn_model** out, Diag* diag) {
  if (path == nullptr) return diag->Fail(Status::kBadArgument, "path is NULL");
  if (const uint32_t n = CountParts(path); n != 0) {
    return OpenParts(nullptr, path, n, c_options, out, diag);
  }
  ModelOptions options;
  ARN_TRY(ReadModelOptions(c_options, &options, diag));
  int fd = -1;
  ARN_TRY(OpenToMap(path, &fd, diag));
  Diag inner;
  const Status status = OpenMapped(fd, 0, 0, options, out, &inner);
  CloseMapped(fd);
  if (status != Status::kOk) return diag->Fail(status, "%s: %s", path, inner.text());
  return Status::kOk;
}

Status OpenFd(int fd, uint64_t offset, uint64_t bytes, const arn_model_options* c_options,
              arn_model** out, Diag* diag) {
  ModelOptions options;
  ARN_TRY(ReadModelOptions(c_options, &options, diag));
  return OpenMapped(fd, offset, bytes, options, out, diag);
}

Status OpenMemory(const void* data, uint64_t bytes, const arn_model_options* c_options,
                  arn_model** out, Diag* diag) {
  if (data == nullptr || reinterpret_cast<uintptr_t>(data) % kSliceAlign != 0) {
    return diag->Fail(Status::kBadArgument, "data is NULL or not aligned to %u bytes", kSliceAlign);
  }
  if (bytes > SIZE_MAX) return diag->Fail(Status::kBadArgument, "bytes exceeds the address space");
  ModelOptions options;
  ARN_TRY(ReadModelOptions(c_options, &options, diag));
  if (options.residency != Residency::kMapped) {
    return diag->Fail(Status::kUnsupported, "residency: a bundle in memory is used in place");
  }
  ModelBytes source;
  source.bytes = {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)};
  Model* model = nullptr;
  ARN_TRY(OpenModel(source, options, &model, diag));
  *out = reinterpret_cast<arn_model*>(model);
  return Status::kOk;
}

Status ReadAll(const arn_reader& reader, Span<std::byte> out, Diag* diag) {
  constexpr uint64_t kPieceBytes = 4 << 20;
  for (uint64_t at = 0; at < reader.bytes; at += kPieceBytes) {
    const auto piece = static_cast<size_t>(Min(kPieceBytes, reader.bytes - at));
    const int result = reader.read(reader.user, at, out.data() + at, piece);
    if (result != 0) {
      return diag->Fail(Status::kIo, "the reader returned %d for %zu bytes at %llu of %llu", result,
                        piece, static_cast<unsigned long long>(at),
                        static_cast<unsigned long long>(reader.bytes));
    }
  }
  return Status::kOk;
}

Status OpenReader(const arn_reader* c_reader, const arn_model_options* c_options, arn_model** out,
                  Diag* diag) {
  arn_reader reader = ARN_READER_INIT;
  ARN_TRY(ReadStruct(c_reader, "arn_reader", &reader, diag));
  if (reader.read == nullptr) return diag->Fail(Status::kBadArgument, "reader.read is NULL");
  if (reader.bytes == 0 || reader.bytes > SIZE_MAX) {
    return diag->Fail(Status::kBadArgument, "reader.bytes is %llu",
                      static_cast<unsigned long long>(reader.bytes));
  }
  ModelOptions options;
  ARN_TRY(ReadModelOptions(c_options, &options, diag));
  if (options.residency > Residency::kCopied) {
    return diag->Fail(Status::kUnsupported, "residency: a bundle from a reader is always copied");
  }
  ModelBytes source;
  ARN_TRY(ReserveModelBytes(reader.bytes, &source, diag));
  if (const Status status = ReadAll(reader, source.copy, diag); status != Status::kOk) {
    GiveBack(source);
    return status;
  }
  ProtectPages(source.copy);
  Model* model = nullptr;
  ARN_TRY(OpenModel(source, options, &model, diag));
  *out = reinterpret_cast<arn_model*>(model);
  return Status::kOk;
}

const char* NameTensor(const void* context, WeightId id) {
  return TensorName(*static_cast<const Model*>(context), id);
}

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

const char* arn_status_name(arn_status status) { return StatusName(static_cast<Status>(status)); }

uint32_t arn_version(void) {
  return (ARN_VERSION_MAJOR << 16) | (ARN_VERSION_MINOR << 8) | ARN_VERSION_PATCH;
}

arn_status arn_model_open(const char* path, const arn_model_options* options, char* error,
                          size_t error_bytes, arn_model** out_model) {
  if (out_model == nullptr) return ARN_BAD_ARGUMENT;
  *out_model = nullptr;
  Diag diag;
  return Report(OpenPath(path, options, out_model, &diag), diag, error, error_bytes);
}

arn_status arn_model_open_parts(const char* const* paths, size_t n_paths,
                                const arn_model_options* options, char* error, size_t error_bytes,
                                arn_model** out_model) {
  if (out_model == nullptr) return ARN_BAD_ARGUMENT;
  *out_model = nullptr;
  Diag diag;
  return Report(OpenParts(paths, nullptr, n_paths, options, out_model, &diag), diag, error,
                error_bytes);
}

arn_status arn_model_open_fd(int fd, uint64_t offset, uint64_t bytes,
                             const arn_model_options* options, char* error, size_t error_bytes,
                             arn_model** out_model) {
  if (out_model == nullptr) return ARN_BAD_ARGUMENT;
  *out_model = nullptr;
  Diag diag;
  return Report(OpenFd(fd, offset, bytes, options, out_model, &diag), diag, error, error_bytes);
}

arn_status arn_model_open_memory(const void* data, uint64_t bytes, const arn_model_options* options,
                                 char* error, size_t error_bytes, arn_model** out_model) {
  if (out_model == nullptr) return ARN_BAD_ARGUMENT;
  *out_model = nullptr;
  Diag diag;
  return Report(OpenMemory(data, bytes, options, out_model, &diag), diag, error, error_bytes);
}

arn_status arn_model_open_reader(const arn_reader* reader, const arn_model_options* options,
                                 char* error, size_t error_bytes, arn_model** out_model) {
  if (out_model == nullptr) return ARN_BAD_ARGUMENT;
  *out_model = nullptr;
  Diag diag;
  return Report(OpenReader(reader, options, out_model, &diag), diag, error, error_bytes);
}

void arn_model_close(arn_model* model) { CloseModel(ToModel(model)); }

arn_status arn_model_get_info(const arn_model* model, arn_model_info* out_info) {
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  const Model& m = *ToModel(model);
  const fbs::Bundle& index = *m.bundle.index;
  arn_model_info info = ARN_MODEL_INFO_INIT;
  if (m.has_weights) {
    info.architecture = Text(index.model()->architecture());
    info.source_name = Text(index.model()->source_name());
  } else {
    info.architecture = info.source_name = "";
  }
  info.producer = Text(index.producer());
  info.target = Text(index.target());
  info.chat_template = Text(index.chat_template());
  info.chat_template_bytes = index.chat_template() == nullptr ? 0 : index.chat_template()->size();
  info.has_weights = m.has_weights ? 1 : 0;
  info.has_tokenizer = m.tokenizer != nullptr ? 1 : 0;
  info.n_layers = static_cast<uint32_t>(m.spec.layers.size());
  info.hidden = m.spec.hidden;
  info.vocab =
      m.has_weights ? m.spec.vocab : (m.tokenizer != nullptr ? m.tokenizer->n_tokens() : 0);
  info.max_context = m.spec.max_context;
  info.n_parameters = m.spec.n_parameters;
  info.file_bytes = m.bundle.file.size();
  info.weight_bytes = m.spec.weight_bytes;
  info.bos_id = info.pad_id = -1;
  info.temperature = info.top_p = 1.0f;
  info.n_eos_ids = static_cast<uint32_t>(m.eos_ids.size());
  info.eos_ids = m.eos_ids.data();
  info.n_bos_ids = static_cast<uint32_t>(m.bos_ids.size());
  info.bos_ids = m.bos_ids.data();
  if (const fbs::Generation* generation = index.generation()) {
    info.bos_id = generation->bos_id();
    info.pad_id = generation->pad_id();
    info.do_sample = generation->do_sample() ? 1 : 0;
    info.temperature = generation->temperature();
    info.top_k = generation->top_k();
    info.top_p = generation->top_p();
    info.min_p = generation->min_p();
  }
  info.prefix_tokens = static_cast<uint32_t>(m.prefix.ids.size());
  info.encoder_rows = m.spec.encoder.max_rows;
  info.encoder_feature_width = m.spec.encoder.feature_width;
  info.encoder_row_frames = m.spec.encoder.frames.per_row;
  info.encoder_more_frames = m.spec.encoder.frames.more;
  info.encoder_optional_frames = m.spec.encoder.frames.optional;
  info.n_start_ids = static_cast<uint32_t>(m.start_ids.size());
  info.start_ids = m.start_ids.data();
  info.self_test_tokens = static_cast<uint32_t>(m.self_test.ids.size());
  const PoolingSpec& pooling = m.spec.pooling;
  info.makes_text = m.has_weights && m.spec.makes_text ? 1 : 0;
  info.makes_vectors = pooling.exists() && !pooling.is_score ? 1 : 0;
  info.makes_scores = pooling.exists() && pooling.is_score ? 1 : 0;
  return ToC(WriteStruct(info, out_info));
}

arn_status arn_model_get_residency(const arn_model* model, arn_residency* out_residency) {
  if (model == nullptr || out_residency == nullptr) return ARN_BAD_ARGUMENT;
  const ModelBytes& source = ToModel(model)->source;
  PageCounts counts;
  if (!CountPages(source.bytes, &counts)) return ARN_UNSUPPORTED;
  arn_residency out = ARN_RESIDENCY_INIT;
  out.residency = static_cast<uint32_t>(source.residency);
  out.mapped_bytes = source.file.bytes.size();
  out.copied_bytes = source.copy.size();
  out.resident_bytes = counts.resident_bytes;
  out.huge_bytes = counts.huge_bytes;
  out.locked_bytes = counts.locked_bytes;
  return ToC(WriteStruct(out, out_residency));
}

arn_status arn_model_prefix(const arn_model* model, const int32_t** out_ids, uint32_t* out_count) {
  if (out_ids == nullptr || out_count == nullptr) return ARN_BAD_ARGUMENT;
  *out_ids = nullptr;
  *out_count = 0;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  const Span<const int32_t> ids = ToModel(model)->prefix.ids;
  if (ids.empty()) return ARN_NOT_FOUND;
  *out_ids = ids.data();
  *out_count = static_cast<uint32_t>(ids.size());
  return ARN_OK;
}

uint32_t arn_model_tensor_count(const arn_model* model) {
  return model == nullptr ? 0 : static_cast<uint32_t>(ToModel(model)->spec.weights.size());
}

arn_status arn_model_get_tensor(const arn_model* model, uint32_t index, arn_tensor_info* out_info) {
  if (model == nullptr || index >= arn_model_tensor_count(model)) return ARN_BAD_ARGUMENT;
  const Model& m = *ToModel(model);
  const Weight& weight = m.spec.weights[index];
  arn_tensor_info info = ARN_TENSOR_INFO_INIT;
  info.name = TensorName(m, index);
  info.dtype = DTypeName(weight.dtype);
  constexpr const char* kOrders[kWeightOrderCount] = {"rows", "panels", "device rows"};
  info.layout = kOrders[static_cast<uint32_t>(weight.layout.order)];
  info.nr = weight.layout.nr;
  info.kr = weight.layout.kr;
  info.sr = weight.layout.sr;
  info.rows = weight.rows;
  info.cols = weight.cols;
  info.offset = static_cast<uint64_t>(weight.data - m.bundle.file.data());
  info.bytes = weight.bytes;
  info.stored_bits = StoredBits(weight.dtype, weight.rows, weight.cols);
  return ToC(WriteStruct(info, out_info));
}

arn_status arn_program_dump(const arn_model* model, const arn_session_options* options,
                            char* out_text, size_t capacity, size_t* out_bytes) {
  if (model == nullptr || out_bytes == nullptr) return ARN_BAD_ARGUMENT;
  *out_bytes = 0;
  if (out_text == nullptr && capacity > 0) return ARN_BAD_ARGUMENT;
  if (!kHasDescriptions) return ARN_UNSUPPORTED;
  const Model& m = *ToModel(model);
  Diag diag;
  SessionPlan plan;
  const Status status = PlanFromC(m, options, &plan, &diag);
  if (status != Status::kOk) return ToC(status);
  *out_bytes = DumpProgram(plan.program, NameTensor, &m, {out_text, capacity});
  return *out_bytes > capacity ? ARN_BUFFER_TOO_SMALL : ARN_OK;
}

}  // extern "C"

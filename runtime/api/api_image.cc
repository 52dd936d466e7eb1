// Implements arn_image_*.
#include <cstddef>

#include "platform/os/pages.h"
#include "runtime/api/caller_block.h"
#include "runtime/api/count_dispatches.h"
#include "runtime/api/handles.h"
#include "runtime/backends.h"
#include "runtime/model/image_place.h"
#include "runtime/vision/image_encoder.h"
#include "runtime/vision/image_text.h"

namespace arn::api {
namespace {

static_assert(sizeof(arn_image_size) == sizeof(ImageSize) &&
              offsetof(arn_image_size, height) == offsetof(ImageSize, height));
static_assert(sizeof(arn_text_span) == sizeof(TextSpan) &&
              offsetof(arn_text_span, bytes) == offsetof(TextSpan, bytes));

ImageEncoder* ToEncoder(arn_image_encoder* encoder) {
  return reinterpret_cast<ImageEncoder*>(encoder);
}
const ImageEncoder* ToEncoder(const arn_image_encoder* encoder) {
  return reinterpret_cast<const ImageEncoder*>(encoder);
}

Status PlanImages(const Model& model, const arn_image_options* options, ImagePlan* out,
                  Diag* diag) {
  arn_image_options read = ARN_IMAGE_OPTIONS_INIT;
  ARN_TRY(ReadStruct(options, "arn_image_options", &read, diag));
  const BackendTraits traits = FindTraits(static_cast<BackendId>(read.backend));
  if (traits.backend == nullptr && traits.if_missing[0] == '\0') {
    return diag->Fail(Status::kUnsupported, "backend is %u, expected ARN_BACKEND_...",
                      read.backend);
  }
  ImageOptions wanted;
  wanted.max_side = read.max_side;
  wanted.n_threads = read.n_threads;
  wanted.gpu.device = read.device;
  wanted.gpu.folder = read.device_folder;
  wanted.gpu.hardware_only = read.needs_gpu != 0 || traits.hardware_only;
  wanted.trusts_device = read.trust_device != 0;
  const TowerBackends backends = {traits.of_inputs, traits.fallback, SelfTestBackend(),
                                  traits.if_missing};
  return PlanImageEncoder(model, backends, wanted, sizeof(ImageEncoder), out, diag);
}

Status CreateImageEncoder(const Model& model, const arn_image_options* options, void* memory,
                          uint64_t memory_bytes, ImageEncoder** out, Diag* diag) {
  ImagePlan plan;
  ARN_TRY(PlanImages(model, options, &plan, diag));
  CallerBlock block;
  ARN_TRY(FindBlock("image encoder", plan.TotalBytes(), memory, memory_bytes, &block, diag));
  const Status status = ImageEncoder::Create(model, plan, block.block, block.pages, out, diag);
  if (status != Status::kOk) ReleasePages(block.pages);
  return status;
}

Status CountTower(const Model& model, const arn_image_options* options, const arn_gpu_traits* gpu,
                  arn_dispatch_callback callback, void* user, uint32_t* out_rows, Diag* diag) {
  if (!kHasCounts) return RefuseCounts(diag);
  ImagePlan plan;
  ARN_TRY(PlanImages(model, options, &plan, diag));
  const VisionSpec& vision = model.spec.vision;
  CountedRun run;
  run.is_encoder = true;
  run.n_rows = *out_rows = plan.program.max_encoder_rows;
  run.part_rows = vision.window_side * vision.window_side * vision.merged_patches();
  return CountDispatches(*plan.backend, plan.program, gpu, /*has_half=*/false, run, callback, user,
                         diag);
}

Status Measure(const Model& model, ImageSize image, Tiling* out, Diag* diag) {
  if (model.spec.vision.exists()) return MeasureImage(model.spec.vision, image, out, diag);
  return diag->Fail(Status::kUnsupported, "the model takes no images");
}

}  // namespace
}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

arn_status arn_image_get_info(const arn_model* model, arn_image_info* out_info) {
  if (model == nullptr || out_info == nullptr) return ARN_BAD_ARGUMENT;
  const ModelSpec& spec = ToModel(model)->spec;
  if (!spec.vision.exists()) return ARN_UNSUPPORTED;
  arn_image_info info = ARN_IMAGE_INFO_INIT;
  info.width = EmbeddingFloats(spec);
  info.max_embeddings = BoundsOf(spec.vision).most_tokens;
  info.token_id = spec.vision.token_id;
  info.marker = ToModel(model)->bundle.index->model()->vision()->text()->marker()->c_str();
  return ToC(WriteStruct(info, out_info));
}

arn_status arn_image_get_layout(const arn_model* model, uint32_t width, uint32_t height,
                                char* error, size_t error_bytes, arn_image_layout* out_layout) {
  if (model == nullptr || out_layout == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  Tiling tiling;
  Status status = Measure(*ToModel(model), {width, height}, &tiling, &diag);
  if (status == Status::kOk) {
    arn_image_layout layout = ARN_IMAGE_LAYOUT_INIT;
    layout.n_embeddings = ImageTokens(ToModel(model)->spec.vision, tiling);
    layout.n_tiles = tiling.n_tiles();
    layout.tile_rows = tiling.rows;
    layout.tile_cols = tiling.cols;
    status = WriteStruct(layout, out_layout);
  }
  return Report(status, diag, error, error_bytes);
}

arn_status arn_image_text(const arn_model* model, uint32_t width, uint32_t height, char* text,
                          size_t capacity, size_t* out_bytes) {
  if (model == nullptr || out_bytes == nullptr || (text == nullptr && capacity > 0)) {
    return ARN_BAD_ARGUMENT;
  }
  *out_bytes = 0;
  Diag diag;
  Tiling tiling;
  const Status status = Measure(*ToModel(model), {width, height}, &tiling, &diag);
  if (status != Status::kOk) return ToC(status);
  *out_bytes = WriteImageText(*ToModel(model)->bundle.index->model()->vision()->text(),
                              ToModel(model)->spec.vision, tiling, {text, capacity});
  return *out_bytes <= capacity ? ARN_OK : ARN_BUFFER_TOO_SMALL;
}

arn_status arn_image_expand(const arn_model* model, const arn_image_size* images, size_t n_images,
                            const char* text, size_t text_bytes, const arn_text_span* plain,
                            size_t n_plain, char* error, size_t error_bytes, char* out_text,
                            size_t capacity, size_t* out_bytes, arn_text_span* out_plain) {
  if (out_bytes != nullptr) *out_bytes = 0;
  if (model == nullptr || out_bytes == nullptr || (images == nullptr && n_images > 0) ||
      (text == nullptr && text_bytes > 0) || (out_text == nullptr && capacity > 0) ||
      ((plain == nullptr || out_plain == nullptr) && n_plain > 0)) {
    return ARN_BAD_ARGUMENT;
  }
  Diag diag;
  Status status = diag.Fail(Status::kUnsupported, "the model takes no images");
  if (ToModel(model)->spec.vision.exists()) {
    diag.Clear();
    status = ExpandImages(
        *ToModel(model)->bundle.index->model()->vision()->text(), ToModel(model)->spec.vision,
        {reinterpret_cast<const ImageSize*>(images), n_images}, {text, text_bytes},
        {reinterpret_cast<const TextSpan*>(plain), n_plain}, {out_text, capacity}, out_bytes,
        reinterpret_cast<TextSpan*>(out_plain), &diag);
  }
  if (status == Status::kOk && *out_bytes > capacity) return ARN_BUFFER_TOO_SMALL;
  return Report(status, diag, error, error_bytes);
}

arn_status arn_image_count(const arn_model* model, const arn_image_options* options,
                           const arn_gpu_traits* gpu, arn_dispatch_callback callback, void* user,
                           char* error, size_t error_bytes, uint32_t* out_rows) {
  if (model == nullptr || gpu == nullptr || callback == nullptr || out_rows == nullptr) {
    return ARN_BAD_ARGUMENT;
  }
  Diag diag;
  const Status status = CountTower(*ToModel(model), options, gpu, callback, user, out_rows, &diag);
  return Report(status, diag, error, error_bytes);
}

arn_status arn_image_plan(const arn_model* model, const arn_image_options* options, char* error,
                          size_t error_bytes, arn_image_plan_data* out_plan) {
  if (model == nullptr || out_plan == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  ImagePlan plan;
  Status status = PlanImages(*ToModel(model), options, &plan, &diag);
  if (status == Status::kOk) {
    const auto bytes = [&](Region region) { return plan.BlockBytes(region); };
    arn_image_plan_data data = ARN_IMAGE_PLAN_DATA_INIT;
    data.constants_bytes = bytes(Region::kConstants);
    data.repacked_bytes =
        plan.backend_plan.repacked_weight_bytes + plan.fallback_plan.repacked_weight_bytes;
    data.device_bytes = plan.backend_plan.device_bytes;
    data.activations_bytes = bytes(Region::kActivations);
    data.io_bytes = bytes(Region::kIo);
    data.total_bytes = plan.TotalBytes();
    data.alignment = kSliceAlign;
    data.max_side = plan.options.max_side;
    data.n_threads = plan.options.n_threads;
    status = WriteStruct(data, out_plan);
  }
  return Report(status, diag, error, error_bytes);
}

arn_status arn_image_encoder_create(const arn_model* model, const arn_image_options* options,
                                    void* memory, uint64_t memory_bytes, char* error,
                                    size_t error_bytes, arn_image_encoder** out_encoder) {
  if (out_encoder == nullptr) return ARN_BAD_ARGUMENT;
  *out_encoder = nullptr;
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  Diag diag;
  ImageEncoder* encoder = nullptr;
  const Status status =
      CreateImageEncoder(*ToModel(model), options, memory, memory_bytes, &encoder, &diag);
  *out_encoder = reinterpret_cast<arn_image_encoder*>(encoder);
  return Report(status, diag, error, error_bytes);
}

void arn_image_encoder_destroy(arn_image_encoder* encoder) {
  ImageEncoder::Destroy(ToEncoder(encoder));
}

const char* arn_image_encoder_last_error(const arn_image_encoder* encoder) {
  return encoder == nullptr ? "" : ToEncoder(encoder)->diag().text();
}

arn_status arn_image_encoder_backend(const arn_image_encoder* encoder, arn_backend_info* out_info) {
  if (encoder == nullptr || out_info == nullptr) return ARN_BAD_ARGUMENT;
  const TowerRunner& tower = ToEncoder(encoder)->tower();
  arn_backend_info out = ARN_BACKEND_INFO_INIT;
  out.backend = static_cast<uint32_t>(IdOf(tower.backend()));
  out.name = tower.backend().name;
  out.device = tower.device_name();
  out.reason = tower.reason();
  out.kernels = tower.kernel_names();
  out.quirks = tower.quirks();
  out.imported_bytes = tower.imported_bytes();
  return ToC(WriteStruct(out, out_info));
}

void arn_image_encoder_cancel(arn_image_encoder* encoder) {
  if (encoder != nullptr) ToEncoder(encoder)->Cancel();
}

arn_status arn_image_encode(arn_image_encoder* encoder, const arn_image* image, float* out,
                            size_t capacity, uint32_t* out_n_embeddings) {
  if (out_n_embeddings != nullptr) *out_n_embeddings = 0;
  if (encoder == nullptr || image == nullptr || image->pixels == nullptr ||
      out_n_embeddings == nullptr || (out == nullptr && capacity > 0)) {
    return ARN_BAD_ARGUMENT;
  }
  ImageEncoder& e = *ToEncoder(encoder);
  e.diag()->Clear();
  const uint64_t row_bytes = uint64_t{kPixelChannels} * image->width;
  if (image->stride != 0 && image->stride < row_bytes) {
    return ToC(e.diag()->Fail(Status::kBadArgument,
                              "stride is %llu, a row of %u pixels has %llu bytes",
                              static_cast<unsigned long long>(image->stride), image->width,
                              static_cast<unsigned long long>(row_bytes)));
  }
  const ImageView view = {image->pixels, image->width, image->height,
                          image->stride == 0 ? row_bytes : image->stride};
  return ToC(e.Encode(view, {out, capacity}, out_n_embeddings));
}

arn_status arn_image_encoder_get_counts(const arn_image_encoder* encoder,
                                        arn_image_counts* out_counts) {
  if (encoder == nullptr || out_counts == nullptr) return ARN_BAD_ARGUMENT;
  const ImageCounts& counts = ToEncoder(encoder)->counts();
  arn_image_counts out = ARN_IMAGE_COUNTS_INIT;
  out.n_tiles = counts.n_tiles;
  out.n_embeddings = counts.n_rows;
  out.resize_ns = counts.resize_ns;
  out.ns = counts.ns;
  return ToC(WriteStruct(out, out_counts));
}

}  // extern "C"

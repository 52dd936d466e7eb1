#include "runtime/vision/image_plan.h"

#include "platform/base/arith.h"
#include "platform/os/thread_pool.h"
#include "platform/os/topology.h"
#include "runtime/memory/activation_plan.h"
#include "runtime/vision/patches.h"

namespace arn {
namespace {

constexpr Region kBlockOrder[] = {Region::kConstants, Region::kIo, Region::kActivations};

Status ResolveOptions(ImageOptions* options, Diag* diag) {
  if (options->max_side == 0) options->max_side = kDefaultImageSide;
  if (options->max_side > kMostImageSide) {
    return diag->Fail(Status::kBadArgument, "max_side is %u, expected 1 to %u", options->max_side,
                      kMostImageSide);
  }
  if (options->n_threads == 0) {
    options->n_threads = Min(Max(ReadTopology().performance.count(), 1u), kMaxThreads);
  }
  if (options->n_threads <= kMaxThreads) return Status::kOk;
  return diag->Fail(Status::kBadArgument, "n_threads is %u, expected 1 to %u", options->n_threads,
                    kMaxThreads);
}

void CopyProgram(const Model& model, ImagePlan* plan) {
  const VisionSpec& vision = model.spec.vision;
  Program& program = plan->program;
  program = model.vision;
  for (size_t i = 0; i < program.values.size(); ++i) plan->values[i] = program.values[i];
  program.max_rows = 1;
  program.max_encoder_rows = vision.max_patches;
  program.max_pooled_rows = vision.max_patches / vision.merged_patches();
  plan->Bind();
}

}  // namespace

uint64_t ImagePlan::TotalBytes() const {
  uint64_t total = 0;
  for (const Region region : kBlockOrder) total += region_bytes[static_cast<uint32_t>(region)];
  return total;
}

Status PlanImageEncoder(const Model& model, const Backend* backend, const ImageOptions& options,
                        uint64_t object_bytes, ImagePlan* out, Diag* diag) {
  *out = ImagePlan();
  const VisionSpec& vision = model.spec.vision;
  if (!model.has_weights || !vision.exists()) {
    return diag->Fail(Status::kUnsupported,
                      "the model takes no images: its bundle has no vision "
                      "tower");
  }
  if (backend == nullptr || backend->host_kv == nullptr) {
    return diag->Fail(Status::kUnsupported, "image encoders run on the CPU, not on the %s backend",
                      backend == nullptr ? "missing" : backend->name);
  }
  out->options = options;
  out->backend = backend;
  ARN_TRY(ResolveOptions(&out->options, diag));
  out->bounds = BoundsOf(vision);
  CopyProgram(model, out);
  Layout layout;
  ARN_ASSIGN(out->object, layout.Add(Region::kConstants, object_bytes));
  ARN_ASSIGN(out->sequence, layout.Add(Region::kConstants, sizeof(SequenceRows)));
  ARN_ASSIGN(out->taps, layout.AddArray(Region::kConstants,
                                        uint64_t{2} * (vision.position_side + 3), sizeof(double)));
  ARN_ASSIGN(out->rows,
             layout.AddArray(Region::kIo, uint64_t{vision.max_patches} * PatchRowFloats(vision),
                             sizeof(float)));
  ARN_ASSIGN(out->resizer, layout.Add(Region::kIo, Resizer::Bytes(out->options.max_side,
                                                                  out->bounds.longest_side)));
  ARN_ASSIGN(out->whole, layout.Add(Region::kIo, out->bounds.whole_bytes));
  ARN_ASSIGN(out->grid, layout.Add(Region::kIo, out->bounds.grid_bytes));
  ARN_TRY(PlanActivations(out->program, &layout));
  BackendOptions backend_options;
  backend_options.cpu.n_threads = backend_options.cpu.n_prefill_threads = out->options.n_threads;
  ARN_TRY(backend->plan(out->program, backend_options, &layout, &out->backend_plan, diag));
  for (uint32_t r = 0; r < kRegionCount; ++r) {
    out->region_bytes[r] = layout.RegionBytes(static_cast<Region>(r));
  }
  return Status::kOk;
}

Memory PartitionBlock(const ImagePlan& plan, std::byte* block) {
  Memory memory;
  uint64_t offset = 0;
  for (const Region region : kBlockOrder) {
    const uint64_t bytes = plan.region_bytes[static_cast<uint32_t>(region)];
    memory.region[static_cast<uint32_t>(region)] = {block + offset, static_cast<size_t>(bytes)};
    offset += bytes;
  }
  return memory;
}

}  // namespace arn

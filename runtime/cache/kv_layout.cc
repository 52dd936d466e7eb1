#include "runtime/cache/kv_layout.h"

#include "kernels/contract/kv_page.h"
#include "kernels/contract/kv_type.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

// Places pages of known size. Pools are whole OS pages, so that a file can be mapped over them, and
// by_layer so is each layer's part. Page sizes are below 2^50 and counts below 2^32, so the product
// may exceed 64 bits.
Status PlacePool(uint32_t n_pages, uint32_t n_layers, bool by_layer, Layout* layout, KvPages* out,
                 Diag* diag) {
  out->n_pages = n_pages;
  out->page_bytes = out->layer_bytes * n_layers;
  uint64_t bytes = 0;
  bool fits = CheckedMul(n_pages, out->page_bytes, &bytes);
  out->page_stride = out->page_bytes;
  out->layer_stride = out->layer_bytes;
  if (kHasKvFiles && by_layer && fits) {
    out->page_stride = out->layer_bytes;
    out->layer_stride = AlignUp(n_pages * out->layer_bytes, kRegionAlign);
    fits = CheckedMul(n_layers, out->layer_stride, &bytes);
  }
  Result<Slice> pool =
      fits ? layout->Add(Region::kKv, bytes, kRegionAlign) : Result<Slice>(Status::kOutOfMemory);
  if (!pool.ok()) {
    return diag->Fail(pool.status(), "%u KV pages of %llu bytes do not fit the address space",
                      n_pages, static_cast<unsigned long long>(out->page_bytes));
  }
  out->pool = pool.value();
  return Status::kOk;
}

// Plans one type of page and its pool.
Status PlanPages(const KvGroup& group, uint32_t k_bits, uint32_t v_bits, uint32_t n_pages,
                 bool by_layer, Layout* layout, KvPages* out, Diag* diag) {
  // The model's limits (heads <= 2^12, head_dim <= 2^10, page <= 2^10, layers <= 2^12) keep a page
  // below 2^50 bytes.
  const uint64_t heads = group.n_kv_heads;
  const uint64_t k = AlignUp(heads * KvValueBytes(group, group.k_type, k_bits), kSliceAlign);
  const uint64_t v_heads = group.keys_only ? 0 : heads;
  const uint64_t v = AlignUp(v_heads * KvValueBytes(group, group.v_type, v_bits), kSliceAlign);
  const uint64_t k_scale =
      AlignUp(heads * KvScaleBytes(group, true, group.k_type, k_bits), kSliceAlign);
  const uint64_t v_scale =
      AlignUp(v_heads * KvScaleBytes(group, false, group.v_type, v_bits), kSliceAlign);
  out->v_offset = k;
  out->k_scale_offset = k + v;
  out->v_scale_offset = k + v + k_scale;
  out->layer_bytes = k + v + k_scale + v_scale;
  return PlacePool(n_pages, group.n_layers, by_layer, layout, out, diag);
}

}  // namespace

Status PlanKvGroup(uint32_t n_layers, uint32_t n_kv_heads, uint32_t head_dim,
                   const KvOptions& options, Layout* layout, KvGroup* out, Diag* diag) {
  *out = KvGroup();
  if (!IsActivePageType(options.k_type) || !IsActivePageType(options.v_type)) {
    return diag->Fail(Status::kUnsupported, "KV types %s and %s: f32, f16 and int8 are supported",
                      DTypeName(options.k_type), DTypeName(options.v_type));
  }
  out->k_type = options.k_type;
  out->v_type = options.keys_only ? options.k_type : options.v_type;
  out->keys_only = options.keys_only;
  out->n_layers = n_layers;
  out->n_kv_heads = n_kv_heads;
  out->head_dim = head_dim;
  out->page_tokens = options.page_tokens;
  ARN_TRY(PlanPages(*out, 0, 0, options.n_pages, options.by_layer, layout, &out->active, diag));
  if (options.n_quantised_pages == 0) return Status::kOk;
  out->quantised_k_bits = options.k_bits;
  out->quantised_v_bits = options.v_bits;
  out->group_size = options.group_size;
  out->k_by_token = options.k_by_token;
  out->v_by_channel = options.v_by_channel;
  return PlanPages(*out, options.k_bits, options.v_bits, options.n_quantised_pages,
                   options.by_layer, layout, &out->quantised, diag);
}

Status PlanEncoderGroup(uint32_t n_layers, uint32_t n_kv_heads, uint32_t head_dim,
                        const KvOptions& options, Layout* layout, KvGroup* out, Diag* diag) {
  ARN_TRY(PlanKvGroup(n_layers, n_kv_heads, head_dim, options, layout, out, diag));
  out->is_encoder = true;
  return Status::kOk;
}

Status PlanStateGroup(uint32_t n_layers, uint32_t state_floats, uint32_t n_slots, Layout* layout,
                      KvGroup* out, Diag* diag) {
  *out = KvGroup();
  out->n_layers = n_layers;
  out->page_tokens = kStatePageTokens;
  out->state_floats = state_floats;
  out->active.layer_bytes = AlignUp(uint64_t{state_floats} * sizeof(float), kSliceAlign);
  return PlacePool(n_slots, n_layers, false, layout, &out->active, diag);
}

}  // namespace arn

#include "runtime/cache/kv_layout.h"

#include "kernels/kv_page.h"
#include "platform/base/arith.h"

namespace arn {
namespace {

bool IsPageType(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kInt8;
}

// Pages of known size. They are whole OS pages, so that a file can be mapped over the pool. Below
// 2^50 * 2^32 the product may leave 64 bits.
Status PlacePool(uint32_t n_pages, Layout* layout, KvPages* out, Diag* diag) {
  out->n_pages = n_pages;
  uint64_t bytes = 0;
  const bool fits = CheckedMul(n_pages, out->page_bytes, &bytes);
  Result<Slice> pool =
      fits ? layout->Add(Region::kKv, bytes, kRegionAlign) : Result<Slice>(Status::kOutOfMemory);
  if (!pool.ok()) {
    return diag->Fail(pool.status(), "%u KV pages of %llu bytes do not fit the address space",
                      n_pages, static_cast<unsigned long long>(out->page_bytes));
  }
  out->pool = pool.value();
  return Status::kOk;
}

// One kind of page and its pool.
Status PlanPages(const KvGroup& group, uint32_t k_bits, uint32_t v_bits, uint32_t n_pages,
                 Layout* layout, KvPages* out, Diag* diag) {
  // The model's bounds (heads <= 2^12, head_dim <= 2^10, page <= 2^10, layers <= 2^12) keep a page
  // below 2^50 bytes.
  const uint64_t heads = group.n_kv_heads;
  const uint64_t k = AlignUp(heads * KvValueBytes(group, group.k_type, k_bits), kSliceAlign);
  const uint64_t v = AlignUp(heads * KvValueBytes(group, group.v_type, v_bits), kSliceAlign);
  const uint64_t k_scale =
      AlignUp(heads * KvScaleBytes(group, true, group.k_type, k_bits), kSliceAlign);
  const uint64_t v_scale =
      AlignUp(heads * KvScaleBytes(group, false, group.v_type, v_bits), kSliceAlign);
  out->v_offset = k;
  out->k_scale_offset = k + v;
  out->v_scale_offset = k + v + k_scale;
  out->layer_bytes = k + v + k_scale + v_scale;
  out->page_bytes = out->layer_bytes * group.n_layers;
  return PlacePool(n_pages, layout, out, diag);
}

}  // namespace

Status PlanKvGroup(uint32_t n_layers, uint32_t n_kv_heads, uint32_t head_dim,
                   const KvOptions& options, Layout* layout, KvGroup* out, Diag* diag) {
  *out = KvGroup();
  if (!IsPageType(options.k_type) || !IsPageType(options.v_type)) {
    return diag->Fail(Status::kUnsupported, "KV types %s and %s: f32, f16 and int8 are supported",
                      DTypeName(options.k_type), DTypeName(options.v_type));
  }
  out->k_type = options.k_type;
  out->v_type = options.v_type;
  out->n_layers = n_layers;
  out->n_kv_heads = n_kv_heads;
  out->head_dim = head_dim;
  out->page_tokens = options.page_tokens;
  ARN_TRY(PlanPages(*out, 0, 0, options.n_pages, layout, &out->open, diag));
  if (options.n_sealed_pages == 0) return Status::kOk;
  out->sealed_k_bits = options.k_bits;
  out->sealed_v_bits = options.v_bits;
  out->group_size = options.group_size;
  return PlanPages(*out, options.k_bits, options.v_bits, options.n_sealed_pages, layout,
                   &out->sealed, diag);
}

Status PlanSourceGroup(uint32_t n_layers, uint32_t n_kv_heads, uint32_t head_dim,
                       const KvOptions& options, Layout* layout, KvGroup* out, Diag* diag) {
  ARN_TRY(PlanKvGroup(n_layers, n_kv_heads, head_dim, options, layout, out, diag));
  out->is_source = true;
  return Status::kOk;
}

Status PlanStateGroup(uint32_t n_layers, uint32_t state_floats, uint32_t n_slots, Layout* layout,
                      KvGroup* out, Diag* diag) {
  *out = KvGroup();
  out->n_layers = n_layers;
  out->page_tokens = kStatePageTokens;
  out->state_floats = state_floats;
  out->open.layer_bytes = AlignUp(uint64_t{state_floats} * sizeof(float), kSliceAlign);
  out->open.page_bytes = out->open.layer_bytes * n_layers;
  return PlacePool(n_slots, layout, &out->open, diag);
}

}  // namespace arn

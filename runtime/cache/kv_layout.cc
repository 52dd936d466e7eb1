#include "runtime/cache/kv_layout.h"

#include "platform/base/arith.h"

namespace arn {

Status PlanKvGroup(uint32_t n_layers, uint32_t n_kv_heads, uint32_t head_dim,
                   const KvOptions& options, Layout* layout, KvGroup* out, Diag* diag) {
  *out = KvGroup();
  if (options.dtype != DType::kF32 && options.dtype != DType::kF16 &&
      options.dtype != DType::kInt8) {
    return diag->Fail(Status::kUnsupported, "KV type %s: f32, f16 and int8 are supported",
                      DTypeName(options.dtype));
  }
  out->dtype = options.dtype;
  out->n_layers = n_layers;
  out->n_kv_heads = n_kv_heads;
  out->head_dim = head_dim;
  out->page_tokens = options.page_tokens;
  out->n_pages = options.n_pages;

  // The model's bounds (heads <= 2^12, head_dim <= 2^10, page <= 2^10, layers <= 2^12) keep a page
  // below 2^50 bytes.
  const uint64_t rows = uint64_t{n_kv_heads} * options.page_tokens;
  const uint64_t block = AlignUp(rows * head_dim * ElementBytes(options.dtype), kSliceAlign);
  const uint64_t scale_block =
      options.dtype == DType::kInt8 ? AlignUp(rows * sizeof(float), kSliceAlign) : 0;
  out->v_offset = block;
  out->k_scale_offset = 2 * block;
  out->v_scale_offset = 2 * block + scale_block;
  out->layer_bytes = 2 * block + 2 * scale_block;
  out->page_bytes = out->layer_bytes * n_layers;
  // Whole OS pages, so that a file can be mapped over the pool. Below 2^50 * 2^32 the product may
  // leave 64 bits.
  uint64_t bytes = 0;
  const bool fits = CheckedMul(out->n_pages, out->page_bytes, &bytes);
  Result<Slice> pool =
      fits ? layout->Add(Region::kKv, bytes, kRegionAlign) : Result<Slice>(Status::kOutOfMemory);
  if (!pool.ok()) {
    return diag->Fail(pool.status(), "%u KV pages of %llu bytes do not fit the address space",
                      out->n_pages, static_cast<unsigned long long>(out->page_bytes));
  }
  out->pool = pool.value();
  return Status::kOk;
}

}  // namespace arn

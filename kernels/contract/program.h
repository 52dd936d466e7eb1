// Program: a model's forward pass as a list of coarse steps. The runtime builds it from a bundle's
// layer types; the backends run it. Plain data: no pointers to code.
#pragma once

#include <cstdint>

#include "kernels/contract/kv_view.h"
#include "kernels/contract/step.h"
#include "kernels/contract/weight.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn {

// Limits that size the kernels' scratch buffers.
inline constexpr uint32_t kMaxHeadDim = 1024;
inline constexpr uint32_t kMaxConvTaps = 64;
inline constexpr uint32_t kMaxScanStates = 256;
inline constexpr uint32_t kXieluParameters = 4;
inline constexpr uint32_t kNoRope = UINT32_MAX;
inline constexpr uint32_t kNoGroup = UINT32_MAX;

// An activation: [rows, width] f32, row-major. Row stride is width.
//
// Layers of different head counts or feed-forward widths use values of different widths. Only the
// widest has bytes of its own; the others are views: dense rows at the start of its bytes.
struct Value {
  const char* name = nullptr;
  uint32_t width = 0;
  uint16_t row_factor = 1;     // rows per row of a run
  uint16_t more_rows = 0;      // besides those
  bool is_encoder = false;     // written by the encoder steps
  bool is_pooled = false;      // has a row per pooled row of a run (Program::pool_rows)
  ValueId view_of = kNoValue;  // an earlier value, at least as wide; kNoValue: has its own bytes
  uint32_t first_step = 0;     // step that writes it first; in a view, those of view_of
  uint32_t last_step = 0;      // step that reads it last
  Slice slice;                 // Region::kActivations, placed by the memory plan
};

// Attention parameters of a layer besides its weights. Layers of the same type share one entry.
struct AttentionKind {
  uint32_t n_heads = 0;     // 0: the layers have no attention, all other fields are ignored
  uint32_t n_kv_heads = 0;  // divides n_heads
  uint32_t head_dim = 0;
  uint32_t window = 0;           // a query at p sees keys at p - window + 1 .. p; 0: all up to p
  uint32_t chunk = 0;            // a query at p sees no key before p - p % chunk; 0: no chunks
  float attention_scale = 0.0f;  // multiplies q.k
  float softcap = 0.0f;          // a score s then becomes softcap * tanh(s / softcap); 0: off
  uint32_t rope = 0;             // index into Program::ropes, or kNoRope: no rotation
  uint32_t group = 0;            // index into Program::kv_groups, or kNoGroup (kSelfAttention only)
  // q at position p is multiplied by 1 + query_temperature * log(1 + floor((p +
  // query_temperature_shift) / query_temperature_step)). 0: off.
  float query_temperature = 0.0f;
  uint32_t query_temperature_step = 0;
  uint32_t query_temperature_shift = 1;
  bool qk_norm_follows_rope = false;  // norms per head come after the rotation
  float qkv_clip = 0.0f;  // q, k and v are first clamped to [-qkv_clip, qkv_clip]; norms that span
                          // heads come before. 0: off
  // Cross-attention: keys and values come from the encoder output, and every query sees all of
  // them. The group has one page per sequence, large enough for the whole encoder output. window,
  // chunk and rope are ignored.
  bool is_cross_attention = false;
  // kSelfAttention: a query at p sees no key after p. Else the window reaches both ways: p - window
  // + 1 .. p + window - 1.
  bool is_causal = false;
  // kSelfAttention: rows see those of their part alone (RunArgs::parts).
  bool has_parts = false;
};

// Returns the rows [first, end) that row p of `rows` sees in kSelfAttention.
struct SeenRows {
  uint32_t first, end;
};
SeenRows RowsSeen(const AttentionKind& kind, uint32_t p, uint32_t rows);

// Returns the kind for kStoreKv, which is kQkvRope on rows without queries.
AttentionKind WithoutQueries(AttentionKind kind);

// Returns the factor applied to q at `position` (transformers: attn_temperature_tuning, with
// attn_scale and floor_scale).
float QueryTemperature(const AttentionKind& kind, uint32_t position);

// Positions of a row that a RoPE may turn by: of an image's token they are its time, row and
// column.
inline constexpr uint32_t kRopeAxes = 3;

// RoPE with half-split pairs: element i is paired with element i + rotary_dim / 2. The angle of
// pair i at position p is p * inv_freq[i], in f32 as transformers computes it. cos and sin are
// multiplied by `amplitude` (YaRN's attention factor, otherwise 1).
struct RopeKind {
  uint32_t rotary_dim = 0;  // even, <= head_dim; elements past it are not rotated
  float amplitude = 1.0f;
  Span<const float> inv_freq;  // [rotary_dim / 2]
  // [rotary_dim / 2], each below kRopeAxes: pair i turns by that of the row's axis_positions
  // (RunArgs). Empty: all pairs turn by the row's position in its text.
  Span<const uint8_t> axes;
};

struct Program {
  Span<const Step> steps;
  Span<Value> values;
  Span<const Weight> weights;
  // The bundle that the weights are part of: readable as long as the program. Empty: each weight by
  // itself.
  Span<const std::byte> file;
  Span<const AttentionKind> kinds;
  Span<const RopeKind> ropes;
  Span<const KvGroup> kv_groups;
  uint32_t vocab = 0;
  uint32_t max_rows = 0;        // max tokens per run (the prefill chunk)
  uint32_t max_logit_rows = 0;  // max logit rows per run; <= max_rows
  uint32_t max_context = 0;     // positions are below this
  // The first n_encoder_steps steps are the encoder: they run once per sequence, on all its encoder
  // rows. The remaining steps run on the sequence's tokens.
  uint32_t n_encoder_steps = 0;
  uint32_t max_encoder_rows = 0;
  // Encoder runs that pool: most pooled rows of a run, and how many neighbouring rows become one of
  // them. 0: all rows of a sequence become one.
  uint32_t max_pooled_rows = 0;
  uint32_t pool_rows = 0;
  // Quantises the rows multiplied by integer weights to int8 twice: the rows, then the residual.
  // False: once.
  bool splits_rows = false;
  uint32_t max_rank = 0;  // of the adapters' changes; 0: no kAdapt steps
  // Rows of the last layer, as a rule behind the final norm, which the last step leaves for the
  // caller; kNoValue: none.
  ValueId final_rows = kNoValue;
  Slice logits;  // Region::kIo, [max_logit_rows, vocab] f32
};

// Return the steps of a run, and the maximum number of rows of a value.
Span<const Step> StepsOf(const Program& program, bool is_encoder);
uint64_t MaxRowsOf(const Program& program, const Value& value);

// Returns the rows of a value that is not pooled in a run of n_rows.
inline uint32_t RowsOf(const Value& value, uint32_t n_rows) {
  return n_rows * value.row_factor + value.more_rows;
}

// Returns the value that a program without logits ends with.
ValueId ResultOf(const Program& program);

// Returns the rows of a step per row of a run: those of its output, or of the value it works on in
// place.
uint32_t RowFactorOf(const Program& program, const Step& step);

// Returns the rows of a step that is not pooled in a run of n_rows.
uint32_t RowsOf(const Program& program, const Step& step, uint32_t n_rows);

// True if q norm and k norm each span all heads.
bool NormsSpanHeads(const Program& program, const QkvRopeParams& params);

}  // namespace arn

// From a program's steps to dispatches.
#pragma once

#include <cstdint>

#include "kernels/program.h"
#include "kernels/vulkan/device_weight.h"
#include "kernels/vulkan/dispatch.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn::vulkan {

// What the lowered program works on besides the program's own values.
struct Workspace {
  Slice quantized;  // kActivations: zero point and scale of each row, then its values
  Slice normed;     // kActivations: what the head multiplies
  Slice partials;   // kActivations: of attention that is shared out (segments.h)
};

// What decides how the program is lowered: of the device, which makes no difference to how many
// dispatches there are, and what tests choose.
struct Traits {
  uint32_t n_windows = 1;      // on the KV region
  uint32_t window_shift = 31;  // words of a window, as a power of two
  uint32_t subgroup_size = 0;  // 0: there are none
  uint32_t segment_positions = kAttentionSegment;
};

class Lowering {
 public:
  // weights: those of the program, then its ropes'; empty: where they lie is of no interest yet.
  Lowering(const Program& program, Span<const DeviceWeight> weights, const Workspace& workspace,
           const Traits& traits)
      : program_(program), weights_(weights), workspace_(workspace), traits_(traits) {}

  // kUnsupported with what it is, when a step is one that this backend has no shaders for. Does
  // nothing else but call the sink.
  Status Run(DispatchSink* sink, Diag* diag);

  // Rows of weights that fit one binding.
  static uint32_t SliceRows(uint32_t row_bytes);
  // Words of a quantised row of so many columns.
  static uint32_t QuantizedWords(uint32_t cols);

 private:
  Status LowerStep(const Step& step);
  Status LowerEmbed(const Step& step);
  Status LowerNorm(const Step& step);
  Status LowerLinear(const Step& step);
  Status LowerLogits(const Step& step);
  Status LowerQkvRope(const Step& step);
  Status LowerAttention(const Step& step);
  Status LowerAct(const Step& step);
  Status LowerRopeAngles(const Step& step);
  Status LowerEdits(uint32_t group);

  // What the products of one step have in common.
  struct Product;
  Status AddQuantize(const Product& product);
  Status AddProducts(const Product& product);
  Status AddProduct(const Product& product, Mode kernel, uint32_t first_out, uint32_t n_outs);
  Status AddHeadNorm(const Step& step, WeightId weight, uint32_t first, uint32_t n);

  Dispatch Begin(Shader shader, const Step& step) const;
  // Binds `place` and puts where it begins into the push constants. binding: 1 to 5.
  void Bind(Dispatch* dispatch, uint32_t binding, Place place) const;
  void BindValue(Dispatch* dispatch, uint32_t binding, ValueId id) const;
  void BindVector(Dispatch* dispatch, uint32_t binding, WeightId id) const;
  void BindKv(Dispatch* dispatch, const KvGroup& group) const;
  Place PlaceOf(Slice slice) const;
  DeviceWeight WeightAt(WeightId id) const;
  Status Unsupported(const Step& step, const char* what);
  uint32_t Width(ValueId id) const { return program_.values[id].width; }

  const Program& program_;
  Span<const DeviceWeight> weights_;
  const Workspace& workspace_;
  const Traits traits_;
  DispatchSink* sink_ = nullptr;
  Diag* diag_ = nullptr;
};

}  // namespace arn::vulkan

// From a program's steps to dispatches.
#pragma once

#include <cstdint>

#include "kernels/program.h"
#include "kernels/vulkan/device_weight.h"
#include "kernels/vulkan/dispatch.h"
#include "kernels/vulkan/product_variants.h"
#include "platform/base/layout.h"
#include "platform/base/span.h"

namespace arn::vulkan {

// What the lowered program works on besides the program's own values.
struct Workspace {
  Slice quantized;  // kActivations: zero point and scale of each row, then its values
  Slice normed;     // kActivations: what the head multiplies
  Slice experts;    // kActivations: what kExperts makes on the way (expert_space.h)
  Slice partials;   // kActivations: of attention that is shared out (segments.h)
};

// What decides how the program is lowered: of the device, which makes no difference to how many
// dispatches there are, and what tests choose.
struct Traits {
  uint32_t n_windows = 1;      // on the KV region
  uint32_t window_shift = 31;  // words of a window, as a power of two
  ProductTraits products;
  ProductChoices choices;       // those that are not usable are as the first
  uint32_t choice_width = 128;  // invocations that choose a token together
  uint32_t segment_positions = kAttentionSegment;
};

// Whether there are logits that a token can be chosen from.
bool HasChoice(const Program& program);

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
  // Words of the zero points and scales of so many quantised rows, and of the values of one.
  static uint32_t QuantizedHeadWords(uint64_t rows);
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
  Status LowerRoute(const Step& step);
  Status LowerExperts(const Step& step);
  Status LowerConv(const Step& step);
  Status LowerScan(const Step& step);
  Status LowerUnfold(const Step& step);
  Status LowerAddPositions(const Step& step);
  Status CheckSourcePages(const Step& step, const KvGroup& group);
  Status LowerEdits(uint32_t group);
  // n_dispatches: those of the steps.
  Status LowerChoice(uint32_t n_dispatches);

  // What the products of one step have in common.
  struct Product;
  Status AddQuantize(const Product& product);
  Status AddProducts(const Product& product);
  Dispatch ProductOf(const Product& product, Mode kernel, uint32_t first_out,
                     uint32_t n_outs) const;
  uint32_t VariantFor(Mode kernel, DType dtype) const;
  // The constants and the grid of a product, as its variant has them.
  void SetOutputs(Mode kernel, DType dtype, uint32_t n_outs, Dispatch* d) const;
  void SetTile(DType dtype, uint32_t n_outs, Dispatch* d) const;
  Status AddProduct(const Product& product, Mode kernel, uint32_t first_out, uint32_t n_outs);
  Status AddHeadNorm(const Step& step, WeightId weight, uint32_t first, uint32_t n);
  // [gate | up] -> n of their product; without an `in`, in place. Rows for each row of a run.
  Status AddActivation(const Step& step, Place in, Place out, uint32_t n, uint32_t row_factor);

  // Experts that are bound together, and the bytes from one's matrix to the next one's.
  struct BoundExperts {
    uint32_t first = 0, n = 0;
    uint64_t stride = 0;
  };
  Place ExpertPart(uint64_t offset, uint64_t bytes) const;
  BoundExperts ExpertsFrom(const Step& step, uint32_t first, bool is_down);
  Status AddExpertProduct(const Product& product, const BoundExperts& bound, Mode kernel,
                          uint32_t first_out, uint32_t n_outs);
  Status AddExpertProducts(Product product, bool is_down);
  Status AddExpertPart(const Step& step, uint32_t part, Place in, Place out);

  Dispatch Begin(Shader shader, const Step& step) const;
  // Binds `place` and puts where it begins into the push constants. binding: 1 to 5.
  void Bind(Dispatch* dispatch, uint32_t binding, Place place) const;
  void BindValue(Dispatch* dispatch, uint32_t binding, ValueId id) const;
  void BindVector(Dispatch* dispatch, uint32_t binding, WeightId id) const;
  void BindKv(Dispatch* dispatch, const KvGroup& group) const;
  void PutState(const Step& step, Dispatch* dispatch) const;
  Place PlaceOf(Slice slice) const;
  // Before the weights have places, all but where it lies.
  DeviceWeight WeightAt(WeightId id) const;
  // Where it lies too; slow unless ids are asked for in their order.
  DeviceWeight PlacedAt(WeightId id);
  Status Unsupported(const Step& step, const char* what);
  uint32_t Width(ValueId id) const { return program_.values[id].width; }

  const Program& program_;
  Span<const DeviceWeight> weights_;
  const Workspace& workspace_;
  const Traits traits_;
  DispatchSink* sink_ = nullptr;
  Diag* diag_ = nullptr;
  // Of PlacedAt(): the weights before n_placed_ have places, the last of them this one.
  WeightPlacer placer_;
  uint32_t n_placed_ = 0;
  DeviceWeight placed_;
};

}  // namespace arn::vulkan

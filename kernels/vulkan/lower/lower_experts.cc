// Lowers mixtures of experts. Only the device has the routing, so all experts are bound: as many
// per dispatch as fit in a binding of 128 MiB. Few rows: each (row, expert) pair is a workgroup's
// row, which looks up its expert. Many rows: each expert multiplies the rows of its list in tiles,
// and empty tiles return at once.
#include "kernels/vulkan/lower/expert_space.h"
#include "kernels/vulkan/lower/matmul.h"

namespace arn::vulkan {
namespace {

constexpr uint32_t kMaxGroups = 65535;  // per grid dimension, on every device
constexpr uint32_t kOneRow = 1u << 30;  // one tile for all rows of a run

}  // namespace

ExpertSpace ExpertSpaceOf(const Program& program) {
  ExpertSpace space;
  for (const Step& step : program.steps) {
    const auto* p = step.If<ExpertsParams>();
    if (p == nullptr) continue;
    const auto width = [&](ValueId value) { return program.values[value].width; };
    const uint64_t row_bytes = uint64_t{program.max_rows} * p->n_chosen * sizeof(float);
    const uint32_t wide = Max(width(p->gate_up), width(p->expert_out));
    const uint32_t input = p->weighs_input ? width(p->gathered) : 0;
    const uint64_t words =
        ExpertLengthWords(p->n_experts) + uint64_t{p->n_experts} * program.max_rows;
    space.wide_bytes = Max(space.wide_bytes, row_bytes * wide);
    space.product_bytes = Max(space.product_bytes, row_bytes * Max(width(p->activated), input));
    space.list_bytes = Max<uint64_t>(space.list_bytes, words * sizeof(uint32_t));
  }
  return space;
}

Status Lowering::Lower(const Step& step, const RouteParams& p) {
  if (p.route_score == RouteScore::kSparseMixer) {
    return UnsupportedError(step, "routing by a sparse mixer");
  }
  Dispatch d = Begin(Shader::kRoute, step);
  d.constants[kRouteIsSigmoidId] = p.route_score == RouteScore::kSigmoid ? 1 : 0;
  d.constants[kRouteNormTopkProbId] = p.norm_topk_prob ? 1 : 0;
  d.constants[kRouteHasCorrectionId] = p.correction == kNoWeight ? 0 : 1;
  d.constants[kRouteHasGroupsId] = p.n_groups == 0 ? 0 : 1;
  BindValue(&d, 1, step.in);
  BindValue(&d, 2, step.out);
  BindVector(&d, 3, p.correction);
  RoutePush push = {};
  push.epsilon = p.topk_epsilon;
  push.least = p.topk_least;
  push.n_experts = p.n_experts;
  push.n_chosen = p.n_chosen;
  push.n_groups = p.n_groups;
  push.n_groups_chosen = p.n_groups_chosen;
  d.SetPush(push);
  return Add(d);
}

// Keeps each binding inside one part, so that dispatches on different parts need no barrier.
Place Lowering::ExpertPart(uint64_t offset, uint64_t bytes) const {
  const uint64_t first = AlignUp(workspace_.experts.offset, Device::kBindingAlign);
  return {Home::kActivations, 0, first + offset, bytes};
}

Status Lowering::AddExpertMatmul(const Matmul& matmul, const ExpertsParams& p,
                                 const BoundMatrices& bound, Mode kernel, uint32_t first_out,
                                 uint32_t n_outs) {
  const DeviceWeight at = WeightAt(matmul.weight);
  const bool is_integer = IsInteger(program_.weights[matmul.weight]);
  const bool is_tiled = kernel == Mode::kMany;
  const ExpertSpace space = ExpertSpaceOf(program_);
  Dispatch d = MatmulOf(matmul, kernel, first_out, n_outs);
  d.joins_previous = bound.first != 0 || first_out != 0;
  if (is_tiled) {
    d.row_factor = 1;
    d.groups_z = bound.n;
  } else {
    d.modes = BitOf(Mode::kOne) | BitOf(Mode::kFew);
  }
  d.constants[kMatmulChosenId] = p.n_chosen;
  const uint64_t others = (bound.n - 1) * bound.stride;
  Bind(&d, 3,
       {Home::kWeights, at.block, at.values + uint64_t{first_out} * at.row_bytes,
        uint64_t{n_outs} * at.row_bytes + others});
  Bind(&d, 4, {Home::kWeights, at.block, at.heads, at.heads_bytes + others});
  const Place lists = ExpertPart(space.lists_at(), space.list_bytes);
  Bind(&d, is_integer ? 1 : 5, is_tiled ? lists : PlaceOf(program_.values[p.topk].slice));
  auto push = d.Push<MatmulPush>();
  push.first_expert = bound.first;
  push.n_experts = bound.n;
  push.expert_words = static_cast<uint32_t>(bound.stride / sizeof(uint32_t));
  push.lists_at = ExpertLengthWords(p.n_experts);
  push.list_words = program_.max_rows;
  d.SetPush(push);
  // Assumes that rows are spread evenly over the experts.
  d.work = Max<uint64_t>(d.work * p.n_chosen * bound.n / p.n_experts, 1);
  return Add(d);
}

Status Lowering::AddExpertMatmuls(Matmul matmul, const ExpertsParams& p, bool is_down) {
  for (uint32_t e = 0; e < p.n_experts; ++e) {
    matmul.weight = is_down ? p.down_of(e) : p.gate_up_of(e);
    if (!IsInteger(program_.weights[matmul.weight])) continue;
    Matmul rows = matmul;
    if (rows.rows_an_input > 1) rows.row_factor = 1;
    ARN_TRY(AddQuantize(rows));
    break;
  }
  for (uint32_t first = 0; first < p.n_experts;) {
    const BoundMatrices bound = MatricesFrom(
        first, p.n_experts, [&](uint32_t e) { return is_down ? p.down_of(e) : p.gate_up_of(e); });
    matmul.weight = is_down ? p.down_of(first) : p.gate_up_of(first);
    const Weight& weight = program_.weights[matmul.weight];
    const uint32_t slice = SliceRows(WeightAt(matmul.weight).row_bytes);
    for (uint32_t out = 0; out < weight.rows; out += slice) {
      const uint32_t n_outs = Min(slice, weight.rows - out);
      ARN_TRY(AddExpertMatmul(matmul, p, bound, Mode::kOne, out, n_outs));
      ARN_TRY(AddExpertMatmul(matmul, p, bound, Mode::kMany, out, n_outs));
    }
    first += bound.n;
  }
  return Status::kOk;
}

Status Lowering::AddExpertPart(const Step& step, const ExpertsParams& p, uint32_t part, Place in,
                               Place out) {
  Dispatch d = Begin(Shader::kExperts, step);
  const uint32_t n = part == kExpertsSum ? Width(step.out) : Width(step.in);
  d.constants[kExpertsPartId] = part;
  d.constants[kExpertsIsWeighedId] = p.weighs_input ? 1 : 0;
  d.constants[kExpertsAccumulateId] = p.accumulate ? 1 : 0;
  if (part != kExpertsList) Bind(&d, 1, in);
  Bind(&d, 2, out);
  Bind(&d, 3, PlaceOf(program_.values[p.topk].slice));
  ExpertsPush push = {};
  push.n = n;
  push.n_chosen = p.n_chosen;
  push.lists_at = ExpertLengthWords(p.n_experts);
  push.list_words = program_.max_rows;
  d.SetPush(push);
  d.groups_x = static_cast<uint32_t>(CeilDiv(n, kWidth));
  if (part == kExpertsWeigh) d.row_factor = p.n_chosen;
  if (part == kExpertsList) {
    d.modes = BitOf(Mode::kMany);
    d.row_tile = kOneRow;
    d.groups_x = p.n_experts;
  }
  return Add(d);
}

Status Lowering::Lower(const Step& step, const ExpertsParams& p) {
  if (!p.is_gated && p.weighs_input) {
    return UnsupportedError(step, "experts without a gate whose inputs are weighed");
  }
  const uint64_t pairs = uint64_t{program_.max_rows} * p.n_chosen;
  if (pairs > kMaxGroups) {
    return UnsupportedError(
        step, "more than 65535 rows, counted once per chosen expert: use a smaller prefill_chunk");
  }
  const ExpertSpace space = ExpertSpaceOf(program_);
  const Place wide = ExpertPart(0, space.wide_bytes);
  const Place product = ExpertPart(space.product_at(), space.product_bytes);
  const Place in = PlaceOf(program_.values[step.in].slice);
  ARN_TRY(AddExpertPart(step, p, kExpertsList, {}, ExpertPart(space.lists_at(), space.list_bytes)));
  if (p.weighs_input) ARN_TRY(AddExpertPart(step, p, kExpertsWeigh, in, product));
  Matmul matmul;
  matmul.step = &step;
  matmul.in = p.weighs_input ? product : in;
  // Without a gate the activation is in place: its input may not be where the outputs go.
  matmul.out = p.is_gated ? wide : product;
  matmul.max_rows = pairs;
  matmul.row_factor = p.n_chosen;
  matmul.rows_an_input = p.weighs_input ? 1 : p.n_chosen;
  ARN_TRY(AddExpertMatmuls(matmul, p, false));
  const uint32_t ffn = Width(p.activated);
  ARN_TRY(AddActivation(step, {p.activation, p.activation_limit}, p.is_gated ? wide : Place(),
                        product, ffn, p.n_chosen));
  matmul.in = product;
  matmul.out = wide;
  matmul.rows_an_input = 1;
  ARN_TRY(AddExpertMatmuls(matmul, p, true));
  return AddExpertPart(step, p, kExpertsSum, wide, PlaceOf(program_.values[step.out].slice));
}

}  // namespace arn::vulkan

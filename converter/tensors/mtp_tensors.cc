// Tensors of a multi-token prediction head. Its layers are those of a decoder of its own,
// whose tensors a planner of their own takes from the same checkpoint.
#include "converter/tensors/planner.h"

namespace arn::convert {

// The checkpoint multiplies the embedding and the row, one behind the other, by one matrix: the
// rows of its halves alternate.
MtpTensors Planner::MakeMtp(std::vector<PlannedTensor>* tensors) {
  const TensorNames& names = *spec_.names;
  MtpTensors out;
  const uint32_t first = spec_.first_layer;
  const auto norm = [&](const char* name, const char* stored) {
    return AddVector(name, WeightName(LayerName(stored, first)), spec_.hidden, spec_.norm_offset);
  };
  out.embedding_norm = norm("mtp.embedding_norm", names.mtp_embedding_norm);
  out.hidden_norm = norm("mtp.hidden_norm", names.mtp_hidden_norm);
  SourcePart half;
  half.weight =
      sources_.Take(WeightName(LayerName(names.mtp_fc, first)), {spec_.hidden, 2 * spec_.hidden});
  half.rows = spec_.hidden;
  half.block_rows = 1;
  half.block_stride = 2;
  out.fc_embedding = AddMatrix("mtp.fc_embedding", formats_.weights, true, {half}, spec_.hidden);
  half.first_row = 1;
  out.fc_hidden = AddMatrix("mtp.fc_hidden", formats_.weights, true, {half}, spec_.hidden);
  for (uint32_t i = 0; i < spec_.layer_kinds.size(); ++i) {
    const LayerKindSpec& kind = spec_.kinds[spec_.layer_kinds[i]];
    const LayerScope scope = {i, &names, "mtp.", first};
    LayerTensors layer;
    AddAttention(scope, kind, &layer);
    AddFeedForward(scope, kind, &layer);
    out.layers.push_back(layer);
  }
  out.final_norm = norm("mtp.final_norm", names.final_norm);
  for (const char* copy : {names.mtp_embedding_copy, names.mtp_head_copy}) {
    if (copy != nullptr) sources_.Ignore(WeightName(LayerName(copy, first)));
  }
  if (names.unused_in_layers != nullptr) {
    sources_.LeaveOut(LayerName(names.unused_in_layers, first));
  }
  sources_.FailMissing("", "");
  sources_.RefuseExtra(LayerName(names.mtp_prefix, first));
  *tensors = std::move(plan_.tensors);
  return out;
}

void Planner::AddMtp() {
  if (spec_.mtp == nullptr) return;
  std::vector<PlannedTensor> tensors;
  MtpTensors& mtp = plan_.mtp;
  mtp = Planner(*spec_.mtp, checkpoint_, formats_, warnings_).MakeMtp(&tensors);
  const auto first = static_cast<uint32_t>(plan_.tensors.size());
  for (uint32_t* index : {&mtp.embedding_norm, &mtp.hidden_norm, &mtp.fc_embedding, &mtp.fc_hidden,
                          &mtp.final_norm}) {
    MoveTensor(first, index);
  }
  for (LayerTensors& layer : mtp.layers) MoveLayer(first, &layer);
  for (PlannedTensor& tensor : tensors) plan_.tensors.push_back(std::move(tensor));
  sources_.LeaveOut(LayerName(spec_.mtp->names->mtp_prefix, spec_.mtp->first_layer));
}

}  // namespace arn::convert

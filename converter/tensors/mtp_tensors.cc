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
  const bool is_assistant = spec_.assistant.exists();
  const uint32_t width = is_assistant ? spec_.assistant.decoder_hidden : spec_.hidden;
  if (!is_assistant) {
    out.embedding_norm = norm("mtp.embedding_norm", names.mtp_embedding_norm);
    out.hidden_norm = norm("mtp.hidden_norm", names.mtp_hidden_norm);
  }
  SourcePart half;
  half.weight =
      sources_.Take(WeightName(LayerName(names.mtp_fc, first)), {spec_.hidden, 2 * width});
  half.rows = spec_.hidden;
  half.block_rows = 1;
  half.block_stride = 2;
  out.fc_embedding = AddMatrix("mtp.fc_embedding", formats_.weights, true, {half}, width);
  half.first_row = 1;
  out.fc_hidden = AddMatrix("mtp.fc_hidden", formats_.weights, true, {half}, width);
  for (uint32_t i = 0; i < spec_.layer_kinds.size(); ++i) {
    const LayerKindSpec& kind = spec_.kinds[spec_.layer_kinds[i]];
    const LayerScope scope = {i, &names, "mtp.", first};
    LayerTensors layer;
    AddAttention(scope, kind, &layer);
    AddFeedForward(scope, kind, &layer);
    AddPerLayer(scope, &layer);
    out.layers.push_back(layer);
  }
  out.final_norm = norm("mtp.final_norm", names.final_norm);
  for (const char* copy : {names.mtp_embedding_copy, names.mtp_head_copy}) {
    if (copy != nullptr) sources_.Ignore(WeightName(LayerName(copy, first)));
  }
  if (names.unused_in_layers != nullptr) {
    sources_.LeaveOut(LayerName(names.unused_in_layers, first));
  }
  if (is_assistant) AddAssistant(&out);
  sources_.FailMissing("", "");
  sources_.RefuseExtra(is_assistant ? "" : LayerName(names.mtp_prefix, first));
  *tensors = std::move(plan_.tensors);
  return out;
}

// The rows of its head are stored in the order of the clusters, so that each has its own together.
void Planner::AddAssistant(MtpTensors* out) {
  const AssistantSpec& assistant = spec_.assistant;
  const TensorNames& names = *spec_.names;
  out->out = AddMatrix("mtp.out", formats_.weights, true,
                       {Part("post_projection", assistant.decoder_hidden, spec_.hidden, false)},
                       spec_.hidden);
  SourcePart head;
  head.weight = HeadSource(EmbeddingSource());
  head.rows = spec_.vocab;
  if (assistant.n_clusters != 0) {
    head.row_order = std::make_shared<const std::vector<uint32_t>>(assistant.token_order);
  }
  out->head = AddMatrix("mtp.head", formats_.head, true, {head}, spec_.hidden);
  sources_.Ignore(WeightName(names.embedding));
  if (assistant.n_clusters == 0) return;
  out->clusters =
      AddMatrix("mtp.clusters", formats_.weights, true,
                {Part("masked_embedding.centroids", assistant.n_clusters, spec_.hidden, false)},
                spec_.hidden);
  out->cluster_ids = AddConstant("mtp.cluster_ids", spec_.vocab, 0.0f);
  plan_.tensors[out->cluster_ids].literal.assign(assistant.token_order.begin(),
                                                 assistant.token_order.end());
  sources_.Ignore("masked_embedding.token_ordering");
}

void Planner::AddMtp() {
  if (spec_.mtp == nullptr) return;
  const AssistantSpec& assistant = spec_.mtp->assistant;
  std::vector<PlannedTensor> tensors;
  MtpTensors& mtp = plan_.mtp;
  const Checkpoint& checkpoint = assistant.exists() ? *assistant.checkpoint : checkpoint_;
  mtp = Planner(*spec_.mtp, checkpoint, formats_, warnings_).MakeMtp(&tensors);
  const auto first = static_cast<uint32_t>(plan_.tensors.size());
  mtp.first = first;
  for (uint32_t* index : {&mtp.embedding_norm, &mtp.hidden_norm, &mtp.fc_embedding, &mtp.fc_hidden,
                          &mtp.final_norm, &mtp.out, &mtp.head, &mtp.clusters, &mtp.cluster_ids}) {
    MoveTensor(first, index);
  }
  for (LayerTensors& layer : mtp.layers) MoveLayer(first, &layer);
  for (PlannedTensor& tensor : tensors) plan_.tensors.push_back(std::move(tensor));
  if (assistant.exists()) return;
  sources_.LeaveOut(LayerName(spec_.mtp->names->mtp_prefix, spec_.mtp->first_layer));
}

}  // namespace arn::convert

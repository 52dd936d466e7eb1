#include "runtime/model/read_streams.h"

#include "kernels/contract/streams.h"
#include "platform/base/arith.h"
#include "runtime/bundle/optional_fields.h"
#include "runtime/model/field_checks.h"

namespace arn {
namespace {

[[maybe_unused]] Status FailWithoutStreams(Diag* diag) {
  return diag->Fail(Status::kUnsupported,
                    "model: residual streams: this library is built without (ARENITE_STREAMS)");
}

Status ReadLaurel(const fbs::Layer& layer, uint32_t index, const LayerKind& kind, uint64_t hidden,
                  Shapes* shapes, LayerSpec* out, Diag* diag) {
  if (out->attention_norm == kNoWeight || kind.norm != NormKind::kRms || kind.is_parallel ||
      kind.norms_follow_sum) {
    return diag->Fail(Status::kBadBundle,
                      "layer %u: a low-rank residual without an RMS norm before attention, or in a "
                      "parallel layer",
                      index);
  }
  ARN_TRY(shapes->Matrix("laurel_low", index, layer.laurel_low(), kind.laurel_rank, hidden,
                         &out->laurel_low));
  ARN_TRY(shapes->Matrix("laurel_out", index, layer.laurel_out(), hidden, kind.laurel_rank,
                         &out->laurel_out));
  return shapes->Vector("laurel_norm", index, layer.laurel_norm(), hidden, &out->laurel_norm);
}

}  // namespace

Status ReadStreams(const fbs::Model& model, ModelSpec* out, Diag* diag) {
  StreamsSpec& spec = out->streams;
  if (model.n_streams() == 0) return Status::kOk;
  if constexpr (!kHasStreams) return FailWithoutStreams(diag);
  ARN_TRY(CheckRange("n_streams", model.n_streams(), 0, kMaxStreams, diag));
  ARN_TRY(CheckRange("active_stream", model.active_stream(), 0, model.n_streams() - 1, diag));
  // MatchRms() divides by its root.
  ARN_TRY(CheckFloatRange("stream_epsilon", model.stream_epsilon(), 1e-30f, 1.0f, diag));
  if (model.encoder() != nullptr) {
    return diag->Fail(Status::kUnsupported, "model.n_streams is %u in a model with an encoder",
                      model.n_streams());
  }
  Shapes shapes(out->weights, diag);
  const uint64_t hidden = out->hidden;
  for (uint32_t i = 1; i < model.n_streams(); ++i) {
    const auto at = [&](uint32_t first) {
      return static_cast<uint32_t>(Min<uint64_t>(uint64_t{first} + i - 1, kNoIndex));
    };
    ARN_TRY(shapes.Matrix("stream_in", i, at(model.stream_in()), hidden, hidden));
    ARN_TRY(shapes.Matrix("stream_out", i, at(model.stream_out()), hidden, hidden));
  }
  spec.n = model.n_streams();
  spec.active = model.active_stream();
  spec.in = model.stream_in();
  spec.out = model.stream_out();
  spec.epsilon = model.stream_epsilon();
  return Status::kOk;
}

Status ReadLayerStreams(const fbs::Layer& layer, uint32_t index, const LayerKind& kind,
                        const ModelSpec& spec, Shapes* shapes, LayerSpec* out, Diag* diag) {
  if constexpr (!kHasStreams) {
    return kind.has_low_rank_residual_or_threshold() ? FailWithoutStreams(diag) : Status::kOk;
  }
  const uint64_t hidden = spec.hidden, n = spec.streams.n;
  if (kind.laurel_rank != 0) {
    ARN_TRY(ReadLaurel(layer, index, kind, hidden, shapes, out, diag));
  }
  if (n == 0) return Status::kOk;
  ARN_TRY(shapes->Vector("stream_router_norm", index, layer.stream_router_norm(), hidden,
                         &out->stream_router_norm));
  ARN_TRY(shapes->Matrix("stream_router", index, layer.stream_router(), n, hidden,
                         &out->stream_router));
  ARN_TRY(shapes->Matrix("stream_predict", index, layer.stream_predict(), n * n, n,
                         &out->stream_predict));
  ARN_TRY(
      shapes->Matrix("stream_correct", index, layer.stream_correct(), n, n, &out->stream_correct));
  if (layer.stream_scale() == kNoIndex) return Status::kOk;
  return shapes->Vector("stream_scale", index, layer.stream_scale(), hidden, &out->stream_scale);
}

}  // namespace arn

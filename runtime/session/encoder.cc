#include "runtime/session/encoder.h"

#include <cstring>

#include "runtime/session/timer.h"

namespace arn {

Status Encoder::EncodeIds(Span<const int32_t> ids) {
  const EncoderSpec& encoder = core_.model.spec.encoder;
  if (!encoder.exists() || encoder.feature_width != 0) {
    return core_.diag.Fail(
        Status::kUnsupported, "the model %s",
        encoder.exists() ? "takes features, not tokens, as encoder input" : "has no encoder");
  }
  if (ids.empty() || ids.size() > core_.plan.options.encoder_rows) {
    return core_.diag.Fail(Status::kBadArgument,
                           "encoder input of %zu tokens, expected 1 to encoder_rows %u", ids.size(),
                           core_.plan.options.encoder_rows);
  }
  ARN_TRY(sequences_.CheckIds(ids));
  // Copied because the backend may read the ids after this call returns.
  int32_t* tokens = core_.memory.As<int32_t>(core_.plan.tokens);
  std::memcpy(tokens, ids.data(), ids.size() * sizeof(int32_t));
  return Encode({tokens, ids.size()}, {}, static_cast<uint32_t>(ids.size()));
}

Status Encoder::EncodeFeatures(Span<const float> features, uint32_t n_frames, uint32_t width) {
  const EncoderSpec& encoder = core_.model.spec.encoder;
  if (encoder.feature_width == 0) {
    return core_.diag.Fail(
        Status::kUnsupported, "the model %s",
        encoder.exists() ? "takes tokens, not features, as encoder input" : "has no encoder");
  }
  if (width != encoder.feature_width) {
    return core_.diag.Fail(Status::kBadArgument,
                           "features of %u elements a frame, the model takes %u", width,
                           encoder.feature_width);
  }
  const FrameRule& rule = encoder.frames;
  const uint32_t rows = rule.RowsOf(n_frames), most_rows = core_.plan.options.encoder_rows;
  if (rows == 0 || rows > most_rows || features.size() != uint64_t{n_frames} * width) {
    const auto least = static_cast<unsigned long long>(rule.most(1) - rule.optional);
    const auto most = static_cast<unsigned long long>(rule.most(most_rows));
    return core_.diag.Fail(Status::kBadArgument, "%u frames, expected %llu to %llu, in steps of %u",
                           n_frames, least, most,
                           rule.optional + 1 == rule.per_row ? 1u : rule.per_row);
  }
  return Encode({}, features, rows);
}

Status Encoder::Encode(Span<const int32_t> ids, Span<const float> features, uint32_t rows) {
  const uint32_t selected = sequences_.selected();
  Timer timer(&core_.stats.prefill_ns);
  ARN_TRY(runner_.RunEdits());
  sequences_.At(selected).n_pending = 0;
  logits().Drop(selected);
  cache().TakeEncoderRows(selected, rows);
  auto* sequence = core_.memory.As<SequenceRows>(core_.plan.rows);
  *sequence = {0, rows, 0, cache().tables(selected), rows};
  RunArgs args;
  args.is_encoder = true;
  args.tokens = ids;
  args.features = features;
  args.sequences = {sequence, 1};
  args.logit_rows = LogitRows::kNone;
  args.cancel = &core_.cancel;
  executor_.Observe(&args);
  Status status = executor_.Run(args);
  if (executor_.CanFallBack(status)) {
    recompute_.SwitchToFallback(status);
    for (uint32_t s = 0; s < sequences_.size(); ++s) {
      if (s != selected && cache().encoder_rows(s) != 0) {
        return recompute_.LoseEncoderOutputs();
      }
    }
    status = executor_.Run(args);
  }
  if (status == Status::kOk) {
    executor_.Count(args);
    return status;
  }
  cache().Clear(selected);
  if (status != Status::kCancelled) return status;
  core_.ClearCancel();
  return core_.diag.Fail(status, "cancelled while the encoder ran");
}

}  // namespace arn

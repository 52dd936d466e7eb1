// Runs the encoder of a sequence (cross-attention input).
#include <cstring>

#include "runtime/session/session.h"
#include "runtime/session/timer.h"

namespace arn {

Status Session::EncodeIds(Span<const int32_t> ids) {
  const EncoderSpec& encoder = model_.spec.encoder;
  if (!encoder.exists() || encoder.feature_width != 0) {
    return diag_.Fail(
        Status::kUnsupported, "the model %s",
        encoder.exists() ? "takes features, not tokens, as its source" : "has no source");
  }
  if (ids.empty() || ids.size() > plan_.options.encoder_rows) {
    return diag_.Fail(Status::kBadArgument, "a source of %zu tokens, expected 1 to source_rows %u",
                      ids.size(), plan_.options.encoder_rows);
  }
  ARN_TRY(CheckIds(ids));
  // Copied because the backend may read the ids after this call returns.
  int32_t* tokens = memory_.As<int32_t>(plan_.tokens);
  std::memcpy(tokens, ids.data(), ids.size() * sizeof(int32_t));
  return Encode({tokens, ids.size()}, {}, static_cast<uint32_t>(ids.size()));
}

Status Session::EncodeFeatures(Span<const float> features, uint32_t n_frames, uint32_t width) {
  const EncoderSpec& encoder = model_.spec.encoder;
  if (encoder.feature_width == 0) {
    return diag_.Fail(
        Status::kUnsupported, "the model %s",
        encoder.exists() ? "takes tokens, not features, as its source" : "has no source");
  }
  if (width != encoder.feature_width) {
    return diag_.Fail(Status::kBadArgument, "features of %u elements a frame, the model takes %u",
                      width, encoder.feature_width);
  }
  const uint64_t most = uint64_t{2} * plan_.options.encoder_rows;
  if (n_frames == 0 || n_frames % 2 != 0 || n_frames > most ||
      features.size() != uint64_t{n_frames} * width) {
    return diag_.Fail(Status::kBadArgument, "%u frames, expected an even number of 2 to %llu",
                      n_frames, static_cast<unsigned long long>(most));
  }
  return Encode({}, features, n_frames / 2);
}

Status Session::Encode(Span<const int32_t> ids, Span<const float> features, uint32_t rows) {
  Timer timer(&stats_.prefill_ns);
  ARN_TRY(RunEdits());
  At(selected_).has_logits = false;
  cache_.TakeEncoderRows(selected_, rows);
  auto* sequence = memory_.As<SequenceRows>(plan_.rows);
  *sequence = {0, rows, 0, cache_.tables(selected_), rows};
  RunArgs args;
  args.is_encoder = true;
  args.tokens = ids;
  args.features = features;
  args.sequences = {sequence, 1};
  args.logit_rows = LogitRows::kNone;
  args.cancel = &cancel_;
  args.step_ns = profile_.BeginRun();
  if (on_matmul_ != nullptr) args.observer = &observer_;
  Status status = in_use_->backend->run(in_use_->state, args, &diag_);
  if (CanFallBack(status)) {
    SwitchToFallback(status);
    for (uint32_t s = 0; s < sequences_.size(); ++s) {
      if (s != selected_ && cache_.encoder_rows(s) != 0) return LoseEncoderOutputs();
    }
    status = in_use_->backend->run(in_use_->state, args, &diag_);
  }
  if (status == Status::kOk) {
    profile_.EndRun(plan_.program, args);
    CountWork(args);
    return status;
  }
  cache_.Clear(selected_);
  if (status != Status::kCancelled) return status;
  cancel_.store(0, std::memory_order_relaxed);
  return diag_.Fail(status, "cancelled while the source was encoded");
}

}  // namespace arn

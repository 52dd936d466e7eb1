#include "runtime/model/mixer_spec.h"

#include "runtime/model/field_checks.h"
#include "runtime/model/read_tensor.h"

namespace arn {
Status ReadMixerKind(const fbs::LayerKind& kind, MixerSpec* out, Diag* diag) {
  switch (kind.mixer()) {
    case fbs::Mixer::Attention: return Status::kOk;
    case fbs::Mixer::Conv: out->mixer = Mixer::kConv; break;
    case fbs::Mixer::Scan: out->mixer = Mixer::kScan; break;
    default:
      return diag->Fail(Status::kUnsupported, "model.kinds.mixer %u is not known to this version",
                        static_cast<unsigned>(kind.mixer()));
  }
  ARN_TRY(CheckRange("kinds.mixer_width", kind.mixer_width(), 1, kMaxWidth / 3, diag));
  ARN_TRY(CheckRange("kinds.conv_taps", kind.conv_taps(), 1, kMaxConvTaps, diag));
  out->width = kind.mixer_width();
  out->taps = kind.conv_taps();
  if (out->mixer == Mixer::kConv) {
    // One tap needs no state, and a group of size 0 is not allowed.
    return out->taps > 1 ? Status::kOk
                         : diag->Fail(Status::kUnsupported, "model.kinds.conv_taps is 1");
  }
  ARN_TRY(CheckRange("kinds.scan_states", kind.scan_states(), 1, kMaxScanStates, diag));
  ARN_TRY(CheckRange("kinds.scan_rank", kind.scan_rank(), 1, kMaxWidth, diag));
  out->states = kind.scan_states();
  out->rank = kind.scan_rank();
  return Status::kOk;
}

Status ReadMixer(const fbs::Layer& layer, uint32_t index, const MixerSpec& spec, uint64_t hidden,
                 Shapes* shapes, MixerTensors* out) {
  const uint32_t width = spec.width;
  ARN_TRY(shapes->Matrix("mixer_in", index, layer.mixer_in(), spec.in_width(), hidden));
  ARN_TRY(shapes->Matrix("conv", index, layer.conv(), spec.taps, width));
  out->in = layer.mixer_in();
  out->conv = layer.conv();
  if (layer.conv_bias() != kNoWeight) {
    ARN_TRY(shapes->Vector("conv_bias", index, layer.conv_bias(), width));
    out->conv_bias = layer.conv_bias();
  }
  if (spec.mixer != Mixer::kScan) return Status::kOk;
  ARN_TRY(shapes->Matrix("scan_low", index, layer.scan_low(), spec.rank, width));
  ARN_TRY(shapes->Matrix("scan_steps", index, layer.scan_steps(), width, spec.rank));
  ARN_TRY(shapes->Matrix("scan_mix", index, layer.scan_mix(), uint64_t{2} * spec.states, width));
  ARN_TRY(shapes->Matrix("scan_rates", index, layer.scan_rates(), spec.states, width));
  ARN_TRY(shapes->Vector("scan_skip", index, layer.scan_skip(), width));
  out->low = layer.scan_low();
  out->time_steps = layer.scan_steps();
  out->mix = layer.scan_mix();
  out->rates = layer.scan_rates();
  out->skip = layer.scan_skip();
  return Status::kOk;
}

}  // namespace arn

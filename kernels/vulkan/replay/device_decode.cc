// Decode steps with sampling on the device. The first submission samples a token; each later one
// runs a step and then samples. The host thus sees a token while the step for it runs, with more
// steps queued. After a stop token the device does nothing more. Steps run past the last accepted
// token are rolled back: their keys and values are never read, and the earlier logits have been
// kept.
#include <cstring>

#include "kernels/contract/check.h"
#include "kernels/vulkan/replay/execution.h"
#include "platform/base/arith.h"

namespace arn::vulkan {
namespace {

class Decoding final : public Execution {
 public:
  Decoding(State* state, const DecodeArgs& args, DecodeResult* out, Diag* diag)
      : Execution(state, {&all_, 1}, 1, 1, false, diag),
        args_(args),
        out_(*out),
        n_(args.n_steps),
        all_(args.sequence) {
    all_.n_rows = args.n_steps;
  }

  Status Run(const Segment& choice) {
    choice_ = choice.commands[static_cast<uint32_t>(Mode::kOne)];
    WriteGrids();
    auto* grids = reinterpret_cast<VkDispatchIndirectCommand*>(s_.grid_words.mapped);
    grids[choice.first_dispatch] = {1, 1, 1};
    const Status status = Steps();
    const Status waited = submissions_.WaitForAll();
    return status != Status::kOk ? status : waited;
  }

  // True if a step past the last accepted token has overwritten its logits.
  bool HasRunAhead() const { return !out_.ended && n_begun_ > out_.n_tokens; }

 private:
  Status Steps() {
    ARN_TRY(submissions_.Submit(&choice_, 1, 0));
    choices_[0] = submissions_.n_made();
    uint32_t n_run = 0;
    while (!out_.ended && (n_run < n_ || out_.n_tokens < n_)) {
      if (n_run < n_ && n_run < out_.n_tokens + kStepsAhead) {
        n_begun_ = n_run + 1;
        MoveTo(all_.first_position + n_run);
        ARN_TRY(SubmitSteps(n_begun_ < n_ ? choice_ : VK_NULL_HANDLE, nullptr));
        if (out_.ended) continue;  // a stop token was seen in between
        n_run = n_begun_;
        choices_[n_run] = submissions_.n_made();
      } else {
        ARN_TRY(DeliverToken());
        if (IsCancelled() && !out_.ended) return Status::kCancelled;
      }
    }
    return Status::kOk;
  }

  bool IsCancelled() const {
    return args_.cancel != nullptr && args_.cancel->load(std::memory_order_relaxed) != 0;
  }

  // On cancellation, the last token passed to `on_token` counts as not run, so at least one token
  // must have been seen.
  Status BeforeSubmission() override {
    if (!IsCancelled() || out_.ended) return Status::kOk;
    if (out_.n_tokens == 0) ARN_TRY(DeliverToken());
    return out_.ended ? Status::kOk : Status::kCancelled;
  }

  // Waits for the next sampled token and passes it to `on_token`.
  Status DeliverToken() {
    const uint32_t step = out_.n_tokens;
    ARN_TRY(submissions_.WaitFor(choices_[step]));
    const uint32_t id = s_.choice_words()->ids[step];
    if (id != kNoChoice && (id & kIsStopId) != 0) {
      out_.ended = true;
      return Status::kOk;
    }
    if (id >= s_.program->vocab) {
      return diag_->Fail(Status::kDevice, "Vulkan: %s chose token %u of %u", s_.device.name(), id,
                         s_.program->vocab);
    }
    // Lets `on_token` read the logits of this token while later steps run.
    s_.logits_row = s_.program->max_logit_rows + step % kKeptRows;
    const bool goes_on =
        args_.on_token == nullptr || args_.on_token(args_.user, static_cast<int32_t>(id));
    ++out_.n_tokens;
    if (!goes_on) n_ = out_.n_tokens;
    return Status::kOk;
  }

  const DecodeArgs& args_;
  DecodeResult& out_;
  uint32_t n_;            // steps to run
  SequenceRows all_;      // positions of all steps
  uint32_t n_begun_ = 0;  // steps with something submitted
  VkCommandBuffer choice_ = VK_NULL_HANDLE;
  uint64_t choices_[DecodeArgs::kMaxSteps + 1] = {};  // the submission that ends with each sampled
                                                      // token
};

void WriteChoice(const Program& program, const DecodeArgs& args, ChoiceWords* words) {
  *words = ChoiceWords();
  words->first_position = args.sequence.first_position;
  words->n_stop_ids = static_cast<uint32_t>(args.stop_ids.size());
  const ChoiceRule& rule = args.rule;
  words->top_k = rule.top_k < program.vocab ? rule.top_k : 0;
  words->inverse_temperature = rule.IsGreedy() ? 0.0f : 1.0f / rule.temperature;
  if (rule.top_p < 1.0f) {
    words->top_p = Max(static_cast<uint32_t>(static_cast<double>(rule.top_p) * 0x1p32), 1u);
  }
  words->min_p = rule.min_p;
  for (size_t i = 0; i < args.rng.size(); ++i) words->rng[i] = args.rng[i];
  for (size_t i = 0; i < args.stop_ids.size(); ++i) {
    words->stop_ids[i] = static_cast<uint32_t>(args.stop_ids[i]);
  }
  for (uint32_t& id : words->ids) id = kNoChoice;
}

Status CheckDecode(const Program& program, const DecodeArgs& args, Diag* diag) {
  const bool has_rng = args.rule.IsGreedy() || args.rng.size() == args.n_steps;
  if (!HasChoice(program) || args.n_steps == 0 || args.n_steps > DecodeArgs::kMaxSteps ||
      args.sequence.n_rows != 1 || args.sequence.first_row != 0 || !has_rng ||
      args.rng.size() > DecodeArgs::kMaxSteps || args.stop_ids.size() > DecodeArgs::kMaxStopIds) {
    return diag->Fail(Status::kBadArgument,
                      "Vulkan: %u steps of %u rows, %zu draws, %zu ends, %u rows of logits",
                      args.n_steps, args.sequence.n_rows, args.rng.size(), args.stop_ids.size(),
                      program.max_logit_rows);
  }
  // Checks the position and pages of the last step, which covers all steps.
  const int32_t token = 0;
  SequenceRows last = args.sequence;
  last.first_position += args.n_steps - 1;
  RunArgs run;
  run.tokens = {&token, 1};
  run.sequences = {&last, 1};
  uint32_t n_logit_rows;
  return CheckRun(program, run, &n_logit_rows, diag);
}

}  // namespace

Status Decode(void* state, const DecodeArgs& args, DecodeResult* out, Diag* diag) {
  State& s = *static_cast<State*>(state);
  const Program& program = *s.program;
  *out = DecodeResult();
  if (s.is_lost) {
    return diag->Fail(Status::kDeviceLost, "Vulkan: %s failed in an earlier run", s.device.name());
  }
  ARN_TRY(CheckDecode(program, args, diag));
  ARN_TRY(ApplyEdits(&s, args.edits, diag));
  const uint64_t row_bytes = uint64_t{program.vocab} * sizeof(float);
  const auto bring_first = [&] {
    const uint64_t at = s.logits_row * row_bytes;
    s.logits_row = 0;
    if (at == 0) return Status::kOk;
    const Status status = s.transfer.Copy(s.device, s.logits, at, s.logits, 0, row_bytes, diag);
    s.is_lost = status != Status::kOk;
    return status;
  };
  ARN_TRY(bring_first());
  const int32_t token = 0;  // overwritten by the device
  RunArgs run;
  run.tokens = {&token, 1};
  run.sequences = {&args.sequence, 1};
  ARN_TRY(s.words.Write(program, run, 1, args.n_steps - 1, s.run_words(), diag));
  WriteChoice(program, args, s.choice_words());
  const Segment* choice = s.segments.data();
  while (!choice->is_choice) ++choice;
  Decoding decoding(&s, args, out, diag);
  const Status status = decoding.Run(*choice);
  if (status == Status::kCancelled) {
    // Logits from which the last token was sampled; it has not run.
    s.logits_row = program.max_logit_rows + (out->n_tokens - 1) % kKeptRows;
  } else {
    s.logits_row = decoding.HasRunAhead() ? program.max_logit_rows + out->n_tokens % kKeptRows : 0;
  }
  return status;
}

}  // namespace arn::vulkan

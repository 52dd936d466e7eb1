#include "platform/base/arith.h"
#include "runtime/memory/session_plan.h"

namespace arn {
namespace {

// Where both models have a token it must be the same. Their matrices may have more rows than there
// are tokens, and not the same number.
Status CheckSameTokens(const Model& model, const Model& draft, Diag* diag) {
  if (model.tokenizer == nullptr || draft.tokenizer == nullptr) {
    if (model.program.vocab == draft.program.vocab) return Status::kOk;
    return diag->Fail(Status::kBadArgument,
                      "the draft model has another vocabulary: %u tokens, the model has %u",
                      draft.program.vocab, model.program.vocab);
  }
  const Tokenizer &ours = *model.tokenizer, &theirs = *draft.tokenizer;
  if (ours.n_tokens() != theirs.n_tokens()) {
    return diag->Fail(Status::kBadArgument,
                      "the draft model has another vocabulary: %u tokens, the model has %u",
                      theirs.n_tokens(), ours.n_tokens());
  }
  for (uint32_t i = 0; i < ours.n_tokens(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const StringView a = ours.TokenText(id), b = theirs.TokenText(id);
    if (a == b && ours.IsSpecial(id) == theirs.IsSpecial(id)) continue;
    return diag->Fail(Status::kBadArgument,
                      "the draft model has another vocabulary: its token %u is '%.*s'%s, that of "
                      "the model '%.*s'%s",
                      i, static_cast<int>(Min<size_t>(b.size, 64)), b.data,
                      theirs.IsSpecial(id) ? " (special)" : "",
                      static_cast<int>(Min<size_t>(a.size, 64)), a.data,
                      ours.IsSpecial(id) ? " (special)" : "");
  }
  return Status::kOk;
}

// Options of a session beside another one, but for its context.
SessionOptions SideOptions(const SessionOptions& target) {
  SessionOptions options;
  options.prefill_chunk = target.prefill_chunk;
  options.kv_page_tokens = target.kv_page_tokens;
  options.n_threads = target.n_threads;
  options.n_prefill_threads = target.n_prefill_threads;
  options.cpus = target.cpus;
  options.cpu_mask = target.cpu_mask;
  options.system_root = target.system_root;
  options.keeps_unseen = true;
  return options;
}

}  // namespace

Status PlanDraft(const Model& model, const SessionPlan& target, const SessionObjects& objects,
                 SessionPlan* out, Diag* diag) {
  const Model& draft = *target.options.draft;
  if (!draft.has_weights || draft.spec.encoder.exists()) {
    return diag->Fail(Status::kUnsupported, "the draft model %s",
                      draft.has_weights ? "has an encoder" : "holds only a tokenizer");
  }
  for (uint32_t g = 0; g < draft.spec.n_groups; ++g) {
    if (draft.spec.groups[g].state_floats == 0) continue;
    return diag->Fail(Status::kUnsupported,
                      "the draft model has layers with a recurrent state, from which wrong guesses "
                      "cannot be dropped");
  }
  ARN_TRY(CheckSameTokens(model, draft, diag));
  const Backend* backend = target.backend->host_kv != nullptr && target.backend->device == nullptr
                               ? target.backend
                               : target.options.fallback;
  Diag reason;
  SessionObjects own;
  own.session_bytes = objects.draft_bytes;
  own.sequence_bytes = objects.sequence_bytes;
  SessionOptions options = SideOptions(target.options);
  options.context_tokens = Min(target.options.context_tokens, draft.spec.max_context);
  const Status status = PlanSession(draft, backend, options, own, out, &reason);
  return status == Status::kOk ? status : diag->Fail(status, "the draft model: %s", reason.text());
}

Status PlanMtp(const Model& model, const SessionPlan& target, const SessionObjects& objects,
               SessionPlan* out, Diag* diag) {
  SessionOptions options = SideOptions(target.options);
  options.context_tokens = target.options.context_tokens;
  options.rope_scaling = target.options.rope_scaling;
  if (model.mtp->spec.lender != nullptr) {
    options.lender = &target;
    options.prefill_chunk = 1;
  }
  Diag reason;
  SessionObjects own;
  own.session_bytes = objects.mtp_bytes;
  own.sequence_bytes = objects.sequence_bytes;
  const Status status = PlanSession(*model.mtp, target.backend, options, own, out, &reason);
  if (status == Status::kOk) return status;
  return diag->Fail(status, "the multi-token prediction head: %s", reason.text());
}

}  // namespace arn

// Sampling options: their table, the checkpoint's defaults, and those of a session.
#include <cstddef>

#include "platform/os/random_number.h"
#include "runtime/api/handles.h"
#include "runtime/api/options.h"
#include "runtime/sampling/logprobs.h"
#include "runtime/sampling/sampling_options.h"

namespace arn::api {
namespace {

struct Place {
  size_t offset, count_offset;
};
constexpr Place kPlaces[] = {
#define ARN_SCALAR(id, type, name, off, range, flags, help) {offsetof(arn_sampling, name), 0},
#define ARN_LIST(id, type, name, flags, help) \
  {offsetof(arn_sampling, name), offsetof(arn_sampling, n_##name)},
#include "runtime/sampling/options.def"
};

Status SamplingFromC(const arn_sampling& from, SamplingOptions* out, Diag* diag) {
#define ARN_SCALAR(id, type, name, off, range, flags, help) out->name = from.name;
#define ARN_LIST(id, type, name, flags, help)                                                  \
  if (from.name == nullptr && from.n_##name != 0) {                                            \
    return diag->Fail(Status::kBadArgument, #name " is NULL with %u elements", from.n_##name); \
  }                                                                                            \
  out->name = {from.name, from.n_##name};
#include "runtime/sampling/options.def"
  (void)diag;
  return Status::kOk;
}

arn_sampling SamplingToC(const SamplingOptions& from) {
  arn_sampling out = ARN_SAMPLING_INIT;
#define ARN_SCALAR(id, type, name, off, range, flags, help) out.name = from.name;
#define ARN_LIST(id, type, name, flags, help) \
  out.name = from.name.data();                \
  out.n_##name = static_cast<uint32_t>(from.name.size());
#include "runtime/sampling/options.def"
  return out;
}

}  // namespace

Status ReadSampling(const arn_sampling* sampling, SamplingOptions* out, Diag* diag) {
  arn_sampling read = ARN_SAMPLING_INIT;
  ARN_TRY(ReadStruct(sampling, "arn_sampling", &read, diag));
  return SamplingFromC(read, out, diag);
}

}  // namespace arn::api

using namespace arn;       // NOLINT(google-build-using-namespace): the entry points below are C
using namespace arn::api;  // NOLINT(google-build-using-namespace)

extern "C" {

uint32_t arn_sampling_option_count(void) {
  return static_cast<uint32_t>(SamplingOptionTable().size());
}

arn_status arn_sampling_get_option(uint32_t index, arn_sampling_option_info* out_info) {
  if (index >= SamplingOptionTable().size()) return ARN_BAD_ARGUMENT;
  const SamplingOption& option = SamplingOptionTable()[index];
  arn_sampling_option_info info = ARN_SAMPLING_OPTION_INFO_INIT;
  info.name = option.name;
  info.help = SamplingOptionHelp(index);
  info.type = static_cast<uint32_t>(option.type);
  info.offset = static_cast<uint32_t>(kPlaces[index].offset);
  info.count_offset = static_cast<uint32_t>(kPlaces[index].count_offset);
  info.runs_on_device = (option.flags & SamplingOption::kOnDevice) != 0 ? 1 : 0;
  info.is_processor = (option.flags & SamplingOption::kProcessor) != 0 ? 1 : 0;
  info.is_for_draws = (option.flags & SamplingOption::kDraw) != 0 ? 1 : 0;
  return ToC(WriteStruct(info, out_info));
}

arn_status arn_model_sampling_defaults(const arn_model* model, arn_sampling* out_sampling) {
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  return ToC(WriteStruct(SamplingToC(ToModel(model)->sampling), out_sampling));
}

arn_status arn_model_sampling(const arn_model* model, arn_sampling* out_sampling) {
  if (model == nullptr) return ARN_BAD_ARGUMENT;
  const Model& m = *ToModel(model);
  SamplingOptions sampling = m.sampling;
  if (!m.do_sample) {
    const SamplingOptions off;
    for (const SamplingOption& option : SamplingOptionTable()) {
      if ((option.flags & SamplingOption::kDraw) == 0) continue;
      option.Set(option.WordsOf(off), &sampling);
    }
  }
  return ToC(WriteStruct(SamplingToC(sampling), out_sampling));
}

uint64_t arn_random_seed(void) { return RandomNumber() >> 11; }

arn_status arn_session_set_sampling(arn_session* session, const arn_sampling* sampling) {
  if (session == nullptr || sampling == nullptr) return ARN_BAD_ARGUMENT;
  return OnSession(session, [&](Session& s) {
    SamplingOptions options;
    ARN_TRY(ReadSampling(sampling, &options, s.diag()));
    return s.SetSampling(options);
  });
}

arn_status arn_session_logprobs(const arn_session* session, int32_t id, uint32_t n_top,
                                arn_token_logprob* out_top, float* out_logprob) {
  if (session == nullptr || (n_top > 0 && out_top == nullptr)) return ARN_BAD_ARGUMENT;
  // The logits may have to be fetched, which changes no result of the session.
  Session& s = *const_cast<Session*>(ToSession(session));
  const uint32_t vocab = s.plan().program.vocab;
  const bool is_id = id >= 0 && static_cast<uint32_t>(id) < vocab;
  if (!is_id && (id != -1 || out_logprob != nullptr)) {
    return ToC(s.diag()->Fail(Status::kBadToken, "token is %d, the vocabulary has %u", id, vocab));
  }
  if (n_top > vocab) {
    return ToC(
        s.diag()->Fail(Status::kBadArgument, "n_top is %u, the vocabulary has %u", n_top, vocab));
  }
  const float* logits = nullptr;
  const Status status = s.Logits(&logits);
  if (status != Status::kOk) return ToC(status);
  static_assert(sizeof(arn_token_logprob) == sizeof(TokenLogprob));
  MostLikely(logits, vocab, {reinterpret_cast<TokenLogprob*>(out_top), n_top});
  if (out_logprob != nullptr) {
    *out_logprob = static_cast<float>(static_cast<double>(logits[id]) - LogSumExp(logits, vocab));
  }
  return ARN_OK;
}

}  // extern "C"

#include "runtime/model/read_sampling.h"

namespace arn {

Status ReadSampling(const fbs::Generation& generation, uint32_t vocab, SamplingOptions* out,
                    Diag* diag) {
  *out = SamplingOptions();
  out->temperature = generation.temperature();
  out->top_k = generation.top_k();
  out->top_p = generation.top_p();
  out->min_p = generation.min_p();
  if (const auto* options = generation.options()) {
    for (const fbs::SamplingOption* entry : *options) {
      const SamplingOption* option = FindSamplingOption(entry->id());
      if (option == nullptr) {
        return diag->Fail(
            Status::kBadBundle,
            "generation: sampling option %u is unknown to this version of the library",
            entry->id());
      }
      const uint32_t n = entry->words() == nullptr ? 0 : entry->words()->size();
      if (option->is_list() ? n == 0 : n != option->n_words()) {
        return diag->Fail(Status::kBadBundle, "generation.%s has %u words", option->name, n);
      }
      option->Set({entry->words()->data(), n}, out);
    }
  }
  Diag inner;
  SamplingLimits limits;
  limits.vocab = vocab;
  if (CheckSampling(*out, limits, &inner) == Status::kOk) return Status::kOk;
  return diag->Fail(Status::kBadBundle, "generation.%s", inner.text());
}

}  // namespace arn

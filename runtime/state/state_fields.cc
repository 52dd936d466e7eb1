#include "runtime/state/state_fields.h"

#include <cinttypes>
#include <cmath>
#include <cstring>

#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr uint32_t kHeadWords = 2;

template <typename Function>
Status ForEachField(const SavedSampling& sampling, const Function& function) {
  for (const SamplingOption& option : SamplingOptionTable()) {
    if (option.IsOff(sampling.options)) continue;
    ARN_TRY(function(option.id, option.WordsOf(sampling.options)));
  }
  uint32_t random[2];
  std::memcpy(random, &sampling.state.random, sizeof random);
  ARN_TRY(function(kRandomStateField, Span<const uint32_t>(random, 2)));
  if (sampling.state.mirostat_mu != 0.0f) {
    uint32_t mu;
    std::memcpy(&mu, &sampling.state.mirostat_mu, sizeof mu);
    ARN_TRY(function(kMirostatMuField, Span<const uint32_t>(&mu, 1)));
  }
  if (sampling.n_generated == 0) return Status::kOk;
  return function(kNGeneratedField, Span<const uint32_t>(&sampling.n_generated, 1));
}

struct AdapterRecord {
  uint32_t words[kAdapterWords];
};
AdapterRecord RecordOf(const ActiveAdapter& active) {
  AdapterRecord record;
  std::memcpy(record.words, &active.adapter->hash, sizeof active.adapter->hash);
  std::memcpy(&record.words[2], &active.scale, sizeof active.scale);
  return record;
}

bool IsOfConstraint(uint32_t id) { return id == kConstraintField || id == kSharedConstraintField; }

// True if it is known to this library.
bool IsOfAdapters(uint32_t id) { return kHasAdapters && id == kAdaptersField; }

// Words of a field that is no sampling option; 0: any number.
uint32_t WordsOf(uint32_t id) {
  if (IsOfConstraint(id) || IsOfAdapters(id)) return 0;
  return id == kRandomStateField ? 2 : 1;
}

}  // namespace

uint32_t CountFieldWords(const SavedSampling& sampling, uint32_t s) {
  uint32_t n = CountConstraintWords(sampling.constraint, s);
  const auto add = [&n](uint32_t, Span<const uint32_t> words) {
    n += kHeadWords + static_cast<uint32_t>(words.size());
    return Status::kOk;
  };
  if (kHasAdapters && !sampling.adapters.empty()) {
    n += kHeadWords + kAdapterWords * static_cast<uint32_t>(sampling.adapters.size());
  }
  static_cast<void>(ForEachField(sampling, add));  // counting does not fail
  return n;
}

Status WriteFields(const SavedSampling& sampling, uint32_t s, StateWriter* writer) {
  ARN_TRY(WriteConstraint(sampling.constraint, s, writer));
  if (kHasAdapters && !sampling.adapters.empty()) {
    const uint32_t head[kHeadWords] = {
        kAdaptersField, kAdapterWords * static_cast<uint32_t>(sampling.adapters.size())};
    ARN_TRY(writer->Append(head, sizeof head));
    for (const ActiveAdapter& active : sampling.adapters) {
      const AdapterRecord record = RecordOf(active);
      ARN_TRY(writer->Append(record.words, sizeof record.words));
    }
  }
  return ForEachField(sampling, [writer](uint32_t id, Span<const uint32_t> words) {
    const uint32_t head[kHeadWords] = {id, static_cast<uint32_t>(words.size())};
    ARN_TRY(writer->Append(head, sizeof head));
    return writer->Append(words.data(), words.size() * sizeof(uint32_t));
  });
}

Status CheckAdapters(Span<const std::byte> saved, Span<const ActiveAdapter> here, Diag* diag) {
  constexpr size_t kBytes = sizeof(AdapterRecord);
  if (saved.size() != here.size() * kBytes) {
    return diag->Fail(Status::kSaveMismatch,
                      "saved with %zu adapters, the session's sequence uses %zu "
                      "(arn_session_set_adapters)",
                      saved.size() / kBytes, here.size());
  }
  for (size_t i = 0; i < here.size(); ++i) {
    const AdapterRecord own = RecordOf(here[i]);
    if (std::memcmp(saved.data() + i * kBytes, own.words, kBytes) == 0) continue;
    uint64_t hash;
    float scale;
    std::memcpy(&hash, saved.data() + i * kBytes, sizeof hash);
    std::memcpy(&scale, saved.data() + i * kBytes + sizeof hash, sizeof scale);
    return diag->Fail(Status::kSaveMismatch,
                      "adapter %zu: saved with %016" PRIx64
                      " at scale %g, the session's sequence "
                      "uses %016" PRIx64 " at %g",
                      i, hash, static_cast<double>(scale), here[i].adapter->hash,
                      static_cast<double>(here[i].scale));
  }
  return Status::kOk;
}

Status ReadFields(Span<const std::byte> fields, uint32_t s, const SamplingLimits& limits,
                  uint32_t* lists, SavedSampling* out, Diag* diag) {
  *out = SavedSampling();
  uint32_t n_listed = 0;
  for (size_t at = 0; at < fields.size();) {
    uint32_t head[kHeadWords];
    if (fields.size() - at < sizeof head) {
      return diag->Fail(Status::kBadSave, "the sampling fields are cut off at byte %zu", at);
    }
    std::memcpy(head, fields.data() + at, sizeof head);
    at += sizeof head;
    const auto [id, n] = head;
    const SamplingOption* option = FindSamplingOption(id);
    const bool is_known = option != nullptr || id == kRandomStateField || id == kNGeneratedField ||
                          id == kMirostatMuField || IsOfAdapters(id) || IsOfConstraint(id);
    if (!is_known) {
      return diag->Fail(Status::kBadSave,
                        "sampling field %u is unknown to this version of the library", id);
    }
    const uint32_t wanted = option != nullptr ? option->n_words() : WordsOf(id);
    if (n > (fields.size() - at) / sizeof(uint32_t) || (wanted != 0 && n != wanted)) {
      return diag->Fail(Status::kBadSave, "sampling field %u has %u words, %zu bytes are left", id,
                        n, fields.size() - at);
    }
    const std::byte* words = fields.data() + at;
    at += size_t{n} * sizeof(uint32_t);
    if (IsOfConstraint(id)) {
      ARN_TRY(ReadConstraint(id, {words, size_t{n} * sizeof(uint32_t)}, s, &out->constraint, diag));
    } else if (IsOfAdapters(id)) {
      out->read_adapters = {words, size_t{n} * sizeof(uint32_t)};
    } else if (id == kRandomStateField) {
      std::memcpy(&out->state.random, words, sizeof out->state.random);
    } else if (id == kNGeneratedField) {
      std::memcpy(&out->n_generated, words, sizeof out->n_generated);
    } else if (id == kMirostatMuField) {
      std::memcpy(&out->state.mirostat_mu, words, sizeof out->state.mirostat_mu);
      if (!std::isfinite(out->state.mirostat_mu)) {
        return diag->Fail(Status::kBadSave, "mirostat's mu is not a number");
      }
    } else if (option->is_list()) {
      if (n > limits.n_words - n_listed) {
        return diag->Fail(Status::kUnsupported,
                          "%s: %u elements were saved, the session was created with "
                          "sampling_words = %u",
                          option->name, n, limits.n_words);
      }
      std::memcpy(lists + n_listed, words, n * sizeof(uint32_t));
      option->Set({lists + n_listed, n}, &out->options);
      n_listed += n;
    } else {
      uint32_t scalar[2];
      std::memcpy(scalar, words, n * sizeof(uint32_t));
      option->Set({scalar, n}, &out->options);
    }
  }
  Diag inner;
  const Status status = CheckSampling(out->options, limits, &inner);
  if (status == Status::kOk) return status;
  return diag->Fail(status == Status::kBadArgument ? Status::kBadSave : status, "%s", inner.text());
}

}  // namespace arn

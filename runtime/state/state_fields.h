// How a saved sequence's tokens are chosen: tagged fields. A field is u32 id, u32 n, then n 32-bit
// words, little endian. Ids below kSamplerFields are those of runtime/sampling/options.def. Options
// that are off are not written. Ids from kConstraintField on: state_constraint.h.
#pragma once

#include <cstdint>

#include "kernels/contract/adapter.h"
#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/sampling/sampler.h"
#include "runtime/state/state_constraint.h"
#include "runtime/state/state_writer.h"

namespace arn {

inline constexpr uint32_t kSamplerFields = 1u << 16;
inline constexpr uint32_t kRandomStateField = kSamplerFields + 0;  // 2 words
inline constexpr uint32_t kNGeneratedField = kSamplerFields + 1;   // 1 word
inline constexpr uint32_t kMirostatMuField = kSamplerFields + 2;   // 1 word, f32
// 3 words for each adapter that the sequence uses, in order: its hash, then the scale (f32).
inline constexpr uint32_t kAdaptersField = kSamplerFields + 3;
inline constexpr uint32_t kAdapterWords = 3;

struct SavedSampling {
  SamplingOptions options;
  SamplerState state;
  uint32_t n_generated = 0;  // the last tokens of the sequence, chosen since the last prompt
  SavedConstraint constraint;
  Span<const ActiveAdapter> adapters;   // written
  Span<const std::byte> read_adapters;  // the field's words, at any alignment
};

// kSaveMismatch unless the adapters that were read are these; names what differs.
Status CheckAdapters(Span<const std::byte> saved, Span<const ActiveAdapter> here, Diag* diag);

// Returns the words that WriteFields writes for sequence `s`.
uint32_t CountFieldWords(const SavedSampling& sampling, uint32_t s);
Status WriteFields(const SavedSampling& sampling, uint32_t s, StateWriter* writer);
// Reads the untrusted fields of sequence `s`, at any alignment. Lists go to `lists`, u32
// [limits.n_words]. kBadSave: an unknown id, named by its number, a wrong size, or a value out of
// range. kUnsupported: the session has no room for it.
Status ReadFields(Span<const std::byte> fields, uint32_t s, const SamplingLimits& limits,
                  uint32_t* lists, SavedSampling* out, Diag* diag);

}  // namespace arn

// SamplingOptions: how tokens are chosen. Made of the rows of options.def, which also give the
// table that checks, copies, saves and describes them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/base/diag.h"
#include "platform/base/span.h"
#include "runtime/sampling/option_range.h"

namespace arn {

struct SamplingOptions {
#define ARN_SCALAR(id, type, name, off, range, flags, help) type name = off;
#define ARN_LIST(id, type, name, flags, help) Span<const type> name = {};
#include "runtime/sampling/options.def"

  // True if the most likely token is taken and no random number drawn.
  bool IsGreedy() const { return temperature == 0.0f; }
  // True if a device's decode applies every option that is on.
  bool RunsOnDevice() const;
  // Returns the name of the first option that is on and needs logits processors; null: none.
  const char* Processor() const;
};

enum class OptionType : uint32_t { kFloat, kU32, kU64, kI32, kIds, kFloats };

// Row of options.def.
struct SamplingOption {
  // kDraw: shapes the distribution that is sampled from, so that greedy decoding ignores it.
  // kSequences: -1 separates the ids of the list.
  static constexpr uint32_t kOnDevice = 1, kProcessor = 2, kDraw = 4, kSequences = 8;

  uint32_t id;
  char name[24];  // no pointer: each would be relocated when the library is loaded
  OptionType type;
  uint32_t flags;
  uint32_t offset;    // in SamplingOptions
  OptionRange range;  // of scalars

  bool is_list() const { return type == OptionType::kIds || type == OptionType::kFloats; }
  // Reads an option as 32-bit words: 1, or 2 for kU64, or the elements of a list.
  Span<const uint32_t> WordsOf(const SamplingOptions& options) const;
  // Sets an option to the words. Lists refer to them.
  // REQUIRES: as many words as the type has.
  void Set(Span<const uint32_t> words, SamplingOptions* options) const;
  // Number of words of a scalar; 0: a list, any number.
  uint32_t n_words() const { return is_list() ? 0 : type == OptionType::kU64 ? 2 : 1; }
  bool IsOff(const SamplingOptions& options) const;
};
// All rows, in order.
Span<const SamplingOption> SamplingOptionTable();
// Returns what the row does, for people; "" without ARENITE_DESCRIPTIONS.
// REQUIRES: index < SamplingOptionTable().size().
const char* SamplingOptionHelp(size_t index);
// Returns the row with the id; null: none.
const SamplingOption* FindSamplingOption(uint32_t id);

// Limits of the session that the options are for.
struct SamplingLimits {
  uint32_t vocab = UINT32_MAX;
  bool has_processors = true;     // memory for logits processors is planned
  uint32_t n_words = UINT32_MAX;  // elements of all lists together
};

// Calls function(ids) for each sequence of a list that -1 separates; empty ones count.
template <typename Function>
void ForEachSequence(Span<const int32_t> list, const Function& function) {
  for (size_t first = 0; first < list.size();) {
    size_t end = first;
    while (end < list.size() && list[end] != -1) ++end;
    function(list.subspan(first, end - first));
    first = end + 1;
  }
}
// Returns the number of elements of all lists together.
uint32_t CountListWords(const SamplingOptions& options);
// kBadArgument names the field and the value; kUnsupported names the session option to raise.
Status CheckSampling(const SamplingOptions& options, const SamplingLimits& limits, Diag* diag);

}  // namespace arn

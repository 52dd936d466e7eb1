#include "runtime/sampling/sampling_options.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/contract/descriptions.h"
#include "platform/base/arith.h"
#include "platform/base/result.h"

namespace arn {
namespace {

template <typename T>
constexpr OptionType TypeOf() {
  if constexpr (std::is_same_v<T, float>) return OptionType::kFloat;
  if constexpr (std::is_same_v<T, uint32_t>) return OptionType::kU32;
  if constexpr (std::is_same_v<T, uint64_t>) return OptionType::kU64;
  return OptionType::kI32;
}

constexpr uint32_t kOnDevice = SamplingOption::kOnDevice;
constexpr uint32_t kProcessor = SamplingOption::kProcessor;
constexpr uint32_t kDraw = SamplingOption::kDraw;
constexpr uint32_t kSequences = SamplingOption::kSequences;

constexpr SamplingOption kTable[] = {
#define ARN_SCALAR(id, type, name, off, range, flags, help) \
  {id, #name, TypeOf<type>(), flags, offsetof(SamplingOptions, name), range},
#define ARN_LIST(id, type, name, flags, help)                            \
  {id,                                                                   \
   #name,                                                                \
   std::is_same_v<type, float> ? OptionType::kFloats : OptionType::kIds, \
   flags,                                                                \
   offsetof(SamplingOptions, name),                                      \
   Any()},
#include "runtime/sampling/options.def"
};

constexpr bool IdsAreDistinct() {
  for (const SamplingOption& a : kTable) {
    for (const SamplingOption& b : kTable) {
      if (&a != &b && a.id == b.id) return false;
    }
  }
  return true;
}
static_assert(IdsAreDistinct());

double ScalarOf(const SamplingOption& option, const SamplingOptions& options) {
  const char* at = reinterpret_cast<const char*>(&options) + option.offset;
  const auto load = [at](auto value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  };
  switch (option.type) {
    case OptionType::kFloat: return load(float{});
    case OptionType::kU32: return load(uint32_t{});
    case OptionType::kI32: return load(int32_t{});
    case OptionType::kU64: return load(uint64_t{});
    case OptionType::kIds:
    case OptionType::kFloats: break;
  }
  return 0;
}

Status CheckList(const SamplingOption& option, const SamplingOptions& options, uint32_t vocab,
                 Diag* diag) {
  const Span<const uint32_t> words = option.WordsOf(options);
  for (size_t i = 0; i < words.size(); ++i) {
    float value;
    std::memcpy(&value, &words[i], sizeof value);
    if (option.type == OptionType::kFloats && !(value < std::numeric_limits<float>::infinity())) {
      return diag->Fail(Status::kBadArgument, "%s[%zu] is %g, expected a number or -inf",
                        option.name, i, static_cast<double>(value));
    }
    const bool is_separator = (option.flags & kSequences) != 0 && words[i] == UINT32_MAX;
    if (option.type == OptionType::kIds && words[i] >= vocab && !is_separator) {
      return diag->Fail(Status::kBadArgument, "%s[%zu] is token %d, the vocabulary has %u",
                        option.name, i, static_cast<int32_t>(words[i]), vocab);
    }
  }
  return Status::kOk;
}

}  // namespace

const char* SamplingOptionHelp(size_t index) {
  if constexpr (!kHasDescriptions) return "";
  static constexpr const char* kHelp[] = {
#define ARN_SCALAR(id, type, name, off, range, flags, help) help,
#define ARN_LIST(id, type, name, flags, help) help,
#include "runtime/sampling/options.def"
  };
  return kHelp[index];
}

Span<const SamplingOption> SamplingOptionTable() {
  return {kTable, sizeof kTable / sizeof *kTable};
}

const SamplingOption* FindSamplingOption(uint32_t id) {
  for (const SamplingOption& option : kTable) {
    if (option.id == id) return &option;
  }
  return nullptr;
}

Span<const uint32_t> SamplingOption::WordsOf(const SamplingOptions& options) const {
  const char* at = reinterpret_cast<const char*>(&options) + offset;
  if (!is_list()) return {reinterpret_cast<const uint32_t*>(at), n_words()};
  // Elements of both list types are 32-bit words.
  if (type == OptionType::kFloats) {
    const auto& list = *reinterpret_cast<const Span<const float>*>(at);
    return {reinterpret_cast<const uint32_t*>(list.data()), list.size()};
  }
  const auto& list = *reinterpret_cast<const Span<const int32_t>*>(at);
  return {reinterpret_cast<const uint32_t*>(list.data()), list.size()};
}

void SamplingOption::Set(Span<const uint32_t> words, SamplingOptions* options) const {
  char* at = reinterpret_cast<char*>(options) + offset;
  if (!is_list()) {
    std::memcpy(at, words.data(), words.size() * sizeof(uint32_t));
  } else if (type == OptionType::kFloats) {
    *reinterpret_cast<Span<const float>*>(at) = {reinterpret_cast<const float*>(words.data()),
                                                 words.size()};
  } else {
    *reinterpret_cast<Span<const int32_t>*>(at) = {reinterpret_cast<const int32_t*>(words.data()),
                                                   words.size()};
  }
}

bool SamplingOption::IsOff(const SamplingOptions& options) const {
  const Span<const uint32_t> words = WordsOf(options);
  if (is_list()) return words.empty();
  // By value: -0 is off where 0 is.
  return ScalarOf(*this, options) == ScalarOf(*this, SamplingOptions());
}

bool SamplingOptions::RunsOnDevice() const {
  for (const SamplingOption& option : kTable) {
    if ((option.flags & SamplingOption::kOnDevice) == 0 && !option.IsOff(*this)) return false;
  }
  return true;
}

const char* SamplingOptions::Processor() const {
  for (const SamplingOption& option : kTable) {
    if ((option.flags & SamplingOption::kProcessor) != 0 && !option.IsOff(*this)) {
      return option.name;
    }
  }
  return nullptr;
}

uint32_t CountListWords(const SamplingOptions& options) {
  size_t n = 0;
  for (const SamplingOption& option : kTable) {
    if (option.is_list()) n += option.WordsOf(options).size();
  }
  return static_cast<uint32_t>(Min<size_t>(n, UINT32_MAX));
}

Status CheckSampling(const SamplingOptions& options, const SamplingLimits& limits, Diag* diag) {
  for (const SamplingOption& option : kTable) {
    if (option.is_list()) {
      ARN_TRY(CheckList(option, options, limits.vocab, diag));
      continue;
    }
    const double value = ScalarOf(option, options);
    if (option.type == OptionType::kI32 && value >= static_cast<double>(limits.vocab)) {
      return diag->Fail(Status::kBadArgument, "%s is token %g, the vocabulary has %u", option.name,
                        value, limits.vocab);
    }
    if (option.range.Has(value)) continue;
    char expected[64];
    option.range.Describe(expected, sizeof expected);
    return diag->Fail(Status::kBadArgument, "%s is %g, expected %s", option.name, value, expected);
  }
  if (const uint32_t n_words = CountListWords(options); n_words > limits.n_words) {
    return diag->Fail(Status::kUnsupported,
                      "the lists of the sampling options have %u elements, the session was "
                      "created with sampling_words = %u",
                      n_words, limits.n_words);
  }
  size_t n_biased = 0;
  ForEachSequence(options.bias_ids, [&](Span<const int32_t>) { ++n_biased; });
  if (n_biased != options.bias_values.size()) {
    return diag->Fail(Status::kBadArgument, "bias_ids has %zu sequences, bias_values %zu elements",
                      n_biased, options.bias_values.size());
  }
  const char* processor = options.Processor();
  if (processor != nullptr && !limits.has_processors) {
    return diag->Fail(Status::kUnsupported,
                      "%s changes logits: create the session with logits_processors = 1",
                      processor);
  }
  return Status::kOk;
}

}  // namespace arn

#include "runtime/sampling/processors.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "platform/base/arith.h"

namespace arn {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

struct Row {
  const SamplingOptions& options;
  const ProcessorInput& input;
  float* logits;    // f32 [vocab]
  uint32_t* marks;  // u32 [vocab], zero; a processor leaves it so
  uint32_t vocab;

  bool IsEos(int32_t id) const {
    for (const uint32_t eos : input.eos_ids) {
      if (static_cast<uint32_t>(id) == eos) return true;
    }
    for (const int32_t eos : input.extra_eos_ids) {
      if (id == eos) return true;
    }
    return false;
  }
  // Returns the most recent tokens; window 0: all.
  Span<const int32_t> Recent(uint32_t window) const {
    const Span<const int32_t> ids = input.ids;
    const size_t n = window == 0 ? ids.size() : Min<size_t>(window, ids.size());
    return ids.subspan(ids.size() - n, n);
  }
  void AllowOnly(int32_t id) const {
    for (uint32_t i = 0; i < vocab; ++i) logits[i] = kForbidden;
    logits[id] = 0.0f;
  }
};

struct Processor {
  bool (*is_on)(const SamplingOptions& options);
  void (*apply)(const Row& row);
};

// True if `sequence` would be completed by its last token. As in transformers, a sequence longer
// than the history does not count.
bool CompletesAfter(Span<const int32_t> ids, Span<const int32_t> sequence) {
  if (sequence.empty()) return false;
  const size_t n = sequence.size() - 1;
  if (n == 0) return true;
  if (sequence.size() > ids.size()) return false;
  return std::memcmp(ids.end() - n, sequence.data(), n * sizeof(int32_t)) == 0;
}

// SequenceBiasLogitsProcessor of transformers.
void AddBias(const Row& row) {
  size_t i = 0;
  ForEachSequence(row.options.bias_ids, [&](Span<const int32_t> sequence) {
    const float bias = row.options.bias_values[i++];
    if (CompletesAfter(row.input.ids, sequence)) row.logits[sequence[sequence.size() - 1]] += bias;
  });
}

// RepetitionPenaltyLogitsProcessor of transformers, each token counts once; then
// the penalties sampler of ggml-org (docs/sampling.md names the functions).
void PenaliseRepetition(const Row& row) {
  const SamplingOptions& o = row.options;
  const Span<const int32_t> recent = row.Recent(o.penalty_window);
  for (const int32_t id : recent) ++row.marks[id];
  for (const int32_t id : recent) {
    const uint32_t count = row.marks[id];
    if (count == 0) continue;
    row.marks[id] = 0;
    float& logit = row.logits[id];
    logit = logit < 0.0f ? logit * o.repetition_penalty : logit / o.repetition_penalty;
    logit -= static_cast<float>(count) * o.frequency_penalty + o.presence_penalty;
  }
}

// The DRY sampler of ggml-org. The suffix of the history that also ends k tokens earlier
// has n tokens; then the token that followed it there is penalised. Repetitions do not reach across
// a breaker, or the last token of a sequence of them.
void PenaliseLoops(const Row& row) {
  constexpr uint32_t kBreaker = 1u << 31;
  constexpr double kFloatMaxLog = 88.7228391;  // log(FLT_MAX): where the exponent stops growing
  const SamplingOptions& o = row.options;
  const Span<const int32_t> recent = row.Recent(o.dry_window);
  const auto n = static_cast<uint32_t>(recent.size());
  const auto from_end = [&](uint32_t i) { return recent[n - 1 - i]; };
  if (n <= o.dry_allowed_length) return;
  for (const int32_t id : o.dry_breakers) row.marks[id] = kBreaker;
  uint32_t most = n;
  for (uint32_t i = 0; i < n && most == n; ++i) {
    if (row.marks[from_end(i)] == kBreaker) most = i;
    // Takes the longest of the sequences whose first token this is.
    ForEachSequence(o.dry_breaker_sequences, [&](Span<const int32_t> sequence) {
      const auto behind = static_cast<uint32_t>(sequence.size()) - 1;
      if (behind > i) return;
      const int32_t* const tokens = recent.begin() + (n - 1 - i);
      if (std::memcmp(tokens, sequence.data(), sequence.size() * sizeof(int32_t)) != 0) return;
      most = Min(most, i - behind);
    });
  }
  const double base = static_cast<double>(o.dry_base);
  const uint32_t most_exponent =
      base > 1.000001 ? static_cast<uint32_t>(kFloatMaxLog / std::log(base)) : 0;
  const uint64_t useful = base == 1.0         ? o.dry_allowed_length
                          : most_exponent > 0 ? uint64_t{o.dry_allowed_length} + most_exponent
                                              : n;
  if (most >= o.dry_allowed_length) {
    const auto end = static_cast<uint32_t>(Min<uint64_t>(most, useful));
    for (uint32_t k = 1; k < n; ++k) {
      uint32_t length = 0;
      while (length < end && length + k < n && from_end(length) == from_end(length + k)) ++length;
      uint32_t& longest = row.marks[from_end(k - 1)];
      if (length >= o.dry_allowed_length && longest != kBreaker) longest = Max(longest, length + 1);
    }
  }
  for (const int32_t id : recent) {
    const uint32_t longest = row.marks[id];
    if (longest == 0 || longest == kBreaker) continue;
    row.marks[id] = 0;
    const auto exponent = static_cast<double>(longest - 1 - o.dry_allowed_length);
    row.logits[id] -=
        static_cast<float>(static_cast<double>(o.dry_multiplier) * std::pow(base, exponent));
  }
  for (const int32_t id : o.dry_breakers) row.marks[id] = 0;
}

// NoRepeatNGramLogitsProcessor of transformers.
void ForbidRepeatedNgrams(const Row& row) {
  const Span<const int32_t> ids = row.input.ids;
  const size_t n = row.options.no_repeat_ngram_size;
  if (ids.size() < n) return;
  const int32_t* suffix = ids.end() - (n - 1);
  for (size_t first = 0; first + n <= ids.size(); ++first) {
    if (std::memcmp(ids.data() + first, suffix, (n - 1) * sizeof(int32_t)) != 0) continue;
    row.logits[ids[first + n - 1]] = kForbidden;
  }
}

// NoBadWordsLogitsProcessor of transformers: a stop token alone is allowed.
void ForbidBadWords(const Row& row) {
  ForEachSequence(row.options.bad_words, [&](Span<const int32_t> sequence) {
    if (!CompletesAfter(row.input.ids, sequence)) return;
    const int32_t last = sequence[sequence.size() - 1];
    if (sequence.size() > 1 || !row.IsEos(last)) row.logits[last] = kForbidden;
  });
}

// MinNewTokensLengthLogitsProcessor of transformers.
void ForbidEarlyEnd(const Row& row) {
  if (row.input.n_generated >= row.options.min_new_tokens) return;
  for (const uint32_t id : row.input.eos_ids) row.logits[id] = kForbidden;
  for (const int32_t id : row.input.extra_eos_ids) row.logits[id] = kForbidden;
}

// ForcedBOSTokenLogitsProcessor of transformers, where the prompt is the start token alone.
void ForceFirst(const Row& row) {
  if (row.input.n_generated == 0) row.AllowOnly(row.options.forced_first);
}

// ForcedEOSTokenLogitsProcessor of transformers.
void ForceLast(const Row& row) {
  if (row.input.is_last) row.AllowOnly(row.options.forced_last);
}

// SuppressTokensLogitsProcessor of transformers.
void Suppress(const Row& row) {
  for (const int32_t id : row.options.suppress_tokens) row.logits[id] = kForbidden;
}

// SuppressTokensAtBeginLogitsProcessor of transformers.
void SuppressAtBegin(const Row& row) {
  if (row.input.n_generated != 0) return;
  for (const int32_t id : row.options.begin_suppress_tokens) row.logits[id] = kForbidden;
}

// The top-n-sigma sampler of ggml-org. A temperature scales both sides of the comparison.
void KeepNSigma(const Row& row) {
  double sum = 0.0, squares = 0.0;
  float max = kForbidden;
  uint32_t n = 0;
  for (uint32_t i = 0; i < row.vocab; ++i) {
    const float logit = row.logits[i];
    if (logit == kForbidden) continue;
    max = Max(max, logit);
    sum += static_cast<double>(logit);
    ++n;
  }
  if (n == 0) return;
  const double mean = sum / n;
  for (uint32_t i = 0; i < row.vocab; ++i) {
    const double distance = static_cast<double>(row.logits[i]) - mean;
    if (row.logits[i] != kForbidden) squares += distance * distance;
  }
  const auto least =
      static_cast<float>(static_cast<double>(max) -
                         static_cast<double>(row.options.top_n_sigma) * std::sqrt(squares / n));
  for (uint32_t i = 0; i < row.vocab; ++i) {
    if (row.logits[i] < least) row.logits[i] = kForbidden;
  }
}

using Options = SamplingOptions;
// In the order of application: that of transformers' _get_logits_processor, with those of ggml-org
// after the penalty that they resemble.
constexpr Processor kChain[] = {
    {[](const Options& o) { return !o.bias_ids.empty(); }, AddBias},
    {[](const Options& o) {
       return o.repetition_penalty != 1.0f || o.frequency_penalty != 0.0f ||
              o.presence_penalty != 0.0f;
     },
     PenaliseRepetition},
    {[](const Options& o) { return o.dry_multiplier != 0.0f; }, PenaliseLoops},
    {[](const Options& o) { return o.no_repeat_ngram_size != 0; }, ForbidRepeatedNgrams},
    {[](const Options& o) { return !o.bad_words.empty(); }, ForbidBadWords},
    {[](const Options& o) { return o.min_new_tokens != 0; }, ForbidEarlyEnd},
    {[](const Options& o) { return o.forced_first != -1; }, ForceFirst},
    {[](const Options& o) { return o.forced_last != -1; }, ForceLast},
    {[](const Options& o) { return !o.suppress_tokens.empty(); }, Suppress},
    {[](const Options& o) { return !o.begin_suppress_tokens.empty(); }, SuppressAtBegin},
    {[](const Options& o) { return o.top_n_sigma != 0.0f; }, KeepNSigma},
};

}  // namespace

Status PlanProcessors(uint32_t vocab, Layout* layout, ProcessorsPlan* out) {
  ARN_ASSIGN(out->row, layout->AddArray(Region::kIo, vocab, sizeof(float)));
  ARN_ASSIGN(out->marks, layout->AddArray(Region::kIo, vocab, sizeof(uint32_t)));
  return Status::kOk;
}

void LogitsProcessors::Init(const ProcessorsPlan& plan, const Memory& memory, uint32_t vocab) {
  row_ = memory.As<float>(plan.row);
  marks_ = memory.As<uint32_t>(plan.marks);
  vocab_ = vocab;
}

const float* LogitsProcessors::Apply(const SamplingOptions& options, const ProcessorInput& input,
                                     const float* logits, float offset) {
  std::memcpy(row_, logits, vocab_ * sizeof(float));
  for (uint32_t i = 0; i < vocab_ && offset != 0.0f; ++i) row_[i] -= offset;
  const Row row{options, input, row_, marks_, vocab_};
  for (const Processor& processor : kChain) {
    if (processor.is_on(options)) processor.apply(row);
  }
  return row_;
}

}  // namespace arn

#include "converter/run/verify.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "converter/base/error.h"
#include "converter/run/divergence.h"
#include "converter/run/runner.h"

namespace arn::convert {
namespace {

// Written for this purpose: prose, numbers, a list, code.
constexpr const char* kDefaultText =
    "The harbour was quiet when the ferry came in. Two fishermen were mending a net on the quay, "
    "and a girl with a "
    "yellow kite stood beside them and asked how far it was to the lighthouse. \"Three miles by "
    "the road,\" said the "
    "older one, \"and one and a half if you can swim.\" She laughed, because she could not, and "
    "set off along the wall.\n\n"
    "In 1862 the tower had been 31 metres high; after the storm of 1901 they rebuilt it in grey "
    "stone, 12 metres "
    "taller. Its lamp burned oil, then gas, and since 1957 it has run on electricity. On a clear "
    "night a captain sees "
    "it from 20 nautical miles away.\n\n"
    "What to take along: water, bread and cheese, a warm coat, a map.\n\n"
    "def distance(a, b):\n    return ((a.x - b.x) ** 2 + (a.y - b.y) ** 2) ** 0.5\n\n"
    "By the time she reached the door, the wind had turned to the west, and the first drops of "
    "rain were falling on "
    "the steps. The keeper let her in, gave her a cup of tea, and told her how, when he was young, "
    "a whale had "
    "swum into the harbour and stayed for nine days.\n";

constexpr uint32_t kChunk = 64;
void Start(Runner* runner, uint32_t n_tokens, uint32_t n_threads) {
  arn_session_options options = ARN_SESSION_OPTIONS_INIT;
  options.kv_type = ARN_KV_F32;
  options.context_tokens = n_tokens;
  options.prefill_chunk = kChunk;
  options.n_threads = n_threads;
  options.all_logits = 1;
  runner->Start(options);
}

// Returns the logits of all n tokens, n at most kChunk: [n, vocab].
const float* Logits(const Runner& runner, const int32_t* ids, uint32_t n) {
  const float* logits = nullptr;
  runner.Check(arn_session_prefill_logits(runner.session(), ids, n, &logits));
  return logits;
}

std::vector<int32_t> PseudoRandomIds(uint32_t vocab, uint32_t count) {
  std::vector<int32_t> ids(count);
  uint64_t state = 1;
  for (int32_t& id : ids) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth, MMIX
    id = static_cast<int32_t>((state >> 33) % vocab);
  }
  return ids;
}

struct Sums {
  double max_error = 0;
  double kl = 0;
  uint32_t same_top1 = 0;
  double nll = 0;
  double reference_nll = 0;
};

// Adds one position. `next`: the following token, or -1 at the end.
void AddPosition(const float* logits, const float* reference, uint32_t vocab, int32_t next,
                 Sums* sums) {
  for (uint32_t i = 0; i < vocab; ++i) {
    const double q = static_cast<double>(logits[i]), p = static_cast<double>(reference[i]);
    sums->max_error = std::max(sums->max_error, std::fabs(q - p));
  }
  sums->kl += Divergence(reference, logits, vocab);
  sums->same_top1 += std::max_element(logits, logits + vocab) - logits ==
                     std::max_element(reference, reference + vocab) - reference;
  if (next >= 0) {
    sums->nll += LogSumExp(logits, vocab) - static_cast<double>(logits[next]);
    sums->reference_nll += LogSumExp(reference, vocab) - static_cast<double>(reference[next]);
  }
}

}  // namespace

VerifyResult Verify(const VerifyOptions& options,
                    const std::function<void(uint64_t, uint64_t)>& on_progress) {
  Runner bundle(options.bundle, "verify");
  Runner reference(options.reference, "verify");
  const uint32_t vocab = bundle.info().vocab;
  const uint32_t limit = std::min(options.max_tokens, bundle.info().max_context);
  std::vector<int32_t> ids =
      bundle.info().has_tokenizer != 0
          ? bundle.Tokenize(options.text.empty() ? kDefaultText : options.text)
          : PseudoRandomIds(vocab, std::min<uint32_t>(limit, 128));
  if (ids.size() > limit) ids.resize(limit);
  if (ids.size() < 2) Fail("the text of --verify has %zu tokens, expected at least 2", ids.size());

  const uint32_t n = static_cast<uint32_t>(ids.size());
  Start(&bundle, n, options.n_threads);
  Start(&reference, n, options.n_threads);
  Sums sums;
  for (uint32_t begin = 0; begin < n; begin += kChunk) {
    const uint32_t count = std::min(kChunk, n - begin);
    const float* logits = Logits(bundle, ids.data() + begin, count);
    const float* expected = Logits(reference, ids.data() + begin, count);
    for (uint32_t i = 0; i < count; ++i) {
      const int32_t next = begin + i + 1 < n ? ids[begin + i + 1] : -1;
      AddPosition(logits + size_t{i} * vocab, expected + size_t{i} * vocab, vocab, next, &sums);
    }
    on_progress(begin + count, n);
  }

  VerifyResult result;
  result.n_tokens = n;
  result.max_logit_error = sums.max_error;
  result.mean_kl = sums.kl / n;
  result.top1_agreement = static_cast<double>(sums.same_top1) / n;
  result.perplexity = std::exp(sums.nll / (n - 1));
  result.reference_perplexity = std::exp(sums.reference_nll / (n - 1));
  return result;
}

}  // namespace arn::convert

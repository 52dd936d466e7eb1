#include "converter/run/verify.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "converter/base/error.h"
#include "converter/run/divergence.h"
#include "converter/run/written_bundle.h"
#include "converter/write/temporary_file.h"

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

constexpr const char* kVerify = "verify";

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

VerifyResult Verify(const VerifyOptions& options, const StreamedModel::OnProgress& on_progress) {
  WrittenBundle written(options.convert.output, kVerify);
  const Runner& bundle = written.runner();
  if (bundle.info().encoder_rows != 0) {
    Fail("%s: written, but a model with an encoder cannot be verified on a text",
         options.convert.output.c_str());
  }
  const uint32_t vocab = bundle.info().vocab;
  const uint32_t limit = std::min(options.max_tokens, bundle.info().max_context);
  std::vector<int32_t> ids =
      bundle.info().has_tokenizer != 0
          ? bundle.Tokenize(options.text.empty() ? kDefaultText : options.text)
          : PseudoRandomIds(vocab, std::min<uint32_t>(limit, 128));
  if (ids.size() > limit) ids.resize(limit);
  if (ids.size() < 2) Fail("the text of --verify has %zu tokens, expected at least 2", ids.size());

  // The bundle's session is created after the reference has dropped its last matrix.
  const uint32_t n = static_cast<uint32_t>(ids.size());
  StreamedModel model(options.convert, TemporaryName(options.convert.output, "verify"), kVerify);
  const float* expected = model.Run(ids, options.n_threads, on_progress);
  written.Start(AllLogitsSession(n, options.n_threads));
  const float* logits = nullptr;
  bundle.Check(arn_session_prefill_logits(bundle.session(), ids.data(), n, &logits));
  Sums sums;
  for (uint32_t i = 0; i < n; ++i) {
    AddPosition(logits + size_t{i} * vocab, expected + size_t{i} * vocab, vocab,
                i + 1 < n ? ids[i + 1] : -1, &sums);
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

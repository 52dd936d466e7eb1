#include "converter/verify.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "arenite/arenite.h"
#include "converter/error.h"

namespace arn::convert {
namespace {

// Made for this purpose: prose, numbers, a list, code.
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
constexpr size_t kErrorBytes = 512;

struct CloseModel {
  void operator()(arn_model* model) const { arn_model_close(model); }
};
struct DestroySession {
  void operator()(arn_session* session) const { arn_session_destroy(session); }
};

// One opened bundle with a session that keeps the logits of every position.
class Runner {
 public:
  Runner(const std::filesystem::path& path, uint32_t n_threads)
      : path_(path), n_threads_(n_threads) {
    char error[kErrorBytes] = "";
    arn_model* model = nullptr;
    if (arn_model_open(path.c_str(), nullptr, error, sizeof error, &model) != ARN_OK) {
      Fail("%s: cannot verify: %s", path.c_str(), error);
    }
    model_.reset(model);
    if (arn_model_get_info(model_.get(), &info_) != ARN_OK) {
      Fail("%s: cannot verify: no model info", path.c_str());
    }
  }

  const arn_model_info& info() const { return info_; }

  std::vector<int32_t> Tokenize(const std::string& text) const {
    size_t count = 0;
    arn_status status = arn_tokenize(model_.get(), text.data(), text.size(), ARN_TOKENIZE_DEFAULT,
                                     nullptr, 0, nullptr, 0, &count);
    std::vector<int32_t> ids(count);
    if (status == ARN_OK || status == ARN_BUFFER_TOO_SMALL) {
      status = arn_tokenize(model_.get(), text.data(), text.size(), ARN_TOKENIZE_DEFAULT, nullptr,
                            0, ids.data(), ids.size(), &count);
    }
    if (status != ARN_OK) {
      Fail("%s: cannot tokenise the text: %s", path_.c_str(), arn_status_name(status));
    }
    return ids;
  }

  void Start(uint32_t n_tokens) {
    arn_session_options options = ARN_SESSION_OPTIONS_INIT;
    options.kv_type = ARN_KV_F32;
    options.context_tokens = n_tokens;
    options.prefill_chunk = kChunk;
    options.n_threads = n_threads_;
    options.all_logits = 1;
    char error[kErrorBytes] = "";
    arn_session* session = nullptr;
    if (arn_session_create(model_.get(), &options, nullptr, 0, error, sizeof error, &session) !=
        ARN_OK) {
      Fail("%s: cannot verify: %s", path_.c_str(), error);
    }
    session_.reset(session);
  }

  // Logits of every one of at most kChunk tokens: [n, vocab].
  const float* Logits(const int32_t* ids, uint32_t n) {
    const float* logits = nullptr;
    const arn_status status = arn_session_prefill_logits(session_.get(), ids, n, &logits);
    if (status != ARN_OK) {
      Fail("%s: cannot verify: %s: %s", path_.c_str(), arn_status_name(status),
           arn_session_last_error(session_.get()));
    }
    return logits;
  }

 private:
  std::filesystem::path path_;
  uint32_t n_threads_;
  std::unique_ptr<arn_model, CloseModel> model_;
  std::unique_ptr<arn_session, DestroySession> session_;
  arn_model_info info_ = ARN_MODEL_INFO_INIT;
};

std::vector<int32_t> PseudoRandomIds(uint32_t vocab, uint32_t count) {
  std::vector<int32_t> ids(count);
  uint64_t state = 1;
  for (int32_t& id : ids) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth, MMIX
    id = static_cast<int32_t>((state >> 33) % vocab);
  }
  return ids;
}

double LogSumExp(const float* logits, uint32_t vocab) {
  const double largest = static_cast<double>(*std::max_element(logits, logits + vocab));
  double sum = 0;
  for (uint32_t i = 0; i < vocab; ++i) sum += std::exp(static_cast<double>(logits[i]) - largest);
  return largest + std::log(sum);
}

struct Sums {
  double max_error = 0;
  double kl = 0;
  uint32_t same_top1 = 0;
  double nll = 0;
  double reference_nll = 0;
};

// One position. `next`: the token that follows, or -1 at the end.
void AddPosition(const float* logits, const float* reference, uint32_t vocab, int32_t next,
                 Sums* sums) {
  const double z = LogSumExp(logits, vocab);
  const double reference_z = LogSumExp(reference, vocab);
  double kl = 0;
  for (uint32_t i = 0; i < vocab; ++i) {
    const double q = static_cast<double>(logits[i]), p = static_cast<double>(reference[i]);
    sums->max_error = std::max(sums->max_error, std::fabs(q - p));
    kl += std::exp(p - reference_z) * ((p - reference_z) - (q - z));
  }
  sums->kl += kl;
  sums->same_top1 += std::max_element(logits, logits + vocab) - logits ==
                     std::max_element(reference, reference + vocab) - reference;
  if (next >= 0) {
    sums->nll += z - static_cast<double>(logits[next]);
    sums->reference_nll += reference_z - static_cast<double>(reference[next]);
  }
}

}  // namespace

VerifyResult Verify(const VerifyOptions& options,
                    const std::function<void(uint64_t, uint64_t)>& on_progress) {
  Runner bundle(options.bundle, options.n_threads);
  Runner reference(options.reference, options.n_threads);
  const uint32_t vocab = bundle.info().vocab;
  const uint32_t limit = std::min(options.max_tokens, bundle.info().max_context);
  std::vector<int32_t> ids =
      bundle.info().has_tokenizer != 0
          ? bundle.Tokenize(options.text.empty() ? kDefaultText : options.text)
          : PseudoRandomIds(vocab, std::min<uint32_t>(limit, 128));
  if (ids.size() > limit) ids.resize(limit);
  if (ids.size() < 2)
    Fail("the text to verify with has %zu tokens; it takes at least 2", ids.size());

  const uint32_t n = static_cast<uint32_t>(ids.size());
  bundle.Start(n);
  reference.Start(n);
  Sums sums;
  for (uint32_t begin = 0; begin < n; begin += kChunk) {
    const uint32_t count = std::min(kChunk, n - begin);
    const float* logits = bundle.Logits(ids.data() + begin, count);
    const float* expected = reference.Logits(ids.data() + begin, count);
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
